"""Blocks of rows as tasks of a Dask cluster, whose results come home in the order of the blocks.

Few fat tasks, of a block or of a lane of neighbouring blocks: a worker opens the file, or is given
the chunks of a Dask array, and makes a statistic of each block; a few tasks at a time are with the
cluster. What a statistic is, and how rows are cut into blocks and lanes, is decided elsewhere: the
same for any number of workers, so that results are too, bit for bit, whichever workers die.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.sparse import block_array, csr_array, issparse

from mvcca._threads import one_blas_thread
from mvcca.config import config_context, get_config
from mvcca.sources import RowSource
from mvcca.views import Views

_BASE_BYTES = 150 * 10**6  # of a worker that has imported what it needs and holds nothing
_SMALL_BYTES = 64 * 2**10
_TASKS_PER_THREAD = 2  # one at work and one to go on with


@dataclass(frozen=True)
class Workload:
    """What a task asks of its worker: rows of a block, and bytes for these and for results."""

    rows: int
    block_bytes: int
    result_bytes: int

    def __str__(self) -> str:
        return (
            f"blocks of up to {self.rows:,} rows take {self.block_bytes:,} bytes and what is made "
            f"of them {self.result_bytes:,} bytes"
        )


@dataclass(frozen=True)
class Cluster:
    """The workers behind the active client of `dask.distributed`.

    Which worker does what is left to the scheduler: a task that asks for a worker, though it would
    take another, waits for ever where all workers died at once.
    """

    client: Any

    @classmethod
    def for_rows_of(cls, views: Views) -> Cluster | None:
        """The cluster, if there is one and rows are not in memory: those stay at home."""
        distributed = sys.modules.get("distributed")  # a client comes after its import
        if distributed is None or not views.is_lazy:
            return None
        try:
            distributed.get_worker()
            return None  # this is a task already, which must not wait for others
        except ValueError:
            pass
        try:
            client = distributed.default_client()
        except ValueError:
            return None
        return cls(client) if client.status == "running" and not client.asynchronous else None

    def map(
        self,
        of: Callable[..., Any],
        views: Views,
        along: Iterable[np.ndarray | None],
        lanes: list[list[slice]],
        load: Workload,
    ) -> Generator[Any]:
        """The sum over neighbouring blocks of rows of of(block, *parts of along), lane by lane."""
        self.check(load)
        function = self.shared(of)
        tasks = (lane_task(views, along, lane, function) for lane in lanes)
        for task in self.in_order(tasks, spans(lanes), load):
            yield task.result()

    def in_order(self, tasks: Iterable[Any], slices: list[slice], load: Workload) -> Generator[Any]:
        """Futures of tasks on blocks of rows, each when it is done; no more than a few at once.

        Raises
        ------
        Exception
            What a task raised, with a note that names its rows.
        RuntimeError
            If workers die whenever they are given the same task.
        """
        from distributed.scheduler import KilledWorker

        window = _TASKS_PER_THREAD * max(1, sum(self.client.nthreads().values()))
        under_way: deque[tuple[slice, Any]] = deque()

        def oldest() -> Any:
            rows, future = under_way[0]
            try:
                if (error := future.exception()) is not None:
                    raise error.with_traceback(future.traceback())
            except KilledWorker as error:
                raise RuntimeError(
                    f"Workers died over rows {rows.start} to {rows.stop}, most likely for want of "
                    f"memory: {load}, for each thread of a worker. Give workers more memory or "
                    "fewer threads, or make blocks smaller: mvcca.config_context(block_rows=...)."
                ) from error
            except Exception as error:
                error.add_note(f"Raised by a worker, over rows {rows.start} to {rows.stop}.")
                raise
            under_way.popleft()
            return future

        try:
            for rows, task in zip(slices, tasks, strict=True):
                under_way.append((rows, self.submit(task, priority=0)))
                if len(under_way) >= window:
                    yield oldest()
            while under_way:
                yield oldest()
        finally:
            if under_way:
                self.client.cancel([future for _, future in under_way], force=True)

    def submit(self, task: Any, priority: int = 1) -> Any:
        """The future of a delayed task, which goes before those on blocks of rows."""
        import dask

        # A task may hold rows that are in memory: its size is no mistake.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.compute(task, optimize_graph=False, priority=priority)

    def shared(self, value: Any) -> Any:
        """What many tasks need: the value if it is small, else a future.

        A task makes the future, so that it outlives the workers that hold it. Where a future is,
        tasks go first, and wait there until others take them: the small are better sent along.
        """
        from distributed.protocol.pickle import dumps

        small = len(dumps(value)) < _SMALL_BYTES
        return value if small else self.submit(_delayed(_itself, value))

    def check(self, load: Workload) -> None:
        """Refuse what does not fit into the workers' memory before anything is read.

        Raises
        ------
        MemoryError
            Naming the bytes needed and the bytes there are.
        """
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        for address, worker in workers.items():
            limit, n_threads = worker["memory_limit"], worker["nthreads"]
            needed = _BASE_BYTES + n_threads * (load.block_bytes + load.result_bytes)
            if limit and needed > limit:
                raise MemoryError(
                    f"The worker {address} has {limit:,} bytes of memory ({_readable(limit)}) for "
                    f"{n_threads} thread(s) and needs about {needed:,} bytes "
                    f"({_readable(needed)}): {load}, per thread. Give workers more memory or fewer "
                    "threads, make blocks smaller with mvcca.config_context(block_rows=...), or "
                    "take fewer features."
                )


def row_task(
    function: Callable[..., Any],
    views: Views,
    along: Iterable[np.ndarray | None],
    rows: slice,
    *arguments: Any,
) -> Any:
    """A delayed function(block, parts of along, *arguments), to be run with BLAS at one thread."""
    block_rows = get_config().block_rows
    return _delayed(_run, function, *_described(views, along, rows), block_rows, *arguments)


def lane_task(
    views: Views, along: Iterable[np.ndarray | None], lane: list[slice], of: Callable[..., Any]
) -> Any:
    """A delayed sum of of(block, *parts of along) over blocks, in memory one after the other."""
    blocks = [_described(views, along, rows) for rows in lane]
    return _delayed(_added_up, blocks, get_config().block_rows, of)


def spans(lanes: list[list[slice]]) -> list[slice]:
    """The rows of each lane, from its first block to its last."""
    return [slice(lane[0].start, lane[-1].stop) for lane in lanes]


def read_one_by_one(views: Views, slices: list[slice]) -> bool:
    """Whether a task can read the next of several blocks when it is done with the one before.

    Not so if they have a share in the same chunks of a Dask array, or if these are on a cluster.
    """
    deferred = {
        name: recipe[0]
        for name, matrix in views.items()
        if isinstance(matrix, RowSource) and (recipe := matrix.deferred()) is not None
    }
    return views.is_lazy and all(
        views.is_paired and _is_unshared_recipe(array, views[name], rows)
        for name, array in deferred.items()
        for rows in slices
    )


def _described(
    views: Views, along: Iterable[np.ndarray | None], rows: slice
) -> tuple[Any, np.ndarray, dict[str, Any], dict[str, Any], list[np.ndarray | None]]:
    """What a worker makes a block of: names, what is seen, matrices, chunks, and parts of along.

    Matrices may be sources, which the worker reads; in place of Dask arrays there are their chunks,
    or, of chunks that no other block has a share in, what they are made by.
    """
    block = views[rows]
    here: dict[str, Any] = {}
    chunks: dict[str, tuple[Any, Any, Any]] = {}
    for name, matrix in block.items():
        if not isinstance(matrix, RowSource):
            here[name] = matrix
        elif not len(matrix):  # Dask would compute a chunk to take no rows of
            here[name] = _no_rows(matrix)
        elif (deferred := matrix.deferred()) is None:
            here[name] = matrix
        elif views.is_paired and _is_unshared_recipe(deferred[0], views[name], rows):
            array, read = deferred
            chunks[name] = (_Recipe(array), None, read)
        else:
            array, read = deferred
            chunks[name] = (array.to_delayed().tolist(), list(array.chunks[0]), read)
    parts = [None if part is None else part[rows] for part in along]
    return block.names, block.seen, here, chunks, parts


def bytes_of(statistic: Any) -> int:
    """Memory of the arrays of a statistic."""
    if isinstance(statistic, np.ndarray):
        return statistic.nbytes
    values = (getattr(statistic, field.name) for field in fields(statistic))
    return sum(value.nbytes for value in values if isinstance(value, np.ndarray))


def at_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """A delayed function(*arguments), to be run with BLAS at one thread."""
    return _delayed(_limited, function, *arguments)


# ---- what workers run ------------------------------------------------------------------------


@contextmanager
def _as_worker(block_rows: int | None) -> Iterator[None]:
    choices = config_context(block_rows=block_rows, progress=False, checkpoint=None)
    with one_blas_thread(), choices:
        yield


def _run(
    function: Callable[..., Any],
    names: tuple[str, ...],
    seen: np.ndarray,
    here: dict[str, Any],
    chunks: dict[str, Any],
    parts: list[np.ndarray | None],
    block_rows: int | None,
    *arguments: Any,
) -> Any:
    with _as_worker(block_rows):
        blocks = {name: here[name] if name in here else _joined(*chunks[name]) for name in names}
        return function(Views._of(blocks, seen), parts, *arguments)


def _added_up(blocks: list[Any], block_rows: int | None, of: Callable[..., Any]) -> Any:
    return reduce(add, (_run(_of_memory, *block, block_rows, of) for block in blocks))


def _of_memory(block: Views, parts: list[np.ndarray | None], of: Callable[..., Any]) -> Any:
    return of(block.in_memory(), *parts)


def _limited(function: Callable[..., Any], *arguments: Any) -> Any:
    with one_blas_thread():
        return function(*arguments)


def _itself(value: Any) -> Any:
    return value


def _joined(
    chunks: Any, heights: list[int] | None, read: Callable[[Any, int], Any]
) -> np.ndarray | csr_array:
    """The rows that stand in chunks, read chunk by chunk, so that errors name the chunk."""
    if heights is None:
        return read(chunks.made(), 0)
    starts = np.cumsum([0, *heights]).tolist()
    rows = [
        read(_stacked([side_by_side]), start)
        for side_by_side, start in zip(chunks, starts, strict=False)
    ]
    return _stacked([[part] for part in rows])


def _stacked(grid: list[list[Any]]) -> Any:
    if len(grid) == len(grid[0]) == 1:
        return grid[0][0]
    return block_array(grid, format="csr") if issparse(grid[0][0]) else np.block(grid)


# ---- Dask arrays -----------------------------------------------------------------------------


class _Recipe:
    """A Dask array that Dask takes for a value: what makes it goes with the task, in one piece.

    As tasks of their own, chunks are often read on one worker and sent to another.
    """

    def __init__(self, array: Any) -> None:
        from dask.base import optimize

        [self._array] = optimize(array)

    def made(self) -> Any:
        return self._array.compute(scheduler="synchronous")


def _is_unshared_recipe(array: Any, source: RowSource, rows: slice) -> bool:
    """Whether a block is whole chunks of a source, none of which is on the cluster already."""
    edges = source.boundaries or ()
    if rows.start not in edges or rows.stop not in edges:
        return False
    distributed = sys.modules.get("distributed")
    return distributed is None or not distributed.futures_of(array)


# ---- helpers ---------------------------------------------------------------------------------


def _delayed(function: Callable[..., Any], *arguments: Any) -> Any:
    """A task with a name of its own: the same work asked for twice is done twice."""
    from dask.delayed import delayed

    name = f"mvcca{function.__name__}-{uuid4().hex}"
    return delayed(function, pure=False, traverse=False)(*arguments, dask_key_name=name)


def _no_rows(source: RowSource) -> np.ndarray | csr_array:
    rows = np.empty((0, source.shape[1]), source.dtype)
    return csr_array(rows) if source.is_sparse else rows


def _readable(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"
