"""Timing in alternating runs, so that ratios are valid even if the speed of the machine drifts."""

from __future__ import annotations

import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass
class Timing:
    """Wall and CPU seconds of the runs of one function."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{statistics.median(self.wall):8.2f} s wall {statistics.median(self.cpu):8.2f} s CPU"
        )


def in_turns(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    """Run every function once per round; compare medians, not single runs."""
    timings = {name: Timing() for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            wall, cpu = time.perf_counter(), time.process_time()
            function()
            timings[name].wall.append(time.perf_counter() - wall)
            timings[name].cpu.append(time.process_time() - cpu)
    return timings


def ratio(ours: Timing, theirs: Timing) -> str:
    """Median over the rounds of ours / theirs, wall and CPU."""
    wall = statistics.median(a / b for a, b in zip(ours.wall, theirs.wall, strict=True))
    cpu = statistics.median(a / b for a, b in zip(ours.cpu, theirs.cpu, strict=True))
    return f"{wall:.2f} x wall, {cpu:.2f} x CPU"


@contextmanager
def peak_memory() -> Iterator[dict[str, float]]:
    """Maximum growth of the process in megabytes while the block runs (Linux)."""
    result = {"MB": 0.0}
    start, done = _resident(), threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            result["MB"] = max(result["MB"], (_resident() - start) / 1e6)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield result
    finally:
        done.set()
        watcher.join()


def machine(threads: int) -> str:
    """Describe the machine in one line."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), {threads} BLAS threads, load {load:.1f}, "
        f"numpy {np.__version__}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}"
    )


def _resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
