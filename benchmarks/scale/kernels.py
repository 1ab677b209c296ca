"""Time of each compiled kernel compared with equivalent NumPy code.

python -m benchmarks.scale.kernels [--repeats 5]
"""

from __future__ import annotations

import argparse
import sys


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from benchmarks._measure import in_turns, machine, ratio
from mvcca.machine.compiled_loops import (
    add_rows_by_code,
    fill_by_difference,
    inner_products_to_exponents,
    pack_label_sets,
)

ROWS, COLUMNS, LABELS = 1024, 18_956, 80  # a strip of G for the labels of MS-COCO


def label_sets():
    rng = np.random.default_rng(0)
    sets = (rng.random((COLUMNS, LABELS)) < 0.04).astype(np.float32)
    packed = pack_label_sets(csr_array(sets))
    strip, table = packed[:, :ROWS].copy(), np.exp(-np.arange(LABELS + 1) / 2).astype(np.float32)
    out, norms = np.empty((ROWS, COLUMNS), np.float32), sets.sum(axis=1) / 2

    def numpy() -> None:
        tile = np.matmul(sets[:ROWS], sets.T, out=out)
        tile -= norms[:ROWS, None]
        tile -= norms
        np.exp(tile, out=tile)

    return lambda: fill_by_difference(strip, packed, table, out), numpy


def real_vectors():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((COLUMNS, 300), dtype=np.float32) / 10
    products = vectors[:ROWS] @ vectors.T
    halves = (vectors * vectors).sum(axis=1) / 2
    out = np.empty_like(products)

    def numba() -> None:
        out[:] = products
        inner_products_to_exponents(out, halves[:ROWS], halves, 1.0)

    def numpy() -> None:
        out[:] = products
        np.subtract(out, halves[:ROWS, None], out=out)
        np.subtract(out, halves, out=out)
        np.minimum(out, 0, out=out)

    return numba, numpy


def grouped_sum():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 512), dtype=np.float32)
    codes, weights = rng.integers(0, 5000, len(X)), np.ones(len(X))
    sums = np.zeros((5000, X.shape[1]))

    def numpy() -> None:  # the fastest of np.add.at, reduceat over sorted rows, a sparse product
        grouping = csr_array((weights, (codes, np.arange(len(X)))), shape=(len(sums), len(X)))
        np.add(sums, grouping @ X, out=sums)

    return lambda: add_rows_by_code(X, codes, weights, sums), numpy


def main(options: argparse.Namespace) -> None:
    with threadpool_limits(1):
        sys.stdout.write(machine(1) + "\n")
        for case in (label_sets, real_vectors, grouped_sum):
            numba, numpy = case()
            numba()  # compile
            timings = in_turns({"kernel": numba, "NumPy": numpy}, options.repeats)
            sys.stdout.write(f"{case.__name__:14s} kernel / NumPy: {ratio(*timings.values())}\n")


if __name__ == "__main__":
    main(OPTIONS)
