"""Seven folds of MNIST halves: linear, kernel and nonparametric CCA.

    python benchmarks/mnist_folds.py [--methods cca fkcca nkcca ncca] [--rank 1000] [--folds 7]
        [--rows 70000]

The protocol of table 1 of Friedlander and Wolf (2022): the 70,000 images are divided at random into
seven folds. Each fold is the test set once, and the other images are split at random into 50,000 to
train and 10,000 to validate. Prints for RESULTS.md the mean and the deviation of the total test
correlation of 50 components, and paired t-tests. The ridge is chosen once, on the validation images
of the first fold. --folds stops after fewer of the seven; the figure of each fold goes to the
standard error. Needs mnist.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from itertools import islice, pairwise


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--rank", type=int, default=1_000, help="Fourier features, landmarks")
    parser.add_argument("--folds", type=int, default=7, help="how many of the seven to run")
    parser.add_argument("--rows", type=int, help="images in all; by default 70,000")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from _arguments import names_in
from _measure import machine
from kernel_mnist import RIDGES, with_ridge
from real import fetch_mnist_halves
from scipy.stats import ttest_rel
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold, train_test_split

from mvcca import CCA, KCCA, NCCA, Views
from mvcca.measures import total_correlation

N_FOLDS = 7
VALID_SHARE = 1 / 6  # of the rows outside the fold: 10,000 of 60,000
PUBLISHED = {
    "cca": "28.88 ± 0.27",
    "fkcca": "41.71 ± 0.07 (rank 6,000)",
    "nkcca": "45.10 ± 0.04 (rank 6,000)",
    "ncca": "40.98 ± 0.12",
}


def estimators(rank):
    def kernel(approximation):
        return KCCA(
            50, gamma="median", approximation=approximation, n_landmarks=rank, random_state=0
        )

    return {
        "cca": (CCA(50), (1e-6, 1e-5, 1e-4, 1e-3)),
        "fkcca": (kernel("fourier"), RIDGES["fourier"]),
        "nkcca": (kernel("nystroem"), RIDGES["nystroem"]),
        "ncca": (NCCA(50, reducer=PCA(0.8), random_state=0), ()),
    }


def folds(views):
    """Training, validation and test rows."""
    for seed, (rest, test) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=0).split(views)):
        parts = train_test_split(rest, test_size=VALID_SHARE, random_state=seed)
        yield tuple(views[np.sort(rows)] for rows in (*parts, test))


def with_each_ridge(model, ridges, train):
    """The fitted model with each ridge; kernel moments are computed once."""
    if isinstance(model, KCCA):
        model.partial_fit(train)
        return [with_ridge(model, reg, train) for reg in ridges]
    return [clone(model).set_params(reg=reg).fit(train) for reg in ridges]


def correlation(model, views):
    scores = model.transform(views)
    return total_correlation(scores["left"], scores["right"])


def measure(name, model, ridges, splits):
    """Print the row of a method; return its test figures by fold."""
    figures, seconds = [], []
    for train, valid, test in splits:
        if ridges:  # the first fold
            fitted = with_each_ridge(model, ridges, train)
            best = max(fitted, key=lambda candidate: correlation(candidate, valid))
            model, ridges = clone(best), ()
        else:
            start = time.process_time()
            best = model.fit(train)
            seconds.append(time.process_time() - start)
        figures.append(correlation(best, test))
        print(f"  {name}, fold {len(figures)}: {figures[-1]:.2f}", file=sys.stderr, flush=True)
    reg = f"{model.reg:g}" if hasattr(model, "reg") else ""
    deviation = np.std(figures, ddof=len(figures) > 1)
    by_fold = " ".join(f"{figure:.2f}" for figure in figures)
    print(
        f"| {name.upper()} | {reg} | {np.mean(figures):.2f} ± {deviation:.2f} "
        f"| {by_fold} | {PUBLISHED[name]} | {np.mean(seconds):.0f} |",
        flush=True,
    )
    return np.array(figures)


def main(options: argparse.Namespace) -> None:
    data = fetch_mnist_halves()
    views = Views.concatenate([data.train.views, data.valid.views, data.test.views])
    views = views[: options.rows]
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))), end="\n\n")
    print("| method | reg | test | by fold | published | CPU of a fit, s |")
    print("|---|---|---|---|---|---|", flush=True)
    figures = {
        name: measure(name, *estimators(options.rank)[name], islice(folds(views), options.folds))
        for name in names_in(options.methods, PUBLISHED)
    }
    print()
    for one, other in pairwise(figures):
        p = ttest_rel(figures[other], figures[one]).pvalue
        print(f"{other.upper()} against {one.upper()}: p = {p:.1e}")


if __name__ == "__main__":
    main(OPTIONS)
