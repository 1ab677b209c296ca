"""CCA at n = 60,000, d = (2048, 300), k = 128, float32, against its floor.

The floor consists of the operations that any covariance-based method needs: one general matrix
product of the data with itself, in the same row blocks, one Cholesky factorization per view, and
one singular value decomposition of the whitened cross-covariance.

Then the same rows without a ridge, with columns that are copies of others but for a small share of
noise: float32 products do not suffice for these, which a sample of the rows tells beforehand. Of
exact copies, a share of 0, the first are kept.

    python -m benchmarks.scale.cca_accumulation [--threads 2] [--repeats 3] [--rows 60000]
"""

from __future__ import annotations

import argparse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=60_000)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

from functools import partial
from warnings import catch_warnings

import numpy as np
from scipy import linalg
from threadpoolctl import threadpool_limits

from benchmarks._measure import in_turns, machine, peak_memory, ratio
from mvcca import CCA, Views

WIDTHS, K, BLOCK = (2048, 300), 128, 8192


def data(n_rows: int) -> Views:
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n_rows, K), dtype=np.float32)
    blocks = {}
    for name, width in zip(("image", "text"), WIDTHS, strict=True):
        blocks[name] = latent @ rng.standard_normal((K, width), dtype=np.float32)
        blocks[name] += 5 * rng.standard_normal((n_rows, width), dtype=np.float32)
    return Views(blocks)


def nearly_collinear(views: Views, noise: float) -> Views:
    """The same views, the last columns of each copies of the first but for a share of noise."""
    blocks = {}
    for name, X in views.items():
        blocks[name] = X.copy()
        blocks[name][:, -20:] = X[:, :20] + np.float32(noise) * X[:, -20:]
    return Views(blocks)


def floor(views: Views, symmetric: bool):
    X = np.concatenate([block for _, block in views.items()], axis=1)
    other = X if symmetric else X.copy()  # NumPy exploits symmetry
    d = WIDTHS[0]

    def run() -> None:
        total = np.zeros((X.shape[1], X.shape[1]))
        product = np.empty(total.shape, np.float32)
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            total += np.matmul(X[rows].T, other[rows], out=product)
        left = linalg.cholesky(total[:d, :d], lower=True, check_finite=False)
        right = linalg.cholesky(total[d:, d:], lower=True, check_finite=False)
        half = linalg.solve_triangular(left, total[:d, d:], lower=True, check_finite=False)
        white = linalg.solve_triangular(right, half.T, lower=True, check_finite=False)
        linalg.svd(white, full_matrices=False, check_finite=False)

    return run


def main(options: argparse.Namespace) -> None:
    views = data(options.rows)
    with threadpool_limits(options.threads):
        print(machine(options.threads))
        with peak_memory() as memory:
            CCA(K).fit(views)
        runs = {
            "fit": lambda: CCA(K).fit(views),
            "floor": floor(views, symmetric=False),
            "floor, symmetric product": floor(views, symmetric=True),
        }
        timings = in_turns(runs, options.repeats)
        for name, timing in timings.items():
            print(f"  {name:28s}{timing}")
        for name in list(timings)[1:]:
            goal = "  (goal 1.3)" if name == "floor" else ""
            print(f"  fit / {name}: {ratio(timings['fit'], timings[name])}{goal}")
        print("  without a ridge, some columns copies of others but for a share of noise:")
        cases = {"none": views}
        cases |= {
            f"{share:g}": nearly_collinear(views, share) for share in (0.2, 0.05, 1e-2, 1e-4, 0)
        }
        runs = {name: partial(CCA(K, reg=0).fit, own) for name, own in cases.items()}
        with catch_warnings(action="ignore"):  # of few rows, and of rows near rounding
            timings = in_turns(runs, options.repeats)
        for name, timing in timings.items():
            print(f"    {name:6s}{timing}  {ratio(timing, timings['none'])}  (goal 2.3)")
        size = sum(block.nbytes for _, block in views.items()) / 1e6
        print(f"  memory: {memory['MB']:.0f} MB above the data ({size:.0f} MB)  (goal 500)")


if __name__ == "__main__":
    main(OPTIONS)
