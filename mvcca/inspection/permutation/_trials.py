"""What is computed in each permutation: a row of statistics, from the rows in a new order.

A trial has `observed`, the statistic of the rows as they are (n_steps,), and `correlations` (k,).
A call with a generator returns the statistics of one rearrangement, followed by maxima of loadings
if they are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from mvcca.inspection.permutation._exchange import Exchange
from mvcca.inspection.permutation._loading_nulls import LoadingNull
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import of_several_views, stepwise
from mvcca.problem import canonical


@dataclass(frozen=True, eq=False)
class Stepwise:
    """Tests of all components of two views, each without those before it.

    Attributes
    ----------
    statistic : str
    observed : ndarray, shape (n_steps,)
        The statistic of the rows as they are.
    correlations : ndarray, shape (k,)
        Canonical correlations.
    moved, fixed : ndarray, shape (m, p) and (m, q)
        Canonical variates of unit length, completed to bases; those of the first are rearranged.
        With a ridge, U F L and V F R with the singular vectors L and R of K = F UᵀV F.
    exchange : Exchange
    loadings : LoadingNull or None
    rearranged : callable or None
        Takes a generator, and returns other rows of `fixed`, if these are rearranged, too.
    """

    statistic: str
    observed: np.ndarray
    correlations: np.ndarray
    moved: np.ndarray
    fixed: np.ndarray
    exchange: Exchange
    loadings: LoadingNull | None = None
    rearranged: Callable[[np.random.RandomState], np.ndarray] | None = None

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        moved = self.exchange.apply(self.moved, rng)
        fixed = self.fixed if self.rearranged is None else self.rearranged(rng)
        C = moved.T @ fixed
        found = stepwise(self.statistic, C, len(self.observed))
        if self.loadings is None:
            return found
        if self.loadings.of_permuted:
            fixed = self.exchange.apply(self.fixed, rng)
        return np.append(found, self.loadings.maxima(C, (moved, fixed), len(self.observed)))


def canonical_variates(
    moved: Side, fixed: Side, reg: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values of K = F UᵀV F, and U F L and V F R, each in the space of its side."""
    cross = moved.basis.T @ in_space_of(moved, fixed, fixed.basis)
    ridges = reg[moved.name], reg[fixed.name]
    r, left, right = canonical(cross, moved.view, fixed.view, ridges, full=True)
    return r, moved.basis @ left, fixed.basis @ right


def rearranged_in_space_of(
    moved: Side, fixed: Side, rows: np.ndarray, exchange: Exchange, rng: np.random.RandomState
) -> np.ndarray:
    """Rows of `fixed`, whose confounds differ, rearranged and seen in the space of `moved`.

    Permuting one view only would be too liberal if each depends on the confounds of the other.
    """
    return in_space_of(moved, fixed, exchange.apply(rows, rng))


def in_space_of(moved: Side, fixed: Side, rows: np.ndarray) -> np.ndarray:
    """Rows of one side in the space in which those of the other are rearranged."""
    if fixed.complement is moved.complement:
        return rows
    return moved.complement.reduce(fixed.complement.lift(rows))


@dataclass(frozen=True, eq=False)
class SeveralViews:
    """Test of the global null hypothesis that several views are independent.

    Attributes
    ----------
    statistic : str
    bases : list of ndarray, shape (m, r_p)
        Rows of all but the first are rearranged, each on its own.
    exchange : Exchange
    """

    statistic: str
    bases: list[np.ndarray]
    exchange: Exchange

    @property
    def observed(self) -> np.ndarray:
        """The statistic of the rows as they are."""
        return np.array([self._of(self.bases, self.statistic)])

    @property
    def correlations(self) -> np.ndarray:
        """λ - 1 with the largest eigenvalue λ of MVCCA."""
        return np.array([self._of(self.bases, "roy")])

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        first, *others = self.bases
        moved = [first, *(self.exchange.apply(basis, rng) for basis in others)]
        return np.array([self._of(moved, self.statistic)])

    def _of(self, bases: list[np.ndarray], statistic: str) -> float:
        own = np.repeat(np.arange(len(bases)), [basis.shape[1] for basis in bases])
        return of_several_views(statistic, bases, own[:, None] == own)
