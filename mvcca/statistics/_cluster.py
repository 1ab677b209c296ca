"""Blocks of rows as tasks of a Dask cluster, whose results come home in the order of the blocks.

One fat task per block: a worker opens the file, or is given the chunks of a Dask array, and makes
a statistic of the block; a few tasks at a time are with the cluster. What a statistic is, and how
rows are cut into blocks, is decided elsewhere: the same for any number of workers, so that results
are too, bit for bit, whichever workers die meanwhile.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import cycle
from typing import Any
from uuid import uuid4

import numpy as np
from scipy.sparse import block_array, csr_array, issparse

from mvcca._threads import one_blas_thread
from mvcca.config import config_context, get_config
from mvcca.sources import RowSource
from mvcca.views import Views

_BASE_BYTES = 150 * 10**6  # of a worker that has imported what it needs and holds nothing
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

    Blocks are dealt out to them in turns, so that a worker reads all chunks of its block itself;
    it hands on what it is too slow or too dead for. Where rows are on workers already (persisted
    Dask arrays), tasks go to them.
    """

    client: Any
    holds_rows: bool = False

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
        if client.status != "running" or client.asynchronous:
            return None
        sources = (block for _, block in views.items() if isinstance(block, RowSource))
        arrays = [deferred[0] for source in sources if (deferred := source.deferred()) is not None]
        return cls(client, bool(distributed.futures_of(arrays)))

    def map(
        self,
        of: Callable[..., Any],
        views: Views,
        along: Iterable[np.ndarray | None],
        slices: list[slice],
        load: Workload,
    ) -> Generator[Any]:
        """of(block, *parts of along) for every block of rows, in order; blocks are in memory."""
        self.check(load)
        shared = self.keep(of)
        tasks = (row_task(_of_memory, views, along, rows, shared) for rows in slices)
        for task in self.in_order(tasks, slices, load):
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

        turns = [name for name, n in self.client.nthreads().items() for _ in range(n)]
        window = _TASKS_PER_THREAD * max(1, len(turns))
        whose = cycle([None] if self.holds_rows or not turns else turns)
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
                under_way.append((rows, self.submit(task, 0, next(whose))))
                if len(under_way) >= window:
                    yield oldest()
            while under_way:
                yield oldest()
        finally:
            if under_way:
                self.client.cancel([future for _, future in under_way], force=True)

    def submit(self, task: Any, priority: int = 1, worker: str | None = None) -> Any:
        """The future of a delayed task, which goes before those on blocks of rows."""
        import dask

        near = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        # A task may hold rows that are in memory: its size is no mistake.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.compute(task, optimize_graph=False, priority=priority, **near)

    def keep(self, value: Any) -> Any:
        """The future of a value: made by a task, so that it outlives the workers that hold it."""
        return self.submit(_delayed(_itself, value))

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
    """A delayed function(block, parts of along, *arguments), to be run with BLAS at one thread.

    A block holds sources, which the worker reads, and in place of Dask arrays their chunks.
    """
    block = views[rows]
    here, chunks = {}, {}
    for name, matrix in block.items():
        if not isinstance(matrix, RowSource):
            here[name] = matrix
        elif not len(matrix):  # Dask would compute a chunk to take no rows of
            here[name] = _no_rows(matrix)
        elif (deferred := matrix.deferred()) is None:
            here[name] = matrix
        else:
            array, read = deferred
            chunks[name] = (array.to_delayed().tolist(), list(array.chunks[0]), read)
    parts = [None if part is None else part[rows] for part in along]
    return _delayed(
        _run, function, block.names, block.seen, here, chunks, parts, get_config().block_rows,
        *arguments,
    )  # fmt: skip


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


def _of_memory(block: Views, parts: list[np.ndarray | None], of: Callable[..., Any]) -> Any:
    return of(block.in_memory(), *parts)


def _limited(function: Callable[..., Any], *arguments: Any) -> Any:
    with one_blas_thread():
        return function(*arguments)


def _itself(value: Any) -> Any:
    return value


def _joined(
    chunks: list[list[Any]], heights: list[int], read: Callable[[Any, int], Any]
) -> np.ndarray | csr_array:
    """The rows that stand in chunks, read chunk by chunk, so that errors name the chunk."""
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
