"""The small dense problem at the end of every fit: the top of A w = ρ B w, with B block-diagonal.

Each within-view matrix B_p is whitened on its own (equilibrated, then Cholesky, or a rank-revealing
eigendecomposition where that fails); then one SVD for two views, one symmetric eigenproblem for any
other number. Signs are fixed here, too. Nothing here knows of rows, labels or estimators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, svds

from mvcca.machine import lapack
from mvcca.statistics import DigitsLost

__all__ = [
    "Absolute",
    "AnyWhitener",
    "Bidiagonal",
    "Directions",
    "Scaling",
    "Shrinkage",
    "Tridiagonal",
    "Whitener",
    "above_rounding",
    "canonical_directions",
    "extreme_eigenvalues",
    "fixed_signs",
    "ridge_in",
    "ridged",
    "rounding_of",
]

_STEPS = 5  # of power iteration
_ULPS = 2  # units in the last place that sums and differences of a few columns are off by
# A correlation above 1 by more than this is not rounding.
_ABOVE_ONE = 1e-6


class Absolute(float):
    """A ridge r in the units of the matrix C that it is added to, C + r I.

    A plain number r in its place makes C + r μ I, with μ the mean diagonal of C.
    """


class Shrinkage(float):
    """A share s in [0, 1]: a matrix C with mean diagonal μ becomes (1 - s) C + s μ I.

    A plain number r in its place makes C + r μ I.
    """


def ridge_in(reg: float, unit: float) -> float:
    """The ridge that is added to a matrix with mean diagonal `unit`."""
    return float(reg) if isinstance(reg, Absolute) else reg * unit


def ridged(B: np.ndarray, reg: float, unit: float) -> np.ndarray:
    """A matrix B of features, or the diagonal of one, with the ridge `ridge_in` its unit."""
    result = (1 - reg if isinstance(reg, Shrinkage) else 1) * B
    # A constant column stays out of the problem: its weight is 0, not nearly 0.
    diagonal = np.diag(B) if B.ndim == 2 else B
    places = np.diag_indices_from(B) if B.ndim == 2 else ...
    result[places] += ridge_in(reg, unit) * (diagonal > 0)
    return result


@dataclass(frozen=True, eq=False)
class Whitener:
    """A map W with WᵀBW = I for a symmetric positive semi-definite B of shape (d, d).

    B is scaled to unit diagonal first: the solution is the same, the rounding is not. Columns of
    zero variance and directions that are only rounding are left out, so W has `rank` columns.

    Attributes
    ----------
    scale : ndarray, shape (d,)
        1 / √B_jj, and 0 for columns without variance.
    factor : ndarray
        Lower Cholesky factor L of the scaled B, W = D L⁻ᵀ; or the basis V, W = D V.
    columns : ndarray of int
        The columns with variance, which `factor` covers.
    is_triangular : bool
        Whether `factor` is a Cholesky factor.
    rank : int
        Number of directions of B above rounding.
    condition : float
        Condition number of the data that B is the scaled covariance of, within about a fifth; inf
        where rank is lost.
    noise : float
        Largest share of a kept direction's length that may be the rounding of the data.
    """

    scale: np.ndarray
    factor: np.ndarray
    columns: np.ndarray
    is_triangular: bool
    rank: int
    condition: float
    noise: float = 0.0

    @classmethod
    def of(cls, B: np.ndarray, rounding: np.ndarray | float = 0.0) -> Whitener:
        """Factorise B, whose columns are the covariances of data with this `rounding_of` them."""
        variances = np.diag(B)
        columns = np.flatnonzero(variances > 0)
        scale = np.zeros(len(B))
        scale[columns] = 1 / np.sqrt(variances[columns])
        kept = B if len(columns) == len(B) else B[np.ix_(columns, columns)]
        d = scale[columns]
        rounding = np.broadcast_to(rounding, scale.shape)[columns] * d
        most = float(rounding.max(initial=0))
        # Columns get unit variance, so that the condition number does not depend on their units.
        correlation = np.multiply(kept, d, order="C")
        correlation *= d[:, None]
        # The transpose is in LAPACK's order, so that nothing is copied.
        factor, failed = linalg.lapack.dpotrf(correlation.T, lower=1, clean=1, overwrite_a=1)
        # Cholesky may succeed on a matrix that is singular but for rounding; eigenvalues decide.
        if not failed:
            largest, smallest = extreme_eigenvalues(factor)
            least = 10 * len(columns) * np.finfo(float).eps * largest
            if smallest > max(least, most**2):
                condition = float(np.sqrt(largest / smallest))
                noise = most / float(np.sqrt(smallest))
                return cls(scale, factor, columns, True, len(columns), condition, noise)
        # Collinear columns: leave out rounding directions, of a matrix that dpotrf has overwritten.
        correlation = kept * d * d[:, None]
        values, vectors = lapack.top_eigenpairs(correlation, len(correlation))
        sizes = np.sqrt(np.maximum(values, 0))
        real = values > 10 * len(values) * np.finfo(float).eps * values[-1]
        real &= above_rounding(sizes, vectors, rounding)
        basis = vectors[:, real] / sizes[real]
        condition = float(sizes[-1] / sizes[0]) if real.all() else np.inf
        noise = most / float(sizes[real].min(initial=np.inf))
        return cls(scale, basis, columns, False, int(real.sum()), condition, noise)

    def project(self, C: np.ndarray) -> np.ndarray:
        """WᵀC, of shape (rank, m)."""
        kept = C if len(self.columns) == len(C) else C[self.columns]
        scaled = np.multiply(kept, self.scale[self.columns, None], order="C")
        if self.is_triangular:  # L⁻¹C as the transpose of CᵀL⁻ᵀ, in place
            return linalg.blas.dtrsm(
                1.0, self.factor, scaled.T, side=1, lower=1, trans_a=1, overwrite_b=1
            ).T
        return self.factor.T @ scaled

    def lift(self, U: np.ndarray) -> np.ndarray:
        """WU, of shape (d, m)."""
        weights = np.zeros((len(self.scale), U.shape[1]))
        if self.is_triangular:
            lifted = linalg.solve_triangular(
                self.factor, U, trans="T", lower=True, check_finite=False
            )
        else:
            lifted = self.factor @ U
        weights[self.columns] = lifted * self.scale[self.columns, None]
        return weights

    def squared_norm(self) -> float:
        """‖W‖² (Frobenius), which is tr B⁻¹ if no direction was left out."""
        weights = self.factor
        if self.is_triangular:
            weights, _ = linalg.lapack.dtrtri(self.factor, lower=1)  # W = D L⁻ᵀ
            weights = weights.T
        return float(np.einsum("ij,ij->i", weights, weights) @ self.scale[self.columns] ** 2)


def rounding_of(mean: np.ndarray) -> np.ndarray:
    """Standard deviation that rounding can give to numbers with this mean.

    A column that is the sum of others has been rounded in units of its mean, however small its
    spread. What is left of the column when these others are taken away is no larger than this.
    """
    return _ULPS * np.finfo(float).eps * np.abs(mean)


def above_rounding(sizes: np.ndarray, directions: np.ndarray, rounding: np.ndarray) -> np.ndarray:
    """Which directions of the data are longer than the rounding of the columns can make them.

    Parameters
    ----------
    sizes : ndarray, shape (r,)
        Length of the data along each direction, such as singular values.
    directions : ndarray, shape (d, r)
        Unit vectors over the columns.
    rounding : ndarray, shape (d,)
        Length of the rounding of each column, in the same units.

    Returns
    -------
    ndarray of bool, shape (r,)
    """
    return sizes > np.sqrt(rounding**2 @ directions**2)


@dataclass(frozen=True, eq=False)
class Scaling:
    """The `Whitener` of a diagonal matrix, in O(d)."""

    scale: np.ndarray  # (d,), 1 / √B_jj, and 0 for columns without variance
    condition = 1.0
    noise = 0.0

    @classmethod
    def of(cls, diagonal: np.ndarray) -> Scaling:
        """Whiten a matrix given by its diagonal."""
        varies = diagonal > 0
        return cls(np.divide(1, np.sqrt(diagonal), out=np.zeros(len(diagonal)), where=varies))

    @property
    def rank(self) -> int:
        """Number of columns with variance."""
        return int(np.count_nonzero(self.scale))

    def project(self, C: np.ndarray) -> np.ndarray:
        """WᵀC, of shape (rank, m)."""
        if (self.scale == 1).all():
            return C
        varies = self.scale > 0
        return C * self.scale[:, None] if varies.all() else C[varies] * self.scale[varies, None]

    def lift(self, U: np.ndarray) -> np.ndarray:
        """WU, of shape (d, m)."""
        weights = np.zeros((len(self.scale), U.shape[1]))
        weights[self.scale > 0] = U
        return self.scale[:, None] * weights

    def squared_norm(self) -> float:
        """‖W‖² (Frobenius)."""
        return float(self.scale @ self.scale)


@dataclass(frozen=True, eq=False)
class Tridiagonal:
    """A symmetric matrix T that is 0 but on and beside its diagonal."""

    diagonal: np.ndarray  # (d,)
    beside: np.ndarray  # (d - 1,)
    ndim = 2

    @classmethod
    def of(cls, B: np.ndarray) -> tuple[np.ndarray, Tridiagonal]:
        """Reduce the columns of B that vary: orthonormal Q, (len(B), d), and T = QᵀBQ."""
        diagonal = np.diag(B) if B.ndim == 2 else B
        varies = np.flatnonzero(diagonal > 0)
        if B.ndim == 1:
            return np.eye(len(B))[:, varies], cls(B[varies], np.zeros(len(varies) - 1))
        if len(varies) == len(B):
            Q, *of_T = lapack.tridiagonal(B)
        else:
            Q = np.zeros((len(B), len(varies)))
            Q[varies], *of_T = lapack.tridiagonal(B[np.ix_(varies, varies)])
        return Q, cls(*of_T)

    def __matmul__(self, W: np.ndarray) -> np.ndarray:
        image = self.diagonal[:, None] * W
        image[1:] += self.beside[:, None] * W[:-1]
        image[:-1] += self.beside[:, None] * W[1:]
        return image

    def without_rounding(self) -> tuple[np.ndarray | None, Tridiagonal]:
        """Orthonormal V and VᵀTV without the directions that are only rounding, if there are any.

        To tell them from the others takes eigenvectors.
        """
        smallest, largest = self.extremes
        least = 10 * len(self.diagonal) * np.finfo(float).eps * largest
        if smallest > least:
            return None, self
        values, vectors = linalg.eigh_tridiagonal(self.diagonal, self.beside)
        real = values > least
        return vectors[:, real], Tridiagonal(values[real], np.zeros(int(real.sum()) - 1))

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest eigenvalue."""
        ends = (0, len(self.diagonal) - 1)
        power = np.frexp(np.abs(self.diagonal).max())[1]  # LAPACK squares the entries
        of_T = (np.ldexp(self.diagonal, -power), np.ldexp(self.beside, -power))
        found = [linalg.eigvalsh_tridiagonal(*of_T, "i", select_range=(i, i))[0] for i in ends]
        return float(np.ldexp(found[0], power)), float(np.ldexp(found[1], power))


@dataclass(frozen=True, eq=False)
class Bidiagonal:
    """The `Whitener` of a tridiagonal matrix T = L diag(p) Lᵀ with bidiagonal L, in O(d)."""

    pivots: np.ndarray  # (d,), p
    beside: np.ndarray  # (d - 1,), below the ones on the diagonal of L
    condition = 1.0
    noise = 0.0

    @classmethod
    def of(cls, T: Tridiagonal, name: str) -> Bidiagonal:
        """Factorise the constraint of a view."""
        beside = T.beside if len(T.beside) else np.zeros(1)  # at least one for SciPy
        pivots, beside, failed = linalg.lapack.dpttrf(T.diagonal, beside)
        if failed:
            raise DigitsLost([name], f"The constraint of view {name!r} is not positive definite")
        return cls(pivots, beside[: len(pivots) - 1])

    @property
    def rank(self) -> int:
        """Number of columns."""
        return len(self.pivots)

    def project(self, C: np.ndarray) -> np.ndarray:
        """WᵀC = diag(p)^-½ L⁻¹C, of shape (d, m)."""
        sizes = np.sqrt(self.pivots)
        image = np.divide(C, sizes[:, None], order="C")
        shares = self.beside * sizes[:-1] / sizes[1:]
        for share, row, after in zip(shares, image, image[1:], strict=False):
            linalg.blas.daxpy(row, after, a=-share)  # in place; over many columns, LAPACK is slower
        return image

    def lift(self, U: np.ndarray) -> np.ndarray:
        """WU = L⁻ᵀ diag(p)^-½ U, of shape (d, m)."""
        if not U.shape[1]:  # SciPy's dtbtrs of no columns writes past the end of memory
            return np.zeros(U.shape)
        sizes = np.sqrt(self.pivots)
        banded = np.vstack([sizes, np.append(self.beside * sizes[:-1], 0)])
        weights, _ = linalg.lapack.dtbtrs(banded, U, uplo="L", trans="T")
        return weights

    def squared_norm(self) -> float:
        """‖W‖² (Frobenius), which is tr T⁻¹."""
        # Row i of L⁻¹ is that of I less a share of the row before, in which column i is 0.
        squares = accumulate(self.beside**2, lambda row, share: 1 + share * row, initial=1.0)
        return float(np.sum(np.fromiter(squares, float) / self.pivots))


AnyWhitener = Whitener | Scaling | Bidiagonal


def extreme_eigenvalues(factor: np.ndarray) -> tuple[float, float]:
    """λ_max and λ_min of LLᵀ, within about a third, by power and inverse iteration.

    LAPACK's estimate is in the 1-norm, and too large by up to √d.
    """
    # A fixed start makes fits reproducible; a random one is orthogonal to no eigenvector.
    largest = smallest = np.random.RandomState(0).standard_normal(len(factor))
    norm = linalg.blas.dnrm2  # whose squares do not leave the range of floats
    for _ in range(_STEPS):
        largest = largest / norm(largest)
        largest = linalg.blas.dtrmv(factor, largest, lower=1, trans=1)
        largest = linalg.blas.dtrmv(factor, largest, lower=1)
        smallest = smallest / norm(smallest)
        smallest = linalg.blas.dtrsv(factor, smallest, lower=1)
        smallest = linalg.blas.dtrsv(factor, smallest, lower=1, trans=1)
    return float(norm(largest)), float(1 / norm(smallest))


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
    with_others: bool = False,
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
    with_others : bool, default=False
        Whether to return what is known of the other components of two views at no further cost:
        their weights after a full decomposition, else their values in `Directions.others`.

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
        U, values, V = top_singular(T, n_components)
        n_components = max(n_components, U.shape[1]) if with_others else n_components
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
    others = values[kept : min(real, limit)] if with_others else None
    return Directions(values[:kept], weights, bound, ranks, others)


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


def top_singular(T: Any, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leading singular triplets; through the smaller Gram matrix when few of many are wanted.

    Of the others, it then gives the values, with half the digits.
    """
    if isinstance(T, LinearOperator):
        # ARPACK finds all singular values but one; a fixed start makes fits reproducible, and a
        # random one is orthogonal to no singular vector.
        k = min(k, min(T.shape) - 1)
        start = np.random.RandomState(0).standard_normal(min(T.shape))
        left, values, right = svds(T, k, v0=start)
        return left[:, ::-1], values[::-1], right[::-1].T
    if min(T.shape) > 128 and 4 * k < min(T.shape):
        tall = T.shape[0] >= T.shape[1]
        gram = T.T @ T if tall else T @ T.T
        squares, vectors = lapack.top_eigenpairs_and_values(gram, k)
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]
        if values[k - 1] > 1e-3 * values[0]:  # squaring keeps the digits of these
            other = (T @ vectors if tall else T.T @ vectors) / values[:k]
            return (other, values, vectors) if tall else (vectors, values, other)
    left, values, right = lapack.svd(T)
    return left, values, right.T


def _top_symmetric(
    white: Mapping[tuple[str, str], np.ndarray], ranks: Mapping[str, int], k: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Leading eigenvalues of the blocks put together, and the eigenvectors view by view."""
    ends = np.cumsum([0, *ranks.values()])
    place = {name: slice(*ends[i : i + 2]) for i, name in enumerate(ranks)}
    n = int(ends[-1])
    whole = np.zeros((n, n))
    for (p, q), block in white.items():
        whole[place[p], place[q]] = block if p != q else (block + block.T) / 2
        whole[place[q], place[p]] = whole[place[p], place[q]].T
    values, vectors = lapack.top_eigenpairs(whole, k)
    if not np.isfinite(vectors).all():  # LAPACK's MRRR fails on blocks 1e100 apart in size
        values, vectors = linalg.eigh(whole, driver="evd")
        values, vectors = values[-k:], vectors[:, -k:]
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
