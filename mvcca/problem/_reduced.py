"""The few directions of a wide view in which a problem of low rank is solved.

If all A_pq of A w = ρ (Σ + r I) w are made of a few combinations T of the centred rows, as
X̄_pᵀT_p G T_qᵀX̄_q are, solutions lie in the span of (Σ + r I)⁻¹X̄ᵀT. A Cholesky factorization
finds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.problem._bases import Basis, Explicit
from mvcca.problem._centred_rows import CentredRows
from mvcca.problem.linalg import ridge_in

_COLUMNS = 1024  # of a Gram matrix, computed at a time


@dataclass(frozen=True, eq=False)
class Reduced(Explicit):
    """Orthonormal basis of part of what the rows span, with what it leaves out of the constraint.

    Attributes
    ----------
    rank : int
        Rank of the covariance Σ of the rows.
    freedom : float
        Degrees of freedom, tr Σ (Σ + r I)⁻¹.
    """

    rank: int = 0
    freedom: float = 0.0

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        assert self.known is not None
        return self.known


def reduced(
    X: Any, weights: np.ndarray | None, *, combinations: np.ndarray, reg: float
) -> tuple[Basis, np.ndarray]:
    """Basis of (Σ + r I)⁻¹X̄ᵀT for `combinations` T of the centred rows, and the rows in it.

    The ridge `reg` is in mean variances unless it is `Absolute`. It takes a matrix over the rows or
    over the features, whichever are fewer.
    """
    rows = CentredRows.of(as_block(X), weights)
    n_rows, n_features = X.shape
    ridge = ridge_in(reg, rows.variances.mean())
    T = combinations if weights is None else np.sqrt(weights)[:, None] * combinations
    if n_rows <= n_features:
        factor = _cholesky(_gram(rows), ridge)
        directions = rows.backward(linalg.cho_solve((factor, True), T, check_finite=False))
    else:
        factor = _cholesky(_covariance(rows), ridge)
        directions = linalg.cho_solve((factor, True), rows.backward(T), check_finite=False)
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    freedom = len(factor) - ridge * float(np.einsum("ij,ij->", inverse, inverse))
    directions /= np.maximum(np.linalg.norm(directions, axis=0), np.finfo(float).tiny)
    Q = linalg.orth(directions)
    rank = min(n_rows - 1, int(np.count_nonzero(rows.variances)))
    basis = Reduced(rows.mean, Q, Q.T, rows.variances, rank=rank, freedom=freedom)
    return basis, CentredRows.about(as_block(X), rows.mean).forward(Q)


def _cholesky(matrix: np.ndarray, ridge: float) -> np.ndarray:
    """Lower factor of a matrix plus a ridge, in its place."""
    matrix[np.diag_indices_from(matrix)] += ridge
    return linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)


def _gram(rows: CentredRows) -> np.ndarray:
    """X̄X̄ᵀ."""
    gram = np.empty((rows.n_rows, rows.n_rows), order="F")
    for columns, identity in _identity(rows.n_rows):
        gram[:, columns] = rows.forward(rows.backward(identity))
    return gram


def _covariance(rows: CentredRows) -> np.ndarray:
    """X̄ᵀX̄."""
    covariance = np.empty((rows.n_features, rows.n_features), order="F")
    for columns, identity in _identity(rows.n_features):
        covariance[:, columns] = rows.backward(rows.forward(identity))
    return covariance


def _identity(n: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Columns of an identity matrix, some at a time, and where they are."""
    for start in range(0, n, _COLUMNS):
        columns = slice(start, min(start + _COLUMNS, n))
        identity = np.zeros((n, columns.stop - start))
        identity[np.arange(start, columns.stop), np.arange(columns.stop - start)] = 1
        yield columns, identity
