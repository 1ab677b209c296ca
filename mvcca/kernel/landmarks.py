"""Landmarks among the rows: pivots of a Cholesky decomposition, and Nyström features with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block, in_memory
from mvcca.kernel.kernels import Kernel
from mvcca.linear.features import ROUNDING, LandmarkFeatures, about
from mvcca.machine.config import block_size


def features_at(kernel: Kernel, X: Any, rows: np.ndarray) -> LandmarkFeatures:
    """Features with some rows of X as landmarks, whose k must be positive semi-definite."""
    origin = origin_for(kernel, X)
    chosen = about(in_memory(X[rows]), origin)
    landmarks = rows if kernel.is_precomputed else chosen
    K = kernel(chosen, landmarks)
    if not np.isfinite(K).all():
        raise ValueError("The kernel is not finite on the training rows. Rescale them.")
    if np.abs(K - K.T).max() > 1e-6 * np.abs(K).max():
        raise ValueError("Expected a symmetric kernel, k(x, y) = k(y, x), got another.")
    return LandmarkFeatures.at(landmarks, kernel, K, X.shape[1], origin)


def greedy_landmarks(kernel: Kernel, X: Any, n_landmarks: int) -> np.ndarray:
    """Rows that an incomplete Cholesky decomposition of k(X, X) takes as pivots, in its order."""
    # Each is the row that those before it explain least (Bach and Jordan, "Kernel Independent
    # Component Analysis", JMLR 2002, section 4). Takes n_rows x n_landmarks numbers of memory and
    # as many values of the kernel.
    X = in_memory(X)
    if not kernel.is_precomputed:
        X = about(X, origin_for(kernel, X))
    residual = kernel.diagonal(X)
    least = ROUNDING * len(residual) * residual.max()
    factor = np.empty((X.shape[0], n_landmarks), order="F")
    pivots: list[int] = []
    for j in range(n_landmarks):
        pivot = int(residual.argmax())
        if residual[pivot] <= least:
            break
        column = kernel(X, [pivot] if kernel.is_precomputed else X[pivot : pivot + 1])
        column = column[:, 0] - factor[:, :j] @ factor[pivot, :j]
        factor[:, j] = column / np.sqrt(residual[pivot])
        residual = residual - factor[:, j] ** 2
        residual[pivot] = 0  # never twice, whatever rounding leaves
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp)


def origin_for(kernel: Kernel, X: Any) -> np.ndarray | None:
    """A shift of the rows that improves precision: about the mean of dense rows.

    Sparse rows are shifted in nearly full columns only, to keep their zeros.
    """
    if not kernel.sees_only_differences:
        return None
    rows = as_block(X)
    if rows.is_lazy or rows.on_device:  # some of them will do
        rows = rows.take(slice(block_size(8 * X.shape[1])))
    origin = rows.origin()
    return origin if origin.any() else None
