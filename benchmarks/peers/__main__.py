"""mvcca, its floor and other packages on the same data in one run: time, memory, test correlation.

Every fit runs in a separate process with one BLAS thread (mvcca also with two), and the packages
alternate, so that ratios are valid even if the speed of the machine drifts. The floor is the
minimum work of a covariance-based method; see `packages.floor`. Packages that are not installed are
skipped.

    python -m benchmarks.peers [--tasks a c] [--packages mvcca floor] [--repeats 3] [--limit 60]
    python -m benchmarks.peers --install

With --together, mvcca and its floor take turns in this process instead: minima of CPU time, which
other jobs on the machine change least.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="make the peers' environments")
    parser.add_argument("--together", action="store_true", help="mvcca and the floor, in turns")
    parser.add_argument("--tasks", nargs="+", help="all by default")
    parser.add_argument("--packages", nargs="+", help="all by default")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60, help="seconds a process may take")
    parser.add_argument("--small", action="store_true", help="a tenth of the rows and features")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    if OPTIONS.together:
        os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

from benchmarks._arguments import names_in
from benchmarks._measure import in_turns, machine
from benchmarks.peers.environments import install, interpreter
from benchmarks.peers.packages import PACKAGES, TWO_VIEWS_ONLY
from benchmarks.peers.tasks import TASKS, Task, views_of, write

SLOW = 10  # seconds, above which a fit is not repeated
MEASURE = "benchmarks.peers.measure"  # needs nothing but the package and NumPy

Run = dict[str, Any]


def main(options: argparse.Namespace) -> None:
    options.tasks = names_in(options.tasks, TASKS)
    options.packages = names_in(options.packages, PACKAGES)
    if options.install:
        install(options.packages)
        return
    if options.together:
        _take_turns(options)
        return
    missing = [package for package in options.packages if interpreter(package) is None]
    if missing:
        print(
            f"Not installed: {', '.join(missing)}. To install: python -m benchmarks.peers --install"
        )
    print(machine(1))
    for name in options.tasks:
        task = TASKS[name].shrunk() if options.small else TASKS[name]
        with tempfile.TemporaryDirectory() as folder:
            try:
                write(task, Path(folder))
            except FileNotFoundError as error:
                print(f"\n({name}) left out: {error}. Set MVCCA_DATA to the folder that holds it.")
                continue
            contestants = _contestants(task, options.packages)
            runs = _in_turns(contestants, Path(folder), options.repeats, options.limit)
        print(f"\n({name}) {task.title}\n")
        print("\n".join(_table(runs)), flush=True)


def _take_turns(options: argparse.Namespace) -> None:
    """Print CPU seconds of mvcca and of the floor for each task, and their ratio."""
    print(machine(1))
    warnings.simplefilter("ignore")
    for name in options.tasks:
        task = TASKS[name].shrunk() if options.small else TASKS[name]
        views, _ = views_of(task)
        sides = {package: partial(PACKAGES[package], views, task) for package in ("mvcca", "floor")}
        cpu = {side: min(own.cpu) for side, own in in_turns(sides, options.repeats).items()}
        shown = f"mvcca {cpu['mvcca']:.3f} s, floor {cpu['floor']:.3f} s"
        print(f"({name}) {shown}, ratio {cpu['mvcca'] / cpu['floor']:.2f}", flush=True)


def _contestants(task: Task, packages: list[str]) -> dict[str, tuple[str, int]]:
    """Package and number of threads, by the name in the table."""
    able = [
        package
        for package in packages
        if interpreter(package)
        and not (len(task.widths) > 2 and package in TWO_VIEWS_ONLY)
        and not (task.is_pls and package not in ("mvcca", "floor"))
    ]
    contestants = {package: (package, 1) for package in able}
    if "mvcca" in able:
        contestants["mvcca, 2 threads"] = ("mvcca", 2)
    return contestants


def _in_turns(
    contestants: dict[str, tuple[str, int]], folder: Path, repeats: int, limit: float
) -> dict[str, list[Run]]:
    """Run every contestant once per round; those that fail or are slow, in the first round only."""
    runs: dict[str, list[Run]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, (package, threads) in contestants.items():
            if all("error" not in run and run["wall"] < SLOW for run in runs[name]):
                runs[name].append(_run(package, threads, folder, limit))
    return runs


def _run(package: str, threads: int, folder: Path, limit: float) -> Run:
    variables = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, str(threads))
    command = [str(interpreter(package)), "-m", MEASURE, package, str(folder)]
    try:
        done = subprocess.run(
            command, env=environment, timeout=limit, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return {"error": f"> {limit:g} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _table(runs: dict[str, list[Run]]) -> Iterator[str]:
    yield (
        "| | wall, s | CPU, s | CPU / floor | of minima | peak, MB | above the data, MB | "
        "test correlation |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    floor = runs.get("floor", [])
    for name, results in runs.items():
        if "error" in results[0]:
            yield f"| {name} | {results[0]['error'][:80]} | | | | | | |"
            continue
        middle = {key: statistics.median(run[key] for run in results) for key in results[0]}
        shares = [run["cpu"] / least["cpu"] for run, least in zip(results, floor, strict=False)]
        share = f"{statistics.median(shares):.2f}" if shares else ""
        least = min((run["cpu"] for run in floor), default=None)
        of_minima = f"{min(run['cpu'] for run in results) / least:.2f}" if least else ""
        yield (
            f"| {name} | {middle['wall']:.2f} | {middle['cpu']:.2f} | {share} | {of_minima} | "
            f"{middle['peak']:.0f} | {middle['growth']:.0f} | {middle['correlation']:.2f} |"
        )


if __name__ == "__main__":
    main(OPTIONS)
