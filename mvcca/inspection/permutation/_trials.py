"""What is computed in each permutation: a row of statistics, from the rows in a new order.

A trial has `observed`, the statistic of the rows as they are (n_steps,), and `correlations` (k,).
A call with a generator returns the statistics of one rearrangement, followed by maxima of loadings
if they are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg
from scipy.stats import chi2

from mvcca.inspection.permutation._design import Design
from mvcca.inspection.permutation._exchange import Exchange, Flips
from mvcca.inspection.permutation._loading_nulls import LoadingNull
from mvcca.inspection.permutation._sides import Side
from mvcca.inspection.permutation._statistics import (
    of_correlations,
    of_several_views,
    stepwise,
)
from mvcca.problem.whitened import canonical

_NO_MATTER = 0.5  # p-value above which it does not matter how large those of later components are


class ComponentTest(NamedTuple):
    """Rows of one test: variates of both views, and what may be done to the first.

    Attributes
    ----------
    moved, fixed : ndarray, shape (m, p) and (m, q)
        Canonical variates of unit length, completed to bases; those of the first are rearranged.
        With a ridge, U F L and V F R with the singular vectors L and R of K = F UᵀV F.
    exchange : Exchange or Flips
    loadings : LoadingNull or None
        Of the variables in these rows.
    """

    moved: np.ndarray
    fixed: np.ndarray
    exchange: Exchange | Flips
    loadings: LoadingNull | None = None

    def observed(self, statistic: str) -> float:
        """The statistic of the rows as they are."""
        return float(stepwise(statistic, self.moved.T @ self.fixed, 1)[0])


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
    first : ComponentTest
    later : list of ComponentTest
        Of components 2, 3, ..., less the variates before them; the first serves the others.
    rearranged : callable or None
        Takes a generator, and returns other rows of the fixed view, if these are rearranged, too.
    """

    statistic: str
    observed: np.ndarray
    correlations: np.ndarray
    first: ComponentTest
    later: list[ComponentTest]
    rearranged: Callable[[np.random.RandomState], np.ndarray] | None = None

    def __call__(self, rng: np.random.RandomState) -> np.ndarray:
        moved = self.first.exchange.apply(self.first.moved, rng)
        fixed = self.first.fixed if self.rearranged is None else self.rearranged(rng)
        C, n_steps, null = moved.T @ fixed, len(self.observed), self.first.loadings
        found, maxima = np.array(stepwise(self.statistic, C, n_steps)), []
        if null is not None:
            kept = [0, *range(1 + len(self.later), n_steps)]
            if null.of_permuted:
                fixed, kept = self.first.exchange.apply(self.first.fixed, rng), [*range(n_steps)]
            maxima = [null.largest(C, (moved, fixed), i) for i in kept]
        for i, step in enumerate(self.later, start=1):
            moved = step.exchange.apply(step.moved, rng)
            C = moved.T @ step.fixed
            found[i] = stepwise(self.statistic, C, 1)[0]
            if step.loadings is not None:
                maxima.append(step.loadings.largest(C, (moved, step.fixed)))
        return np.concatenate([found, np.max(maxima, axis=0)]) if maxima else found


def later_steps(
    design: Design, first: ComponentTest, second: np.ndarray, n_steps: int
) -> list[ComponentTest]:
    """Tests of components 2, 3, ...; with a ridge, as long as rows are left to rearrange."""
    steps: list[ComponentTest] = []
    for i in range(1, n_steps):
        try:
            steps.append(_later_step(design, first, second, i))
        except ValueError:
            if not design.options.has_ridge:  # which allows as many components as there are rows
                raise
            break
    return steps


def _later_step(design: Design, first: ComponentTest, second: np.ndarray, i: int) -> ComponentTest:
    """The test of component i, from 0, in rows that have lost the moved view's variates before.

    Of rows that keep these, permuted ones have correlations that are too small: earlier variates
    use up a dimension. Rows of `second` are those of the fixed view in its own space.
    """
    moved, fixed = design.sides
    complement, exchange = design.without(_unit(first.moved[:, :i]))
    before = [
        complement.reduce(side.complement.lift(variates[:, i:]))
        for side, variates in ((moved, first.moved), (fixed, second))
    ]
    of_moved, of_fixed = before
    if not design.options.has_ridge:
        of_moved = _unit(of_moved)
        if fixed.complement is moved.complement:
            of_fixed = _unit(of_fixed)
    null = first.loadings
    if null is not None:
        null = None if null.of_permuted else null.without(i, before, (of_moved, of_fixed))
    return ComponentTest(of_moved, of_fixed, exchange, null)


def n_that_may_matter(r: np.ndarray, n_rows: int, first: np.ndarray, second: np.ndarray) -> int:
    """Number of leading components whose p-value may be below .5, as all p-values before them.

    By Bartlett's approximation of Wilks' statistic; all, if features nearly fill the rows.
    """
    p, q, steps = first.shape[1], second.shape[1], np.arange(len(r))
    scale = n_rows - (p + q + 3) / 2
    if scale <= 0:
        return len(r)
    p_values = chi2.sf(scale * of_correlations("wilks", r), (p - steps) * (q - steps))
    return int(np.argmax([*(p_values > _NO_MATTER), True]))


def _unit(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis, which changes nothing that is one."""
    basis, lengths = linalg.qr(rows, mode="economic")
    return np.asarray(basis * np.sign(np.diag(lengths)))


def canonical_variates(
    moved: Side, fixed: Side, reg: Mapping[str, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular values of K = F UᵀV F, and U F L and V F R, each in the space of its side."""
    cross = moved.basis.T @ in_space_of(moved, fixed, fixed.basis)
    ridges = reg[moved.name], reg[fixed.name]
    r, left, right = canonical(cross, moved.view, fixed.view, ridges, full=True)
    return r, moved.basis @ left, fixed.basis @ right


def rearranged_in_space_of(
    moved: Side,
    fixed: Side,
    rows: np.ndarray,
    exchange: Exchange | Flips,
    rng: np.random.RandomState,
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
    exchange: Exchange | Flips

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
