"""The HTML report: a verdict, tables, figures with explanations, and all settings.

This module gathers what the report shows; ``templates/report.html`` shows it.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from sklearn import config_context

from mvcca.comparison.examples import Item, Shown, examples
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.verdict import (
    about,
    answers,
    by_direction,
    definitions,
    details,
    measured_on,
    sentences,
    table,
    title_of,
    warnings_of,
)
from mvcca.machine.pages import template
from mvcca.machine.pictures import Illustration
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import Table

_TITLE = "Retrieval across views"
_N_QUERIES, _N_ITEMS = 6, 8
_LIBRARIES = ("mvcca", "numpy", "scipy", "scikit-learn")
NO_PICTURES = "which need matplotlib: pip install 'mvcca[plot]'"


def has_pictures() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def report_page(
    results: Sequence[Measurements],
    command: str = "",
    next_steps: Mapping[str, str] | None = None,
) -> str:
    """The report on all results; without `next_steps`, statements that save the best methods."""
    if not command and len(results) == 1:
        next_steps = _statements(results[0])
    return template("mvcca.comparison", "report.html").render(
        title=_TITLE,
        cases=[_section(result) for result in results],
        estimators=dict.fromkeys(_estimators(results)),
        facts=list(_facts(results, command)),
        next_steps=next_steps or {},
    )


def _statements(result: Measurements) -> dict[str, str]:
    """Statements that fit the best method of each goal to all objects, and save it."""
    return {
        result.right_items(goal): f'mvcca.save(result.refit({name!r}, {goal!r}), "model.mvcca")'
        for goal in result.goals
        if (name := result.best_for(goal))
    }


def _section(result: Measurements) -> dict[str, Any]:
    """What the report shows of one result."""
    shown = Shown.of(result) if result.successes else None
    draws = result.successes and has_pictures()
    return {
        "title": title_of(result),
        "answers": answers(result),
        "verdict": " ".join(sentences(result)),
        "about": about(result),
        "tables": _parts([table(result), details(result)]),
        "by_direction": _parts(by_direction(result)),
        "warnings": warnings_of(result),
        "definitions": definitions(result),
        "note": "" if has_pictures() else f"This report has no figures, {NO_PICTURES}.",
        "illustrations": list(_illustrations(result, shown)) if draws else [],
        "queries": None if shown is None else _queries(result, shown, has_pictures()),
    }


def _parts(tables: Iterable[Table]) -> list[Table]:
    return [part for own in tables for part in own.parts() if part.lines]


# ---- figures and queries ------------------------------------------------------------------------


def _illustrations(result: Measurements, shown: Shown | None) -> Iterator[Illustration]:
    from mvcca.comparison import figures

    for goal in result.goals:
        if pictures := figures.tuning(result, goal):
            yield Illustration(
                f"Search for settings: {result.right_items(goal)}",
                pictures,
                f"{'MRR' if goal == 'object' else 'Mean average precision'} of held-out objects. "
                "Each point is the best value at this setting, whatever the others are; each "
                "ranking has a line.",
                measured_on(result),
            )
    if "object" in result.goals and not result.by_measure:
        yield Illustration(
            "Recall",
            [figures.recall(result)],
            "Share of queries whose object is among the first k. Lines that start higher find it "
            "earlier. Methods with equal curves share a line.",
            f"{measured_on(result)}; mean over directions",
        )
    if shown is not None and shown.n_columns > 1:
        views = shown.in_one_space.names
        n_rows = min(len(result.folds[0].test), figures.MOST_POINTS // len(views))
        colors = "" if result.data.label_texts is None else " of one colour"
        yield Illustration(
            "Shared space",
            [figures.embedding(result, shown)],
            f"t-SNE map of the space of {in_one_line(result.best)}. Where different markers"
            f"{colors} mix, queries in one view find similar items in the other.",
            f"{n_rows:,} objects, drawn at random; {_of_first_fold(result)}",
        )


def _of_first_fold(result: Measurements) -> str:
    """Numbers of training and held-out objects of the fold that single fits are shown of."""
    train, test = len(result.folds[0].train), len(result.folds[0].test)
    which = "" if result.is_one_split else f"first of {len(result.folds)} folds, "
    return f"{which}{train:,} training and {test:,} held-out objects"


def _queries(result: Measurements, shown: Shown, has_pictures: bool) -> dict[str, Any]:
    """Queries and items as images, or as words and labels, or as numbers of rows."""
    as_images = bool(result.presentation.layout) and has_pictures

    def labelled(item: Item) -> Item:
        if as_images:
            from mvcca.comparison import figures

            return replace(item, text=item.labels, image=figures.image(result, item))
        return replace(item, text=_text(result, item))

    source, target, *_ = map(in_one_line, shown.projected.rows.names)
    objects, seed = result.folds[0].test, result.settings.random_state
    rows = [
        (labelled(query), list(map(labelled, found)))
        for query, found in examples(result.data, objects, shown, _N_QUERIES, _N_ITEMS, seed)
    ]
    varied = "" if result.data.label_texts is None else " among those of different labels"
    faded = " The part of an image that is in another view is faded." if as_images else ""
    return {
        "title": f"Queries: {source} → {target}",
        "caption": f"Queries in {source}, and the items that {in_one_line(result.best)} ranks "
        f"first in {target}. ✓ marks a right item, = one of {result.presentation.same}.{faded}",
        "source": f"{len(rows)} queries, drawn at random{varied}; {_of_first_fold(result)}",
        "rows": rows,
    }


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
                for estimator in result.estimators(name):
                    yield name, " ".join(str(estimator).split())


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
