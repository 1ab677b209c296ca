"""What labels add to CCA when there are few classes: digits and MNIST, cut into views.

    python benchmarks/supervised_halves.py [digits] [mnist]

Prints one table per data set, in the form in which RESULTS.md keeps them: mean average precision
of cosine ranking, an item being relevant if it shows the query's digit. MNIST needs mnist.npz in
the folder that MVCCA_DATA names.
"""

from __future__ import annotations

import sys
import warnings
from time import perf_counter

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from mvcca.datasets import fetch_mnist_halves, load_digits_views
from mvcca.linear import MLCCA, MVCCA, MVMLCCA, with_labels_as_view
from mvcca.retrieval import evaluate_retrieval

MEASURES = ("map", "map@50:cutoff")
SEEDS = range(5)


def methods(wide, reg):
    """Name, estimator, and whether labels enter as a view; `wide` is more than the classes give."""
    return [
        ("CCA", MVCCA(9, reg=reg), False),
        ("CCA", MVCCA(wide, reg=reg), False),
        ("MVCCA, labels as a view", MVCCA(9, reg=reg), True),
        ("MVCCA, labels as a view", MVCCA(9, reg=reg, power=4), True),
        ("MVCCA, labels as a view", MVCCA(wide, reg=reg), True),
        ("MVCCA, labels as a view", MVCCA(wide, reg=reg, power=4), True),
        ("cluster-CCA", MLCCA(9, similarity="equal", reg=reg), False),
        ("cluster-CCA", MLCCA(9, similarity="equal", reg=reg, power=1), False),
        ("MLCCA", MLCCA(9, reg=reg), False),
        ("MLCCA", MLCCA(9, reg=0.25), False),
        ('MVMLCCA within="label"', MVMLCCA(9, reg=1e-4), False),
        ('MVMLCCA within="label"', MVMLCCA(9, reg=1e-2), False),
        ('MVMLCCA within="label"', MVMLCCA(9, reg=1.0), False),
        ('MVMLCCA within="label"', MVMLCCA(9, reg=10.0, power=4), False),
        ('MVMLCCA within="label"', MVMLCCA(9, reg=1000.0), False),
        ('MVMLCCA within="sample"', MVMLCCA(9, within="sample", reg=reg), False),
        ('MVMLCCA within="sample"', MVMLCCA(9, within="sample", reg=reg, power=1), False),
        ('MVMLCCA within="sample"', MVMLCCA(9, within="sample", reg=reg, power=4), False),
    ]


def measure(model, labels_as_view, train, y, test, digits):
    """Rows (mAP, AP@50) for every ordered pair of views, and seconds of the fit."""
    rows = with_labels_as_view(train, y) if labels_as_view else train
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*distinct label sets", category=UserWarning)
        model.fit(rows, y)
    seconds = perf_counter() - start
    table = evaluate_retrieval(model.transform(test), digits, metrics=MEASURES)
    return np.array([[row.values[name] for name in MEASURES] for row in table]), seconds


def settings(model):
    parts = [f"k={model.n_components}", f"reg={model.reg:g}"]
    return " ".join(parts + ([f"power={model.power:g}"] if model.power else []))


def digits():
    """Four tables in one: parts of the image, and labels to learn from; judged by the digit."""
    problems = [(p, y) for p in ("halves", "quadrants") for y in ("digit", "segments")]
    print("| method | settings | " + " | ".join(f"{p}, {y}" for p, y in problems) + " |")
    print("|---|---|" + "---|" * len(problems))
    for name, model, labels_as_view in methods(wide=16, reg=1e-2):
        cells = []
        for parts, labels in problems:
            data = load_digits_views(parts, labels)
            values = []
            for seed in SEEDS:
                train, test = train_test_split(
                    np.arange(len(data.views)),
                    test_size=597,
                    random_state=seed,
                    stratify=data.digits,
                )
                y = [data.labels[i] for i in train]
                found, _ = measure(
                    clone(model),
                    labels_as_view,
                    data.views[train],
                    y,
                    data.views[test],
                    data.digits[test],
                )
                values.append(found.mean(axis=0))
            mean, deviation = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            cells.append(f"{mean[0]:.3f} ± {deviation[0]:.3f} ({mean[1]:.3f})")
        print(f"| {name} | {settings(model)} | " + " | ".join(cells) + " |", flush=True)


def mnist():
    """Left to right and right to left."""
    data = fetch_mnist_halves()
    test, y_test = data.test.views[:3000], data.test.labels[:3000]
    print(
        "| method | settings | mAP left → right | right → left | AP@50 left → right "
        "| right → left | fit s |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, model, labels_as_view in methods(wide=50, reg=1e-4):
        found, seconds = measure(
            clone(model), labels_as_view, data.train.views, data.train.labels, test, y_test
        )
        cells = [*found[:, 0], *found[:, 1]]
        print(
            f"| {name} | {settings(model)} | "
            + " | ".join(f"{value:.3f}" for value in cells)
            + f" | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    for table in sys.argv[1:] or ["digits", "mnist"]:
        print(f"\n{table}")
        {"digits": digits, "mnist": mnist}[table]()
