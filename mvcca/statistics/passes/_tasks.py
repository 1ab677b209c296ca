"""Dask tasks on blocks of rows: a function of a block, or a sum over a lane of blocks.

A task holds a reference to its rows: a range of rows of a file, which the worker opens, or chunks
of a Dask array, or the graph that computes them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial, reduce
from operator import add
from typing import Any
from uuid import uuid4

import numpy as np

from mvcca.blocks import as_block, stack
from mvcca.machine.config import config_context, get_config
from mvcca.machine.threads import one_blas_thread
from mvcca.views import Views


class RowTasks:
    """Tasks on rows of views, and on the same rows of each of `along`."""

    def __init__(self, views: Views, along: Iterable[np.ndarray | None]) -> None:
        self._views, self._along = views, tuple(along)

    @cached_property
    def _edges(self) -> dict[str, frozenset[int]]:
        """Chunk boundaries of Dask arrays by view; none if the chunks are on the cluster."""
        return {
            name: frozenset(() if _on_cluster(recipe[0]) else block.boundaries or ())
            for name, block in self._views.blocks.items()
            if (recipe := block.deferred()) is not None
        }

    def of_block(self, function: Callable[..., Any], rows: slice, *arguments: Any) -> Any:
        """Delayed function(block, parts of along, *arguments), run with one BLAS thread."""
        return delayed(_run, function, *self._described(rows), get_config().block_rows, *arguments)

    def of_lane(self, of: Callable[..., Any], lane: list[slice]) -> Any:
        """Delayed sum of of(block, *parts of along) over blocks, read one by one."""
        blocks = [self._described(rows) for rows in lane]
        return delayed(_added_up, blocks, get_config().block_rows, of)

    def read_one_by_one(self, slices: list[slice]) -> bool:
        """Whether a task can read blocks one after the other.

        It cannot if blocks share chunks of a Dask array, or if chunks are on a cluster.
        """
        return self._views.is_lazy and all(
            self._is_whole_chunks(name, rows) for name in self._edges for rows in slices
        )

    def _is_whole_chunks(self, name: str, rows: slice) -> bool:
        edges = self._edges[name]
        return self._views.is_paired and rows.start in edges and rows.stop in edges

    def _described(
        self, rows: slice
    ) -> tuple[Any, np.ndarray, dict[str, Any], dict[str, Any], list[np.ndarray | None]]:
        """Description of a block for a worker: names, seen, matrices, chunks, parts of along.

        Matrices may be sources, which the worker reads. Dask arrays are replaced by their chunks,
        or by their graph if no other block needs the same chunks.
        """
        views = self._views[rows]
        here: dict[str, Any] = {}
        chunks: dict[str, tuple[Any, Any, Any]] = {}
        for name, block in views.blocks.items():
            if (deferred := block.deferred()) is None:
                here[name] = block.matrix
            elif not block.shape[0]:  # Dask would compute a chunk
                here[name] = block.in_memory().matrix
            elif self._is_whole_chunks(name, rows):
                array, read = deferred
                chunks[name] = (_recipe(array), None, read)
            else:
                array, read = deferred
                chunks[name] = (array.to_delayed().tolist(), list(array.chunks[0]), read)
        parts = [None if part is None else part[rows] for part in self._along]
        return views.names, views.seen, here, chunks, parts


def at_one_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Delayed function(*arguments), run with one BLAS thread."""
    return delayed(_limited, function, *arguments)


def delayed(function: Callable[..., Any], *arguments: Any) -> Any:
    """A task with a unique name, so that equal work is not shared between passes."""
    from dask.delayed import delayed as dask_delayed

    name = f"mvcca{function.__name__}-{uuid4().hex}"
    return dask_delayed(function, pure=False, traverse=False)(*arguments, dask_key_name=name)


def sent_as_arrays(kind: type) -> None:
    """Have the arrays of a statistic sent without copies.

    Distributed pickles other objects with a protocol that copies their arrays.
    """
    from distributed.protocol import register_generic

    if kind is not np.ndarray:
        register_generic(kind)


# ---- run by workers --------------------------------------------------------------------------


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
        rows = {name: here[name] if name in here else _joined(*chunks[name]) for name in names}
        views = Views.of({name: as_block(X) for name, X in rows.items()}, seen)
        return function(views, parts, *arguments)


def _added_up(blocks: list[Any], block_rows: int | None, of: Callable[..., Any]) -> Any:
    statistic = reduce(add, (_run(_of_memory, *block, block_rows, of) for block in blocks))
    sent_as_arrays(type(statistic))
    return statistic


def _of_memory(block: Views, parts: list[np.ndarray | None], of: Callable[..., Any]) -> Any:
    return of(block.in_memory(), *parts)


def _limited(function: Callable[..., Any], *arguments: Any) -> Any:
    with one_blas_thread():
        return function(*arguments)


def _joined(chunks: Any, heights: list[int] | None, read: Callable[[Any, int], Any]) -> Any:
    """Rows of several chunks, checked chunk by chunk, so that errors name the right rows."""
    if heights is None:
        return read(chunks(), 0)
    starts = np.cumsum([0, *heights]).tolist()
    rows = [
        read(stack(side_by_side, axis=1), start)
        for side_by_side, start in zip(chunks, starts, strict=False)
    ]
    return stack(rows)


# ---- Dask arrays -----------------------------------------------------------------------------


def _recipe(array: Any) -> Callable[[], Any]:
    """What computes a Dask array, a plain value to Dask, so that its graph is part of the task.

    If chunks were tasks, they would often be read on one worker and sent to another.
    """
    from dask.base import optimize

    [optimized] = optimize(array)
    return partial(optimized.compute, scheduler="synchronous")


def _on_cluster(array: Any) -> bool:
    """Whether chunks of a Dask array are futures on a cluster."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and bool(distributed.futures_of(array))
