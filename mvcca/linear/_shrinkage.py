"""Ledoit and Wolf's shrinkage of a covariance, for dense, sparse and weighted rows.

scikit-learn has the estimate for dense, unweighted rows; it is the oracle of the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import to_host
from mvcca.config import block_slices
from mvcca.statistics import Moments, shifted
from mvcca.views import Views, in_memory, take_rows


class Shrinkage(float):
    """A share s in [0, 1]: a matrix C with mean diagonal μ becomes (1 - s) C + s μ I.

    It stands where a plain number r would make C + r μ I.
    """


def ledoit_wolf_shrinkage(X: Any, weights: np.ndarray | None = None) -> Shrinkage:
    """Estimate how far to shrink the covariance of rows, as Ledoit and Wolf do.

    With C = 1/n Σ_i x_i x_iᵀ of centred rows and μ its mean diagonal, (1 - s) C + s μ I is closest
    to the true covariance for s = min(β, δ) / δ, where δ = ‖C - μ I‖² and
    β = 1/n² Σ_i ‖x_i x_iᵀ - C‖² [1]_.

    References
    ----------
    .. [1] Ledoit and Wolf, "A well-conditioned estimator for large-dimensional covariance
       matrices", Journal of Multivariate Analysis 2004.
    """
    n_rows, n_features = X.shape
    w = np.ones(n_rows) if weights is None else weights
    total = w.sum()
    if n_rows < n_features:  # ‖XᵀX‖ = ‖XXᵀ‖, and the latter is smaller
        centred = (X.toarray() if issparse(X) else to_host(X)).astype(np.float64)
        centred -= np.average(centred, axis=0, weights=w)
        squared_norms = (centred**2).sum(axis=1)
        centred *= np.sqrt(w)[:, None]
        scatter = centred @ centred.T
    else:
        moments = Moments.of(Views({"": X}), weights)
        squared_norms, scatter = _squared_norms(X, moments.means[0]), moments.scatter
    trace = np.trace(scatter)
    if not 0 < trace < np.inf:
        return Shrinkage(0)  # whitening will say what is wrong with this view
    scatter, squared_norms = scatter / trace, squared_norms / trace * total  # fourth powers follow
    frobenius = np.sum(scatter**2)
    distance = frobenius - 1 / n_features
    if distance <= 0:  # one feature, or all alike: there is nothing to shrink
        return Shrinkage(0)
    noise = (np.sum(w * squared_norms**2) / total - frobenius) / total
    return Shrinkage(np.clip(noise / distance, 0, 1))


def _squared_norms(X: Any, mean: np.ndarray) -> np.ndarray:
    """‖x - mean‖² of every row, block by block; sparse rows by expansion."""
    norms = np.empty(X.shape[0])
    for rows in block_slices(X.shape[0], 8 * X.shape[1]):
        block, shift = shifted(to_host(in_memory(take_rows(X, rows))))
        if issparse(block):
            squares, left = np.asarray(block.multiply(block).sum(axis=1)), mean - shift
            norms[rows] = squares.reshape(-1) - 2 * (block @ left) + left @ left
        else:
            norms[rows] = ((block - mean) ** 2).sum(axis=1)
    return norms
