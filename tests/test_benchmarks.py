"""Every script in benchmarks/ explains itself quickly, and runs on its smallest setting."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.papers import catalogue

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


def module_of(path: Path) -> str:
    """Name that `python -m` takes, a package for its ``__init__`` and ``__main__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part not in ("__init__", "__main__"))


MODULES = {  # asv finds its own
    path: module_of(path) for path in sorted(FOLDER.rglob("*.py")) if "asv_suite" not in path.parts
}
SCRIPTS = [
    name.removeprefix("benchmarks.")
    for path, name in MODULES.items()
    if '__name__ == "__main__"' in path.read_text("utf-8")
]
MNIST, CAPTIONS = ("mnist.npz",), ("coco_val2017_captions.npz",)
# The least that a script can do, the files and the libraries that it needs.
SMALLEST: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "alignment.frozen_encoders": (
        "--seeds 1 --pairs 100",
        ("multi30k_encoders.npz",),
        ("torch",),
    ),
    "alignment.migration": ("--rows 10000 --repeats 1", (), ()),
    "alignment.migration_tables": ("--seeds 1 --pairs 100", ("multi30k_encoders.npz",), ()),
    "alignment.representations": (
        "--layers 3 --width 300 --rows 2000 --seeds 2 --permutations 50",
        ("multi30k_encoders.npz",),
        (),
    ),
    "alignment.unpaired": (
        "--pairs 20 --draws --rows 600",
        ("multi30k_encoders.npz",),
        (),
    ),
    "defaults.any_query": ("scene --rows 100", ("scene.npz",), ()),
    "defaults.choosing": ("--data digits --rows 150 --folds 2 --methods cca pls", (), ()),
    "defaults.compare": ("--parts cost --rows 100", (), ()),
    "defaults.compare_regret": (
        "--data cancer --rows 300 --compared cca klr --methods cca klr",
        (),
        (),
    ),
    "defaults.deep_training": (
        "--problems captions --methods DCCA SAM --epochs 2 --rows 200",
        CAPTIONS,
        ("torch",),
    ),
    "defaults.deep_start": (
        "digits --methods LearnedRanking --rows 60 --components 4",
        (),
        ("torch",),
    ),
    "defaults.deep_validation": ("--data digits --methods DCCA --seeds 1", (), ("torch",)),
    "defaults.expected_correlations": ("--data digits", (), ()),
    "defaults.interval_coverage": ("--seeds 2 --resamples 5 --rows 200", (), ()),
    "defaults.permutation_power": ("--seeds 1 --permutations 19", (), ()),
    "defaults.false_positives": (
        "--seeds 2 --permutations 19 --designs groups --distributions Gaussian",
        (),
        (),
    ),
    "defaults.hubness": ("digits --splits 1", (), ()),
    "defaults.many_views": ("digits", (), ()),
    "defaults.match_probability": ('--data "MNIST halves"', MNIST, ()),
    "defaults.missing_cells": ("--seeds 2 --rows 100 --draws 1", ("mfeat.npz",), ()),
    "defaults.ranking_quality": ("digits --splits 1", (), ()),
    "defaults.real_data": ("scene", ("scene.npz",), ()),
    "defaults.tuning_regret": ("--data digits --methods CCA --goals object", (), ()),
    "defaults.vocabularies": ("", ("coco_val2017_captions.npz", "coco_label_vectors.npz"), ()),
    "defaults.within": ("--problems captions --rows 200", CAPTIONS, ()),
    "papers": ("p0 --table 3 --quick --problems captions --solvers CCA PLS", CAPTIONS, ("torch",)),
    "peers": ("--small --tasks a --packages mvcca floor --repeats 1", (), ()),
    "peers.selection": ("--parts classes --repeats 1", ("breast_tcga.npz",), ()),
    "scale.cca_accumulation": ("--threads 1 --repeats 1 --rows 5000", (), ()),
    "scale.calls": ("--rows 2000 --columns 24 -k 4 --batches 2 --repeats 1", (), ()),
    "scale.compare": ("--folds 2 --repeats 1", (), ()),
    "scale.dask_workers": ("--rows 40000 --rounds 1", (), ("distributed", "zarr")),
    "scale.deep_epoch": ("--rows 800 --repeats 1", (), ("torch",)),
    "scale.fold_search": ("--small --repeats 1", (), ()),
    "scale.gpu": ("--rows 100000 --repeats 1", ("coco2014_labels.npz",), ()),
    "scale.growth": ("--share 0.1 --repeats 1 --only 'rows, transform' 'views, MVCCA'", (), ()),
    "scale.index_updates": ("--rows 4000 --columns 8 --added 10 --adds 10", (), ()),
    "scale.jrl_wide": ("--rows 150 --features 300 --views 2 --small 100 200 2 --repeats 1", (), ()),
    "scale.kernels": ("--repeats 1", (), ()),
    "scale.label_covariance": ("--rows 2000 --threads 1 --repeats 1", ("coco2014_labels.npz",), ()),
    "scale.label_space": ("--rows 400 --features 1100 --repeats 1", (), ()),
    "scale.out_of_core": ("--rows 0.04 --threads 1", (), ()),
    "scale.permutation_test": (
        "--rows 100 --widths 5 4 --permutations 50 --refits 5 --repeats 1",
        (),
        (),
    ),
    "scale.ranking": ("--rows 2000 --columns 16 --repeats 1 --bank 500", (), ("faiss",)),
    "scale.reading": ("--megabytes .1 --repeats 1", (), ()),
    "scale.routes": ("--most 600", (), ()),
    "defaults.sparse": ("--parts components --sets 1 --repeats 1", (), ()),
    "defaults.semantic_matching": ("digits --rows 150", (), ()),
    "defaults.units": ("cancer --goals object --rows 100", (), ()),
    "scale.single_cells": ("--cells 2000 --genes 200 --components 4", (), ("h5py",)),
    "scale.wide": ("--rows 300 --features 1200 --components 5", (), ()),
    "scale.wide_pls": ("--dense 200 300 --rows 3000 --features 2000 --repeats 1 --files", (), ()),
}
RUN_BY_OTHERS = {"peers.measure", "peers.deep_epoch"}  # with files that they write
RUN_BY_HAND = {"scale.dask_killed"}  # Dask may take minutes to notice that a worker was killed


def run(script: str, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", f"benchmarks.{script}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)


HELP_OF_ALL = """
import runpy, sys

for script in sys.argv[1:]:
    sys.argv = [script, "--help"]
    try:
        runpy.run_module(f"benchmarks.{script}", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert not end.code, script
    imported = {name.partition(".")[0] for name in sys.modules}
    slow = imported & {"numpy", "scipy", "sklearn", "torch", "mvcca"}
    assert not slow, (script, slow)
"""


def test_help_comes_before_slow_imports():
    command = [sys.executable, "-c", HELP_OF_ALL, *SCRIPTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(re.findall(r"^usage: ", done.stdout, re.M)) == len(SCRIPTS)


def test_every_script_has_a_smallest_setting():
    assert set(SCRIPTS) == SMALLEST.keys() | RUN_BY_OTHERS | RUN_BY_HAND


def imported_by(path: Path) -> set[str]:
    """Modules that a file imports, and all that it may have imported from them."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            folder = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*folder, *filter(None, [node.module])])
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def test_every_module_is_a_script_or_serves_one():
    used = set().union(*map(imported_by, MODULES))
    used |= {f"benchmarks.papers.{paper}" for paper in catalogue.PAPERS}
    used |= {f"benchmarks.{script}" for script in SCRIPTS}
    packages = {path for path in MODULES if path.stem == "__init__"}
    orphans = [path for path, name in MODULES.items() if name not in used and path not in packages]
    assert not orphans


def test_modules_of_benchmarks_are_imported_by_their_whole_name():
    """So that one way of running finds all of them."""
    stems = {path.stem for path in MODULES} - {"__init__", "__main__"}
    known = set(MODULES.values())
    for path in MODULES:
        for name in imported_by(path):
            assert name.split(".")[0] not in stems, (path, name)
            assert not name.startswith("benchmarks.") or {name, name.rpartition(".")[0]} & known, (
                path,
                name,
            )


def test_texts_name_scripts_that_are_there():
    """What `earlier.md` names is in the history of the repository, as it says."""
    texts = [ROOT / "README.md", ROOT / "Makefile", *MODULES]
    for folder, suffix in (("benchmarks", "md"), ("docs", "rst"), ("docs", "md"), ("mvcca", "py")):
        texts += (ROOT / folder).rglob(f"*.{suffix}")
    known = set(MODULES.values())
    for text in texts:
        if text.name == "earlier.md" or "generated" in text.parts:
            continue
        content = text.read_text("utf-8")
        paths = set(re.findall(r"\bbenchmarks/[a-z0-9_/]+\.py\b", content))
        assert not [path for path in paths if not (ROOT / path).is_file()], text
        # In commands, and in backticks.
        names = set(re.findall(r"(?:-m |`)(benchmarks(?:\.[a-z0-9_]+)*)(?![\w/])", content))
        assert names <= known, text


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "arguments", "libraries"),
    [
        pytest.param(
            name, arguments, libraries, id=name, marks=[pytest.mark.needs_data(f) for f in files]
        )
        for name, (arguments, files, libraries) in SMALLEST.items()
    ],
)
def test_a_script_runs_on_its_smallest_setting(script, arguments, libraries):
    for library in libraries:
        if find_spec(library) is None:
            pytest.skip(f"{script} needs {library}")
    done = run(script, *shlex.split(arguments))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
