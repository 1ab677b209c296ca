"""The loop of exact search: scores of a tile that belong among the best so far.

A row's best k are a heap, worst first, in two arrays of its own. The plain twin is
`measures.descending_order` over whole rows. Importing this module loads numba, so it is imported
inside the functions that need it.
"""

from __future__ import annotations

import numpy as np

from mvcca._jit import jit

_CHUNK = 32  # scores tested at once; almost all chunks hold nothing new


@jit
def push_tile(tile, first, values, indices):  # type: ignore[no-untyped-def]
    """Keep the k largest of values[r] and tile[r] for every row r, the lowest indices among equals.

    Column c of the tile is item first + c, and items come in the order of their index.
    """
    for r in range(tile.shape[0]):
        row, heap, items = tile[r], values[r], indices[r]
        for start in range(0, row.shape[0], _CHUNK):
            if _count_above(row[start : start + _CHUNK], heap[0]):
                for c in range(start, min(start + _CHUNK, row.shape[0])):
                    # An item that only equals the worst kept one has the higher index.
                    if row[c] > heap[0]:
                        _replace_worst(heap, items, row[c], first + c)


@jit
def _count_above(chunk, threshold):  # type: ignore[no-untyped-def]
    """Number of scores above the threshold, in 32-bit integers: a loop that compiles to SIMD."""
    count = np.int32(0)
    for i in range(chunk.shape[0]):
        count = np.int32(count + np.int32(chunk[i] > threshold))
    return count


@jit
def _replace_worst(heap, items, score, item):  # type: ignore[no-untyped-def]
    """Sift a new item down from the root; of equal scores the higher index is worse."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= heap.shape[0]:
            break
        other = child + 1
        if other < heap.shape[0] and (
            heap[other] < heap[child]
            or (heap[other] == heap[child] and items[other] > items[child])
        ):
            child = other
        if score < heap[child] or (score == heap[child] and item > items[child]):
            break
        heap[hole], items[hole] = heap[child], items[child]
        hole = child
    heap[hole], items[hole] = score, item
