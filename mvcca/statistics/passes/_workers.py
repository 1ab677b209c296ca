"""Dask workers for the passes of a fit: processes of this machine, or those of a scheduler."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

_SECONDS = 10  # timeout of the connection to a scheduler


@contextmanager
def workers(number: int | None = None, scheduler: str | None = None) -> Iterator[None]:
    """Distribute fits of the body over `number` processes, or over the workers of a scheduler.

    Raises
    ------
    ImportError
        If dask.distributed is not installed.
    OSError
        If the scheduler does not answer.
    """
    if number is None and scheduler is None:
        yield
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError(
            "Workers need dask.distributed: pip install 'mvcca[distributed]'"
        ) from error
    if scheduler is not None:
        with Client(scheduler, timeout=_SECONDS):
            yield
        return
    with _sigint_blocked():
        local = LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
    with local, Client(local):
        yield


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes started by the body, since this process terminates them.

    Threads and processes inherit the signals that are blocked in the thread that starts them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its first start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
