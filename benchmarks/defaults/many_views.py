"""Retrieval between many views, within each view, and many-to-many: tables 4 and 5 of [1].

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.many_views
        [captions multi30k mfeat digits]

CCA and MLCCA are fitted to each pair of views, and, for retrieval within a view, to that view
twice, as in the paper; MVCCA and MVMLCCA are fitted once to all views. The last rows are
many-to-many: the first half of the views, added, as queries for the other half, and back (remark
(b); MVCCA and MVMLCCA only). Each method ranks by the similarity that it declares. A query does
not find itself, other than in the paper. Multi30K has no labels: only the same object is
relevant, and methods that learn from labels are not fitted.

[1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for Cross-modal
Matching and Retrieval", CVPRW 2022.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="all by default")
    parser.add_argument(
        "--weighting", default="auto", help="of CCA and MVCCA, as in evaluate_retrieval"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the SVD, or the split")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_mfeat, fetch_multi30k
from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views


@dataclass
class Case:
    """Training and test views, their labels if there are any, and settings for all methods."""

    train: Views
    train_labels: Any
    test: Views
    test_labels: Any
    n_components: int
    reg: float
    measure: str
    weighting: str = "auto"  # of methods with correlations


def captions(seed: int) -> Case:
    data = fetch_coco_captions()
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=seed)))
    train, test = words.fit_transform(data.train.views), words.transform(data.test.views)
    return Case(train, data.train.labels, test, data.test.labels, 50, 1e-2, "map@50:cutoff")


def multi30k(seed: int) -> Case:
    data = fetch_multi30k()
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(300, random_state=seed)))
    train, test = words.fit_transform(data.train.views), words.transform(data.test.views)
    return Case(train, None, test, None, 200, 1e-3, "r@1")


def mfeat(seed: int) -> Case:
    data = fetch_mfeat()
    return _halved(data.views, data.labels, seed)


def digits(seed: int) -> Case:
    data = load_digits_views("quadrants")
    return _halved(data.views, data.labels, seed)


def _halved(views: Views, labels: np.ndarray, seed: int) -> Case:
    train, test = train_test_split(
        np.arange(len(views)), test_size=0.25, random_state=seed, stratify=labels
    )
    scale = PerView(StandardScaler()).fit(views[train])
    parts = (scale.transform(views[rows]) for rows in (train, test))
    return Case(next(parts), labels[train], next(parts), labels[test], 9, 1e-1, "map@50:cutoff")


CASES: dict[str, Callable[[int], Case]] = {
    "captions": captions,
    "multi30k": multi30k,
    "mfeat": mfeat,
    "digits": digits,
}
PAIRWISE, JOINT = ("CCA", "MLCCA"), ("MVCCA", "MVMLCCA", 'MVMLCCA "sample"')


def methods(case: Case) -> dict[str, Any]:
    k, reg = case.n_components, case.reg
    listed = {"CCA": CCA(k, reg=reg), "MVCCA": MVCCA(k, reg=reg)}
    if case.train_labels is not None:
        listed["MLCCA"] = MLCCA(k, reg=reg)
        listed["MVMLCCA"] = MVMLCCA(k, reg=max(reg, 1e-2), within="label")
        listed['MVMLCCA "sample"'] = MVMLCCA(k, within="sample", reg=reg)
    return {name: listed[name] for name in (*PAIRWISE, *JOINT) if name in listed}


def fit(model: Any, views: Views, labels: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as fewer components than asked for
        model.fit(views, labels)
    return model, time.perf_counter() - start


def measured(case: Case, model: Any, test: Views, directions: Any) -> dict[Any, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = evaluate_retrieval(
            test,
            case.test_labels,
            measures=case.measure,
            directions=directions,
            estimator=model,
            weighting=case.weighting if hasattr(model, "expected_correlations_") else "auto",
        )
    return {(row.query, row.target): row.values[case.measure] for row in table}


def pair_by_pair(case: Case, make: Callable[[], Any]) -> tuple[dict[Any, float], float]:
    """Models of each pair of views, and of each view with itself."""
    values, total = {}, 0.0
    for pair in combinations(case.train.names, 2):
        model, seconds = fit(make(), case.train.select(pair), case.train_labels)
        values |= measured(case, model, case.test.select(pair), "cross")
        total += seconds
    if case.train_labels is None:  # nothing within a view is relevant
        return values, total
    for name in case.train.names:
        twice, test = (
            Views({name: views[name], "": views[name]}) for views in (case.train, case.test)
        )
        model, seconds = fit(make(), twice, case.train_labels)
        values |= measured(case, model, test, [(name, name)])
        total += seconds
    return values, total


def all_at_once(case: Case, model: Any) -> tuple[dict[Any, float], float]:
    """One model of all views, and its many-to-many retrieval."""
    names = case.train.names
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    model, seconds = fit(model, case.train, case.train_labels)
    directions = "cross" if case.train_labels is None else "all"
    values = measured(case, model, case.test, directions)
    return values | measured(case, model, case.test, [halves, halves[::-1]]), seconds


def report(title: str, case: Case) -> None:
    print(f"\n### {title}: {case.measure}, k = {case.n_components}, reg = {case.reg:g}")
    print(f"weighting {case.weighting}")
    print(
        f"\n{len(case.train):,} training and {len(case.test):,} test objects; seconds are of fits\n"
    )
    columns, seconds = {}, {}
    for name, model in methods(case).items():
        some = np.arange(min(200, len(case.train)))
        labels = None if case.train_labels is None else case.train_labels[some]
        fit(clone(model), case.train[some].select(case.train.names[:2]), labels)  # compile
        if name in PAIRWISE:
            columns[name], seconds[name] = pair_by_pair(case, lambda model=model: clone(model))
        else:
            columns[name], seconds[name] = all_at_once(case, model)
    print(f"| query → target | {' | '.join(columns)} |")
    print(f"|---|{'---|' * len(columns)}")

    def line(text: str, directions: list[Any]) -> None:
        cells = []
        for values in columns.values():
            known = [values[d] for d in directions if d in values]
            cells.append(f"{np.mean(known):.3f}" if known else "-")
        print(f"| {text} | {' | '.join(cells)} |")

    names = case.train.names
    cross, within = list(permutations(names, 2)), [(name, name) for name in names]
    for query, target in cross:
        line(f"{query} → {target}", [(query, target)])
    line("**average of pairs (table 4)**", cross)
    if case.train_labels is not None:
        for name in names:
            line(f"within {name}", [(name, name)])
        line("**average within (table 5)**", within)
    half = len(names) // 2
    first, second = "+".join(names[:half]), "+".join(names[half:])
    line(f"{first} → {second}", [(first, second)])
    line(f"{second} → {first}", [(second, first)])
    line("**average many-to-many**", [(first, second), (second, first)])
    print(f"| seconds | {' | '.join(f'{value:.2f}' for value in seconds.values())} |", flush=True)


def main(options: argparse.Namespace) -> None:
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))))
    for name in names_in(options.cases, CASES):
        report(name, replace(CASES[name](options.seed), weighting=options.weighting))


if __name__ == "__main__":
    main(OPTIONS)
