"""What JRL and CMOLRS ask of rows and labels, which moments would have told the other methods."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from mvcca.labels import LabelTable
from mvcca.linear._estimator import check_variance


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
    if len(table) < 2:
        raise ValueError(
            "All rows have the same labels, so that labels tell nothing apart. Expected at least "
            "two distinct classes or label sets in y."
        )
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
