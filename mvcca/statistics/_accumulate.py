"""Going over the rows of views once, block by block: what every statistic is added up with.

Blocks that are not in memory are read ahead by a thread per view while one is worked on, and
copied to a device by it where `mvcca.config` names one; or they are worked on by the workers of a
Dask cluster where there is one. A bar counts them where `mvcca.config` asks for one. What is added
up is the statistics' own business.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import reduce
from itertools import chain, islice, pairwise
from math import ceil
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import at_home, is_device_array, precision
from mvcca._devices import mover
from mvcca._threads import lent_by_blas
from mvcca.config import block_size, block_slices, get_config
from mvcca.sources import RowSource
from mvcca.statistics._checkpoint import checkpointed
from mvcca.statistics._cluster import Cluster, Workload, bytes_of, read_one_by_one, spans
from mvcca.views import Views, in_memory

_AHEAD = 2  # blocks read ahead: with one, disk and processor wait for each other in turns
_WORTH = 25  # bytes read for each that goes home
_MOST = 16  # blocks that are added up before
_SMALL = 2**20  # bytes that go home at once

S = TypeVar("S")
Along = tuple[np.ndarray | None, ...]


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
        lambda todo: _read(views, along, todo, on_device),
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
    n_together = 1
    if bytes_of(start) > _SMALL and read_one_by_one(views, blocks):
        n_together = min(ceil(_WORTH * bytes_of(start) / max(1, block_bytes)), _MOST)
    lanes = [blocks[i : i + n_together] for i in range(0, len(blocks), n_together)]
    cluster = None if on_device and get_config().device else Cluster.for_rows_of(views)

    def terms(todo: list[slice]) -> Generator[S]:
        remaining = lanes[len(lanes) - len(todo) :]
        if cluster is None:
            read = _read(views, along, [*chain(*remaining)], on_device)
            with closing(read):
                for lane in remaining:
                    yield reduce(operator.add, (of(*next(read)) for _ in lane))
            return
        load = Workload(rows, 2 * block_bytes, 4 * bytes_of(start))  # with what of(block) needs
        yield from cluster.map(of, views, along, remaining, load)

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


def uses_device(views: Views) -> bool:
    """Whether blocks of views are on a device, or to be copied to one."""
    return bool(get_config().device) or any(is_device_array(block) for _, block in views.items())


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


def _read(
    views: Views, along: Along, slices: list[slice], on_device: bool
) -> Generator[tuple[Any, ...]]:
    """Every block in memory with its part of `along`; the next two are read while it is worked on.

    Each view has a reader of its own: one is checked while another is read.
    """
    place, is_copied = _placing(views) if on_device else (at_home, False)

    def read(matrix: Any) -> Any:
        return place(in_memory(matrix))

    def with_its_part(block: Views, rows: slice) -> tuple[Any, ...]:
        return block, *(None if part is None else part[rows] for part in along)

    if not views.is_lazy and not is_copied:
        for rows in slices:
            block = views[rows]
            yield with_its_part(block.replace({n: place(X) for n, X in block.items()}), rows)
        return
    with ExitStack() as stack:
        readers = {
            name: stack.enter_context(ThreadPoolExecutor(1, "mvcca-read")) for name in views.names
        }

        def ahead(rows: slice) -> tuple[slice, Views, dict[str, Future[Any]]]:
            block = views[rows]
            return rows, block, {n: readers[n].submit(read, X) for n, X in block.items()}

        following = iter(slices)
        coming = deque(map(ahead, islice(following, _AHEAD)))
        while coming:
            rows, block, matrices = coming.popleft()
            block = block.replace({name: matrix.result() for name, matrix in matrices.items()})
            del matrices
            coming.extend(map(ahead, islice(following, 1)))
            yield with_its_part(block, rows)
            del block  # before the next is there


def _placing(views: Views) -> tuple[Callable[[Any], Any], bool]:
    """What puts a matrix where it is computed with, and whether that copies any of views."""
    device = get_config().device
    if device is None:
        return lambda matrix: matrix, False
    move = mover(device)
    is_copied = not all(is_device_array(block) for _, block in views.items())
    # What is sparse stays at home, and what is on another device stays there.
    return lambda matrix: move(matrix) if isinstance(matrix, np.ndarray) else matrix, is_copied
