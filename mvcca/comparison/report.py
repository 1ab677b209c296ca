"""The HTML report: a verdict, tables, figures with explanations, and all settings.

This module gathers what the report shows; ``templates/report.html`` shows it.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from importlib.util import find_spec
from typing import NamedTuple

from sklearn import config_context

from mvcca.comparison.against_defaults import Gain, gains, not_searched
from mvcca.comparison.examples import Example, Item, examples
from mvcca.comparison.fits import Measured
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.summary import CAPTION, Summary
from mvcca.comparison.wording import pretty, written
from mvcca.machine.pages import template

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
        caption=CAPTION,
        cases=[Case.of(result) for result in results],
        facts=list(_facts(results, command)),
        next_steps=next_steps or {},
    )


def _statements(result: Measurements) -> dict[str, str]:
    """Statements that fit the best method of each question to all objects, and save it."""
    return {
        what: f'mvcca.save(result.refit({method!r}), "model.mvcca")'
        for what, (_, method) in result.questions.items()
    }


class Picture(NamedTuple):
    """An image as a data URL, its width in CSS pixels, and its explanation."""

    title: str
    address: str
    width: int
    caption: str


class Found(NamedTuple):
    """Text of a retrieved item."""

    text: str
    is_right: bool


class QueryText(NamedTuple):
    """Text of a query and of the items it retrieves, best first."""

    text: str
    found: list[Found]


class Queries(NamedTuple):
    """Queries with retrieved items, as text."""

    title: str
    caption: str
    lists: list[QueryText]


@dataclass(frozen=True)
class Case:
    """What the report shows of one result."""

    summary: Summary
    directions: list[str]  # titles; empty if no method has values
    by_direction: dict[str, dict[str, list[str]]]  # values by measure and method
    gains: list[tuple[str, str, str, str]]  # method, tuned, default and difference
    not_searched: list[str]
    note: str  # why there are no pictures
    pictures: list[Picture]
    queries: Queries | None  # None if they are among the pictures

    @classmethod
    def of(cls, result: Measurements) -> Case:
        """Gather what the report shows of a result."""
        if not result.successes:
            return cls(Summary.of(result), [], {}, [], [], "", [], None)
        as_images = bool(result.presentation.layout) and has_pictures()
        return cls(
            Summary.of(result),
            [f"{row.query} → {row.target}" for row in result.chance[0]],
            {
                pretty(m): {
                    name: [written(m, value) for value in result.by_direction(name, m)]
                    for name in result.successes
                }
                for m in result.measures
            },
            [_in_words(result, gain) for gain in gains(result)],
            list(not_searched(result)) if _is_tuned(result) else [],
            "" if has_pictures() else f"This report has no figures, {NO_PICTURES}.",
            list(_pictures(result, as_images)) if has_pictures() else [],
            None if as_images else _queries(result),
        )


def _is_tuned(result: Measurements) -> bool:
    return any(result.fits(name)[0].choice is not None for name in result.successes)


def _in_words(result: Measurements, gain: Gain) -> tuple[str, str, str, str]:
    """A method, its first measure tuned and at default settings, and the difference."""
    measure = result.measures[0]
    tuned = written(measure, gain.tuned)
    if gain.default is None:
        return gain.method, tuned, "not measured", ""
    difference = gain.tuned - gain.default
    return gain.method, tuned, written(measure, gain.default), f"{difference:+.3f}"


# ---- pictures and queries -----------------------------------------------------------------------


def _pictures(result: Measurements, with_queries: bool) -> Iterator[Picture]:
    from mvcca.comparison import figures

    best = result.fits(result.best)[0]
    if best.test_correlations is not None:
        yield Picture(
            "Correlations",
            *figures.correlations(result),
            "Correlation between views on each component of the shared space: the further the "
            "held-out line falls below the training line, the less the method generalizes.",
        )
    if _is_tuned(result):
        yield Picture(
            "Settings",
            *figures.tuning(result),
            "Values of the searched settings on the inner folds of the first fold, a line for each "
            "ranking and, of other settings, the best: a circle marks the choice. They are "
            "optimistic: the table shows values on held-out objects, which chose nothing.",
        )
    if best.curves:
        yield Picture(
            "Recall",
            *figures.recall(result),
            f"Share of queries with a right item ({result.right_items('r@1')}) among the first k, "
            "mean over all directions: the higher a line starts, the earlier the right items "
            "appear. Equal curves share a line.",
        )
    if best.shown is not None and (best.n_components or 0) > 1:
        yield Picture(
            "Shared space",
            *figures.embedding(result),
            f"t-SNE embedding of held-out objects in the space of {result.best}: where different "
            "markers of one colour mix, queries in one view find similar items in the other.",
        )
    if with_queries and best.shown is not None:
        title, caption = _about_queries(result, best)
        yield Picture(
            title,
            *figures.images(result, _examples(result, best)),
            f"{caption}: a solid green frame marks a right item (bold: {result.presentation.same}),"
            " a dashed orange frame a wrong one; parts outside the view are faded.",
        )


def _queries(result: Measurements) -> Queries | None:
    """Queries as text: words and labels, or numbers of rows."""
    best = result.fits(result.best)[0]
    if best.shown is None:
        return None
    title, caption = _about_queries(result, best)
    lists = [
        QueryText(
            _text(result, example.query),
            [
                Found(
                    _text(result, item)
                    + (f" ({result.presentation.same})" if item.is_same else ""),
                    item.is_right,
                )
                for item in example.found
            ],
        )
        for example in _examples(result, best)
    ]
    return Queries(title, f"{caption}.", lists)


def _about_queries(result: Measurements, best: Measured) -> tuple[str, str]:
    """Title and caption."""
    assert best.shown is not None
    source, target, *_ = best.shown.projected.rows.names
    caption = f"Queries in {source} and the items that {result.best} ranks first in {target}"
    return f"Queries: {source} → {target}", caption


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


def _facts(results: Sequence[Measurements], command: str) -> Iterator[tuple[str, str]]:
    """Names and values of all settings."""
    used = [*_LIBRARIES, *(name for name in ("matplotlib", "torch") if name in sys.modules)]
    versions = ", ".join(f"{name} {version(name)}" for name in used)
    now = datetime.now().astimezone()
    with config_context(print_changed_only=False):
        fitted = [
            (name, " ".join(str(found.estimator).split()))
            for result in results
            for name in result.successes
            for found in result.fits(name)
        ]
    if command:
        yield "command", command
    yield "seed", str(results[0].settings.random_state)
    yield from dict.fromkeys(fitted)
    yield "versions", f"Python {platform.python_version()}, {versions}"
    yield "date", now.isoformat(sep=" ", timespec="minutes")
