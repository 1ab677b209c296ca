"""Correlation of the first component on held-out folds, and the ridge that makes it largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg

from mvcca.inspection._folds import splits_of
from mvcca.inspection.permutation._exchange import Exchange
from mvcca.inspection.permutation._nuisance import Centred
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import stepwise
from mvcca.inspection.permutation._trials import canonical_variates
from mvcca.machine import lapack

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FoldAxes:
    """What one view contributes to one fold, in principal axes of its training rows."""

    train: np.ndarray  # (n_train, r)
    held_out: np.ndarray  # (n_held_out, r)
    squares: np.ndarray  # (r,), of lengths of the axes of the training rows
    unit: float  # mean of these over the features: what a ridge is measured in

    @classmethod
    def of(cls, rows: np.ndarray, held_out: np.ndarray, n_features: int, centre: bool) -> FoldAxes:
        """Rows about the mean of the training rows, or about 0 if they have no mean."""
        train, test = rows[~held_out], rows[held_out]
        if centre:
            mean = train.mean(axis=0)
            train, test = train - mean, test - mean
        squares, axes = linalg.eigh(train.T @ train)
        real = squares > len(squares) * np.finfo(float).eps * squares[-1]
        axes = axes[:, real]
        return cls(train @ axes, test @ axes, squares[real], squares.sum() / n_features)

    def scale(self, reg: float) -> np.ndarray:
        """Whitening of the axes with a ridge, (r,)."""
        return 1 / np.sqrt(self.squares + reg * self.unit)


@dataclass(frozen=True, eq=False)
class HeldOutCorrelation:
    """Test of the correlation on held-out rows, with the ridge that makes it largest.

    Each fold is projected by the weights of the others, about their means. Sums over all folds make
    one correlation. They do not depend on signs, which both weights of a fold share.

    Attributes
    ----------
    moved, fixed : Side
        Rows of the first are rearranged.
    ridges : sequence of (float, float)
        Candidates, for both sides.
    folds : ndarray of int, shape (m,)
    exchange : Exchange
    """

    moved: Side
    fixed: Side
    ridges: Sequence[tuple[float, float]]
    folds: np.ndarray
    exchange: Exchange

    @cached_property
    def observed(self) -> np.ndarray:
        """The largest correlation over the ridges."""
        return self._values.max(keepdims=True)

    @property
    def reg(self) -> tuple[float, float]:
        """The ridges of the rows as they are."""
        return self.ridges[int(self._values.argmax())]

    @cached_property
    def correlations(self) -> np.ndarray:
        """Canonical correlations of all rows, with these ridges."""
        names = self.moved.name, self.fixed.name
        return canonical_variates(self.moved, self.fixed, dict(zip(names, self.reg, strict=True)))[
            0
        ]

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        return self.of(self.exchange.apply(self._rows(self.moved), rng)).max(keepdims=True)

    def of(self, moved: np.ndarray) -> np.ndarray:
        """Correlations of rearranged rows with those of the other side, (n_ridges,)."""
        sums = np.zeros((3, len(self.ridges)))
        for fold, theirs in enumerate(self._fixed_parts):
            ours = self._part(self.moved, moved, fold)
            cross = ours.train.T @ theirs.train
            for i, (reg_x, reg_y) in enumerate(self.ridges):
                scale_x, scale_y = ours.scale(reg_x), theirs.scale(reg_y)
                left, _, right = lapack.svd(scale_x[:, None] * cross * scale_y)
                x = ours.held_out @ (scale_x * left[:, 0])
                y = theirs.held_out @ (scale_y * right[0])
                sums[:, i] += x @ y, x @ x, y @ y
        return sums[0] / np.sqrt(sums[1] * sums[2])

    @cached_property
    def _values(self) -> np.ndarray:
        return self.of(self._rows(self.moved))

    @cached_property
    def _fixed_parts(self) -> list[FoldAxes]:
        rows = self._rows(self.fixed)
        return [self._part(self.fixed, rows, fold) for fold in range(self.folds.max() + 1)]

    def _part(self, side: Side, rows: np.ndarray, fold: int) -> FoldAxes:
        has_mean = isinstance(side.complement, Centred)
        return FoldAxes.of(rows, self.folds == fold, side.n_features, has_mean)

    @staticmethod
    def _rows(side: Side) -> np.ndarray:
        return side.basis * side.sizes


@dataclass(frozen=True, eq=False)
class Tuned:
    """Test of the global null hypothesis with a ridge that folds choose in every permutation.

    Attributes
    ----------
    statistic : str
    search : HeldOutCorrelation
    """

    statistic: str
    search: HeldOutCorrelation

    @property
    def observed(self) -> np.ndarray:
        """The statistic of the rows as they are."""
        return self._of(self.search.moved.basis, self.search.reg)

    @property
    def correlations(self) -> np.ndarray:
        """Canonical correlations with the chosen ridge."""
        return self.search.correlations

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        moved = self.search.moved
        basis = self.search.exchange.apply(moved.basis, rng)
        chosen = self.search.ridges[int(self.search.of(basis * moved.sizes).argmax())]
        return self._of(basis, chosen)

    def _of(self, basis: np.ndarray, reg: tuple[float, float]) -> np.ndarray:
        """The statistic of K = F UᵀV F."""
        search = self.search
        moved = replace(search.moved, basis=basis)
        return stepwise(self.statistic, moved.shrunk(reg[0]).T @ search.fixed.shrunk(reg[1]), 1)


def folds_of(n_rows: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Fold of each row, (n_rows,), groups together."""
    folds = np.empty(n_rows, dtype=int)
    for fold, (_, held_out) in enumerate(splits_of(n_rows, min(N_FOLDS, n_rows), groups, seed)):
        folds[held_out] = fold
    return folds
