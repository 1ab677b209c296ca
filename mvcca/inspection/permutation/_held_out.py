"""Correlation of the first component on held-out folds, and the ridge that makes it largest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mvcca.inspection._folds import splits_of
from mvcca.inspection.permutation._exchange import Exchange
from mvcca.inspection.permutation._nuisance import Centred
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import stepwise
from mvcca.inspection.permutation._trials import canonical_variates
from mvcca.problem import Whitened, canonical

N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class FoldAxes:
    """What one view contributes to one fold, in the coordinates of its training rows."""

    view: Whitened  # of the training rows
    train: np.ndarray  # (n_train, r), U
    held_out: np.ndarray  # (n_held_out, r)

    @classmethod
    def of(cls, rows: np.ndarray, held_out: np.ndarray, n_features: int, centre: bool) -> FoldAxes:
        """Rows about the mean of the training rows, or about 0 if they have no mean."""
        train, test = rows[~held_out], rows[held_out]
        if centre:
            mean = train.mean(axis=0)
            train, test = train - mean, test - mean
        view = Whitened.of_covariance(train.T @ train, n_features=n_features)
        return cls(view, train @ view.weights, test @ view.weights)


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
            for i, ridges in enumerate(self.ridges):
                _, left, right = canonical(cross, ours.view, theirs.view, ridges)
                x, y = ours.held_out @ left[:, 0], theirs.held_out @ right[:, 0]
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
        return FoldAxes.of(rows, self.folds == fold, side.view.n_features, has_mean)

    @staticmethod
    def _rows(side: Side) -> np.ndarray:
        return side.basis * side.view.values


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
        chosen = self.search.ridges[int(self.search.of(basis * moved.view.values).argmax())]
        return self._of(basis, chosen)

    def _of(self, basis: np.ndarray, reg: tuple[float, float]) -> np.ndarray:
        """The statistic of K = F UᵀV F."""
        search = self.search
        moved = search.moved.rearranged(basis)
        return stepwise(self.statistic, moved.shrunk(reg[0]).T @ search.fixed.shrunk(reg[1]), 1)


def folds_of(n_rows: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Fold of each row, (n_rows,), groups together."""
    folds = np.empty(n_rows, dtype=int)
    for fold, (_, held_out) in enumerate(splits_of(n_rows, min(N_FOLDS, n_rows), groups, seed)):
        folds[held_out] = fold
    return folds
