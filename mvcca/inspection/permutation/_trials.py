"""What is computed in each permutation: a row of statistics, from the rows in a new order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mvcca.inspection.permutation._exchange import Exchange
from mvcca.inspection.permutation._loading_nulls import LoadingNull
from mvcca.inspection.permutation._nuisance import Complement
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import of_several_views, stepwise
from mvcca.problem import canonical


class Trial(Protocol):
    """A test statistic: of the rows as they are, and of rearranged ones."""

    @property
    def observed(self) -> np.ndarray:
        """The statistic of the rows as they are, (n_steps,)."""

    @property
    def correlations(self) -> np.ndarray:
        """Canonical correlations, (k,)."""

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        """The statistics of one rearrangement, and after them maxima of loadings, if any."""


@dataclass(frozen=True, eq=False)
class Bipartial:
    """Rows of a view with other confounds, rearranged and seen in the space of the first view.

    Permuting one view only would be too liberal if each depends on the confounds of the other.
    """

    rows: np.ndarray  # (m_own, q)
    exchange: Exchange
    own: Complement
    other: Complement

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        return self.other.reduce(self.own.lift(self.exchange.apply(self.rows, rng)))


@dataclass(frozen=True, eq=False)
class Stepwise:
    """Tests of all components of two views, each without those before it.

    Attributes
    ----------
    statistic : str
    observed, correlations : ndarray
        See `Trial`.
    moved, fixed : ndarray, shape (m, p) and (m, q)
        Canonical variates of unit length, completed to bases; those of the first are rearranged.
        With a ridge, U F L and V F R with the singular vectors L and R of K = F UᵀV F.
    exchange : Exchange
    loadings : LoadingNull or None
    bipartial : Bipartial or None
        How to rearrange the rows of `fixed`, too.
    """

    statistic: str
    observed: np.ndarray
    correlations: np.ndarray
    moved: np.ndarray
    fixed: np.ndarray
    exchange: Exchange
    loadings: LoadingNull | None = None
    bipartial: Bipartial | None = None

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        moved = self.exchange.apply(self.moved, rng)
        fixed = self.fixed if self.bipartial is None else self.bipartial(rng)
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
