"""Rows about their mean, the lengths of their columns, and how much of these rounding may be."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.problem.whitener import rounding_of

_EPS = np.finfo(float).eps


def centred_rows(
    X: Any, weights: np.ndarray | None, center: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean of the rows, centred rows times √weight, and lengths of their columns, 0 if constant.

    Without `center`, 0 stands in place of the mean.
    """
    X = as_block(X).dense().matrix.astype(np.float64, copy=False)
    if not center:
        rows = X.copy() if weights is None else np.sqrt(weights)[:, None] * X
        return np.zeros(X.shape[1]), rows, np.sqrt(np.einsum("ij,ij->j", rows, rows))
    share = np.full(len(X), 1 / len(X)) if weights is None else weights / weights.sum()
    mean = np.einsum("i,ij->j", share, X)  # without BLAS, whose threads would spin afterwards
    centred = X - mean
    # X - mean is exact for a large mean, but the mean itself is rounded. The error is the same in
    # every row, and would look like one more direction if columns depend on each other.
    centred -= np.einsum("i,ij->j", share, centred)
    if weights is not None:
        centred *= np.sqrt(weights)[:, None]
    lengths = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    total = len(X) if weights is None else weights.sum()
    suspect = np.flatnonzero(lengths <= 2 * len(X) * _EPS * np.sqrt(total) * np.abs(mean))
    constant = (X[0, suspect] == X[:, suspect]).all(axis=0)
    # Rounding, scaled to unit length, would mix with directions of other columns.
    constant |= lengths[suspect] <= np.sqrt(total) * rounding_of(mean[suspect])
    constant = suspect[constant]
    centred[:, constant] = lengths[constant] = 0  # exactly, in place of the rounding of the mean
    return mean, centred, lengths


def rounding_of_rows(
    mean: np.ndarray, n_rows: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Length that rounding can give to columns of these rows, (d,)."""
    total = n_rows if weights is None else weights.sum()
    return np.asarray(np.sqrt(total) * rounding_of(mean))


def variances_of(
    lengths: np.ndarray, n_rows: int, weights: np.ndarray | None, center: bool = True
) -> np.ndarray:
    """Variances of columns of these lengths."""
    total = n_rows if weights is None else weights.sum()
    return lengths**2 / (total - 1 if center else total)  # see `Moments.about_zero`


def reciprocal(lengths: np.ndarray) -> np.ndarray:
    """1 / length, and 0 for columns of length 0."""
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
