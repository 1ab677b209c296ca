"""The few directions of a wide view in which a problem of low rank is solved.

If all A_pq of A w = ρ (Σ + r I) w are made of a few combinations T of the centred rows, as
X̄_pᵀT_p G T_qᵀX̄_q are, solutions lie in the span of (Σ + r I)⁻¹X̄ᵀT. A Cholesky factorization
finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.problem._bases import Basis, Explicit
from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.ridge import ridge_in
from mvcca.statistics.digits_lost import DigitsLost

_COLUMNS = 1024  # of a matrix, computed at a time
_LEAST_RIDGE = 1e-6  # in mean variances, which leaves a Cholesky factorization its digits


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

    Raises
    ------
    DigitsLost
        If the ridge is too small for this matrix, or the rows do not vary.
    """
    rows = CentredRows.of(as_block(X), weights)
    n_rows, n_features = X.shape
    unit = rows.variances.mean()
    ridge = ridge_in(reg, unit)
    if not ridge > _LEAST_RIDGE * unit:
        raise DigitsLost(())
    T = combinations if weights is None else np.sqrt(weights)[:, None] * combinations
    if n_rows <= n_features:
        factor = _cholesky(lambda V: rows.forward(rows.backward(V)), n_rows, ridge)
        directions = rows.backward(linalg.cho_solve((factor, True), T, check_finite=False))
    else:
        factor = _cholesky(lambda V: rows.backward(rows.forward(V)), n_features, ridge)
        directions = linalg.cho_solve((factor, True), rows.backward(T), check_finite=False)
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    freedom = len(factor) - ridge * float(np.einsum("ij,ij->", inverse, inverse))
    directions /= np.maximum(np.linalg.norm(directions, axis=0), np.finfo(float).tiny)
    Q = linalg.orth(directions)
    rank = min(n_rows - 1, int(np.count_nonzero(rows.variances)))
    basis = Reduced(rows.mean, Q, Q.T, rows.variances, rank=rank, freedom=freedom)
    return basis, CentredRows.about(as_block(X), rows.mean).forward(Q)


def _cholesky(product: Callable[[np.ndarray], np.ndarray], size: int, ridge: float) -> np.ndarray:
    """Lower factor of a matrix of which products are taken, plus a ridge."""
    matrix = np.empty((size, size), order="F")
    for start in range(0, size, _COLUMNS):
        columns = np.arange(start, min(start + _COLUMNS, size))
        identity = np.zeros((size, len(columns)))
        identity[columns, columns - start] = 1
        matrix[:, columns] = product(identity)
    matrix[np.diag_indices(size)] += ridge
    return linalg.cholesky(matrix, lower=True, overwrite_a=True, check_finite=False)
