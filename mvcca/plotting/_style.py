"""Colours, markers and axes style of all plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def tidy_axes(ax: Any = None, *, grid: str | None = None) -> Axes:
    """Axes without a box and with faint grid lines; new axes if None."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install mvcca[plot].") from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=FAINT, linewidth=0.8)
        ax.set_axisbelow(True)
    return ax


def literal(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as math."""
    return text.replace("$", r"\$")


def color(number: int) -> str:
    """The colour of a line or group, in a cycle of ten."""
    return COLORS[number % len(COLORS)]


def marker(number: int) -> str:
    """The marker of a view, in a cycle of ten."""
    return MARKERS[number % len(MARKERS)]
