"""Which variables matter in a projection: importance in PLS regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted


def vip(estimator: Any) -> np.ndarray:
    r"""Variable importance in projection (VIP) of the features that a PLS regression predicts from.

    With the weights w_k (of length 1) of component k, and the variance s_k of the predicted view
    that its scores explain, the importance of feature j of d is [1]_

    .. math:: \mathrm{VIP}_j = \sqrt{d \, \frac{∑_k s_k w_{jk}^2}{∑_k s_k}}.

    The mean of its square over the features is 1; features above 1 are often kept.

    Parameters
    ----------
    estimator : PLS
        With algorithm="regression", fitted to two lone matrices; the last step of a pipeline that
        predicts.

    Returns
    -------
    ndarray, shape (n_features,)
        In the order of the columns of X. If the columns differ in their units, set ``scale=True``.

    Raises
    ------
    ValueError
        If the estimator is not a PLS regression.

    See Also
    --------
    explained_variance : Share of the variance of each view that each component explains.

    References
    ----------
    .. [1] Wold, Johansson and Cocchi, "PLS: partial least squares projections to latent
       structures", in 3D QSAR in Drug Design, 1993; Mehmood et al., "A review of variable selection
       methods in partial least squares regression", 2012, section 2.1.3.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from mvcca import PLS
    >>> from mvcca.inspection import vip
    >>> X, Y = load_linnerud(return_X_y=True)
    >>> vip(PLS(2, algorithm="regression", scale=True).fit(X, Y)).round(2)
    array([0.9 , 1.14, 0.94])
    """
    check_is_fitted(estimator)
    if getattr(estimator, "algorithm", None) != "regression":
        raise ValueError(
            "vip weighs components by what they explain of y: it needs a fitted "
            f'PLS(algorithm="regression"), got {type(estimator).__name__}.'
        )
    weights, loadings = estimator.x_weights_, estimator.y_loadings_
    # σ_k is the covariance of t_k with ȳ v_k, and the coefficients of ȳ on t_k are q_k =
    # σ_k / var(t_k) v_k, so that they explain var(t_k) ‖q_k‖² = σ_k ‖q_k‖.
    explained = estimator.eigenvalues_ * np.linalg.norm(loadings, axis=0)
    return np.sqrt(len(weights) * (weights**2 @ explained) / explained.sum())
