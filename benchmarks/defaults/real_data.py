"""The linear methods on real data: mean average precision and recall between all views.

Methods that learn only from labels are fitted twice, the second time with the rows of one view and
their labels shuffled. Since these methods do not use pairs, the results should not change; the
table gives the largest change.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.real_data [wikipedia scene captions]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="all by default")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._arguments import names_in
from benchmarks.real import fetch_coco_captions, fetch_scene, fetch_wikipedia
from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, PerView, Views, evaluate_retrieval


@dataclass
class Case:
    """Preprocessed training and test views with labels, and suitable sizes and measures."""

    train: Views
    train_labels: Any
    test: Views
    test_labels: Any
    n_components: int
    reg: float
    measures: list[str]


def wikipedia(views: tuple[str, str] = ("sift", "lda")) -> Case:
    data = fetch_wikipedia(views=views)
    train, test = data.train, data.test
    return Case(train.views, train.labels, test.views, test.labels, 7, 0.0, ["map", "map@50:hits"])


def scene() -> Case:
    data = fetch_scene()
    scale = PerView(StandardScaler()).fit(data.train.views)
    train, test = (scale.transform(part.views) for part in (data.train, data.test))
    measures = ["map", "map@50:hits", "r@1", "r@10"]
    return Case(train, data.train.labels, test, data.test.labels, 20, 1e-2, measures)


def captions() -> Case:
    data = fetch_coco_captions()
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=0)))
    train, test = words.fit_transform(data.train.views), words.transform(data.test.views)
    measures = ["map", "map@50:hits", "r@1", "r@10"]
    return Case(train, data.train.labels, test, data.test.labels, 50, 1e-2, measures)


CASES: dict[str, Callable[[], Case]] = {
    "wikipedia": wikipedia,
    "wikipedia, deep + lda": lambda: wikipedia(("deep", "lda")),
    "scene": scene,
    "captions": captions,
}


def methods(case: Case) -> dict[str, Any]:
    k, reg = case.n_components, case.reg
    listed = {
        "CCA": CCA(k, reg=reg),
        "MVCCA": MVCCA(k, reg=reg),
        "MLCCA": MLCCA(k, reg=reg),
        "cluster-CCA": MLCCA(k, label_similarity="equal", reg=reg),
        'MVMLCCA within="label"': MVMLCCA(k, reg=max(reg, 1e-2), within="label"),
        'MVMLCCA within="sample"': MVMLCCA(k, within="sample", reg=reg),
    }
    if len(case.train.names) > 2:  # CCA accepts two
        listed["CCA of the first two"] = listed.pop("CCA")
    return listed


def fit(model: Any, views: Views, labels: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(views, labels)


def shuffled(case: Case) -> tuple[Views, dict[str, Any]]:
    """The training views with the rows of the last one, and their labels, in another order."""
    order = np.random.default_rng(0).permutation(len(case.train))
    last = case.train.names[-1]
    blocks = {name: block[order] if name == last else block for name, block in case.train.items()}
    labels = dict.fromkeys(case.train.names, case.train_labels)
    return Views.unpaired(blocks), labels | {last: case.train_labels[order]}


def report(title: str, case: Case) -> None:
    print(f"\n{title}: train {case.train}, test {len(case.test)}")
    print(f"k={case.n_components}, reg={case.reg}, seed 0")
    header = "".join(f"{name:>14s}" for name in case.measures)
    print(f"{'':26s}{header}{'seconds':>10s}  shuffled")
    for name, model in methods(case).items():
        names = case.train.names[:2] if name == "CCA of the first two" else case.train.names
        start = time.perf_counter()
        fitted = fit(model, case.train.select(names), case.train_labels)
        seconds = time.perf_counter() - start
        table = evaluate_retrieval(
            fitted.transform(case.test.select(names)), case.test_labels, measures=case.measures
        )
        mean = table.mean()
        change = ""
        if isinstance(model, MLCCA | MVMLCCA):
            again = fit(model, *shuffled(case))
            moved = evaluate_retrieval(
                again.transform(case.test), case.test_labels, measures=case.measures
            ).mean()
            change = f"{max(abs(moved[m] - mean[m]) for m in mean):.1e}"
        figures = "".join(f"{mean[m]:14.4f}" for m in case.measures)
        print(f"{name:26s}{figures}{seconds:10.2f}  {change}")
        if len(names) == 2 and len(case.train.names) == 2:
            both = "  ".join(f"{row.query}→{row.target} {row.values['map']:.3f}" for row in table)
            print(f"{'':26s}  {both}")


def main(options: argparse.Namespace) -> None:
    for name in names_in(options.cases, CASES):
        report(name, CASES[name]())


if __name__ == "__main__":
    main(OPTIONS)
