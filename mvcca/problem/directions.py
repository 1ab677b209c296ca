"""The small dense problem at the end of every fit: the top of A w = ρ B w, with B block-diagonal.

Views are whitened; then one SVD solves two of them, one symmetric eigenproblem any other number.
Signs are fixed here, too. Nothing here knows of rows, labels or estimators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from mvcca.blocks import beside, to_host
from mvcca.machine import lapack
from mvcca.problem import _on_device
from mvcca.problem.whitener import AnyWhitener
from mvcca.statistics.digits_lost import DigitsLost

__all__ = ["Directions", "canonical_directions", "fixed_signs"]

_ABOVE_ONE = 1e-6  # excess of a correlation over 1 that is not rounding


@dataclass(frozen=True, eq=False)
class Directions:
    """The top of the generalized eigenproblem, and what there was to find.

    Attributes
    ----------
    values : ndarray, shape (k,)
        ρ, decreasing.
    weights : dict of str to ndarray, shape (n_features, k)
        One map per view, scaled so that Σ_p w_pᵀ B_p w_p is the number of views.
    bound : int
        How many components the data can give, when fewer than were asked for; else at least k.
    ranks : dict of str to int
        Rank of each view.
    others : ndarray, shape (m,), or None
        ρ of the other components of two views, if they were asked for, decreasing.
    """

    values: np.ndarray
    weights: dict[str, np.ndarray]
    bound: int
    ranks: dict[str, int]
    others: np.ndarray | None = None


def canonical_directions(
    between: Mapping[tuple[str, str], Any],
    whiteners: Mapping[str, AnyWhitener],
    n_components: int,
    precision: np.dtype = np.dtype(np.float64),  # noqa: B008
    ranks_between: Mapping[str, int] | None = None,
    *,
    is_joint: bool,
    others: str | None = None,
) -> Directions:
    """Solve Σ_{q≠p} A_pq w_q = ρ B_p w_p for the largest ρ.

    Two views: singular values of W_1ᵀ A_12 W_2, the canonical correlations. More views: the top of
    the symmetric problem with blocks W_pᵀ A_pq W_q, for which λ = 1 + ρ is the eigenvalue of the
    problem with B on the diagonal of A (SPEC: eq. (2) of P4 with a block-diagonal right side). One
    view is compared with itself.

    Parameters
    ----------
    between : mapping of (str, str) to ndarray or LinearOperator
        A_pq for p before q; for one view A_pp. With A_pp of several views the eigenvalues are
        those of the whole A. Two views may have an operator.
    whiteners : mapping of str to Whitener
        W_p of every view's within matrix B_p.
    n_components : int
        How many components are wanted.
    precision : dtype
        Of the numbers that A was computed from; values below its unit roundoff count as zero.
    ranks_between : mapping of str to int, optional
        Upper bounds of the ranks of a view's blocks A_pq, where they are known to lack full rank:
        whitening can enlarge the rounding beyond them until it passes for a small ρ.
    is_joint : bool
        Whether A and B are blocks of one positive semi-definite matrix, as covariances of paired
        rows are, so that no ρ is above 1 (of V > 2 views, above V - 1).
    others : {"values", "weights"}, optional
        What to return of the other components of two views: their values in `Directions.others`,
        or their weights if a full decomposition has found them, else these values.

    Raises
    ------
    DigitsLost
        If a ρ is above that bound by more than 1e-6.
    """
    names = list(whiteners)
    ranks = {name: whitener.rank for name, whitener in whiteners.items()}
    seen = [min(rank, (ranks_between or {}).get(name, rank)) for name, rank in ranks.items()]
    white = {}
    for (p, q), A in between.items():
        left, right = whiteners[p], whiteners[q]
        if isinstance(A, LinearOperator):
            white[p, q] = _whitened_operator(A, left, right)
        else:
            white[p, q] = right.project(left.project(A).T).T
    has_diagonal = any(p == q for p, q in between)
    if len(names) == 2 and not has_diagonal:
        # The eigenvalues are plus and minus the singular values of the block between two views.
        T = white[names[0], names[1]]
        solver = lapack if isinstance(T, np.ndarray | LinearOperator) else _on_device
        U, values, V = solver.top_singular(T, n_components)
        n_components = max(n_components, U.shape[1]) if others == "weights" else n_components
        directions = dict(zip(names, (U, V), strict=True))
        limit = min(seen)
    else:
        values, directions = _top_symmetric(white, ranks, n_components)
        # The form vanishes on the widest view alone, so no more than the rest can be positive. With
        # A_pp, more eigenvalues are, but no more than these exceed what one view has by itself.
        limit = sum(seen) - max(seen) if len(names) > 1 else seen[0]
    top = values[0] if len(values) else 0.0
    # The largest eigenvalue if all views agree: a matrix of ones has the eigenvalue m.
    most = len(names) if has_diagonal else len(names) - 1
    if is_joint and top > most * (1 + _ABOVE_ONE):
        raise DigitsLost(names, f"A correlation of {top:.7g} is above {most}")
    eps = np.finfo(precision).eps
    with np.errstate(under="ignore"):
        real = int(np.sum(values > 10 * max(ranks.values()) * eps * top))
    kept = min(real, n_components, limit)
    bound = kept if kept < n_components else limit
    weights = {name: whiteners[name].lift(U[:, :kept]) for name, U in directions.items()}
    rest = None if others is None else values[kept : min(real, limit)]
    return Directions(values[:kept], weights, bound, ranks, rest)


def _whitened_operator(A: LinearOperator, left: AnyWhitener, right: AnyWhitener) -> LinearOperator:
    """W_1ᵀ A W_2."""
    return LinearOperator(
        (left.rank, right.rank),
        matvec=lambda v: left.project(A.matmat(right.lift(v.reshape(-1, 1)))),
        rmatvec=lambda v: right.project(A.rmatmat(left.lift(v.reshape(-1, 1)))),
        matmat=lambda V: left.project(A.matmat(right.lift(V))),
        rmatmat=lambda V: right.project(A.rmatmat(left.lift(V))),
        dtype=np.float64,
    )


def _top_symmetric(
    white: Mapping[tuple[str, str], np.ndarray], ranks: Mapping[str, int], k: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Leading eigenvalues of the blocks put together, and the eigenvectors view by view."""
    ends = np.cumsum([0, *ranks.values()])
    place = {name: slice(*ends[i : i + 2]) for i, name in enumerate(ranks)}
    n = int(ends[-1])
    whole, like = np.zeros((n, n)), next(iter(white.values()))
    is_on_host = isinstance(like, np.ndarray)
    for (p, q), block in white.items():
        block = block if is_on_host else to_host(block)
        whole[place[p], place[q]] = block if p != q else (block + block.T) / 2
        whole[place[q], place[p]] = whole[place[p], place[q]].T
    if is_on_host:
        values, vectors = lapack.top_eigenpairs(whole, k)
    else:
        values, vectors = _on_device.top_eigenpairs(beside(whole, like), k)
        values, vectors = values[-k:], to_host(vectors)
    # Unit variance on average over the views, as the two singular vectors of two views have.
    vectors *= np.sqrt(len(ranks))
    return values[::-1], {name: vectors[rows, ::-1] for name, rows in place.items()}


def fixed_signs(
    weights: Mapping[str, np.ndarray], variances: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Signs, (k,), that make the largest weight of each component positive.

    Weights are compared in units of each feature's deviation.

    Parameters
    ----------
    weights : mapping of str to ndarray, shape (n_features, k)
        One map per view.
    variances : mapping of str to ndarray, shape (n_features,)
        Variances of the features that the weights apply to.
    """
    stacked = np.concatenate([w * np.sqrt(variances[name])[:, None] for name, w in weights.items()])
    largest = np.abs(stacked).argmax(axis=0)
    return np.where(stacked[largest, np.arange(stacked.shape[1])] < 0, -1.0, 1.0)
