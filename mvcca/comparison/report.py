"""The HTML report: a verdict, tables, figures with explanations, and all settings.

This module gathers what the report shows; ``templates/report.html`` shows it.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

from sklearn import config_context

from mvcca.comparison.examples import Example, Item, examples
from mvcca.comparison.fits import Measured
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.summary import Summary
from mvcca.comparison.verdict import table as headline
from mvcca.comparison.wording import pretty, written
from mvcca.machine.pages import template
from mvcca.machine.pictures import Illustration
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import Cell, Line, Table
from mvcca.model_selection import Goal

_TITLE = "Retrieval across views"
_N_QUERIES, _N_ITEMS = 6, 8
_LIBRARIES = ("mvcca", "numpy", "scipy", "scikit-learn")
NO_PICTURES = "which need matplotlib: pip install 'mvcca[plot]'"


def has_pictures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def report_page(
    results: Sequence[Measurements], command: str = "", next_steps: Mapping[str, str] | None = None
) -> str:
    """The report on all results; without `next_steps`, statements that save the best methods."""
    if not command and len(results) == 1:
        next_steps = _statements(results[0])
    return template("mvcca.comparison", "report.html").render(
        title=_TITLE,
        cases=[ResultSection.of(result) for result in results],
        estimators=dict.fromkeys(_estimators(results)),
        facts=list(_facts(results, command)),
        next_steps=next_steps or {},
    )


def _statements(result: Measurements) -> dict[str, str]:
    """Statements that fit the best method of each question to all objects, and save it."""
    return {
        what: f'mvcca.save(result.refit({method!r}, {goal!r}), "model.mvcca")'
        for goal, (what, (_, method)) in zip(result.goals, result.questions.items(), strict=False)
    }


class Queries(NamedTuple):
    """Queries with retrieved items."""

    title: str
    caption: str
    source: str
    rows: list[Example]


@dataclass(frozen=True)
class ResultSection:
    """What the report shows of one result."""

    summary: Summary
    tables: list[Table]  # measures, then correlations, costs and settings
    by_direction: list[Table]
    n_directions: int
    note: str  # why there are no pictures
    illustrations: list[Illustration]
    queries: Queries | None

    @classmethod
    def of(cls, result: Measurements) -> ResultSection:
        """Gather what the report shows of a result."""
        summary = Summary.of(result)
        tables = [
            part
            for table in (headline(result), summary.measures, summary.costs, summary.choices)
            for part in table.parts()
            if part.lines
        ]
        if not result.successes:
            return cls(summary, tables, [], 0, "", [], None)
        return cls(
            summary,
            tables,
            [part for table in _by_direction(result) for part in table.parts()],
            len(result.chance[0]),
            "" if has_pictures() else f"This report has no figures, {NO_PICTURES}.",
            list(_illustrations(result, summary)) if has_pictures() else [],
            _queries(result, bool(result.presentation.layout) and has_pictures()),
        )


def _by_direction(result: Measurements) -> Iterator[Table]:
    """A table per measure: a line per direction and a column per method."""
    directions = [in_one_line(f"{row.query} → {row.target}") for row in result.chance[0]]
    methods = list(map(in_one_line, result.successes))
    where = "" if result.is_one_split else f", mean over {len(result.folds)} folds"
    for m in result.measures:
        columns = [result.by_direction(name, m) for name in result.successes]
        lines = [
            Line(direction, [Cell(written(m, value)) for value in values])
            for direction, *values in zip(directions, *columns, strict=True)
        ]
        yield Table(f"{pretty(m)} by direction{where}", ["query → searched", *methods], lines)


def _goal(result: Measurements) -> Goal:
    """The goal of the first measure."""
    return result.settings.goal_of(result.measures[0], result.data)


def _is_tuned(result: Measurements) -> bool:
    return any(result.fits(name)[0].choice is not None for name in result.successes)


# ---- figures and queries ------------------------------------------------------------------------


def _illustrations(result: Measurements, summary: Summary) -> Iterator[Illustration]:
    from mvcca.comparison import figures

    best = result.fits(result.best)[0]
    if pictures := figures.correlations(result):
        yield Illustration(
            "Correlations",
            pictures,
            "Correlation between views on each component of the shared space. A gap between the "
            "lines means overfitting."
            + (" Bands run from the lowest to the highest pair of views." * _has_pairs(result)),
            _of_first_fold(result),
        )
    if _is_tuned(result):
        yield Illustration(
            "Search for settings",
            figures.tuning(result),
            f"{'MRR' if _goal(result) == 'object' else 'Mean average precision'} of held-out "
            "objects. Each point is the best value at this setting, whatever the others are; each "
            "ranking has a line.",
            summary.measured_on,
        )
    if best.curves:
        n_directions = len(result.chance[0])
        yield Illustration(
            "Recall",
            [figures.recall(result)],
            f"Share of queries with a right item ({result.right_items('r@1')}) among the first k. "
            "Lines that start higher find it earlier. Methods with equal curves share a line.",
            f"{summary.measured_on}; mean over "
            + (f"{n_directions} directions" if n_directions > 1 else "one direction"),
        )
    if best.shown is not None and (best.n_components or 0) > 1:
        views = best.shown.in_one_space.names
        n_rows = min(len(result.folds[0].test), figures.MOST_POINTS // len(views))
        colors = "" if result.data.label_texts is None else " of one colour"
        yield Illustration(
            "Shared space",
            [figures.embedding(result)],
            f"t-SNE map of the space of {in_one_line(result.best)}. Where different markers"
            f"{colors} mix, queries in one view find similar items in the other.",
            f"{n_rows:,} objects, drawn at random; {_of_first_fold(result)}",
        )


def _has_pairs(result: Measurements) -> bool:
    """Whether there are correlations of several pairs of views."""
    return any(
        len(values or {}) > 1
        for name in result.successes
        for values in [result.fits(name)[0].test_correlations]
    )


def _of_first_fold(result: Measurements) -> str:
    """Numbers of training and held-out objects of the fold that single fits are shown of."""
    train, test = len(result.folds[0].train), len(result.folds[0].test)
    which = "" if result.is_one_split else f"first of {len(result.folds)} folds, "
    return f"{which}{train:,} training and {test:,} held-out objects"


def _queries(result: Measurements, as_images: bool) -> Queries | None:
    """Queries and items as images, or as words and labels, or as numbers of rows."""
    best = result.fits(result.best)[0]
    if best.shown is None:
        return None

    def shown(item: Item) -> Item:
        if as_images:
            from mvcca.comparison import figures

            return replace(item, text=item.labels, image=figures.image(result, item))
        return replace(item, text=_text(result, item))

    source, target, *_ = map(in_one_line, best.shown.projected.rows.names)
    rows = [
        Example(shown(example.query), list(map(shown, example.found)))
        for example in _examples(result, best)
    ]
    varied = "" if result.data.label_texts is None else " among those of different labels"
    faded = " The part of an image that is in another view is faded." if as_images else ""
    return Queries(
        f"Queries: {source} → {target}",
        f"Queries in {source}, and the items that {in_one_line(result.best)} ranks first in "
        f"{target}. ✓ marks a right item, = one of {result.presentation.same}.{faded}",
        f"{len(rows)} queries, drawn at random{varied}; {_of_first_fold(result)}",
        rows,
    )


def _examples(result: Measurements, best: Measured) -> list[Example]:
    assert best.shown is not None
    objects, seed = result.folds[0].test, result.settings.random_state
    return examples(result.data, objects, best.shown, _N_QUERIES, _N_ITEMS, seed)


def _text(result: Measurements, item: Item) -> str:
    """Text of a row: its words, or its name in the index, or its number; and its labels."""
    if result.presentation.words is not None:
        name = result.presentation.words(item.view, item.row)
    elif result.data.ids is not None:
        name = str(result.data.ids[item.object])
    else:
        name = f"row {item.row}"
    return " ".join(filter(None, (name, f"[{item.labels}]" if item.labels else "")))


# ---- settings -----------------------------------------------------------------------------------


def _estimators(results: Sequence[Measurements]) -> Iterator[tuple[str, str]]:
    """Names of methods, and their estimators with all parameters."""
    with config_context(print_changed_only=False):
        for result in results:
            for name in result.successes:
                for found in result.fits(name):
                    yield name, " ".join(str(found.estimator).split())


def _facts(results: Sequence[Measurements], command: str) -> Iterator[tuple[str, str]]:
    """How the report was made."""
    used = [*_LIBRARIES, *(name for name in ("matplotlib", "torch") if name in sys.modules)]
    versions = ", ".join(f"{name} {version(name)}" for name in used)
    now = datetime.now().astimezone()
    if command:
        yield "command", command
    yield "seed", str(results[0].settings.random_state)
    yield "versions", f"Python {platform.python_version()}, {versions}"
    yield "date", now.isoformat(sep=" ", timespec="minutes")
