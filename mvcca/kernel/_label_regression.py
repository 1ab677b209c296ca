"""Label regression: the labels that ridge regression of each view predicts as the shared space."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import Ridge

from mvcca.kernel.label_space import AffineModel, LabelSpaceEstimator, TrainingRows, label_matrix
from mvcca.model_selection import Space
from mvcca.model_selection.goals import Goal
from mvcca.model_selection.spaces import AUTOMATIC
from mvcca.problem import Rows
from mvcca.views.labels_by_view import LabelsByView

_TOLERANCE = 1e-10  # of the solver for sparse rows, which takes steps


class LabelRegression(LabelSpaceEstimator):
    r"""Ridge regression of the labels on kernel features of each view.

    Use it to find items with the same label, beside `SemanticMatching`. It takes less
    time, and real label vectors, too. Views need no pairing, and there may be only one.

    Every view p is mapped to the centred indicators of the labels of its rows, or to centred label
    vectors,

    .. math::

        \min_{W_p} \; \frac{1}{n_p} ‖\bar Φ_p W_p - \bar Y_p‖_F^2 + r \, v_p ‖W_p‖_F^2 ,

    with Φ the Nyström features of a Gaussian kernel, as in `SemanticMatching`, and v their mean
    variance. This is kernel ridge regression [1]_ with landmarks. Labels are the shared space, and
    scores are compared by cosine; folds may choose the inner product, which is better where labels
    are hard to predict, or sets.

    Parameters
    ----------
    reg : float, mapping of str to float, or "cv", default=0.1
        r of every view or by name, in units of the mean variance of the features, as elsewhere;
        positive. "cv" chooses it by 3 folds.
    kernel, n_landmarks, random_state, cv_goal
        As in `SemanticMatching`.

    Attributes
    ----------
    predictors_ : dict of str to callable
        Functions from rows of a view to predicted labels less their mean, by view name; of real
        label vectors, as fractions of their largest value.
    ranking_ : str
        The chosen ranking: "cosine" or "inner", with "+csls" or without.
    labels_, n_components_, n_label_vectors_, view_names_, n_features_in_
    reg_, kernel_, cv_results_
        As in `SemanticMatching`.

    See Also
    --------
    SemanticMatching : Class probabilities by logistic regression.
    LGCFL : Regression on few of the columns.

    Notes
    -----
    Labels are centred by their means over the rows of a view, so that views may have different
    shares of a label. A label that no row of a view has is predicted as 0 there.

    References
    ----------
    .. [1] Saunders, Gammerman and Vovk, "Ridge Regression Learning Algorithm in Dual Variables",
       ICML 1998.

    Examples
    --------
    >>> from mvcca import LabelRegression, evaluate_retrieval
    >>> from mvcca.datasets import load_digits_views
    >>> data = load_digits_views()
    >>> train, test = data.views[:600], data.views[600:1000]
    >>> model = LabelRegression(random_state=0).fit(train, data.labels[:600])
    >>> model.transform({"left": test["left"]})["left"].shape
    (400, 10)
    >>> table = evaluate_retrieval(test, data.labels[600:1000], measures="map", estimator=model)
    """

    def __init__(
        self,
        reg: float | str | Mapping[str, float] = 0.1,
        *,
        kernel: str | Mapping[str, str] = AUTOMATIC,
        n_landmarks: int = 500,
        random_state: Any = None,
        cv_goal: Goal | None = None,
    ) -> None:
        self.reg = reg
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.cv_goal = cv_goal

    def search_space(self, rows: Rows) -> Space:
        """Kernels, ridges, and both similarities."""
        return replace(super().search_space(rows), rankings=("cosine", "inner"))

    def _predictor(
        self, name: str, block: Any, labels: LabelsByView, rows: Callable[[], TrainingRows]
    ) -> Callable[[Any], np.ndarray]:
        Y = label_matrix(labels[name]).astype(np.float64)
        if not np.any(Y[0] != Y):
            raise ValueError("All rows have the same labels, so that there is nothing to predict.")
        Y /= np.abs(Y).max()  # scores of float32 rows are float32
        return _fitted(rows(), Y - Y.mean(axis=0))


def _fitted(rows: TrainingRows, targets: np.ndarray) -> AffineModel:
    ridge = Ridge(alpha=rows.penalty, tol=_TOLERANCE)
    try:
        with warnings.catch_warnings(action="error", category=LinAlgWarning):
            ridge.fit(rows.centred, targets)
    except LinAlgWarning:  # so small a ridge needs a decomposition of the rows, not their products
        ridge.set_params(solver="svd").fit(rows.centred, targets)
    weights = ridge.coef_.T
    return AffineModel(
        rows.scales, rows.features, weights, ridge.intercept_ - rows.origin @ weights
    )
