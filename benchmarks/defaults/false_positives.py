"""False positives of permutation tests: one table of designs by distributions, at the 5 % level.

Every cell draws data without the relation that is tested, and counts p-values of at most .05. A
warning or a refusal says that the test does not claim to hold: cells tell how many data sets have
one, and the share with a p-value of at most .05 and no warning ("silent"). With --loadings, it
counts data sets in which a variable of the first view without any relation has a p-value of at most
.05: of its loading on the tested component, and after the slash on those before it.

    python -m benchmarks.defaults.false_positives [--loadings]
    python -m benchmarks.defaults.false_positives --seeds 400 --designs "groups;flips"
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--designs", default="", help="beginnings of designs, by semicolons")
    parser.add_argument("--distributions", default="", help="beginnings, by semicolons")
    parser.add_argument("--loadings", action="store_true", help="of loadings, not of components")
    return parser.parse_args()


if __name__ == "__main__":
    OPTIONS = arguments()  # before imports that take seconds

import numpy as np

from mvcca.inspection import permutation_test

Rows = tuple[np.ndarray, np.ndarray, dict[str, Any]]
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


def gaussian(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Normal features."""
    return rng.standard_normal((n, p))


def heavy(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Independent features with Student's t of 3 degrees of freedom."""
    return rng.standard_t(3, (n, p)) / np.sqrt(3)


def ordinal(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """Features of five levels."""
    return np.clip(np.round(rng.standard_normal((n, p))), -2, 2)


DISTRIBUTIONS: dict[str, Draw] = {
    "Gaussian": gaussian,
    "t(3)": heavy,
    "multivariate t(5)": gaussian,
    "ordinal": ordinal,
}


@dataclass(frozen=True)
class Cell:
    """A design: what is drawn, how it is tested, and which component."""

    n: int
    p: int
    strong: tuple[float, ...] = ()  # correlations of earlier components
    n_confounds: int = 0
    sizes: tuple[int, ...] = ()  # of groups, over and over
    icc: float = 0.5
    n_sites: int = 0  # that hold the groups; rows of a site share a mean, and a variance
    unlike: bool = False  # whether the variance of rows depends on the first confound
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def step(self) -> int:
        """The tested component, from 0: the first without a relation."""
        return len(self.strong)

    def draw(self, distribution: str, seed: int) -> Rows:
        """Two views, and arguments of the test."""
        rng, draw = np.random.default_rng(seed), DISTRIBUTIONS[distribution]
        X, Y = draw(rng, self.n, self.p), draw(rng, self.n, self.p)
        options: dict[str, Any] = dict(self.options)
        Z = rng.standard_normal((self.n, self.n_confounds))
        if self.sizes:
            groups = self._groups()
            options["groups"] = groups
            X, Y, Z = (
                np.sqrt(1 - self.icc) * A
                + np.sqrt(self.icc) * draw(rng, groups[-1] + 1, A.shape[1])[groups]
                for A in (X, Y, Z)
            )
        for i, r in enumerate(self.strong):
            Y[:, i] = r * X[:, i] + np.sqrt(1 - r**2) * Y[:, i]
        if distribution == "multivariate t(5)":
            scale = np.sqrt(5 / rng.chisquare(5, (self.n, 1)))
            X, Y = X * scale, Y * scale
        if self.unlike:
            scale = np.exp(0.8 * (Z[:, :1] if Z.size else rng.standard_normal((self.n, 1))))
            X, Y = X * scale, Y * scale
        if self.n_sites:
            site = groups * self.n_sites // (groups[-1] + 1)
            options["groups"] = np.column_stack([site, groups])
            mean = 2 * rng.standard_normal((self.n_sites, self.p))[site]
            X, Y = (A * np.exp(0.4 * site[:, None]) + mean for A in (X, Y))
        if Z.size:
            options["confounds"] = Z
            X, Y = (A + Z @ rng.standard_normal((Z.shape[1], self.p)) for A in (X, Y))
        return X, Y, options

    def _groups(self) -> np.ndarray:
        sizes: list[int] = []
        while sum(sizes) < self.n:
            sizes.append(self.sizes[len(sizes) % len(self.sizes)])
        return np.repeat(np.arange(len(sizes)), sizes)[: self.n]


_MOST = 8.0  # %
FLIPS = (("sign_flips", True),)
RIDGE = (("reg", 0.1),)
CELLS: dict[str, Cell] = {
    "plain, 100 rows, 10 + 10": Cell(100, 10),
    "confounds, 100 rows, 10 + 10, 4": Cell(100, 10, n_confounds=4),
    "groups, 24 x 4, 10 + 10": Cell(96, 10, sizes=(4,), icc=0.69),
    "groups within, 24 x 4, 10 + 10, 4": Cell(
        96, 10, n_confounds=4, sizes=(4,), options=(("within", True),)
    ),
    "groups and confounds, 24 x 4, 4 + 4, 4": Cell(96, 4, n_confounds=4, sizes=(4,), icc=0.69),
    "groups and confounds, 24 x 4, 10 + 10, 4": Cell(96, 10, n_confounds=4, sizes=(4,), icc=0.69),
    "groups and confounds, 24 x 4, 20 + 20, 4": Cell(96, 20, n_confounds=4, sizes=(4,), icc=0.69),
    "groups and confounds, icc .2, 10 + 10, 4": Cell(96, 10, n_confounds=4, sizes=(4,), icc=0.2),
    "groups and confounds, sizes 1 to 3, 10 + 10, 2": Cell(
        120, 10, n_confounds=2, sizes=(1, 2, 3), icc=0.69
    ),
    "groups and confounds, ridge, 40 + 40, 4": Cell(
        96, 40, n_confounds=4, sizes=(4,), icc=0.69, options=RIDGE
    ),
    "groups and confounds, ridge, p > n, 60 + 60, 2": Cell(
        40, 60, n_confounds=2, sizes=(4,), icc=0.69, options=RIDGE
    ),
    "groups and confounds, ridge (Roy), component 2, 40 + 40": Cell(
        96, 40, (0.9,), 4, (4,), options=(*RIDGE, ("statistic", "roy"))
    ),
    "groups and confounds, component 2, 10 + 10, 2": Cell(
        96, 10, (0.9,), n_confounds=2, sizes=(4,), icc=0.69
    ),
    "groups, component 2, 24 x 4, 10 + 10": Cell(96, 10, (0.9,), sizes=(4,), icc=0.69),
    "sites of groups, 4 x 10 x 3, 10 + 10": Cell(120, 10, sizes=(3,), icc=0.69, n_sites=4),
    "sites of groups, sizes 1 to 3, 10 + 10": Cell(144, 10, sizes=(1, 2, 3), icc=0.69, n_sites=4),
    "sites of groups and confounds, 10 + 10, 3": Cell(
        120, 10, n_confounds=3, sizes=(3,), icc=0.69, n_sites=4
    ),
    "sites of groups and confounds, sizes 1 to 3, 10 + 10, 3": Cell(
        144, 10, n_confounds=3, sizes=(1, 2, 3), icc=0.69, n_sites=4
    ),
    "sites of groups and confounds, ridge, 40 + 40, 3": Cell(
        120, 40, n_confounds=3, sizes=(3,), icc=0.69, n_sites=4, options=RIDGE
    ),
    "sites of groups, component 2, 10 + 10": Cell(120, 10, (0.9,), sizes=(3,), n_sites=4),
    "sites of groups and confounds, component 2, 10 + 10, 2": Cell(
        120, 10, (0.9,), 2, (3,), n_sites=4
    ),
    "flips of groups in sites, 4 x 10 x 3, 4 + 4, 3": Cell(
        120, 4, n_confounds=3, sizes=(3,), n_sites=4, unlike=True, options=FLIPS
    ),
    "flips and confounds, 100 rows, 4 + 4, 3": Cell(
        100, 4, n_confounds=3, unlike=True, options=FLIPS
    ),
    "flips and confounds, 300 rows, 4 + 4, 3": Cell(
        300, 4, n_confounds=3, unlike=True, options=FLIPS
    ),
    "flips, 80 rows of unlike scale, 4 + 4": Cell(80, 4, unlike=True, options=FLIPS),
    "flips of groups, 24 x 4, 4 + 4, 3": Cell(
        96, 4, n_confounds=3, sizes=(4,), unlike=True, options=FLIPS
    ),
    "flips, component 2, 100 rows, 4 + 4, 3": Cell(
        100, 4, (0.8,), n_confounds=3, unlike=True, options=FLIPS
    ),
    "ridge, 60 rows, 40 + 40": Cell(60, 40, options=RIDGE),
    "ridge, p > n, 40 rows, 60 + 60": Cell(40, 60, options=RIDGE),
    "ridge (Roy), component 2, 60 rows, 40 + 40": Cell(
        60, 40, (0.9,), options=(*RIDGE, ("statistic", "roy"))
    ),
    "component 2, 60 rows, 25 + 25": Cell(60, 25, (0.9,)),
    "component 2, 100 rows, 10 + 10, 4 confounds": Cell(100, 10, (0.9,), n_confounds=4),
    "component 3, 100 rows, 10 + 10": Cell(100, 10, (0.7, 0.6)),
    "component 3 after strong ones, 60 rows, 10 + 10": Cell(60, 10, (0.95, 0.9)),
    "component 4, 60 rows, 18 + 18": Cell(60, 18, (0.95, 0.95, 0.95)),
    "component 4 (Roy), 60 rows, 18 + 18": Cell(
        60, 18, (0.95, 0.95, 0.95), options=(("statistic", "roy"),)
    ),
}


def rejections(
    cell: Cell, distribution: str, n_seeds: int, n_permutations: int, *, loadings: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Which data sets have a p-value of at most .05, (n_seeds, 1), and in which the test warns.

    Of loadings, there is a second column for those on earlier components, if there are any.
    """
    found: list[list[bool]] = []
    warned = []
    for seed in range(n_seeds):
        X, Y, options = cell.draw(distribution, seed)
        if options.get("reg") and options.get("statistic") is None:
            options["n_components"] = 1
        else:
            options["n_components"] = cell.step + 1
        options["loadings"] = "cross" if loadings else None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            test = permutation_test(
                X, Y, n_permutations=n_permutations, random_state=seed, **options
            )
        warned.append(bool(caught))
        if test.loading_p_values is None:
            found.append([test.p_values[cell.step] <= 0.05])
            continue
        own = test.loading_p_values["X"][cell.step :] <= 0.05
        found.append([own[:, cell.step].any(), own[:, : cell.step].any()][: 1 + bool(cell.step)])
    return np.array(found), np.array(warned)


def main(options: argparse.Namespace) -> None:
    designs, kinds = (tuple(one.split(";")) for one in (options.designs, options.distributions))
    cells = {name: cell for name, cell in CELLS.items() if name.startswith(designs)}
    of_features = [name for name in DISTRIBUTIONS if name.startswith(kinds)]
    error = 100 * np.sqrt(0.05 * 0.95 / options.seeds)
    print(
        f"% of p-values of at most .05; {options.seeds} data sets a cell (standard error "
        f"{error:.1f} at 5 %), {options.permutations} rearrangements\n"
    )
    print(f"| design | {' | '.join(of_features)} |\n|---|{'---|' * len(of_features)}")
    silent = {}
    for name, cell in cells.items():
        values = []
        for of in of_features:
            try:
                found, warned = rejections(
                    cell, of, options.seeds, options.permutations, loadings=options.loadings
                )
            except ValueError as refusal:
                values.append(f"refused: {str(refusal)[:40]}")
                continue
            values.append(" / ".join(f"{100 * one:.1f}" for one in found.mean(axis=0)))
            silent[name, of] = 100 * np.mean(found[:, 0] & ~warned)
            if warned.any():
                values[-1] += f", warned {100 * warned.mean():.3g}, silent {silent[name, of]:.1f}"
        print(f"| {name} | {' | '.join(values)} |", flush=True)
    high = [f"{', '.join(cell)}: {value:.1f}" for cell, value in silent.items() if value > _MOST]
    print(f"\nAbove {_MOST:g} % without a warning: {'; '.join(high) or 'no cell'}")


if __name__ == "__main__":
    main(OPTIONS)
