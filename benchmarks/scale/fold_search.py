"""Time of a search by fold statistics against scikit-learn's search, and of tuned fits.

    python -m benchmarks.scale.fold_search [--tasks search tuned] [--repeats 3] [--small]

search: 9 ridges x 5 folds on task (a) of `benchmarks/peers`, by `FoldSearchCV`, by scikit-learn's
`GridSearchCV` and, if `make bench-peers` has installed it, by as many fits and scores of cca-zoo in
its own environment, which is the least that its search does. Scores of the first two must be equal.
Then the peak memory of `FoldSearchCV`, in matrices over the features of both views.

tuned: CCA, MVCCA and PLS of 60,000 x (2,048 + 300) float32 with all components, with their settings
chosen by folds, against the three plain fits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import tracemalloc
from pathlib import Path


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    tasks = ("search", "tuned")
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="a tenth of the rows and features")
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)  # directory of the task
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

RIDGES = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
N_FOLDS = 5


def folds_of(n_rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and held-out rows of random folds."""
    parts = np.array_split(np.random.RandomState(0).permutation(n_rows), N_FOLDS)
    return [(np.setdiff1d(np.arange(n_rows), part), np.sort(part)) for part in parts]


def of_peer(folder: Path) -> None:
    """Print CPU seconds of fits and scores of cca-zoo, in the environment of that package."""
    from dataclasses import replace

    from benchmarks.peers.packages import cca_zoo
    from benchmarks.peers.tasks import read_task, read_views

    task, views = read_task(folder), read_views(folder, "train")
    start = time.process_time()
    for train, test in folds_of(task.n):
        for ridge in RIDGES:
            project = cca_zoo([X[train] for X in views], replace(task, reg=ridge))
            scores = project([X[test] for X in views])
            [np.corrcoef(a, b)[0, 1] for a, b in zip(scores[0].T, scores[1].T, strict=True)]
    print(json.dumps(time.process_time() - start))


def search(small: bool, repeats: int) -> None:
    """Compare searches on task (a)."""
    from sklearn.model_selection import GridSearchCV

    from benchmarks._measure import in_turns, ratio
    from benchmarks.peers.environments import interpreter
    from benchmarks.peers.tasks import TASKS, read_views, write
    from mvcca import CCA, FoldSearchCV, Views

    task = TASKS["a"].shrunk() if small else TASKS["a"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(task, folder)
        x, y = read_views(folder, "train")
        views, grid, folds = Views({"x": x, "y": y}), {"reg": list(RIDGES)}, folds_of(task.n)
        fitted = {}

        def by(kind: type) -> None:
            fitted[kind] = kind(CCA(task.k), grid, cv=folds).fit(views)

        timings = in_turns(
            {"FoldSearchCV": lambda: by(FoldSearchCV), "GridSearchCV": lambda: by(GridSearchCV)},
            repeats,
        )
        print(f"{len(RIDGES)} ridges x {N_FOLDS} folds, {task.title}")
        for label, timing in timings.items():
            print(f"{label:14s} {timing}")
        ours, theirs = (np.array(fitted[k].cv_results_["mean_test_score"]) for k in fitted)
        print(f"GridSearchCV takes {ratio(timings['GridSearchCV'], timings['FoldSearchCV'])}")
        print(f"largest difference of scores: {abs(ours - theirs).max():.1e}")
        tracemalloc.start()
        by(FoldSearchCV)
        statistics = tracemalloc.get_traced_memory()[1] / (8 * sum(task.widths) ** 2)
        tracemalloc.stop()
        print(f"peak memory: {N_FOLDS} folds + {statistics - N_FOLDS:.2f} statistics; goal + 3")
        python = interpreter("cca-zoo")
        if python is None:
            print("cca-zoo is not installed: make bench-peers")
            return
        command = [str(python), "-m", "benchmarks.scale.fold_search", "--peer", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = json.loads(done.stdout)
        least = min(timings["FoldSearchCV"].cpu)
        print(f"cca-zoo        {seconds:8.2f} s CPU, {seconds / least:.1f} x FoldSearchCV")


def tuned(small: bool, repeats: int) -> None:
    """Compare tuned fits with plain ones."""
    from benchmarks._measure import in_turns, ratio
    from mvcca import CCA, MVCCA, PLS, Views

    scale = 10 if small else 1
    rng = np.random.default_rng(0)
    n, widths = 60_000 // scale, (2_048 // scale, 300 // scale)
    latent = rng.standard_normal((n, 128), dtype=np.float32)
    blocks = {}
    for name, width in zip(("image", "text"), widths, strict=True):
        blocks[name] = latent @ rng.standard_normal((128, width), dtype=np.float32)
        blocks[name] += 5 * rng.standard_normal((n, width), dtype=np.float32)
    views = Views(blocks)
    plain = [CCA(None, reg=0.1), MVCCA(None, reg=0.1), PLS(None)]
    searched = [CCA(None, reg="cv"), MVCCA(None, reg="cv"), PLS("cv")]

    def fit(models: list) -> None:
        for model in models:
            model.fit(views)

    sides = {"tuned": lambda: fit(searched), "plain": lambda: fit(plain)}
    timings = in_turns(sides, repeats)
    print(f"CCA, MVCCA and PLS, n = {n:,}, d = {widths}, float32, all components")
    for label, timing in timings.items():
        print(f"{label:6s} {timing}")
    print(f"tuned fits take {ratio(timings['tuned'], timings['plain'])}; goal 3")


def main(options: argparse.Namespace) -> None:
    """Run the tasks."""
    if options.peer:
        of_peer(options.peer)
        return
    from benchmarks._measure import machine

    print(machine(1), flush=True)
    for name in options.tasks:
        {"search": search, "tuned": tuned}[name](options.small, options.repeats)


if __name__ == "__main__":
    main(OPTIONS)
