"""Hashes of rows by their numbers: equal rows have equal hashes, dense or sparse, in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.sparse import canonical

__all__ = ["row_hashes", "scrambled"]

_BLOCK = 2**20  # entries that are hashed at a time
_MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # those of SplitMix64


def row_hashes(block: Any) -> np.ndarray:
    """Hash every row of a matrix of numbers.

    Parameters
    ----------
    block : ndarray or sparse matrix, shape (n_rows, n_columns)

    Returns
    -------
    ndarray of uint64, shape (n_rows, 2)
        Two independent hashes of each row; 0 for a row of zeros.
    """
    keys = _keys(block.shape[1])
    if issparse(block):  # entries of zero contribute nothing
        rows = canonical(block)
        products = _bits(rows.data)[:, None] * keys[rows.indices]
        hashes = np.zeros((rows.shape[0], 2), dtype=np.uint64)
        filled = np.flatnonzero(np.diff(rows.indptr))
        if len(filled):
            hashes[filled] = np.add.reduceat(products, rows.indptr[filled], axis=0)
        return hashes
    step = max(1, _BLOCK // max(1, block.shape[1]))
    parts = [_bits(block[i : i + step]) @ keys for i in range(0, len(block), step)]
    return np.concatenate([np.empty((0, 2), dtype=np.uint64), *parts])


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
