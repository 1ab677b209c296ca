"""How rows are cut: into blocks of bounded size, and blocks into lanes of neighbours.

The same cuts for any number of threads and workers, so that sums are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import precision, promoted
from mvcca.config import block_size, block_slices
from mvcca.sources import RowSource
from mvcca.views import Views

_LAST = 4  # lanes that the blocks which are left are enough for


def row_blocks(views: Views, at_least: int = 1, row_bytes: int | None = None) -> Iterator[slice]:
    """Objects cut into blocks of bounded size, where possible between chunks of what is read."""
    if not len(views):  # of a view that none of a batch's objects is seen in
        return iter([slice(0, 0)])
    if row_bytes is None:
        row_bytes = row_bytes_of(views)
    if views.is_lazy:  # one block is read while another is worked on
        row_bytes *= 2
    chunks = _chunks(views)
    if chunks is None:
        return block_slices(len(views), row_bytes, at_least)
    return _whole_chunks(chunks, block_size(row_bytes, at_least))


def lanes_of(blocks: list[slice], n_together: int) -> Iterator[list[slice]]:
    """Neighbouring blocks together, fewer towards the end: so all workers finish together."""
    start = 0
    while start < len(blocks):
        end = start + min(n_together, ceil((len(blocks) - start) / _LAST))
        yield blocks[start:end]
        start = end


def spans(lanes: list[list[slice]]) -> list[slice]:
    """The rows of each lane, from its first block to its last."""
    return [slice(lane[0].start, lane[-1].stop) for lane in lanes]


def in_precision(views: Views, dtype: np.dtype) -> Views:
    """Views with blocks of no less precision than `dtype`."""
    return views.replace({name: promoted(block, dtype) for name, block in views.items()})


def row_bytes_of(views: Views) -> int:
    """What the numbers of an object take in memory, all views together, on average."""
    return sum(_row_bytes(block) for _, block in views.items())


def _row_bytes(block: Any) -> int:
    if isinstance(block, RowSource):
        return block.row_bytes
    if issparse(block):  # zeros take nothing
        return (block.data.nbytes + block.indices.nbytes) // max(1, block.shape[0]) + 1
    return precision(block).itemsize * block.shape[1]


def _chunks(views: Views) -> tuple[int, ...] | None:
    """Where the first view that is stored in chunks is best cut, if its rows are the objects."""
    if not views.is_paired:
        return None
    sources = (block for _, block in views.items() if isinstance(block, RowSource))
    return next((b for source in sources if (b := source.boundaries) is not None), None)


def _whole_chunks(boundaries: tuple[int, ...], size: int) -> Iterator[slice]:
    """Neighbouring chunks together up to `size` rows; a chunk above that is a block of its own."""
    start = boundaries[0]
    for end, following in pairwise([*boundaries[1:], boundaries[-1] + size]):
        if following - start > size:
            yield slice(start, end)
            start = end
