"""Kernel, factor, graph and label methods on Wikipedia: mean average precision in both directions.

    MVCCA_DATA=../shared/data python benchmarks/wikipedia.py [--features sift deep] [--methods ...]

Images are represented by 128 SIFT words or deep features, articles by 10 LDA topics; 2,173 training
and 693 test pairs in 10 classes. Parameters are selected from a grid by 5-fold cross-validation on
the training rows (mean of both directions); test rows are used once. The published figures are for
4,096 deep features, 3,000 word counts and 462 test pairs: only the order of methods is comparable.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass, field
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", nargs="+", default=["sift", "deep"], choices=["sift", "deep"])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from _arguments import names_in
from _measure import machine
from real import fetch_wikipedia
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVMLCCA,
    NCCA,
    PLS,
    PerView,
    evaluate_retrieval,
    retrieval_scorer,
)


class PropagatedJRL(JRL):
    """JRL with its published similarity, on labels propagated from training rows."""

    def transform(self, X, y=None):
        return self.propagate(X)


@dataclass
class Method:
    """An estimator, its parameter grid, and the similarity of its scores."""

    model: Any
    grid: dict[str, list[Any]] = field(default_factory=dict)
    similarity: str = "cosine"
    published: str = ""


K = [5, 7, 9]
RIDGES = [1e-3, 1e-2, 1e-1, 1.0]
KERNEL = {"n_components": [7, 9], "reg": [1e-2, 1e-1, 1.0]}
SMOOTH = {"reg": [3e-3, 1e-2, 3e-2], "smoothness": [0.0, 1.0], "n_neighbors": [30, 100]}
METHODS = {
    "CCA": Method(CCA(), {"n_components": K, "reg": [0.0, *RIDGES]}, published=".298 / .273"),
    "PLS": Method(PLS(), {"n_components": K}),
    "CFA": Method(CFA(), {"n_components": K}, published=".319 / .316"),
    "KCCA": Method(KCCA(), KERNEL, published=".438 / .389"),
    "FKCCA": Method(KCCA(approximation="fourier", n_landmarks=500, random_state=0), KERNEL),
    "NKCCA": Method(KCCA(approximation="nystroem", n_landmarks=500, random_state=0), KERNEL),
    "NCCA": Method(
        NCCA(reducer=PCA(0.8)),
        {"n_components": [7, 9], "n_neighbors": [20, 50], "bandwidth": [0.5, 1.0]},
    ),
    "cluster-CCA": Method(MLCCA(label_similarity="equal"), {"n_components": K, "reg": RIDGES}),
    'MVMLCCA, within="sample"': Method(
        MVMLCCA(within="sample"), {"n_components": K, "reg": RIDGES}
    ),
    "LGCFL": Method(LGCFL(), {"reg": [3e-3, 1e-2, 3e-2]}, published=".466 / .431"),
    "JRL, cosine": Method(JRL(), SMOOTH),
    "JRL, its similarity": Method(PropagatedJRL(), SMOOTH, "inner", ".479 / .428"),
    "CMOLRS": Method(
        CMOLRS(random_state=0),
        {"n_components": [5, 9], "learning_rate": [0.3, 1.0, 3.0]},
        "inner",
        "map@100 .413",
    ),
}


def measure(name: str, features: str, data: Any, jobs: int) -> None:
    method = METHODS[name]
    search = GridSearchCV(
        Pipeline([("scale", PerView(StandardScaler())), ("model", method.model)]),
        {f"model__{parameter}": values for parameter, values in method.grid.items()},
        scoring=retrieval_scorer("map", similarity=method.similarity),
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        n_jobs=jobs,
        error_score="raise",
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more components than 10 topics allow
        search.fit(data.train.views, data.train.labels)
    seconds = time.perf_counter() - start
    table = evaluate_retrieval(
        search.transform(data.test.views),
        data.test.labels,
        measures="map",
        similarity=method.similarity,
    )
    forth, back = (row.values["map"] for row in table)
    settings = " ".join(f"{k[7:]}={v:g}" for k, v in search.best_params_.items())
    print(
        f"| {name} | {features} + lda | {settings} | {search.best_score_:.3f} "
        f"| {forth:.3f} / {back:.3f} | {method.published} | {seconds:.0f} |",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))), end="\n\n")
    titles = ["method", "features", "chosen", "validation", "test, i → t / t → i", "published", "s"]
    print(f"| {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|")
    for features in options.features:
        data = fetch_wikipedia(views=(features, "lda"))
        for name in names_in(options.methods, METHODS):
            measure(name, features, data, options.jobs)


if __name__ == "__main__":
    main(OPTIONS)
