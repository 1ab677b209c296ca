"""The HTML page of a study, and its figures."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from mvcca.machine.axes import GREY, color, tidy_axes
from mvcca.machine.pages import template
from mvcca.machine.pictures import Illustration, Picture
from mvcca.machine.printable import printable
from mvcca.machine.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mvcca.inspection.study._result import Study

_MOST_LOADINGS = 20  # of a view, in its figure
_LONGEST_NAME = 28  # characters, in the figure
_HEADINGS = {
    "in_sample": "these rows",
    "tested": "rows that are shuffled",
    "chance_95": "95 % of shuffled pairs",
    "p_value": "p-value",
    "held_out": "held out",
    "cross_loading": "cross-loading",
}


def study_page(study: Study, command: str = "") -> str:
    """The page of a study, with figures if matplotlib is installed."""
    first, second = study.variables
    return template("mvcca.inspection.study", "study.html").render(
        title=f"Is {first} correlated with {second}?",
        study=study,
        tables=list(_components(study)),
        loadings=list(_loadings(study).parts()),
        illustrations=list(_illustrations(study)) if find_spec("matplotlib") else [],
        facts=list(_facts(command)),
    )


def _components(study: Study) -> Iterator[Table]:
    """Correlations and redundancy of all components; those that are significant are shaded."""
    header, lines = study.table()
    shares = [j for j, name in enumerate(header) if name.startswith("redundancy_")]
    found = [j for j in range(len(header)) if j not in shares and header[j] != "note"]
    level = study.intervals.level
    for caption, columns, note in (
        (
            f"Correlations by component; shaded: p < 0.05, corrected for {len(lines)} tests",
            found,
            f"Low and high: {level:.0%} interval of the population{_from(study)}.",
        ),
        (
            "Redundancy by component",
            [0, *shares, header.index("note")],
            "Redundancy: share of a view's variance that the other view's variates explain.",
        ),
    ):
        names = [_heading(header[j]) for j in columns]
        values = [[line[j] for j in columns] for line in lines]
        table = Table.of(caption, names, values, [note], spec=".3f")
        marked = [
            replace(line, kind="best" if is_significant else "")
            for line, is_significant in zip(table.lines, study.significant, strict=True)
        ]
        yield from replace(table, lines=marked).parts()


def _loadings(study: Study) -> Table:
    """All variables; the first column is that of their names."""
    lines = [(name, view, *values) for view, name, *values in study.sorted_loadings()]
    columns = ("variable", "view", "loading", "low", "high", "cross_loading")
    caption = "Correlations of the variables with the variates"
    return Table.of(caption, list(map(_heading, columns)), lines, spec=".3f")


def _from(study: Study) -> str:
    """The rows of intervals, if they are not all."""
    n = study.n_independent
    return "" if n == study.n_rows else f" from {n:,} rows"


def _heading(column: str) -> str:
    return _HEADINGS.get(column, column.replace("redundancy_", "redundancy of "))


def draw_correlations(study: Study, ax: Axes | None = None) -> Axes:
    """Correlations of each component in these rows, by chance, in the population and held out."""
    ax = tidy_axes(ax, grid="y")
    found, place = study.intervals, np.arange(1, len(study.held_out) + 1)
    ax.fill_between(place, 0, study.chance, color=GREY, alpha=0.25, label="95 % of shuffled pairs")
    lengths = np.maximum([found.estimate - found.low, found.high - found.estimate], 0)
    label = f"population, {found.level:.0%} interval{_from(study)}"
    ax.errorbar(place, found.estimate, lengths, fmt="o", capsize=3, color=color(0), label=label)
    shown = study.in_sample if study.tests_these_rows else study.test.correlations
    label = "these rows" if study.tests_these_rows else "rows that are shuffled"
    ax.plot(place, shown, "-", color=color(1), label=label)
    ax.plot(place, study.held_out, "x", color=color(2), label="held-out rows")
    lowest = min(0, 1.1 * study.held_out.min())
    ax.set(xlabel="Component", ylabel="Correlation", ylim=(lowest, 1.02))
    ax.set_xticks(place)
    ax.legend(frameon=False)
    return ax


def draw_loadings(study: Study, view: str, ax: Axes | None = None) -> Axes:
    """The largest loadings of a view on component 1, as bars."""
    ax = tidy_axes(ax, grid="x")
    lines = [line for line in study.sorted_loadings() if line[0] == view][:_MOST_LOADINGS]
    place = np.arange(len(lines))[::-1]
    own, low, high, cross = np.array([line[2:] for line in lines]).T
    ax.barh(place, own, color=color(0), height=0.6, label="loading")
    if study.intervals.estimate[0]:
        label = f"{study.intervals.level:.0%} interval{_from(study)}"
        ax.hlines(place, low, high, color=GREY, label=label)
    ax.plot(cross, place, "o", color=color(1), label="cross-loading")
    ax.set_yticks(place, [_literal(line[1]) for line in lines])
    ax.set(xlabel="Loading, component 1", xlim=(-1, 1))
    ax.legend(frameon=False)
    return ax


def _literal(name: str) -> str:
    """A name as it is, in one line, without the middle of a long one: dollar signs are no math."""
    if len(name) > _LONGEST_NAME:
        name = f"{name[: _LONGEST_NAME - 13]}…{name[-12:]}"
    return printable(name).replace("$", r"\$")


def _illustrations(study: Study) -> Iterator[Illustration]:
    rows = f"{study.n_rows:,} rows"
    yield Illustration(
        "Correlations",
        [Picture.of(partial(draw_correlations, study), 4.1, 3.0)],
        "A component is real if its correlation (line) lies above those of shuffled pairs. "
        "Correlations of fitted rows are too large; the interval is of the population.",
        f"{rows}, and {len(study.test.permuted):,} permutations of them; held-out rows were left "
        "out of every step",
    )
    for view, names in study.variables.items():
        n_shown = min(len(names), _MOST_LOADINGS)
        few = f"; the {n_shown} largest of {len(names)} loadings" * (n_shown < len(names))
        yield Illustration(
            f"Loadings of {view}",
            [Picture.of(partial(draw_loadings, study, view), 4.1, 0.7 + 0.2 * n_shown)],
            "Correlations between the variables and the variate of their own view (bars) or of the "
            "other view (circles). Do not interpret a component that is not significant.",
            f"{rows}{few}",
        )


def _facts(command: str) -> Iterator[tuple[str, str]]:
    """Names and values of settings."""
    if command:
        yield "command", command
    libraries = ", ".join(f"{name} {version(name)}" for name in ("mvcca", "numpy", "scikit-learn"))
    yield "versions", f"Python {platform.python_version()}, {libraries}"
    yield "date", datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
