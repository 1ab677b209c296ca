"""Exact ranking on a device: products and the choice of the k best are made where the gallery is.

Rows are prepared at home, as for `_blockwise` (they are small), and the lists come home. Equal
scores are ordered by index here too, which no library's selection of the k largest promises.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mvcca._backend import beside, namespace, to_host
from mvcca.config import get_config
from mvcca.retrieval.similarity import Gallery, padded

_SCORE_BYTES = 256 * 2**20  # of a block's scores


def lists_on_device(
    gallery: Gallery, queries: np.ndarray, k: int, exclude_self: bool
) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """A block of queries after the other, with products and items of their k best, in order."""
    [chunk] = gallery.prepared.chunks
    factor = beside(chunk, gallery.place)
    xp = namespace(factor)
    transposed = xp.matrix_transpose(factor)
    size = _SCORE_BYTES // (chunk.itemsize * len(chunk))
    size = get_config().block_rows or max(64, size)
    for start in range(0, len(queries), size):
        rows = slice(start, min(start + size, len(queries)))
        products = beside(padded(queries[rows]), factor) @ transposed
        products = products[: rows.stop - start, : len(gallery)]
        if exclude_self:
            own = np.arange(start, rows.stop)[:, None] == np.arange(len(gallery))
            lowest = xp.full_like(products, -xp.inf)
            products = xp.where(beside(own, factor), lowest, products)
        scores, items = best_of_rows(products, k)
        yield rows, to_host(scores), to_host(items).astype(np.int64)


def best_of_rows(scores: Any, k: int) -> tuple[Any, Any]:
    """The k best scores of every row and where they stand: falling, equals by lowest index."""
    xp, n = namespace(scores), scores.shape[1]
    if k == n:
        return _in_order(scores, _argsort(-scores))
    values, items = _largest(scores, k + 1)
    # Where the best that is left out equals the last that is in, which of them are in is open.
    open_rows = np.flatnonzero(to_host(values[:, k] == values[:, k - 1]))
    items = _sorted(items[:, :k])
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
    """The k largest of every row, falling, and where they stand; equals in any order."""
    xp = namespace(scores)
    if hasattr(xp, "topk"):
        values, items = xp.topk(scores, k, 1)
        return values, items
    if hasattr(xp, "argpartition"):
        items = xp.argpartition(-scores, k - 1, axis=1)[:, :k]
    else:
        items = _argsort(-scores)[:, :k]
    return _in_order(_along(scores, items), _argsort(-_along(scores, items)), items)


def _in_order(scores: Any, order: Any, items: Any = None) -> tuple[Any, Any]:
    """Scores, and items (positions, if not given), in an order of each row."""
    return _along(scores, order), order if items is None else _along(items, order)


def _sorted(items: Any) -> Any:
    return namespace(items).sort(items, axis=1)


def _argsort(keys: Any) -> Any:
    return namespace(keys).argsort(keys, axis=1, stable=True)


def _along(values: Any, order: Any) -> Any:
    return namespace(values).take_along_axis(values, order, axis=1)
