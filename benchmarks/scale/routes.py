"""Does ridge CCA choose its route well? Times of both on a grid of shapes, and what it chooses.

Views are text-like, or these made dense by noise. Matrices are over the features of a view, or over
its rows if there are fewer.

    python -m benchmarks.scale.routes [--most 10000]
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=40_000, help="rows and features")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import time
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks._measure import machine
from benchmarks._text_like import text_like
from mvcca import CCA, Views
from mvcca.problem import route as routing

# Rows, features of either view, components.
SPARSE = (
    (600, 600, 5), (600, 3000, 5), (600, 3000, 64), (1000, 1000, 10), (1000, 1000, 64),
    (1000, 4000, 10), (1000, 4000, 64), (1500, 600, 10), (3000, 1000, 10), (3000, 1000, 64),
    (2000, 2000, 10), (2000, 2000, 64), (2000, 10000, 10), (2000, 10000, 64), (3000, 5000, 10),
    (3000, 5000, 64), (5000, 3000, 10), (5000, 3000, 64), (10000, 1000, 10), (10000, 1000, 64),
    (10000, 3000, 10), (10000, 3000, 64), (30000, 1500, 10), (40000, 800, 10),
)  # fmt: skip
DENSE = (
    (600, 600, 5), (600, 3000, 10), (1000, 1000, 10), (1000, 4000, 10), (3000, 1000, 10),
    (2000, 2000, 10),
)  # fmt: skip


def seconds_of(route: int, views: dict[str, Any], k: int) -> float:
    """CPU time of a fit by one of the routes; the least of three if that is short."""
    times: list[float] = []
    with patch.object(routing, "cheapest", lambda routes: list(routes.values())[route]):
        while not times or (len(times) < 3 and times[0] < 1):
            started = time.process_time()
            CCA(k, reg=1.0).fit(views)
            times.append(time.process_time() - started)
    return min(times)


def main(options: argparse.Namespace) -> None:
    print(machine(1))
    warnings.simplefilter("ignore")
    ratios = []
    rng = np.random.default_rng(0)
    for kind, shapes in (("sparse", SPARSE), ("dense", DENSE)):
        for n, d, k in shapes:
            if max(n, d) > options.most:
                continue
            blocks: list[Any] = text_like(n, [d, d])
            if kind == "dense":
                blocks = [X.toarray() + 0.02 * rng.normal(size=X.shape) for X in blocks]
            views = dict(zip("xy", blocks, strict=True))
            routes = routing.routes(Views(views), k)
            names = list(routes)
            times = [seconds_of(i, views, k) for i in range(2)]
            chosen = names.index(routing.cheapest(routes).name)
            ratios.append(times[chosen] / min(times))
            both = ", ".join(
                f"{name} {took:.2f} s ({routes[name].n_moved:.2g})"
                for name, took in zip(names, times, strict=True)
            )
            print(f"{kind} {n} x {d}, k = {k}: {both}: {ratios[-1]:.2f}", flush=True)
    print(f"{len(ratios)} shapes: at most {max(ratios):.2f} x the faster route")


if __name__ == "__main__":
    main(OPTIONS)
