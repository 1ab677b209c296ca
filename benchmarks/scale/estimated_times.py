"""Are the times that `mvcca.compare` expects of fits and rankings those that they take?

    python -m benchmarks.scale.estimated_times [--data digits wikipedia ...] [--methods default]
        [--rows 5000] [--components 10] [--epochs 3] [--tuned]

For each data set and method: CPU seconds of a fit to 80 % of the objects and of ranking the others,
as estimated from shapes before and as measured, their ratio, and the same for peak memory beside
the data. Times below 0.1 s do not count. Networks are trained for `--epochs` only. With a
`--components` of 0, all components are found. With `--tuned`, fold statistics choose the settings
of a fit: methods without them are left out.
"""

from __future__ import annotations

import argparse
import os
import warnings
from time import process_time
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["digits", "wikipedia", "captions", "multi30k", "mnist", "wide"]
    parser.add_argument("--data", nargs="+", choices=known, default=known)
    parser.add_argument("--methods", nargs="+", default=["all"], help="names or groups")
    parser.add_argument("--rows", type=int, default=5000, help="of each data set, at most")
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=3, help="of networks")
    parser.add_argument("--tuned", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_mnist_halves, fetch_multi30k, fetch_wikipedia
from mvcca import Labels, Views, datasets
from mvcca.comparison.costs import Shapes, costs_of, fit_work, measured_rates, ranking_work
from mvcca.comparison.data import Data
from mvcca.comparison.registry import METHODS, selected
from mvcca.machine.memory import PeakMemory
from mvcca.model_selection import tunable
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.ranking import Ranking

_COUNTS = 0.1  # seconds, below which no estimate is needed
_FACTOR = 2


def load(name: str, n_rows: int) -> tuple[Views, Labels | None]:
    """Views and labels of the first objects; words as TF-IDF."""
    if name == "digits":
        data = datasets.load_digits_views()
        views, labels = data.views, Labels.of(data.labels)
    elif name == "wikipedia":
        train = fetch_wikipedia(("deep", "w2v")).train
        views, labels = train.views, Labels.of(train.labels)
    elif name == "mnist":
        train = fetch_mnist_halves().train
        views, labels = train.views, Labels.of(train.labels)
    elif name in ("captions", "wide"):
        train = fetch_coco_captions().train
        views, labels = train.views.select(("cap0", "cap1")), Labels.of(train.labels)
    else:
        views, labels = fetch_multi30k().train.views.select(("en", "de")), None
    rows = slice(0, min(n_rows, 1500) if name == "wide" else n_rows)  # fewer than words
    views, labels = views[rows], None if labels is None else labels[rows]
    if views.is_sparse:
        views = views.replace({n: TfidfTransformer().fit_transform(X) for n, X in views.items()})
    return views, labels


def figures(
    method: Any, data: Data, parts: tuple[np.ndarray, np.ndarray], options: argparse.Namespace
) -> tuple[float, ...]:
    """Estimated and measured seconds of a fit and a ranking, and bytes of the fit."""
    train, test = parts
    given = {"n_components": options.components or None, "reg": 0.1, "random_state": 0}
    if method.is_deep:
        given |= {"max_epochs": options.epochs}
        del given["reg"]
    estimator, labels = method.build(given), data.fit_labels
    if options.tuned:
        estimator.set_params(**(tunable(estimator) or {}))
    shapes = Shapes.of(data, len(train))
    works = {
        "fit": fit_work(estimator, shapes),
        "ranking": ranking_work(estimator, shapes, len(test)),
    }
    costs = costs_of({name: work for name, work in works.items() if work is not None})
    few = train[:: len(train) // 100]  # compiles loops, and imports libraries
    clone(estimator).fit(data.views[few], None if labels is None else labels[few])
    views, y = data.views[train], None if labels is None else labels[train]
    start = process_time()
    with PeakMemory() as memory:
        estimator.fit(views, y)
    fit_seconds, start = process_time() - start, process_time()
    ranking, held_out = Ranking.of(estimator), data.views[test]
    measures, relevant = ["mr"], None
    if labels is not None:
        measures, relevant = ["map@50", "mr"], labels[test]
    evaluate_retrieval(ranking.project(held_out), relevant, measures=measures, estimator=ranking)
    ranking_seconds, n_bytes = process_time() - start, float(memory.n_bytes or 0)
    fit, ranked = costs["fit"], costs["ranking"]
    return fit.seconds, fit_seconds, ranked.seconds, ranking_seconds, fit.n_bytes, n_bytes


def main(options: argparse.Namespace) -> None:
    """Print a row per data set and method, and how many estimates are close."""
    print(machine(1))
    warnings.simplefilter("ignore")
    start = process_time()
    rates = measured_rates()
    print(f"measuring the machine took {process_time() - start:.2f} s: {rates}\n")
    print("| data | method | fit, s | measured | ratio | ranking, s | measured | MB | measured |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios: dict[str, list[float]] = {}
    for name in options.data:
        data = Data.of(*load(name, options.rows))
        order = np.random.RandomState(0).permutation(len(data.views))
        parts = np.split(order, [int(0.8 * len(order))])
        for method in (METHODS[own] for own in selected(options.methods)):
            if data.fit_labels is None and method.learns_from != "pairs":
                continue
            if options.tuned and "cv_goal" not in method.takes():
                continue
            try:
                found = figures(method, data, (np.sort(parts[0]), np.sort(parts[1])), options)
            except (ValueError, TypeError, MemoryError) as error:
                print(f"| {name} | {method.name} | {str(error)[:60]} |")
                continue
            fit, fit_measured, ranked, ranked_measured, n_bytes, n_measured = found
            for estimate, measured in ((fit, fit_measured), (ranked, ranked_measured)):
                if max(estimate, measured) >= _COUNTS:
                    ratios.setdefault(name, []).append(estimate / measured)
            print(
                f"| {name} | {method.name} | {fit:.2f} | {fit_measured:.2f} | "
                f"{fit / fit_measured:.2f} | {ranked:.3f} | {ranked_measured:.3f} | "
                f"{n_bytes / 1e6:.0f} | {n_measured / 1e6:.0f} |",
                flush=True,
            )
    print(f"\nwithin a factor of {_FACTOR}, of times of at least {_COUNTS} s:")
    for name, own in ratios.items():
        close = sum(1 / _FACTOR <= ratio <= _FACTOR for ratio in own)
        print(f"{name}: {close} of {len(own)}, {min(own):.2f} to {max(own):.2f}")


if __name__ == "__main__":
    main(OPTIONS)
