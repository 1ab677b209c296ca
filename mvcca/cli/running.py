"""How the work is done: how many rows at a time, with a bar or without, and on which workers."""

from __future__ import annotations

import logging
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from mvcca.cli.errors import CommandError, in_one_line
from mvcca.cli.notes import warnings_as_notes
from mvcca.config import config_context

__all__ = ["on_workers", "running"]

_SECONDS = 10  # to wait for a scheduler that may not be there


@contextmanager
def running(options: Namespace, **choices: Any) -> Iterator[None]:
    """The body's work, done as the options say; what it cannot do is an error in one line.

    Parameters
    ----------
    options : Namespace
        With ``block_rows``.
    **choices
        Further choices of `mvcca.config_context`.

    Raises
    ------
    CommandError
        If the library raises an error.
    """
    choices = {"block_rows": options.block_rows, "progress": sys.stderr.isatty(), **choices}
    with warnings_as_notes(), in_one_line(), config_context(**choices):
        yield


@contextmanager
def on_workers(workers: int | None, scheduler: str | None) -> Iterator[None]:
    """A client of `dask.distributed` around the body, where workers are asked for.

    Parameters
    ----------
    workers : int or None
        Processes of one thread each to start here.
    scheduler : str or None
        Address of a scheduler that has workers.

    Raises
    ------
    CommandError
        If dask.distributed is missing, or no scheduler answers.
    """
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
    with _deaf_to_ctrl_c():
        local = LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        )
    with local, Client(local):
        yield


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that are started here leave Ctrl-C to this one, which ends them.

    A signal that a thread blocks is blocked in what it starts: the body's threads and theirs.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would lift the block once, when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
