"""Normalized discounted cumulative gain, for items of graded relevance."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mvcca.measures import lists
from mvcca.measures.arrays import checked_matrix, positive, ranked, same_shape
from mvcca.measures.lists import NoRelevant


def ndcg(
    scores: ArrayLike,
    gains: ArrayLike,
    k: int | None = None,
    no_relevant: NoRelevant = "zero",
) -> np.ndarray:
    """Normalized discounted cumulative gain of every query's ranked list [1]_.

    With g_j the gain of the item at position j, and g*_j the j-th largest gain in the gallery,

        nDCG = Σ_{j ≤ K} g_j / log2(j + 1)  /  Σ_{j ≤ K} g*_j / log2(j + 1).

    Lists are ordered by descending score, equal scores by index.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    gains : array-like, shape (n_queries, n_gallery)
        Gain of each item, 0 if it is not relevant. The exponential gains of web search are
        ``2.0**grades - 1``.
    k : int or None, default=None
        Cut-off K; None ranks the whole gallery.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Value of a query all of whose gains are 0; "skip" leaves it out.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1; shorter if queries were skipped.

    Raises
    ------
    ValueError
        If a score or a gain is not finite, a gain is negative, shapes differ, or an option is
        unknown.

    References
    ----------
    .. [1] Järvelin and Kekäläinen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM
       Transactions on Information Systems 20(4), 2002.
    """
    scores, gains = checked_matrix(scores), checked_gains(gains)
    same_shape(gains.shape, scores.shape, "gains")
    length = scores.shape[1] if k is None else min(positive(k), scores.shape[1])
    best = -np.sort(-gains, axis=1)[:, :length]
    return lists.ndcg(ranked(gains, scores, length), best, no_relevant)


def checked_gains(gains: ArrayLike) -> np.ndarray:
    """Gains as finite floats that are not negative."""
    gains = checked_matrix(gains, "gains").astype(np.float64, copy=False)
    if (gains < 0).any():
        raise ValueError(f"Expected gains of at least 0, got {gains.min():g}.")
    return gains
