"""What `mvcca.compare` costs, and how far its figures hold for rows that it has not seen.

    python -m benchmarks.defaults.compare [--parts cost rows digits held permuted values]

cost      CPU seconds of ``compare("default")`` at 1,000 pairs of 384 features with ten classes.
rows      the same at half, all and twice as many pairs, and the exponent of seconds in rows.
digits    mean average precision and R@1 by method on halves of 1,797 digits.
held      300 digits are compared; the methods, refit with their settings, search the other 1,497.
permuted  labels of the digits in random order: class values, and those of random scores.
values    mAP@50 of label methods on folds of the digits, with the query's own counterpart.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

PARTS = ("cost", "rows", "digits", "held", "permuted", "values")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=1000, help="number of pairs")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

import mvcca
from benchmarks._measure import machine
from benchmarks.real import fetch_coco_captions, fetch_mnist_halves, fetch_scene, fetch_wikipedia
from mvcca import Labels, Views
from mvcca.datasets import load_digits_views

N_FEATURES, N_SHARED, N_CLASSES = 384, 40, 10
N_DIGITS = 1000  # rows of an option from which all digits are taken


def load(name: str, n_rows: int) -> tuple[Views, Labels]:
    """Views and labels; of MNIST and the captions, the first objects."""
    if name == "digits":
        data = load_digits_views()
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


def pairs(n: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Pairs of views of classes with noise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, N_CLASSES, n)
    shared = 0.7 * rng.standard_normal((N_CLASSES, N_SHARED))[y]
    shared += rng.standard_normal((n, N_SHARED))
    views = {
        name: shared @ rng.standard_normal((N_SHARED, N_FEATURES))
        + 6 * rng.standard_normal((n, N_FEATURES))
        for name in ("image", "text")
    }
    return views, y


def seconds(n: int) -> float:
    """CPU seconds of a comparison of so many pairs."""
    views, y = pairs(n)
    start = time.process_time()
    mvcca.compare("default", views, y, budget=None)
    return time.process_time() - start


def cost(options: argparse.Namespace) -> None:
    """Print the seconds of one comparison."""
    print(f"{options.rows} pairs of {N_FEATURES} features: {seconds(options.rows):.1f} CPU s")


def rows(options: argparse.Namespace) -> None:
    """Print seconds by rows, and their exponent."""
    sizes, found = [options.rows // 2, options.rows, 2 * options.rows], []
    for n in sizes:
        found.append(seconds(n))
        print(f"{n} pairs: {found[-1]:.1f} CPU s", flush=True)
    exponent = np.polyfit(np.log(sizes), np.log(found), 1)[0]
    print(f"exponent in rows: {exponent:.2f}")


def digits(_: argparse.Namespace) -> None:
    """Print the table of the digits."""
    data = load_digits_views()
    start = time.process_time()
    result = mvcca.compare("default", data.views, data.labels, budget=None)
    print(result)
    print(f"{time.process_time() - start:.1f} CPU s")


def held(_: argparse.Namespace) -> None:
    """Print R@1 and mean average precision as stated, and as refits find them in fresh rows."""
    data = load_digits_views()
    order = np.random.RandomState(0).permutation(len(data.labels))
    train, fresh = np.sort(order[:300]), np.sort(order[300:])
    views, y = data.views[fresh], data.labels[fresh]
    result = mvcca.compare(
        "default", data.views[train], data.labels[train], budget=None, gallery_size=len(fresh)
    )
    print(f"300 rows compared; {len(fresh)} fresh rows are the gallery")
    for goal in result.goals:
        for name in result.ranked_for(goal):
            model, own = result.refit(name, goal), result.standing(name, goal)
            if goal == "object":
                table = mvcca.evaluate_retrieval(views, measures="r@1", estimator=model)
                print(f"R@1 {name}: stated {own.at(len(fresh))[0]:.3f}, fresh {mean(table):.3f}")
            else:
                print(
                    f"mAP@50 {name}: stated {own.value:.3f}, fresh {precision(model, views, y):.3f}"
                )


def mean(table: mvcca.RetrievalTable) -> float:
    """The mean of the only measure."""
    return float(next(iter(table.mean().values())))


def precision(model: object, views: Views, y: np.ndarray) -> float:
    """mAP@50 without the query's own object."""
    from mvcca.model_selection.goals import Asked, RankedSample
    from mvcca.retrieval.ranking import Ranking
    from mvcca.views.labels_by_view import LabelsByView

    asked = Asked(("class",), len(views))
    sample = RankedSample(views, LabelsByView.of(views, y), views.names, asked)
    return sample.values_by(Ranking.of(model))["class"].score


def permuted(_: argparse.Namespace) -> None:
    """Print class values with labels in random order."""
    data = load_digits_views()
    y = np.random.default_rng(0).permutation(data.labels)
    result = mvcca.compare(["cca", "sm"], data.views, y, budget=None)
    chance = result.chance_of_goals["class"]
    for name in result.ranked_for("class"):
        own = result.standing(name, "class")
        print(f"{name}: {own.value:.3f} ± {own.reach:.3f}, chance {chance:.3f}")


def values(options: argparse.Namespace) -> None:
    """Print means over the folds of mAP@50 as an evaluation measures it."""
    data = load_digits_views()
    few = slice(0, None if options.rows >= N_DIGITS else options.rows)
    result = mvcca.compare(
        ["sm", "klr", "jrl"], data.views[few], data.labels[few], measures="map@50", budget=None
    )
    for name in result.methods:
        print(f"{name}: mAP@50 {result.mean(name, 'map@50'):.3f}")


def main(options: argparse.Namespace) -> None:
    """Print the parts."""
    warnings.simplefilter("ignore")
    print(machine(1), flush=True)
    for part in options.parts:
        print(f"-- {part}", flush=True)
        globals()[part](options)


if __name__ == "__main__":
    main(OPTIONS)
