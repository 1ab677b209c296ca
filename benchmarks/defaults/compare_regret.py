"""Regret of `compare`: the best method's figure on fresh rows minus that of the one it recommends.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.compare_regret
        [--data digits scene ...] [--rows 300 600] [--compared default] [--methods cca nkcca ...]
        [--gallery fresh] [--cache FOLDER]

`compare("default")`, or of the methods `--compared`, sees the training rows only. The method that
it recommends for a goal is fitted to all of these with the settings for that goal, and searches 900
to 1,500 fresh rows (fewer, if there are no more). So does every other method, with the settings
that its own folds choose. The figure is the mean reciprocal rank of the same object, and mAP@50 by
shared labels without the query's own counterpart; means of both directions. `--cache` keeps the
figures of all methods. With `--gallery fresh` the comparison is told how many rows will be searched
(`gallery_size`), instead of taking the number of training rows for it.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

METHODS = (
    "cca", "nkcca", "sm", "klr", "jrl", "ncca", "pls", "mlcca", "cluster-cca", "mvmlcca", "gcca",
    "procrustes", "affine", "lgcfl",
)  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", help="all by default")
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 600], help="to learn from")
    parser.add_argument("--compared", nargs="+", default=["default"], help="methods, by name")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="best of")
    parser.add_argument("--gallery", choices=("train", "fresh"), default="train")
    parser.add_argument("--cache", type=Path, help="folder for the figures of all methods")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

import mvcca
from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import PAIRS, Pair
from mvcca import RetrievalIndex, evaluate_retrieval
from mvcca.comparison.registry import METHODS as REGISTRY
from mvcca.model_selection.tuning import tunable

FRESH = 1_500  # rows at most
LEAST_FRESH = 250


def recommended(
    compared: list[str], train: Pair, gallery_size: int | None
) -> dict[str, tuple[str, Any]]:
    """The method that a comparison recommends for each goal, and the fitted estimator."""
    result = mvcca.compare(
        compared, train.views, train.labels, budget=None, gallery_size=gallery_size
    )
    best = {goal: result.best_for(goal) for goal in result.goals}
    return {goal: (name, result.refit(name, goal)) for goal, name in best.items()}


def tuned(name: str, train: Pair, goal: str) -> Any:
    """A method with the settings that its own folds choose for a goal."""
    estimator = REGISTRY[name].build({"random_state": 0})
    return estimator.set_params(**tunable(estimator), cv_goal=goal).fit(train.views, train.labels)


def figure(model: Any, fresh: Pair, goal: str) -> float:
    """How well fresh rows are found by the rows of the other view."""
    if goal == "object":
        table = evaluate_retrieval(fresh.views, measures="mrr", relevance="pairs", estimator=model)
        return table.mean()["mrr"]
    relevant = _relevant(fresh.labels)
    names, n = fresh.views.names, len(fresh.views)
    values = []
    for query, target in (names, names[::-1]):
        index = RetrievalIndex(model).add(fresh.views.select([target]), ids=np.arange(n))
        order = np.asarray(index.search(fresh.views.select([query]), target, k=n)[1])
        others = order[order != np.arange(n)[:, None]].reshape(n, n - 1)
        values.append(_mean_average_precision(others[:, :50], relevant))
    return float(np.mean(values))


def _relevant(labels: np.ndarray) -> np.ndarray:
    """Which rows share a label with each row, itself left out."""
    shared = labels[:, None] == labels if labels.ndim == 1 else labels @ labels.T > 0
    return shared & ~np.eye(len(labels), dtype=bool)


def _mean_average_precision(order: np.ndarray, relevant: np.ndarray) -> float:
    hits = np.take_along_axis(relevant, order, axis=1)
    precision = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    most = np.minimum(hits.shape[1], relevant.sum(axis=1))
    return float(np.mean((precision * hits).sum(axis=1) / np.maximum(most, 1)))


def halves(pair: Pair, n_rows: int) -> tuple[Pair, Pair] | None:
    """Training and fresh rows, drawn at random; None if there are too few."""
    order = np.random.RandomState(0).permutation(len(pair.views))
    parts = order[:n_rows], order[n_rows : n_rows + FRESH]
    if len(parts[1]) < LEAST_FRESH:
        return None
    train, fresh = (
        Pair(pair.views[rows], None if pair.labels is None else pair.labels[rows]) for rows in parts
    )
    return train, fresh


def figures(case: str, train: Pair, fresh: Pair, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of all methods by goal; those in the cache are not measured again."""
    path = options.cache and options.cache / f"{case}.json"
    known = json.loads(path.read_text()) if path and path.exists() else {}
    for goal in ["object", "class"][: 1 if train.labels is None else 2]:
        own = known.setdefault(goal, {})
        for name in options.methods:
            from_labels = REGISTRY[name].learns_from == "labels"
            if name not in own and not (from_labels and (goal == "object" or train.labels is None)):
                own[name] = figure(tuned(name, train, goal), fresh, goal)
                if path:
                    path.write_text(json.dumps(known))
    return known


def measured(name: str, n_rows: int, options: argparse.Namespace) -> dict[str, float]:
    """Print a line for each goal, and return the regrets."""
    try:
        parts = halves(PAIRS[name](), n_rows)
    except (ImportError, FileNotFoundError) as error:
        print(f"{name} skipped: {error}")
        return {}
    if parts is None:
        print(f"{name} has too few rows for {n_rows} and {LEAST_FRESH}")
        return {}
    train, fresh = parts
    start = time.process_time()
    n_fresh = len(fresh.views) if options.gallery == "fresh" else None
    chosen = recommended(options.compared, train, n_fresh)
    seconds = time.process_time() - start
    regrets = {}
    for goal, values in figures(f"{name}-{n_rows}", train, fresh, options).items():
        method, model = chosen[goal]
        value, best = figure(model, fresh, goal), max(values, key=values.get)
        regrets[goal] = max(values[best] - value, 0)
        print(
            f"{name:15} {n_rows:4} {len(fresh.views):5}  {goal:6}  {regrets[goal]:.3f}   "
            f"{method} {value:.3f}, best {REGISTRY[best].title} {values[best]:.3f}   {seconds:.0f}",
            flush=True,
        )
    return regrets


def main(options: argparse.Namespace) -> None:
    if options.cache:
        options.cache.mkdir(parents=True, exist_ok=True)
    print(machine(1), end="\n\n")
    print("data            rows fresh  goal    regret  recommended, best   CPU s of the comparison")
    found: dict[tuple[int, str], list[float]] = {}
    for name in names_in(options.data, PAIRS):
        for n_rows in options.rows:
            for goal, regret in measured(name, n_rows, options).items():
                found.setdefault((n_rows, goal), []).append(regret)
    print()
    for (n_rows, goal), own in sorted(found.items()):
        print(
            f"{n_rows} rows, {goal}: mean {np.mean(own):.4f}, largest {max(own):.3f} "
            f"({len(own)} data sets)"
        )


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        main(OPTIONS)
