"""All tables and figures of the papers, in order."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module

from benchmarks.papers.protocol import Figure, Missing, Table

PAPERS = ("p0", "p1", "p2", "p3", "p4")


def entries(paper: str | None = None) -> Iterator[Table | Figure | Missing]:
    """What the papers have, or one of them."""
    for name in PAPERS if paper is None else (paper,):
        module = import_module(f"benchmarks.papers.{name}")
        yield from sorted(
            [*module.TABLES, *getattr(module, "FIGURES", []), *module.MISSING], key=_place
        )


def _place(entry: Table | Figure | Missing) -> tuple[str, int, str]:
    """Tables before figures, by number and letter."""
    kind, _, number = entry.number.partition(" ")
    digits = re.match(r"\d*", number)
    assert digits is not None
    return {"table": "", "figure": kind}.get(kind, ""), int(digits[0] or 0), number


def tables(paper: str | None = None) -> list[Table]:
    """The tables that can be run."""
    return [entry for entry in entries(paper) if isinstance(entry, Table)]


def selected(paper: str | None, table: str | None, figure: str | None) -> list[Table | Figure]:
    """The tables and figures that were asked for."""
    number = f"table {table}" if table else f"figure {figure}" if figure else None
    found = [entry for entry in entries(paper) if number in (None, entry.number)]
    for entry in found:
        if isinstance(entry, Missing) and number:
            sys.exit(f"{paper} {number} cannot be had here: {entry.reason}")
    if not found:
        sys.exit(f"{paper} has no {number}; see --list")
    return [entry for entry in found if not isinstance(entry, Missing)]


def records_of(entries: Iterable[Table | Figure]) -> list[Table]:
    """The tables whose records are needed, each once."""
    own = [entry.table if isinstance(entry, Figure) else entry for entry in entries]
    return list({table.key: table for table in own}.values())


def listing() -> str:
    """Every table and figure with its command, or why there is none."""
    lines = []
    for entry in entries():
        kind, _, number = entry.number.partition(" ")
        name = f"{entry.paper} {entry.number}"
        if isinstance(entry, Missing):
            lines.append(f"{name:14} not here: {entry.reason}")
            continue
        lines.append(f"{name:14} {entry.title}")
        lines.append(f"{'':14} python -m benchmarks.papers {entry.paper} --{kind} {number}")
    return "\n".join(lines)
