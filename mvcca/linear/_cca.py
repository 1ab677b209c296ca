"""Canonical correlation analysis of two views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from mvcca.base import Requirements, StatisticEstimator
from mvcca.linear._predicting import PredictingEstimator
from mvcca.linear.ranked_by_correlation import RankedByCorrelation
from mvcca.problem import Maps


class CCA(RankedByCorrelation, PredictingEstimator):
    r"""Canonical correlation analysis, with an optional ridge.

    Finds unit-variance linear maps of two views that correlate as much as they can [1]_,

    .. math::

        \max_{A, B} \; & \operatorname{tr}(A^⊤ Σ_{xy} B) \\
        \text{subject to} \; & A^⊤ (Σ_{xx} + r_x I) A = B^⊤ (Σ_{yy} + r_y I) B = I,

    by whitening each view and one singular value decomposition of Σ_xx^(-1/2) Σ_xy Σ_yy^(-1/2).
    With reg > 0 this is the canonical ridge [2]_. Rank-deficient views, and more features
    than rows, are handled; ill-conditioned views are decomposed themselves rather than their
    covariance.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the shared space.
    reg : float, mapping of str to float, or "auto", default=0.0
        Ridge on each view's covariance in units of that view's mean variance, so that rescaling a
        view changes nothing; "auto" shrinks both covariances as Ledoit and Wolf do, see `MVCCA`.

    Attributes
    ----------
    weights_ : dict of str to ndarray, shape (n_features, n_components_)
        A and B, by view name ("X" and "y" where two lone matrices were fitted).
        A dict: unpack it with ``weights_.values()``, since iterating over it gives names.
    means_ : dict of str to ndarray, shape (n_features,)
        Training means.
    canonical_correlations_ : ndarray, shape (n_components_,)
        Singular values ρ, decreasing: with reg=0 the training correlations of the scores.
    expected_correlations_ : ndarray, shape (n_components_,)
        Correlations of the scores to expect on new rows; see `MVCCA`.
    expected_correlations_by_pair_, expected_deviations_
        See `MVCCA`.
    eigenvalues_ : ndarray, shape (n_components_,)
        λ = 1 + ρ, as in `MVCCA`.
    patterns_ : dict of str to ndarray, shape (n_features, n_components_)
        Least-squares coefficients of a view's features on the scores of the other view, by which
        `predict` predicts it.
    n_components_ : int
        Components found: fewer than asked for where the data cannot give them.
    ranks_ : dict of str to int
        Rank of each view.
    view_names_ : tuple of str
        The views, in order.
    n_features_in_ : int
        Number of features of X, over all its views.

    See Also
    --------
    MVCCA : Two or more views.

    References
    ----------
    .. [1] Hotelling, "Relations between two sets of variates", Biometrika 1936; eqs. (1)-(6) of
       Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018.
    .. [2] Vinod, "Canonical ridge and econometrics of joint production", 1976.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import CCA
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> CCA(n_components=2).fit(X, Y).canonical_correlations_.round(3)
    array([0.796, 0.201])
    """

    retrieval_ranking = ("retrieval_scores", "profile-likelihood")
    requires = Requirements(views=(2, 2))
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: StatisticEstimator._parameter_constraints[name] for name in ("n_components", "reg")
    }

    def __init__(
        self, n_components: int = 2, *, reg: float | str | Mapping[str, float] = 0.0
    ) -> None:
        self.n_components = n_components
        self.reg = reg

    def _keep(self, maps: Maps) -> None:
        super()._keep(maps)
        assert maps.patterns is not None
        self.patterns_ = maps.patterns

    def _coefficients(self, source: str, target: str) -> np.ndarray:
        return self.patterns_[target].T
