"""`accumulate` and `fold`: one pass over the rows of views, block by block.

Rows in host memory take a plain loop. Blocks that are not in memory are read ahead by one thread
per view, and copied to the device that `mvcca.config_context` names, or processed by the workers of
a Dask cluster. It also decides on checkpoints and the progress bar.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import fields
from functools import reduce
from itertools import chain
from math import ceil
from typing import Any, TypeVar

import numpy as np

from mvcca.machine.config import block_slices, get_config, is_plain
from mvcca.machine.progress import counting
from mvcca.machine.threads import one_blas_thread_per_block
from mvcca.statistics.passes._blocks import lanes_of, row_blocks, row_bytes_of, spans
from mvcca.statistics.passes._checkpoint import checkpointed
from mvcca.statistics.passes._cluster import Cluster, Workload
from mvcca.statistics.passes._read_ahead import Along, blocks_read_ahead
from mvcca.statistics.passes._tasks import RowTasks
from mvcca.views import Views

_BYTES_READ = 50  # per byte of a result that is sent from a worker
_MAX_LANE = 16  # blocks
_SMALL = 2**20  # bytes of a result that is sent for every block

S = TypeVar("S")


def fold(
    step: Callable[..., S],
    start: S,
    views: Views,
    *along: np.ndarray | None,
    at_least: int = 1,
    row_bytes: int | None = None,
    on_device: bool = False,
) -> S:
    """Return step(... step(step(start, block_0), block_1) ..., block_b) over blocks of rows.

    Parameters
    ----------
    step : callable
        Takes the current state, a block as `Views` in memory, and its part of each of `along`. It
        may update the state in place.
    start : array or dataclass of arrays
        State before the first block.
    views : Views
        In memory or not.
    *along : ndarray or None
        Values per object (weights, label codes), cut as the views are.
    at_least : int, default=1
        Minimum number of rows of a block.
    row_bytes : int, optional
        Memory that a row needs, if more than that of its numbers.
    on_device : bool, default=False
        Whether `step` takes device blocks. If so, other blocks are copied to the device that
        `mvcca.config_context` names; if not, device blocks are copied to the host.
    """
    if is_plain(views):
        if row_bytes is None:
            row_bytes = sum(block.row_bytes for block in views.blocks.values())
        cuts = list(block_slices(len(views), row_bytes, at_least))
        if len(cuts) < 2:  # multiplied by all BLAS threads
            return step(start, views, *along)
        state = start
        with one_blas_thread_per_block():
            for rows in cuts:
                parts = (None if part is None else part[rows] for part in along)
                state = step(state, views[rows], *parts)
        return state
    blocks = list(row_blocks(views, at_least, row_bytes))
    return _pass(
        lambda state, block: step(state, *block),
        step,
        start,
        views,
        along,
        blocks,
        lambda todo: blocks_read_ahead(views, along, todo, on_device),
    )


def accumulate(
    of: Callable[..., S],
    start: S,
    views: Views,
    *along: np.ndarray | None,
    at_least: int = 1,
    row_bytes: int | None = None,
    on_device: bool = False,
) -> S:
    """Return start + of(block_0) + of(block_1) + ... + of(block_b) over blocks of rows.

    If a Dask cluster is active and views are not in memory, its workers compute the terms.
    Neighbouring blocks are then added up on a worker, as many as make their sum worth sending. The
    same blocks are grouped without a cluster, so that the result is the same bit for bit.

    Parameters
    ----------
    of : callable
        Takes a block as `Views` in memory, and its part of each of `along`. It must pickle.
    start, views, *along, at_least, row_bytes, on_device
        As in `fold`. A device that `mvcca.config_context` names takes precedence over a cluster.

    Raises
    ------
    MemoryError
        If the workers of the cluster have too little memory.
    """
    if is_plain(views):
        return fold(
            lambda sums, *block: sums + of(*block),
            start,
            views,
            *along,
            at_least=at_least,
            row_bytes=row_bytes,
        )
    blocks = list(row_blocks(views, at_least, row_bytes))
    rows = max(block.stop - block.start for block in blocks)
    block_bytes = rows * (row_bytes_of(views) if row_bytes is None else row_bytes)
    tasks = RowTasks(views, along)
    n_together = 1
    if _bytes_of(start) > _SMALL and tasks.read_one_by_one(blocks):
        n_together = min(ceil(_BYTES_READ * _bytes_of(start) / max(1, block_bytes)), _MAX_LANE)
    lanes = list(lanes_of(blocks, n_together))
    cluster = None if on_device and get_config().rows_device else Cluster.for_rows_of(views)

    def terms(todo: list[slice]) -> Generator[S]:
        remaining = lanes[len(lanes) - len(todo) :]
        if cluster is None:
            read = blocks_read_ahead(views, along, [*chain(*remaining)], on_device)
            with closing(read):
                for lane in remaining:
                    yield reduce(operator.add, (of(*next(read)) for _ in lane))
            return
        load = Workload(rows, 2 * block_bytes, 4 * _bytes_of(start))  # with temporaries
        yield from cluster.map(of, type(start), tasks, remaining, load)

    return _pass(operator.add, of, start, views, along, spans(lanes), terms)


def _pass(
    add: Callable[[S, Any], S],
    made_by: Callable[..., Any],
    start: S,
    views: Views,
    along: Along,
    slices: list[slice],
    terms: Callable[[list[slice]], Generator[Any]],
) -> S:
    """Add to `start` the terms of all blocks that its checkpoint does not cover."""
    with checkpointed(made_by, start, views, along, slices) as (state, done, keep):
        todo = slices[done:]
        if not todo:
            return state
        with one_blas_thread_per_block(), closing(terms(todo)) as values:
            for value in watched(values, views, todo):
                state = add(state, value)
                del value  # frees its memory before the next is computed
                done += 1
                keep(state, done)
    return state


def watched(values: Iterator[S], views: Views, slices: list[slice]) -> Iterator[S]:
    """Yield the values of blocks of rows, counted by a progress bar if one is configured."""
    if not get_config().progress:
        yield from values
        return
    title, done = ", ".join(views.names), slices[0].start
    with counting(len(views), title, " rows", done=done, scale=True) as count:
        for rows, value in zip(slices, values, strict=True):
            yield value
            count(rows.stop - rows.start)


def _bytes_of(statistic: Any) -> int:
    """Memory of the arrays of a statistic."""
    if isinstance(statistic, np.ndarray):
        return statistic.nbytes
    values = (getattr(statistic, field.name) for field in fields(statistic))
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
