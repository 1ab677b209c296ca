"""A matrix over the features of all views, such as a covariance, as blocks of pairs of views."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from mvcca.statistics._moments import column_slices


def blocks_between(
    matrix: np.ndarray, widths: Mapping[str, int]
) -> dict[tuple[str, str], np.ndarray]:
    """A_pq of every pair of views, p before q, out of the whole matrix; A_pp of a single view."""
    columns = column_slices(dict(widths))
    names = list(columns)
    pairs = list(combinations(names, 2)) or [(names[0], names[0])]
    return {(p, q): matrix[columns[p], columns[q]] for p, q in pairs}


def blocks_within(matrix: np.ndarray, widths: Mapping[str, int]) -> dict[str, np.ndarray]:
    """A_pp of every view, out of the whole matrix."""
    return {name: matrix[c, c] for name, c in column_slices(dict(widths)).items()}
