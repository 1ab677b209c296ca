"""Semantic matching: the class probabilities of each view as the shared space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from mvcca.base import MultiViewEstimator, Requirements, all_or_nothing
from mvcca.base.inputs import open_repeated
from mvcca.base.label_checks import check_labels
from mvcca.base.tuned_fits import fit_searched, setting_by_view
from mvcca.blocks import as_block
from mvcca.blocks.checks import of_view
from mvcca.kernel.classifiers import GivenClassifiers, LogisticModel, Targets, column_scales
from mvcca.kernel.kernels import seed_of_views
from mvcca.model_selection import AUTOMATIC, GOALS, SEARCHED, Goal, Space, searched
from mvcca.problem import Maps, reg_of_names
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView


class SemanticMatching(MultiViewEstimator):
    r"""Class probabilities of each view as the shared space.

    Use it to find items with the same label. Views need no pairing, and there may be only one.

    A classifier per view gives the probabilities of the labels of a row, and rows of any two views
    are compared by the inner product of these [1]_,

    .. math::

        s(x, x') = ∑_c P_p(c \mid x) \, P_q(c \mid x'),

    the probability that both have the same class, if they are independent given the rows. Label
    sets have one classifier per label; the sum is then the expected number of labels in common.

    The default is logistic regression on kernel features: Nyström features of a Gaussian kernel
    with the median distance as its width, of columns in units of their deviations.

    Parameters
    ----------
    classifier : classifier, mapping of str to classifier, or None, default=None
        Any classifier of scikit-learn that has ``predict_proba``, such as
        ``RandomForestClassifier()`` or a pipeline, for every view or by name. It takes rows as they
        are given, so that `reg`, `kernel` and `n_landmarks` do not apply. None is the logistic
        regression described above.
    reg : float, mapping of str to float, or "cv", default=0.1
        Penalty r of the logistic regression, mean loss + r v ‖w‖² / 2, of every view or by name,
        in units of the mean variance v of the features, as elsewhere; positive. Scikit-learn's C
        is 1 / (n r v). "cv" chooses it by 3 folds.
    kernel : {"auto", "rbf", "linear", "cv"} or mapping of str to the first three, default="auto"
        Whether the regression is on features of a Gaussian kernel, or on the columns themselves.
        "cv" chooses by 3 folds. "auto" is "cv" if ``reg="cv"``, else "rbf".
    n_landmarks : int, default=500
        Rows that the kernel compares with, drawn at random, or all rows if there are fewer.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.
    cv_goal : {"object", "class", "correlation"} or None, default=None
        What "cv" maximizes on held-out folds: the mean reciprocal rank of the row of the same
        object, mAP@50 over rows that share a label, or the mean correlation of the scores. None is
        "class".

    Attributes
    ----------
    classifiers_ : dict of str to callable
        Functions from rows of a view to probabilities, by view name.
    labels_ : ndarray, shape (n_components_,)
        The label that each component stands for: a class, or the number of a column.
    reg_, kernel_
        Chosen values of the parameters that are "cv"; only then, like the next two.
    ranking_ : str
        The chosen ranking: "inner" or "inner+csls".
    cv_results_ : dict of str to array
        Values of all settings on the folds, as in scikit-learn's searches.
    n_components_ : int
        Number of labels.
    n_label_vectors_ : int
        Number of distinct label vectors.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    mvcca.deep.DeepSM : Networks as classifiers.
    LGCFL, JRL : Least-squares regression of the labels.

    Notes
    -----
    A label that no row of a view has is given probability 0 by that view.

    The paper compares probabilities by several distances. Inner products are the default of this
    class because they rank best on held-out rows: see ``benchmarks/defaults/semantic_matching.py``.

    References
    ----------
    .. [1] Rasiwasia, Costa Pereira, Coviello, Doyle, Lanckriet, Levy and Vasconcelos, "A New
       Approach to Cross-Modal Multimedia Retrieval", ACM Multimedia 2010, section 4.2.

    Examples
    --------
    >>> from mvcca import SemanticMatching, evaluate_retrieval
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> train, test = data.views[:600], data.views[600:1000]
    >>> model = SemanticMatching(random_state=0).fit(train, data.labels[:600])
    >>> model.transform({"left": test["left"]})["left"].shape
    (400, 10)
    >>> table = evaluate_retrieval(test, data.labels[600:1000], measures="map", estimator=model)
    """

    retrieval_ranking = ("transform", "inner")
    requires = Requirements(views=(1, None), labels=True, host=True)
    automatic: ClassVar[Mapping[str, Any]] = {"kernel": "rbf"}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_proba"]), Mapping, None],
        "reg": [Interval(Real, 0, None, closed="neither"), Mapping, StrOptions({SEARCHED})],
        "kernel": [StrOptions({"rbf", "linear", SEARCHED, AUTOMATIC}), Mapping],
        "n_landmarks": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "cv_goal": [StrOptions(set(GOALS)), None],
    }

    classifiers_: dict[str, LogisticModel | GivenClassifiers]

    def __init__(
        self,
        classifier: Any = None,
        *,
        reg: float | str | Mapping[str, float] = 0.1,
        kernel: str | Mapping[str, str] = AUTOMATIC,
        n_landmarks: int = 500,
        random_state: Any = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.classifier = classifier
        self.reg = reg
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.cv_goal = cv_goal

    def search_space(self, views: Views, labels: LabelsByView) -> Space:
        """Kernels and ridges, with larger or smaller ridges if the best is at an end."""
        values = {"kernel": ("linear", "rbf"), "reg": (1e-3, 1e-2, 0.1, 1.0)}
        return Space(values, beyond={"reg": _next_ridge}, n_folds=3)

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a classifier to the labels of every view.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix of shape (n_rows, n_features)
            The views. A lone matrix is a single view.
        y : labels
            A class vector, indicator matrix, list of label sets or `Labels`, one per object; or a
            list or mapping with the labels of each view, whose heights may differ.
        sample_weight : array-like of int, shape (n_objects,), optional
            How often each object counts: its rows are repeated.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If labels are missing, all the same or real vectors; if a view holds NaN or infinity, or
            never varies; if folds choose parameters that a given `classifier` does not have; if
            weights are not whole numbers.
        """
        self._validate_params()
        if asked := searched(self):
            if self.classifier is not None:
                raise ValueError(
                    f'{" and ".join(asked)}="{SEARCHED}" is of logistic regression, but classifier '
                    "is given. Give one of them, or search the classifier's own parameters with "
                    'GridSearchCV, by names such as "classifier__C".'
                )
            return fit_searched(self, X, y, sample_weight)
        views, labels = open_repeated(self, X, y, sample_weight)
        assert labels is not None
        if not labels.distinct.are_sets:
            raise ValueError(
                "SemanticMatching learns probabilities of classes or label sets, got real label "
                "vectors. LGCFL and MLCCA take them."
            )
        check_labels(labels)
        views, names = views.in_memory(), views.names
        classifiers = setting_by_view(self, "classifier", names)
        kernels = setting_by_view(self, "kernel", names)
        reg = reg_of_names(self.reg, names, positive=True)
        seed = seed_of_views(self.random_state)
        self.classifiers_ = {}
        for name, block in views.items():
            targets, scales = _targets(labels, name), column_scales(name, block)
            fitted: LogisticModel | GivenClassifiers
            try:
                if classifiers[name] is not None:
                    fitted = GivenClassifiers.fit(block, targets, classifiers[name])
                else:
                    rng, landmarks = np.random.RandomState(seed), None
                    if kernels[name] == "rbf":
                        landmarks = rng.permutation(block.shape[0])[: self.n_landmarks]
                    fitted = LogisticModel.fit(block, targets, scales, reg[name], landmarks, rng)
            except ValueError as refused:
                raise of_view(name, refused) from refused
            self.classifiers_[name] = fitted
        self.labels_ = labels.distinct.names
        self.n_components_ = len(self.labels_)
        self.n_label_vectors_ = len(labels.distinct)
        return self

    def _depends_on_units(self, name: str) -> bool:
        return False  # columns are standardised

    def _projection(self, name: str, maps: Maps | None) -> Callable[[Any], Any]:
        return partial(_probabilities, self.classifiers_[name], self.n_components_)


def _next_ridge(reg: float, upward: bool) -> float:
    """Ten times the ridge, or a tenth."""
    return reg * (10 if upward else 0.1)


def _targets(labels: LabelsByView, name: str) -> Targets:
    """Labels of the rows of a view; classes if every label vector of all views is one label."""
    are_classes = bool((labels.distinct.set_sizes == 1).all())
    indicators = as_block(labels[name].matrix).dense().matrix.astype(bool)
    return Targets(indicators, are_classes)


def _probabilities(
    classifier: LogisticModel | GivenClassifiers, n_labels: int, block: Any
) -> np.ndarray:
    if not block.shape[0]:  # no object is seen in this view
        return np.empty((0, n_labels), dtype=block.dtype)
    return classifier(block).astype(block.dtype, copy=False)
