"""Sparse matrices as every formula of the package expects them: one stored entry per position."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array, issparse


def canonical(matrix: Any) -> Any:
    """CSR with sorted indices and repeated entries added up; dense matrices pass unchanged.

    SciPy allows several entries at one position, whose value is their sum. Whatever looks at stored
    entries one by one, such as squares or a kernel, would see them apart. The caller's arrays are
    never changed: a matrix that is not canonical is copied.
    """
    if not issparse(matrix):
        return matrix
    rows = matrix.tocsr()
    if rows.has_canonical_format:
        return rows
    rows = rows.copy() if rows is matrix else rows
    rows.sum_duplicates()
    return rows


def own_csr(matrix: Any, dtype: Any = None) -> csr_array:
    """A canonical copy without stored zeros, free to be changed in place."""
    rows = csr_array(canonical(matrix), dtype=dtype, copy=True)
    rows.eliminate_zeros()
    return rows
