"""One problem solved for many ridges, from one decomposition of each view's constraint.

With B_p = V_p diag(e_p) V_pᵀ, a ridge only adds to e_p: in the coordinates x V_p, every constraint
is diagonal, and a solution costs the singular value decomposition of D_p V_pᵀ A_pq V_q D_q.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.machine import lapack
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._maps import Maps
from mvcca.problem._problem import Problem
from mvcca.problem._rows import check_variance
from mvcca.problem.linalg import Scaling, rounding_of
from mvcca.statistics import Moments, PairCovariance

_EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class Axes:
    """Eigenvectors of a view's constraint, as a basis of its rows.

    Attributes
    ----------
    vectors : ndarray, shape (d, r)
        V, orthonormal.
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

    def ridged(self, B: np.ndarray, ridge: float, share: float) -> np.ndarray:
        return share * B + ridge

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
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
        Whether the problem asks for `Maps.patterns`; see `patterns`.
    """

    problem: Problem
    means: Mapping[str, np.ndarray]
    with_patterns: bool = False

    @classmethod
    def of(cls, problem: Problem, *, exact: bool = False) -> RidgePath:
        """Decompose the constraint of every view; if `exact`, no direction is left out."""
        between, within = problem.blocks()
        rows = problem.rows
        # Of rows that all views share, the constraint of a view is its covariance in every pair.
        are_shared = isinstance(problem.moments, Moments)
        vanishes = problem.is_joint or problem.moments is not None  # A, where B does
        values: dict[str, np.ndarray] = {}
        axes: dict[str, Axes] = {}
        with threads_to_factorise(max(map(len, within.values()))):
            for name, B in within.items():
                check_variance(name, B)
                e, V = _eigenpairs(np.diag(B) if B.ndim == 1 else B)
                varies = e > (10 * len(e) * _EPS * e[-1] if vanishes and not exact else -np.inf)
                before = rows.bases.get(name)
                n_features = len(B) if before is None else before.n_features
                unit = float((B if B.ndim == 1 else np.diag(B)).sum()) / n_features
                values[name] = np.maximum(e[varies], 0)
                axes[name] = Axes(V[:, varies], n_features, unit, before)
            pairs = []
            for (p, q), C, (B_p, B_q), count in problem.of_pairs():
                V_p, V_q = axes[p].vectors, axes[q].vectors
                if are_shared:
                    within_pair = values[p], values[q]
                else:
                    within_pair = _turned(B_p, V_p), _turned(B_q, V_q)
                pairs.append(PairCovariance((p, q), V_p.T @ C @ V_q, within_pair, count))
            turned = {
                (p, q): axes[p].vectors.T @ A @ axes[q].vectors for (p, q), A in between.items()
            }
        return cls(
            replace(
                problem,
                rows=replace(rows, bases=axes),
                means={name: problem.means[name] @ axes[name].vectors for name in axes},
                between=turned,
                within=values,
                moments=None,
                pairs=pairs,
                is_cca=problem.moments is not None,
                with_patterns=False,
            ),
            problem.means,
            problem.with_patterns,
        )

    def check(self, reg: Mapping[str, float]) -> None:
        """Raise `DigitsLost`, or warn, if the rows are too ill-conditioned for these ridges."""
        conditions = {}
        _, values = self.problem.blocks()
        for name, e in values.items():
            ridged = e + reg[name] * self.axes[name].unit
            conditions[name] = _Conditioned(
                len(ridged),
                float(np.sqrt(ridged[-1] / ridged[0])),
                self._rounding(name) / float(np.sqrt(ridged[0])),
            )
        self.problem.rows.check(conditions, self.problem.rank_expected, self.problem.exactness)

    def _rounding(self, name: str) -> float:
        """Deviation that rounding may give to a feature, where sums about zero lose digits."""
        exactness = self.problem.exactness
        if not exactness.about_zero:
            return 0.0
        rounding = exactness.rounding.get(name, rounding_of(self.means[name]))
        return float(np.max(rounding, initial=0))

    @property
    def axes(self) -> Mapping[str, Any]:
        """`Axes` of every view."""
        return self.problem.rows.bases

    def solve(self, reg: Mapping[str, float], n_components: int | None) -> Maps:
        """The maps for ridges in units of the mean variances, as weights of `coordinates`."""
        rows = replace(self.problem.rows, reg=reg)
        return replace(self.problem, rows=rows).solve(n_components, lift=False)

    def coordinates(self, name: str, block: Any) -> np.ndarray:
        """Rows of a view in its axes, (n_rows, r)."""
        V = self.axes[name].vectors
        return np.asarray(as_block(block).project(np.zeros(len(V)), V))

    def lifted(self, maps: Maps) -> Maps:
        """Maps of the original features, from those that `solve` returns."""
        lifted, means = maps.lifted(self.axes), dict(self.means)
        for name, axes in self.axes.items():  # the axes may leave out a part of the mean
            if axes.before is not None:
                means[name] = axes.mean + axes.before.back(means[name][None])[0]
        return replace(lifted, means=means)

    def patterns(self, maps: Maps, k: int | None) -> dict[str, np.ndarray]:
        """`Maps.patterns` of the original features, by the first k of the maps of two views."""
        between, within = self.problem.blocks()
        (p, q), A = next(iter(between.items()))
        found = {}
        for name, other, C in ((p, q, A), (q, p, A.T)):
            W = maps.weights[other][:, :k]
            variances = (W.T * within[other]) @ W
            axes = self.axes[name]
            centred = axes.back((C @ W @ linalg.pinvh(variances)).T)
            found[name] = centred.T
        return found


class _Conditioned(Scaling):
    """What `Rows.check` asks of a whitener."""

    def __init__(self, rank: int, condition: float, noise: float) -> None:
        object.__setattr__(self, "scale", np.ones(rank))
        object.__setattr__(self, "condition", condition)
        object.__setattr__(self, "noise", noise)


def _eigenpairs(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, increasing, and eigenvectors of the columns that vary; others get no ridge."""
    varies = np.flatnonzero(np.diag(B) > 0)
    if len(varies) == len(B):
        return lapack.top_eigenpairs(B, len(B))
    vectors = np.zeros((len(B), len(varies)))
    values, vectors[varies] = lapack.top_eigenpairs(B[np.ix_(varies, varies)], len(varies))
    return values, vectors


def _turned(B: np.ndarray, V: np.ndarray) -> np.ndarray:
    """VᵀBV."""
    return V.T @ B @ V if B.ndim == 2 else (V.T * B) @ V
