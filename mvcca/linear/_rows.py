"""What is asked of all rows and labels at once by methods that no sum of blocks is enough for."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mvcca._backend import at_home
from mvcca.labels import LabelTable
from mvcca.linear._estimator import check_distinct, check_variance


def mean_and_variance(name: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of the columns of a view, in float64; a variance that is rounding of a constant is 0."""
    X = X.astype(np.float64)
    if issparse(X):
        mean, variance = mean_variance_axis(X, axis=0)
    else:
        mean, variance = X.mean(axis=0), X.var(axis=0)
    rounding = X.shape[0] * np.finfo(float).eps * np.abs(mean)
    variance = np.where(variance <= rounding**2, 0, variance)
    check_variance(name, variance)
    return mean, variance


def check_labels(table: LabelTable, codes: Mapping[str, np.ndarray]) -> None:
    """Labels that are all the same teach nothing; rows without labels deserve a word."""
    check_distinct(table)
    if not table.is_binary:
        return
    empty = np.diff(table.vectors.indptr) == 0
    n_empty = sum(int(empty[code].sum()) for code in codes.values())
    if n_empty:
        warnings.warn(
            f"{n_empty} rows have no labels; drop them if that is not meant.",
            UserWarning,
            stacklevel=4,
        )


def weighted_cross(X: Any, F: Any, Y: Any, mean_x: np.ndarray, mean_y: np.ndarray) -> np.ndarray:
    """Σ_ij F_ij (x_i - mean_x)(y_j - mean_y)ᵀ: dense rows are centred, sparse ones by algebra."""
    X, Y = at_home(X), at_home(Y)
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
