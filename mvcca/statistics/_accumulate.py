"""Going over the rows of views once, block by block: what every statistic is added up with.

Blocks that are not in memory are read ahead by a thread per view while one is worked on, and
copied to a device by it where `mvcca.config` names one; or they are worked on by the workers of a
Dask cluster where there is one. A bar counts them where `mvcca.config` asks for one. What is added
up is the statistics' own business.
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

from mvcca._threads import lent_by_blas
from mvcca.config import get_config
from mvcca.statistics._blocks import lanes_of, row_blocks, row_bytes_of, spans
from mvcca.statistics._checkpoint import checkpointed
from mvcca.statistics._cluster import Cluster, Workload
from mvcca.statistics._read_ahead import Along, blocks_read_ahead
from mvcca.statistics._tasks import RowTasks
from mvcca.views import Views

_WORTH = 50  # bytes read for each that goes home
_MOST = 16  # blocks that are added up before
_SMALL = 2**20  # bytes that go home at once

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
    """step(... step(step(start, block_0), block_1) ..., block_b) over the row blocks of views.

    Parameters
    ----------
    step : callable
        Takes what was made so far, a block as `Views` in memory, and its part of each of `along`.
        It may change and return its first argument.
    start : array or dataclass of arrays
        What an empty set of rows gives.
    views : Views
        In memory or not.
    *along : ndarray or None
        Numbers of each object (weights, label codes), cut as the views are.
    at_least : int, default=1
        Rows of a block, where each block costs more than its rows do.
    row_bytes : int, optional
        What a row needs in memory, where that is more than its numbers.
    on_device : bool, default=False
        Whether `step` takes device blocks: others are copied to the device that `mvcca.config`
        names. If not, device blocks come home one by one.
    """
    return _gone_over(
        lambda state, block: step(state, *block),
        step,
        start,
        views,
        along,
        list(row_blocks(views, at_least, row_bytes)),
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
    """Add up start + of(block_0) + of(block_1) + ... + of(block_b) over the row blocks of views.

    The terms are made by the workers of a Dask cluster where there is one and views are not in
    memory. Neighbours are added up where they are made, as many as make their sum worth its way
    home; there or here, it is the same ones and the same bits.

    Parameters
    ----------
    of : callable
        Takes a block as `Views` in memory, and its part of each of `along`; can be pickled.
    start, views, *along, at_least, row_bytes, on_device
        As in `fold`. A device that `mvcca.config` names goes before a cluster.

    Raises
    ------
    MemoryError
        If the workers of the cluster have too little memory.
    """
    blocks = list(row_blocks(views, at_least, row_bytes))
    rows = max(block.stop - block.start for block in blocks)
    block_bytes = rows * (row_bytes_of(views) if row_bytes is None else row_bytes)
    tasks = RowTasks(views, along)
    n_together = 1
    if _bytes_of(start) > _SMALL and tasks.read_one_by_one(blocks):
        n_together = min(ceil(_WORTH * _bytes_of(start) / max(1, block_bytes)), _MOST)
    lanes = list(lanes_of(blocks, n_together))
    cluster = None if on_device and get_config().device else Cluster.for_rows_of(views)

    def terms(todo: list[slice]) -> Generator[S]:
        remaining = lanes[len(lanes) - len(todo) :]
        if cluster is None:
            read = blocks_read_ahead(views, along, [*chain(*remaining)], on_device)
            with closing(read):
                for lane in remaining:
                    yield reduce(operator.add, (of(*next(read)) for _ in lane))
            return
        load = Workload(rows, 2 * block_bytes, 4 * _bytes_of(start))  # with what of(block) needs
        yield from cluster.map(of, type(start), tasks, remaining, load)

    return _gone_over(operator.add, of, start, views, along, spans(lanes), terms)


def _gone_over(
    add: Callable[[S, Any], S],
    made_by: Callable[..., Any],
    start: S,
    views: Views,
    along: Along,
    slices: list[slice],
    terms: Callable[[list[slice]], Generator[Any]],
) -> S:
    """Add to `start` the terms of all blocks that no checkpoint holds already."""
    with checkpointed(made_by, start, views, along, slices) as (state, done, keep):
        todo = slices[done:]
        if not todo:
            return state
        with lent_by_blas(), closing(terms(todo)) as values:
            for value in watched(values, views, todo):
                state = add(state, value)
                del value  # before the next is there
                done += 1
                keep(state, done)
    return state


def watched(values: Iterator[S], views: Views, slices: list[slice]) -> Iterator[S]:
    """What comes of each block of rows, counted by a bar if one is asked for."""
    if not get_config().progress:
        yield from values
        return
    from tqdm.auto import tqdm

    with tqdm(total=len(views), initial=slices[0].start, unit=" rows", unit_scale=True,
              desc=", ".join(views.names), dynamic_ncols=True) as bar:  # fmt: skip
        for rows, value in zip(slices, values, strict=True):
            yield value
            bar.update(rows.stop - rows.start)


def _bytes_of(statistic: Any) -> int:
    """Memory of the arrays of a statistic."""
    if isinstance(statistic, np.ndarray):
        return statistic.nbytes
    values = (getattr(statistic, field.name) for field in fields(statistic))
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))
