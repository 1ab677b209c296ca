"""Semantic matching and label regression beside other methods that learn from labels.

Rows in a random split; mAP@50 over rows that share a label, mean of both directions, in a gallery
of 400 rows. The first table compares tuned methods, with the processor's seconds of their fits;
the second, three ways to compare class probabilities, each with the ridge that suits it best.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.semantic_matching [digits scene ...]
        [--rows 300 600]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="all by default")
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 600], help="to learn from")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.base import clone

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import PAIRS
from mvcca import (
    JRL,
    KCCA,
    MLCCA,
    LabelRegression,
    SemanticMatching,
    Views,
    evaluate_retrieval,
)

GALLERY = 400
CASES = (
    "digits", "mnist", "mfeat-fou-kar", "mfeat-mor-zer", "scene", "wikipedia", "wikipedia-deep",
    "captions",
)  # fmt: skip
RIDGES = (1e-3, 1e-2, 0.1, 1.0)
METHODS = {
    "MLCCA": MLCCA(None, reg="cv", cv_goal="class"),
    "NKCCA": KCCA(None, reg="cv", approximation="nystroem", cv_goal="class", random_state=0),
    "JRL": JRL("cv"),
    "SM, columns": SemanticMatching(reg="cv", kernel="linear"),
    "SM, kernel": SemanticMatching(reg="cv", kernel="rbf", random_state=0),
    "SM, chosen": SemanticMatching(reg="cv", random_state=0),
    "KLR, chosen": LabelRegression("cv", random_state=0),
    "SM, default": SemanticMatching(random_state=0),
    "KLR, default": LabelRegression(random_state=0),
}
COMPARED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "inner product": lambda P: P,
    "cosine": lambda P: P / np.linalg.norm(P, axis=1, keepdims=True),
    "cosine of roots": lambda P: np.sqrt(P / P.sum(axis=1, keepdims=True)),
}


def figure(scores: Any, labels: Any, **options: Any) -> float:
    table = evaluate_retrieval(scores, labels, measures="map@50", **options)
    return table.mean()["map@50"]


def run(name: str, n_rows: int) -> tuple[list[str], list[str]]:
    """Rows of both tables."""
    views, labels = PAIRS[name]()
    order = np.random.RandomState(0).permutation(len(views))
    train, test = np.sort(order[:n_rows]), np.sort(order[n_rows : n_rows + GALLERY])
    y, y_test = np.asarray(labels)[train], np.asarray(labels)[test]
    methods, ways = [], []
    for estimator in METHODS.values():
        start = time.process_time()
        model = clone(estimator).fit(views[train], y)
        seconds = time.process_time() - start
        methods.append(f"{figure(views[test], y_test, estimator=model):.3f} {seconds:4.1f}")
    found = dict.fromkeys(COMPARED, 0.0)
    for reg in RIDGES:
        model = SemanticMatching(reg=reg, random_state=0).fit(views[train], y)
        scores = model.project(views[test])
        for way, of_rows in COMPARED.items():
            compared = Views({view: of_rows(P) for view, P in scores.items()})
            found[way] = max(found[way], figure(compared, y_test, similarity="inner"))
    ways = [f"{value:.3f}" for value in found.values()]
    return methods, ways


def main(options: argparse.Namespace) -> None:
    names = names_in(options.cases, CASES)
    print(machine(1), end="\n\n")
    rows = [(f"{name}, {n} rows", *run(name, n)) for n in options.rows for name in names]
    for title, columns, part in (
        ("Tuned methods: mAP@50, seconds of the fit", METHODS, 1),
        ("Ways to compare probabilities, best ridge each", COMPARED, 2),
    ):
        print(title)
        print(" " * 26, *(f"{column:>15}" for column in columns))
        for row in rows:
            print(f"{row[0]:26}", *(f"{value:>15}" for value in row[part]))
        print()


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        main(OPTIONS)
