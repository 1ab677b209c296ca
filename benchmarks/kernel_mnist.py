"""Kernel CCA of 50,000 MNIST halves, on Fourier features (FKCCA) and on landmarks (NKCCA).

    python benchmarks/kernel_mnist.py [--methods fourier nystroem] [--ranks 500 1000 2000 6000]
        [--rows 50000]

Prints the total correlation of 50 components on the 10,000 test images for RESULTS.md. The width of
the Gaussian kernels is the median distance; the ridge is the best of a grid on the 10,000
validation images. Moments of the features are computed once and solved for every ridge: "fit" is
the time of the moments and one solve. Needs mnist.npz in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import copy
import os
import time


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", help="all by default")
    parser.add_argument("--ranks", nargs="+", type=int, default=[500, 1000, 2000])
    parser.add_argument("--ridges", nargs="+", type=float, help="to choose from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="training images; all if not given")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from _arguments import names_in
from _measure import machine, peak_memory
from real import fetch_mnist_halves

from mvcca import KCCA
from mvcca.measures import total_correlation

RIDGES = {
    "fourier": (1e-8, 1e-6, 1e-4, 1e-3, 1e-2),
    "nystroem": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
}
TITLES = {"fourier": "FKCCA", "nystroem": "NKCCA"}
PUBLISHED = {("fourier", 6000): "41.7", ("nystroem", 6000): "45.1"}


def correlation(model, views):
    scores = model.transform(views)
    return total_correlation(scores["left"], scores["right"])


def with_ridge(model, reg, views):
    """The model with another ridge, from the moments of the views stored by its `partial_fit`."""
    other = copy.copy(model).set_params(reg=reg)
    rows = other.open_rows(views, None, None, reset=False, batch=True)
    other._fit_batches(rows, model._statistic)
    return other


def measure(data, method, rank, seed, ridges):
    model = KCCA(
        50,
        gamma="median",
        reg=ridges[0],
        approximation=method,
        n_landmarks=rank,
        random_state=seed,
    )
    with peak_memory() as peak:
        start = time.perf_counter()
        model.partial_fit(data.train.views)
        seconds = time.perf_counter() - start
        models = [model, *(with_ridge(model, reg, data.train.views) for reg in ridges[1:])]
    valid = [correlation(candidate, data.valid.views) for candidate in models]
    best = models[max(range(len(models)), key=valid.__getitem__)]
    test = correlation(best, data.test.views)
    published = PUBLISHED.get((method, rank), "")
    print(
        f"| {TITLES[method]} | {rank} | {best.reg:g} | {max(valid):.2f} | {test:.2f} | {published} "
        f"| {seconds:.0f} | {peak['MB'] / 1e3:.2f} |",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    data = fetch_mnist_halves()
    data.train.views = data.train.views[: options.rows]
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))), end="\n\n")
    print("| method | rank | reg | validation | test | published | fit, s | memory, GB |")
    print("|---|---|---|---|---|---|---|---|")
    for method in names_in(options.methods, TITLES):
        for rank in options.ranks:
            measure(data, method, rank, options.seed, options.ridges or RIDGES[method])


if __name__ == "__main__":
    main(OPTIONS)
