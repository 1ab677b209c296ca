"""MVMLCCA and MLCCA on the labels of MS-COCO 2014, by label subsets and by tiles of similarities.

The labels are real (82,783 rows, 80 categories, 18,956 distinct sets); the 2048 and 300 float32
features are synthetic. One run measures

- the product GS and the label-weighted covariance SᵀGS, by the label subsets that sets share and by
  tiles of G, in float64 and float32, and how far they are apart;
- the best vectorized computation over pairs of rows that we know (one product per tile of
  distances, exp in place, products with both views), on a subset and extrapolated by n²;
- whole fits: as they are, and by tiles with the moments of all features;
- with ``--sets``, label sets drawn from Zipf's law (600 labels, 8 in the mean): the search for the
  subsets that they share, and a product with 64 columns.

    MVCCA_DATA=../shared/data python -m benchmarks.scale.label_covariance [--threads 2]
        [--repeats 3] [--rows 82783] [--sets 200000 1000000]
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="all training images if not given")
    parser.add_argument("--components", type=int, default=128)
    parser.add_argument("--sets", type=int, nargs="*", default=[])
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from benchmarks.real import fetch_coco_labels
from mvcca import MLCCA, MVMLCCA, Views
from mvcca.problem.shared_rows import SharedRows
from mvcca.similarity import LabelGram
from mvcca.similarity._shared_subsets import SharedSubsets
from mvcca.statistics import LabelSums
from mvcca.views import Labels

WIDTHS = {"image": 2048, "text": 300}
TILE = 1024
SUBSET = 20_000


def planted_views(indicators: np.ndarray, seed: int = 0) -> Views:
    """float32 features: a linear map of the labels, and noise."""
    rng = np.random.default_rng(seed)
    blocks = {}
    for name, width in WIDTHS.items():
        effect = rng.standard_normal((indicators.shape[1], width), dtype=np.float32)
        blocks[name] = indicators.astype(np.float32) @ effect
        blocks[name] += rng.standard_normal((len(indicators), width), dtype=np.float32)
    return Views(blocks)


@contextmanager
def tiles() -> Iterator[None]:
    """Compute similarities tile by tile, whatever they cost."""
    with patch("mvcca.similarity._shared_subsets._ENTRIES_PER_MEMBER", np.inf):
        yield


@contextmanager
def before() -> Iterator[None]:
    """Tiles, and moments of all features to tell the correlations of scores."""
    with tiles(), patch.object(SharedRows, "is_cheaper", lambda _: False):
        yield


def within(context: Callable, function: Callable) -> Callable:
    def run() -> object:
        with context():
            return function()

    return run


def pairs_of_rows(views: Views, indicators: np.ndarray) -> np.ndarray:
    """The covariance over pairs of rows: tiles of G from one product each, G symmetric."""
    X = np.concatenate([block - block.mean(axis=0) for _, block in views.items()], axis=1)
    Z = indicators.astype(np.float32)
    half = np.zeros((X.shape[1], X.shape[1]))
    norms = (Z * Z).sum(axis=1) / 2
    for start in range(0, len(X), TILE):
        rows, below = slice(start, start + TILE), slice(0, min(start + TILE, len(X)))
        tile = Z[rows] @ Z[below].T
        tile -= norms[rows, None]
        tile -= norms[below]
        np.exp(tile, out=tile)
        tile[:, rows] *= 0.5
        half += X[rows].T @ (tile @ X[below])
    return (half + half.T) / len(X) ** 2


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # some rows of COCO have no labels
    indicators = np.asarray(fetch_coco_labels().train.labels)[: options.rows]
    views = planted_views(indicators)
    with threadpool_limits(options.threads):
        print(machine(options.threads))
        labels = Labels.of(indicators)
        sums = LabelSums.of(views, labels)
        U, D = sums.sums.shape
        print(f"{len(views)} rows, U = {U} distinct label sets, D = {D} features, float32")
        for dtype in (np.float64, np.float32):
            products(sums, labels, np.dtype(dtype), options.repeats)
        print("  published, for the label-weighted covariance on the authors' machine: 7,500 s")

        subset, some = views[:SUBSET], indicators[:SUBSET]
        pairs = in_turns(
            {
                "grouping and covariance": lambda: grouped(views, indicators),
                f"pairs of {len(subset)} rows": lambda: pairs_of_rows(subset, some),
            },
            1,
        )
        for name, timing in pairs.items():
            print(f"  {name:28s}{timing}")
        ours, theirs = pairs.values()
        scale = (len(views) / len(subset)) ** 2
        print(
            f"  pairs of rows, extrapolated by (n / {len(subset)})² = {scale:.1f}, / ours: "
            f"{theirs.wall[0] * scale / ours.wall[0]:.0f} x wall, "
            f"{theirs.cpu[0] * scale / ours.cpu[0]:.0f} x CPU  (goal 10)"
        )
        same = pairs_of_rows(subset, some)
        error = np.abs(grouped(subset, some) - same).max() / np.abs(same).max()
        print(f"  both agree on the subset to {error:.1e} of the largest entry")

        data = sum(block.nbytes for _, block in views.items()) / 1e6
        print(f"whole fits of {options.components} components (the data: {data:.0f} MB)")
        for kind in (MVMLCCA, MLCCA):
            fits(kind(options.components), views, indicators, options.repeats)
        for n_sets in options.sets:
            many_sets(n_sets)


def products(sums: LabelSums, labels: Labels, dtype: np.dtype, repeats: int) -> None:
    """GS and SᵀGS by both routes."""
    S = sums.deviations(dtype=dtype)
    few = S[:, :256].copy()
    runs = {
        "GS, 256 columns": lambda: LabelGram(labels).times(few),
        "SᵀGS": lambda: LabelGram(labels).quadratic(S),
    }
    for name, run in runs.items():
        by_tiles = within(tiles, run)
        found, expected = run(), by_tiles()  # compiles
        error = np.abs(found - expected).max() / np.abs(expected).max()
        timings = in_turns({"subsets": run, "tiles": by_tiles}, repeats)
        for route, timing in timings.items():
            print(f"  {dtype} {name:16s} by {route:8s}{timing}")
        print(f"    subsets / tiles: {ratio(*timings.values())}; apart by {error:.1e}")


def fits(model: MVMLCCA | MLCCA, views: Views, indicators: np.ndarray, repeats: int) -> None:
    """A whole fit by both routes, and the growth of the process."""

    def fit() -> np.ndarray:
        return model.fit(views, indicators).eigenvalues_

    with peak_memory() as memory:
        now = fit()
    by_tiles = within(before, fit)
    error = np.abs(now - by_tiles()).max()
    timings = in_turns({"fit": fit, "by tiles and moments": by_tiles}, repeats)
    for name, timing in timings.items():
        print(f"  {type(model).__name__} {name:22s}{timing}")
    print(
        f"    fit / by tiles and moments: {ratio(*timings.values())}; + {memory['MB']:.0f} MB; "
        f"eigenvalues apart by {error:.1e}"
    )


def zipf_sets(n_sets: int, exponent: float, n_labels: int = 600, mean: float = 8) -> Labels:
    """Distinct label sets whose labels occur by Zipf's law."""
    rng, rows = np.random.default_rng(0), np.empty(0, np.intp)
    shares = np.arange(1, n_labels + 1.0) ** -exponent
    edges, found = np.cumsum(shares / shares.sum()), None
    while found is None or found.n_distinct < n_sets:
        sizes = np.maximum(1, rng.poisson(mean, n_sets + n_sets // 4))
        drawn = np.minimum(np.searchsorted(edges, rng.random(sizes.sum())), n_labels - 1)
        rows = np.repeat(np.arange(len(sizes)), sizes)
        sets = csr_array((np.ones(len(drawn)), (rows, drawn)), shape=(len(sizes), n_labels))
        sets.sum_duplicates()
        sets.data[:] = 1
        own = Labels.of(sets)
        found = own if found is None else Labels.concatenate([found, own])
    return Labels(found.vectors[:n_sets])


def many_sets(n_sets: int) -> None:
    for exponent in (0.5, 1.0):
        labels = zipf_sets(n_sets, exponent)
        S = np.random.default_rng(1).standard_normal((n_sets, 64))
        start = time.process_time()
        found = SharedSubsets.of(labels, 1.0)
        counted = time.process_time()
        if found is None:
            print(f"  {n_sets} sets, Zipf {exponent}: tiles, after {counted - start:.1f} s")
            continue
        product = found.times(S)
        end = time.process_time()
        rows = slice(0, 200)
        ours, all_sets = labels.vectors[rows].astype(float), labels.vectors.astype(float)
        apart = (ours @ all_sets.T).toarray() * -2
        apart += ours.sum(axis=1)[:, None] + all_sets.sum(axis=1)
        tile = np.exp(-apart / 2)
        begin = time.process_time()
        exact = tile @ S
        gemm = (time.process_time() - begin) * n_sets / 200
        error = np.abs(exact - product[rows]).max() / np.abs(exact).max()
        print(
            f"  {n_sets} sets, Zipf {exponent}: {found.n_members:,} members found in "
            f"{counted - start:.1f} s, GS of 64 columns {end - counted:.1f} s, against "
            f"{gemm:.0f} s for the products of tiles alone; error {error:.1e}"
        )


def grouped(views: Views, indicators: np.ndarray) -> np.ndarray:
    labels = Labels.of(indicators)
    sums = LabelSums.of(views, labels)
    return sums.covariance(LabelGram(labels), dtype=sums.dtype)


if __name__ == "__main__":
    main(OPTIONS)
