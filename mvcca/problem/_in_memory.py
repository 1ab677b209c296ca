"""Statistics that need all rows in memory: column variances, and sums over weighted pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mvcca.blocks.array_api import to_host
from mvcca.problem._rows import check_variance
from mvcca.statistics import shifted


def mean_and_variance(name: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every column, in float64; a variance that is only rounding is 0."""
    X = X.astype(np.float64)
    if issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0), X.var(axis=0)
    rounding = X.shape[0] * np.finfo(float).eps * np.abs(mean)
    variance = np.where(variance <= rounding**2, 0, variance)
    check_variance(name, variance)
    return mean, variance


def weighted_cross(X: Any, F: Any, Y: Any, mean_x: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """Σ_ij F_ij (x_i - mean_x)(y_j - mean_y)ᵀ: dense rows are centred, sparse ones by algebra."""
    (X, shift_x), (Y, shift_y) = shifted(to_host(X)), shifted(to_host(Y))
    mean_x, mean_y = mean_x - shift_x, mean_y - shift_y
    if not issparse(X):
        X, mean_x = X - mean_x, np.zeros_like(mean_x)
    if not issparse(Y):
        Y, mean_y = Y - mean_y, np.zeros_like(mean_y)
    product = (F.T @ X).T @ Y if X.shape[1] <= Y.shape[1] else X.T @ (F @ Y)
    product = product.toarray() if hasattr(product, "toarray") else np.asarray(product)
    from_x, from_y = X.T @ F.sum(axis=1), Y.T @ F.sum(axis=0)
    return (
        product
        - np.outer(from_x, mean_y)
        - np.outer(mean_x, from_y)
        + F.sum() * np.outer(mean_x, mean_y)
    )
