"""Physical memory of this machine, and the memory that a computation takes."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread
from typing import Self

_STATISTICS = Path("/proc/self/statm")
_SECONDS = 0.002  # between two looks


def memory_bytes() -> float:
    """Physical memory of this machine; infinite if the system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


class PeakMemory:
    """Largest increase of this process's resident memory within the body of a ``with`` statement.

    A thread samples it. Memory that is freed and taken again within the process does not count, so
    the first of several equal computations shows the largest value. `n_bytes` is None where the
    system does not report resident memory (other systems than Linux).
    """

    n_bytes: int | None = None

    def __enter__(self) -> Self:
        self._before, self._is_done = _resident_bytes(), Event()
        if self._before is not None:
            self.n_bytes = 0
            self._thread = Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        if self._before is not None:
            self._thread.join()
            self._look()

    def _watch(self) -> None:
        while not self._is_done.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        now = _resident_bytes()
        if now is not None and self._before is not None and self.n_bytes is not None:
            self.n_bytes = max(self.n_bytes, now - self._before)


def _resident_bytes() -> int | None:
    try:
        return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
