"""Exact ranking of a gallery for many queries, a block of queries at a time.

The product of a block with the gallery is left to BLAS; what follows keeps the best k of a tile
while it is in the cache, or passes whole rows of scores to `mvcca.measures`. Metrics, relevance and
threads have files of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca import measures
from mvcca.config import block_slices, get_config
from mvcca.measures import NoRelevant, Normalizer, Ties
from mvcca.retrieval._threads import each
from mvcca.retrieval.metrics import Gallery, Metric
from mvcca.retrieval.relevance import Relevance, by_pairs

_TILE_ROWS, _TILE_COLUMNS = 1024, 2048  # 8 MiB of float32: in a shared cache, and large for BLAS
_SORTED_SHARE = 16  # above a 16th of the gallery, sorting is faster than merging


def top_k(
    queries: Any, gallery: Any, k: int, metric: Metric = "cosine", exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k best gallery rows of every query, exactly.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to search; their precision is the precision of the scores.
    k : int
        How many to find.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared. The cosine with a zero row is 0.
    exclude_self : bool, default=False
        Queries are the gallery's rows, and none finds itself.

    Returns
    -------
    scores : ndarray, shape (n_queries, k)
        Falling; distances of the metric "euclidean" are negative, so that larger is better.
    indices : ndarray of int, shape (n_queries, k)
        Rows of the gallery; of equal scores the lowest index comes first.

    Raises
    ------
    ValueError
        If k is larger than the number of gallery rows, the gallery is empty, shapes do not fit, or
        a value is not finite.
    """
    prepared = Gallery(gallery, metric)
    return search(prepared, prepared.queries(queries), k, exclude_self)


def ranks(
    queries: Any,
    gallery: Any,
    relevance: Relevance | None = None,
    *,
    metric: Metric = "cosine",
    ties: Ties = "average",
    exclude_self: bool = False,
) -> np.ndarray:
    """Rank of each query's best relevant gallery row; see `mvcca.measures.relevant_ranks`.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to rank.
    relevance : relevance, optional
        What `by_pairs` or `by_labels` gives; the default is `by_pairs`.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        What items with the same score cost.
    exclude_self : bool, default=False
        Queries are the gallery's rows, and none finds itself.

    Returns
    -------
    ndarray of float, shape (n_queries,)
        From 1; infinite for a query without a relevant row.

    Raises
    ------
    ValueError
        If shapes do not fit, the gallery is empty or a value is not finite.
    """
    prepared = Gallery(gallery, metric)
    queries = prepared.queries(queries)
    return ranks_in(prepared, queries, _checked(relevance, queries, prepared), ties, exclude_self)


def average_precision(
    queries: Any,
    gallery: Any,
    relevance: Relevance | None = None,
    *,
    k: int | None = None,
    normalizer: Normalizer = "relevant",
    no_relevant: NoRelevant = "zero",
    metric: Metric = "cosine",
    exclude_self: bool = False,
) -> np.ndarray:
    """Average precision of every query; see `mvcca.measures.average_precision`.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to rank.
    relevance : relevance, optional
        What `by_pairs` or `by_labels` gives; the default is `by_pairs`.
    k : int or None, default=None
        Cut-off; None ranks the whole gallery.
    normalizer : {"relevant", "cutoff", "hits", "min"}, default="relevant"
        What the sum of precisions is divided by.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Value of a query without a relevant row.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared.
    exclude_self : bool, default=False
        Queries are the gallery's rows, and none finds itself.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1; shorter if queries were skipped.

    Raises
    ------
    ValueError
        If shapes do not fit, the gallery is empty or a value is not finite.
    """
    prepared = Gallery(gallery, metric)
    queries = prepared.queries(queries)
    relevance = _checked(relevance, queries, prepared)
    if k is None:
        return average_precision_in(
            prepared, queries, relevance, normalizer, no_relevant, exclude_self
        )
    hits, n_relevant = hits_in(prepared, queries, relevance, k, exclude_self)
    return measures.average_precision_of_lists(hits, n_relevant, k, normalizer, no_relevant)


def score_blocks(
    queries: Any, gallery: Any, metric: Metric = "cosine"
) -> Iterator[tuple[slice, np.ndarray]]:
    """Scores of the whole gallery for one block of queries after the other.

    For measures that `ranks`, `average_precision` and `top_k` do not cover.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to rank.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared.

    Returns
    -------
    iterator of (slice, ndarray)
        The queries of a block, and their scores (n_rows, n_gallery): larger is better. For
        "euclidean" qᵀg - ‖g‖²/2, up to a shift of the origin, which orders each query's gallery as
        -‖q - g‖ does.

    Raises
    ------
    ValueError
        If shapes do not fit, the gallery is empty or a value is not finite.
    """
    prepared = Gallery(gallery, metric)
    queries = prepared.queries(queries)
    return ((rows, queries[rows] @ prepared.factor.T) for rows in _blocks(queries, prepared, 4))


# ---- the same on prepared queries and galleries -------------------------------------------------


def search(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`top_k` for prepared queries."""
    n_items = _n_items(queries, gallery, exclude_self)
    checked_k(k, n_items)
    if _SORTED_SHARE * k > n_items:
        blocks, best = [*_blocks(queries, gallery, 8)], _best_by_sorting
    else:
        blocks, best = _tile_rows(len(queries)), _best_by_tiles

    def find(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        products, items = best(gallery, queries, rows, k, exclude_self)
        scores = gallery.reported(queries[rows], products, items)
        order = np.lexsort((items, -scores), axis=1)
        return np.take_along_axis(scores, order, 1), np.take_along_axis(items, order, 1)

    found = each(find, blocks)
    if not found:
        return np.empty((0, k), gallery.factor.dtype), np.empty((0, k), np.int64)
    scores, items = zip(*found, strict=True)
    return np.concatenate(scores), np.concatenate(items)


def checked_k(k: int, n_items: int) -> None:
    """Refuse to find more than there is."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n_items:
        raise ValueError(
            f"Expected k to be an integer from 1 to {n_items}, the number of items to choose from; "
            f"got {k!r}."
        )


def ranks_in(
    gallery: Gallery, queries: np.ndarray, relevance: Relevance, ties: Ties, exclude_self: bool
) -> np.ndarray:
    """`ranks` for prepared queries."""
    _n_items(queries, gallery, exclude_self)

    def rank(rows: slice) -> np.ndarray:
        scores, relevant = queries[rows] @ gallery.factor.T, relevance.of(rows)
        if exclude_self:
            scores, relevant = _without_self(scores, rows), _without_self(relevant, rows)
        return measures.relevant_ranks(scores, relevant, ties)

    return np.concatenate([np.empty(0), *each(rank, _blocks(queries, gallery, 3))])


def average_precision_in(
    gallery: Gallery,
    queries: np.ndarray,
    relevance: Relevance,
    normalizer: Normalizer,
    no_relevant: NoRelevant,
    exclude_self: bool,
) -> np.ndarray:
    """`average_precision` of whole lists for prepared queries."""
    _n_items(queries, gallery, exclude_self)

    def precise(rows: slice) -> np.ndarray:
        scores, relevant = queries[rows] @ gallery.factor.T, relevance.of(rows)
        if exclude_self:
            scores, relevant = _without_self(scores, rows), _without_self(relevant, rows)
        return measures.average_precision(scores, relevant, None, normalizer, no_relevant)

    return np.concatenate([np.empty(0), *each(precise, _blocks(queries, gallery, 8))])


def hits_in(
    gallery: Gallery, queries: np.ndarray, relevance: Relevance, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance of each query's first k items, and how many are relevant in the whole gallery."""
    n_items = _n_items(queries, gallery, exclude_self)
    _, items = search(gallery, queries, min(k, n_items), exclude_self)
    hits, n_relevant = np.empty(items.shape, dtype=bool), np.empty(len(items), dtype=np.intp)
    for rows in _tile_rows(len(items)):
        hits[rows] = relevance.at(rows, items[rows])
        n_relevant[rows] = relevance.count(rows)
        if exclude_self:
            own = np.arange(rows.start, rows.stop)[:, None]
            n_relevant[rows] -= relevance.at(rows, own)[:, 0]
    return hits, n_relevant


def _best_by_tiles(
    gallery: Gallery, queries: np.ndarray, rows: slice, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Products and items of the k best of a block of queries."""
    from mvcca.retrieval._kernels import merge_tile

    block, factor = queries[rows], gallery.factor
    buffer = np.empty(len(block) * _TILE_COLUMNS, dtype=factor.dtype)
    scores = np.full((len(block), k), -np.inf, dtype=factor.dtype)
    items = np.full((len(block), k), len(factor), dtype=np.int64)
    for first in range(0, len(factor), _TILE_COLUMNS):
        columns = factor[first : first + _TILE_COLUMNS]
        tile = buffer[: len(block) * len(columns)].reshape(len(block), len(columns))
        np.matmul(block, columns.T, out=tile)
        if exclude_self:
            own = np.arange(max(rows.start, first), min(rows.stop, first + len(columns)))
            tile[own - rows.start, own - first] = -np.inf
        if first == 0 and k <= len(columns):  # start from just below the first tile's k-th best
            kth = np.partition(tile, -k, axis=1)[:, -k]
            scores[:] = np.nextafter(kth, -np.inf, dtype=factor.dtype)[:, None]
        merge_tile(tile, first, scores, items)
    return scores, items


def _best_by_sorting(
    gallery: Gallery, queries: np.ndarray, rows: slice, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a k that is no small share of the gallery."""
    products = queries[rows] @ gallery.factor.T
    if exclude_self:
        own = np.arange(rows.start, rows.stop)
        products[own - rows.start, own] = -np.inf
    items = measures.descending_order(products)[:, :k]
    return np.take_along_axis(products, items, axis=1), items


def _checked(relevance: Relevance | None, queries: np.ndarray, gallery: Gallery) -> Relevance:
    if relevance is None:
        return by_pairs(len(queries), len(gallery))
    if relevance.shape != (len(queries), len(gallery)):
        raise ValueError(
            f"Relevance is of {relevance.shape[0]} queries and {relevance.shape[1]} gallery rows, "
            f"got {len(queries)} and {len(gallery)}."
        )
    return relevance


def _n_items(queries: np.ndarray, gallery: Gallery, exclude_self: bool) -> int:
    """Number of rows that each query ranks."""
    if not exclude_self:
        return len(gallery)
    if len(queries) != len(gallery):
        raise ValueError(
            "exclude_self needs queries that are the gallery's rows, in the same order; got "
            f"{len(queries)} queries and {len(gallery)} gallery rows."
        )
    if len(gallery) == 1:
        raise ValueError("The gallery holds only the query itself, which is excluded.")
    return len(gallery) - 1


def _without_self(matrix: Any, rows: slice) -> np.ndarray:
    """Rows of a query-by-gallery matrix without each query's own column."""
    matrix = matrix.toarray() if issparse(matrix) else matrix
    others = np.arange(rows.start, rows.stop)[:, None] != np.arange(matrix.shape[1])
    return matrix[others].reshape(len(matrix), -1)


def _blocks(queries: np.ndarray, gallery: Gallery, n_copies: int) -> Iterator[slice]:
    """Blocks of queries whose whole rows of scores fit in memory some times over."""
    return block_slices(len(queries), n_copies * gallery.factor.itemsize * len(gallery))


def _tile_rows(n_queries: int) -> list[slice]:
    """Blocks of queries for tiles: few enough rows that several threads have work."""
    size = get_config().block_rows or min(_TILE_ROWS, max(64, -(-n_queries // 16)))
    return [slice(i, min(i + size, n_queries)) for i in range(0, n_queries, size)]
