"""Hashes of rows by their numbers: equal rows have equal hashes, dense or sparse, in any order."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

__all__ = ["hashes_of_dense", "hashes_of_sparse", "scrambled"]

_BLOCK = 2**20  # entries that are hashed at a time
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # those of SplitMix64


def hashes_of_dense(X: np.ndarray) -> np.ndarray:
    """Two independent hashes of each row, (n_rows, 2) of uint64; 0 for a row of zeros."""
    keys = _keys(X.shape[1])
    step = max(1, _BLOCK // max(1, X.shape[1]))
    parts = [_bits(X[i : i + step]) @ keys for i in range(0, len(X), step)]
    return np.concatenate([np.empty((0, 2), dtype=np.uint64), *parts])


def hashes_of_sparse(X: csr_array) -> np.ndarray:
    """`hashes_of_dense` of canonical CSR rows; entries of zero contribute nothing."""
    products = _bits(X.data)[:, None] * _keys(X.shape[1])[X.indices]
    hashes = np.zeros((X.shape[0], 2), dtype=np.uint64)
    filled = np.flatnonzero(np.diff(X.indptr))
    if len(filled):
        hashes[filled] = np.add.reduceat(products, X.indptr[filled], axis=0)
    return hashes


def scrambled(bits: np.ndarray) -> np.ndarray:
    """Apply the finalizer of SplitMix64, by which each bit depends on all others; 0 stays 0."""
    for shift, factor in _MULTIPLIERS:
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))


def _keys(n_columns: int) -> np.ndarray:
    """Two random odd factors for each column; a hash is a sum of products modulo 2^64."""
    rng = np.random.default_rng(0)
    return rng.integers(2**63, size=(n_columns, 2), dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def _bits(values: np.ndarray) -> np.ndarray:
    """Scrambled bits of numbers."""
    if values.dtype.kind == "f":
        bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    else:
        bits = values.astype(np.int64).view(np.uint64)
    return scrambled(bits)
