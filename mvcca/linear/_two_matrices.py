"""What scikit-learn's users know from `sklearn.cross_decomposition`, on two lone matrices X and y.

Its attributes are views of the fitted maps, computed on demand: nothing is stored twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from mvcca.linear._predicting import PredictingEstimator
from mvcca.views import as_views, holds_views, in_same_container
from mvcca.views.typing import MatrixLike

_COLLINEAR = 1e-12  # share of the scores of a component that others do not explain


class TwoMatrixEstimator(PredictingEstimator):
    """Base of `CCA` and `PLS`: prediction and reconstruction by regression on the scores.

    With scores T = X̄ W, the least-squares coefficients of any features Z on all of T are
    P = Z̄ᵀT (TᵀT)⁻¹. Patterns are the coefficients on one score at a time, B_k = Z̄ᵀt_k / t_kᵀt_k, so
    that P = B (WᵀB_x)⁻¹ with the patterns B_x of X itself.
    """

    patterns_: dict[str, np.ndarray]
    own_patterns_: dict[str, np.ndarray]
    scales_: dict[str, np.ndarray]  # by which columns are divided, if they are

    def inverse_transform(self, X: Any, y: MatrixLike | None = None) -> Any:
        """Reconstruct rows from their scores by regression: X̂ = T P_xᵀ + mean.

        Exact if there are as many components as independent features of the view.

        Parameters
        ----------
        X : mapping, Views, list of matrices, or matrix of shape (n_rows, n_components)
            Scores of any of the fitted views, by name; a lone matrix holds those of the first of
            two lone matrices.
        y : matrix of shape (n_rows, n_components), optional
            Scores of the second of two lone matrices.

        Returns
        -------
        rows : same container as X
            Arrays of shape (n_rows, n_features); two lone matrices give a tuple.

        Raises
        ------
        ValueError
            If a view is unknown, or its number of scores is not that of the components.
        """
        check_is_fitted(self)
        if holds_views(X):
            views = as_views(X, self.view_names_, unpaired=True)
            found = {name: self._reconstructed(name, scores) for name, scores in views.items()}
            return in_same_container(X, views, found)
        rows = self._reconstructed(self._lone("X"), X)
        return rows if y is None else (rows, self._reconstructed(self._lone("y"), y))

    def _reconstructed(self, name: str, scores: Any) -> np.ndarray:
        if name not in self.view_names_:
            raise ValueError(
                f"Unknown view {name!r}; {type(self).__name__} was fitted on the views "
                f"{list(self.view_names_)}."
            )
        scores = np.asarray(scores)
        if scores.ndim != 2 or scores.shape[1] != self.n_components_:
            raise ValueError(
                f"Scores of view {name!r} must have shape (n_rows, {self.n_components_}), a column "
                f"per component, got {scores.shape}."
            )
        return scores @ self._regressed(name, self._deflated_by(name)).T + self.means_[name]

    def _regressed(self, target: str, source: str) -> np.ndarray:
        """Coefficients of the features of a view on all scores of a view, (n_features, k)."""
        if not hasattr(self, "patterns_"):
            raise ValueError(
                f"{type(self).__name__} predicts and reconstructs views of two, but was fitted on "
                f"{list(self.view_names_)}. Fit it on two of them."
            )
        patterns = self.own_patterns_ if target == source else self.patterns_
        products = self.weights_[source].T @ self.own_patterns_[source]
        return patterns[target] @ linalg.pinv(products, rtol=_COLLINEAR)

    def _coefficients(self, source: str, target: str) -> np.ndarray:
        return self._regressed(target, source).T

    def _deflated_by(self, name: str) -> str:
        """The view whose scores reconstruct a view, and are regressed out of it: itself."""
        return name

    # ---- attributes of scikit-learn ------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """``(X - mean) @ coef_.T + intercept_`` predicts y; (n_targets, n_features)."""
        x, y = self._lone("X"), self._lone("y")
        return self._regressed(y, x) @ self.weights_[x].T

    @property
    def intercept_(self) -> np.ndarray:
        """The prediction at the mean of X, (n_targets,), which is the mean of y."""
        return self.means_[self._lone("y")].copy()

    @property
    def x_rotations_(self) -> np.ndarray:
        """Weights of centred (and scaled) columns of X that give its scores."""
        return self._rotations("X")

    @property
    def y_rotations_(self) -> np.ndarray:
        """Weights of centred (and scaled) columns of y that give its scores."""
        return self._rotations("y")

    @property
    def x_loadings_(self) -> np.ndarray:
        """Least-squares coefficients of the columns of X on its scores."""
        return self._loadings("X")

    @property
    def y_loadings_(self) -> np.ndarray:
        """Least-squares coefficients of the columns of y on the scores that deflate it."""
        return self._loadings("y")

    @property
    def x_weights_(self) -> np.ndarray:
        """Orthonormal weights of the residuals of X."""
        return self._residual_weights("X")

    @property
    def y_weights_(self) -> np.ndarray:
        """Weights of the residuals of y, orthonormal where its own scores deflate it."""
        return self._residual_weights("y")

    @property
    def x_scores_(self) -> np.ndarray:
        """Scores of the training rows of X, which only PLS regression keeps."""
        return self._training_scores("x_scores_")

    @property
    def y_scores_(self) -> np.ndarray:
        """Scores of the residuals of the training rows of y, which only PLS regression keeps."""
        return self._training_scores("y_scores_")

    def _rotations(self, name: str) -> np.ndarray:
        return self.weights_[self._lone(name)] * self._scale(name)

    def _loadings(self, name: str) -> np.ndarray:
        scale = self._scale(name)
        return self._regressed(name, self._deflated_by(name)) / np.where(scale > 0, scale, 1)

    def _residual_weights(self, name: str) -> np.ndarray:
        # Deflation turns w_k into w_k - Σ_{j<k} w_j (p_jᵀw_k): rotations are W times a unit upper
        # triangle, and W, which is orthonormal, is what the Gram-Schmidt process makes of them.
        if self._deflated_by(name) != name:
            return self._loadings(name)
        Q, R = np.linalg.qr(self._rotations(name))
        return Q * np.where(np.diag(R) < 0, -1.0, 1.0)

    def _scale(self, name: str) -> Any:
        """Standard deviations by which columns are divided, (n_features, 1), or 1."""
        name = self._lone(name)
        return self.scales_[name][:, None] if hasattr(self, "scales_") else np.ones(1)

    def _training_scores(self, name: str) -> np.ndarray:
        raise AttributeError(
            f"{type(self).__name__} keeps no scores of its training rows, {name}: they are what "
            "transform(X, y) returns, (x_scores, y_scores)."
        )

    def _lone(self, name: str) -> str:
        """The name of a lone matrix, X or y; refused if named views were fitted."""
        names = getattr(self, "view_names_", None)
        if names is None:
            raise AttributeError(f"This {type(self).__name__} is not fitted yet. Call fit first.")
        if names != ("X", "y"):
            raise AttributeError(
                "Attributes of sklearn.cross_decomposition are for fits to two lone matrices, "
                f"fit(X, y); this {type(self).__name__} was fitted on the views {list(names)}. Use "
                "weights_, patterns_, predict and inverse_transform with their names."
            )
        return name
