"""One problem solved for many ridges, from one reduction of each view's constraint.

With B_p = Q_p T_p Q_pᵀ and T_p tridiagonal, a ridge only adds to the diagonal of T_p: in the
coordinates x Q_p, whitening takes O(d) per column, and a solution costs little more than the
singular value decomposition of two views. Eigenvectors of B_p would do the same, and take longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._maps import Maps, score_correlations
from mvcca.problem._problem import Problem
from mvcca.problem._rows import check_variance
from mvcca.problem.ridge import ridge_in
from mvcca.problem.whitener import Scaling, Tridiagonal, rounding_of
from mvcca.statistics import Moments, PairCovariance, Regression
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class Axes:
    """Orthonormal vectors in which a view's constraint is tridiagonal, as a basis of its rows.

    Attributes
    ----------
    vectors : ndarray, shape (d, r)
        Q, for the r columns that vary; others get no ridge.
    n_features : int
        Number of original features, of which d are coordinates in a basis of the rows.
    unit : float
        Mean diagonal of the constraint over the original features, of which a ridge is a multiple.
    before : Basis or None
        Orthonormal basis of the rows; None if they are the features themselves.
    """

    vectors: np.ndarray
    n_features: int
    unit: float
    before: Any = None

    @property
    def mean(self) -> Any:
        return 0.0 if self.before is None else self.before.mean

    @property
    def inverse(self) -> np.ndarray:
        return self.vectors.T if self.before is None else self.vectors.T @ self.before.inverse

    def lift(self, W: np.ndarray) -> np.ndarray:
        lifted = self.vectors @ W
        return lifted if self.before is None else np.asarray(self.before.lift(lifted))

    def back(self, Z: np.ndarray) -> np.ndarray:
        rows = Z @ self.vectors.T
        return rows if self.before is None else np.asarray(self.before.back(rows))

    def ridged(self, B: Tridiagonal, ridge: float, share: float) -> Tridiagonal:
        return Tridiagonal(share * B.diagonal + ridge, share * B.beside)

    def variances(self, B: Any, of_rows: bool = False) -> np.ndarray:
        return np.full(self.n_features, self.unit)

    def then(self, other: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class RidgePath:
    """The solutions of a problem for any ridge.

    Rows must be in the features or in orthonormal bases, in which a ridge on the features is the
    same ridge. Solutions agree with those of `Problem.solve` for a ridge that makes the problem
    well conditioned. Directions without variance, which only the ridge holds, are left out where
    nothing between views depends on them.

    Attributes
    ----------
    problem : Problem
        The problem in the axes of its constraints, whose ridges do not matter.
    means : mapping of str to ndarray
        Mean of each view as the problem was posed, before its axes.
    with_patterns : bool
        Whether the problem asks for `Maps.patterns`; see `with_patterns_of`.
    regression : Regression or None
        The regression of the rows on confounds, if the problem is that of residuals.
    bases : mapping of str to Basis
        Bases of the rows before the axes, those of confounds included.
    """

    problem: Problem
    means: Mapping[str, np.ndarray]
    with_patterns: bool = False
    regression: Regression | None = None
    bases: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, *, exact: bool = False) -> RidgePath:
        """Reduce the constraint of every view; if `exact`, no direction is left out."""
        between, within = problem.blocks()
        rows = problem.rows
        # Of rows that all views share, each pair has the matrices of the problem.
        about = problem.about
        is_of_all = isinstance(about.pairs, Moments)
        vanishes = problem.is_joint or problem.between is None  # A, where B does
        reduced: dict[str, Tridiagonal] = {}
        axes: dict[str, Any] = {}
        with threads_to_factorise(max(map(len, within.values()))):
            for name, B in within.items():
                check_variance(name, B)
                vectors, T = Tridiagonal.of(B)
                if vanishes and not exact:
                    V, T = T.without_rounding()
                    vectors = vectors if V is None else vectors @ V
                reduced[name] = T
                before = rows.bases.get(name)
                n_features = len(B) if before is None else before.n_features
                unit = float((B if B.ndim == 1 else np.diag(B)).sum()) / n_features
                axes[name] = Axes(vectors, n_features, unit, before)
            turned = {
                (p, q): axes[p].vectors.T @ A @ axes[q].vectors for (p, q), A in between.items()
            }
            pairs = []
            for (p, q), C, (B_p, B_q), count in about.by_pair():
                V_p, V_q = axes[p].vectors, axes[q].vectors
                within_pair: tuple[Any, Any]
                if is_of_all:
                    C, within_pair = turned[p, q], (reduced[p], reduced[q])
                else:
                    C, within_pair = V_p.T @ C @ V_q, (_turned(B_p, V_p), _turned(B_q, V_q))
                pairs.append(PairCovariance((p, q), C, within_pair, count))
        means = {name: about.means[name] @ axes[name].vectors for name in axes}
        about = replace(about, means=means, covariance=(turned, reduced), pairs=pairs)
        own: dict[str, Any] = {}
        if problem.between is not None:
            own = {"between": turned, "within": reduced}
        rows = replace(rows, bases=axes)
        return cls(
            replace(problem, rows=rows, about=about, with_patterns=False, **own),
            problem.about.means,
            problem.with_patterns,
            problem.about.regression,
            problem.rows.bases,
        )

    def check(self, reg: Mapping[str, float]) -> None:
        """Raise `DigitsLost`, or warn, if the rows are too ill-conditioned for these ridges."""
        conditions = {}
        _, within = self.problem.blocks()
        for name, T in within.items():
            ridge = ridge_in(reg[name], self.axes[name].unit)
            smallest, largest = np.sqrt(np.maximum(T.extremes, 0) + ridge)
            noise = self._rounding(name) / smallest
            conditions[name] = _Conditioned(len(T.diagonal), largest / smallest, noise)
        lacking = [name for name, own in self.problem.ranks.items() if own.why is not None]
        self.problem.rows.check(conditions, lacking, self.problem.about.exactness)

    def _rounding(self, name: str) -> float:
        """Deviation that rounding may give to a feature, where sums about zero lose digits."""
        exactness = self.problem.about.exactness
        if not exactness.about_zero:
            return 0.0
        rounding = exactness.rounding.get(name, rounding_of(self.means[name]))
        return float(np.max(rounding, initial=0))

    @property
    def axes(self) -> Mapping[str, Any]:
        """`Axes` of every view."""
        return self.problem.rows.bases

    def solve(
        self, reg: Mapping[str, float], n_components: int | None, *, expected: bool = True
    ) -> Maps:
        """The maps for ridges as in ``Rows.reg``, as weights of `coordinates`."""
        problem = replace(self.problem, rows=replace(self.problem.rows, reg=reg))
        return problem.solve(n_components, expected=expected, lift=False)

    def coordinates(self, views: Views) -> dict[str, np.ndarray]:
        """Rows of each view in its axes, (n_rows, r), less what their confounds explain."""
        found, z = {}, self.regression
        for name, block in views.blocks.items():
            if z is not None and name == z.name:
                continue
            V = self.axes[name].vectors
            if self.problem.about.recovered is not None:
                block = as_block(self.problem.about.recovered.filled(name, block))
            found[name] = np.asarray(block.project(np.zeros(len(V)), V))
            if z is not None:
                confounds = views.rows_beside(z.name, name)
                found[name] -= confounds.project(z.mean, z.coefficients[name] @ V)
        return found

    def lifted(self, maps: Maps) -> Maps:
        """Maps of the original features, from those that `solve` returns."""
        lifted, means = maps.lifted(self.axes), dict(self.means)
        for name, axes in self.axes.items():  # the axes may leave out a part of the mean
            if axes.before is not None:
                means[name] = axes.mean + axes.before.back(means[name][None])[0]
        regression = self.regression and self.regression.lifted(self.bases)
        return replace(lifted, means=means, regression=regression)

    def correlations(self, maps: Maps, pairs: Iterable[PairCovariance]) -> np.ndarray:
        """Correlations of the scores of rows with these covariances as posed, (n_pairs, k)."""
        weights = {name: axes.vectors @ maps.weights[name] for name, axes in self.axes.items()}
        return score_correlations(weights, pairs)

    def with_patterns_of(self, maps: Maps) -> Maps:
        """Maps that `solve` returned, with `Maps.patterns`, if the problem asks for them."""
        if not self.with_patterns or len(maps.weights) != 2 or not maps.bound:
            return maps
        between, within = self.problem.blocks()
        images = {name: within[name] @ W for name, W in maps.weights.items()}
        ((p, q), Sigma_pq), W = next(iter(between.items())), maps.weights
        return maps.with_patterns(images, {p: Sigma_pq @ W[q], q: Sigma_pq.T @ W[p]})


class _Conditioned(Scaling):
    """What `Rows.check` asks of a whitener."""

    def __init__(self, rank: int, condition: float, noise: float) -> None:
        object.__setattr__(self, "scale", np.ones(rank))
        object.__setattr__(self, "condition", condition)
        object.__setattr__(self, "noise", noise)


def _turned(B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """VᵀBV."""
    return V.T @ B @ V if B.ndim == 2 else (V.T * B) @ V
