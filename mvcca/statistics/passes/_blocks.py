"""Cuts of the rows into blocks of bounded size, and of blocks into lanes of neighbouring blocks.

The cuts do not depend on the number of threads or workers, so that sums are the same bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

from mvcca.machine.config import block_size, block_slices
from mvcca.views import Views

_LAST = 4  # a lane has at most this part of the remaining blocks


def row_blocks(views: Views, at_least: int = 1, row_bytes: int | None = None) -> Iterator[slice]:
    """Cut objects into blocks of bounded size, if possible between the chunks of a source."""
    if not len(views):  # no object of a batch is seen in the view
        return iter([slice(0, 0)])
    if row_bytes is None:
        row_bytes = row_bytes_of(views)
    if not views.is_lazy:
        return block_slices(len(views), row_bytes, at_least)
    row_bytes *= 2  # one block is read while another is processed
    chunks = _chunks(views)
    if chunks is None:
        return block_slices(len(views), row_bytes, at_least)
    return _whole_chunks(chunks, block_size(row_bytes, at_least))


def lanes_of(blocks: list[slice], n_together: int) -> Iterator[list[slice]]:
    """Group neighbouring blocks, fewer towards the end, so that workers finish together."""
    start = 0
    while start < len(blocks):
        end = start + min(n_together, ceil((len(blocks) - start) / _LAST))
        yield blocks[start:end]
        start = end


def spans(lanes: list[list[slice]]) -> list[slice]:
    """Rows of each lane."""
    return [slice(lane[0].start, lane[-1].stop) for lane in lanes]


def row_bytes_of(views: Views) -> int:
    """Average memory of an object in all views, in bytes."""
    return sum(block.row_bytes for block in views.blocks.values())


def _chunks(views: Views) -> tuple[int, ...] | None:
    """Chunk boundaries of the first view that has them, if its rows are the objects."""
    if not views.is_paired:
        return None
    return next((b for block in views.blocks.values() if (b := block.boundaries) is not None), None)


def _whole_chunks(boundaries: tuple[int, ...], size: int) -> Iterator[slice]:
    """Group neighbouring chunks up to `size` rows; a taller chunk is one block."""
    start = boundaries[0]
    for end, following in pairwise([*boundaries[1:], boundaries[-1] + size]):
        if following - start > size:
            yield slice(start, end)
            start = end
