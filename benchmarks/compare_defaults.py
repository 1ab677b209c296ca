"""Does `mvcca.compare` with its defaults name the method that an exhaustive evaluation finds best?

    python benchmarks/compare_defaults.py [--data digits wikipedia scene captions mnist]

The exhaustive evaluation has its own splits and its own measure: every method without networks is
fitted on five random halves of the training objects, ranks the held-out objects by a full matrix of
scores, and mAP@50 by labels is computed by loops over queries. It agrees if the method that compare
names is the best one or within its standard error over the splits.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from typing import Any

import numpy as np

import mvcca
from mvcca import Views, datasets
from mvcca.comparison import Labels
from mvcca.comparison.registry import GROUPS, METHODS
from mvcca.retrieval.ranking import Ranking

_SPLITS = 5
_QUERIES = 500  # per direction and split


def load(name: str) -> tuple[Views, Labels, int]:
    """Views, labels and number of components."""
    if name == "digits":
        data = datasets.load_digits_views()
        views = data.views.replace({n: X / 16 for n, X in data.views.items()})
        return views, Labels.of(data.labels), 9
    parts, n_components = {
        "wikipedia": (lambda: datasets.fetch_wikipedia(("sift", "lda")), 9),
        "scene": (datasets.fetch_scene, 5),
        "captions": (datasets.fetch_coco_captions, 32),
        "mnist": (datasets.fetch_mnist_halves, 9),
    }[name]
    data = parts()
    names = ("cap0", "cap1") if name == "captions" else data.train.views.names
    n_rows = slice(0, 6000)  # of MNIST
    views = Views.concatenate([part.views.select(names) for part in (data.train, data.test)])
    return views[n_rows], Labels.of(data.train.labels, data.test.labels)[n_rows], n_components


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
    rows = ranking.project(views)
    values = []
    for query in views.names:
        for target in views.names:
            if query != target:
                Q, X = np.asarray(rows[query], float), np.asarray(rows[target], float)
                if ranking.similarity == "cosine":
                    Q = Q / np.maximum(np.linalg.norm(Q, axis=1, keepdims=True), 1e-300)
                    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
                chosen = rng.permutation(len(Q))[:_QUERIES]
                for i in chosen:
                    values.append(average_precision(X @ Q[i], labels @ labels[i] > 0))
    return float(np.mean(values))


def exhaustive(views: Views, labels: Labels, n_components: int) -> dict[str, np.ndarray]:
    """mAP@50 of every method on each split."""
    found: dict[str, np.ndarray] = {}
    dense = labels.vectors.toarray().astype(int)
    for name in GROUPS["all"]:
        method = METHODS[name]
        if name == "kcca" and len(views) > 5000:
            continue
        params = {"n_components": n_components, "reg": 0.1, "random_state": 0}
        values = []
        for split in range(_SPLITS):
            rng = np.random.default_rng(100 + split)
            order = rng.permutation(len(views))
            n_train = int(0.8 * len(views))
            train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
            try:
                model = method.build(params).fit(views[train], labels.vectors[train])
            except ValueError:  # such as CCA of three views
                break
            values.append(own_evaluation(model, views[test], dense[test], rng))
        if values:
            found[method.title] = np.array(values)
    return found


def main() -> None:
    """Print both answers for each data set."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["digits", "wikipedia", "scene", "captions", "mnist"]
    parser.add_argument("--data", nargs="+", choices=known, default=known)
    warnings.simplefilter("ignore")
    for name in parser.parse_args().data:
        views, labels, n_components = load(name)
        start = perf_counter()
        result = mvcca.compare(
            "default", views, labels, params={"n_components": n_components}, measures="map@50"
        )
        seconds = perf_counter() - start
        values = exhaustive(views, labels, n_components)
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
    main()
