"""The ridge `reg="auto"`: how far to shrink covariances, estimated from the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.problem._rows import Shrinkage
from mvcca.statistics import Moments
from mvcca.views import Views


def shrinkages(views: Views, weights: np.ndarray | None = None) -> dict[str, float]:
    """The `Shrinkage` of each view, estimated from all rows."""
    return {
        name: ledoit_wolf_shrinkage(
            block, None if weights is None else weights[views.objects(name)]
        )
        for name, block in views.items()
    }


def ledoit_wolf_shrinkage(X: Any, weights: np.ndarray | None = None) -> Shrinkage:
    """Estimate how far to shrink the covariance of dense, sparse or weighted rows."""
    # With C = 1/n Σ_i x_i x_iᵀ of centred rows and μ its mean diagonal, (1 - s) C + s μ I is
    # closest to the true covariance for s = min(β, δ) / δ, where δ = ‖C - μ I‖² and
    # β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² (Ledoit and Wolf, "A well-conditioned estimator for
    # large-dimensional covariance matrices", Journal of Multivariate Analysis 2004).
    n_rows, n_features = X.shape
    w = np.ones(n_rows) if weights is None else weights
    total = w.sum()
    if n_rows < n_features:  # ‖XᵀX‖ = ‖XXᵀ‖, and the latter is smaller
        centred = as_block(X).dense().matrix.astype(np.float64)
        centred -= np.average(centred, axis=0, weights=w)
        squared_norms = (centred**2).sum(axis=1)
        centred *= np.sqrt(w)[:, None]
        scatter = centred @ centred.T
    else:
        moments = Moments.of(Views({"": X}), weights)
        squared_norms, scatter = as_block(X).squared_norms(moments.means[0]), moments.scatter
    trace = np.trace(scatter)
    if not 0 < trace < np.inf:
        return Shrinkage(0)  # whitening will say what is wrong with this view
    # Fourth powers follow, which must not overflow.
    scatter, squared_norms = scatter / trace, squared_norms / trace * total
    frobenius = np.sum(scatter**2)
    distance = frobenius - 1 / n_features
    if distance <= 0:  # one feature, or all alike: there is nothing to shrink
        return Shrinkage(0)
    noise = (np.sum(w * squared_norms**2) / total - frobenius) / total
    return Shrinkage(np.clip(noise / distance, 0, 1))
