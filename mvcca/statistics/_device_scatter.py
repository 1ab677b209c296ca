"""Means and centred scatter of device blocks: `_dense_scatter` of moments, in the array API.

Rows are cut into pieces, which are centred and multiplied together in the precision of the rows,
as one stack; what is added up over pieces is added up in float64, and comes home.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca._backend import namespace, placed, precision, to_host

_PIECE_ROWS = 4096  # few enough for sums in float32, and enough to keep a device at work
_ROUNDING = 32  # units in the last place


@dataclass(frozen=True, eq=False)
class _Centres:
    """What was subtracted from each piece of rows, (P, d), and the mean that rounding left."""

    shifts: np.ndarray
    residues: np.ndarray

    @property
    def means(self) -> np.ndarray:
        return self.shifts + self.residues


def device_scatter(
    A: Any, B: Any, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of A (d_a,) and of B (d_b,), and Σ_i w_i (a_i - mean_a)(b_i - mean_b)ᵀ, at home.

    A and B are device blocks of the same device and of as many rows, or the same one.
    """
    n_rows, height = A.shape[0], max(_PIECE_ROWS, A.shape[1], B.shape[1])
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
    return _merged(np.concatenate(totals), _joined(left), _joined(right), scatter, A is B,
                   float(np.finfo(precision(A)).eps))  # fmt: skip


def _centred(X: Any, w: np.ndarray | None, size: int) -> tuple[_Centres, Any]:
    """Rows in pieces of one size, less their (weighted) mean, (P, size, d); and these means."""
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
    centres = (to_host(part).astype(np.float64) for part in (shifts[:, 0, :], residues))
    return _Centres(*centres), centred


def _joined(parts: list[_Centres]) -> _Centres:
    return _Centres(
        np.concatenate([part.shifts for part in parts]),
        np.concatenate([part.residues for part in parts]),
    )


def _merged(
    totals: np.ndarray, a: _Centres, b: _Centres, scatter: np.ndarray, is_own: bool, eps: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scatter of all pieces about their common mean, out of the sum of scatters about shifts."""
    total = totals.sum() or 1.0
    mean_a, mean_b = totals @ a.means / total, totals @ b.means / total
    weights = totals[:, None]
    scatter += (weights * (a.means - mean_a)).T @ (b.means - mean_b)
    scatter -= (weights * a.residues).T @ b.residues
    if is_own:  # a column whose scatter is what rounding of its mean left is constant
        constant = np.diag(scatter) <= _ROUNDING * eps * (totals @ a.residues**2)
        scatter[constant] = scatter[:, constant] = 0
    return mean_a, mean_b, scatter
