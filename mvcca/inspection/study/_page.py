"""Tables of the page of a study, and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.inspection._intervals import CorrelationIntervals
from mvcca.machine.axes import GREY, color, literal, tidy_axes
from mvcca.machine.printable import in_one_line
from mvcca.machine.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST_LINE = 36  # characters of a name, in the figure
_HEADINGS = {
    "in_sample": "these rows",
    "tested": "rows that are shuffled",
    "chance_95": "95 % of shuffled pairs",
    "p_value": "p-value",
    "held_out": "held out",
    "cross_loading": "cross-loading",
}


def component_tables(
    header: Sequence[str],
    lines: list[tuple[Any, ...]],
    significant: np.ndarray,
    level: float,
) -> list[Table]:
    """Correlations and redundancy of all components; those that are significant are shaded."""
    shares = [j for j, name in enumerate(header) if name.startswith("redundancy_")]
    found = [j for j in range(len(header)) if j not in shares and header[j] != "note"]
    tables = []
    for caption, columns, note in (
        (
            f"Correlations by component; shaded: p < 0.05, corrected for {len(lines)} tests",
            found,
            f"Low and high: {level:.0%} interval of the population.",
        ),
        (
            "Redundancy by component",
            [0, *shares, header.index("note")],
            "Redundancy: share of a view's variance that the other view's variates explain.",
        ),
    ):
        names = [_heading(header[j]) for j in columns]
        values = [[line[j] for j in columns] for line in lines]
        table = Table.of(caption, names, values, [note], spec=".3f", shown=("page",))
        marked = [
            replace(line, kind="best" if is_significant else "")
            for line, is_significant in zip(table.lines, significant, strict=True)
        ]
        tables.append(replace(table, lines=marked))
    return tables


def stability_table(stability: Mapping[str, np.ndarray], components: Sequence[int]) -> Table:
    """How much loadings of two halves of the rows agree."""
    lines = [
        (name, i, float(np.median(found[:, i - 1])), *map(float, np.sort(found[:, i - 1])[[0, -1]]))
        for name, found in stability.items()
        for i in components
        if i <= found.shape[1]
    ]
    note = "Absolute correlation, over variables, of the loadings that random halves of rows give."
    columns = ("view", "component", "median", "least", "most")
    return Table.of("Stability of loadings", columns, lines, [note], spec=".2f", shown=("page",))


def loading_table(
    loadings: Iterator[tuple[Any, ...]], component: int, notes: Sequence[str]
) -> Table:
    """All variables; the first column is that of their names."""
    lines = [(name, view, *values) for view, name, *values in loadings]
    columns = ("variable", "view", "loading", "low", "high", "p_value", "cross_loading")
    caption = (
        f"All loadings of component {component}: correlations of the variables with the variates"
    )
    names = list(map(_heading, columns))
    return Table.of(caption, names, lines, notes, spec=".3f", shown=("folded",))


def _heading(column: str) -> str:
    return _HEADINGS.get(column, column.replace("redundancy_", "redundancy of "))


def draw_correlations(
    found: CorrelationIntervals,
    chance: np.ndarray,
    shown: np.ndarray,
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """Correlations of each component by chance, in the population, held out, and those `shown`.

    `label` names these.
    """
    ax = tidy_axes(ax, grid="y")
    place = np.arange(1, len(found.held_out) + 1)
    ax.fill_between(place, 0, chance, color=GREY, alpha=0.25, label="95 % of shuffled pairs")
    lengths = np.maximum([found.estimate - found.low, found.high - found.estimate], 0)
    of_population = f"population, {found.level:.0%} interval"
    ax.errorbar(
        place, found.estimate, lengths, fmt="o", capsize=3, color=color(0), label=of_population
    )
    ax.plot(place, shown, "-", color=color(1), label=label)
    ax.plot(place, found.held_out, "x", color=color(2), label="held-out rows")
    least = np.nanmin(found.held_out)
    lowest = least - 0.05 if least < 0 else 0  # a marker on the axis would be cut
    ax.set(xlabel="Component", ylabel="Correlation", ylim=(lowest, 1.02))
    ax.set_xticks(place)
    ax.legend(frameon=False)
    return ax


def draw_loadings(
    lines: list[tuple[Any, ...]], component: int, interval: str, ax: Axes | None = None
) -> Axes:
    """The loadings of some variables on a component, as bars.

    `interval` names their intervals, which are left out without a name.
    """
    ax = tidy_axes(ax, grid="x")
    place = np.arange(len(lines))[::-1]
    own, low, high, _, cross = np.array([line[2:] for line in lines]).T
    ax.barh(place, own, color=color(0), height=0.6, label="loading")
    if interval:
        ax.hlines(place, low, high, color=GREY, label=interval)
    ax.plot(cross, place, "o", color=color(1), label="cross-loading")
    ax.set_yticks(place, [_short(line[1]) for line in lines])
    ax.set(xlabel=f"Loading, component {component}", xlim=(-1, 1))
    ax.legend(frameon=False)
    return ax


def most_lines(lines: list[tuple[Any, ...]]) -> int:
    """Number of lines of the name that takes most of them."""
    return max(_short(line[1]).count("\n") + 1 for line in lines)


def _short(name: str) -> str:
    """A name as it is, a long one in several lines of whole words: dollar signs are no math."""
    words = wrap(in_one_line(name).replace("_", "_ "), _LONGEST_LINE)
    return "\n".join(literal(line.replace("_ ", "_")) for line in words) or literal(name)


def draw_needed(
    curve: tuple[np.ndarray, np.ndarray], here: tuple[float, float], ax: Axes | None = None
) -> Axes:
    """Correlations and the rows that they need, and the rows and the estimate of this study."""
    ax = tidy_axes(ax, grid="y")
    ax.plot(*curve, color=color(0), label="rows needed (90 % power)")
    ax.plot(*here, "o", color=color(1), label="this study")
    ax.set(xlabel="Correlation in the population", ylabel="Independent rows", yscale="log")
    ax.legend(frameon=False)
    return ax
