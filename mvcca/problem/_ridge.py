"""The ridges `reg="auto"` and `reg="oas"`: how far to shrink covariances, estimated from rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.problem._rows import Shrinkage
from mvcca.statistics import Moments
from mvcca.views import Views


def shrinkages(
    views: Views, weights: np.ndarray | None = None, method: str = "auto", *, center: bool = True
) -> dict[str, float]:
    """The `Shrinkage` of each view, estimated from all rows; the method is "auto" or "oas"."""
    estimate = oas_shrinkage if method == "oas" else ledoit_wolf_shrinkage
    return {
        name: estimate(block, None if weights is None else weights[views.objects(name)], center)
        for name, block in views.items()
    }


def ledoit_wolf_shrinkage(
    X: Any, weights: np.ndarray | None = None, center: bool = True
) -> Shrinkage:
    """Estimate how far to shrink the covariance of dense, sparse or weighted rows."""
    # With C = 1/n Σ_i x_i x_iᵀ of centred rows and μ its mean diagonal, (1 - s) C + s μ I is
    # closest to the true covariance for s = min(β, δ) / δ, where δ = ‖C - μ I‖² and
    # β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² (Ledoit and Wolf, "A well-conditioned estimator for
    # large-dimensional covariance matrices", Journal of Multivariate Analysis 2004).
    squared_norms, scatter = _norms_and_scatter(X, weights, center)
    total, trace = _total(X, weights), np.trace(scatter)
    distance = _distance(scatter, X.shape[1])
    if not distance > 0:
        return Shrinkage(0)
    # Fourth powers follow, which must not overflow.
    frobenius, squared_norms = np.sum((scatter / trace) ** 2), squared_norms / trace * total
    w = np.ones(X.shape[0]) if weights is None else weights
    noise = (np.sum(w * squared_norms**2) / total - frobenius) / total
    return Shrinkage(np.clip(noise / distance, 0, 1))


def oas_shrinkage(X: Any, weights: np.ndarray | None = None, center: bool = True) -> Shrinkage:
    """Oracle approximating shrinkage of the covariance of dense, sparse or weighted rows."""
    # For Gaussian rows, s = (tr C² + tr² C) / ((n + 1) (tr C² - tr² C / p)): eq. (23) of Chen,
    # Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation", 2010, without
    # its terms in 1/p, as scikit-learn's OAS has it.
    scatter = _norms_and_scatter(X, weights, center)[1]
    distance = _distance(scatter, X.shape[1])
    if not distance > 0:
        return Shrinkage(0)
    return Shrinkage(
        min((distance + 1 / X.shape[1] + 1) / ((_total(X, weights) + 1) * distance), 1)
    )


def _total(X: Any, weights: np.ndarray | None) -> float:
    return float(X.shape[0] if weights is None else weights.sum())


def _norms_and_scatter(
    X: Any, weights: np.ndarray | None, center: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Squared lengths of the centred rows, and XᵀX, or the smaller XXᵀ with the same ‖·‖."""
    n_rows, n_features = X.shape
    if n_rows < n_features:
        rows = as_block(X).dense().matrix.astype(np.float64)
        if center:
            rows -= np.average(rows, axis=0, weights=weights)
        squared_norms = (rows**2).sum(axis=1)
        if weights is not None:
            rows *= np.sqrt(weights)[:, None]
        return squared_norms, rows @ rows.T
    moments = Moments.of(Views({"": X}), weights)
    mean, scatter = moments.means[0], moments.scatter
    if not center:
        scatter, mean = scatter + moments.counts[0, 0] * np.outer(mean, mean), np.zeros_like(mean)
    return as_block(X).squared_norms(mean), scatter


def _distance(scatter: np.ndarray, n_features: int) -> float:
    """‖C - μ I‖² / tr² C; 0 if there is nothing to shrink: one feature, or all alike."""
    trace = np.trace(scatter)
    if not 0 < trace < np.inf:
        return 0.0  # whitening will say what is wrong with this view
    return float(np.sum((scatter / trace) ** 2) - 1 / n_features)
