"""Ranked lists of items that are relevant or not: average precision and its variants, P@k, curves
over recall, ranks of the first relevant item and their summaries R@k, MR and MRR.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import to_array
from mvcca.machine.warnings import warn
from mvcca.measures import lists
from mvcca.measures.arrays import (
    RelevanceLike,
    checked_matrix,
    checked_relevance,
    count_true,
    dense,
    positive,
    ranked,
)
from mvcca.measures.lists import NoRelevant, Normalizer, Ties


def average_precision(
    scores: ArrayLike,
    relevance: RelevanceLike,
    k: int | None = None,
    normalizer: Normalizer = "relevant",
    no_relevant: NoRelevant = "zero",
) -> np.ndarray:
    """Average precision of every query's ranked list; its mean over queries is mAP.

    With rel_j the relevance at position j, P(j) the share of relevant items among the first j, R
    the number of relevant items in the gallery and H that among the first K,

        AP = (1 / N) Σ_{j ≤ K} P(j) rel_j.

    The literature divides by four different N:

    =============  ==============  =====================================================
    `normalizer`   N               reported by
    =============  ==============  =====================================================
    ``relevant``   R               the textbook; with K = None in most comparisons
    ``cutoff``     K               eq. (6) of [1]_, with K = 50
    ``hits``       H               code of adversarial cross-modal retrieval, with K = 50
    ``min``        min(K, R)       TREC and search competitions
    =============  ==============  =====================================================

    Lists are ordered by descending score, equal scores by index.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    k : int or None, default=None
        Cut-off K; None ranks the whole gallery.
    normalizer : {"relevant", "cutoff", "hits", "min"}, default="relevant"
        N above. With ``hits`` a list without hits has AP 0.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        AP of a query without any relevant item in the gallery; "skip" leaves it out.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1; shorter if queries were skipped.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or an option is unknown.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    scores = checked_matrix(scores)
    relevant = dense(checked_relevance(relevance, scores.shape))
    hits = ranked(relevant, scores, k)
    length = scores.shape[1] if k is None else positive(k)
    return lists.average_precision(hits, count_true(relevant), length, normalizer, no_relevant)


def precision_at_k(scores: ArrayLike, relevance: RelevanceLike, k: int = 50) -> np.ndarray:
    """Share of relevant items among the first k.

    Averaged over classes, with `class_means` of the texts as queries, this is what zero-shot
    retrieval reports as AP@50 [1]_.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    k : int, default=50
        Length of the list and divisor, whatever the number of relevant items.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1.

    Warns
    -----
    UserWarning
        If a query has fewer than k relevant items, so that it cannot reach 1.

    Raises
    ------
    ValueError
        If a score is not finite or shapes differ.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, section 5.
    """
    scores = checked_matrix(scores)
    relevant = dense(checked_relevance(relevance, scores.shape))
    short = int((count_true(relevant) < positive(k)).sum())
    if short:
        warn(
            f"{short} of {len(scores)} queries have fewer than {k} relevant items and cannot "
            f"reach a precision of 1 at {k}."
        )
    first = ranked(relevant, scores, k)
    return count_true(first) / k


def precision_recall_curve(
    scores: ArrayLike, relevance: RelevanceLike, recall: ArrayLike | None = None
) -> np.ndarray:
    """Interpolated precision of every query's ranked list at given levels of recall.

    P(r) = max of P(j) over the positions j at which at least a share r of the relevant items has
    been seen. Average over queries for a curve.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    recall : array-like, shape (n_levels,), optional
        Levels in [0, 1]; by default 0, 0.1, ..., 1.

    Returns
    -------
    ndarray, shape (n_queries, n_levels)
        Precision; 0 for a query without a relevant item.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or a level is outside [0, 1].
    """
    levels = np.linspace(0, 1, 11) if recall is None else to_array(recall, float)
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"recall must be levels between 0 and 1, got {recall!r}.")
    scores = checked_matrix(scores)
    relevant = dense(checked_relevance(relevance, scores.shape))
    hits = ranked(relevant, scores)
    n_hits = np.cumsum(hits, axis=1)
    precision = n_hits / np.arange(1, hits.shape[1] + 1)
    # Interpolated: the largest precision at this or any higher recall.
    best_from = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    # 1e-9: 0.3 of 10 relevant items are 3, not 4.
    wanted = np.ceil(np.outer(n_hits[:, -1], levels) - 1e-9)
    first = np.stack([np.argmax(n_hits >= column[:, None], axis=1) for column in wanted.T], axis=1)
    return np.take_along_axis(best_from, first, axis=1)


def relevant_ranks(
    scores: ArrayLike, relevance: RelevanceLike, ties: Ties = "average"
) -> np.ndarray:
    """Rank of each query's best relevant item.

    It is 1 + b + τ t for b items with a larger score and t items with the same score that are not
    relevant, where τ = 0 (optimistic), 1 (pessimistic) or 1 / (m + 1) (average), the mean over all
    orders of these t items and the m relevant ones of this score. With "average", a model that maps
    everything to one point gets the rank (n + 1) / (m + 1) of chance; with "optimistic" it looks
    perfect.

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
    scores = checked_matrix(scores)
    return lists.relevant_ranks(scores, checked_relevance(relevance, scores.shape), ties)


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
    values = to_array(ranks, np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Expected ranks of at least one query, got shape {values.shape}.")
    if not (values >= 1).all():  # NaN is caught here too
        raise ValueError("Expected ranks of 1 and above, got smaller ones or NaN.")
    return values
