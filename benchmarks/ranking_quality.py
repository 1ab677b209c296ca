"""What ranking by expected correlations is worth: plain and weighted cosine on held-out rows.

CCA of real data at several ridges, ranked by the cosine of canonical variates and by
`retrieval_scores`, with the correlations expected (leave-one-out), of the training rows, and
measured on a held-out fifth. R@1 of pairs, or mean average precision by labels, in both directions.

    MVCCA_DATA=../shared/data python benchmarks/ranking_quality.py [mnist captions ...] [--splits 5]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _measure import machine
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import (
    fetch_coco_captions,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_scene,
    fetch_wikipedia,
    load_digits_views,
)

RIDGES = (1e-3, 1e-2, 1e-1)


@dataclass
class Case:
    """Training and test rows of one split, and how retrieval is measured."""

    train: Views
    test: Views
    labels: Any
    n_components: int
    measure: str


def texts(views: Views, held_out: Views, names: tuple[str, str], n: int) -> tuple[Views, Views]:
    """Latent semantic analysis of word counts."""
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(n, random_state=0)))
    return words.fit_transform(views.select(names)), words.transform(held_out.select(names))


def standardized(train: Views, test: Views) -> tuple[Views, Views]:
    scale = PerView(StandardScaler()).fit(train)
    return scale.transform(train), scale.transform(test)


def mnist(rng: np.random.Generator) -> Case:
    data = fetch_mnist_halves()
    train = data.train.views[rng.permutation(len(data.train.views))[:10_000]]
    test = data.test.views[rng.permutation(len(data.test.views))[:3_000]]
    return Case(train, test, None, 50, "r@1")


def multi30k(language: str, k: int) -> Callable[[np.random.Generator], Case]:
    def case(rng: np.random.Generator) -> Case:
        data = fetch_multi30k()
        train = data.train.views[np.sort(rng.permutation(len(data.train.views))[:25_000])]
        return Case(*texts(train, data.test.views, ("en", language), 300), None, k, "r@1")

    return case


def captions(rng: np.random.Generator) -> Case:
    data = fetch_coco_captions()
    train = data.train.views[np.sort(rng.permutation(len(data.train.views))[:3_600])]
    return Case(*texts(train, data.test.views, ("cap0", "cap1"), 200), None, 150, "r@1")


def wikipedia(rng: np.random.Generator) -> Case:
    data = fetch_wikipedia(views=("deep", "w2v"))
    train = data.train.views[np.sort(rng.permutation(len(data.train.views))[:2_000])]
    return Case(train, data.test.views, data.test.labels, 40, "map")


def scene(rng: np.random.Generator) -> Case:
    data = fetch_scene()
    train, test = standardized(data.train.views, data.test.views)
    train = train[np.sort(rng.permutation(len(train))[:1_100])]
    return Case(train.select(("u", "v")), test.select(("u", "v")), data.test.labels, 20, "map")


def split(views: Views, labels: Any, n: int, k: int, rng: np.random.Generator) -> Case:
    order = rng.permutation(len(labels))
    train, test = standardized(views[order[:n]], views[order[n:]])
    return Case(train, test, np.asarray(labels)[order[n:]], k, "map")


def mfeat(rng: np.random.Generator) -> Case:
    data = fetch_mfeat()
    return split(data.views.select(("fou", "kar")), data.labels, 1_500, 40, rng)


def digits(rng: np.random.Generator) -> Case:
    data = load_digits_views()
    return split(data.views, data.labels, 1_200, 20, rng)


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "mnist": mnist,
    "multi30k en-de": multi30k("de", 200),
    "multi30k en-cs": multi30k("cs", 300),
    "captions": captions,
    "wikipedia": wikipedia,
    "scene": scene,
    "mfeat": mfeat,
    "digits": digits,
}


def rankings(case: Case, reg: float, rng: np.random.Generator) -> Iterator[tuple[str, float]]:
    """Each way to rank, and its figure."""

    def measured(model: CCA, similarity: Any = None) -> float:
        options = {"measures": case.measure, "similarity": similarity, "estimator": model}
        return evaluate_retrieval(case.test, case.labels, **options).mean()[case.measure]

    model = CCA(case.n_components, reg=reg).fit(case.train)
    yield "cosine", measured(model, "cosine")
    yield "expected", measured(model)
    model.expected_correlations_ = correlations(model, case.train)
    yield "training", measured(model)
    order = rng.permutation(len(case.train))
    rest, held_out = np.sort(order[len(order) // 5 :]), np.sort(order[: len(order) // 5])
    fitted = CCA(case.n_components, reg=reg).fit(case.train[rest])
    k = min(model.n_components_, fitted.n_components_)
    found = np.zeros(model.n_components_)
    found[:k] = correlations(fitted, case.train[held_out])[:k]
    model.expected_correlations_ = np.maximum(found, 1 / np.sqrt(len(held_out)))
    yield "held out", measured(model)


def correlations(model: CCA, views: Views) -> np.ndarray:
    scores = model.transform(views)
    x, y = (scores[name] - scores[name].mean(axis=0) for name in scores.names)
    return (x * y).sum(axis=0) / np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    print(machine(1), "\n")
    print("| data | measure | reg | cosine | expected | training | held out |")
    print("|---|---|---|---|---|---|---|")
    warnings.simplefilter("ignore")
    for name in options.cases:
        cases = [CASES[name](np.random.default_rng(seed)) for seed in range(options.splits)]
        for reg in RIDGES:
            figures: dict[str, list[float]] = {}
            for seed, case in enumerate(cases):
                for ranking, value in rankings(case, reg, np.random.default_rng(seed)):
                    figures.setdefault(ranking, []).append(value)
            cells = (f"{np.mean(v):.3f} ± {np.std(v, ddof=1):.3f}" for v in figures.values())
            print(f"| {name} | {cases[0].measure} | {reg:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
