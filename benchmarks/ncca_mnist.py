"""Nonparametric CCA of 50,000 MNIST halves, with nearest neighbors in principal components.

    python benchmarks/ncca_mnist.py [--components 50] [--neighbors 20] [--bandwidths 0.5]
        [--rows 50000]

Prints the total correlation on the 10,000 validation and the 10,000 test images for RESULTS.md.
Each view is reduced to the principal components that explain 80 % of its variance. Needs mnist.npz
in the directory MVCCA_DATA.
"""

from __future__ import annotations

import argparse
import os
import time


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--neighbors", type=int, default=20)
    parser.add_argument("--bandwidths", nargs="+", type=float, default=[0.5])
    parser.add_argument("--rows", type=int, help="training images; all if not given")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from _measure import machine, peak_memory
from real import fetch_mnist_halves
from sklearn.decomposition import PCA

from mvcca import NCCA
from mvcca.measures import total_correlation


def correlation(model, views):
    scores = model.transform(views)
    return total_correlation(scores["left"], scores["right"])


def measure(data, n_components, n_neighbors, bandwidth):
    model = NCCA(
        n_components,
        n_neighbors=n_neighbors,
        bandwidth=bandwidth,
        reducer=PCA(0.8),
        random_state=0,
    )
    with peak_memory() as peak:
        start = time.perf_counter()
        model.fit(data.train.views)
        fitted = time.perf_counter()
        test = correlation(model, data.test.views)
        projected = time.perf_counter()
    widths = " / ".join(str(s.reducer.n_components_) for s in model.smoothers_.values())
    print(
        f"| {n_neighbors} | {bandwidth:g} | {widths} | {model.canonical_correlations_.sum():.2f} "
        f"| {correlation(model, data.valid.views):.2f} | {test:.2f} | {fitted - start:.0f} "
        f"| {projected - fitted:.0f} | {peak['MB'] / 1e3:.2f} |",
        flush=True,
    )


def main(options: argparse.Namespace) -> None:
    data = fetch_mnist_halves()
    data.train.views = data.train.views[: options.rows]
    print(machine(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))), end="\n\n")
    print(
        "| K | h | principal components | train | validation | test | fit, s | transform, s "
        "| memory, GB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for bandwidth in options.bandwidths:
        measure(data, options.components, options.neighbors, bandwidth)


if __name__ == "__main__":
    main(OPTIONS)
