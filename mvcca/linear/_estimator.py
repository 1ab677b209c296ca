"""What the linear estimators are: one affine map per view, its score, and the ending of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mvcca._backend import placed, precision, to_host
from mvcca._warnings import warn
from mvcca.base import MultiViewEstimator
from mvcca.linalg import Rotation, Solution, with_fixed_signs
from mvcca.linear._reg import Reg
from mvcca.linear._rotations import means_of_features, weights_of_features
from mvcca.linear._score import mean_average_precision, mean_correlation
from mvcca.validation import is_per_view
from mvcca.views import Views, holds_views


class LinearEstimator(MultiViewEstimator):
    """One affine map per view.

    Subclasses choose the between- and the within-view matrices; this class turns them into
    attributes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "reg": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"}), Mapping],
        "power": [Interval(Real, 0, None, closed="left")],
    }

    n_components: int
    reg: Reg
    _statistic: Any  # of the batches so far; None after fit
    power: float = 0.0  # a parameter of the estimators whose eigenvalues are worth weighting by

    def score(self, X: Any, y: Any = None) -> float:
        """Mean correlation of the projected views, over components and pairs of views.

        Objects seen in two views count; where there are none (unpaired views, or a single one),
        label-supervised estimators score the mean average precision of cosine ranking between the
        views instead. For other measures see `mvcca.retrieval_scorer`.

        Parameters
        ----------
        X : Views, mapping, list of matrices, or matrix
            Rows to project.
        y : matrix or labels, optional
            Labels; or the second view, for an unsupervised estimator and a lone matrix X.

        Returns
        -------
        float
            Larger is better; at most 1.

        Raises
        ------
        ValueError
            If no object is seen in two views and no labels are given.
        """
        check_is_fitted(self)
        second = None if self._supervised or holds_views(X) else y
        per_view = y is not None and holds_views(X) and is_per_view(X, y)
        unpaired = per_view and not isinstance(X, Views)
        views = self._open(X, second, reset=False, unpaired=unpaired).views
        blocks = {name: to_host(self._scores(name, block)) for name, block in views.items()}
        scores = views.replace(blocks).in_memory()
        correlation = mean_correlation(scores)
        if correlation is not None:
            return correlation
        if y is None or not self._supervised:
            raise ValueError(
                f"{type(self).__name__}.score needs objects that are seen in two views, or labels "
                "y and a label-supervised estimator. Use mvcca.retrieval_scorer."
            )
        return mean_average_precision(scores, y, per_view)

    def _project(self, name: str, block: Any) -> Any:
        scores = super()._project(name, block)
        if self.power:
            scores *= placed(self._component_weights(precision(scores)), scores)
        return scores

    def _component_weights(self, dtype: np.dtype) -> np.ndarray:
        """λ^power, which scores are multiplied by."""
        with np.errstate(over="ignore"):
            weights = np.maximum(self.eigenvalues_, 0) ** self.power
        if weights.max(initial=0) > 1e-6 * np.finfo(dtype).max:  # which leaves room for scores
            raise ValueError(
                f"power={self.power:g} is too large: λ^power of the first component, "
                f"{self.eigenvalues_[0]:.3g}^{self.power:g}, exceeds what {dtype} scores can be "
                "multiplied by. Choose a smaller power; 4 is usual."
            )
        return weights

    # ---- batches, and the ending of every fit ---------------------------------------------------

    def _is_first_batch(self) -> bool:
        """Whether `partial_fit` starts here; `fit` keeps no statistic of its rows to go on from."""
        if getattr(self, "_statistic", None) is not None:
            return False
        if hasattr(self, "weights_"):
            warn(
                "partial_fit starts over: fit keeps no statistic of its rows. Give all batches to "
                "partial_fit."
            )
        return True

    def _with_earlier(self, statistic: Any) -> Any:
        """The statistic of this batch and of all before it."""
        earlier = getattr(self, "_statistic", None)
        return statistic if earlier is None else earlier + statistic

    def _learn(
        self,
        solution: Solution,
        means: Mapping[str, np.ndarray],
        rotations: Mapping[str, Rotation],
        variances: Mapping[str, np.ndarray],
    ) -> None:
        """Set the fitted attributes, and say where there was less to find than asked for."""
        if solution.bound == 0:
            raise ValueError(
                "The views have nothing in common: their (weighted) covariance between views is "
                "zero. Check that rows, or labels, correspond."
            )
        if solution.bound < self.n_components:
            warn(
                f"n_components={self.n_components} is more than the data can give: at most "
                f"{solution.bound}. Fitted with n_components_={solution.bound}."
            )
        weights = weights_of_features(solution.weights, rotations)
        self.weights_ = with_fixed_signs(weights, variances)
        self.means_ = means_of_features({name: means[name] for name in weights}, rotations)
        self.eigenvalues_ = 1 + solution.values
        self.n_components_ = len(solution.values)
        if self.power:
            self._component_weights(np.dtype(np.float64))  # refused here, not at the first scores
        self.ranks_ = solution.ranks
        self.view_names_ = tuple(solution.weights)
