"""Does `mvcca.compare` with its defaults name the method that an exhaustive evaluation finds best?

    python -m benchmarks.defaults.compare [--data digits wikipedia scene captions mnist] [--grid]
        [--rows 3000]

The exhaustive evaluation has its own splits and its own measure: every method without networks is
fitted to a random 80 % of the objects, five times, ranks the held-out objects by a full matrix of
scores, and mAP@50 by labels is computed by loops over queries. It agrees if the method that compare
names is the best one or within its standard error over the splits. With --grid, each method has the
number of components and the ridge of a grid that are best on these splits; exact KCCA is left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["digits", "wikipedia", "scene", "captions", "mnist"]
    parser.add_argument("--data", nargs="+", choices=known, default=known)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--rows", type=int, default=3000, help="of each data set, at most")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

import mvcca
from benchmarks.real import fetch_coco_captions, fetch_mnist_halves, fetch_scene, fetch_wikipedia
from mvcca import Labels, Views, datasets
from mvcca.comparison.registry import GROUPS, METHODS
from mvcca.retrieval.ranking import Ranking

_SPLITS = 5
_QUERIES = 500  # per direction and split
_PARAMS = {"n_components": 10, "reg": 0.1, "random_state": 0}  # the defaults of compare
_GRID = [{"n_components": k, "reg": r} for k in (10, 30) for r in (0.01, 0.1, 1.0)]


def load(name: str, n_rows: int) -> tuple[Views, Labels]:
    """Views and labels; of MNIST and the captions, the first objects."""
    if name == "digits":
        data = datasets.load_digits_views()
        views = data.views.replace({n: X / 16 for n, X in data.views.items()})
        return views, Labels.of(data.labels)
    data = {
        "wikipedia": lambda: fetch_wikipedia(("sift", "lda")),
        "scene": fetch_scene,
        "captions": fetch_coco_captions,
        "mnist": fetch_mnist_halves,
    }[name]()
    names = ("cap0", "cap1") if name == "captions" else data.train.views.names
    rows = slice(0, n_rows)
    views = Views.concatenate([part.views.select(names) for part in (data.train, data.test)])
    return views[rows], Labels.concatenate([data.train.labels, data.test.labels])[rows]


def average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    """AP@50 of one query with divisor min(50, R), by a loop."""
    hits, total = 0, 0.0
    for rank, item in enumerate(np.argsort(-scores, kind="stable")[:50], start=1):
        if relevant[item]:
            hits += 1
            total += hits / rank
    return total / max(1, min(50, int(relevant.sum())))


def own_evaluation(model: Any, views: Views, labels: np.ndarray, rng: Any) -> float:
    """mAP@50 over all directions."""
    ranking = Ranking.of(model)
    rows = ranking.project(views).rows
    values = []
    for query in views.names:
        for target in views.names:
            if query != target:
                queries = ranking.queries({query: np.asarray(rows[query], float)}, (target,))
                Q = ranking.similarity.queries(queries)
                X = ranking.similarity.items(
                    ranking.items({target: np.asarray(rows[target], float)})
                )
                chosen = rng.permutation(len(Q))[:_QUERIES]
                for i in chosen:
                    values.append(average_precision(X @ Q[i], labels @ labels[i] > 0))
    return float(np.mean(values))


def exhaustive(
    views: Views, labels: Labels, names: Sequence[str], grid: Sequence[dict[str, Any]]
) -> dict[str, np.ndarray]:
    """mAP@50 of every method on each split, with the best parameters of the grid."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        method = METHODS[name]
        start = perf_counter()
        estimators = {repr(one): one for one in (method.build(_PARAMS | params) for params in grid)}
        try:
            values = {text: of_splits(one, views, labels) for text, one in estimators.items()}
        except ValueError:  # such as CCA of three views
            continue
        best = max(values, key=lambda text: values[text].mean())
        found[method.title] = values[best]
        seconds = perf_counter() - start
        print(f"  {found[method.title].mean():.3f} {best} in {seconds:.0f} s", file=sys.stderr)
    return found


def of_splits(estimator: Any, views: Views, labels: Labels) -> np.ndarray:
    """mAP@50 of an estimator on each split."""
    dense = labels.matrix.toarray().astype(int)
    values = []
    for split in range(_SPLITS):
        rng = np.random.default_rng(100 + split)
        order = rng.permutation(len(views))
        n_train = int(0.8 * len(views))
        train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
        model = estimator.fit(views[train], labels[train])
        values.append(own_evaluation(model, views[test], dense[test], rng))
    return np.array(values)


def main(options: argparse.Namespace) -> None:
    """Print both answers for each data set."""
    warnings.simplefilter("ignore")
    names = [name for name in GROUPS["all"] if not (options.grid and name == "kcca")]
    for name in options.data:
        views, labels = load(name, options.rows)
        start = perf_counter()
        result = mvcca.compare("default", views, labels)
        seconds = perf_counter() - start
        values = exhaustive(views, labels, names, _GRID if options.grid else [{}])
        best = max(values, key=lambda title: values[title].mean())
        error = values[best].std(ddof=1) / np.sqrt(_SPLITS)
        agrees = values[result.best].mean() >= values[best].mean() - error
        print(
            f"{name}: compare names {result.best} ({result.mean(result.best, 'map@50'):.3f} ± "
            f"{result.standard_error(result.best, 'map@50'):.3f}) in {seconds:.1f} s; exhaustive "
            f"evaluation of {len(values)} methods names {best} ({values[best].mean():.3f} ± "
            f"{error:.3f}); {'agree' if agrees else 'DISAGREE'}",
            flush=True,
        )


if __name__ == "__main__":
    main(OPTIONS)
