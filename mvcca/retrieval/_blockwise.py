"""Exact ranking of a prepared gallery, a block of queries at a time.

The product of a block with the gallery is left to BLAS; what follows keeps the best k of a tile
while it is in the cache, or passes whole rows of scores to `mvcca.measures`. Blocks may run side by
side and never share anything but their input.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca import measures
from mvcca._threads import each
from mvcca.config import block_slices, get_config
from mvcca.measures import NoRelevant, Normalizer, Ties
from mvcca.retrieval._on_device import lists_on_device
from mvcca.retrieval.relevance import Relevance
from mvcca.retrieval.similarity import Gallery, padded

TILE_ROWS, TILE_COLUMNS = 1024, 2048  # 8 MiB of float32: in a shared cache, and large for BLAS
_ROWS_SHARE = 64  # above a 64th of the gallery, whole rows are faster than merged tiles


def search(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`top_k` for prepared queries."""
    n_items = _n_items(queries, gallery, exclude_self)
    checked_k(k, n_items)
    if gallery.place is not None:
        return _search_on_device(gallery, queries, k, exclude_self)
    if _ROWS_SHARE * k > n_items:
        blocks, best = [*row_blocks(queries, gallery, 8)], _best_of_rows
    else:
        blocks, best = tile_rows(len(queries)), _best_by_tiles

    def find(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        products, items = best(gallery, queries, rows, k, exclude_self)
        return _ordered(gallery.reported(queries[rows], products, items), items)

    return _joined(each(find, blocks), gallery, k)


def _search_on_device(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for rows, scores, items in lists_on_device(gallery, queries, k, exclude_self):
        if gallery.similarity == "euclidean":  # whose products only order, up to rounding
            scores = gallery.reported(queries[rows], scores, items)
            scores, items = _ordered(scores, items)
        found.append((scores, items))
    return _joined(found, gallery, k)


def _joined(
    found: list[tuple[np.ndarray, np.ndarray]], gallery: Gallery, k: int
) -> tuple[np.ndarray, np.ndarray]:
    if not found:
        return np.empty((0, k), gallery.dtype), np.empty((0, k), np.int64)
    scores, items = zip(*found, strict=True)
    return np.concatenate(scores), np.concatenate(items)


def _ordered(scores: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists by falling score, equals by index."""
    order = np.lexsort((items, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(items, order, 1)


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
        scores, relevant = _whole_rows(gallery, queries, relevance, rows, exclude_self)
        return measures.relevant_ranks(scores, relevant, ties)

    return np.concatenate([np.empty(0), *each(rank, row_blocks(queries, gallery, 3))])


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
        scores, relevant = _whole_rows(gallery, queries, relevance, rows, exclude_self)
        return measures.average_precision(scores, relevant, None, normalizer, no_relevant)

    return np.concatenate([np.empty(0), *each(precise, row_blocks(queries, gallery, 8))])


def hits_in(
    gallery: Gallery, queries: np.ndarray, relevance: Relevance, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Relevance of each query's first k items, and how many are relevant in the whole gallery."""
    n_items = _n_items(queries, gallery, exclude_self)
    _, items = search(gallery, queries, min(k, n_items), exclude_self)

    def judge(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        if not exclude_self:
            return relevance.of_items(rows, items[rows])
        own = np.arange(rows.start, rows.stop)[:, None]
        hits, n_relevant = relevance.of_items(rows, np.hstack([items[rows], own]))
        return hits[:, :-1], n_relevant - hits[:, -1]

    hits = np.empty(items.shape, dtype=bool)
    n_relevant = np.empty(len(items), dtype=np.intp)
    blocks = tile_rows(len(items))
    for rows, judged in zip(blocks, each(judge, blocks), strict=True):
        hits[rows], n_relevant[rows] = judged
    return hits, n_relevant


def _best_by_tiles(
    gallery: Gallery, queries: np.ndarray, rows: slice, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Products and items of the k best of a block of queries."""
    from mvcca.retrieval._kernels import merge_tile

    block, dtype = padded(queries[rows]), gallery.dtype
    precision = np.finfo(dtype)
    n_rows = rows.stop - rows.start
    buffer = np.empty(len(block) * TILE_COLUMNS, dtype=dtype)
    scores = np.full((n_rows, k), -np.inf, dtype=dtype)
    items = np.full((n_rows, k), len(gallery), dtype=np.int64)
    for first, columns, n_columns in gallery.tiles(TILE_COLUMNS):
        tile = buffer[: len(block) * len(columns)].reshape(len(block), len(columns))
        np.matmul(block, columns.T, out=tile)
        tile = tile[:n_rows]
        tile[:, n_columns:] = -np.inf  # padding
        if exclude_self:
            own = np.arange(max(rows.start, first), min(rows.stop, first + n_columns))
            tile[own - rows.start, own - first] = -np.inf
        if first == 0 and k <= n_columns:  # only what is above this can be among the best
            kth = np.partition(tile, -k, axis=1)[:, -k]
            scores[:] = (kth - np.abs(kth) * precision.eps - precision.tiny)[:, None]
        merge_tile(tile, first, scores, items)
    return scores, items


def _best_of_rows(
    gallery: Gallery, queries: np.ndarray, rows: slice, k: int, exclude_self: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a k that is no small share of the gallery."""
    products = gallery.products(queries[rows])
    if exclude_self:
        own = np.arange(rows.start, rows.stop)
        products[own - rows.start, own] = -np.inf
    items = measures.descending_order(products, k)
    return np.take_along_axis(products, items, axis=1), items


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


def _whole_rows(
    gallery: Gallery, queries: np.ndarray, relevance: Relevance, rows: slice, exclude_self: bool
) -> tuple[np.ndarray, Any]:
    """Scores and relevance of all items for a block of queries."""
    scores, relevant = gallery.products(queries[rows]), relevance.of(rows)
    if not exclude_self:
        return scores, relevant
    return _without_self(scores, rows), _without_self(relevant, rows)


def _without_self(matrix: Any, rows: slice) -> np.ndarray:
    """Rows of a query-by-gallery matrix without each query's own column."""
    matrix = matrix.toarray() if issparse(matrix) else matrix
    others = np.arange(rows.start, rows.stop)[:, None] != np.arange(matrix.shape[1])
    return matrix[others].reshape(len(matrix), -1)


def row_blocks(queries: np.ndarray, gallery: Gallery, n_copies: int) -> Iterator[slice]:
    """Blocks of queries whose whole rows of scores fit in memory some times over."""
    return block_slices(len(queries), n_copies * gallery.dtype.itemsize * len(gallery))


def tile_rows(n_queries: int) -> list[slice]:
    """Blocks of queries for tiles: few enough rows that several threads have work."""
    size = get_config().block_rows or min(TILE_ROWS, max(64, -(-n_queries // 16)))
    return [slice(i, min(i + size, n_queries)) for i in range(0, n_queries, size)]
