"""Sparse components of several views that tell classes apart, and classes from any of the views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import permutations
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mvcca.base import Requirements
from mvcca.base.inputs import open_views
from mvcca.base.label_checks import check_labels
from mvcca.base.parameters import SHARE, at_least, constraints, one_of, parameter
from mvcca.blocks import to_host
from mvcca.blocks.checks import few
from mvcca.linear._rgcca import BlockEstimator, Posed
from mvcca.linear.class_moments import CLASSES, ClassMoments, labels_of, positions_of, with_classes
from mvcca.model_selection import Trials, search_folds
from mvcca.model_selection.fold_statistics import N_FOLDS, InnerFolds
from mvcca.model_selection.goals import Value
from mvcca.model_selection.search import Setting
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Maps, Rows
from mvcca.problem.ascent import Links, Solution, counts_to_try
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.views import Labels, Views, holds_views
from mvcca.views.by_view import value_by_view
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.validation import checked_sample_weight

Scores: TypeAlias = dict[str, np.ndarray]  # by view
_LEAST_VARIANCE = 1e-10  # within classes, as a share of the squared size of the scores


def class_scores(posed: Posed, components: Sequence[Solution]) -> tuple[Scores, Scores]:
    """Mean scores of each class, (n_classes, k), and their covariance within classes, by view.

    From moments of the rows, or else of their scores. Over n rows, the covariance of scores with
    the indicator of class c, whose share is π_c, is π_c (m_c - m) n / (n - 1).
    """
    maps, moments, views = posed.maps(components), posed.about.pairs, posed.rows.views
    weights, means = maps.weights, maps.means
    if not isinstance(moments, Moments | PairMoments):
        scores = {name: maps.project(name, views[name]) for name in maps.names}
        both = views.replace({**scores, CLASSES: views[CLASSES]})
        moments = replace(posed.rows, views=both).moments()
        weights = {name: np.eye(own.shape[1]) for name, own in scores.items()}
        means = {name: np.zeros(len(own)) for name, own in weights.items()}
    found, within = {}, {}
    for name, W in weights.items():
        pair = name, CLASSES
        own = moments.select(pair) if isinstance(moments, Moments) else moments.pairs[pair]
        n, S, shares = float(own.counts[0, 1]), own.covariance(), own.mean()[CLASSES]
        x, y = column_slices(own.widths).values()
        m = S[y, x] @ W * (n - 1) / (n * np.where(shares > 0, shares, 1))[:, None]
        rest = (n - 1) * W.T @ S[x, x] @ W - (m * (n * shares)[:, None]).T @ m
        within[name] = (rest + rest.T) / 2 / max(n - len(shares), 1)
        found[name] = m + (own.mean()[name] - means[name]) @ W
    return found, within


def log_densities(views: Views, maps: Maps, of_classes: tuple[Scores, Scores]) -> np.ndarray:
    """Sum over the views in which an object is seen, up to a constant, (n_objects, n_classes).

    log p(t | c) = -(t - m_c)ᵀ W⁻¹ (t - m_c) / 2 for scores t and covariance W within classes.
    """
    found = np.zeros((len(views), len(next(iter(of_classes[0].values())))))
    for name, block in views.blocks.items():
        means, within = (own[name] for own in of_classes)
        scores = to_host(block.mapped(partial(maps.project, name), len(within)))
        least = _LEAST_VARIANCE * (np.trace(within) + (means**2).sum())
        L = np.linalg.cholesky(within + (least or 1.0) * np.eye(len(within)))
        t, m = (np.linalg.solve(L, own.T).T for own in (np.asarray(scores), means))
        found[views.objects(name)] -= ((t[:, None] - m) ** 2).sum(axis=2) / 2
    return found


class SparseDiscriminant(ClassifierMixin, BlockEstimator):
    r"""Few features of each view that tell classes apart, and predictions from any of the views.

    Use it to find signatures of classes in several tables of the same objects, such as omics, and
    to predict the class of new objects even if they lack some tables. DIABLO [1]_ does the same; so
    does sparse PLS discriminant analysis with a single view.

    Maximizes, one component after the other,

    .. math::

        2 ∑_j w_j^⊤ S_{jy} w_y + c ∑_{j≠k} w_j^⊤ S_{jk} w_k \quad \text{subject to} \quad
        w_j^⊤ (τ I + (1 - τ) S_{jj}) w_j = w_y^⊤ w_y = 1

    with at most `n_features` nonzero weights in each w_j. S are covariances of scaled columns, y
    are scaled indicators of the classes and c is `link`. Views are deflated by their scores, y by
    the mean of what the scores of the views explain of it.

    A class is predicted by the sum over the given views of the log-densities of their scores: a
    linear discriminant analysis for each view, classes alike probable. Views that an object lacks
    drop out of the sum.

    Parameters
    ----------
    n_components : int, default=2
        Number of components; fewer are found if views have no more in common with the classes.
    n_features : int, sequence of int, mapping of str to these, None or "cv", default="cv"
        Number of features of each view with weights, perhaps one for each component; None is all.
        "cv" chooses one number for all views by 5 folds, with the smallest mean error over classes,
        and of equal ones the smallest number.
    tau : float or mapping of str to float, default=1.0
        τ of each view: 1 maximizes covariance, 0 correlation.
    link : float, default=0.1
        c, how much views are to agree with each other; each has a link of 1 to the classes.
    shrink : bool, default=False
        Whether a number of features is reached by a soft threshold as in mixOmics, which shrinks
        the weights by the largest one that is left out. The objective may then fall.
    start : {"classes", "own"}, default="classes"
        Where to start: from each class, keeping the best end, or from the first principal
        components of each view as DIABLO does, which can end lower.
    random_state : int, RandomState or None, default=None
        Seed of the folds. None always takes the same folds.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,) or (n_classes, n_labels)
        The classes; of label sets each distinct one, as indicators.
    weights_, sparse_weights_, selected_, objective_, n_iter_, tau_, means_, ranks_
        As in `RGCCA`.
    class_means_ : dict of str to ndarray, shape (n_classes, n_components_)
        Mean scores of the training rows of each class, by view.
    class_covariance_ : dict of str to ndarray, shape (n_components_, n_components_)
        Covariance of the scores within classes, by view.
    class_correlations_ : dict of str to ndarray, shape (n_components_,)
        Correlation of the scores of each view with those of the classes.
    n_features_ : int
        The chosen number; with ``n_features="cv"`` only, as is the next one.
    cv_results_ : dict of str to array
        Mean of the classes' shares of right predictions, of all numbers on the folds.
    n_components_ : int
        Number of components.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    RGCCA : Without classes.
    mvcca.inspection.selection_stability : How often halves of the rows select the same features.

    Notes
    -----
    Classes count alike in predictions, however many rows they have, as in the mean error over
    classes by which numbers of features are chosen. Every distinct label set is a class. Training
    objects may lack views, too: each covariance is that of the objects that two views share.

    References
    ----------
    .. [1] Singh, Shannon, Gautier, Rohart, Vacher, Tebbutt and Lê Cao, "DIABLO: an integrative
       approach for identifying key molecular drivers from multi-omics assays", Bioinformatics 2019.

    Examples
    --------
    >>> from mvcca import SparseDiscriminant
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> model = SparseDiscriminant(5, n_features=10).fit(data.views[:1200], data.labels[:1200])
    >>> test = data.views[1200:]
    >>> round(model.score(test, data.labels[1200:]), 1)
    0.9
    >>> model.predict_proba({"left": test["left"]}).shape  # without the right halves
    (597, 10)
    """

    n_components: int = field(default=2, kw_only=False, metadata=constraints(at_least(1)))
    n_features: Any = parameter(SEARCHED, at_least(1), list, tuple, Mapping, None, one_of(SEARCHED))
    tau: float | Mapping[str, float] = parameter(1.0, SHARE, Mapping)
    link: float = parameter(0.1, Interval(Real, 0, None, closed="left"))
    shrink: bool = parameter(False, "boolean")
    start: str = parameter("classes", one_of("classes", "own"))
    random_state: Any = parameter(None, "random_state")

    requires = Requirements(views=(1, None), labels=True, float64=True, features=True)
    sums: ClassVar = (ClassMoments,)
    nests_components = False  # what scores say of classes is of all components together
    response: ClassVar = CLASSES
    scheme = "horst"

    # ---- the fit ---------------------------------------------------------------------------------

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Add a batch of rows; batches give what `fit` gives, when a result is read.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, optional
            All classes of all batches, which scikit-learn's tools pass; others are refused. Batches
            may otherwise bring new classes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As for `fit`, or if a label is none of the classes.
        """
        if classes is not None and y is not None:
            unknown = np.setdiff1d(np.asarray(y), np.asarray(classes))
            if len(unknown):
                raise ValueError(f"Expected labels among classes, got {few(unknown.tolist())}.")
        return super().partial_fit(X, y, sample_weight)

    def _open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights and classes."""
        rows = super()._open_rows(X, y, sample_weight, batch=batch)
        if CLASSES in rows.views.names:
            raise ValueError(f"The name {CLASSES!r} is taken by the classes: rename that view.")
        if not rows.labels.distinct.are_sets:
            raise ValueError(
                "Unknown label type: SparseDiscriminant takes classes or label sets, got real "
                "label vectors. LabelRegression takes them."
            )
        if not batch:
            check_labels(rows.labels)
        rows.labels.per_object(rows.views)  # refuses views that disagree
        return rows

    def statistic_of(self, rows: Rows) -> ClassMoments:
        """Moments of the views and of the indicators of the classes."""
        return ClassMoments.of(rows)

    def posed_of(self, rows: Rows, statistic: Any) -> Posed:
        """Covariances of the views and of the indicators of the classes."""
        if statistic is None:
            return super().posed_of(with_classes(rows, np.unique(labels_of(rows), axis=0)), None)
        if len(statistic.classes) < 2:
            raise ValueError("All rows have the same labels: expected at least two classes.")
        return super().posed_of(rows, statistic.moments)

    def _links(self, names: Sequence[str]) -> Links:
        pairs = permutations([*names, CLASSES], 2)
        links = {pair: 1.0 if CLASSES in pair else float(self.link) for pair in pairs}
        return {pair: c for pair, c in links.items() if c}

    def _learn_all(self, rows: Rows) -> None:
        if self.n_features == SEARCHED:
            found = self._search(rows)
            self.n_features_, self.cv_results_ = found.chosen["n_features"], found.cv_results()
        super()._learn_all(rows)

    def _given(self, posed: Posed, number: int, n_features: Any = None) -> dict[str, Any]:
        if n_features is None and self.n_features == SEARCHED:
            n_features = self.n_features_
        return super()._given(posed, number, n_features)

    def _learn(self, rows: Rows, statistic: Any) -> None:
        """Find one component after the other, and what scores say of classes."""
        is_summed = statistic is not None
        self.classes_ = statistic.classes if is_summed else np.unique(labels_of(rows), axis=0)
        super()._learn(rows, statistic)

    def _learn_settings(self, posed: Posed, settings: Sequence[Setting]) -> list[Solution]:
        found = super()._learn_settings(posed, settings)
        self.class_means_, self.class_covariance_ = class_scores(posed, found)
        self.class_correlations_ = {
            name: np.array([own.correlation(name, CLASSES) for own in found])
            for name in posed.factors
        }
        return found

    def _search(self, rows: Rows) -> Trials:
        """Right predictions of held-out rows, by number of features."""
        classes, y = np.unique(labels_of(rows), axis=0, return_inverse=True)
        n_folds = min(N_FOLDS, int(np.bincount(y.ravel()).min()))
        if n_folds < 2:
            raise ValueError(
                'n_features="cv" holds out rows of every class: expected at least 2 rows of each. '
                "Give a number."
            )
        folds = InnerFolds.of(rows.views, rows.labels, n_folds, seed=self.random_state, few=False)
        parts, _ = self._over_folds(rows, folds, lambda *own: own)
        taus = value_by_view("tau", self.tau, rows.views.names).values()
        counts = counts_to_try(max(rows.views.widths.values()), min(taus))
        # Of equally good ones, the last is taken.
        settings = [{"n_features": count} for count in reversed(counts)]

        def values(fold: int, settings: Sequence[Setting]) -> Iterator[Value]:
            train, (test, _) = parts[fold]
            posed = self.posed_of(*train)
            right = positions_of(labels_of(test), classes)
            for setting in settings:
                limits = self._limits(posed, self._given(posed, 0, setting["n_features"]))
                components = list(posed.ascent.components([limits] * self.n_components))
                own = class_scores(posed, components)
                found = log_densities(test.views, posed.maps(components), own).argmax(axis=1)
                share = balanced_accuracy_score(right, found, sample_weight=test.sample_weight)
                yield Value(float(share), float(share))

        return search_folds(n_folds, settings, values, lambda value, _: value)

    # ---- predictions -----------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, each as probable as the others before the rows are seen.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            A mapping or `Views` may hold any subset of the fitted views, by name, and objects may
            be missing from some of these; a list holds all fitted views, in order.

        Returns
        -------
        probabilities : ndarray, shape (n_objects, n_classes)
            In the order of ``classes_``. Objects that are seen in no view get equal ones.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of features is not the fitted one.
        """
        check_is_fitted(self)
        views = open_views(self, X, reset=False)
        found = log_densities(views, self.maps_, (self.class_means_, self.class_covariance_))
        return np.asarray(special.softmax(found, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each object.

        Parameters
        ----------
        X
            As for `predict_proba`.

        Returns
        -------
        classes : ndarray, shape (n_objects,) or (n_objects, n_labels)
        """
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of the objects whose class, or whole label set, is predicted.

        Parameters
        ----------
        X
            As for `predict_proba`.
        y : labels
            In the form that `fit` had; of unpaired views, those of each view or of all objects.
        sample_weight : array-like, shape (n_objects,), optional
            How often each object counts.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If there are no labels, or not one for each object.
        """
        check_is_fitted(self)
        if y is None:
            raise ValueError("score compares predictions with labels: pass them as y.")
        views = open_views(self, X, reset=False)
        if holds_views(X) and is_per_view(X, y):
            y = LabelsByView.of(views, y, per_view=True).per_object(views)
        if sample_weight is not None:
            sample_weight = checked_sample_weight(sample_weight, views, reset=False)
        labels = np.asarray(Labels.of(y))
        return float(accuracy_score(labels, self.predict(X), sample_weight=sample_weight))
