"""The ridges `reg="auto"` and `reg="oas"`: how far to shrink covariances, estimated from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block, to_host
from mvcca.problem._centred_rows import CentredRows
from mvcca.problem._confounds import given
from mvcca.problem.ridge import Shrinkage
from mvcca.statistics import Moments
from mvcca.views import Views

_LARGE = 5_000  # rows and features, above which a Gram matrix takes long
_PROBES = 64


def shrinkages(
    views: Views,
    weights: np.ndarray | None = None,
    method: str = "auto",
    *,
    center: bool = True,
    confounds: str | None = None,
) -> dict[str, float]:
    """The `Shrinkage` of each view, estimated from all rows; the method is "auto" or "oas".

    With confounds, it is that of the residuals on these.
    """
    estimate = oas_shrinkage if method == "oas" else ledoit_wolf_shrinkage
    Z = None
    found: dict[str, float] = {}
    if confounds is not None:
        Z = views.block(confounds).dense().matrix.astype(np.float64)
    for name, block in views.items():
        own = None if weights is None else weights[views.objects(name)]
        found[name] = Shrinkage(0) if name == confounds else estimate(block, own, center, Z)
    return found


def ledoit_wolf_shrinkage(
    X: Any,
    weights: np.ndarray | None = None,
    center: bool = True,
    confounds: np.ndarray | None = None,
) -> Shrinkage:
    """Estimate how far to shrink the covariance of dense, sparse or weighted rows."""
    # With C = 1/n Σ_i x_i x_iᵀ of centred rows and μ its mean diagonal, (1 - s) C + s μ I is
    # closest to the true covariance for s = min(β, δ) / δ, where δ = ‖C - μ I‖² and
    # β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² (Ledoit and Wolf, "A well-conditioned estimator for
    # large-dimensional covariance matrices", Journal of Multivariate Analysis 2004).
    total = _total(X, weights)
    squared_norms, trace, frobenius = _norms(X, weights, center, confounds)
    distance = frobenius - 1 / X.shape[1]
    if not distance > 0:
        return Shrinkage(0)
    squared_norms = squared_norms / trace * total  # fourth powers follow, which must not overflow
    w = np.ones(X.shape[0]) if weights is None else weights
    noise = (np.sum(w * squared_norms**2) / total - frobenius) / total
    return Shrinkage(np.clip(noise / distance, 0, 1))


def oas_shrinkage(
    X: Any,
    weights: np.ndarray | None = None,
    center: bool = True,
    confounds: np.ndarray | None = None,
) -> Shrinkage:
    """Oracle approximating shrinkage of the covariance of dense, sparse or weighted rows."""
    # For Gaussian rows, s = (tr C² + tr² C) / ((n + 1) (tr C² - tr² C / p)): eq. (23) of Chen,
    # Wiesel, Eldar and Hero, "Shrinkage algorithms for MMSE covariance estimation", 2010, without
    # its terms in 1/p, as scikit-learn's OAS has it.
    distance = _norms(X, weights, center, confounds)[2] - 1 / X.shape[1]
    if not distance > 0:
        return Shrinkage(0)
    return Shrinkage(
        min((distance + 1 / X.shape[1] + 1) / ((_total(X, weights) + 1) * distance), 1)
    )


def _total(X: Any, weights: np.ndarray | None) -> float:
    return float(X.shape[0] if weights is None else weights.sum())


def _norms_and_scatter(
    X: Any, weights: np.ndarray | None, center: bool, confounds: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Squared lengths of the centred rows, and XᵀX, or the smaller XXᵀ with the same ‖·‖.

    With confounds, X is what they leave of the rows.
    """
    n_rows, n_features = X.shape
    if n_rows < n_features:
        rows = as_block(X).dense().matrix.astype(np.float64)
        if center:
            rows -= np.average(rows, axis=0, weights=weights)
        root = np.ones((n_rows, 1)) if weights is None else np.sqrt(weights)[:, None]
        if confounds is not None:
            Z = confounds - (np.average(confounds, axis=0, weights=weights) if center else 0)
            rows -= Z @ linalg.lstsq(root * Z, root * rows)[0]
        squared_norms = (rows**2).sum(axis=1)
        rows *= root
        return squared_norms, rows @ rows.T
    blocks = {"X": X} if confounds is None else {"X": X, "Z": confounds}
    moments = Moments.of(Views(blocks), weights)
    unit, total = 1.0, moments.counts[0, 0]
    if not center:
        moments, unit = moments.about_zero(), total / max(total - 1, 1)
    mean = moments.mean()["X"]
    squared_norms = as_block(X).squared_norms(mean)
    if confounds is not None:
        moments = given(moments, "Z")
        regression = moments.regression
        assert regression is not None
        B, Z = regression.coefficients["X"], confounds - regression.mean
        explained = to_host(as_block(X).project(mean, B.T))
        squared_norms = squared_norms + np.einsum("ij,ij->i", Z @ (B @ B.T) - 2 * explained, Z)
    return squared_norms, unit * moments.scatter


def _norms(
    X: Any, weights: np.ndarray | None, center: bool, confounds: np.ndarray | None
) -> tuple[np.ndarray, float, float]:
    """Squared lengths of the centred rows, tr XᵀX, and ‖XᵀX‖² / tr² XᵀX; 0 if nothing varies."""
    if confounds is None and min(X.shape) > _LARGE:
        return _norms_by_products(X, weights, center)
    squared_norms, scatter = _norms_and_scatter(X, weights, center, confounds)
    trace = float(np.trace(scatter))
    if not 0 < trace < np.inf:
        return squared_norms, trace, 0.0  # whitening will say what is wrong with this view
    return squared_norms, trace, float(np.sum((scatter / trace) ** 2))


def _norms_by_products(
    X: Any, weights: np.ndarray | None, center: bool
) -> tuple[np.ndarray, float, float]:
    """The same of large views, ‖C‖² as ‖CQ‖² + E ‖C (I - QQᵀ) z‖² with random signs z.

    Q spans the largest directions, which leave little to chance (Meyer, Musco, Musco and Woodruff,
    "Hutch++: Optimal Stochastic Trace Estimation", 2021).
    """
    rows = CentredRows.of(as_block(X), weights, center=center)
    squared_norms = as_block(X).squared_norms(rows.mean)
    trace = float(rows.variances.sum())
    if not 0 < trace < np.inf:
        return squared_norms, trace, 0.0
    rng, n_features = np.random.default_rng(0), X.shape[1]
    Q = rng.standard_normal((n_features, _PROBES))
    for _ in range(2):
        Q = linalg.qr(rows.backward(rows.forward(Q)), mode="economic")[0]
    z = rng.choice([-1.0, 1.0], (n_features, _PROBES))
    z -= Q @ (Q.T @ z)
    of_Q, of_z = (np.sum((rows.backward(rows.forward(V)) / trace) ** 2) for V in (Q, z))
    return squared_norms, trace / rows.factor**2, float(of_Q + of_z / _PROBES)
