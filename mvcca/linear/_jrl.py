"""Joint representation learning: labels regressed on views, smoothly over neighbouring rows."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors
from sklearn.utils._param_validation import Interval, StrOptions

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_repeated, open_views
from mvcca.base.label_checks import check_labels
from mvcca.base.projection import projected
from mvcca.base.standardizing import STANDARDIZED, with_units
from mvcca.base.tuned_fits import fit_searched
from mvcca.blocks import as_block, stack
from mvcca.linear.group_sparse import minimised_in_groups
from mvcca.linear.jrl_loss import closeness, jrl_loss, learned_rows
from mvcca.machine.warnings import warn
from mvcca.model_selection import Space, searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED, plain_value
from mvcca.problem import Maps, Rows
from mvcca.problem.ridge import reg_of_names
from mvcca.problem.rows import mean_and_variance
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView


class JRL(MultiViewEstimator):
    r"""Joint representation learning with sparse and semi-supervised regularisation.

    Use it to find items with the same label, for up to some ten thousand rows.

    Regresses the labels on every view, from few features. The views of an object, and neighbours
    within a view, shall get the same labels [1]_:

    .. math::

        \min \; & ∑_p \tfrac{1}{n_p} ‖Z_p P_p - \bar Y_p‖_F^2
        + a ∑_{p<q} \tfrac{1}{n_{pq}} ‖Z_p P_p - Z_q P_q‖_F^2 \\
        & + s ∑_p \tfrac{1}{n_p} \operatorname{tr}(P_p^⊤ Z_p^⊤ L_p Z_p P_p) + r ∑_p ‖P_p‖_{2,1},

    with standardized columns Z (the graph depends on their units), centred label indicators Ȳ, and
    L = I - D^{-1/2} K D^{-1/2} of the k nearest neighbours under the similarity
    1 / (1 + exp(distance)), made symmetric. The sum over p < q takes the objects seen in both
    views; it is left out if there are none, so that views need no pairing. Unlabelled rows
    count in the graph terms only.

    The published similarity of two rows does not compare their projections but the labels of their
    nearest training rows, of all views; see `propagate`. Retrieval with this estimator uses it.

    The official code takes at most 5 steps, each with the other view's last weights, and mixes two
    graphs in one Laplacian (degrees of the binary one, weights of the dense one), which leaves
    about L = I. Here each step solves for all views at once, and L is the formula's.

    Parameters
    ----------
    reg : float, mapping of str to float, or "cv", default=0.01
        r, of every view or by name; positive. The published γ is ``reg`` = γ / (μ n). "cv" chooses
        it by 3 folds.
    pairing : float, default=1.0
        a, the published λ / μ.
    smoothness : float, default=10.0
        s, the published σ / μ.
    n_neighbors : int, "auto" or "cv", default="auto"
        k of the graphs and of `propagate`. A number larger than that of the rows takes all of them,
        with a warning. "cv" chooses by 3 folds among shares of the median number of rows of a
        label. "auto" is "cv" if ``reg="cv"``, else 100 or all rows.
    scale : bool, mapping of str to bool, "auto" or "cv", default=True
        Which views to standardize, as in `CCA`; `weights_` stay in the units of the features.
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
        P_p in the units of the features, by view name. Weights of dropped features are about
        1e-6 of the largest, because norms are smoothed.
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Means of the labelled rows.
    reg_, n_neighbors_
        Chosen values of the parameters that are "cv"; only then, like the next two.
    ranking_ : str
        The chosen ranking of `propagate`: "inner" or "inner+csls".
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    labels_ : ndarray, shape (n_components_,)
        The label that each component stands for: a class, or the number of a column.
    n_components_ : int
        Number of labels.
    n_label_vectors_ : int
        Number of distinct label vectors.
    scale_ : dict of str to bool
        Which views were standardized.
    objectives_ : ndarray
        The objective after every step.
    n_iter_ : int
        Steps taken.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    LGCFL : Without graphs and pairs; takes batches.

    Notes
    -----
    A step solves for the weights of all features, or for the scores of the rows of one view after
    the other if that takes fewer operations. Both give the same weights; the time of a step grows
    with the cube of the number of features of all views, or of rows of a view.

    Weights repeat rows, and a row and its copies are neighbours of each other.

    References
    ----------
    .. [1] Zhai, Peng and Xiao, "Learning Cross-Media Joint Representation with Sparse and
       Semisupervised Regularization", IEEE Transactions on Circuits and Systems for Video
       Technology 2014.

    Examples
    --------
    >>> from mvcca import JRL, evaluate_retrieval
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> train, test = data.views[:600], data.views[600:1000]
    >>> model = JRL(n_neighbors=20).fit(train, data.labels[:600])
    >>> table = evaluate_retrieval(test, data.labels[600:1000], measures="map", estimator=model)
    """

    retrieval_ranking = ("propagate", "inner")
    scale: Any = True  # of files of versions without the parameter
    requires = Requirements(views=(1, None), labels=True, host=True)
    automatic: ClassVar[Mapping[str, Any]] = {"n_neighbors": 100, **STANDARDIZED}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reg": [Interval(Real, 0, None, closed="neither"), Mapping, StrOptions({SEARCHED})],
        "pairing": [Interval(Real, 0, None, closed="left")],
        "smoothness": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({SEARCHED, AUTOMATIC}),
        ],
        "scale": MultiViewEstimator._parameter_constraints["scale"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "cv_goal": MultiViewEstimator._parameter_constraints["cv_goal"],
    }

    maps_: Maps

    def __init__(
        self,
        reg: float | str | Mapping[str, float] = 0.01,
        *,
        pairing: float = 1.0,
        smoothness: float = 10.0,
        n_neighbors: int | str = AUTOMATIC,
        scale: bool | str | Mapping[str, bool] = True,
        max_iter: int = 200,
        tol: float = 1e-6,
        cv_goal: Goal | None = None,
    ) -> None:
        self.reg = reg
        self.pairing = pairing
        self.smoothness = smoothness
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Neighbours by the median number of rows of a label, and the penalty."""
        size = median_label_size(rows.labels)
        neighbors = sorted({max(1, round(share * size)) for share in (1 / 8, 1 / 4, 1 / 2, 1)})
        values = {"n_neighbors": tuple(neighbors), "reg": (1e-4, 1e-3, 1e-2, 0.1, 1.0)}
        return Space(values, n_folds=3, scales=rows.views.names)

    @all_or_nothing
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_unlabeled: Any = None
    ) -> Self:
        """Find the maps from labelled views and, for the graphs, unlabelled rows.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. A lone matrix is a single view.
        y : labels
            A class vector, indicator matrix, list of label sets, real label vectors or `Labels`,
            one per object; or a list or mapping with the labels of each view, whose heights may
            differ.
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated.
        X_unlabeled : as X, optional
            Rows without labels, of any of the views; views may differ in their number of rows.
            With the rows to be searched in, the fit is transductive, as published.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing or all the same, a view holds NaN, infinity or no variance, or
            weights are not whole numbers.
        MemoryError
            If there are too many rows, and too many features, for matrices over either.
        """
        self._validate_params()
        if searched(self):
            return fit_searched(self, X, y, sample_weight, X_unlabeled=X_unlabeled)
        opened = open_repeated(self, X, y, sample_weight)
        given, of_rows = opened.views.in_memory(), opened.labels
        check_labels(of_rows)
        learned = with_units(self, Rows(given)).standardized()
        views, units = learned.views, learned.reading.bases
        reg = reg_of_names(self.reg, views.names, positive=True)
        more = {} if X_unlabeled is None else self._open_unlabelled(X_unlabeled, units)
        means, rows = {}, {}
        for name, block in views.items():
            means[name] = mean_and_variance(name, block)[0]
            rows[name] = learned_rows(block, more.get(name))
        labels = {name: of_rows[name].matrix for name in views.names}
        n_neighbors = plain_value(self, "n_neighbors", self.n_neighbors)
        n_others = min(view.block.shape[0] for view in rows.values()) - 1
        if self.smoothness and self.n_neighbors != AUTOMATIC and n_neighbors > n_others:
            warn(
                f"n_neighbors={n_neighbors} is more than the other rows of a view, {n_others}: all "
                "of them are neighbours."
            )
        widths = list(views.widths.values())
        loss = jrl_loss(
            views,
            rows,
            labels,
            pairing=self.pairing,
            smoothness=self.smoothness,
            n_neighbors=n_neighbors,
        )
        solved, objectives = minimised_in_groups(
            loss,
            np.repeat([reg[name] / 2 for name in rows], widths),
            np.arange(sum(widths)),
            self.max_iter,
            self.tol,
            type(self).__name__,
        )
        self.objectives_ = 2 * objectives  # the shared solver halves the squares
        self.n_iter_ = len(objectives)
        of_views = np.split(solved, np.cumsum(widths)[:-1])
        weights = dict(zip(views.names, of_views, strict=True))
        self._keep(Maps(weights, means).lifted(units))
        self.labels_ = of_rows.distinct.names
        self.n_label_vectors_ = len(of_rows.distinct)
        self._keep_neighbors(given, labels, n_neighbors)
        return self

    def propagate(self, X: Any) -> Any:
        """Propagate labels to rows from their nearest training rows in the shared space.

        A row x gets Σ_l w_l(x) y_l over its k nearest training rows l, of all views, with weights
        in the ratios of 1 / (1 + exp(distance)) that add up to 1. Inner products of these are the
        published similarity, Σ_l Σ_m w_l(x) w_m(x') [class of l = class of m]. Retrieval
        with this estimator ranks by them; `mvcca.retrieval.top_k` takes them with
        ``similarity="inner"``.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Rows of any of the fitted views, as for `transform`.

        Returns
        -------
        shares : same container as X
            Matrices of shape (n_rows, n_components_): how much of each label.

        Raises
        ------
        ValueError
            As in `transform`.
        """
        return projected(self, X, None, "propagate")

    def _propagate_of(self, views: Views) -> dict[str, Any]:
        """The shares of checked views."""
        found = {}
        for name, block in views.in_memory().items():
            found[name] = np.zeros((0, self.n_components_), dtype=block.dtype)
            if not block.shape[0]:  # no object is seen in this view
                continue
            distances, places = self._neighbors.kneighbors(self._place(name, block))
            weights = closeness(distances, distances[:, :1])
            weights /= weights.sum(axis=1, keepdims=True)
            starts = np.arange(0, places.size + 1, places.shape[1])
            shape = (len(places), self._neighbor_labels.shape[0])
            W = csr_array((weights.ravel(), places.ravel(), starts), shape)
            shares = as_block(W @ self._neighbor_labels).dense().matrix
            found[name] = shares.astype(block.dtype, copy=False)
        return found

    def _keep_neighbors(self, views: Views, labels: Mapping[str, Any], n_neighbors: int) -> None:
        """Keep the projected training rows and their labels for `propagate`."""
        stacked = np.concatenate(list(self.weights_.values()))
        self._axes = None
        if len(stacked) < stacked.shape[1]:  # more labels than features: scores span fewer axes
            self._axes = linalg.qr(stacked.T, mode="economic")[0]
        placed = np.concatenate([self._place(name, block) for name, block in views.items()])
        k = min(n_neighbors, len(placed))
        self._neighbors = NearestNeighbors(n_neighbors=k).fit(placed.astype(np.float64))
        of_all = as_block(stack(labels.values()))
        self._neighbor_labels = of_all.promoted(np.dtype(np.float64)).matrix

    def _place(self, name: str, block: Any) -> np.ndarray:
        """Scores, or their coordinates in axes that keep all distances."""
        if self._axes is None:
            return self.maps_.project(name, block)
        turned = self.weights_[name] @ self._axes
        return np.asarray(block @ turned - self.means_[name] @ turned)

    def _open_unlabelled(self, X: Any, units: Mapping[str, Any]) -> dict[str, Any]:
        views = open_views(self, X, reset=False, unpaired=True, allow_empty=True).in_memory()
        views = Rows(views).read(units=units).standardized().views
        return {name: block for name, block in views.items() if block.shape[0]}


def median_label_size(labels: LabelsByView) -> float:
    """Median over labels of the number of rows of a view that have it, of the smallest view."""
    sizes = []
    for name in labels.codes:
        counts = np.asarray(labels[name].matrix.sum(axis=0)).ravel()
        sizes.append(float(np.median(counts[counts > 0])))
    return min(sizes)
