"""Columns of views that stand side by side."""

from __future__ import annotations

from itertools import accumulate, pairwise


def column_slices(widths: dict[str, int]) -> dict[str, slice]:
    """The columns of each view in a matrix of all views."""
    edges = pairwise(accumulate(widths.values(), initial=0))
    return {name: slice(*edge) for name, edge in zip(widths, edges, strict=True)}
