"""Artists that several displays draw: lines, points, bands and entries of legends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mvcca.plotting.style import FAINT, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D


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


def draw_band(ax: Axes, x: np.ndarray, values: np.ndarray, tone: Any) -> None:
    """Draw a band from the smallest to the largest of several lines (n_lines, n_places)."""
    low, high = values.min(axis=0), values.max(axis=0)
    ax.fill_between(x, low, high, color=tone, alpha=0.15, linewidth=0)


def draw_origin(ax: Axes) -> None:
    """Draw faint lines through the origin."""
    ax.axhline(0, color=FAINT, linewidth=0.8, zorder=0)
    ax.axvline(0, color=FAINT, linewidth=0.8, zorder=0)


def component_title(component: int, *, of: str = "") -> str:
    """Title of a component, which readers number from 1."""
    return f"Component {component + 1}" + (f" of {literal(of)}" if of else "")


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
