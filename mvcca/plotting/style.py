"""Colours, markers and axes of all plots, for displays and for figures of several of them."""

from __future__ import annotations

from mvcca.machine.axes import COLORS, FAINT, GREY, color, literal, tidy_axes

__all__ = [
    "COLORS",
    "DIVERGING",
    "FAINT",
    "GREY",
    "MARKERS",
    "NEGATIVE",
    "POSITIVE",
    "RIGHT",
    "SEQUENTIAL",
    "WRONG",
    "color",
    "literal",
    "marker",
    "tidy_axes",
]

MARKERS = "o^sDvPX*<>"
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"  # colour maps; the second for values around a middle
POSITIVE, NEGATIVE = "#b2182b", "#2166ac"  # lines, in tones of the second map
RIGHT, WRONG = "#1a7f5a", "#b83a08"  # frames and marks of relevant and irrelevant items


def marker(number: int) -> str:
    """Marker of a view, in a cycle of ten."""
    return MARKERS[number % len(MARKERS)]
