"""Hubness: how unevenly items appear among the nearest neighbours of queries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import to_array


def hubness(occurrences: ArrayLike) -> float:
    """Skewness of k-occurrences, E[(N_k - μ)³] / σ³ over the items of a gallery.

    N_k is the number of queries that have an item among their first k. It is near 0 if all items
    are found about equally often, and large if a few items (hubs) are found by many queries.

    Parameters
    ----------
    occurrences : array-like of int, shape (n_items,)
        N_k of each item.

    Returns
    -------
    float
        0 if all items are found equally often.

    Raises
    ------
    ValueError
        If there are no items, or the array has not one dimension.

    References
    ----------
    .. [1] Radovanović, Nanopoulos and Ivanović, "Hubs in Space: Popular Nearest Neighbors in
       High-Dimensional Data", Journal of Machine Learning Research 11, 2010, eq. (1).
    """
    counts = to_array(occurrences, np.float64)
    if counts.ndim != 1 or not len(counts):
        raise ValueError(f"Expected occurrences of one or more items, got shape {counts.shape}.")
    deviations = counts - counts.mean()
    variance = np.mean(deviations**2)
    return float(np.mean(deviations**3) / variance**1.5) if variance else 0.0
