"""Correlation of projected views, component by component."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mvcca.blocks.checks import as_vector, common_row_labels
from mvcca.measures.arrays import checked_matrix, same_shape, unit_rows


def column_correlations(
    X: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None = None
) -> np.ndarray:
    """Compute the Pearson correlation of each column of X with the same column of Y.

    Parameters
    ----------
    X, Y : array-like, shape (n_rows, n_components)
        Projected rows of two views, row i of both from the same object.
    sample_weight : array-like, shape (n_rows,), optional
        How often each row counts; at least 0.

    Returns
    -------
    ndarray, shape (n_components,)
        In [-1, 1]; 0 where a column is constant.

    Raises
    ------
    ValueError
        If shapes differ, fewer than two rows count, or a value is not finite.
    """
    common_row_labels({"X": X, "Y": Y, "sample_weight": sample_weight})  # raises if they differ
    X, Y = checked_matrix(X, "X"), checked_matrix(Y, "Y")
    same_shape(Y.shape, X.shape, "Y")
    weights = None
    if sample_weight is not None:
        weights = as_vector(sample_weight).astype(np.float64)
        if weights.shape != X.shape[:1] or not (weights >= 0).all():
            raise ValueError(
                f"Expected sample_weight of {len(X)} numbers of at least 0, got "
                f"{weights.shape} with the smallest {weights.min(initial=np.inf):g}."
            )
        kept = weights > 0
        X, Y, weights = X[kept], Y[kept], weights[kept]
    if len(X) < 2:
        raise ValueError(f"A correlation needs at least two rows, got {len(X)}.")
    X, Y = standard_columns(X, weights), standard_columns(Y, weights)
    return np.clip(np.einsum("ij,ij->j", X, Y), -1, 1)


def total_correlation(X: ArrayLike, Y: ArrayLike, absolute: bool = False) -> float:
    """Sum the correlations of projected views, Σ_i corr(X_i, Y_i), the measure of deep CCA [1]_.

    Project held-out rows with a fitted model. On the rows used to fit the model, the sum is
    optimistic.

    Parameters
    ----------
    X, Y : array-like, shape (n_rows, n_components)
        Projected rows of two views, row i of both from the same object.
    absolute : bool, default=False
        Add absolute values, as some implementations do; a correlation that changes its sign on
        held-out rows then increases the sum.

    Returns
    -------
    float
        At most n_components.

    Raises
    ------
    ValueError
        If shapes differ, there are fewer than two rows, or a value is not finite.

    References
    ----------
    .. [1] Andrew, Arora, Bilmes and Livescu, "Deep Canonical Correlation Analysis", ICML 2013.
    """
    correlations = column_correlations(X, Y)
    return float(np.sum(np.abs(correlations) if absolute else correlations))


def standard_columns(X: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Columns with mean 0 and length 1, times √weight; constant columns become 0."""
    X = X.astype(np.float64)
    constant = (X[0] == X).all(axis=0)  # their mean may be off by a rounding
    X = X - np.average(X, axis=0, weights=weights)
    X[:, constant] = 0
    if weights is not None:
        X *= np.sqrt(weights)[:, None]
    return unit_rows(X.T).T
