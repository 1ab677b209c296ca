"""Factors of the constraint of a view, by which it is whitened.

A matrix is equilibrated, then Cholesky factorizes it, or an eigendecomposition that reveals its
rank where Cholesky fails. Diagonal and tridiagonal matrices take O(d). Nothing here knows of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from scipy import linalg

from mvcca.machine import lapack
from mvcca.statistics.digits_lost import DigitsLost

__all__ = [
    "AnyWhitener",
    "Bidiagonal",
    "Scaling",
    "Tridiagonal",
    "Whitener",
    "above_rounding",
    "extreme_eigenvalues",
    "rounding_of",
]

_STEPS = 5  # of power iteration
_ULPS = 2  # units in the last place that sums and differences of a few columns are off by


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
        factor = lapack.cholesky(correlation.T)
        # Cholesky may succeed on a matrix that is singular but for rounding; eigenvalues decide.
        if factor is not None:
            largest, smallest = extreme_eigenvalues(factor)
            least = 10 * len(columns) * np.finfo(float).eps * largest
            if smallest > max(least, most**2):
                condition = float(np.sqrt(largest / smallest))
                noise = most / float(np.sqrt(smallest))
                return cls(scale, factor, columns, True, len(columns), condition, noise)
        # Collinear columns: leave out rounding directions. The factor is in place of the matrix.
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

    def weights(self) -> np.ndarray:
        """W, of shape (d, rank)."""
        if not self.is_triangular:
            return self.lift(np.eye(self.rank))
        inverse, _ = linalg.lapack.dtrtri(self.factor, lower=1)  # a third of solving for I
        weights = np.zeros((len(self.scale), self.rank))
        weights[self.columns] = inverse.T * self.scale[self.columns, None]
        return weights

    def squared_norm(self) -> float:
        """‖W‖² (Frobenius), which is tr B⁻¹ if no direction was left out."""
        weights = self.factor
        if self.is_triangular:  # W = D L⁻ᵀ, of which no copy is made
            weights, _ = linalg.lapack.dtrtri(self.factor, lower=1)
            weights = weights.T
        return float(np.einsum("ij,ij->i", weights, weights) @ self.scale[self.columns] ** 2)


@dataclass(frozen=True, eq=False)
class Scaling:
    """The `Whitener` of a diagonal matrix, in O(d)."""

    scale: np.ndarray  # (d,), 1 / √B_jj, and 0 for columns without variance
    condition: float = 1.0
    noise: float = 0.0

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
class RowSpace:
    """The `Whitener` of a matrix in the space of few rows: W, (d, r), with orthogonal columns."""

    weights: np.ndarray

    def project(self, C: np.ndarray) -> np.ndarray:
        """WᵀC, of shape (r, m)."""
        return self.weights.T @ C

    def lift(self, U: np.ndarray) -> np.ndarray:
        """WU, of shape (d, m)."""
        return self.weights @ U


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
