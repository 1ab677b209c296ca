"""One fit of one package in a separate process; prints time and memory as a line of JSON.

    python -m benchmarks.peers.measure PACKAGE FOLDER

Imports, reading the data and a first fit of 50 rows are not measured.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import warnings
from dataclasses import replace
from itertools import combinations
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package")
    parser.add_argument("folder", type=Path, help="of the task")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from benchmarks.peers.packages import PACKAGES
from benchmarks.peers.tasks import read_task, read_views


def main(package: str, folder: Path) -> None:
    warnings.simplefilter("ignore")
    task, fit = read_task(folder), PACKAGES[package]
    rng = np.random.default_rng(0)
    small = replace(task, n=50, widths=(6,) * len(task.widths), k=2)
    fit([rng.standard_normal((50, 6)) for _ in task.widths], small)
    views = read_views(folder, "train")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _memory("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        project = fit(views, task)
    except Exception as error:  # whatever a package raises is a result
        print(json.dumps({"error": f"{type(error).__name__}: {error}".splitlines()[0]}))
        return
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = _memory("VmHWM")
    scores = project(read_views(folder, "test"))
    result = {"wall": wall, "cpu": cpu, "peak": peak, "growth": peak - before}
    print(json.dumps(result | {"correlation": _total_correlation(scores)}))


def _total_correlation(scores: list[np.ndarray]) -> float:
    """Correlation of a component in two views, averaged over pairs of views and added up."""
    unit = [S - S.mean(axis=0) for S in scores]
    unit = [S / np.linalg.norm(S, axis=0) for S in unit]
    return float(np.mean([np.vdot(S, T) for S, T in combinations(unit, 2)]))


def _memory(field: str) -> float:
    """Megabytes; unlike ru_maxrss, not inherited from the process that started this one (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024 / 1e6


if __name__ == "__main__":
    main(OPTIONS.package, OPTIONS.folder)
