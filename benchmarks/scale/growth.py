"""How do time and memory grow with rows, features, views, classes and queries?

    python -m benchmarks.scale.growth [--share 1] [--repeats 3] [--only NAME ...]

A line per quantity that doubles twice, with CPU seconds (minima, one BLAS thread), the peak of what
is allocated beside the rows, and the exponents of both between the last two sizes. Claims: no
exponent of time is above what the algebra says, and memory does not grow with the rows.
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1, help="of the sizes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="lines to measure")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks._measure import in_turns, machine
from mvcca import CCA, KCCA, MLCCA, MVCCA, MVMLCCA
from mvcca.retrieval import top_k

NOISE = 0.15  # of an exponent: a machine that is busy, and parts that do not grow


class Growth(NamedTuple):
    """What grows: sizes, the call of each, and the exponents that the algebra says."""

    sizes: tuple[int, ...]
    call: Callable[[int], Callable[[], Any]]
    time: float
    memory: float  # beside the rows
    why: str


def views_of(n: int, *widths: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Views with five latent variables in common, float32."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 5), dtype=np.float32)
    return {
        f"view {i}": latent @ rng.standard_normal((5, width), dtype=np.float32)
        + rng.standard_normal((n, width), dtype=np.float32)
        for i, width in enumerate(widths)
    }


def fit(estimator: Any, views: dict[str, np.ndarray], y: Any = None) -> Callable[[], Any]:
    """Fit a model."""
    return lambda: estimator.fit(views, y)


def label_sets(n: int, distinct: int) -> np.ndarray:
    """Indicators of label sets, of which so many are distinct."""
    rng = np.random.default_rng(0)
    sets = rng.random((distinct, 60)) < 0.1
    sets[:, 0] = True
    return sets[np.arange(n) % distinct].astype(float)


def projection(n: int) -> Callable[[], Any]:
    """Project rows by a map."""
    views = views_of(n, 200, 50)
    model = CCA(20, reg=0.1).fit({name: X[:2_000] for name, X in views.items()})
    return lambda: model.transform({"view 0": views["view 0"]})


def searched(n_queries: int, n_items: int) -> Callable[[], Any]:
    """Search a gallery."""
    rng = np.random.default_rng(0)
    queries, items = (rng.standard_normal((n, 100), np.float32) for n in (n_queries, n_items))
    return lambda: top_k(queries, items, 10)


GROWTH: dict[str, Growth] = {
    "rows, CCA": Growth(
        (50_000, 100_000, 200_000),
        lambda n: fit(CCA(20, reg=0.1), views_of(n, 100, 80)),
        1, 0, "products of blocks of rows",
    ),
    "rows, CCA tuned": Growth(
        (20_000, 40_000, 80_000),
        lambda n: fit(CCA(reg="cv"), views_of(n, 60, 50)),
        1, 0, "products by fold; the objects that are ranked are as many",
    ),
    "rows, transform": Growth((50_000, 100_000, 200_000), projection, 1, 1, "the scores"),
    "features, CCA": Growth(
        (300, 600, 1_200),
        lambda p: fit(CCA(20, reg=0.1), views_of(6_000, p, p)),
        3, 2, "products p², factors p³",
    ),
    "views, MVCCA": Growth(
        (3, 6, 12),
        lambda n: fit(MVCCA(10, reg=0.1), views_of(5_000, *[60] * n)),
        3, 2, "pairs n², eigenvectors n³",
    ),
    "classes, MLCCA": Growth(
        (100, 200, 400),
        lambda c: fit(MLCCA(10, reg=0.1), views_of(20_000, 80, 60), np.arange(20_000) % c),
        1, 1, "sums by class",
    ),
    "label sets, MVMLCCA": Growth(
        (1_000, 2_000, 4_000),
        lambda d: fit(MVMLCCA(10, reg=0.1), views_of(20_000, 80, 60), label_sets(20_000, d)),
        2, 1, "similarities of all pairs of sets, a strip at a time",
    ),
    "rows, KCCA": Growth(
        (500, 1_000, 2_000),
        lambda n: fit(KCCA(10, random_state=0), views_of(n, 30, 20)),
        3, 2, "n x n matrices",
    ),
    "rows, NKCCA": Growth(
        (10_000, 20_000, 40_000),
        lambda n: fit(
            KCCA(10, approximation="nystroem", n_landmarks=200, random_state=0),
            views_of(n, 30, 20),
        ),
        1, 0, "features of blocks of rows",
    ),
    "queries, search": Growth(
        (250, 500, 1_000), lambda n: searched(n, 40_000), 1, 1, "products with the gallery"
    ),
    "items, search": Growth(
        (40_000, 80_000, 160_000), lambda n: searched(500, n), 1, 1, "products with the queries"
    ),
}  # fmt: skip


def megabytes(call: Callable[[], Any]) -> float:
    """Peak of what a call allocates."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def main(options: argparse.Namespace) -> None:
    for name, growth in GROWTH.items():
        if options.only and name not in options.only:
            continue
        sizes = [max(2, round(size * options.share)) for size in growth.sizes]
        calls = {f"{i}": growth.call(size) for i, size in enumerate(sizes)}
        calls["0"]()  # compiles
        seconds = [min(own.cpu) for own in in_turns(calls, options.repeats).values()]
        memory = [megabytes(call) for call in calls.values()]
        found = []
        for what, values, expected in (
            ("time", seconds, growth.time),
            ("memory", memory, growth.memory),
        ):
            exponent = float(np.log2(values[-1] / values[-2]))
            holds = "holds" if exponent <= expected + NOISE else "FAILS"
            found.append(f"{what} {exponent:.2f} <= {expected:g} {holds}")
        shown = ", ".join(
            f"{size:,}: {s:.2f} s, {mb:.0f} MB"
            for size, s, mb in zip(sizes, seconds, memory, strict=True)
        )
        print(f"{name:20s} {shown}; {'; '.join(found)} ({growth.why})", flush=True)


if __name__ == "__main__":
    print(machine(1))
    main(OPTIONS)
