"""MVMLCCA and MLCCA on the labels of MS-COCO 2014, compared with floors and pairs of rows.

The labels are real (82,783 rows, 80 categories, 18,956 distinct sets); the 2048 and 300 float32
features are synthetic. One run measures

- the label-weighted covariance and its floor, the matrix products of the grouped, symmetric
  computation: U² D / 2 + U D² multiply-adds;
- the best vectorized computation over pairs of rows that we know (one product per tile of
  distances, exp in place, products with both views), on a subset and extrapolated by n²;
- whole fits, and the growth of the process.

    MVCCA_DATA=../shared/data python benchmarks/label_covariance.py [--threads 2] [--repeats 3]
        [--rows 82783]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="all training images if not given")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from _measure import in_turns, machine, peak_memory, ratio
from real import fetch_coco_labels
from threadpoolctl import threadpool_limits

from mvcca import MLCCA, MVMLCCA, Views
from mvcca.similarity import LabelGram
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


def products_only(n_distinct: int, width: int) -> Callable[[], None]:
    """Only the matrix products of the grouped computation, into existing buffers."""
    rng = np.random.default_rng(0)
    S = rng.random((n_distinct, width), dtype=np.float32)
    G = rng.random((TILE, n_distinct), dtype=np.float32)
    strip, total = np.empty((TILE, width), np.float32), np.empty((width, width), np.float32)

    def run() -> None:
        for start in range(0, n_distinct, TILE):
            stop = min(start + TILE, n_distinct)
            np.matmul(G[: stop - start, :stop], S[:stop], out=strip[: stop - start])
            np.matmul(S[start:stop].T, strip[: stop - start], out=total)

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
        sums.covariance(LabelGram(labels), dtype=sums.dtype)  # compile

        timings = in_turns(
            {
                "covariance": lambda: sums.covariance(LabelGram(labels), dtype=sums.dtype),
                "its floor": products_only(U, D),
            },
            options.repeats,
        )
        for name, timing in timings.items():
            print(f"  {name:28s}{timing}")
        floor = timings["its floor"]
        print(f"  covariance / floor:         {ratio(timings['covariance'], floor)}  (goal 1.3)")

        subset, some = views[:SUBSET], indicators[:SUBSET]
        pairs = in_turns(
            {
                "grouping and covariance": lambda: grouped(views, indicators),
                f"pairs of {SUBSET} rows": lambda: pairs_of_rows(subset, some),
            },
            1,
        )
        for name, timing in pairs.items():
            print(f"  {name:28s}{timing}")
        ours, theirs = pairs.values()
        scale = (len(views) / SUBSET) ** 2
        print(
            f"  pairs of rows, extrapolated by (n / {SUBSET})² = {scale:.1f}, / ours: "
            f"{theirs.wall[0] * scale / ours.wall[0]:.0f} x wall, "
            f"{theirs.cpu[0] * scale / ours.cpu[0]:.0f} x CPU  (goal 10)"
        )
        same = pairs_of_rows(subset, some)
        error = np.abs(grouped(subset, some) - same).max() / np.abs(same).max()
        print(f"  both agree on the subset to {error:.1e} of the largest entry")

        data = sum(block.nbytes for _, block in views.items()) / 1e6
        print(f"whole fits of 64 components (the data: {data:.0f} MB)")
        floors = {
            MVMLCCA: products_only(U, D),
            MLCCA: both(products_only(U, D), weighted_products(views)),
        }
        for kind, products in floors.items():
            with peak_memory() as memory:
                kind(64).fit(views, indicators)
            runs = {"fit": lambda k=kind: k(64).fit(views, indicators), "floor": products}
            timings = in_turns(runs, options.repeats)
            print(
                f"  {kind.__name__:28s}{timings['fit']}  + {memory['MB']:.0f} MB; "
                f"/ products alone: {ratio(*timings.values())}"
            )


def weighted_products(views: Views) -> Callable[[], None]:
    """Additional products of MLCCA's row-weighted covariances: each view with itself."""
    blocks = [(block, block.copy()) for _, block in views.items()]

    def run() -> None:
        for block, weighted in blocks:
            for start in range(0, len(block), 8192):
                block[start : start + 8192].T @ weighted[start : start + 8192]

    return run


def both(*functions: Callable[[], None]) -> Callable[[], None]:
    def run() -> None:
        for function in functions:
            function()

    return run


def grouped(views: Views, indicators: np.ndarray) -> np.ndarray:
    labels = Labels.of(indicators)
    sums = LabelSums.of(views, labels)
    return sums.covariance(LabelGram(labels), dtype=sums.dtype)


if __name__ == "__main__":
    main(OPTIONS)
