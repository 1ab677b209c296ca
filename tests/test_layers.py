"""Who may import whom, read from the source: the package is a stack, not a web."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from house import PACKAGE, imported_names, room_of, sources

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
    ("compose", "datasets", "linear"),
    ("inspection", "kernel"),
    ("plotting",),
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


def imported_rooms(source: Path) -> set[str]:
    ours = (name[1:] for name in imported_names(source) if name[0] == "mvcca")
    return {rest[0] if rest and rest[0] in ROW_OF else "__init__" for rest in ours}


def test_every_module_has_a_layer():
    assert {room_of(source) for source in sources()} == ROW_OF.keys()


def test_modules_import_only_from_the_layers_above():
    strangers = [
        f"{source.relative_to(PACKAGE)} imports {room}"
        for source in sources()
        for room in imported_rooms(source) - {room_of(source)}
        if ROW_OF[room] >= ROW_OF[room_of(source)]
    ]
    assert not strangers


def test_libraries_stay_in_their_one_home():
    strangers = [
        f"{source.relative_to(PACKAGE)} imports {name[0]}"
        for source in sources()
        for name in imported_names(source)
        if name[0] in HOMES_OF and room_of(source) not in HOMES_OF[name[0]]
    ]
    assert not strangers


def test_no_modules_import_each_other_in_a_circle():
    modules = {module_name(source): source for source in sources()}
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
