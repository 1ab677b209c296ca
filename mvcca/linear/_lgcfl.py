"""Local group-based consistent feature learning: regression of labels on every view."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import Requirements
from mvcca.base.label_checks import check_label_vectors
from mvcca.base.standardizing import STANDARDIZED, in_told_units
from mvcca.linear._rescaled import RescaledEstimator
from mvcca.linear.group_sparse import MomentLoss, centred_targets, minimised_in_groups
from mvcca.linear.label_statistic import LabelStatistic
from mvcca.model_selection import Space
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Maps, Rows
from mvcca.problem.ridge import reg_of_names
from mvcca.problem.rows import check_variance
from mvcca.statistics import LabelSums, column_slices
from mvcca.views import Views


class LGCFL(RescaledEstimator):
    r"""Local group-based consistent feature learning.

    Maps every view to the labels of its rows, by least squares that keep or drop whole groups of
    features,

    .. math::

        \min_{U_p} \; \frac{1}{2 n_p} ‖\bar X_p U_p - \bar Y_p‖_F^2 + λ_p ∑_g ‖U_p^{(g)}‖_F
        \quad \text{for every view } p,

    with Y the 0/1 indicators of the labels (or real label vectors), all centred, and U^(g) the rows
    of U that belong to group g, such as a block of a HOG descriptor. Labels are the shared space:
    its dimension is their number, views need no pairing, and scores are compared by cosine.

    **This is a reconstruction.** Only the abstract of the paper [1]_ was available. It mentions
    labels as the common target of all views, unpaired data and groups of features; the formula
    above is the simplest with all three. Results may differ from those published.

    Parameters
    ----------
    reg : float, mapping of str to float, or "cv", default=0.01
        λ_p in units of the root mean variance of view p, so that rescaling a view changes nothing;
        must be positive. An absolute λ in ½‖XU - Y‖² + λ Σ‖U^(g)‖ is ``reg`` = λ / (n · that unit).
        "cv" chooses it by 3 folds.
    scale : bool, mapping of str to bool, "auto" or "cv", default=True
        Which views to standardize, as in `CCA`; `weights_` stay in the units of the features.
    groups : mapping of str to array-like of shape (n_features,), optional
        The group that each feature of a view is in, as numbers or names. Views that are not named
        have one group per feature: the ℓ2,1 norm.
    max_iter : int, default=200
        Maximum number of steps of reweighted least squares.
    tol : float, default=1e-6
        Stop when a step lowers the objective by at most this fraction.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "class".

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        U_p by view name. Weights of dropped features are about 1e-6 of the largest, because norms
        are smoothed.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    scale_ : dict of str to bool
        Which views were standardized.
    reg_ : float
        The chosen λ_p; with ``reg="cv"`` only, as are the next two.
    ranking_ : str
        The chosen ranking, as in `CCA`.
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    labels_ : ndarray, shape (n_components_,)
        The label that each component stands for: a class, or the number of a column.
    n_components_ : int
        Number of labels.
    n_label_vectors_ : int
        Number of distinct label vectors.
    objectives_ : dict of str to ndarray
        The objective of each view after every step.
    n_iter_ : int
        Steps taken; the most of any view.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    JRL : Ties the views to each other too, and to the neighbourhoods of their rows.
    MLCCA : Label supervision without one component per label.

    References
    ----------
    .. [1] Kang, Xiang, Liao, Xu and Pan, "Learning Consistent Feature Representation for
       Cross-Modal Multimedia Retrieval", IEEE Transactions on Multimedia 2015.

    Examples
    --------
    >>> from mvcca import LGCFL
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> model = LGCFL().fit(data.views, data.labels)
    >>> model.weights_["left"].shape
    (32, 10)
    """

    requires = Requirements(views=(1, None), labels=True, host=True, float64=True)
    sums: ClassVar = (LabelStatistic,)
    automatic: ClassVar = STANDARDIZED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [Interval(Real, 0, None, closed="neither"), Mapping, StrOptions({SEARCHED})],
        "scale": RescaledEstimator._parameter_constraints["scale"],
        "groups": [Mapping, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cv_goal": RescaledEstimator._parameter_constraints["cv_goal"],
    }

    _if_too_large = (
        "Leave features out first, such as rare words, or fit MLCCA or MVMLCCA, which learn from "
        "sums by label."
    )

    def __init__(
        self,
        reg: float | str | Mapping[str, float] = 0.01,
        *,
        scale: bool | str | Mapping[str, bool] = True,
        groups: Mapping[str, ArrayLike] | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        cv_goal: Goal | None = None,
    ) -> None:
        self.reg = reg
        self.scale = scale
        self.groups = groups
        self.max_iter = max_iter
        self.tol = tol
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Values of the penalty."""
        ridges = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
        return Space({"reg": ridges}, n_folds=3, scales=rows.views.names)

    def _bytes_of_matrices(self, views: Views) -> float:
        """Three matrices of each view, three of the one that is solved, and its basis if wide."""
        shapes = [X.shape for X in views.blocks.values()]
        sizes = [float(min(shape)) ** 2 for shape in shapes]
        of_basis = max(2.0 * n * d if n < d else 0.0 for n, d in shapes)
        return 8 * (3 * sum(sizes) + 3 * max(sizes) + of_basis)

    def _ridges(self, rows: Rows, batch: bool) -> dict[str, float]:
        return reg_of_names(self.reg, rows.views.names, positive=True)

    def statistic_of(self, rows: Rows) -> LabelStatistic:
        sums = LabelSums.of(rows.views, rows.labels, rows.sample_weight)
        return LabelStatistic(sums, rows.moments_of_each())

    def _learn(self, rows: Rows, statistic: LabelStatistic) -> None:
        sums = statistic.sums
        check_label_vectors(sums)
        targets, means = _label_covariances(sums), sums.mean()
        widths = rows.widths()
        groups = self._groups_of_views(widths)
        covariances = {name: own.covariance() for name, own in statistic.moments.items()}
        counts = {name: float(own.counts[0, 0]) for name, own in statistic.moments.items()}
        rows = in_told_units(self, rows, means, covariances, counts)
        weights, self.objectives_ = {}, {}
        units = rows.reading.units or {}
        for name, Sigma in covariances.items():
            Sigma *= 1 - 1 / counts[name]  # 1 / n Σ_a (x - m)(x - m)ᵀ
            check_variance(name, Sigma)
            slopes, constant = targets[name]
            factors = units[name].factors if name in units else np.ones(widths[name])
            inverse, n_features = None, np.count_nonzero(factors)
            if basis := rows.reading.bases.get(name):
                inverse = basis.inverse * factors  # of standardized columns, if they are
                means[name] = basis.mean + basis.back(means[name])
            else:
                Sigma, slopes = Sigma * factors * factors[:, None], slopes * factors[:, None]
            unit = np.sqrt(rows.variances(name, Sigma).sum() / n_features)
            penalties = np.full(widths[name], rows.reg[name] * unit)
            loss = MomentLoss(Sigma, slopes, constant, inverse)
            solved, self.objectives_[name] = minimised_in_groups(
                loss, penalties, groups[name], self.max_iter, self.tol, f"View {name!r}"
            )
            weights[name] = solved * factors[:, None]
        self._keep(Maps(weights, means))
        self.n_iter_ = max(map(len, self.objectives_.values()))
        self.labels_ = sums.labels.names
        self.n_label_vectors_ = len(sums.labels)

    def _groups_of_views(self, widths: Mapping[str, int]) -> dict[str, np.ndarray]:
        """A number per group and feature, of every view."""
        groups = {name: np.arange(width) for name, width in widths.items()}
        for name, labels in (self.groups or {}).items():
            if name not in widths:
                raise ValueError(f"groups name the view {name!r}, expected some of {list(widths)}.")
            labels = np.asarray(labels)
            if labels.shape != (widths[name],):
                raise ValueError(
                    f"Expected the groups of the {widths[name]} features of view {name!r}, one "
                    f"each, got shape {labels.shape}."
                )
            groups[name] = np.unique(labels, return_inverse=True)[1]
        return groups


def _label_covariances(sums: LabelSums) -> dict[str, tuple[np.ndarray, float]]:
    """`centred_targets` of every view, from the sums of its rows by label vector."""
    deviations = sums.deviations().astype(np.float64, copy=False)
    found = {}
    for p, (name, columns) in enumerate(column_slices(sums.widths).items()):
        shares = sums.counts[:, p] / sums.counts[:, p].sum()
        found[name] = centred_targets(deviations[:, columns], sums.labels.vectors, shares)
    return found
