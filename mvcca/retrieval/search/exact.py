"""Exact search: the k best gallery rows of prepared queries, one block of queries at a time.

BLAS multiplies a block with a tile of the gallery, and a compiled loop keeps the k best while the
tile is in the cache. Blocks may run in parallel; they share nothing but their input. A few queries
are multiplied one by one instead, since their time is that of reading the gallery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from mvcca import measures
from mvcca.blocks import beside
from mvcca.machine.config import block_slices, get_config
from mvcca.machine.threads import each, n_threads_of_blocks
from mvcca.retrieval.search.gallery import CHUNK_ROWS, Gallery, padded
from mvcca.retrieval.search.on_device import best_on_device, device_blocks

TILE_ROWS, TILE_COLUMNS = 1024, 2048  # 8 MiB of float32: in a shared cache, and large for BLAS
_FEW_QUERIES = 4  # columns that a BLAS product computes at once: fewer gain nothing from a block
_ROWS_SHARE = 64  # above a 64th of the gallery, whole rows are faster than merged tiles

# (gallery, queries, k, whether they are its rows, which of them) -> products, items
BestOfBlock = Callable[[Gallery, np.ndarray, int, bool, slice], tuple[np.ndarray, np.ndarray]]


def search(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and items of the k best, as `mvcca.retrieval.top_k` returns them."""
    if exclude_self:
        check_own_rows(gallery, queries)
    n_items = gallery.n_ranked - exclude_self
    checked_k(k, n_items)
    best: BestOfBlock
    if gallery.device is not None:
        best = partial(best_on_device, beside(gallery.rows.chunks[0], gallery.device))
        blocks = device_blocks(gallery, len(queries))
    elif len(gallery) <= TILE_COLUMNS or _ROWS_SHARE * k > n_items:  # nothing to merge, or all
        best, blocks = best_by_rows, list(row_blocks(gallery, queries, 8))
    elif 0 < len(queries) <= _FEW_QUERIES and gallery.largest_norm and not exclude_self:
        best, blocks = _best_of_few, [slice(0, len(queries))]
    else:
        best, blocks = _best_by_tiles, tile_rows(len(queries))
    if not blocks:
        return np.empty((0, k), gallery.dtype), np.empty((0, k), np.int64)
    find = partial(best, gallery, queries, k, exclude_self)
    in_parallel = gallery.device is None and len(blocks) > 1
    found = each(find, blocks) if in_parallel else [find(rows) for rows in blocks]
    products, items = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return gallery.scored(queries, products, items)  # of all blocks: CSLS searches its bank here


def checked_k(k: int, n_items: int) -> None:
    """Raise ValueError unless k is an integer from 1 to `n_items`."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= n_items:
        raise ValueError(
            f"Expected k to be an integer from 1 to {n_items}, the number of items to choose from; "
            f"got {k!r}."
        )


def check_own_rows(gallery: Gallery, queries: np.ndarray) -> None:
    """Raise ValueError unless the queries can be the rows of the gallery, which has others."""
    if len(queries) != len(gallery):
        raise ValueError(
            "exclude_self needs queries that are the gallery's rows, in the same order; got "
            f"{len(queries)} queries and {len(gallery)} gallery rows."
        )
    if len(gallery) == 1:
        raise ValueError("The gallery holds only the query itself, which is excluded.")


def row_blocks(gallery: Gallery, queries: np.ndarray, n_copies: int) -> Iterator[slice]:
    """Blocks of queries for which `n_copies` matrices of scores of the whole gallery fit."""
    return block_slices(len(queries), n_copies * gallery.dtype.itemsize * len(gallery))


def tile_rows(n_queries: int) -> list[slice]:
    """Blocks of queries for tiles: several for each thread, but few, as each reads the gallery."""
    n_threads = n_threads_of_blocks()
    size = TILE_ROWS if n_threads == 1 else max(256, -(-n_queries // (4 * n_threads)))
    size = get_config().block_rows or min(TILE_ROWS, size)
    return [slice(i, min(i + size, n_queries)) for i in range(0, n_queries, size)]


def _best_by_tiles(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Products and items of the k best of some queries."""
    from mvcca.retrieval.search.merge_tile import merge_tile

    block, dtype, n_queries = padded(queries[rows]), gallery.dtype, rows.stop - rows.start
    precision = np.finfo(dtype)
    buffer = np.empty(len(block) * TILE_COLUMNS, dtype=dtype)
    scores = np.full((n_queries, k), -np.inf, dtype=dtype)
    items = np.full((n_queries, k), len(gallery), dtype=np.int64)
    for first, columns, n_columns in gallery.tiles(TILE_COLUMNS):
        tile = buffer[: len(block) * len(columns)].reshape(len(block), len(columns))
        np.matmul(block, columns.T, out=tile)
        tile = gallery.similarity.of_products(tile, block, columns)[:n_queries]
        tile[:, n_columns:] = -np.inf  # padding
        tile[:, gallery.removed.within(first, first + n_columns)] = -np.inf
        if exclude_self:
            own = np.arange(max(rows.start, first), min(rows.stop, first + n_columns))
            tile[own - rows.start, own - first] = -np.inf
        if first == 0 and k <= n_columns:  # only larger scores can be among the k best
            kth = np.partition(tile, -k, axis=1)[:, -k]
            scores[:] = (kth - np.abs(kth) * precision.eps - precision.tiny)[:, None]
        merge_tile(tile, first, scores, items)
    return scores, items


def _best_of_few(
    gallery: Gallery, queries: np.ndarray, k: int, _: bool, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a few queries of another gallery.

    Products of single queries round differently. They say which items may be among the k best;
    the products of these are those of a block of queries.
    """
    block, width = queries[rows], queries.shape[1]
    precision = np.finfo(gallery.dtype)
    longest = gallery.similarity.longest(block) * gallery.largest_norm
    slack = 4 * width * precision.eps * longest  # twice the largest difference of two products
    bars = [precision.min] * len(block)  # above -inf, the score of removed rows
    found = [(np.empty(0, gallery.dtype), np.empty(0, np.int64))] * len(block)
    wide = TILE_COLUMNS if len(block) > 1 else CHUNK_ROWS  # several queries reread the cache
    for first, columns, n_columns in gallery.tiles(wide):
        tile = np.stack([columns @ query for query in block])
        tile = gallery.similarity.of_products(tile, block, columns)[:, :n_columns]
        tile[:, gallery.removed.within(first, first + n_columns)] = -np.inf
        for q, scores in enumerate(tile):
            new = np.flatnonzero(scores >= bars[q])
            if not len(new):
                continue
            scores, items = np.append(found[q][0], scores[new]), np.append(found[q][1], first + new)
            if len(scores) >= k:
                bars[q] = max(bars[q], np.partition(scores, -k)[-k] - slack)
            found[q] = scores[scores >= bars[q]], items[scores >= bars[q]]
    candidates = np.unique(np.concatenate([items for _, items in found]))
    products = _products_as_in_tiles(gallery, block, candidates)
    order = measures.descending_order(products, k)
    return np.take_along_axis(products, order, axis=1), candidates[order]


def _products_as_in_tiles(gallery: Gallery, queries: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Products with some items, rounded as those of tiles: BLAS rounds small products otherwise."""
    vectors = np.zeros(
        (max(len(items) + -len(items) % 16, TILE_COLUMNS), queries.shape[1]), queries.dtype
    )
    vectors[: len(items)] = gallery.rows.take(items)
    block = padded(queries)
    products = gallery.similarity.of_products(block @ vectors.T, block, vectors)
    return products[: len(queries), : len(items)]


def best_by_rows(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """The same for a gallery of one tile, or a k that is a large share of it."""
    products = gallery.products(queries[rows])
    if exclude_self:
        np.fill_diagonal(products[:, rows], -np.inf)
    if gallery.removed.n:
        products[:, gallery.removed.positions()] = -np.inf
    items = measures.descending_order(products, k)
    return np.take_along_axis(products, items, axis=1), items
