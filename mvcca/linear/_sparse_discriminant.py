"""Sparse components of several views that tell classes apart, and classes from any of the views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import permutations
from numbers import Real
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special
from sklearn.base import ClassifierMixin
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mvcca.base import Requirements
from mvcca.base.inputs import open_views
from mvcca.base.label_checks import check_labels
from mvcca.blocks import to_host
from mvcca.blocks.checks import few
from mvcca.linear._rgcca import RGCCA, Posed
from mvcca.linear.class_moments import CLASSES, ClassMoments, labels_of, positions_of, with_classes
from mvcca.model_selection import SEARCHED, Trials, search_folds
from mvcca.model_selection.feature_counts import counts_up_to
from mvcca.model_selection.folds import make_folds
from mvcca.model_selection.goals import Value
from mvcca.problem import Maps, Rows
from mvcca.problem.ascent import BlockMethod, Solution
from mvcca.problem.block_covariances import BlockCovariances, Vectors
from mvcca.statistics import Moments, PairMoments, column_slices
from mvcca.views import Labels, Views, holds_views
from mvcca.views.by_view import value_by_view
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.validation import checked_sample_weight

_N_FOLDS = 5
_MOST_BY_ANGLES = 50  # features of τ < 1 that folds try, which enter one at a time
_LEAST_VARIANCE = 1e-10  # within classes, as a share of the squared size of the scores


@dataclass(frozen=True, eq=False)
class ClassScores:
    """What the scores of each view say of classes.

    Attributes
    ----------
    means : dict of str to ndarray, shape (n_classes, k)
        Mean scores of each class.
    covariance : dict of str to ndarray, shape (k, k)
        Covariance of the scores within classes.
    """

    means: Mapping[str, np.ndarray]
    covariance: Mapping[str, np.ndarray]

    def log_densities(self, views: Views, maps: Maps) -> np.ndarray:
        """Sum over the views in which an object is seen, up to a constant, (n_objects, n_classes).

        log p(t | c) = -(t - m_c)ᵀ W⁻¹ (t - m_c) / 2 for scores t and covariance W within classes.
        """
        n_classes = len(next(iter(self.means.values())))
        found = np.zeros((len(views), n_classes))
        for name, block in views.blocks.items():
            k = maps.weights[name].shape[1]
            scores = np.asarray(to_host(block.mapped(partial(maps.project, name), k)))
            within, means = self.covariance[name], self.means[name]
            least = _LEAST_VARIANCE * (np.trace(within) + (means**2).sum())
            deviations = scores[:, None] - means
            within = within + (least or 1.0) * np.eye(len(within))
            solved = np.linalg.solve(within, deviations.reshape(-1, len(within)).T).T
            found[views.objects(name)] -= (deviations * solved.reshape(deviations.shape)).sum(2) / 2
        return found


@dataclass(eq=False)
class Signature:
    """Components that were found one after the other, from moments of rows and classes.

    Attributes
    ----------
    posed : Posed
        Covariances of the views and of the indicators of the classes.
    solutions : list of Solution
        Weights of each component.
    rotated : list of dict of str to ndarray, shape (n_features,)
        Weights of scaled rows that give the scores.
    correlations : dict of str to list of float
        Correlation of the scores of each view with those of the classes.
    """

    posed: Posed
    solutions: list[Solution] = field(default_factory=list)
    rotated: list[Vectors] = field(default_factory=list)
    correlations: dict[str, list[float]] = field(default_factory=dict)

    def add(self, solution: Solution, covariances: BlockCovariances) -> None:
        """Add a component of what the components before leave."""

        def deviation(name: str) -> float:
            w = solution.weights[name]
            return float(np.sqrt(max(w @ covariances.image(name, name, w), 0)))

        self.solutions.append(solution)
        self.rotated.append({j: covariances.rotated(j, w) for j, w in solution.weights.items()})
        for name in self.views:
            size = deviation(name) * deviation(CLASSES)
            shared = solution.covariances[name, CLASSES]
            self.correlations.setdefault(name, []).append(shared / size if size > 0 else 0.0)

    @property
    def views(self) -> list[str]:
        """The blocks other than the classes."""
        return [name for name in self.posed.factors if name != CLASSES]

    def maps(self) -> Maps:
        """Maps of rows to scores."""
        means, factors = self.posed.about.means, self.posed.factors
        weights = {
            name: factors[name][:, None] * np.column_stack([own[name] for own in self.rotated])
            for name in self.views
        }
        return Maps(weights, {name: means[name] for name in self.views})

    def class_scores(self, moments: Moments | PairMoments) -> ClassScores:
        """Means and covariances of the scores of classes, from moments of rows and classes."""
        maps, means, within = self.maps(), {}, {}
        for name, W in maps.weights.items():
            pair = name, CLASSES
            own = moments.select(pair) if isinstance(moments, Moments) else moments.pairs[pair]
            means[name], within[name] = _of_classes(own, W)
            means[name] += (own.mean()[name] - maps.means[name]) @ W
        return ClassScores(means, within)

    def class_scores_of(self, rows: Rows) -> ClassScores:
        """The same from moments of the scores of rows, which have their classes as a view."""
        maps, means, within = self.maps(), {}, {}
        for name, W in maps.weights.items():
            scores = maps.project(name, rows.views[name])
            both = Views({name: scores, CLASSES: rows.views[CLASSES]})
            own = Moments.of(both, rows.sample_weight)
            means[name], within[name] = _of_classes(own, np.eye(W.shape[1]))
            means[name] += own.mean()[name]
        return ClassScores(means, within)


def _of_classes(own: Moments, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deviations of the means of classes, and covariance within classes, of X W.

    Over n rows, the covariance of scores with the indicator of class c, whose share is π_c, is
    π_c (m_c - m) n / (n - 1).
    """
    n, S, shares = float(own.counts[0, 1]), own.covariance(), own.mean()[CLASSES]
    x, y = column_slices(own.widths).values()
    m = S[y, x] @ W * (n - 1) / (n * np.where(shares > 0, shares, 1))[:, None]
    rest = (n - 1) * W.T @ S[x, x] @ W - (m * (n * shares)[:, None]).T @ m
    return m, (rest + rest.T) / 2 / max(n - len(shares), 1)


class SparseDiscriminant(ClassifierMixin, RGCCA):
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
        Seed of the folds.

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

    requires = Requirements(views=(1, None), labels=True, float64=True, features=True)
    sums: ClassVar = (ClassMoments,)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": RGCCA._parameter_constraints["n_components"],
        "n_features": [*RGCCA._parameter_constraints["n_features"], StrOptions({SEARCHED})],
        "tau": [Interval(Real, 0, 1, closed="both"), Mapping],
        "link": [Interval(Real, 0, None, closed="left")],
        "shrink": ["boolean"],
        "start": [StrOptions({"classes", "own"})],
        "random_state": ["random_state"],
    }
    # Of RGCCA, not parameters.
    l1 = design = confounds = None
    scheme, deflation = "horst", "scores"
    superblock = scale_views = positive = False
    scale = True
    missing = "error"

    classes_: np.ndarray
    n_features_: int

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_features: Any = SEARCHED,
        tau: float | Mapping[str, float] = 1.0,
        link: float = 0.1,
        shrink: bool = False,
        start: str = "classes",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.tau = tau
        self.link = link
        self.shrink = shrink
        self.start = start
        self.random_state = random_state

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

    def open_rows(self, X: Any, y: Any, sample_weight: Any, *, batch: bool = False) -> Rows:
        """Checked rows with their weights and classes."""
        rows = super().open_rows(X, y, sample_weight, batch=batch)
        if CLASSES in rows.views.names:
            raise ValueError(f"The name {CLASSES!r} is taken by the classes: rename that view.")
        if not rows.labels.distinct.are_sets:
            raise ValueError(
                "Unknown label type: SparseDiscriminant takes classes or label sets, got real "
                "label vectors. LabelRegression takes them."
            )
        if not batch:
            check_labels(rows.labels)
        labels = rows.labels.per_object(rows.views)
        for name, codes in rows.labels.codes.items():
            if not np.array_equal(codes, labels.codes[rows.views.objects(name)]):
                raise ValueError(
                    f"Expected one label per object, but those of view {name!r} differ from those "
                    "of another view. Rows that do not correspond are Views.unpaired(views)."
                )
        return rows

    def nests_components(self) -> bool:
        """False: what scores say of classes is of all components together."""
        return False

    def statistic_of(self, rows: Rows) -> ClassMoments:
        """Moments of the views and of the indicators of the classes."""
        return ClassMoments.of(rows)

    def _learn_rows(self, rows: Rows) -> None:
        if self.n_features == SEARCHED:
            found = self._search(rows)
            self.n_features_, self.cv_results_ = found.chosen["n_features"], found.cv_results()
        super()._learn_rows(rows)

    def posed_by_products(self, rows: Rows) -> Posed:
        """Covariances of views and classes by products of the rows, for wide views."""
        return super().posed_by_products(with_classes(rows, np.unique(labels_of(rows), axis=0)))

    def _learn_posed(self, rows: Rows, posed: Posed) -> None:
        classes = np.unique(labels_of(rows), axis=0)
        found = self._signature(posed, self._number())
        self._keep_signature(found, classes, found.class_scores_of(with_classes(rows, classes)))

    def learn(self, rows: Rows, statistic: Any) -> None:
        """Find one component after the other, and what scores say of classes."""
        if len(statistic.classes) < 2:
            raise ValueError("All rows have the same labels: expected at least two classes.")
        found = self._signature(self.posed_of(rows, statistic.moments), self._number())
        self._keep_signature(found, statistic.classes, found.class_scores(statistic.moments))

    def _number(self) -> Any:
        return self.n_features_ if self.n_features == SEARCHED else self.n_features

    def _keep_signature(
        self, found: Signature, classes: np.ndarray, of_classes: ClassScores
    ) -> None:
        posed = replace(found.posed, factors={n: found.posed.factors[n] for n in found.views})
        self._keep_solutions(posed, found.solutions, found.rotated, self.n_components)
        self.tau_ = value_by_view("tau", self.tau, found.views)
        self.classes_ = classes
        self.class_means_ = dict(of_classes.means)
        self.class_covariance_ = dict(of_classes.covariance)
        self.class_correlations_ = {n: np.array(own) for n, own in found.correlations.items()}

    def _signature(self, posed: Posed, n_features: Any) -> Signature:
        """Components with these numbers of features."""
        found, covariances = Signature(posed), posed.covariances
        tau = {**value_by_view("tau", self.tau, found.views), CLASSES: 1.0}
        counts = value_by_view("n_features", n_features, found.views)
        pairs = [pair for pair in permutations(posed.factors, 2) if self.link or CLASSES in pair]
        links = {pair: 1.0 if CLASSES in pair else float(self.link) for pair in pairs}
        method = BlockMethod(links, "horst", "scores", "own", response=CLASSES)
        indicators = np.eye(len(posed.factors[CLASSES]))
        starts = [{CLASSES: e} for e in indicators] if self.start == CLASSES else []
        limits_of = partial(self._limits, posed, tau, counts)
        for solution, left in method.components(covariances, limits_of, self.n_components, starts):
            found.add(solution, left)
        return found

    def _search(self, rows: Rows) -> Trials:
        """Right predictions of held-out rows, by number of features."""
        labels = labels_of(rows)
        classes = np.unique(labels, axis=0)
        y = positions_of(labels, classes)
        n_folds = min(_N_FOLDS, int(np.bincount(y).min()))
        if n_folds < 2:
            raise ValueError(
                'n_features="cv" holds out rows of every class: expected at least 2 rows of each. '
                "Give a number."
            )
        distinct = rows.labels.per_object(rows.views)
        parts = [own.test for own in make_folds(rows.views, distinct, n_folds, self.random_state)]
        held_out = [rows.take(part) for part in parts]
        by_products = self.takes_row_products(rows)
        sums = [] if by_products else [self.statistic_of(own) for own in held_out]
        widest = max(rows.views.widths.values())
        taus = value_by_view("tau", self.tau, rows.views.names).values()
        most = widest if min(taus) == 1 else _MOST_BY_ANGLES
        counts = [count for count in counts_up_to(widest) if count <= most]
        settings = [{"n_features": count} for count in reversed(counts)]

        def models(fold: int, settings: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
            if by_products:
                own = rows.take(np.setdiff1d(np.arange(len(y)), parts[fold]))
                posed, of_rows = self.posed_by_products(own), with_classes(own, classes)
            else:
                moments = reduce(add, sums[:fold] + sums[fold + 1 :]).moments
                posed = self.posed_of(rows, moments)
            for setting in settings:
                found = self._signature(posed, setting["n_features"])
                yield (
                    found.maps(),
                    found.class_scores_of(of_rows) if by_products else found.class_scores(moments),
                )

        def value(model: Any, fold: int) -> Value:
            (maps, of_classes), own = model, held_out[fold]
            found = of_classes.log_densities(own.views, maps).argmax(axis=1)
            share = balanced_accuracy_score(y[parts[fold]], found, sample_weight=own.sample_weight)
            return Value(float(share), float(share))

        return search_folds(n_folds, settings, models, value)  # of equally good ones, the fewest

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
        of_classes = ClassScores(self.class_means_, self.class_covariance_)
        return np.asarray(special.softmax(of_classes.log_densities(views, self.maps_), axis=1))

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
        per_view = is_per_view(X, y) if holds_views(X) else False
        if isinstance(y, Mapping) or per_view:
            y = LabelsByView.of(views, y, per_view).per_object(views)
        labels, found, weights = np.asarray(Labels.of(y)), self.predict(X), None
        if labels.shape != found.shape:
            raise ValueError(
                f"Expected labels of shape {found.shape}, as predictions, got {labels.shape}."
            )
        if sample_weight is not None:
            weights = checked_sample_weight(sample_weight, views, reset=False)
        right = (labels == found).reshape(len(found), -1).all(axis=1)
        return float(np.average(right, weights=weights))
