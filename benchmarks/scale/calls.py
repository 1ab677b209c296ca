"""What do `transform` and `partial_fit` cost beside the bare products of the same rows?

    python -m benchmarks.scale.calls [--rows 100000] [--columns 768] [-k 64] [--batches 10]
        [--repeats 5]

Rows are float32, with means of .3 deviations. Claims, by minima of CPU time with one BLAS thread:
`CCA.transform` of a view takes at most 1.2 times as long as the product of its rows with the
weights, and memory for the result and 16 MB; `CCA.partial_fit` of batches of 4,096 rows takes at
most 1.7 times as long as their products, the maps included.
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("-k", type=int, default=64)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import tracemalloc

import numpy as np

from benchmarks._measure import in_turns, machine
from mvcca import CCA

BATCH_ROWS = 4096
LIMIT_TRANSFORM, LIMIT_MEGABYTES, LIMIT_BATCHES = 1.2, 16.0, 1.7


def say(what: str, ratio: float, limit: float) -> None:
    """Print a ratio and whether it keeps its limit."""
    print(f"claim {'holds' if ratio <= limit else 'FAILS'}: {what} {ratio:.2f} <= {limit}")


def transform(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time and memory of projecting a view in memory."""
    rows = rng.standard_normal((options.rows, options.columns), dtype=np.float32) + np.float32(0.3)
    some = rows[: 8 * options.columns]
    noise = rng.standard_normal((len(some), options.k), dtype=np.float32)
    model = CCA(options.k, reg=1e-2).fit({"x": some, "y": some[:, : options.k] + noise})
    weights = np.ascontiguousarray(model.weights_["x"], dtype=np.float32)
    sides = {"product": lambda: rows @ weights, "transform": lambda: model.transform({"x": rows})}
    seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    tracemalloc.start()
    result = model.transform({"x": rows})["x"]
    above = (tracemalloc.get_traced_memory()[1] - result.nbytes) / 1e6
    tracemalloc.stop()
    print(f"transform: {seconds['transform']:.3f} s, product {seconds['product']:.3f} s")
    say("transform / product", seconds["transform"] / seconds["product"], LIMIT_TRANSFORM)
    say("MB beside the result", above, LIMIT_MEGABYTES)


def batches(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Time of fitting batch by batch, and reading the weights."""
    width, own = options.columns, 2 * options.columns // 3
    joint = [
        rng.standard_normal((BATCH_ROWS, width), dtype=np.float32) + np.float32(0.3)
        for _ in range(options.batches)
    ]
    parts = [{"x": J[:, :own].copy(), "y": J[:, own:] + J[:, : width - own]} for J in joint]

    def fit() -> None:
        model = CCA(16)
        for part in parts:
            model.partial_fit(part)
        model.weights_  # noqa: B018

    sides = {"products": lambda: sum((J.T @ J).astype(float) for J in joint), "partial_fit": fit}
    seconds = {name: min(own.cpu) for name, own in in_turns(sides, options.repeats).items()}
    print(f"partial_fit: {seconds['partial_fit']:.3f} s, products {seconds['products']:.3f} s")
    say("partial_fit / products", seconds["partial_fit"] / seconds["products"], LIMIT_BATCHES)


if __name__ == "__main__":
    print(machine(1))
    for part in (transform, batches):
        part(OPTIONS, np.random.default_rng(0))
