"""Blocks of queries side by side: Python threads over code that releases the GIL.

There are as many as BLAS may use (`OMP_NUM_THREADS`, `threadpoolctl.threadpool_limits`), each with
one BLAS thread to itself. Blocks are the same for any number of threads, and so are results, bit
for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")


def each(function: Callable[[slice], T], blocks: Iterable[slice]) -> list[T]:
    """The results of `function` for all blocks, in order."""
    blocks = list(blocks)
    n_threads = min(_n_blas_threads(), len(blocks))
    if n_threads < 2:
        return [function(block) for block in blocks]
    with _one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(function, blocks))


@cache
def _blas() -> ThreadpoolController:
    import numpy as np  # noqa: F401, its BLAS must be there to be found

    return ThreadpoolController().select(user_api="blas")


def _n_blas_threads() -> int:
    return max((library["num_threads"] for library in _blas().info()), default=1)


class _Limit:
    """The limit is the process's: the first user sets it and the last one lifts it."""

    lock = Lock()
    users = 0
    limiter: Any = None


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    with _Limit.lock:
        if not _Limit.users:
            _Limit.limiter = _blas().limit(limits=1)
        _Limit.users += 1
    try:
        yield
    finally:
        with _Limit.lock:
            _Limit.users -= 1
            if not _Limit.users:
                _Limit.limiter.restore_original_limits()
