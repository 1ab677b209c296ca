"""Statistics that need all rows in memory: column variances, and sums over weighted pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block, to_dense
from mvcca.problem import check_variance


def mean_and_variance(name: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every column, in float64; a variance that is only rounding is 0."""
    mean, variance = as_block(X).mean_and_variance()
    rounding = X.shape[0] * np.finfo(float).eps * np.abs(mean)
    variance = np.where(variance <= rounding**2, 0, variance)
    check_variance(name, variance)
    return mean, variance


def weighted_cross(X: Any, F: Any, Y: Any, mean_x: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """Σ_ij F_ij (x_i - mean_x)(y_j - mean_y)ᵀ: dense rows are centred, sparse ones by algebra."""
    (A, mean_x), (B, mean_y) = as_block(X).centred(mean_x), as_block(Y).centred(mean_y)
    X, Y = A.matrix, B.matrix
    product = to_dense((F.T @ X).T @ Y if X.shape[1] <= Y.shape[1] else X.T @ (F @ Y))
    from_x, from_y = X.T @ F.sum(axis=1), Y.T @ F.sum(axis=0)
    return (
        product
        - np.outer(from_x, mean_y)
        - np.outer(mean_x, from_y)
        + F.sum() * np.outer(mean_x, mean_y)
    )
