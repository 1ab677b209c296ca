"""One problem solved for many ridges, from one reduction of each view's constraint.

With B_p = Q_p T_p Q_pᵀ and T_p tridiagonal, a ridge only adds to the diagonal of T_p: in the
coordinates x Q_p, whitening takes O(d) per column, and a solution costs little more than the
singular value decomposition of two views. Eigenvectors of B_p would do the same, and take longer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._estimate import rows_in
from mvcca.problem._problem import Problem
from mvcca.problem.expected import score_correlations
from mvcca.problem.maps import Maps
from mvcca.problem.precision import check_precision
from mvcca.problem.ridge import ridge_in
from mvcca.problem.rows import check_variance
from mvcca.problem.whitener import Scaling, Tridiagonal, rounding_of
from mvcca.statistics import Moments, Regression
from mvcca.statistics.pair_covariance import PairCovariance
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

    @classmethod
    def of(cls, B: np.ndarray, before: Any, exact: bool) -> tuple[Axes, Tridiagonal]:
        """Axes of a constraint, and the tridiagonal matrix in them.

        Unless `exact`, without directions that are only rounding.
        """
        vectors, T = Tridiagonal.of(B)
        if not exact:
            V, T = T.without_rounding()
            vectors = vectors if V is None else vectors @ V
        n_features = len(B) if before is None else before.n_features
        unit = float((B if B.ndim == 1 else np.diag(B)).sum()) / n_features
        return cls(vectors, n_features, unit, before), T

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
        n_columns = self.n_features if self.before is None else len(self.before.mean)
        return np.full(n_columns, self.unit)

    def then(self, other: Any) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class MatrixPath:
    """The solutions of a problem for any ridge.

    Rows must be in the features or in orthonormal bases, in which a ridge on the features is the
    same ridge. Solutions agree with those of `Problem.solve` for a ridge that makes the problem
    well conditioned; fewer components are the first of more. Directions without variance, which
    only the ridge holds, are left out where nothing between views depends on them.

    Attributes
    ----------
    problem : Problem
        The problem in the axes of its constraints, whose ridges do not matter.
    means : mapping of str to ndarray
        Mean of each view as the problem was posed.
    regression : Regression or None
        The regression of the rows on confounds, if the problem is that of residuals.
    bases : mapping of str to Basis
        Bases of the rows before the axes, those of confounds included.
    units : mapping of str to Standardized
        Units of views whose rows are features, and whose axes are those of standardized columns.
    """

    # Without the problem as posed: its matrices would take as much memory again.
    problem: Problem
    means: Mapping[str, np.ndarray]
    regression: Regression | None
    bases: Mapping[str, Any]
    units: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        exact: bool = False,
        known: dict[tuple[str, bool], tuple[Axes, Tridiagonal]] | None = None,
    ) -> MatrixPath:
        """Reduce the constraint of every view; if `exact`, no direction is left out.

        Reductions are kept in `known` by the name of the view and whether its columns are
        standardized, for other problems of the same rows.
        """
        known = {} if known is None else known
        units, bases = problem.units, problem.rows.reading.bases
        means, regression = problem.about.means, problem.about.regression
        problem = problem.standardized() if units else problem
        between, within = problem.blocks()
        about, rows = problem.about, problem.rows
        exact = exact or not (problem.is_joint or problem.between is None)  # A, where B vanishes
        axes: dict[str, Any] = {}
        reduced: dict[str, Tridiagonal] = {}
        with threads_to_factorise(max(map(len, within.values()))):
            for name, B in within.items():
                check_variance(name, B)
                own = name, name in units
                if own not in known:
                    known[own] = Axes.of(B, rows.reading.bases.get(name), exact)
                axes[name], reduced[name] = known[own]
            turned = {
                (p, q): axes[p].vectors.T @ A @ axes[q].vectors for (p, q), A in between.items()
            }
            pairs = []
            for (p, q), C, (B_p, B_q), count in about.by_pair():
                of_pair: tuple[Any, Any] = reduced[p], reduced[q]
                if isinstance(about.pairs, Moments):  # rows that all views share
                    C = turned[p, q]
                else:
                    V_p, V_q = axes[p].vectors, axes[q].vectors
                    C, of_pair = V_p.T @ C @ V_q, (_turned(B_p, V_p), _turned(B_q, V_q))
                pairs.append(PairCovariance((p, q), C, of_pair, count))
        own_means = {name: about.means[name] @ axes[name].vectors for name in axes}
        about = replace(about, means=own_means, covariance=(turned, reduced), pairs=pairs)
        is_cca = problem.between is None
        blocks: dict[str, Any] = {} if is_cca else {"between": turned, "within": reduced}
        in_axes = replace(problem, rows=rows.read(bases=axes, units={}), about=about, **blocks)
        return cls(in_axes, means, regression, bases, units)

    @property
    def axes(self) -> Mapping[str, Any]:
        """`Axes` of every view."""
        return self.problem.rows.reading.bases

    def check(self, ridges: Collection[Mapping[str, float]]) -> None:
        """Raise `DigitsLost`, or warn, if the rows are too ill-conditioned for these ridges."""
        problem, about = self.problem, self.problem.about
        whiteners = {}
        for name, T in problem.blocks()[1].items():
            ridge = ridge_in(min(reg[name] for reg in ridges), self.axes[name].unit)
            smallest, largest = np.sqrt(np.maximum(T.extremes, 0) + ridge)
            rounding = 0.0
            if about.exactness.about_zero:
                own = about.exactness.rounding.get(name, rounding_of(self.means[name]))
                rounding = float(np.max(own, initial=0))
            scale = np.ones(len(T.diagonal))
            whiteners[name] = Scaling(scale, largest / smallest, rounding / smallest)
        check_precision(problem.rows, whiteners, about.exactness, problem.ranks)

    def solve(
        self, ridges: Mapping[str, float], k: int | None = None, *, expected: bool = True
    ) -> Maps:
        """The maps for ridges as in ``Rows.reg``, as weights of `coordinates`."""
        problem = replace(self.problem, rows=replace(self.problem.rows, reg=ridges))
        return problem.solve(k, expected=expected, lift=False)

    def coordinates(self, views: Views) -> dict[str, np.ndarray]:
        """Rows of each view in its axes, (n_rows, r), less what their confounds explain."""
        vectors = {name: self._vectors(name) for name in self.axes}
        origins = {name: np.zeros(len(V)) for name, V in vectors.items()}
        about = self.problem.about
        views = views if about.features_of is None else about.features_of(views)
        return rows_in(views, vectors, origins, about.recovered, self.regression)

    def lifted(self, maps: Maps, *, patterns: bool = False) -> Maps:
        """Maps of the original features, from those that `solve` returns.

        With `patterns`, those of two views are found, too; see `Problem.with_patterns`.
        """
        maps = self.problem.with_patterns(maps) if patterns else maps
        lifted, means = maps.lifted(self.axes), dict(self.means)
        for name, basis in self.bases.items():  # the axes may leave out a part of the mean
            if name in self.axes:
                means[name] = basis.mean + basis.back(means[name][None])[0]
        regression = self.regression and self.regression.lifted(self.bases)
        return replace(lifted, means=means, regression=regression)

    def correlations(self, maps: Maps, pairs: Iterable[PairCovariance]) -> np.ndarray:
        """Correlations of the scores of rows with these covariances as posed, (n_pairs, k)."""
        weights = {name: self._vectors(name) @ maps.weights[name] for name in self.axes}
        return score_correlations(weights, pairs)

    def _vectors(self, name: str) -> np.ndarray:
        """The axes of a view as weights of the columns of its rows, (d, r)."""
        V: np.ndarray = self.axes[name].vectors
        return self.units[name].lift(V) if name in self.units else V


def _turned(B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """VᵀBV."""
    return V.T @ B @ V if B.ndim == 2 else (V.T * B) @ V
