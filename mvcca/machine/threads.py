"""Python threads over blocks of rows, for code that releases the GIL, and BLAS limits.

As many Python threads run as BLAS may use (`OMP_NUM_THREADS`, `threadpoolctl.threadpool_limits`),
and each calls BLAS with one thread. Blocks do not depend on the number of threads, so that results
are the same bit for bit, if BLAS on one thread is deterministic (OpenBLAS since NumPy 2). A single
block is multiplied by all BLAS threads, whose number may change its last digits. Idle BLAS threads
spin and occupy a core, so that many small products are best computed with one BLAS thread. So are
factorisations of small matrices, whose threads wait for each other at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from threading import Event, Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from mvcca.machine.memory import WIDE

T = TypeVar("T")

_turn = Lock()  # the BLAS limit applies to the whole process
_counting = Lock()
_held: list[Any] = []  # one limit, repeated for each caller that holds it
_block_threads: ContextVar[int | None] = ContextVar("mvcca_block_threads", default=None)
_abandoned: ContextVar[Event | None] = ContextVar("mvcca_abandoned", default=None)


def each(function: Callable[[slice], T], blocks: Iterable[slice]) -> list[T]:
    """The results of `function` for all blocks, in order."""
    blocks = list(blocks)
    if len(blocks) == 1 and _block_threads.get() is None:  # BLAS uses as many threads as it may
        return [function(blocks[0])]
    return list(one_by_one(function, blocks))


def one_by_one(function: Callable[[slice], T], blocks: Iterable[slice]) -> Iterator[T]:
    """Yield the results of `function` for all blocks, in order, as soon as they are available."""
    blocks = list(blocks)
    of_blas = _n_blas_threads()
    allowed = _block_threads.get() or of_blas
    if len(blocks) == 1 and allowed > of_blas:  # BLAS may use all cores
        with _blas().limit(limits=allowed):
            yield function(blocks[0])
        return
    n_threads = min(allowed, len(blocks))
    if n_threads < 2 or not _turn.acquire(blocking=False):  # the cores are busy
        yield from map(function, blocks)
        return
    abandoned = Event()
    try:
        with _blas().limit(limits=1):
            if _n_blas_threads() > 1:  # limited by another thread: BLAS uses the cores
                n_threads = 1
            with ThreadPoolExecutor(n_threads, "", _abandoned.set, (abandoned,)) as pool:
                try:
                    yield from pool.map(function, blocks)
                except BaseException:  # an interrupt, say, which waits for the pool's threads
                    abandoned.set()
                    raise
    finally:
        _turn.release()


def stop_if_abandoned() -> None:
    """Raise if the results of `one_by_one` are no longer wanted; for a long loop within a block."""
    abandoned = _abandoned.get()
    if abandoned is not None and abandoned.is_set():
        raise CancelledError


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread until the last caller, in any thread, leaves its body."""
    with _counting:
        _held.append(_held[0] if _held else _blas().limit(limits=1))
    try:
        yield
    finally:
        with _counting:
            limit = _held.pop()
            if not _held:
                limit.restore_original_limits()


@contextmanager
def one_blas_thread_per_block() -> Iterator[None]:
    """Limit BLAS to one thread, and let `each` run on as many threads as BLAS could use."""
    token = _block_threads.set(_block_threads.get() or _n_blas_threads())
    try:
        with one_blas_thread():
            yield
    finally:
        _block_threads.reset(token)


def threads_to_factorise(n_rows: int) -> AbstractContextManager[None]:
    """Limit BLAS to one thread if matrices of `n_rows` rows and columns fit in a shared cache."""
    as_now = n_rows > WIDE or _n_blas_threads() == 1
    return nullcontext() if as_now else one_blas_thread_per_block()


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401, loads the BLAS of NumPy and that of SciPy

    return ThreadpoolController().select(user_api="blas")


def n_threads_of_blocks() -> int:
    """Number of threads on which `each` may run here."""
    return _block_threads.get() or _n_blas_threads()


def _n_blas_threads() -> int:
    return max((library["num_threads"] for library in _blas().info()), default=1)
