"""Local group-based consistent feature learning: regression of labels on every view."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from mvcca.base import all_or_nothing
from mvcca.linalg import Rotation
from mvcca.linear._constraint import check_variances, variances_within
from mvcca.linear._estimator import LinearEstimator
from mvcca.linear._group_sparse import GroupSparse, centred_targets
from mvcca.linear._label_checks import check_label_vectors, check_shared_labels
from mvcca.linear._label_statistic import LabelStatistic
from mvcca.linear._reg import positive_reg, reg_of_names, reg_of_rows
from mvcca.linear._rotations import in_row_space, means_of_features
from mvcca.statistics import LabelSums
from mvcca.statistics._moments import column_slices


class LGCFL(LinearEstimator):
    """Local group-based consistent feature learning.

    Maps every view to the labels of its rows, by least squares that keep or drop whole groups of
    features,

        min_U  1/2n_p ‖X̄_p U_p - Ȳ_p‖²_F + λ_p Σ_g ‖U_p^(g)‖_F   for every view p,

    with Y the 0/1 indicators of the labels (or real label vectors), all centred, and U^(g) the rows
    of U that belong to group g, such as a block of a HOG descriptor. Labels are the shared space:
    its dimension is their number, views need no pairing, and scores are compared by cosine.

    **This is a reconstruction.** The text of the paper [1]_ was not at hand: labels as the common
    target of all views, unpaired data and groups of features are what its abstract tells, the
    formula above is the least that has all three. Figures need not be those published.

    Parameters
    ----------
    reg : float or mapping of str to float, default=0.01
        λ_p in units of the root mean variance of view p, so that rescaling a view changes nothing;
        must be positive. An absolute λ in ½‖XU - Y‖² + λ Σ‖U^(g)‖ is ``reg`` = λ / (n · that unit).
    groups : mapping of str to array-like of shape (n_features,), optional
        The group that each feature of a view is in, as numbers or names. Views that are not named
        have one group per feature: the ℓ2,1 norm.
    max_iter : int, default=200
        Most steps of reweighted least squares.
    tol : float, default=1e-6
        Stop when a step lowers the objective by no more than this share of it.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        U_p by view name. What is dropped keeps weights of about 1e-6 of the largest: norms are
        smoothed by that much.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
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

    _min_views = 1
    _supervised = True
    _computes_on_devices = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [Interval(Real, 0, None, closed="neither"), Mapping],
        "groups": [Mapping, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        reg: float | Mapping[str, float] = 0.01,
        *,
        groups: Mapping[str, ArrayLike] | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
    ) -> None:
        self.reg = reg
        self.groups = groups
        self.max_iter = max_iter
        self.tol = tol

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the maps from labelled views, paired or not.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. Their pairing is not used. A lone matrix is a single view.
        y : labels
            A class vector, indicator matrix, list of label sets, or real label vectors, one per
            object; or a list or mapping with the labels of each view, whose heights may differ.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing or all the same, a view holds NaN, infinity or no variance, or
            groups do not fit the features.
        """
        self._validate_params()
        views, table, codes, weights = self._open_supervised_fit(X, y, sample_weight)
        check_shared_labels(table, codes)
        reg = positive_reg(reg_of_rows(self.reg, views))
        rows, rotations = in_row_space(views, weights, reg)
        statistic = LabelStatistic.of(rows, table, codes, weights, with_moments=True)
        self._solve(statistic, reg, rotations)
        self._statistic = None
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows to the sums and solve again; batches give what `fit` gives.

        After `fit`, which keeps no sums, batches start over, with a warning.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; also for other views than before.
        """
        self._validate_params()
        first = self._is_first_batch()
        batch = self._open_supervised_fit(X, y, sample_weight, reset=first)
        reg = positive_reg(reg_of_names(self.reg, batch[0].names))
        statistic = self._with_earlier(LabelStatistic.of(*batch, with_moments=True))
        self._solve(statistic, reg, {})
        self._statistic = statistic.to_host()
        return self

    def _solve(
        self,
        statistic: LabelStatistic,
        reg: Mapping[str, float],
        rotations: Mapping[str, Rotation],
    ) -> None:
        sums = statistic.sums
        check_label_vectors(sums)
        within = {
            name: own.scatter_about_means() / own.counts[0, 0]
            for name, own in statistic.moments.items()
        }
        check_variances(within)
        variances = variances_within(within, rotations)
        groups = self._groups_of_views({name: len(v) for name, v in variances.items()})
        weights, objectives = {}, {}
        for name, (B, constant) in _label_covariances(sums).items():
            unit = np.sqrt(variances[name].mean())
            problem = GroupSparse(
                within[name],
                B,
                constant,
                np.full(len(variances[name]), reg[name] * unit),
                groups[name],
                rotations[name].inverse if name in rotations else None,
            )
            weights[name], objectives[name] = problem.solve(
                self.max_iter, self.tol, f"View {name!r}"
            )
        self.weights_ = weights
        self.means_ = means_of_features(sums.mean(), rotations)
        self.objectives_ = objectives
        self.n_iter_ = max(map(len, objectives.values()))
        self.labels_ = sums.table.vocabulary
        if self.labels_ is None:
            self.labels_ = np.arange(sums.table.vectors.shape[1])
        self.n_components_ = len(self.labels_)
        self.n_label_vectors_ = len(sums.table)
        self.view_names_ = tuple(weights)

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
        found[name] = centred_targets(deviations[:, columns], sums.table.vectors, shares)
    return found
