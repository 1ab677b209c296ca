"""Run-time environment of a command: block size, progress bar and Dask workers."""

from __future__ import annotations

import logging
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from mvcca.cli.console import warnings_as_notes
from mvcca.cli.errors import CommandError, in_one_line
from mvcca.config import config_context

_SECONDS = 10  # timeout of the connection to a scheduler


@contextmanager
def running(options: Namespace, **config: Any) -> Iterator[None]:
    """Configure the library for the body, and convert its errors to one line.

    `config` are options of `mvcca.config_context` beyond the block size and the progress bar.
    """
    config = {"block_rows": options.block_rows, "progress": sys.stderr.isatty(), **config}
    with warnings_as_notes(), in_one_line(), config_context(**config):
        yield


@contextmanager
def on_workers(workers: int | None, scheduler: str | None) -> Iterator[None]:
    """Connect the body to local worker processes or to a Dask scheduler, if requested."""
    if workers is None and scheduler is None:
        yield
        return
    option = "--workers" if scheduler is None else "--scheduler"
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise CommandError(
            f"{option} needs dask.distributed: pip install 'mvcca[distributed]'"
        ) from error
    if scheduler is not None:
        with in_one_line(f"--scheduler {scheduler}: "):
            client = Client(scheduler, timeout=_SECONDS)
        with client:
            yield
        return
    with _sigint_blocked():
        local = LocalCluster(
            n_workers=workers,
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
