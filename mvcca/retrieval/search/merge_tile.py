"""Compiled loop of exact search: merge a tile of scores into the k best scores of every row.

`mvcca.measures.descending_order` over whole rows computes the same. Importing this module loads
numba, so it is imported inside the function that needs it.
"""

from __future__ import annotations

import numpy as np

from mvcca.machine.jit import jit

_CHUNK = 32  # scores tested at once; almost all chunks hold nothing new
_WAITING = 64  # candidates of a row that are merged at once


@jit
def merge_tile(tile, first, scores, items):
    """Keep the best k of scores[r] (descending) and tile[r] for every row r, equals by index.

    Column c of the tile is item first + c; tiles follow the order of their items.
    """
    k = scores.shape[1]
    new_scores = np.empty(_WAITING, scores.dtype)
    new_items = np.empty(_WAITING, items.dtype)
    for r in range(tile.shape[0]):
        row, n_new = tile[r], 0
        kth = scores[r, k - 1]
        for start in range(0, row.shape[0], _CHUNK):
            if not _count_above(row[start : start + _CHUNK], kth):
                continue
            for c in range(start, min(start + _CHUNK, row.shape[0])):
                if row[c] > kth:  # one that only equals the kth has a higher index
                    _insert(new_scores, new_items, n_new, row[c], first + c)
                    n_new += 1
                    if n_new == _WAITING:
                        _merge(scores[r], items[r], new_scores, new_items, n_new)
                        n_new = 0
                        kth = scores[r, k - 1]
        _merge(scores[r], items[r], new_scores, new_items, n_new)


@jit
def _count_above(chunk, threshold):
    """Number of scores above the threshold, in 32-bit integers: a loop that compiles to SIMD."""
    count = np.int32(0)
    for i in range(chunk.shape[0]):
        count = np.int32(count + np.int32(chunk[i] > threshold))
    return count


@jit
def _insert(scores, items, n, score, item):
    """Insert an item into the descending scores[:n], after its equals."""
    while n > 0 and scores[n - 1] < score:
        scores[n], items[n] = scores[n - 1], items[n - 1]
        n -= 1
    scores[n], items[n] = score, item


@jit
def _merge(scores, items, new_scores, new_items, n_new):
    """Merge the best of two descending lists into the first, which precedes among equals."""
    n_old = scores.shape[0]
    while n_new > 0:  # from the end, where the worst of both belongs
        place = n_old + n_new - 1
        if n_old > 0 and scores[n_old - 1] < new_scores[n_new - 1]:
            n_old -= 1
            score, item = scores[n_old], items[n_old]
        else:
            n_new -= 1
            score, item = new_scores[n_new], new_items[n_new]
        if place < scores.shape[0]:
            scores[place], items[place] = score, item
