"""Regret of tuned comparisons: the best figure of every method's grid minus that of its choice.

    python -m benchmarks.defaults.compare_regret [--methods jrl ncca ...] [--cv 5]

Halves of scikit-learn's digits, mAP@50 over rows of the same digit. The grid of a method is the
product of all values that `compare` searches one after another; for methods that rank by it, each
with the profile likelihood and the likelihood; and numbers of components, of which the first ones
of a solution are taken. Its best setting is chosen on the held-out rows of the comparison itself,
by the mean over the folds: no method can do better, and a fair choice does worse.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from itertools import product
from typing import Any

METHODS = ("cca", "pls", "mlcca", "mvmlcca", "nkcca", "ncca", "jrl", "lgcfl", "cmolrs")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--cv", type=int, default=5)
    parser.add_argument("--rows", type=int, help="objects, at most")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

import mvcca
from benchmarks._measure import machine
from mvcca.comparison.registry import METHODS as REGISTRY
from mvcca.datasets import load_digits_views
from mvcca.model_selection import numbers_of_components, space_of, tunable
from mvcca.model_selection._goals import Projected, Sample, values_of
from mvcca.views.labels_by_view import LabelsByView


def best_of_grid(name: str, views: Any, y: np.ndarray, folds: Any) -> tuple[float, Any, int]:
    """Largest mean over the folds of mAP@50, its setting, and how many models were fitted."""
    values, n_models = defaultdict(list), 0
    for fold in folds:
        train, test = views[fold.train], views[fold.test]
        sample = Sample(test, LabelsByView.of(test, y[fold.test]), test.names)
        for setting in grid(name, train, y[fold.train]):
            estimator = REGISTRY[name].build(setting)
            try:
                model = estimator.fit(train, y[fold.train])
            except (ValueError, np.linalg.LinAlgError):  # more neighbours than rows, say
                continue
            n_models += 1
            for found, value in values_of_model(model, sample):
                values[tuple(setting.items()), found].append(value)
    means = {key: np.mean(own) for key, own in values.items() if len(own) == len(folds)}
    best = max(means, key=means.get)
    return float(means[best]), best, n_models


def grid(name: str, train: Any, y: np.ndarray) -> list[dict[str, Any]]:
    """All combinations of the values that a search tries one after another."""
    estimator = REGISTRY[name].build({"random_state": 0})
    estimator.set_params(**tunable(estimator))
    space = space_of(estimator, train, LabelsByView.of(train, y)).of(estimator)
    fixed = {"random_state": 0, **space.components}
    if space.has_prefixes:
        fixed.setdefault("n_components", None)
    return [
        {**fixed, **dict(zip(space.values, own, strict=True))}
        for own in product(*space.values.values())
    ]


def values_of_model(model: Any, sample: Sample) -> list[tuple[Any, float]]:
    """mAP@50 of held-out rows by ranking and number of components."""
    method, similarity = model.retrieval_ranking
    expected = getattr(getattr(model, "maps_", None), "expected", None)
    rankings = [similarity] if expected is None else ["profile-likelihood", "likelihood"]
    scores = dict(model.project(sample.views, method if expected is None else "variates").items())
    projected = Projected(scores, {}, expected)
    everything = projected.n_components
    found = []
    for number in numbers_of_components(everything):
        k = everything if number is None else number
        values = values_of("class", projected, sample, rankings, k)
        found += [((ranking, number), own.score) for ranking, own in values.items()]
    return found


def main(options: argparse.Namespace) -> None:
    """Print a line per method."""
    warnings.simplefilter("ignore")
    print(machine(1), flush=True)
    digits = load_digits_views()
    views, y = digits.views[: options.rows], np.asarray(digits.labels)[: options.rows]
    start = time.process_time()
    result = mvcca.compare(list(options.methods), views, y, cv=options.cv, budget=None)
    print(f"compare: {time.process_time() - start:.0f} s CPU")
    print("method   chosen  best of the grid  regret  models  CPU s  setting")
    bests = {}
    for name in options.methods:
        start = time.process_time()
        best, setting, n_models = best_of_grid(name, views, y, result.folds)
        seconds = time.process_time() - start
        title = REGISTRY[name].title
        chosen = result.mean(title, "map@50") if title in result.successes else float("nan")
        bests[title] = (best, chosen)
        regret = best - chosen
        print(
            f"{title:8} {chosen:.3f}   {best:.3f}             {regret:.3f}   {n_models:4}   "
            f"{seconds:5.0f}  {setting}",
            flush=True,
        )
    first = max(bests, key=lambda title: bests[title][0])
    named = max(bests, key=lambda title: bests[title][1])
    print(
        f"best of all grids: {first} {bests[first][0]:.3f}; "
        f"named by compare: {named} {bests[named][1]:.3f}"
    )


if __name__ == "__main__":
    main(OPTIONS)
