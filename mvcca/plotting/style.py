"""Colours, markers and axes of all plots, for displays and for figures of several of them."""

from __future__ import annotations

from mvcca.machine.axes import COLORS, FAINT, GREY, color, tidy_axes
from mvcca.machine.printable import printable

__all__ = [
    "COLORS",
    "FAINT",
    "GREY",
    "MARKERS",
    "RIGHT",
    "WRONG",
    "color",
    "literal",
    "marker",
    "tidy_axes",
]

MARKERS = "o^sDvPX*<>"
RIGHT, WRONG = "#1a7f5a", "#b83a08"  # frames and marks of relevant and irrelevant items


def literal(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as math, and control characters."""
    return printable(text).replace("$", r"\$")


def marker(number: int) -> str:
    """Marker of a view, in a cycle of ten."""
    return MARKERS[number % len(MARKERS)]
