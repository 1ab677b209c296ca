"""What several displays draw: panels, titles, lines, points, bands and entries of legends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mvcca.plotting.style import FAINT, literal, tidy_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D


_PANEL = (4.2, 3.4)  # inches
_CHARACTER = 7  # points of the axes for a character of a title, since a layout may narrow the axes
_SHORTEST = 16  # characters of a line of a title


def panel_axes(
    ax: Any, n_panels: int, *, grid: Literal["x", "y", "both"] | None = None
) -> list[Axes]:
    """Axes for panels side by side: given ones, parts of a single one, or those of a new figure."""
    first = tidy_axes(None if ax is None else np.ravel(ax)[0])
    axes = [first] if ax is None else list(np.ravel(ax))
    if len(axes) == 1 < n_panels:
        place = first.get_subplotspec()
        if place is None:
            raise ValueError(
                f"Axes that hold {n_panels} panels must be a subplot, got axes that were placed by "
                f"hand. Pass ax=plt.subplots(1, {n_panels})[1]."
            )
        figure = first.figure
        if ax is None:
            figure.set_size_inches(_PANEL[0] * n_panels, _PANEL[1])
            first.remove()
        else:  # as in scikit-learn, these axes are the place of the panels
            first.set_axis_off()
        axes = [figure.add_subplot(part) for part in place.subgridspec(1, n_panels)]
    if len(axes) != n_panels:
        raise ValueError(
            f"Expected axes for {n_panels} panels, got {len(axes)}. Pass "
            f"ax=plt.subplots(1, {n_panels})[1]."
        )
    return [tidy_axes(one, grid=grid) for one in axes]


def draw_title(ax: Axes, text: str, beside: float = 0.0) -> None:
    """Say above the axes what they show, in lines that fit their width.

    `beside` is the width in points that a layout will take from the axes.
    """
    width = ax.get_window_extent().width * 72 / ax.figure.dpi - beside
    lines = fill(literal(text), max(_SHORTEST, int(width / _CHARACTER)))
    ax.set_title(lines, fontsize="medium")


def styled(defaults: Mapping[str, Any], given: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Matplotlib keywords over defaults; `kind` is the artist that defines their aliases."""
    from matplotlib import cbook

    given = cbook.normalize_kwargs(given, kind)
    colors = {"c", "color", "facecolor"}  # one of these replaces any other
    kept = {k: v for k, v in defaults.items() if not (k in colors and colors & given.keys())}
    return {**kept, **given}


def draw_line(ax: Axes, x: Any, y: Any, given: Mapping[str, Any], **style: Any) -> Line2D:
    """Draw a line with given keywords over a style."""
    from matplotlib.lines import Line2D

    (line,) = ax.plot(x, y, **styled(style, given, Line2D))
    return line


def draw_points(
    ax: Axes, points: np.ndarray, given: Mapping[str, Any], **style: Any
) -> PathCollection:
    """Draw points (n, 2) with given keywords over a style."""
    from matplotlib.collections import PathCollection

    return ax.scatter(*points.T, **styled({"linewidth": 0, **style}, given, PathCollection))


def point_size(n_points: int, largest: float = 40) -> float:
    """Size of points, the smaller the more there are."""
    return float(np.clip(300 * largest / max(n_points, 1), largest / 5, largest))


def draw_band(ax: Axes, x: np.ndarray, values: np.ndarray, tone: Any) -> None:
    """Draw a band from the smallest to the largest of several lines (n_lines, n_places)."""
    low, high = values.min(axis=0), values.max(axis=0)
    ax.fill_between(x, low, high, color=tone, alpha=0.15, linewidth=0)


def draw_origin(ax: Axes) -> None:
    """Draw faint lines through the origin."""
    ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)


def draw_plane(ax: Axes, components: Sequence[int]) -> None:
    """Name the axes after two components, which readers number from 1, and mark the origin."""
    first, second = (f"Component {component + 1}" for component in components)
    draw_origin(ax)
    ax.set(xlabel=first, ylabel=second)


def check_component(component: int, n_components: int) -> None:
    """Raise if there is no such component."""
    if not 0 <= component < n_components:
        raise ValueError(f"Components are numbered from 0 to {n_components - 1}, got {component}.")


def line_key(label: str, **style: Any) -> Line2D:
    """Legend entry of a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=literal(label), **style)


def point_key(label: str, marker: str, tone: str) -> Line2D:
    """Legend entry of points."""
    return line_key(label, linestyle="", marker=marker, color=tone)


def legend_beside(ax: Axes, handles: Any, **options: Any) -> None:
    """Draw a legend to the right of the axes."""
    ax.legend(
        handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, **options
    )
