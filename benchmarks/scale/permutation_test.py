"""Time of a permutation test with confounds, against refitting CCA in every permutation.

500 rows of 50 and 20 features and 10 confounds by default. The refit is one QR decomposition per
view and one SVD in every permutation, which is the first of 20 steps; with all steps it is what
PermCCA does. The floor is the bare product U_πᵀV. Lines "in groups" have the same confounds and
groups of 4 rows; "after 3" has three components of .9 before, each tested separately.

    python -m benchmarks.scale.permutation_test [--rows 500 --widths 50 20 --permutations 1000]
"""

from __future__ import annotations

import argparse
import os


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--widths", type=int, nargs=2, default=(50, 20))
    parser.add_argument("--confounds", type=int, default=10)
    parser.add_argument("--permutations", type=int, default=1000)
    parser.add_argument("--refits", type=int, default=100, help="timed, and scaled up")
    parser.add_argument("--repeats", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import statistics

import numpy as np
from scipy import linalg

from benchmarks._measure import in_turns, machine
from mvcca.inspection import permutation_test


def bases_of(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Canonical variates, completed to bases."""
    U, V = (linalg.qr(A, mode="economic")[0] for A in (X, Y))
    left, _, right = linalg.svd(U.T @ V)
    return U @ left, V @ right.T


def main(options: argparse.Namespace) -> None:
    """Time the statistics, the refits and the floor in turns."""
    rng = np.random.default_rng(0)
    n, n_permutations = options.rows, options.permutations
    X, Y = (rng.standard_normal((n, width)) for width in options.widths)
    Z = rng.standard_normal((n, options.confounds))
    Q = linalg.qr(np.column_stack([np.ones(n), Z]))[0][:, options.confounds + 1 :]
    U, V = bases_of(Q.T @ X, Q.T @ Y)

    strong = Y.copy()
    strong[:, :3] = 0.9 * X[:, :3] + np.sqrt(1 - 0.9**2) * Y[:, :3]

    def test(statistic: str, Y: np.ndarray = Y, groups: np.ndarray | None = None) -> None:
        permutation_test(
            X,
            Y,
            confounds=Z,
            groups=groups,
            statistic=statistic,
            n_permutations=n_permutations,
            random_state=0,
        )

    def refit(n_steps: int) -> None:
        for _ in range(options.refits):
            moved = U[rng.permutation(len(U))]
            for i in range(n_steps):
                bases = [linalg.qr(A[:, i:], mode="economic")[0] for A in (moved, V)]
                linalg.svdvals(bases[0].T @ bases[1])

    def product() -> None:
        for _ in range(n_permutations):
            V[rng.permutation(len(V))].T @ U

    timings = in_turns(
        {
            "wilks": lambda: test("wilks"),
            "pillai": lambda: test("pillai"),
            "roy": lambda: test("roy"),
            "wilks, in groups": lambda: test("wilks", groups=np.arange(n) // 4),
            "wilks, in groups, after 3": lambda: test("wilks", strong, np.arange(n) // 4),
            "one refit": lambda: refit(1),
            "refits of all steps": lambda: refit(min(options.widths)),
            "floor: the product": product,
        },
        options.repeats,
    )
    scale = {name: n_permutations / options.refits if "refit" in name else 1.0 for name in timings}
    seconds = {name: statistics.median(own.cpu) * scale[name] for name, own in timings.items()}
    print(machine(1))
    print(f"{n_permutations:,} permutations of ({n}, {', '.join(map(str, options.widths))}) with "
          f"{options.confounds} confounds, CPU s")  # fmt: skip
    for name, value in seconds.items():
        print(f"{name:26s} {value:8.2f}")
    for name in ("wilks", "pillai", "roy", "wilks, in groups", "wilks, in groups, after 3"):
        one, every = (seconds[own] / seconds[name] for own in ("one refit", "refits of all steps"))
        above = seconds[name] / seconds["floor: the product"]
        print(f"{name}: {one:.1f} x faster than one refit, {every:.0f} x than refits of all steps; "
              f"{above:.1f} x the floor")  # fmt: skip


if __name__ == "__main__":
    main(OPTIONS)
