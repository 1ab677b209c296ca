"""Ranks of the first relevant item, and their summaries: R@k, MR, MRR."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks import as_block
from mvcca.measures.checks import (
    RelevanceLike,
    checked_matrix,
    checked_relevance,
    count_true,
    one_of,
    positive,
)

Ties = Literal["optimistic", "average", "pessimistic"]

_TIES = {"optimistic": 0.0, "average": 0.5, "pessimistic": 1.0}


def relevant_ranks(
    scores: ArrayLike, relevance: RelevanceLike, ties: Ties = "average"
) -> np.ndarray:
    """Rank of each query's best relevant item.

    The rank of item i is 1 + #{j : S_j > S_i} + τ #{j ≠ i : S_j = S_i}, with τ = 0 (optimistic),
    1/2 (average) or 1 (pessimistic). With "average", a model that maps everything to one point gets
    the rank (n + 1) / 2 of chance; with "optimistic" it looks perfect.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        How equal scores count in ranks.

    Returns
    -------
    ndarray of float, shape (n_queries,)
        Smallest rank of a relevant item; infinite for a query without any.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or `ties` is unknown.
    """
    tau = _TIES[one_of(ties, _TIES, "ties")]
    scores = checked_matrix(scores)
    relevant = as_block(checked_relevance(relevance, scores.shape))
    best = relevant.largest_where_true(scores)[:, None]
    # The best relevant item is not tied with itself.
    ranks = 1 + count_true(scores > best) + tau * (count_true(scores == best) - 1)
    ranks[np.isneginf(best[:, 0])] = np.inf
    return ranks


def recall_at_k(ranks: ArrayLike, k: int) -> float:
    """R@k: share of queries with a relevant item among the first k.

    Parameters
    ----------
    ranks : array-like, shape (n_queries,)
        Ranks of the first relevant item, as `relevant_ranks` returns them. A rank of k + 1/2, which
        averaged ties produce, is a miss, and so is an infinite one.
    k : int
        Length of the list.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(np.mean(_checked_ranks(ranks) <= positive(k)))


def median_rank(ranks: ArrayLike) -> float:
    """MR: median of the ranks; the mean of the middle two of an even number of queries."""
    return float(np.median(_checked_ranks(ranks)))


def mean_rank(ranks: ArrayLike) -> float:
    """Mean of the ranks; infinite if a query has no relevant item."""
    return float(np.mean(_checked_ranks(ranks)))


def mean_reciprocal_rank(ranks: ArrayLike) -> float:
    """MRR: mean of 1 / rank; a query without a relevant item counts 0."""
    return float(np.mean(1 / _checked_ranks(ranks)))


def _checked_ranks(ranks: ArrayLike) -> np.ndarray:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Expected ranks of at least one query, got shape {values.shape}.")
    if not (values >= 1).all():  # NaN is caught here too
        raise ValueError("Expected ranks of 1 and above, got smaller ones or NaN.")
    return values
