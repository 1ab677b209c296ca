"""Units of columns: tuned CCA on columns as they are, standardized, and scaled as folds choose.

One split per data set; 600 rows to learn from and 400 others to search (breast cancer: 380 and
189), mean of both directions. Object: mean reciprocal rank of the row's own counterpart. Class:
mAP@50 over rows that share a label. All components, ridge and ranking chosen by folds. The first
table has the views as they are, and the processor's seconds of the fits with scales chosen, as a
multiple of those without. The second multiplies every column by 10^U(-3, 3) first.

    MVCCA_DATA=../shared/data python -m benchmarks.defaults.units [cancer mor-zer ...]
        [--goals object class] [--rows 600]
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
    parser.add_argument("--goals", nargs="+", default=["object", "class"])
    parser.add_argument("--rows", type=int, default=600, help="to learn from")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA

from benchmarks._arguments import names_in
from benchmarks._measure import machine
from benchmarks.real import PAIRS, Pair, fetch_mfeat, fetch_mnist_halves
from mvcca import CCA, KCCA, PerView, Views, evaluate_retrieval

GALLERY = 400
SCALES = {"never": False, "always": True, "chosen": "auto"}
MEASURES = {"object": "mrr", "class": "map@50"}
BELOW = 0.02  # of the standardized fit, on columns in random units


def cancer() -> Pair:
    data = load_breast_cancer()
    return Pair(Views({"mean": data.data[:, :10], "error": data.data[:, 10:20]}), data.target)


def mnist() -> Pair:
    data = fetch_mnist_halves()["train"]
    return Pair(data.views[:4_000], data.labels[:4_000])


def fac_pix() -> Pair:
    data = fetch_mfeat()
    return Pair(data.views.select(("fac", "pix")), data.labels)


CASES: dict[str, Callable[[], Pair]] = {
    "cancer": cancer,
    "mor-zer": PAIRS["mfeat-mor-zer"],
    "fou-kar": PAIRS["mfeat-fou-kar"],
    "fac-pix": fac_pix,
    "mnist": mnist,
    "mnist-scores": mnist,  # principal components of the training rows
    **{
        name: PAIRS[name] for name in ("digits", "scene", "wikipedia", "wikipedia-deep", "captions")
    },
}


def split(name: str, n_rows: int) -> tuple[Views, Any, Views, Any]:
    """Training rows and labels, test rows and labels."""
    views, labels = CASES[name]()
    n_rows = min(n_rows, 380) if name == "cancer" else n_rows
    order = np.random.RandomState(0).permutation(len(views))
    train, test = order[:n_rows], order[n_rows : n_rows + GALLERY]
    parts = views[train], views[test]
    if name == "mnist-scores":
        scores = PerView(PCA(200, svd_solver="full")).fit(parts[0])
        parts = tuple(scores.transform(part) for part in parts)
    return parts[0], np.asarray(labels)[train], parts[1], np.asarray(labels)[test]


def in_random_units(*parts: Views) -> list[Views]:
    rng = np.random.RandomState(1)
    units = {name: 10 ** rng.uniform(-3, 3, width) for name, width in parts[0].widths.items()}
    return [
        Views({name: np.asarray(X) * units[name] for name, X in part.items()}) for part in parts
    ]


def figure(model: Any, views: Views, labels: Any, goal: str) -> float:
    given = labels if goal == "class" else None
    table = evaluate_retrieval(views, given, estimator=model, measures=MEASURES[goal])
    return float(table.mean()[MEASURES[goal]])


def fits(data: tuple[Views, Any, Views, Any], goal: str) -> tuple[dict[str, float], float, str]:
    """Test values by scale, seconds with scales chosen per second without, and the choice."""
    views, y, held_out, y_test = data
    values, seconds, chosen = {}, {}, ""
    for name, scale in SCALES.items():
        start = time.process_time()
        model = CCA(None, reg="cv", cv_goal=goal, scale=scale).fit(views, y)
        seconds[name] = time.process_time() - start
        values[name] = figure(model, held_out, y_test, goal)
        chosen = "".join("01"[own] for own in model.scale_.values())
    return values, seconds["chosen"] / seconds["never"], chosen


def table(title: str, names: list[str], goals: list[str], n_rows: int, damage: bool) -> None:
    print(title)
    print(f"{'':16}{'goal':8}", *(f"{scale:>8}" for scale in SCALES), "  scaled      CPU")
    found, ratios = [], []
    for name in names:
        train, y, test, y_test = split(name, n_rows)
        train, test = in_random_units(train, test) if damage else (train, test)
        for goal in goals:
            values, ratio, chosen = fits((train, y, test, y_test), goal)
            found.append([*values.values()])
            ratios.append(ratio)
            cells = " ".join(f"{value:8.3f}" for value in found[-1])
            print(f"{name:16}{goal:8} {cells}  {chosen:>6}  {ratio:5.2f} x", flush=True)
    values = np.array(found)
    print(f"{'mean':24}", *(f"{value:8.3f}" for value in values.mean(axis=0)))
    worst = float((values[:, 1] - values[:, 2]).max())
    print(f"largest loss to the standardized fit {worst:+.3f} (allowed {BELOW} in random units)")
    print(f"CPU with scales: median {np.median(ratios):.2f} x, largest {max(ratios):.2f} x\n")


def kernels(n_rows: int) -> None:
    """KCCA with ten components and its default ridge."""
    train, _, test, _ = split("mor-zer", n_rows)
    print("KCCA(10), mor-zer, object", end=":")
    for scale in (False, True, {"mor": True, "zer": False}, "auto"):
        model = KCCA(10, scale=scale).fit(train)
        print(f"  {scale} {figure(model, test, None, 'object'):.3f}", end="")
    print("\n")


def main(options: argparse.Namespace) -> None:
    names = names_in(options.cases, CASES)
    print(machine(1), end="\n\n")
    table("Views as they are", names, options.goals, options.rows, False)
    if "mor-zer" in names:
        kernels(options.rows)
    table("Every column x 10^U(-3, 3)", names, options.goals, options.rows, True)


if __name__ == "__main__":
    with warnings.catch_warnings(action="ignore"):
        main(OPTIONS)
