"""Means and centred scatter of a block of rows: dense or sparse, on the host or on a device.

Dense rows are cut into pieces. Each piece is centred by a shift s near its mean m, and multiplied;
with r = m - s,

    Σ w (a - mean_a)(b - mean_b)ᵀ = Σ_pieces [Σ w (a - s_a)(b - s_b)ᵀ - w r_a r_bᵀ
                                              + w (m_a - mean_a)(m_b - mean_b)ᵀ].

Products are in the precision of the rows, and sums over pieces in float64. Sparse rows are centred
by algebra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from threading import local
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import in_one_place, namespace, placed, precision, promoted, to_host
from mvcca._threads import one_by_one

_ROUNDING = 32  # units in the last place
_STACKED_ROWS = 4096  # of a piece: few enough for float32 sums, enough to occupy a device

_SAMPLE_STEP = 16  # every 16th row of a piece estimates its mean
_FAR = 0.5  # share of the sum of squares due to the shift, above which the exact mean is used

_PIECE_BYTES = 8 * 2**20  # of rows, centred and multiplied by one thread while they are in cache
_PIECE_ROWS = 2**14  # at most, since their sums are in the precision of the rows
_STRIP_BYTES = 2**16  # temporaries of a product of few rows; small ones need no system call
_STRIP_ROWS = 16  # at least


@dataclass(frozen=True, eq=False)
class _Centers:
    """Shift of each piece, (P, d), and the mean that it left, (P, d)."""

    shifts: np.ndarray
    residues: np.ndarray

    @property
    def means(self) -> np.ndarray:
        return self.shifts + self.residues


def paired_scatter(
    blocks: Sequence[Any], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and scatter (D, D) of dense blocks of the same objects, side by side."""
    on_device = in_one_place(blocks)
    if on_device is None:
        return _scatter_of_pieces(blocks, weights, np.result_type(dtype, *blocks))
    blocks = [promoted(block, dtype) for block in on_device]
    X = blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks, axis=1)
    mean, _, scatter = _stacked_scatter(X, X, weights)
    return mean, scatter


def pair_scatter(
    A: Any, B: Any, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (d_a,) and (d_b,), and scatter (d_a, d_b), of the same rows of two matrices."""
    if not (issparse(A) or issparse(B)):
        own, wide = A is B, np.dtype(np.float64)
        A, B = in_one_place([A, B]) or (promoted(A, wide), promoted(B, wide))
        return _stacked_scatter(A, A if own else B, weights)
    A, B = to_host(A), to_host(B)
    if issparse(B) and not issparse(A):
        mean_b, mean_a, scatter = pair_scatter(B, A, weights)
        return mean_a, mean_b, scatter.T
    mean_a, mean_b = _mean(A, weights), _mean(B, weights)
    if issparse(B):
        total = A.shape[0] if weights is None else weights.sum()
        weighted = A if weights is None else A.multiply(weights[:, None]).tocsr()
        scatter = np.asarray((weighted.T @ B).toarray())
        return mean_a, mean_b, scatter - np.outer(total * mean_a, mean_b)
    centred = B - mean_b
    if weights is not None:
        centred = centred * weights[:, None]
    return mean_a, mean_b, np.asarray(A.T @ centred)  # Σ (a - m) bᵀ = Σ a bᵀ, as b is centred


def add_product(scatter: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Add Aᵀ B of a few rows to scatter in place, in strips, to keep temporaries small."""
    height = max(_STRIP_ROWS, _STRIP_BYTES // (8 * scatter.shape[1]))
    for start in range(0, len(scatter), height):
        rows = slice(start, start + height)
        scatter[rows] += A[:, rows].T.dot(B)  # faster than @ for a single row


# ---- any two dense matrices, pieces stacked: operators of the array API --------------------------


def _stacked_scatter(
    A: Any, B: Any, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `pair_scatter`, of dense matrices on the same device or on the host."""
    n_rows, height = A.shape[0], max(_STACKED_ROWS, A.shape[1], B.shape[1])
    whole = n_rows // height * height
    scatter = np.zeros((A.shape[1], B.shape[1]))
    totals, left, right = [], [], []
    for start, stop, size in ((0, whole, height), (whole, n_rows, n_rows - whole)):
        if start == stop:
            continue
        w = None if weights is None else weights[start:stop].reshape(-1, size)
        a, centred_a = _centred(A[start:stop, :], w, size)
        b, centred_b = (a, centred_a) if A is B else _centred(B[start:stop, :], w, size)
        if w is not None:
            centred_b = centred_b * placed(w, A)[..., None]
        xp = namespace(A)
        products = xp.matmul(xp.matrix_transpose(centred_a), centred_b)
        scatter += to_host(xp.sum(products, axis=0, dtype=xp.float64))
        totals.append(np.full((stop - start) // size, float(size)) if w is None else w.sum(axis=1))
        left.append(a)
        right.append(b)
    if not totals:
        return np.zeros(A.shape[1]), np.zeros(B.shape[1]), scatter
    a, b = _joined(left), _joined(right)
    eps = np.finfo(precision(A)).eps
    means = _merge(scatter, np.concatenate(totals), a, a if A is B else b, eps)
    return *means, scatter


def _centred(X: Any, w: np.ndarray | None, size: int) -> tuple[_Centers, Any]:
    """Pieces of `size` rows less their (weighted) mean, (P, size, d), and what was subtracted."""
    xp = namespace(X)
    pieces = xp.reshape(X, (X.shape[0] // size, size, X.shape[1]))
    shifts = xp.astype(xp.sum(pieces, axis=1, keepdims=True, dtype=xp.float64) / size, X.dtype)
    if w is None:
        centred = pieces - shifts
        residues = xp.mean(centred, axis=1)
    else:
        totals = w.sum(axis=1, keepdims=True)
        share = placed(w / np.where(totals > 0, totals, 1), X)[:, None, :]
        shifts = shifts + xp.matmul(share, pieces - shifts)
        centred = pieces - shifts
        residues = xp.matmul(share, centred)[:, 0, :]
    centers = (to_host(part).astype(np.float64) for part in (shifts[:, 0, :], residues))
    return _Centers(*centers), centred


def _joined(parts: list[_Centers]) -> _Centers:
    return _Centers(
        np.concatenate([part.shifts for part in parts]),
        np.concatenate([part.residues for part in parts]),
    )


def _merge(
    scatter: np.ndarray, totals: np.ndarray, a: _Centers, b: _Centers, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Turn the sum of scatters about shifts into scatter about the means, in place; the means."""
    share = _share(totals)
    mean_a, mean_b = share @ a.means, share @ b.means
    if len(totals) > 1:
        add_product(scatter, totals[:, None] * (a.means - mean_a), b.means - mean_b)
    left = totals @ a.residues**2
    if a is not b or np.any(left > eps * np.diag(scatter)):
        add_product(scatter, -totals[:, None] * a.residues, b.residues)
    if a is b:  # scatter as small as the rounding of the mean is that of a constant column
        constant = np.diag(scatter) <= _ROUNDING * eps * left
        scatter[constant] = scatter[:, constant] = 0
    return mean_a, mean_b


# ---- paired views on the host, pieces by several threads -----------------------------------------


def _scatter_of_pieces(
    blocks: Sequence[np.ndarray], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """As `paired_scatter`, of pieces that stay in the cache of the thread that multiplies them."""
    height, width = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    # A product of fewer rows costs less than adding it to the sum of all.
    n_rows = max(min(_PIECE_BYTES // (width * dtype.itemsize), _PIECE_ROWS), 2 * width)
    n_pieces = max(1, ceil(height / n_rows - 0.1))  # a remainder of a tenth joins other pieces
    edges = [height * number // n_pieces for number in range(n_pieces + 1)]
    pieces = [slice(start, stop) for start, stop in pairwise(edges)]
    w = np.ones(height, dtype=dtype) if weights is None else weights.astype(dtype)
    buffers = local()  # one per thread, reused for all of its pieces

    def multiplied(rows: slice, shifts: np.ndarray) -> tuple[np.ndarray, ...]:
        if not hasattr(buffers, "piece"):
            buffers.piece = np.empty((-(-height // n_pieces), width + 1), dtype)
        centred = buffers.piece[: rows.stop - rows.start]
        end = 0
        for block in blocks:
            start, end = end, end + block.shape[1]
            np.subtract(block[rows], shifts[start:end], out=centred[:, start:end])
        centred[:, -1] = 1
        if weights is not None:
            centred *= np.sqrt(w[rows])[:, None]
        product = centred.T @ centred
        residue = product[-1, :-1] / (product[-1, -1] or 1)  # mean of the shifted rows
        return shifts, residue, product[:-1, :-1]

    def piece(rows: slice) -> tuple[np.ndarray, ...]:
        # In any order of rows, the sample's mean is within √_SAMPLE_STEP deviations of the mean.
        some = slice(rows.start, rows.stop, _SAMPLE_STEP)
        share = _share(w[some])
        result = multiplied(rows, np.concatenate([share @ block[some] for block in blocks]))
        shifts, residue, product = result
        shifted, squares = w[rows].sum() * residue**2, np.diag(product)
        varies = squares - shifted > _ROUNDING * np.finfo(dtype).eps * shifted
        if np.any(varies & (shifted > _FAR * squares)):
            return multiplied(rows, shifts + residue)
        return result

    scatter, shifts, residues = np.zeros((width, width)), [], []
    for shift, residue, product in one_by_one(piece, pieces):
        shifts.append(shift)
        residues.append(residue)
        scatter += product
    totals = np.array([w[rows].sum(dtype=np.float64) for rows in pieces])
    centers = _Centers(np.array(shifts, dtype=np.float64), np.array(residues, dtype=np.float64))
    mean, _ = _merge(scatter, totals, centers, centers, np.finfo(dtype).eps)
    return mean, scatter


def _mean(X: Any, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:  # SciPy's mean of a sparse matrix divides before it adds
        return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1) / X.shape[0]
    return np.asarray(X.T @ _share(weights)).reshape(-1)


def _share(weights: np.ndarray) -> np.ndarray:
    """Weights that sum to one, or to zero if all are zero."""
    total = weights.sum(dtype=np.float64)
    return weights / weights.dtype.type(total) if total else weights
