"""Canonical sparse matrices: one stored entry per position."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse


def canonical(matrix: Any) -> Any:
    """CSR with sorted indices and duplicate entries summed; dense matrices pass unchanged.

    SciPy allows several entries at one position and defines the value as their sum. Operations on
    stored entries, such as squares or kernels, need that sum. A matrix that is not canonical is
    copied, so the caller's arrays never change.
    """
    if not issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    if rows.has_canonical_format:
        return rows
    rows = rows.copy() if rows is matrix else rows
    rows.sum_duplicates()
    return rows


def rows_without_entries(matrix: Any) -> np.ndarray:
    """Which rows of a sparse matrix hold zeros only, (n_rows,)."""
    if matrix.format == "csr" and matrix.data.all():
        return np.diff(matrix.indptr) == 0
    is_empty = np.ones(matrix.shape[0], dtype=bool)
    is_empty[matrix.nonzero()[0]] = False  # which leaves out stored zeros
    return is_empty


def own_csr(matrix: Any, dtype: Any = None) -> csr_array:
    """A canonical copy without stored zeros, which may be modified in place."""
    rows = csr_array(canonical(matrix), dtype=dtype, copy=True)
    rows.eliminate_zeros()
    return rows
