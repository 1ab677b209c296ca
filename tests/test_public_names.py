"""What `import mvcca` offers: every name resolves, and type checkers and readers see the same."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.decomposition import NMF
from sklearn.pipeline import make_pipeline

import mvcca
from mvcca import CCA, PerView, save
from mvcca.base import MultiViewEstimator
from mvcca.machine.gone_names import INSTEAD

ROOT = Path(__file__).parents[1]
SUBMODULES = ("linear", "kernel", "views", "persistence")


def names_for_type_checkers() -> dict[str, str]:
    """Name -> module it is imported from, as the TYPE_CHECKING block of mvcca/__init__.py says."""
    tree = ast.parse(Path(mvcca.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    return {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_every_public_name_is_what_type_checkers_are_told():
    told = names_for_type_checkers()
    if not find_spec("torch"):
        del told["deep"]
    for name, module in told.items():
        value = getattr(mvcca, name)
        if isinstance(value, ModuleType):
            assert value is import_module(f"{module}.{name}"), name
        else:
            assert value is getattr(import_module(module), name), name


def test_type_checkers_know_every_public_name():
    assert names_for_type_checkers().keys() == {*mvcca.__all__, "deep"}


def test_examples_import_names_of_the_top_level_from_it():
    docs = ROOT / "docs"
    pages = [
        *docs.glob("*.rst"),
        *docs.glob("how_to/*.rst"),
        *docs.glob("user_guide/*.rst"),
        *docs.glob("examples/*/*.py"),
    ]
    found = []
    for page in [ROOT / "README.md", *pages, *Path(mvcca.__file__).parent.rglob("*.py")]:
        prompt = ">>> " if page.is_relative_to(ROOT / "mvcca") else "(?:>>> )?"
        text = page.read_text(encoding="utf-8")
        for room, names in re.findall(rf"^ *{prompt}from mvcca\.(\w+) import (.+)$", text, re.M):
            twice = {name.strip() for name in names.split(",")} & set(mvcca.__all__)
            found += [f"{page}: mvcca.{room}.{name}" for name in twice]
    assert not found, found


def test_dir_lists_the_public_names_and_nothing_else():
    assert set(dir(mvcca)) == {*mvcca.__all__, "deep", "__version__"}


# What a new process imports, and what that must not import; each includes what was imported before.
IMPORTS = [
    ("mvcca", {"numpy", "scipy", "sklearn", "torch", "dask", "cupy", "numba", "pandas"}),
    ("mvcca.blocks.sources", {"h5py", "zarr", "pyarrow", "dask", "pandas"}),
    ("mvcca.retrieval", {"numba"}),
    ("mvcca.interop", {"onnx", "datasets", "anndata", "mudata", "sentence_transformers"}),
    ("mvcca.plotting", {"matplotlib"}),
]


@pytest.mark.slow  # starts a process
def test_submodules_are_there_after_a_bare_import_and_heavy_libraries_are_not(tmp_path):
    path = tmp_path / "model.mvcca"
    counts = np.random.default_rng(0).poisson(3, (20, 5))
    model = make_pipeline(PerView(NMF(2, max_iter=1000)), CCA(1))
    save(model.fit({"image": counts, "text": counts[::-1]}), path)
    code = f"""
import sys
from importlib import import_module
for name, heavy in {IMPORTS}:
    dir(import_module(name))
    assert not heavy & sys.modules.keys(), (name, heavy & sys.modules.keys())
import mvcca
for name in {SUBMODULES}:
    assert getattr(mvcca, name).__all__
mvcca.save(mvcca.load({str(path)!r}), {str(path)!r})  # imports the classes that the file names
heavy = {{"torch", "matplotlib", "pytest", "sklearn.manifold"}}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
if {bool(find_spec("torch"))}:
    assert mvcca.deep.__all__
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_unknown_name_is_an_attribute_error_that_says_it():
    with pytest.raises(AttributeError, match="no attribute 'MVCAA'"):
        _ = mvcca.MVCAA


def test_version_is_the_one_in_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert mvcca.__version__ == project["version"]


def test_every_public_name_is_in_the_api_reference():
    listed = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").split()
    for name in mvcca.__all__:
        value = getattr(mvcca, name)
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__
        assert any(module == entry or module.startswith(f"{entry}.") for entry in listed), name


def public_estimators() -> list[type]:
    modules = [mvcca, mvcca.linear]
    if find_spec("torch"):
        modules.append(mvcca.deep)
    found = {getattr(module, name) for module in modules for name in module.__all__}
    classes = [c for c in found if isinstance(c, type) and issubclass(c, MultiViewEstimator)]
    return sorted(classes, key=lambda c: c.__name__)


def test_every_method_states_its_problem_its_source_and_an_example():
    for estimator in public_estimators():
        doc = inspect.getdoc(estimator)
        assert ".. math::" in doc, estimator
        assert "\n>>> " in doc.partition("\nExamples\n--------\n")[2], estimator
        if estimator.__name__ not in {
            "EncoderCCA",
        }:  # they solve the user's problem
            assert "\nReferences\n----------\n.. [1] " in doc, estimator


# ---- names that are gone ------------------------------------------------------------------------


def names_that_moved() -> list[tuple[str, str]]:
    """Dotted names and what replaces them, by the changelog's table of moved and removed names."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, _, rest = text.partition("### Moved and removed names\n")
    lines = [line for line in rest.partition("\n### ")[0].splitlines() if line.startswith("| `")]
    cells = [line.strip("| ").split(" | ", maxsplit=1) for line in lines]
    return [
        (name, new.replace("`", ""))
        for old, new in cells
        for name in re.findall(r"`([a-z_][a-z_.]*\.\w+)(?:\([^`]*)?`", old)
    ]


def gone_names() -> list[tuple[str, str, str]]:
    """Rooms, the names that they no longer offer, and what the changelog says of these."""
    found = []
    for name, new in names_that_moved():
        room, _, last = f"mvcca.{name}".rpartition(".")
        is_room = bool(find_spec("mvcca." + name.partition(".")[0])) and bool(find_spec(room))
        if is_room and last not in dir(import_module(room)):
            found.append((room, last, new))
    return found


def test_names_that_are_gone_name_their_successor():
    pytest.importorskip("torch")  # which some of their modules import
    gone = gone_names()
    assert {f"{room}.{name}" for room, name, _ in gone} == INSTEAD.keys()
    for room, name, new in gone:
        instead = INSTEAD[f"{room}.{name}"]
        assert instead in new, (name, new)
        message = re.escape(f"module {room!r} has no attribute {name!r} any more; use {instead}")
        with pytest.raises(AttributeError, match=message):
            getattr(import_module(room), name)
        with pytest.raises(ImportError, match=message):
            exec(f"from {room} import {name}", {})


def test_a_name_that_never_was_has_the_usual_error():
    with pytest.raises(AttributeError, match=r"'mvcca\.plotting' has no attribute 'Nothing'$"):
        mvcca.plotting.Nothing  # noqa: B018
    assert not hasattr(mvcca.plotting, "LearningCurveDisplay")
    assert not hasattr(mvcca.linear, "__wrapped__")
