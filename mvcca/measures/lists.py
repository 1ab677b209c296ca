"""Formulas of ranked lists: what every query's list is worth, once it is sorted and cut.

`mvcca.measures` sorts and checks matrices of scores; `mvcca.retrieval` ranks galleries block by
block. Both take their values from here.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mvcca.blocks import as_block
from mvcca.measures.arrays import count_true, dense, one_of

Normalizer = Literal["relevant", "cutoff", "hits", "min"]
NoRelevant = Literal["zero", "skip", "nan"]
Ties = Literal["optimistic", "average", "pessimistic"]

_TIES = ("optimistic", "average", "pessimistic")


def average_precision(
    hits: np.ndarray,
    n_relevant: np.ndarray,
    k: int,
    normalizer: Normalizer = "relevant",
    no_relevant: NoRelevant = "zero",
) -> np.ndarray:
    """`mvcca.measures.average_precision` of lists.

    Parameters
    ----------
    hits : ndarray of bool, shape (n_queries, min(k, n_gallery))
        Relevance at each position.
    n_relevant : ndarray of int, shape (n_queries,)
        Number of relevant items in the whole gallery.
    k : int
        Cut-off K.
    normalizer, no_relevant
        As in `mvcca.measures.average_precision`.

    Returns
    -------
    ndarray, shape (n_queries,)
        Shorter if queries were skipped.
    """
    n_hits = np.cumsum(hits, axis=1, dtype=np.int32)
    divisor = {
        "relevant": n_relevant,
        "cutoff": np.full(len(hits), k),
        "hits": n_hits[:, -1],
        "min": np.minimum(k, n_relevant),
    }[one_of(normalizer, ("relevant", "cutoff", "hits", "min"), "normalizer")]
    precision = n_hits / np.arange(1, hits.shape[1] + 1)
    total = np.einsum("ij,ij->i", precision, hits)
    values = np.divide(total, divisor, out=np.zeros(len(hits)), where=divisor > 0)
    return _without_relevant(values, n_relevant > 0, no_relevant)


def ndcg(gains: np.ndarray, best: np.ndarray, no_relevant: NoRelevant = "zero") -> np.ndarray:
    """`mvcca.measures.ndcg` of lists.

    Parameters
    ----------
    gains : ndarray, shape (n_queries, k)
        Gain at each position.
    best : ndarray, shape (n_queries, k)
        The k largest gains in the gallery, in descending order.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        As in `mvcca.measures.ndcg`.

    Returns
    -------
    ndarray, shape (n_queries,)
        Shorter if queries were skipped.
    """
    discount = 1 / np.log2(np.arange(2, gains.shape[1] + 2))
    ideal = best @ discount
    values = np.divide(gains @ discount, ideal, out=np.zeros(len(gains)), where=ideal > 0)
    return _without_relevant(values, ideal > 0, no_relevant)


def weighted_average_precision(
    h: np.ndarray, precision: Literal["binary", "weighted"] = "binary"
) -> np.ndarray:
    """`mvcca.measures.weighted_average_precision` of lists.

    Parameters
    ----------
    h : ndarray, shape (n_queries, k)
        Label similarity at each position.
    precision : {"binary", "weighted"}, default="binary"
        Definition of P(j).

    Returns
    -------
    ndarray, shape (n_queries,)
        Values.
    """
    if one_of(precision, ("binary", "weighted"), "precision") == "weighted":
        h = h * np.cumsum(h, axis=1) / np.arange(1, h.shape[1] + 1)
    return h.mean(axis=1)


def relevant_ranks(scores: np.ndarray, relevant: Any, ties: Ties) -> np.ndarray:
    """`mvcca.measures.relevant_ranks` of scores, which need not be sorted.

    Parameters
    ----------
    scores : ndarray of float, shape (n_queries, n_gallery)
        Finite; larger is better.
    relevant : ndarray or csr_array of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    ties : {"average", "optimistic", "pessimistic"}
        As in `mvcca.measures.relevant_ranks`.

    Returns
    -------
    ndarray of float, shape (n_queries,)
        Infinite for a query without a relevant item.
    """
    one_of(ties, _TIES, "ties")
    best = as_block(relevant).largest_where_true(scores)[:, None]
    n_tied = count_true(scores == best)
    n_own = np.minimum(n_tied, 1)  # relevant items among them
    several = np.flatnonzero(n_tied > 1)
    n_own[several] = count_true(dense(relevant[several]) & (scores[several] == best[several]))
    share = {"optimistic": 0.0, "average": 1 / (1 + n_own), "pessimistic": 1.0}[ties]
    ranks = 1 + count_true(scores > best) + share * (n_tied - n_own)
    ranks[np.isneginf(best[:, 0])] = np.inf
    return ranks


def _without_relevant(
    values: np.ndarray, has_relevant: np.ndarray, no_relevant: NoRelevant
) -> np.ndarray:
    """Values of all queries, with those of queries without relevant items as asked for."""
    if one_of(no_relevant, ("zero", "skip", "nan"), "no_relevant") == "skip":
        return values[has_relevant]
    if no_relevant == "nan":
        values[~has_relevant] = np.nan
    return values
