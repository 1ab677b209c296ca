"""Memory of this machine or container, what is free of it, and what a computation takes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Self

WIDE = 1_000  # features from which a square matrix over them, of 8 MB, outgrows a shared cache

_SYSTEM = Path("/")
_STATISTICS = Path("/proc/self/statm")
_SECONDS = 0.01  # between two looks


def memory_bytes() -> float:
    """Physical memory, or the smaller limit of the container; infinite if neither is known."""
    return min([_physical_bytes(), *(limit for limit, _ in _control_groups())])


def available_bytes() -> float:
    """Memory that this process can still take; infinite if the system does not report it.

    On Linux, this is the memory that is free or can be freed, or what a limit of the container, a
    control group of either version, leaves of it. Elsewhere, it is the physical memory.
    """
    left = [limit - used for limit, used in _control_groups()]
    return max(0.0, min([_physical_bytes(), _free_bytes(), *left]))


def readable(n_bytes: float) -> str:
    """A number of bytes in GB, MB or kB."""
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.1f} GB"
    return f"{n_bytes / 1e6:.0f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.0f} kB"


def _physical_bytes() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _free_bytes() -> float:
    with suppress(OSError, ValueError):
        for line in (_SYSTEM / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    return float("inf")


def _control_groups() -> Iterator[tuple[float, float]]:
    """Limit and use of every control group of this process that limits memory, and its parents."""
    try:
        groups = (_SYSTEM / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):
        return
    for line in groups:
        _, controllers, path = line.split(":", 2)
        root, names = _SYSTEM / "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        if "memory" in controllers.split(","):  # version 1
            root /= "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        elif controllers:
            continue
        limit, used, cached = names
        folder = root / path.strip("/")
        for place in dict.fromkeys([folder, *folder.parents, root]):  # in a container, often root
            if place == root or root in place.parents:
                with suppress(OSError, ValueError):
                    most, in_use = (float((place / name).read_text()) for name in (limit, used))
                    yield most, in_use - _statistic(place / "memory.stat", cached)


def _statistic(path: Path, name: str) -> float:
    """A value of a control group, 0 if unknown: cached files, which are dropped on demand."""
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return float(line.split()[1])
    return 0.0


class PeakMemory:
    """Largest increase of this process's resident memory within the body of a ``with`` statement.

    A thread samples it. Memory that is freed and taken again within the process does not count, so
    the first of several equal computations shows the largest value. `n_bytes` is None where the
    system does not report resident memory (other systems than Linux).
    """

    n_bytes: int | None = None

    def __enter__(self) -> Self:
        self._is_done = Event()
        with suppress(OSError):
            self._file = _STATISTICS.open("rb", buffering=0)  # kept open: opening takes longer
            self._before, self.n_bytes = 0, 0
            self._look()
            self._before, self.n_bytes = self.n_bytes, 0
            self._thread = Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        if self.n_bytes is not None:
            self._thread.join()
            self._look()
            self._file.close()

    def _watch(self) -> None:
        while not self._is_done.wait(_SECONDS):
            self._look()

    def _look(self) -> None:
        """Note how much more memory is resident than before the body."""
        self._file.seek(0)
        n_bytes = int(self._file.read(100).split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.n_bytes = max(self.n_bytes or 0, n_bytes - self._before)
