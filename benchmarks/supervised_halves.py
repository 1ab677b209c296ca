"""Effect of labels on CCA: digits and MNIST split into views, and captions with many label sets.

    python benchmarks/supervised_halves.py [digits] [mnist] [captions] [--seeds 5]

Prints one table per data set for RESULTS.md: mean average precision of cosine ranking, where an
item is relevant if it shows the same digit as the query (a caption, if both images have a common
object), and R@10, where only the counterpart of the query is relevant. MNIST and captions need
mnist.npz and coco_val2017_captions.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import warnings


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", help="digits, mnist, captions; all by default")
    parser.add_argument("--seeds", type=int, default=5, help="of the splits of the digits")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from _arguments import names_in
from real import fetch_coco_captions, fetch_mnist_halves
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

from mvcca.compose import PerView
from mvcca.datasets import load_digits_views
from mvcca.linear import MLCCA, MVCCA, MVMLCCA, with_labels_as_view
from mvcca.retrieval import evaluate_retrieval

MEASURES = ("map", "map@50:cutoff", "r@10")


def methods(reg, few=9, many=50):
    """Name, estimator, and whether labels enter as a view; ten classes give nine components."""
    return [
        ("CCA", MVCCA(few, reg=reg), False),
        ("CCA", MVCCA(many, reg=reg), False),
        ("MVCCA, labels as a view", MVCCA(few, reg=reg), True),
        ("MVCCA, labels as a view", MVCCA(few, reg=reg, power=4), True),
        ("MVCCA, labels as a view", MVCCA(many, reg=reg), True),
        ("MVCCA, labels as a view", MVCCA(many, reg=reg, power=4), True),
        ("cluster-CCA", MLCCA(few, label_similarity="equal", reg=reg), False),
        ("cluster-CCA", MLCCA(few, label_similarity="equal", reg=reg, power=1), False),
        ("MLCCA", MLCCA(few, reg=reg), False),
        ("MLCCA", MLCCA(few, reg=0.25), False),
        ('MVMLCCA within="label"', MVMLCCA(few, reg=1e-4), False),
        ('MVMLCCA within="label"', MVMLCCA(few, reg=1e-2), False),
        ('MVMLCCA within="label"', MVMLCCA(few, reg=1.0), False),
        ('MVMLCCA within="label"', MVMLCCA(few, reg=10.0, power=4), False),
        ('MVMLCCA within="label"', MVMLCCA(few, reg=1000.0), False),
        ('MVMLCCA within="sample"', MVMLCCA(few, within="sample", reg=reg), False),
        ('MVMLCCA within="sample"', MVMLCCA(few, within="sample", reg=reg, power=1), False),
        ('MVMLCCA within="sample"', MVMLCCA(few, within="sample", reg=reg, power=4), False),
    ]


def measure(model, labels_as_view, train, y, test, y_test):
    """Rows (mAP, AP@50, R@10) for every ordered pair of views."""
    rows = with_labels_as_view(train, y) if labels_as_view else train
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*distinct label sets", category=UserWarning)
        model.fit(rows, y)
    table = evaluate_retrieval(model.transform(test), y_test, measures=MEASURES)
    return np.array([[row.values[name] for name in MEASURES] for row in table])


def settings(model):
    parts = [f"k={model.n_components}", f"reg={model.reg:g}"]
    return " ".join(parts + ([f"power={model.power:g}"] if model.power else []))


def digits(n_seeds):
    """Four experiments: parts of the image × training labels; evaluated by digit."""
    problems = [(p, y) for p in ("halves", "quadrants") for y in ("digit", "segments")]
    print("| method | settings | " + " | ".join(f"{p}, {y}" for p, y in problems) + " |")
    print("|---|---|" + "---|" * len(problems))
    for name, model, labels_as_view in methods(reg=1e-2, many=16):
        cells = []
        for parts, labels in problems:
            data = load_digits_views(parts, labels)
            values = []
            for seed in range(n_seeds):
                train, test = train_test_split(
                    np.arange(len(data.views)),
                    test_size=597,
                    random_state=seed,
                    stratify=data.digits,
                )
                y = [data.labels[i] for i in train]
                found = measure(
                    clone(model),
                    labels_as_view,
                    data.views[train],
                    y,
                    data.views[test],
                    data.digits[test],
                )
                values.append(found.mean(axis=0))
            mean, deviation = np.mean(values, axis=0), np.std(values, axis=0, ddof=len(values) > 1)
            cells.append(f"{mean[0]:.3f} ± {deviation[0]:.3f} ({mean[1]:.3f}, {mean[2]:.3f})")
        print(f"| {name} | {settings(model)} | " + " | ".join(cells) + " |", flush=True)


def mnist(_):
    """Left to right and right to left."""
    data = fetch_mnist_halves()
    train, test = data.train, Bunch(views=data.test.views[:3000], labels=data.test.labels[:3000])
    both_directions("left → right", "right → left", methods(reg=1e-4), train, test)


def captions(_):
    """Two captions of an image; 1,825 different sets of objects in 3,961 images."""
    data = fetch_coco_captions()
    labelled = data.train.labels.any(axis=1)
    to_vectors = PerView(
        make_pipeline(TfidfTransformer(sublinear_tf=True), TruncatedSVD(100, random_state=0))
    )
    train = Bunch(
        views=to_vectors.fit_transform(data.train.views.select(["cap0", "cap1"]))[labelled],
        labels=data.train.labels[labelled],
    )
    views = to_vectors.transform(data.test.views.select(["cap0", "cap1"]))
    test = Bunch(views=views, labels=data.test.labels)
    both_directions("1st → 2nd", "2nd → 1st", methods(reg=1e-2, few=32, many=100), train, test)


def both_directions(forth, back, lines, train, test):
    columns = [f"{name} {way}" for name in ("mAP", "AP@50", "R@10") for way in (forth, back)]
    print(f"| method | settings | {' | '.join(columns)} |")
    print("|---|---|" + "---|" * len(columns))
    for name, model, labels_as_view in lines:
        found = measure(model, labels_as_view, train.views, train.labels, test.views, test.labels)
        cells = " | ".join(f"{value:.3f}" for value in found.T.ravel())
        print(f"| {name} | {settings(model)} | {cells} |", flush=True)


if __name__ == "__main__":
    tables = {"digits": digits, "mnist": mnist, "captions": captions}
    for table in names_in(OPTIONS.tables, tables):
        print(f"\n{table}\n")
        tables[table](OPTIONS.seeds)
