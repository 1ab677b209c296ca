"""Colours and axes of all plots, also of results of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from mvcca.machine.optional import optional
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
GREY = "#777777"
FAINT = "#dddddd"


def tidy_axes(
    ax: Any = None,
    *,
    grid: Literal["x", "y", "both"] | None = None,
    layout: Literal["constrained", "compressed"] = "constrained",
) -> Axes:
    """Axes without a box and with faint grid lines.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Axes to style; by default new axes.
    grid : {"x", "y", "both"}, optional
        Direction of grid lines.
    layout : {"constrained", "compressed"}, default="constrained"
        Layout of a new figure. Axes with equal scales need "compressed"; "constrained" cuts off
        what is beside them.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    plt = optional("matplotlib.pyplot", "Drawing", "mvcca[plot]")
    if ax is None:
        _, ax = plt.subplots(layout=layout)
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
    return ax


def color(number: int) -> str:
    """Colour of a line or group, in a cycle of ten."""
    return COLORS[number % len(COLORS)]


def literal(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as math, and control characters."""
    return printable(text).replace("$", r"\$")
