"""Calls in other processes, one by one, with data that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from mvcca.machine.config import config_context, get_config

_TRIES = 100
_LARGE = 10**6  # bytes from which on arrays are mapped, so that processes share their memory


@contextmanager
def processes(n: int, shared: Any) -> Iterator[Callable[..., Future[Any]]]:
    """A function that submits ``function(shared, *args)`` to one of `n` processes.

    With one process, the call is made here and has ended when its future is returned. Several
    compute on the device that is configured here, and an exception in the body ends them. joblib's
    `Parallel` asks for tasks ahead of time, so that what runs next could not depend on what has
    just ended.
    """
    if n == 1:
        yield lambda function, *args: _done(function(shared, *args))
        return
    with TemporaryDirectory(prefix="mvcca-", ignore_cleanup_errors=True) as folder:
        file = str(Path(folder) / "shared")
        joblib.dump(shared, file)
        # Not the executor that loky keeps for reuse, which `Parallel` takes for its own.
        executor = ProcessPoolExecutor(max_workers=n)
        calls: list[Future[Any]] = []

        def submit(function: Callable[..., Any], *args: Any) -> Future[Any]:
            calls.append(executor.submit(_call, file, get_config().device, function, args))
            return calls[-1]

        try:
            yield submit
        except BaseException:
            _wait_for_start(calls)
            executor.shutdown(kill_workers=True)
            raise
        executor.shutdown()


def _wait_for_start(calls: list[Future[Any]]) -> None:
    """Wait a moment for calls that no process has taken: loky forgets these, and stumbles."""
    for _ in range(_TRIES):
        if all(call.running() or call.done() for call in calls):
            return
        sleep(0.01)


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def _call(
    file: str, device: str | None, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    with config_context(device=device):
        return function(_loaded(file), *args)


@lru_cache(maxsize=1)
def _loaded(file: str) -> Any:
    is_large = Path(file).stat().st_size > _LARGE
    return joblib.load(file, mmap_mode="r" if is_large else None)
