"""Measures of validation rows by epoch, for deep methods with default settings: how long to train?

    python -m benchmarks.defaults.epochs [--problems mnist-5000 captions wikipedia-deep+lda]
        [--methods CCAL SAM ...] [--epochs 150] [--seeds 1]

Prints a row per data set and method: mean reciprocal rank for methods that learn from pairs, mean
average precision for methods that learn from labels, both by the cosine and averaged over
directions and seeds, after some numbers of epochs and in the best epoch. Nothing but the number of
epochs is set. Real data are read from the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import time
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", help="all by default")
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, help="of each part, for a trial")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
import torch

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.papers.problems import CAPTIONS, mnist_halves, wikipedia
from benchmarks.papers.protocol import Monitored
from mvcca import deep

PAIRS = ("DCCA", "DSDCCA", "SoftHGR", "LearnedRanking", "CCAL", "DSRankingCCA", "MSDS")
LABELS = ("SAM", "DeepSM", "ACMR", "CCL", "TwoBranch")
PROBLEMS = {p.name: p for p in (mnist_halves(5000), CAPTIONS, wikipedia("deep+lda"))}
N_COMPONENTS = {"mnist-5000": 50, "captions": 50, "wikipedia-deep+lda": 20}


def course(method: str, problem: str, seed: int, n_epochs: int, n_rows: int | None) -> np.ndarray:
    """The measure of the validation rows after each epoch."""
    split = PROBLEMS[problem].split(seed, n_rows)
    learns_labels = method in LABELS
    monitor = Monitored("map" if learns_labels else "mrr", "cosine")
    model = getattr(deep, method)(max_epochs=n_epochs, monitor=monitor, random_state=seed)
    if method != "DeepSM":  # a component per label
        model.set_params(n_components=N_COMPONENTS[problem])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            split.train.views,
            split.train.labels if learns_labels else None,
            X_val=split.valid.views,
            y_val=split.valid.labels if learns_labels else None,
        )
    return np.asarray(model.history_["valid_monitor"])


def main(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    shown = [n for n in (10, 20, 40, 60, 80, 100, 150, 200) if n <= options.epochs]
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    columns = ["data", "method", "measure", *map(str, shown), "best", "epoch", "CPU s"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for problem in names_in(options.problems, PROBLEMS):
        for method in names_in(options.methods, dict.fromkeys((*PAIRS, *LABELS))):
            if method in LABELS and problem.startswith("mnist"):
                continue
            start = time.process_time()
            found = [
                course(method, problem, seed, options.epochs, options.rows)
                for seed in range(options.seeds)
            ]
            mean = np.mean(found, axis=0)
            cells = [problem, method, "mAP" if method in LABELS else "MRR"]
            cells += [f"{mean[n - 1]:.3f}" for n in shown]
            cells += [f"{mean.max():.3f}", str(mean.argmax() + 1)]
            cells.append(f"{(time.process_time() - start) / options.seeds:.0f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
