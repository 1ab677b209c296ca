"""Every script in benchmarks/ explains itself quickly, and runs on its smallest setting."""

from __future__ import annotations

import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
SCRIPTS = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in (*FOLDER.glob("[!_]*.py"), *FOLDER.glob("peers/*.py"))
    if '__name__ == "__main__"' in path.read_text()
)
MNIST, CAPTIONS = ("mnist.npz",), ("coco_val2017_captions.npz",)
# The least that a script can do, the files and the libraries that it needs.
SMALLEST: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "alignment.py": ("--seeds 1 --pairs 100", ("multi30k_encoders.npz",), ()),
    "compare_regret.py": ("--rows 300 --cv 3 --methods pls lgcfl", (), ()),
    "cca_accumulation.py": ("--threads 1 --repeats 1 --rows 5000", (), ()),
    "compare_defaults.py": ("--data digits --rows 150", (), ()),
    "compare_speed.py": ("--folds 2 --repeats 1", (), ()),
    "dask_workers.py": ("--rows 40000 --rounds 1", (), ("distributed", "zarr")),
    "deep_ablation.py": (
        "--rows 500 --valid-rows 200 --hidden 16 --scaling-hidden 4 --epochs 2 --seeds 2 "
        '--regs 1e-2 --variants DCCA "Global Scale"',
        MNIST,
        ("torch",),
    ),
    "deep_captions.py": ("--methods MLCCA SAM --seeds 2 --epochs 1", CAPTIONS, ("torch",)),
    "deep_epoch.py": ("--rows 800 --repeats 1", (), ("torch",)),
    "deep_mnist.py": ("--rows 1000 --epochs 1 --components 5", MNIST, ("torch",)),
    "deep_multi30k.py": (
        "--rows 300 --methods CCA --seeds 2 --epochs 1",
        ("multi30k.npz",),
        ("torch",),
    ),
    "deep_retrieval.py": (
        "--rows 500 --methods dcca --reference dcca --components 5 --seeds 2 --epochs 1",
        MNIST,
        ("torch",),
    ),
    "deep_spoken_digits.py": (
        "--methods MLCCA --seeds 2",
        ("mnist.npz", "spoken_digits.npz"),
        ("torch",),
    ),
    "deep_validation.py": ("--data digits --methods DCCA --seeds 1", (), ("torch",)),
    "deep_wikipedia.py": (
        "--views sift+lda --methods MLCCA --seeds 2",
        ("wikipedia.npz",),
        ("torch",),
    ),
    "estimated_times.py": ("--data digits --methods cca nkcca --rows 300", (), ()),
    "expected_correlations.py": ("--data digits", (), ()),
    "fold_search_speed.py": ("--small --repeats 1", (), ()),
    "gpu.py": ("--rows 100000 --repeats 1", ("coco2014_labels.npz",), ()),
    "index_updates.py": ("--rows 4000 --columns 8 --added 10 --adds 10", (), ()),
    "interval_coverage.py": ("--seeds 2 --resamples 5 --rows 200", (), ()),
    "jrl_wide.py": ("--rows 150 --features 300 --views 2 --small 100 200 2 --repeats 1", (), ()),
    "kernel_mnist.py": ("--rows 500 --ranks 60 --ridges 1e-2 --methods fourier", MNIST, ()),
    "kernels.py": ("--repeats 1", (), ()),
    "label_space.py": ("--rows 400 --features 1100 --repeats 1", (), ()),
    "label_covariance.py": ("--rows 2000 --threads 1 --repeats 1", ("coco2014_labels.npz",), ()),
    "many_views.py": ("digits", (), ()),
    "match_probability.py": ('--data "MNIST halves"', MNIST, ()),
    "migration_tables.py": ("--seeds 1 --pairs 100", ("multi30k_encoders.npz",), ()),
    "migration.py": ("--rows 10000 --repeats 1", (), ()),
    "missing_cells.py": ("--seeds 2 --rows 100 --draws 1", ("mfeat.npz",), ()),
    "mnist_folds.py": ("--rows 2000 --folds 2 --methods cca", MNIST, ()),
    "ncca_mnist.py": ("--rows 500 --components 2", MNIST, ()),
    "out_of_core.py": ("--rows 0.04 --threads 1", (), ()),
    "permutation_speed.py": (
        "--rows 100 --widths 5 4 --permutations 50 --refits 5 --repeats 1",
        (),
        (),
    ),
    "ranking.py": ("--rows 2000 --columns 16 --repeats 1 --bank 500", (), ("faiss",)),
    "representations.py": (
        "--layers 3 --width 300 --rows 2000 --seeds 2 --permutations 50",
        ("multi30k_encoders.npz",),
        (),
    ),
    "ranking_quality.py": ("digits --splits 1", (), ()),
    "real_data.py": ("scene", ("scene.npz",), ()),
    "routes.py": ("--most 600", (), ()),
    "single_cells.py": ("--cells 2000 --genes 200 --components 4", (), ("h5py",)),
    "supervised_halves.py": ("digits --seeds 1", (), ()),
    "tuning_regret.py": ("--data digits --methods CCA --goals object", (), ()),
    "unpaired.py": (
        "--pairs 20 --draws --rows 600",
        ("multi30k_encoders.npz",),
        (),
    ),
    "vocabularies.py": ("", ("coco_val2017_captions.npz", "coco_label_vectors.npz"), ()),
    "wide.py": ("--rows 300 --features 1200 --components 5", (), ()),
    "wide_pls.py": ("--dense 200 300 --rows 3000 --features 2000 --repeats 1 --files", (), ()),
    "wikipedia.py": ("--features sift --methods CCA", ("wikipedia.npz",), ()),
    "peers/__main__.py": ("--small --tasks a --packages mvcca floor --repeats 1", (), ()),
}
RUN_BY_OTHERS = {"peers/measure.py", "peers/deep_epoch.py"}  # with files that they write


def run(script: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
    command = [sys.executable, *options, str(FOLDER / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=FOLDER.parent)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_comes_before_slow_imports(script):
    done = run(script, "--help", options=("-X", "importtime"))
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("usage: ")
    slow = {"numpy", "scipy", "sklearn", "torch", "mvcca"}
    imported = {line.split("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert not imported & slow


def test_every_script_has_a_smallest_setting():
    assert set(SCRIPTS) == SMALLEST.keys() | RUN_BY_OTHERS


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
