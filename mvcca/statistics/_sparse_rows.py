"""Shift sparse rows so that centring them by algebra loses no digits.

AᵀB - n m_a m_bᵀ cancels if a column's mean is large compared with its deviation. With a share f of
entries stored, m² / variance ≤ f / (1 - f), so that only nearly full columns can lose digits. These
are shifted, including their zeros, which adds few entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

_NEARLY_FULL = 0.9  # of all entries; below, m² is less than 9 variances


def shift_of(X: csr_array) -> np.ndarray:
    """Mean of the stored entries of nearly full columns, and 0 for all others, (d,)."""
    n_rows, n_features = X.shape
    stored = np.bincount(X.indices, minlength=n_features)
    full = stored > _NEARLY_FULL * n_rows
    if not full.any():
        return np.zeros(n_features)
    totals = np.bincount(X.indices, weights=X.data, minlength=n_features)  # in float64
    return np.where(full, totals / np.maximum(stored, 1), 0)


def moved(X: csr_array, shift: np.ndarray) -> csr_array:
    """X - 1 shiftᵀ in float64; shifted columns become full."""
    X = X.astype(np.float64)  # SciPy sums float32 rows in float32, even with dtype=float64
    if not shift.any():
        return X
    return csr_array(X - csr_array(np.ones((X.shape[0], 1))) @ csr_array(shift[None]))


def shifted(X: Any) -> tuple[Any, np.ndarray]:
    """Sparse rows in float64 with nearly full columns shifted to 0, and the shift.

    Dense rows are returned unchanged.
    """
    if not issparse(X):
        return X, np.zeros(X.shape[1])
    shift = shift_of(X)
    return moved(X, shift), shift
