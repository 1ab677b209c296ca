"""Power of permutation tests beside the recipe of PermCCA, written as a loop, at the 5 % level.

The recipe maps rows by Huh and Jhun's or Theil's residuals, rearranges both views and compares
Wilks' statistic. With groups it needs Theil's, of rows that are left when whole groups are dropped.
The first feature of both views shares a part; "0" is the share of false positives.

    python -m benchmarks.defaults.permutation_power [--seeds 120]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=120)
    parser.add_argument("--permutations", type=int, default=99)
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np
from scipy import linalg

from benchmarks.defaults.false_positives import CELLS, Cell
from mvcca.inspection import permutation_test

Rearrange = Callable[[np.random.Generator], Callable[[np.ndarray], np.ndarray]]
DESIGNS = {
    "confounds, 100 rows, 10 + 10, 4": (0.0, 0.6),
    "groups and confounds, 24 x 4, 4 + 4, 4": (0.0, 0.4),
    "groups and confounds, 24 x 4, 10 + 10, 4": (0.0, 0.5),
    "flips and confounds, 100 rows, 4 + 4, 3": (0.0, 0.5),
    "flips and confounds, 300 rows, 4 + 4, 3": (0.0, 0.35),
}


def wilks(X: np.ndarray, Y: np.ndarray) -> float:
    """-ln Λ of two views."""
    r = linalg.svdvals(linalg.qr(X, mode="economic")[0].T @ linalg.qr(Y, mode="economic")[0])
    return float(-np.log1p(-(np.minimum(r, 1 - 1e-12) ** 2)).sum())


def permcca(
    X: np.ndarray, Y: np.ndarray, Q: np.ndarray, rearrange: Rearrange, n: int, seed: int
) -> float:
    """The p-value of the first component."""
    rng, U, V = np.random.default_rng(seed), Q.T @ X, Q.T @ Y
    observed, count = wilks(Q @ U, Q @ V), 1
    for _ in range(n):
        count += wilks(Q @ rearrange(rng)(U), Q @ rearrange(rng)(V)) >= observed - 1e-12
    return count / (1 + n)


def theil(Z: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """R S (Sᵀ R S)^(-1/2), of the rows that S keeps."""
    R = np.eye(len(Z)) - Z @ np.linalg.pinv(Z)
    values, vectors = linalg.eigh(R[np.ix_(kept, kept)])
    return np.asarray(R[:, kept] @ (vectors / np.sqrt(values)) @ vectors.T)


def recipe(cell: Cell, Z: np.ndarray, groups: np.ndarray | None) -> tuple[np.ndarray, Rearrange]:
    """Q, and how its rows are rearranged."""
    n, rank = Z.shape
    if groups is not None:
        size = int(np.bincount(groups)[0])
        n_dropped = -(-rank // size)  # whole groups in which confounds and ones have full rank
        while np.linalg.matrix_rank(Z[: n_dropped * size]) < rank:
            n_dropped += 1
        blocks = np.arange(n - n_dropped * size).reshape(-1, size)

        def by_group(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
            order = rng.permutation(blocks).ravel()
            return lambda rows: rows[order]

        return theil(Z, np.arange(n_dropped * size, n)), by_group
    if ("sign_flips", True) in cell.options:

        def by_sign(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
            signs = rng.choice([-1.0, 1.0], (n - rank, 1))
            return lambda rows: rows * signs

        return theil(Z, np.arange(rank, n)), by_sign

    def freely(rng: np.random.Generator) -> Callable[[np.ndarray], np.ndarray]:
        order = rng.permutation(n - rank)
        return lambda rows: rows[order]

    return linalg.null_space(Z.T), freely


def shares(cell: Cell, n_seeds: int, n_permutations: int) -> tuple[float, float]:
    """Share of p-values of at most .05, of the package and of the recipe, in %."""
    found = []
    for seed in range(n_seeds):
        X, Y, options = cell.draw("Gaussian", seed)
        test = permutation_test(
            X, Y, n_permutations=n_permutations, n_components=1, random_state=seed, **options
        )
        Z = np.column_stack([np.ones(len(X)), options["confounds"]])
        Q, rearrange = recipe(cell, Z, options.get("groups"))
        theirs = permcca(X, Y, Q, rearrange, n_permutations, seed)
        found.append((test.p_values[0] <= 0.05, theirs <= 0.05))
    ours, recipes = 100 * np.mean(found, axis=0)
    return float(ours), float(recipes)


def main(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")  # rows of unlike scale
    print(f"% of p-values of at most .05, {options.seeds} data sets\n")
    print("| design | correlation | mvcca | PermCCA's recipe |\n|---|---|---|---|")
    for name, effects in DESIGNS.items():
        for effect in effects:
            cell = replace(CELLS[name], strong=(effect,) if effect else ())
            ours, recipes = shares(cell, options.seeds, options.permutations)
            print(f"| {name} | {effect:g} | {ours:.1f} | {recipes:.1f} |", flush=True)


if __name__ == "__main__":
    main(OPTIONS)
