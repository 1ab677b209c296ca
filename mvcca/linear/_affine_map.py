"""Least-squares affine maps into the space of one view, of full or of reduced rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base.standardizing import STANDARDIZED, in_told_units, with_units
from mvcca.blocks import as_block
from mvcca.linear._predicting import PredictingEstimator
from mvcca.linear.ridges import Ridges
from mvcca.model_selection import Space
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.problem import Estimate, Problem, Rows
from mvcca.problem.precision import Exactness
from mvcca.problem.ridge import reg_of_names
from mvcca.problem.rows import check_variance
from mvcca.problem.units import Standardized
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.views import Views


class AffineMap(PredictingEstimator):
    r"""Ridge regression of one view on another, of full or of reduced rank.

    Finds the affine maps of every view x to the target y with

    .. math::

        \min_B E ‖\bar y - \bar x B‖^2 + r_x ‖B‖^2
        \quad \text{subject to} \quad \operatorname{rank} B ≤ \mathtt{n\_components},

    for centred rows x̄, ȳ: ridge regression with many outputs, and with fewer components
    reduced-rank regression [1]_, also known as redundancy analysis [2]_. With the ridge solution
    B₀ = (Σ_xx + r_x I)⁻¹ Σ_xy and the leading eigenvectors V of Σ_yx B₀, it is B = B₀ V Vᵀ.
    `transform` maps x to x̄ B₀ V and y to ȳ V, so that cosines between the two are those in the
    target's own space, within the span of V. Several views have V in common. Each is regressed over
    the objects that are seen in it and in the target.

    Use it to keep an index when the embedding model changes: `predict` maps the stored vectors of
    the old model to the new one.

    Parameters
    ----------
    n_components : int or None, default=None
        Rank of the maps; None does not restrict it.
    reg : float, mapping of str to float, or "cv", default=1e-2
        Ridge r_x in units of the mean variance of the view, so that rescaling it changes nothing. A
        mapping names the views other than the target. "cv" chooses by exact leave-one-out, or by 5
        folds if the rank is restricted.
    scale : bool, mapping of str to bool, "auto" or "cv", default="auto"
        Which views to standardize, as in `CCA`; `weights_` stay in the units of the features. If it
        is the target, errors of its features count in units of their standard deviations.
    target : str or None, default=None
        The view in whose space rows are compared; None is the last view.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on left-out rows: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "object"; a class goal needs labels as y.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        B₀ V by view name, and for the target V, with orthonormal columns in its units.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    loadings_ : ndarray, shape (n_features, n_components_)
        Coefficients of the target's features on scores: V in the units of the features.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    eigenvalues_ : ndarray, shape (n_components_,)
        Singular values of (Σ_xx + r_x I)^(-1/2) Σ_xy, decreasing; their squares are the variances
        of the target that components explain.
    scale_ : dict of str to bool
        Which views were standardized.
    target_ : str
        The view that `predict` returns.
    reg_ : float
        The chosen ridge; with ``reg="cv"`` only, as are the next two.
    ranking_ : str
        The chosen ranking, "cosine" or "cosine+csls".
    cv_results_ : dict of str to array
        Values of all settings, as in scikit-learn's searches; of leave-one-out on two halves.
    n_components_ : int
        Number of components, fewer than requested if the data have no more.
    ranks_ : dict of str to int
        Rank of each view; of the target, the number of features that vary.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    Procrustes : Rotations only, which need fewer pairs.
    CCA : Maps both views into a shared space, where rows of new pairs are ranked best.

    References
    ----------
    .. [1] Izenman, "Reduced-rank regression for the multivariate linear model", Journal of
       Multivariate Analysis 1975.
    .. [2] van den Wollenberg, "Redundancy analysis: an alternative for canonical correlation
       analysis", Psychometrika 1977.

    Examples
    --------
    >>> from mvcca import AffineMap
    >>> from mvcca.datasets import load_digits_views
    >>> views = load_digits_views().views
    >>> model = AffineMap(n_components=5).fit(views[:1500])
    >>> model.predict({"left": views["left"][1500:]}, target="right").shape
    (297, 32)
    """

    nests_components = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "reg": [Interval(Real, 0, None, closed="left"), Mapping, StrOptions({SEARCHED})],
        "scale": PredictingEstimator._parameter_constraints["scale"],
        "target": [str, None],
        "cv_goal": PredictingEstimator._parameter_constraints["cv_goal"],
    }

    automatic: ClassVar = STANDARDIZED
    target_: str

    def __init__(
        self,
        n_components: int | None = None,
        *,
        reg: float | str | Mapping[str, float] = 1e-2,
        scale: bool | str | Mapping[str, bool] = AUTOMATIC,
        target: str | None = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.scale = scale
        self.target = target
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Ridges."""
        ridges = (1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
        leaves_one_out = self.n_components is None
        return Space({"reg": ridges}, leaves_one_out=leaves_one_out, scales=rows.views.names)

    def left_out_scores(
        self, rows: Rows, objects: np.ndarray, ridges: Iterable[float]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Scores of some objects by ridge, of each object under the maps without it.

        Parameters
        ----------
        rows : Rows
            Training rows and their weights.
        objects : ndarray of int
            Positions of objects.
        ridges : iterable of float
            Ridges of all views but the target. The sum of squares of the left-out row is missing in
            the problem; the absolute ridge is kept.

        Yields
        ------
        dict of str to ndarray, shape (n_rows, n_features of the target)
            Rows of the target, and predictions of them, less the mean of the target.
        """
        views, sample_weight = rows.views, rows.sample_weight
        rows = Rows(views, sample_weight, reg=dict.fromkeys(views.names, 1.0))
        rows = with_units(self, rows)
        units = rows.reading.units or {}
        rows = rows.standardized().in_row_space()
        y, chosen = self._target_among(views.names), rows.take(objects).views
        blocks = {name: as_block(X).dense().matrix.astype(float) for name, X in chosen.items()}
        sources, places = {}, {}
        for x in views.names:
            if x != y:
                pair = replace(rows, views=rows.views.select((x, y))).read(bases={})
                both = np.flatnonzero(pair.views.seen.all(axis=1))
                moments = pair.take(both).moments()
                assert isinstance(moments, Moments)
                n_features = units[x].n_features if x in units else views.widths[x]
                sources[x] = Ridges.of(moments, x, y, n_features)
                places[x] = np.intersect1d(
                    chosen.objects(x), chosen.objects(y), assume_unique=True, return_indices=True
                )
        mean = as_block(rows.views[y]).column_means()
        for reg in ridges:
            scores = {y: blocks[y] - mean}
            for x, own in sources.items():
                scores[x] = own.predictions(reg, own.coordinates(blocks[x]))
                both, i, j = places[x]
                weights = None if sample_weight is None else sample_weight[objects[both]]
                scores[x][i] = own.left_out(reg, blocks[x][i], blocks[y][j], weights) - mean
            yield scores

    def _ridges(self, rows: Rows, batch: bool) -> dict[str, float]:
        names = rows.views.names
        target = self._target_among(names)
        sources = [name for name in names if name != target]
        return {**reg_of_names(self.reg, sources), target: 0.0}

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        # Distances in the target's space count, which only an orthonormal basis keeps.
        return rows.read(equilibrate={self._target_among(rows.views.names): False})

    def _holds_pair(self, views: Views) -> np.ndarray:
        target = views.names.index(self._target_among(views.names))
        return super()._holds_pair(views) & views.seen[:, target]

    def problem(self, rows: Rows, statistic: Moments | PairMoments) -> Problem:
        Sigma, columns, means = statistic.covariance(), statistic.widths, statistic.mean()
        target = self._target_among(columns)
        y = column_slices(columns)[target]
        variances = np.diag(Sigma)[y]
        check_variance(target, Sigma[y, y])
        within, between = {target: Sigma[y, y]}, {}
        for pair, A, B, _ in statistic.by_pair(Sigma):
            if target in pair:
                (name,) = set(pair) - {target}
                within[name], between[pair] = B[pair.index(name)], A
                if isinstance(statistic, PairMoments):
                    means[name] = statistic.pairs[pair].mean()[name]
        rows = in_told_units(self, rows, means, within, statistic.objects_by_view())
        is_scaled = target in (rows.reading.units or {}) and target not in rows.reading.bases
        # Weights of the target have unit length, in its units.
        identity = np.diag(variances if is_scaled else (variances > 0).astype(float))
        within = {**dict.fromkeys(columns, identity), **within, target: identity}
        return Problem(
            rows,
            Estimate(means, exactness=Exactness(rounding={target: np.zeros_like(variances)})),
            between=between,
            within=within,
        )

    def _depends_on_units(self, name: str) -> bool:
        return super()._depends_on_units(name) or self.n_components is not None

    def _learn(self, rows: Rows, statistic: Moments | PairMoments) -> None:
        problem = self.problem(rows, statistic)
        maps = problem.solve(self.n_components or max(statistic.widths.values()))
        assert maps.values is not None
        assert maps.variances is not None
        self.target_ = self._target_among(statistic.widths)
        # Singular vectors of the stacked Σ_py; those of each side have the length √(n_views / 2).
        lengths = np.sqrt(len(maps.weights) / 2)
        weights = {
            name: W / lengths * (1 if name == self.target_ else maps.values)
            for name, W in maps.weights.items()
        }
        own = column_slices(statistic.widths)[self.target_]
        covariance = statistic.covariance()[own, own]
        variances = rows.variances(self.target_, covariance, of_rows=True)
        maps = replace(
            maps,
            weights=weights,
            eigenvalues=maps.values,
            variances={**maps.variances, self.target_: variances},
        )
        self._keep(maps.checked(self.n_components))
        self.loadings_ = self.weights_[self.target_]
        reading = problem.rows.reading
        basis = {**(reading.units or {}), **reading.bases}.get(self.target_)
        if isinstance(basis, Standardized):
            deviations = basis.divisors[:, None]
            self.loadings_ = self.loadings_ * deviations * deviations

    def _coefficients(self, source: str, target: str) -> np.ndarray:
        loadings = getattr(self, "loadings_", self.weights_[target])  # old files lack them
        return loadings.T

    def _targets(self, source: str) -> list[str]:
        return [name for name in super()._targets(source) if name == self.target_]

    def _target_among(self, names: Any) -> str:
        names = list(names)
        if self.target is None:
            return names[-1]
        if self.target not in names:
            raise ValueError(f"target must be one of the views {names}, got {self.target!r}.")
        return self.target
