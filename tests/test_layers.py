"""Who may import whom, read from the source: the package is a stack, not a web."""

from __future__ import annotations

from pathlib import Path

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
