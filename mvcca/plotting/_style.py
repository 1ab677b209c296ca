"""Colours, markers and axes style of all plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mvcca.machine.printable import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colours for any colour vision with a contrast of at least 3:1 on white. Based on Petroff,
# "Accessible Color Sequences for Data Visualization", arXiv 2107.02270; teal, ochre, grey and
# maroon replace four colours that are too light for lines.
COLORS = (
    *("#3f90da", "#e76300", "#832db6", "#286e74", "#bd1f01"),
    *("#a5904c", "#333333", "#a96b59", "#8a9693", "#6d1401"),
)
MARKERS = "o^sDvPX*<>"
GREY = "#777777"
FAINT = "#dddddd"
RIGHT, WRONG = "#1a7f5a", "#b83a08"  # frames and marks of relevant and irrelevant items


def tidy_axes(
    ax: Any = None,
    *,
    grid: str | None = None,
    layout: Literal["constrained", "compressed"] = "constrained",
) -> Axes:
    """Axes without a box and with faint grid lines; new axes if None.

    Axes with equal scales need the layout "compressed"; "constrained" cuts off what is beside them.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install mvcca[plot].") from error
    if ax is None:
        _, ax = plt.subplots(layout=layout)
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
    return ax


def literal(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as math, and control characters."""
    return printable(text).replace("$", r"\$")


def color(number: int) -> str:
    """The colour of a line or group, in a cycle of ten."""
    return COLORS[number % len(COLORS)]


def marker(number: int) -> str:
    """The marker of a view, in a cycle of ten."""
    return MARKERS[number % len(MARKERS)]


def styled(defaults: Mapping[str, Any], given: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Matplotlib keywords over defaults; `kind` is the artist that defines their aliases."""
    from matplotlib import cbook

    given = cbook.normalize_kwargs(given, kind)
    colors = {"c", "color", "facecolor"}  # one of these replaces any other
    kept = {k: v for k, v in defaults.items() if not (k in colors and colors & given.keys())}
    return {**kept, **given}


def group_tones(groups: Sequence[str]) -> dict[str, str]:
    """Colours of the ten most frequent groups, in alphabetical order; others are faint."""
    names, counts = np.unique(groups, return_counts=True)
    frequent = set(names[np.argsort(-counts, kind="stable")][: len(COLORS)])
    numbers = iter(range(len(COLORS)))
    return {str(n): color(next(numbers)) if n in frequent else FAINT for n in names}


def check_component(component: int, n_components: int) -> None:
    """Raise if there is no such component."""
    if not 0 <= component < n_components:
        raise ValueError(f"Components are numbered from 0 to {n_components - 1}, got {component}.")
