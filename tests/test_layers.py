"""Who may import whom, read from the source: the package is a stack, not a web."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import mvcca

# A module imports from the rows above its own and from its own folder, and from nowhere else in
# mvcca. A new module is added here first; where no row fits, the design is asked before the code.
LAYERS = (
    (
        "_backend",
        "_by_view",
        "_containers",
        "_lapack",
        "_memory",
        "_replacing",
        "_sparse",
        "_warnings",
    ),
    ("_devices",),
    ("_archive", "_jit", "_threads", "config", "labels", "linalg", "measures", "sources"),
    ("_compiled_loops", "views"),
    ("similarity", "typing"),
    ("passes",),
    ("statistics",),
    ("validation",),
    ("_checked_rows", "problem"),
    ("_output", "_score"),
    ("base",),
    ("compose", "datasets", "inspection", "linear", "retrieval"),
    ("kernel", "plotting", "scoring"),
    ("deep",),
    ("persistence",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
ROW_OF = {name: row for row, names in enumerate(LAYERS) for name in names}

# Libraries with one home each.
HOME_OF = {"argparse": "cli", "cupy": "none", "torch": "deep"}

PACKAGE = Path(mvcca.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))


def layer_name(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(source: Path) -> Iterator[tuple[str, ...]]:
    """Dotted names imported anywhere in a file, functions included, as tuples of their parts."""
    package = ("mvcca", *source.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else ()
            module = (*start, *(node.module.split(".") if node.module else ()))
            yield from ((*module, alias.name) for alias in node.names)


def imported_layers(source: Path) -> set[str]:
    ours = (name[1:] for name in imports(source) if name[0] == "mvcca")
    return {rest[0] if rest and rest[0] in ROW_OF else "__init__" for rest in ours}


def source_id(source: Path) -> str:
    return source.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize("source", SOURCES, ids=source_id)
def test_every_module_has_a_layer(source):
    assert layer_name(source) in ROW_OF


@pytest.mark.parametrize("source", SOURCES, ids=source_id)
def test_modules_import_only_from_the_layers_above(source):
    own = layer_name(source)
    strangers = {name for name in imported_layers(source) - {own} if ROW_OF[name] >= ROW_OF[own]}
    assert not strangers


@pytest.mark.parametrize("source", SOURCES, ids=source_id)
def test_libraries_stay_in_their_one_home(source):
    own = layer_name(source)
    assert not {name[0] for name in imports(source) if HOME_OF.get(name[0], own) != own}


def test_importing_mvcca_imports_none_of_the_libraries_that_do_the_work():
    heavy = {"torch", "dask", "cupy", "matplotlib", "numba", "sklearn", "scipy", "numpy"}
    program = "import sys, mvcca; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "mvcca" in answer.stdout.split()
    assert not heavy & set(answer.stdout.split())
