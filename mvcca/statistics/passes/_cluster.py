"""Blocks of rows as tasks of a Dask cluster, with results in the order of the blocks.

Tasks are few and large: a block, or a lane of neighbouring blocks. Only a few are submitted at a
time. Blocks and lanes do not depend on the workers, so that results are the same bit for bit for
any number of workers, including workers that die.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mvcca.machine.memory import readable
from mvcca.statistics.passes._blocks import spans
from mvcca.statistics.passes._tasks import RowTasks, delayed, sent_as_arrays
from mvcca.views import Views

_BASE_BYTES = 200 * 10**6  # of an idle worker after imports
_SMALL_BYTES = 64 * 2**10
_TASKS_PER_THREAD = 2  # one running and one waiting


@dataclass(frozen=True)
class Workload:
    """Memory that a task needs: rows of a block, bytes for them and for results."""

    rows: int
    block_bytes: int
    result_bytes: int

    def __str__(self) -> str:
        return (
            f"blocks of up to {self.rows:,} rows take {self.block_bytes:,} bytes and their "
            f"results {self.result_bytes:,} bytes"
        )


@dataclass(frozen=True)
class Cluster:
    """The workers behind the active client of `dask.distributed`.

    The scheduler assigns tasks to workers: a task with a preferred worker would wait forever if all
    workers died at once.
    """

    client: Any

    @classmethod
    def for_rows_of(cls, views: Views) -> Cluster | None:
        """The active cluster; None without one, or if views are in memory."""
        distributed = sys.modules.get("distributed")  # clients exist only after its import
        if distributed is None or not views.is_lazy:
            return None
        try:
            distributed.get_worker()
            return None  # a task must not wait for other tasks
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
        kind: type,
        tasks: RowTasks,
        lanes: list[list[slice]],
        load: Workload,
    ) -> Generator[Any]:
        """Yield the sum of of(block, *parts of along) over the blocks of each lane.

        `kind` is the type of the results: an array, or a dataclass of arrays.
        """
        self.check(load)
        sent_as_arrays(kind)
        function = self.shared(of)
        todo = (tasks.of_lane(function, lane) for lane in lanes)
        for task in self.in_order(todo, spans(lanes), load):
            yield self._result(task)  # not held here any longer

    def in_order(self, tasks: Iterable[Any], slices: list[slice], load: Workload) -> Generator[Any]:
        """Yield futures of tasks on blocks of rows in order when done; a few are active at once."""
        from distributed.scheduler import KilledWorker

        window = _TASKS_PER_THREAD * max(1, sum(self.client.nthreads().values()))
        under_way: deque[tuple[slice, Any]] = deque()

        def oldest() -> Any:
            rows, future = under_way[0]
            try:
                with self._kept_open():
                    if isinstance(error := future.exception(), CancelledError):
                        raise error
                if error is not None:
                    raise error.with_traceback(future.traceback())
            except KilledWorker as error:
                raise RuntimeError(
                    f"Workers died over rows {rows.start} to {rows.stop}, most likely for lack of "
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
                with self._kept_open():
                    under_way.append((rows, self.submit(task, priority=0)))
                if len(under_way) >= window:
                    yield oldest()
            while under_way:
                yield oldest()
        finally:
            if under_way and self.client.status == "running":
                self.client.cancel([future for _, future in under_way], force=True)

    def _result(self, future: Any) -> Any:
        with self._kept_open():
            return future.result()

    @contextmanager
    def _kept_open(self) -> Iterator[None]:
        """Raise a clear error if the client is closed in the body."""
        try:
            yield
        except Exception as error:
            if not isinstance(error, CancelledError) and self.client.status == "running":
                raise
            raise RuntimeError(
                "The Dask client was closed, or its tasks were cancelled, before the workers were "
                "done. Keep it open until the fit ends."
            ) from error

    def submit(self, task: Any, priority: int = 1) -> Any:
        """Submit a delayed task, by default before those on blocks of rows; its future."""
        import dask

        # A task may hold rows in memory on purpose.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return self.client.compute(task, optimize_graph=False, priority=priority)

    def shared(self, value: Any) -> Any:
        """An argument of many tasks: the value if it is small, else a future.

        The future is the result of a task, so that it can be recomputed if workers die. Small
        values are sent with each task, since tasks queue on the worker that holds a future.
        """
        from distributed.protocol.pickle import dumps

        small = len(dumps(value)) < _SMALL_BYTES
        return value if small else self.submit(delayed(_itself, value))

    def check(self, load: Workload) -> None:
        """Raise an error before anything is read if a task does not fit into a worker's memory."""
        import dask

        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        pause = dask.config.get("distributed.worker.memory.pause", None)  # a share, or False
        for address, worker in workers.items():
            limit, n_threads = worker["memory_limit"], worker["nthreads"]
            base = _base_bytes(worker.get("metrics", {}))
            if limit and pause and base > pause * limit:
                raise MemoryError(
                    f"The worker {address} has {limit:,} bytes of memory ({readable(limit)}), of "
                    f"which it uses {base:,} ({readable(base)}) before it is given any rows. "
                    f"Above {pause:.0%} Dask pauses a worker, and this one would never resume. "
                    "Give workers more memory."
                )
            needed = base + n_threads * (load.block_bytes + load.result_bytes)
            if limit and needed > limit:
                raise MemoryError(
                    f"The worker {address} has {limit:,} bytes of memory ({readable(limit)}) for "
                    f"{n_threads} thread(s) and needs about {needed:,} bytes "
                    f"({readable(needed)}): {load}, per thread. Give workers more memory or fewer "
                    "threads, make blocks smaller with mvcca.config_context(block_rows=...), or "
                    "take fewer features."
                )


def _base_bytes(metrics: dict[str, Any]) -> int:
    """Memory of a worker without the results it holds, as last reported."""
    return max(_BASE_BYTES, metrics.get("memory", 0) - metrics.get("managed_bytes", 0))


def _itself(value: Any) -> Any:
    return value
