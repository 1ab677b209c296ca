"""Deep methods with default settings, epoch by epoch: how long to train, and at which rate?

    python -m benchmarks.defaults.deep_training [--problems mnist-5000 captions wikipedia-deep+lda]
        [--methods DCCA SAM ...] [--rates 1e-3 3e-3] [--epochs 150] [--seeds 1] [--held-out]

Prints a row per data set, method and learning rate, with a measure of the validation rows after
some numbers of epochs, and in the best epoch: the total correlation for methods that maximize it,
mean reciprocal rank for methods that learn from pairs, and mean average precision for methods that
learn from labels, the last two by the cosine and averaged over directions. Nothing but the number
of epochs and the rate is set. Real data are read from the directory MVCCA_DATA.

With ``--held-out``, prints MRR or mAP of the test rows by the default ranking instead, of fits as
by default and of fits that set a tenth of the rows aside to stop at the best epoch.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", nargs="+", help="all by default")
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--rates", nargs="+", type=float, help="that of the method by default")
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--held-out", action="store_true", help="the effect of early stopping")
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
from mvcca import deep, evaluate_retrieval

CORRELATED = ("DCCA", "DCCAE", "DSDCCA", "L0CCA", "SoftHGR", "SoftCCA")
RANKED = ("LearnedRanking", "CCAL", "DSRankingCCA", "MSDS", "CorrAE", "CrossCorrAE")
LABELLED = ("SAM", "DeepSM", "ACMR", "CCL", "TwoBranch")
MEASURES = dict.fromkeys(CORRELATED, "correlation") | dict.fromkeys(RANKED, "MRR")
MEASURES |= dict.fromkeys(LABELLED, "mAP")
PROBLEMS = {p.name: p for p in (mnist_halves(5000), CAPTIONS, wikipedia("deep+lda"))}
N_COMPONENTS = {"mnist-5000": 50, "captions": 50, "wikipedia-deep+lda": 9}
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "a tenth held out": {"validation_fraction": 0.1, "max_epochs": 150, "patience": 20},
}


def cases(options: argparse.Namespace, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Data sets with methods; labels say little of halves of digits, which pairs tell apart."""
    for problem in names_in(options.problems, PROBLEMS):
        for method in names_in(options.methods, list(known)):
            if method not in LABELLED or not problem.startswith("mnist"):
                yield problem, method


def new(method: str, problem: str, **settings: Any) -> Any:
    """An estimator with as many components as a problem has; of DeepSM, one per label."""
    if method != "DeepSM":
        settings["n_components"] = N_COMPONENTS[problem]
    return getattr(deep, method)(**settings)


def tested(method: str, problem: str, way: str, options: argparse.Namespace) -> float:
    """MRR or mAP of test rows by the default ranking, mean over directions and seeds."""
    found, measure = [], "map" if method in LABELLED else "mrr"
    for seed in range(options.seeds):
        split = PROBLEMS[problem].split(seed, options.rows)
        model = new(method, problem, random_state=seed, **WAYS[way])
        labels = split.train.labels if measure == "map" else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(split.train.views, labels)
        table = evaluate_retrieval(
            split.test.views, split.test.labels, estimator=model, measures=measure
        )
        found.append(table.mean()[measure])
    return float(np.mean(found))


def print_held_out(options: argparse.Namespace) -> None:
    """A row per data set and method."""
    print(f"| data | method | measure | {' | '.join(WAYS)} |")
    print("|---" * (3 + len(WAYS)) + "|")
    for problem, method in cases(options, (*RANKED, *LABELLED)):
        figures = [tested(method, problem, way, options) for way in WAYS]
        cells = [problem, method, MEASURES[method], *(f"{value:.3f}" for value in figures)]
        print(f"| {' | '.join(cells)} |", flush=True)


def course(
    method: str, problem: str, rate: float | None, seed: int, options: argparse.Namespace
) -> np.ndarray:
    """The measure of the validation rows after each epoch."""
    split, measure = PROBLEMS[problem].split(seed, options.rows), MEASURES[method]
    monitor: Any = "valid_correlation"
    if measure != "correlation":
        monitor = Monitored(measure.lower(), "cosine")
    model = new(method, problem, max_epochs=options.epochs, monitor=monitor, random_state=seed)
    if rate is not None:
        model.set_params(learning_rate=rate)
    labels = [part.labels if measure == "mAP" else None for part in (split.train, split.valid)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(split.train.views, labels[0], X_val=split.valid.views, y_val=labels[1])
    column = "valid_total_correlation" if measure == "correlation" else "valid_monitor"
    return np.asarray(model.history_[column])


def main(options: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    if options.held_out:
        print_held_out(options)
        return
    shown = [n for n in (10, 20, 40, 60, 80, 100, 150, 200) if n <= options.epochs]
    print(f"{machine(1)}, torch {torch.__version__}, CPU; {options.seeds} seeds", end="\n\n")
    columns = ["data", "method", "rate", "measure", *map(str, shown), "best", "epoch", "CPU s"]
    print(f"| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")
    for problem, method in cases(options, MEASURES):
        for rate in options.rates or [None]:
            start = time.process_time()
            found = [course(method, problem, rate, seed, options) for seed in range(options.seeds)]
            seconds, mean = (time.process_time() - start) / options.seeds, np.mean(found, 0)
            digits = 2 if MEASURES[method] == "correlation" else 3
            cells = [problem, method, "default" if rate is None else f"{rate:g}"]
            cells += [MEASURES[method], *(f"{mean[n - 1]:.{digits}f}" for n in shown)]
            cells += [f"{mean.max():.{digits}f}", str(mean.argmax() + 1), f"{seconds:.0f}"]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
