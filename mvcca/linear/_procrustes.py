"""Procrustes analysis: rotations that align views."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import permutations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.linear._predicting import PredictingEstimator
from mvcca.machine import lapack
from mvcca.model_selection import Space
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Estimate, Problem, Rows
from mvcca.problem.rows import check_variance
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.statistics.pair_covariance import PairCovariance

_MOST_STEPS = 1000
_TOLERANCE = 1e-15  # relative gain of the criterion

Blocks = Mapping[tuple[str, str], np.ndarray]


class Procrustes(PredictingEstimator):
    r"""Orthogonal Procrustes analysis, optionally with scaling.

    Finds the orthonormal maps under which centred views x̄_p are closest,

    .. math::

        \min_W \sum_{p≠q} E ‖W_p^⊤ \bar x_p - W_q^⊤ \bar x_q‖^2
        \quad \text{subject to} \quad W_p^⊤ W_p = I.

    Use it to align embeddings of two models or two languages with few pairs: rotations keep
    distances, and there is no parameter to choose. For two views with the cross-covariance
    Σ_xy = U S Vᵀ, the maps are U and V, so that Q = U Vᵀ is the rotation of x̄ that is closest to ȳ
    [1]_. With more than two views this is generalized Procrustes analysis by the
    criterion max Σ_{p≠q} tr(W_pᵀ Σ_pq W_q) [2]_, solved by setting each W_p to the orthonormal
    factor of Σ_{q≠p} Σ_pq W_q in turn; steps begin at the solution of `PLS`, and may end in a local
    optimum. Views may differ in their number of features.

    Parameters
    ----------
    n_components : int, None or "cv", default=None
        Dimension of the shared space; None is the largest possible, the number of features of the
        narrowest view. All distances between rows of that view are kept then. "cv" chooses by 5
        folds.
    scale : bool, default=True
        Whether `predict` multiplies rotated rows by the least-squares scale
        tr(Qᵀ Σ_xy) / tr(Σ_xx). `transform` only rotates.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        W_p, with orthonormal columns, by view name.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        Covariance of the scores of two views, mean over pairs, decreasing; for two views the
        singular values S.
    scales_ : ndarray, shape (n_views, n_views)
        Entry (p, q) multiplies scores of view p to predict view q; ones without `scale`.
    ranking_ : str
        The chosen ranking, as in `CCA`; with ``n_components="cv"`` only, as is the next one.
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Number of features that vary, or the rank for a view with more features than rows.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    AffineMap : Any affine map in place of a rotation.
    CFA : The same maps of two views, a few components only.

    References
    ----------
    .. [1] Schönemann, "A generalized solution of the orthogonal Procrustes problem",
       Psychometrika 1966.
    .. [2] ten Berge, "Orthogonal Procrustes rotation for two or more matrices", Psychometrika 1977.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca import Procrustes
    >>> rng = np.random.default_rng(0)
    >>> old = rng.normal(size=(50, 3))
    >>> rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    >>> model = Procrustes().fit({"old": old, "new": 2 * old @ rotation + 1})
    >>> new = model.predict({"old": old}, target="new")
    >>> bool(np.allclose(new, 2 * old @ rotation + 1))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None, StrOptions({SEARCHED})],
        "scale": ["boolean"],
        "cv_goal": PredictingEstimator._parameter_constraints["cv_goal"],
    }

    _if_too_large = (
        "CFA finds the same maps of two views, a few components, by products with the rows: "
        "CFA(n_components). Or reduce the features first, as by PerView(TruncatedSVD(300))."
    )
    scales_: np.ndarray

    def __init__(
        self,
        n_components: int | str | None = None,
        *,
        scale: bool = True,
        cv_goal: Goal | None = None,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Numbers of components; maps of more than two views depend on it."""
        widths = rows.views.widths.values()
        if len(widths) == 2:
            return Space(has_prefixes=True)
        return Space({"n_components": tuple(Space.numbers_of_components(min(widths)))})

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        # Every direction is rotated, also those whose variance float32 products cannot resolve.
        return rows.read(equilibrate=False, float32=False, decompose=False)

    def _learn(self, rows: Rows, statistic: Moments | PairMoments) -> None:
        Sigma, columns = statistic.covariance(), column_slices(statistic.widths)
        variances = {name: np.diag(Sigma)[own] for name, own in columns.items()}
        for name, own in columns.items():
            check_variance(name, Sigma[own, own])
        varies = {name: (variance > 0).astype(float) for name, variance in variances.items()}
        narrowest = int(min(varying.sum() for varying in varies.values()))
        maps = Problem(  # in the coordinates of the bases, which are orthonormal
            rows.read(bases={}), Estimate(statistic.mean()), between=Sigma, within=varies
        ).solve(min(self.n_components or narrowest, narrowest))
        between = {(p, q): Sigma[columns[p], columns[q]] for p, q in permutations(columns, 2)}
        weights, values = maps.weights, maps.values
        assert values is not None
        assert maps.bound is not None
        if len(columns) > 2 and len(values):
            weights, values = _aligned(between, weights)
        self.scales_ = np.ones((len(columns), len(columns)))
        if self.scale:
            self.scales_ = _scales(statistic.by_pair(Sigma), weights)
        maps = replace(
            maps,
            weights=weights,
            eigenvalues=values,
            bound=min(maps.bound, narrowest),
            variances={
                name: rows.variances(name, Sigma[own, own], isinstance(statistic, Moments))
                for name, own in columns.items()
            },
        )
        self._keep(maps.lifted(rows.reading.bases).checked(self.n_components))

    def _coefficients(self, source: str, target: str) -> np.ndarray:
        pair = self.view_names_.index(source), self.view_names_.index(target)
        return self.scales_[pair] * self.weights_[target].T


def _aligned(
    between: Blocks, weights: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Orthonormal maps at a maximum of Σ_{p≠q} tr(W_pᵀ Σ_pq W_q), and its terms by component."""
    weights = {name: _orthonormal(W) for name, W in weights.items()}
    criterion, change = -np.inf, np.inf
    for _ in range(_MOST_STEPS):
        last = dict(weights)
        for name in weights:
            weights[name] = _orthonormal(_covariances(between, weights, name))
        agreement = sum(W.T @ _covariances(between, weights, n) for n, W in weights.items())
        before, criterion = criterion, np.trace(agreement)
        moved, change = change, max(np.abs(W - last[n]).max() for n, W in weights.items())
        # The gain is quadratic in the error of the maps, which shrinks until only rounding is left.
        if criterion - before <= _TOLERANCE * abs(criterion) and change >= moved:
            break
    values, rotation = lapack.top_eigenpairs((agreement + agreement.T) / 2, len(agreement))
    pairs = len(weights) * (len(weights) - 1)
    return {name: W @ rotation[:, ::-1] for name, W in weights.items()}, values[::-1] / pairs


def _covariances(between: Blocks, weights: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    """Σ_{q≠p} Σ_pq W_q."""
    return np.sum([between[name, q] @ W for q, W in weights.items() if q != name], axis=0)


def _orthonormal(W: np.ndarray) -> np.ndarray:
    """The matrix with orthonormal columns that is closest to W."""
    result, varies = np.zeros_like(W), W.any(axis=1)  # features that never vary keep weight 0
    result[varies] = lapack.orthogonal_factor(W[varies])
    return result


def _scales(pairs: Iterable[PairCovariance], weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """tr(W_pᵀ Σ_pq W_q) / tr(W_pᵀ Σ_pp W_p) of all pairs of views."""
    names, scales = list(weights), np.eye(len(weights))
    for (p, q), between, within, _ in pairs:
        common = np.einsum("ik,ik->", weights[p], between @ weights[q])
        for name, other, B in zip((p, q), (q, p), within, strict=True):
            own = np.einsum("ik,ik->", weights[name], B @ weights[name])
            scales[names.index(name), names.index(other)] = common / own if own > 0 else 0
    return scales
