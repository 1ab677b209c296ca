"""Exact search on a device: the gallery, the products and the choice of the k best stay there.

Rows are prepared in host memory, and the lists return to it. Equal scores are ordered by index here
too, which no library's selection of the k largest guarantees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import beside, namespace, to_host
from mvcca.machine.config import get_config
from mvcca.retrieval.search.gallery import Gallery, padded

_SCORE_BYTES = 256 * 2**20  # scores of one block


def device_blocks(gallery: Gallery, n_queries: int) -> list[slice]:
    """Blocks of queries whose scores of the whole gallery fit on the device."""
    [chunk] = gallery.rows.chunks
    size = _SCORE_BYTES // (chunk.itemsize * len(chunk))
    height = get_config().block_rows or max(64, size)
    return [slice(i, min(i + height, n_queries)) for i in range(0, n_queries, height)]


def best_on_device(
    moved: Any, gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool, rows: slice
) -> tuple[np.ndarray, np.ndarray]:
    """Products and items of the k best of some queries, by the gallery's chunk on its device."""
    xp = namespace(moved)
    block = padded(queries[rows])
    products = beside(block, moved) @ xp.matrix_transpose(moved)
    products = gallery.similarity.of_products(products, block, moved)
    products = products[: rows.stop - rows.start, : len(gallery)]
    if exclude_self:
        own = np.arange(rows.start, rows.stop)[:, None] == np.arange(len(gallery))
        lowest = xp.full_like(products, -xp.inf)
        products = xp.where(beside(own, moved), lowest, products)
    scores, items = best_of_rows(products, k)
    return to_host(scores), to_host(items).astype(np.int64)


def best_of_rows(scores: Any, k: int) -> tuple[Any, Any]:
    """The k best scores of every row and their positions: descending, equal scores by position."""
    xp, n = namespace(scores), scores.shape[1]
    if k == n:
        return _in_order(scores, _argsort(-scores))
    values, items = _largest(scores, k + 1)
    # If the best score left out equals the worst one kept, the choice between equals is arbitrary.
    open_rows = np.flatnonzero(to_host(values[:, k] == values[:, k - 1]))
    items = xp.sort(items[:, :k], axis=1)
    values, items = _in_order(_along(scores, items), _argsort(-_along(scores, items)), items)
    if not len(open_rows):
        return values, items
    tied = xp.take(scores, beside(open_rows, scores), axis=0)
    tied_values, tied_items = _in_order(tied, _argsort(-tied)[:, :k])
    place = np.arange(scores.shape[0])
    place[open_rows] = scores.shape[0] + np.arange(len(open_rows))
    place = beside(place, scores)
    return (
        xp.take(xp.concat([values, tied_values], axis=0), place, axis=0),
        xp.take(xp.concat([items, tied_items], axis=0), place, axis=0),
    )


def _largest(scores: Any, k: int) -> tuple[Any, Any]:
    """The k largest scores of every row, descending, and their positions; equals in any order."""
    xp = namespace(scores)
    if hasattr(xp, "topk"):
        values, items = xp.topk(scores, k, 1)
        return values, items
    if not hasattr(xp, "argpartition"):
        return _in_order(scores, _argsort(-scores)[:, :k])
    items = xp.argpartition(-scores, k - 1, axis=1)[:, :k]
    return _in_order(_along(scores, items), _argsort(-_along(scores, items)), items)


def _in_order(scores: Any, order: Any, items: Any = None) -> tuple[Any, Any]:
    """Scores and items (by default positions) in the given order of each row."""
    return _along(scores, order), order if items is None else _along(items, order)


def _argsort(keys: Any) -> Any:
    return namespace(keys).argsort(keys, axis=1, stable=True)


def _along(values: Any, order: Any) -> Any:
    return namespace(values).take_along_axis(values, order, axis=1)
