"""Correlation of the first component on held-out folds, and the ridge that makes it largest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mvcca.inspection.permutation._design import HELD_OUT
from mvcca.inspection.permutation._exchange import Exchange, Flips
from mvcca.inspection.permutation._nuisance import Centred
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import stepwise
from mvcca.inspection.permutation._trials import canonical_variates
from mvcca.model_selection import Trials, search_folds
from mvcca.model_selection.folds import splits_of
from mvcca.problem import Whitened
from mvcca.problem.whitened import canonical

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


def _sums(variates: tuple[np.ndarray, np.ndarray], _: int) -> np.ndarray:
    """Sums of products and of squares of held-out variates."""
    x, y = variates
    return np.array([x @ y, x @ x, y @ y])


def _correlation(sums: list[np.ndarray]) -> float:
    """The correlation of all folds, from their sums."""
    product, *squares = np.sum(sums, axis=0)
    return float(product / np.sqrt(squares[0] * squares[1]))


@dataclass(frozen=True, eq=False)
class TunedByFolds:
    """Test of the global null hypothesis with the ridge that folds choose in every permutation.

    It is the one with the largest correlation on held-out rows. Each fold is projected by the
    weights of the others, about their means. Sums over all folds make one correlation. They do not
    depend on signs, which both weights of a fold share.

    Attributes
    ----------
    statistic : str
        "held-out", which is this correlation, or a statistic of all rows with the ridge.
    moved, fixed : Side
        Rows of the first are rearranged.
    ridges : sequence of (float, float)
        Candidates, for both sides.
    folds : ndarray of int, shape (m,)
    exchange : Exchange
    """

    statistic: str
    moved: Side
    fixed: Side
    ridges: Sequence[tuple[float, float]]
    folds: np.ndarray
    exchange: Exchange | Flips

    @cached_property
    def observed(self) -> np.ndarray:
        """The statistic of the rows as they are."""
        return self._value(self.moved.basis, self._as_they_are)

    @property
    def reg(self) -> tuple[float, float]:
        """The ridges of the rows as they are."""
        return self._as_they_are.chosen["ridges"]

    @cached_property
    def correlations(self) -> np.ndarray:
        """Canonical correlations of all rows, with these ridges."""
        names = self.moved.name, self.fixed.name
        return canonical_variates(self.moved, self.fixed, dict(zip(names, self.reg, strict=True)))[
            0
        ]

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        basis = self.exchange.apply(self.moved.basis, rng)
        return self._value(basis, self._searched(basis * self.moved.view.values))

    def _value(self, basis: np.ndarray, trials: Trials) -> np.ndarray:
        """The held-out correlation, or the statistic of K = F UᵀV F."""
        if self.statistic == HELD_OUT:
            return np.array([trials.value])
        ours, theirs = trials.chosen["ridges"]
        moved = self.moved.rearranged(basis)
        return stepwise(self.statistic, moved.shrunk(ours).T @ self.fixed.shrunk(theirs), 1)

    def _searched(self, moved: np.ndarray) -> Trials:
        """Correlations of rearranged rows with those of the other side, by ridges."""
        settings = [{"ridges": own} for own in reversed(self.ridges)]  # of equal ones, the first
        variates = partial(self._variates, moved)
        found = search_folds(len(self._fixed_parts), settings, variates, _sums)
        return found.pooled(_correlation)

    def _variates(
        self, moved: np.ndarray, fold: int, settings: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """First variates of the held-out rows of both sides by ridges."""
        ours, theirs = self._part(self.moved, moved, fold), self._fixed_parts[fold]
        cross = ours.train.T @ theirs.train
        for setting in settings:
            _, left, right = canonical(cross, ours.view, theirs.view, setting["ridges"])
            yield ours.held_out @ left[:, 0], theirs.held_out @ right[:, 0]

    @cached_property
    def _as_they_are(self) -> Trials:
        return self._searched(self._rows(self.moved))

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


def folds_of(n_rows: int, groups: np.ndarray | None, seed: int) -> np.ndarray:
    """Fold of each row, (n_rows,), groups together."""
    folds = np.empty(n_rows, dtype=int)
    for fold, (_, held_out) in enumerate(splits_of(n_rows, min(N_FOLDS, n_rows), groups, seed)):
        folds[held_out] = fold
    return folds
