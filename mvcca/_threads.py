"""Blocks of rows side by side: Python threads over code that releases the GIL.

There are as many as BLAS may use (`OMP_NUM_THREADS`, `threadpoolctl.threadpool_limits`), each with
one BLAS thread to itself. Blocks are the same for any number of threads, and so are results, bit
for bit, where BLAS on one thread gives equal bits for equal blocks (OpenBLAS since NumPy 2).
A lone block is multiplied on all BLAS threads, whose number may change the last digits of its
result. BLAS threads that wait for work spin, and keep a core from those that have some: work of
many small products is done with BLAS at one thread throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

_turn = Lock()  # the limit of BLAS is the process's
_asking = Lock()
_held: list[Any] = []  # one limit, once for each who asked for it
_lent: ContextVar[int | None] = ContextVar("mvcca_lent_threads", default=None)


def each(function: Callable[[slice], T], blocks: Iterable[slice]) -> list[T]:
    """The results of `function` for all blocks, in order."""
    return list(one_by_one(function, blocks))


def one_by_one(function: Callable[[slice], T], blocks: Iterable[slice]) -> Iterator[T]:
    """The same, each as soon as it is there: those that are done with need not be held."""
    blocks = list(blocks)
    allowed = _lent.get() or _n_blas_threads()
    if len(blocks) == 1 and allowed > _n_blas_threads():  # then BLAS has the cores to itself
        with _blas().limit(limits=allowed):
            yield function(blocks[0])
        return
    n_threads = min(allowed, len(blocks))
    if n_threads < 2 or not _turn.acquire(blocking=False):  # the cores have work already
        yield from map(function, blocks)
        return
    try:
        with _blas().limit(limits=1):
            if _n_blas_threads() > 1:  # another thread holds the limit: BLAS uses the cores
                n_threads = 1
            with ThreadPoolExecutor(n_threads) as pool:
                yield from pool.map(function, blocks)
    finally:
        _turn.release()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS at one thread until the last of all who asked for it, in any thread, is done."""
    with _asking:
        _held.append(_held[0] if _held else _blas().limit(limits=1))
    try:
        yield
    finally:
        with _asking:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()


@contextmanager
def one_blas_thread_per_block() -> Iterator[None]:
    """BLAS at one thread, and `each` on as many as BLAS might have used."""
    token = _lent.set(_n_blas_threads())
    try:
        with one_blas_thread():
            yield
    finally:
        _lent.reset(token)


@cache
def _blas() -> ThreadpoolController:
    import numpy as np  # noqa: F401, its BLAS must be there to be found

    return ThreadpoolController().select(user_api="blas")


def _n_blas_threads() -> int:
    return max((library["num_threads"] for library in _blas().info()), default=1)
