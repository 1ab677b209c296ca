"""Colours, markers and axes style of all plots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Ten colours for any colour vision: Petroff, "Accessible Color Sequences for Data Visualization",
# arXiv 2107.02270, with the second grey darkened for small dots.
COLORS = (
    *("#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6"),
    *("#a96b59", "#e76300", "#b9ac70", "#333333", "#92dadd"),
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
