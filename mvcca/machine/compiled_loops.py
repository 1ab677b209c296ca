"""Compiled loops over label vectors and rows, each tested against the same formula in NumPy.

They are serial and release the GIL. Importing this module loads numba, so it is imported inside
the functions that need it.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from mvcca.machine.jit import jit

_WORD = 64  # label bits in a machine word


def pack_label_sets(vectors: csr_array) -> np.ndarray:
    """Indicators (n, n_labels) as bits in uint64 words, of shape (n_labels / 64, n)."""
    n, n_labels = vectors.shape
    packed = np.zeros((max(1, -(-n_labels // _WORD)), n), dtype=np.uint64)
    rows = np.repeat(np.arange(n), np.diff(vectors.indptr))
    bits = np.uint64(1) << (vectors.indices % _WORD).astype(np.uint64)
    np.bitwise_or.at(packed, (vectors.indices // _WORD, rows), bits)
    return packed


@jit
def fill_by_difference(A, B, table, out):
    """out[i, j] = table[number of labels in which the packed sets A[:, i] and B[:, j] differ]."""
    pairs = np.uint64(0x5555555555555555)
    fours = np.uint64(0x3333333333333333)
    bytes_ = np.uint64(0x0F0F0F0F0F0F0F0F)
    ones = np.uint64(0x0101010101010101)
    counts = np.empty(B.shape[1], np.int64)
    for i in range(A.shape[1]):
        counts[:] = 0
        for word in range(A.shape[0]):  # outermost, so that the loop over j vectorises
            a = A[word, i]
            for j in range(B.shape[1]):
                bits = a ^ B[word, j]
                bits -= (bits >> np.uint64(1)) & pairs
                bits = (bits & fours) + ((bits >> np.uint64(2)) & fours)
                bits = (bits + (bits >> np.uint64(4))) & bytes_
                counts[j] += np.int64((bits * ones) >> np.uint64(56))
        for j in range(B.shape[1]):
            out[i, j] = table[counts[j]]


@jit
def inner_products_to_exponents(out, half_norms_a, half_norms_b, scale):
    """Replace inner products aᵀb in place by -scale ‖a - b‖² / 2, at most 0."""
    zero = out.dtype.type(0)
    scale = out.dtype.type(scale)
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            half_distance = half_norms_a[i] + half_norms_b[j] - out[i, j]
            out[i, j] = -scale * max(half_distance, zero)


@jit
def add_rows_by_code(X, codes, row_weights, sums):
    """sums[codes[i]] += row_weights[i] X[i] for every row i."""
    for i in range(X.shape[0]):
        code = codes[i]
        weight = row_weights[i]
        for j in range(X.shape[1]):
            sums[code, j] += weight * X[i, j]


@jit
def add_upper_products(starts, rows, indptr, indices, data, products):
    """products[i, j] += Σ_r x_ri x_rj for i <= j, of sparse rows with sorted indices.

    `starts` and `rows` list the rows in which each column is stored. Columns are taken in order, so
    that the entries of a row from its next column on are those that are still to be multiplied.
    """
    following = indptr[:-1].copy()
    for i in range(len(starts) - 1):
        sums = products[i]
        for place in range(starts[i], starts[i + 1]):
            r = rows[place]
            first = following[r]
            following[r] = first + 1
            x, columns, values = data[first], indices[first : indptr[r + 1]], data[first:]
            for q in range(len(columns)):
                sums[columns[q]] += x * values[q]
