"""How estimators with correlations rank: a mixin with the expected correlations and the vectors."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.blocks.array_api import namespace, placed
from mvcca.problem._expected import LARGEST_CORRELATION, component_weights
from mvcca.views import Views
from mvcca.views.typing import MatrixLike, ViewsLike


class RankedByCorrelation:
    """Mixin of the estimators whose components are correlated across views."""

    retrieval_ranking = ("retrieval_scores", "profile-likelihood")

    expected_correlations_: np.ndarray
    expected_correlations_by_pair_: np.ndarray
    expected_deviations_: dict[str, np.ndarray]
    power = 0.0

    def retrieval_scores(self, X: ViewsLike | MatrixLike, y: MatrixLike | None = None) -> Any:
        r"""Project rows to the vectors whose inner product ranks best.

        If views are jointly Gaussian, the log-likelihood ratio of "the rows x and y show the same
        object" against "they do not" is, with scores a and b of unit variance,

            Σ_i w_i a_i b_i - Σ_i v_i (a_i² + b_i²) / 2 + constant,
            w_i = ρ_i / (1 - ρ_i²),   v_i = ρ_i² / (1 - ρ_i²).

        Rows of real data differ in scale more than Gaussian ones do. If the scale of each row is
        unknown, its maximum-likelihood value makes the ratio an increasing function of

            Σ_i w_i a_i b_i / √(Σ_i v_i a_i² Σ_i v_i b_i²),

        the profile likelihood: the inner product of the vectors √w_i a_i / √(Σ_j v_j a_j²). For a
        joint query or target, a and b are sums of the scores of its views; sums of these vectors
        would fix a scale per view and rank worse. Plain
        scores give a component with correlation .1 the weight of one with .9. ρ is
        ``expected_correlations_``. If `power` is set, it weights the components instead, and these
        are the scores of `transform`.

        Parameters
        ----------
        X, y
            As for `transform`.

        Returns
        -------
        vectors : same container as X
            As `transform` gives them.

        See Also
        --------
        mvcca.evaluate_retrieval : Other rankings by name, with its parameter `weighting`.
        """
        check_is_fitted(self)
        if self.power:
            return self.transform(X, y)  # type: ignore[attr-defined]
        rho = np.minimum(self.expected_correlations_, LARGEST_CORRELATION)
        weights = component_weights(rho)
        model: Any = copy(self)
        model.weights_ = {name: W * weights for name, W in model.weights_.items()}

        def vectors(views: Views) -> dict[str, Any]:
            return {name: _profiled(U, rho) for name, U in model._scores_of_views(views).items()}

        return model._transform(X, y, vectors)


def _profiled(U: Any, rho: np.ndarray) -> Any:
    """Rows u / √(Σ_i ρ_i u_i²), which is √(Σ v_i a_i²) for u_i = √w_i a_i."""
    xp = namespace(U)
    lengths = xp.sqrt((U * U) @ placed(rho, U))
    return U / xp.where(lengths > 0, lengths, xp.ones_like(lengths))[:, None]
