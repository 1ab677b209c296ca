"""Who may import whom, read from the source: the package is a stack, not a web."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import deque
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import mvcca

# A module imports from the rows above its own and from its own folder, and from nowhere else in
# mvcca. A new module is added here first; where no row fits, the design is asked before the code.
LAYERS = (
    ("machine",),
    ("blocks",),
    ("measures", "views"),
    ("similarity",),
    ("statistics",),
    ("problem",),
    ("retrieval",),
    ("model_selection",),
    ("base",),
    ("compose", "datasets", "inspection", "linear"),
    ("kernel", "plotting"),
    ("deep",),
    ("persistence",),
    ("comparison", "interop"),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
ROW_OF = {name: row for row, names in enumerate(LAYERS) for name in names}

# Libraries with a home each; what `interop` makes for them, it makes with them.
HOMES_OF = {"argparse": ("cli",), "cupy": (), "torch": ("deep", "interop")}

PACKAGE = Path(mvcca.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))


def layer_name(source: Path) -> str:
    return source.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imports(source: Path) -> list[tuple[str, ...]]:
    """Dotted names imported anywhere in a file, functions included, as tuples of their parts."""
    return list(imported_names(source, with_types=True))


def imported_names(source: Path, *, with_types: bool) -> Iterator[tuple[str, ...]]:
    """The same, with or without what only type checkers import."""
    package = ("mvcca", *source.relative_to(PACKAGE).parent.parts)
    nodes: deque[ast.AST] = deque([ast.parse(source.read_text(encoding="utf-8"))])
    while nodes:
        node = nodes.popleft()
        only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        nodes.extend(node.orelse if only_types and not with_types else ast.iter_child_nodes(node))
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
    assert not {name[0] for name in imports(source) if own not in HOMES_OF.get(name[0], (own,))}


def test_no_modules_import_each_other_in_a_circle():
    modules = {module_name(source): source for source in SOURCES}
    graph = {
        name: {
            found
            for imported in imported_names(source, with_types=False)
            if (found := longest_module(imported, modules)) not in (None, name)
        }
        for name, source in modules.items()
    }
    assert not circles(graph)


def module_name(source: Path) -> tuple[str, ...]:
    parts = ("mvcca", *source.relative_to(PACKAGE).with_suffix("").parts)
    return parts[:-1] if parts[-1] == "__init__" else parts


def longest_module(imported: tuple[str, ...], modules: Container[Any]) -> tuple[str, ...] | None:
    """The module that an imported name is, or is taken from."""
    parts = (imported[:end] for end in range(len(imported), 0, -1))
    return next((name for name in parts if name in modules), None)


def circles(graph: dict[Any, set[Any]]) -> list[list[str]]:
    """Strongly connected components of more than one module."""
    reached = {name: reachable(graph, name) for name in graph}
    groups = {frozenset(b for b in reached[a] if a in reached[b]) for a in graph}
    return [sorted(".".join(name) for name in group) for group in groups if group]


def reachable(graph: dict[Any, set[Any]], start: Any) -> set[Any]:
    """Nodes at the end of at least one step."""
    found: set[Any] = set()
    new = set(graph[start])
    while new:
        found |= new
        new = {after for name in new for after in graph[name]} - found
    return found


def test_circles_are_found_at_any_length():
    assert not circles({"a": {"b"}, "b": {"c"}, "c": set()})
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"a"}}) == [["a", "b"]]
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}) == [["a", "b", "c"]]


def test_importing_mvcca_imports_none_of_the_libraries_that_do_the_work():
    heavy = {"torch", "dask", "cupy", "matplotlib", "numba", "sklearn", "scipy", "numpy"}
    program = "import sys, mvcca; print(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert "mvcca" in answer.stdout.split()
    assert not heavy & set(answer.stdout.split())
