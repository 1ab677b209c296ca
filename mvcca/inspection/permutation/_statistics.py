"""Test statistics of the cosines between orthonormal bases of views.

With bases U and V in the coordinates of canonical variates, permuted rows have C = U_πᵀV. What is
left of both views after i components is the trailing block C[i:, i:], whose singular values are
correlations r_j.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy import linalg

from mvcca.machine import lapack

STATISTICS = ("wilks", "roy", "pillai")


def stepwise(statistic: str, C: np.ndarray, n_steps: int) -> np.ndarray:
    """The statistic of each trailing block C[i:, i:], of shape (n_steps,)."""
    return _STEPWISE[statistic](C, n_steps)


def of_correlations(statistic: str, r: np.ndarray) -> np.ndarray:
    """The same of a diagonal C, shape (len(r),)."""
    if statistic == "roy":
        return r
    with np.errstate(divide="ignore"):
        terms = -np.log1p(-(r**2)) if statistic == "wilks" else r**2
    return np.cumsum(terms[::-1])[::-1]


def wilks(C: np.ndarray, n_steps: int) -> np.ndarray:
    """-ln Λ_i = -Σ_{j≥i} ln(1 - r_j²), of all trailing blocks from one Cholesky decomposition.

    Π (1 - r_j²) = det [[I, C], [Cᵀ, I]]. With surplus columns first, and then pairs (u_k, v_k) to
    (u_1, v_1), leading minors are the determinants of trailing blocks.
    """
    p, q = C.shape
    rows, columns, ends = _places(p, q)
    joint = np.eye(p + q, order="F")
    joint[rows, columns] = C
    joint[columns, rows] = C
    factor, failed = linalg.lapack.dpotrf(joint, lower=1, overwrite_a=1)
    if failed:  # a correlation is 1 but for rounding
        found = (of_correlations("wilks", _correlations(C[i:, i:]))[0] for i in range(n_steps))
        return np.fromiter(found, float)
    return -2 * np.cumsum(np.log(np.diag(factor)))[ends[:n_steps]]


def pillai(C: np.ndarray, n_steps: int) -> np.ndarray:
    """Σ_{j≥i} r_j² = ‖C[i:, i:]‖² (Frobenius)."""
    sums = np.cumsum(np.cumsum(C[::-1, ::-1] ** 2, axis=0), axis=1)[::-1, ::-1]
    return np.diag(sums)[:n_steps]


def roy(C: np.ndarray, n_steps: int) -> np.ndarray:
    """r_i = ‖C[i:, i:]‖ (spectral)."""
    return np.array([lapack.singular_values(C[i:, i:])[0] for i in range(n_steps)])


_STEPWISE: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "wilks": wilks,
    "pillai": pillai,
    "roy": roy,
}


@cache
def _places(p: int, q: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where u and v are in the joint matrix, and where the block of each step ends."""
    k, surplus = min(p, q), abs(p - q)
    pairs = surplus + 2 * np.arange(k)[::-1]
    rows, columns = (np.append(pairs + side, np.arange(n - k)) for side, n in enumerate((p, q)))
    return rows[:, None], columns[None], pairs + 1


def _correlations(C: np.ndarray) -> np.ndarray:
    return np.minimum(lapack.singular_values(C), 1)


def of_several_views(statistic: str, bases: list[np.ndarray], within: np.ndarray) -> float:
    """The statistic of the global null hypothesis that several views are independent.

    With R the matrix of blocks C_pq = U_pᵀU_q, and I on its diagonal: -ln det R (Wilks), Σ ‖C_pq‖²
    over pairs (Pillai), or λ_max(R) - 1 (Roy), where λ_max is the eigenvalue of MVCCA.

    Parameters
    ----------
    statistic : str
    bases : list of ndarray, shape (n_rows, r_p)
    within : ndarray of bool, shape (Σ r_p, Σ r_p)
        The blocks on the diagonal.
    """
    stacked = np.hstack(bases)
    R = np.where(within, np.eye(stacked.shape[1]), stacked.T @ stacked)
    if statistic == "pillai":
        return float((np.sum(R**2) - len(R)) / 2)
    if statistic == "roy":
        return float(lapack.top_eigenpairs(R, 1)[0][0] - 1)
    factor, failed = linalg.lapack.dpotrf(R, lower=1)
    return np.inf if failed else float(-2 * np.log(np.diag(factor)).sum())
