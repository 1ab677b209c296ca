"""Semantic matching: the class probabilities of each view as the shared space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods

from mvcca.base.tuned_fits import setting_by_view
from mvcca.kernel.classifiers import GivenClassifiers, LogisticModel, Targets
from mvcca.kernel.label_space import LabelSpaceEstimator, TrainingRows, label_matrix
from mvcca.model_selection import searched
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.views.labels_by_view import LabelsByView


class SemanticMatching(LabelSpaceEstimator):
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
    predictors_ : dict of str to callable
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
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classifier": [HasMethods(["fit", "predict_proba"]), Mapping, None],
        **LabelSpaceEstimator._parameter_constraints,
    }

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

    def _check_search(self) -> None:
        if self.classifier is not None:
            raise ValueError(
                f'{" and ".join(searched(self))}="{SEARCHED}" is of logistic regression, but '
                "classifier is given. Give one of them, or search the classifier's own parameters "
                'with GridSearchCV, by names such as "classifier__C".'
            )

    def _check_kind(self, labels: LabelsByView) -> None:
        if not labels.distinct.are_sets:
            raise ValueError(
                "SemanticMatching learns probabilities of classes or label sets, got real label "
                "vectors. LabelRegression takes them."
            )

    def _predictor(
        self, name: str, block: Any, labels: LabelsByView, rows: Callable[[], TrainingRows]
    ) -> Callable[[Any], np.ndarray]:
        # Classes if every label vector of all views is one label.
        are_classes = bool((labels.distinct.set_sizes == 1).all())
        targets = Targets(label_matrix(labels[name]).astype(bool), are_classes)
        classifier = setting_by_view(self, "classifier", self.view_names_)[name]
        if classifier is None:
            return LogisticModel.fit(rows(), targets)
        return GivenClassifiers.fit(block, targets, classifier)
