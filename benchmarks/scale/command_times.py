"""Are the times that commands expect of themselves those that they take?

    python -m benchmarks.scale.command_times [--commands search align migrate similarity test]
        [--scale 1.0]

For each command and a few sizes of data: CPU seconds as estimated from shapes before and as
measured, and their ratio. `--scale` multiplies the numbers of rows. Fits and comparisons are those
of `estimated_times.py`.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from io import BytesIO
from time import process_time
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["search", "align", "migrate", "similarity", "test"]
    parser.add_argument("--commands", nargs="+", choices=known, default=known)
    parser.add_argument("--scale", type=float, default=1.0)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np

from benchmarks._measure import machine
from mvcca import CCA, RetrievalIndex
from mvcca.blocks import as_block
from mvcca.comparison.costs import (
    Work,
    alignment_work,
    hits_work,
    measured_rates,
    migration_work,
    shape_of,
    similarity_work,
    study_work,
)
from mvcca.inspection import study
from mvcca.interop import Hits
from mvcca.interop.alignment import align_unpaired
from mvcca.interop.migration import fit_migration
from mvcca.interop.representations import compare_representations

Trial = tuple[str, Work, Callable[[], Any]]


def two_views(n: int, p: int, q: int, dtype: str = "f4") -> tuple[np.ndarray, np.ndarray]:
    """Views that share 20 directions, with as much noise."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((n, 20))
    x, y = (shared @ rng.standard_normal((20, d)) + rng.standard_normal((n, d)) for d in (p, q))
    return x.astype(dtype), y.astype(dtype)


def shape(rows: np.ndarray) -> Any:
    return shape_of(as_block(rows))


def searches(scale: float) -> Iterator[Trial]:
    for n, n_queries, p, k in [(20_000, 5_000, 128, 50), (50_000, 5_000, 256, 100)]:
        x, y = two_views(int(scale * n), p, p)
        y = y[: int(scale * n_queries)]
        model = CCA(k, reg=0.1).fit({"x": x[: len(y)], "y": y})

        def search(model: Any = model, x: np.ndarray = x, y: np.ndarray = y) -> None:
            hits = Hits(RetrievalIndex(model), {"x": x}, {"y": y}, 10)
            hits.write(BytesIO(), ".npz")

        work = hits_work({"x": shape(x)}, {"y": shape(y)}, k)
        yield f"search, {len(y):,} of {len(x):,} x {p}", work, search


def alignments(scale: float) -> Iterator[Trial]:
    for n, p, n_pairs in [(2000, 50, 0), (2000, 100, 20), (4000, 100, 20), (2000, 200, 200)]:
        x, y = two_views(int(scale * n), p, p)
        pairs = np.tile(np.arange(n_pairs)[:, None], 2) if n_pairs else None

        def align(x: np.ndarray = x, y: np.ndarray = y, pairs: Any = pairs) -> None:
            align_unpaired(x, y, pairs=pairs)

        yield (
            f"align, {len(x):,} x {p}, {n_pairs} pairs",
            alignment_work(shape(x), shape(y), n_pairs),
            align,
        )


def migrations(scale: float) -> Iterator[Trial]:
    for n_pairs, n, p, direction in [(4000, 50_000, 256, "items"), (4000, 50_000, 256, "queries")]:
        x, y = two_views(int(scale * n), p, p)
        y = y[: int(scale * n_pairs)]

        def migrate(x: np.ndarray = x, y: np.ndarray = y, direction: Any = direction) -> None:
            fit_migration(x[: len(y)], y, stored=x, direction=direction)

        work = migration_work(shape(x), shape(y), direction=direction, writes=False)
        yield f"migrate {direction}, {len(y):,} of {len(x):,} x {p}", work, migrate


def similarities(scale: float) -> Iterator[Trial]:
    for measure, n_layers, n, p in [
        ("cka_unbiased", 8, 2000, 200),
        ("cka_unbiased", 6, 8000, 400),
        ("svcca", 4, 2000, 400),
        ("procrustes", 4, 2000, 200),
        ("mutual_knn", 4, 3000, 200),
    ]:
        layers = {str(i): two_views(int(scale * n), p, 1)[0] for i in range(n_layers)}

        def compare(layers: Any = layers, measure: str = measure) -> None:
            compare_representations(layers, measures=measure)

        work = similarity_work(list(map(shape, layers.values())), None, [measure])
        yield f"similarity, {measure}, {n_layers} layers of {int(scale * n):,} x {p}", work, compare


def tests(scale: float) -> Iterator[Trial]:
    for n, p, q in [(1000, 50, 20), (2000, 100, 50), (4000, 200, 20)]:
        x, y = two_views(int(scale * n), p, q, "f8")

        def test(x: np.ndarray = x, y: np.ndarray = y) -> None:
            study({"x": x, "y": y}, random_state=0)

        yield f"test, {len(x):,} x {p} and {q}", study_work(shape(x), shape(y), 999), test


TRIALS = {
    "search": searches,
    "align": alignments,
    "migrate": migrations,
    "similarity": similarities,
    "test": tests,
}


def main() -> None:
    measured_rates()
    print(f"{machine(1)}\n\n{'command':<56}{'estimated':>10}{'measured':>10}{'ratio':>7}")
    for name in OPTIONS.commands:
        for title, work, run in TRIALS[name](OPTIONS.scale):
            expected = work.seconds(measured_rates())
            start = process_time()
            with warnings.catch_warnings(action="ignore"):
                run()
            taken = process_time() - start
            print(f"{title:<56}{expected:10.2f}{taken:10.2f}{expected / taken:7.2f}", flush=True)


if __name__ == "__main__":
    main()
