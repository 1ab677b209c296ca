"""Results as cells, notes and aligned text: what both the terminal and the report show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mvcca.cli.run import Outcome
from mvcca.retrieval import RetrievalTable

__all__ = ["Line", "Results", "aligned"]

_PRETTY = {"map": "mAP", "p": "P", "r": "R", "mrr": "MRR", "mr": "median rank"}
_VIEW = re.compile(r"(?<=[Vv]iew )'([^']*)'")


@dataclass(frozen=True)
class Line:
    """One line of results.

    Attributes
    ----------
    title, learns_from : str
        The method, and what it was fitted to.
    values : dict of str to str
        Measures, written out; empty if the method was skipped.
    seconds, notes : str
        The time of the fit, and numbers of the notes that concern it.
    skipped : str
        Why there are no values.
    is_best : bool
        Whether its first measure is the best.
    """

    title: str
    learns_from: str
    values: dict[str, str]
    seconds: str = ""
    notes: str = ""
    skipped: str = ""
    is_best: bool = False


@dataclass(frozen=True)
class Results:
    """Lines of results with their header, and what has to be said below them.

    Attributes
    ----------
    header : list of str
    lines : list of Line
    notes : list of str
        Warnings, numbered from 1 in `Line.notes`.
    meanings : list of str
        What the measures stand for.
    """

    header: list[str]
    lines: list[Line]
    notes: list[str]
    meanings: list[str]

    @classmethod
    def of(
        cls,
        outcomes: Sequence[Outcome],
        chance: RetrievalTable,
        best: Outcome,
        by_direction: bool = False,
    ) -> Results:
        """Write outcomes out, with random scores as the last line."""
        notes: list[str] = []
        lines = []
        for outcome in outcomes:
            lines += _lines(outcome, notes, outcome is best, by_direction)
        lines.append(Line("random scores", "nothing", _written(chance.mean())))
        header = ["method", "learns from", *map(pretty, chance.mean()), "fit s", "notes"]
        return cls(header if notes else header[:-1], lines, notes, list(chance.notes))

    def cells(self, line: Line) -> list[str]:
        """A line under the header."""
        cells = [line.title, line.learns_from, *line.values.values(), line.seconds, line.notes]
        return cells[: len(self.header)]

    def __str__(self) -> str:
        full = [self.cells(line) for line in self.lines if not line.skipped]
        text = iter(aligned([self.header, *full], n_left=2))
        width = max(len(line.title) for line in self.lines)
        lines = [next(text)]
        for line in self.lines:
            reason = f"{line.title.ljust(width)}  skipped: {line.skipped}"
            lines.append(reason if line.skipped else next(text))
        notes = [f"[{number}] {note}" for number, note in enumerate(self.notes, start=1)]
        return "\n".join([*lines, *notes])


def pretty(metric: str) -> str:
    """A measure's name as papers print it: ``map@50`` is mAP@50."""
    kind = re.split("[@:]", metric)[0]
    return _PRETTY.get(kind, kind.replace("_", " ")) + metric[len(kind) :]


def aligned(rows: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Rows of cells as lines of equal columns, the first `n_left` of them flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number < n_left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _lines(
    outcome: Outcome, notes: list[str], is_best: bool, by_direction: bool
) -> list[Line]:
    if outcome.retrieval is None:
        return [Line(outcome.title, outcome.learns_from, {}, skipped=outcome.skipped)]
    numbers = []
    for message in _merged(outcome.warnings):
        if message not in notes:
            notes.append(message)
        numbers.append(notes.index(message) + 1)
    first = Line(
        outcome.title,
        outcome.learns_from,
        _written(outcome.retrieval.mean()),
        f"{outcome.seconds:.2f}",
        " ".join(f"[{number}]" for number in numbers),
        is_best=is_best,
    )
    if not by_direction:
        return [first]
    return [
        first,
        *(
            Line(f"  {row.query} -> {row.target}", "", _written(row.values))
            for row in outcome.retrieval
        ),
    ]


def _written(values: dict[str, float]) -> dict[str, str]:
    return {
        name: f"{value:.1f}" if name.startswith(("mr:", "mean_rank")) or name == "mr"
        else f"{value:.3f}"
        for name, value in values.items()
    }


def _merged(messages: Sequence[str]) -> list[str]:
    """Messages that differ in the name of a view only, as one that names them all."""
    views: dict[str, list[str]] = {}
    for message in messages:
        found = _VIEW.search(message)
        views.setdefault(_VIEW.sub("{}", message, count=1), []).extend(
            [repr(found[1])] if found else []
        )
    return [
        text.replace("{}", names[0] + (f" (and {', '.join(names[1:])})" if names[1:] else ""), 1)
        for text, names in (
            (template, names or ["{}"]) for template, names in views.items()
        )
    ]
