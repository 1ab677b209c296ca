"""Bases in which the rows of a view are solved, and the way back to its features.

A wide view is solved in the span of its rows, which has fewer dimensions than it has features; an
ill-conditioned one in its principal components, which keep digits that its covariance loses. The
ridge and the weights stay those of the features in every basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block
from mvcca.machine import lapack
from mvcca.machine.threads import threads_to_factorise
from mvcca.problem._centring import centred_rows, reciprocal, rounding_of_rows, variances_of
from mvcca.problem.ridge import Absolute, ridge_in, ridged
from mvcca.problem.whitened import Whitened
from mvcca.problem.whitener import above_rounding, extreme_eigenvalues
from mvcca.statistics import Moments, column_slices

# Condition numbers up to which a Gram matrix of rows is as good as the rows:
WELL_CONDITIONED = 1e3  # of rows with the ridge
_ORTHONORMAL = 1e4  # of rows without it, so that their basis is orthonormal
_EPS = np.finfo(float).eps
_CONSTANT = 1e-12  # deviation in units of the mean, up to which a column is constant
_BLOCK_NUMBERS = 2**20  # of columns that are centred at a time
_NEAR = 0.5  # mean in deviations of a column, up to which products of the rows keep their digits
_SOME_ROWS = 32  # which tell means of more than two deviations


class Basis(Protocol):
    """Coordinates Z = (X - mean) E of rows X of shape (n, d); E has shape (d, r)."""

    @property
    def n_features(self) -> int:
        """The number of features, d."""

    @property
    def mean(self) -> np.ndarray:
        """What is subtracted from rows of X, (d,)."""

    @property
    def inverse(self) -> np.ndarray:
        """Pseudo-inverse of E, (r, d)."""

    def lift(self, W: np.ndarray) -> np.ndarray:
        """Weights of X, (d, k), that give the scores of weights W of Z, (r, k)."""

    def back(self, Z: np.ndarray) -> np.ndarray:
        """Centred rows X - mean with coordinates Z."""

    def ridged(self, B: np.ndarray, ridge: float, share: float) -> np.ndarray:
        """Share · B + ridge · EᵀE: a ridge on the features of a matrix B in this basis."""

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        """Diagonal over the features, (d,), of a matrix B in this basis.

        With `of_rows`, B is the covariance of the rows that the basis was found from.
        """

    def then(self, other: Basis) -> Basis:
        """This change of basis followed by another."""


@dataclass(frozen=True, eq=False)
class Explicit:
    """A basis by its matrix.

    Attributes
    ----------
    mean : ndarray, shape (d,)
        Mean of the rows of X.
    matrix : ndarray, shape (d, r)
        E.
    inverse : ndarray, shape (r, d)
        Its pseudo-inverse.
    known : ndarray, shape (d,), or None
        Variances of the columns of X, if the basis was found from rows.
    """

    mean: np.ndarray
    matrix: np.ndarray
    inverse: np.ndarray
    known: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def lift(self, W: np.ndarray) -> np.ndarray:
        return self.matrix @ W

    def back(self, Z: np.ndarray) -> np.ndarray:
        return Z @ self.inverse

    def ridged(self, B: np.ndarray, ridge: float, share: float) -> np.ndarray:
        return share * B + ridge * (self.matrix.T @ self.matrix)

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        if of_rows and self.known is not None:
            return self.known
        product = B @ self.inverse
        product *= self.inverse
        return np.maximum(product.sum(axis=0), 0)

    def then(self, other: Basis) -> Basis:
        mean = self.mean + self.back(other.mean)
        matrix = self.lift(other.lift(np.eye(len(other.inverse))))
        return Explicit(mean, matrix, other.inverse @ self.inverse, self.known)


@dataclass(frozen=True, eq=False)
class Span:
    """Basis E = SRᵀQL⁻ᵀ of the span of rows R = diag(s) (X - mean) S, with Qᵀ(RRᵀ)Q = LLᵀ.

    Kept as its factors. S scales columns; E is orthonormal if S is the identity. With s = √weight,
    the rows of R add up to zero when multiplied by s: Q = [I; 0] - v vᵀ is an orthonormal basis of
    all that is orthogonal to s, so that QᵀR has the singular values of R.

    Attributes
    ----------
    mean : ndarray, shape (d,)
        Mean of the rows of X.
    rows : ndarray or sparse array, shape (n, d)
        X.
    weights : ndarray, shape (n,), or None
        s².
    normal : ndarray, shape (n,)
        v, of length √2.
    scale : ndarray, shape (d,)
        Diagonal of S, 0 for constant columns.
    factor : ndarray, shape (n - 1, n - 1)
        L, lower triangular.
    known : ndarray, shape (d,)
        Variances of the columns of X.
    """

    mean: np.ndarray
    rows: Any
    weights: np.ndarray | None
    normal: np.ndarray
    scale: np.ndarray
    factor: np.ndarray
    known: np.ndarray

    @property
    def n_features(self) -> int:
        return len(self.mean)

    @property
    def count(self) -> float:
        """Number of rows, or the sum of their weights."""
        return len(self.normal) if self.weights is None else self.weights.sum()

    @cached_property
    def inverse(self) -> np.ndarray:
        """The pseudo-inverse as a matrix, which takes as long as finding L."""
        centred = centred_rows(self.rows, self.weights)[1] * self.scale
        rows = centred[:-1] - np.outer(self.normal[:-1], self.normal @ centred)
        matrix = linalg.blas.dtrsm(1.0, self.factor, rows.T, side=1, lower=1, trans_a=1)
        return np.asarray(matrix.T) * reciprocal(self.scale)

    def lift(self, W: np.ndarray) -> np.ndarray:
        return (self.scale**2 * self._products(W).T).T

    def back(self, Z: np.ndarray) -> np.ndarray:
        return (self.scale > 0) * self._products(Z.T).T

    def _products(self, W: np.ndarray) -> np.ndarray:
        """(X - mean)ᵀ diag(s) Q L⁻ᵀ W, of shape (d, k)."""
        solved = linalg.solve_triangular(self.factor, W, lower=True, trans="T", check_finite=False)
        return spread(self.rows, self.weights, self.mean, self.normal, solved)

    def ridged(self, B: np.ndarray, ridge: float, share: float) -> np.ndarray:
        if not np.isin(self.scale, (0, 1)).all():
            return self.explicit().ridged(B, ridge, share)
        result = share * B
        result[np.diag_indices_from(B)] += ridge
        return result

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        return self.known if of_rows else self.explicit().variances(B)

    def then(self, other: Basis) -> Basis:
        return self.explicit().then(other)

    def explicit(self) -> Explicit:
        """The same basis by its matrix."""
        matrix = self.scale[:, None] ** 2 * self.inverse.T
        return Explicit(self.mean, matrix, self.inverse, self.known)


@dataclass(frozen=True, eq=False)
class Standardized:
    """Columns times their own factors, and a basis of these: Z = (X - origin) diag(f) E.

    A ridge on the features is one on the standardized columns. E is the identity if there is no
    `inner` basis.

    Attributes
    ----------
    factors : ndarray, shape (d,)
        f, the reciprocal deviations; 0 leaves a column out.
    origin : ndarray, shape (d,)
        Values of the columns that are left out; 0 elsewhere.
    inner : Basis or None
        Basis of the standardized columns.
    """

    factors: np.ndarray
    origin: np.ndarray
    inner: Any = None

    @classmethod
    def of(cls, mean: np.ndarray, deviations: np.ndarray) -> Standardized:
        """Factors of columns with these means and standard deviations."""
        varies = deviations > _CONSTANT * np.abs(mean)
        factors = np.divide(1.0, deviations, out=np.zeros(len(varies)), where=varies)
        return cls(factors, np.where(varies, 0.0, mean))

    @property
    def n_features(self) -> int:
        return int(np.count_nonzero(self.factors))

    @property
    def divisors(self) -> np.ndarray:
        """Deviations, 0 of columns that are left out, (d,)."""
        return reciprocal(self.factors)

    @property
    def mean(self) -> np.ndarray:
        inner = 0.0 if self.inner is None else self.inner.mean * self.divisors
        return self.origin + inner

    @property
    def inverse(self) -> np.ndarray:
        if self.inner is None:
            return np.diag(self.divisors)
        return np.asarray(self.inner.inverse * self.divisors)

    def lift(self, W: np.ndarray) -> np.ndarray:
        inner = W if self.inner is None else self.inner.lift(W)
        return np.asarray((self.factors * inner.T).T)

    def back(self, Z: np.ndarray) -> np.ndarray:
        return np.asarray((Z if self.inner is None else self.inner.back(Z)) * self.divisors)

    def ridged(self, B: np.ndarray, ridge: float, share: float) -> np.ndarray:
        if self.inner is not None:
            return np.asarray(self.inner.ridged(B, ridge, share))
        return ridged(share * B, Absolute(ridge), 1.0)

    def variances(self, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        """Of the standardized columns."""
        if self.inner is not None:
            return np.asarray(self.inner.variances(B, of_rows))
        return np.diag(B) if B.ndim == 2 else B

    def then(self, other: Basis) -> Standardized:
        return replace(self, inner=other if self.inner is None else self.inner.then(other))


def within_units(basis: Any) -> Any:
    """The basis itself, or that of the standardized columns."""
    return basis.inner if isinstance(basis, Standardized) else basis


def moments_of_spans(spans: Mapping[str, Span]) -> Moments:
    """Moments of paired rows in bases of their spans, for half the multiplications of `Moments.of`.

    Views of the same objects have the same Q, so that their scatter is (Q L_p)ᵀ Q L_q = L_pᵀ L_q.
    """
    widths = {name: len(span.factor) for name, span in spans.items()}
    moments, columns = Moments.of_nothing(widths), column_slices(widths)
    moments.counts[:] = next(iter(spans.values())).count
    for p, q in combinations_with_replacement(spans, 2):
        product = linalg.blas.dtrmm(1.0, spans[p].factor, spans[q].factor, trans_a=1, lower=1)
        moments.scatter[columns[q], columns[p]] = product.T
        if p != q:
            moments.scatter[columns[p], columns[q]] = product
    return moments


def row_space(
    X: Any,
    weights: np.ndarray | None = None,
    *,
    equilibrate: bool = False,
    ridge: float = 0,
    center: bool = True,
) -> tuple[Basis, np.ndarray]:
    """Basis of the span of the centred rows of a wide X (n < d), and the rows in it, (n, r).

    Without `center`, of the rows as they are.

    Orthonormal, so that a ridge on the features is the same ridge in it. Where there is no ridge
    and many weights solve the problem, `equilibrate` scales columns to unit length first: the
    smallest weights in units of the features are those that a full covariance would give. A
    `ridge`, in mean variances unless it is `Absolute`, makes the problem better conditioned than
    the rows.

    Correlations under a ridge c on the scatter depend on the Gram matrix K of the rows through
    K (K + c I)⁻¹, so that an error of K counts relative to λ_min + c, not to λ_min.
    """
    if not center:  # rows that do not add up to zero have no `Span`
        return _row_space_by_qr(X, weights, equilibrate=equilibrate, center=False)
    X = as_block(X).by_columns()
    mean, lengths, normal, gram = gram_of_rows(X, weights, equilibrate=equilibrate)
    n = X.shape[0]
    known = variances_of(lengths, n, weights)
    with threads_to_factorise(n):
        factor = lapack.cholesky(gram)
        largest, smallest = (1.0, 0.0) if factor is None else extreme_eigenvalues(factor)
    is_orthonormal = largest < _ORTHONORMAL**2 * smallest
    divisor = (n if weights is None else weights.sum()) - 1  # of the scatter, for covariances
    held = divisor * ridge_in(ridge, known.mean())
    scale = _column_scale(lengths, equilibrate)
    is_real = np.max(rounding_of_rows(mean, n, weights) * scale) ** 2 < smallest
    is_well_conditioned = largest < WELL_CONDITIONED**2 * (smallest + held)
    is_exact = is_orthonormal and is_real and is_well_conditioned
    if factor is not None and is_exact:  # four times as fast as QR
        span = Span(mean, X, weights, normal, scale, factor, known)
        return span, _unweighted(turned(span.normal, factor), weights)
    return _row_space_by_qr(X, weights, equilibrate=equilibrate)


def gram_of_rows(
    X: np.ndarray, weights: np.ndarray | None = None, *, equilibrate: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean and lengths of the columns, and Qᵀ X̄ X̄ᵀ Q of the centred rows with the normal of Q.

    Q maps n - 1 coordinates to rows that add up to zero, see `Span`; the lower half of the matrix
    counts. Rows are multiplied as they are if no mean is far from zero: Q takes means away.
    """
    n, d = X.shape
    near = None if weights is not None or equilibrate else _moments_near_zero(X)
    if near is not None:
        return *near, *without_mean(linalg.blas.dsyrk(1.0, X.T, trans=1, lower=1))
    mean, lengths, gram = np.empty(d), np.empty(d), np.zeros((n, n), order="F")
    for columns in _column_blocks(X):  # saves a centred copy of X
        mean[columns], centred, lengths[columns] = centred_rows(X[:, columns], weights)
        if equilibrate:
            centred *= _column_scale(lengths[columns], equilibrate)
        gram = linalg.blas.dsyrk(1.0, centred.T, 1.0, gram, trans=1, lower=1, overwrite_c=1)
    normal, gram = without_mean(gram, weights)
    return mean, lengths, normal, gram


def without_mean(
    gram: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The normal of Q and QᵀGQ of a Gram matrix, of which the lower half counts; see `Span`.

    G, which is lost if it is in Fortran's order, need not be of centred rows: Q is orthogonal to
    their mean.
    """
    n = len(gram)
    normal = np.ones(n) if weights is None else np.sqrt(weights)
    normal /= np.linalg.norm(normal)
    normal[-1] += 1  # the Householder reflection of s to the last axis
    normal /= np.sqrt(normal[-1])
    with threads_to_factorise(n):
        # QᵀGQ is a symmetric update of rank two; of centred rows its last row is zero.
        image = linalg.blas.dsymv(1.0, gram, normal, lower=1)
        image -= (normal @ image) / 2 * normal
        gram = linalg.blas.dsyr2(-1.0, normal, image, a=gram, lower=1, overwrite_a=1)
    return normal, lapack.leading_block(gram, n - 1)


def spread(
    X: np.ndarray, weights: np.ndarray | None, mean: np.ndarray, normal: np.ndarray, U: np.ndarray
) -> np.ndarray:
    """(X - mean)ᵀ diag(s) Q U, (d, k), with s = √weight and the normal of Q; see `Span`."""
    sums = turned(normal, U)
    if weights is not None:
        sums = (np.sqrt(weights) * sums.T).T
    lifted = np.empty((len(mean), *U.shape[1:]))
    for columns in _column_blocks(X):
        block = X[:, columns].astype(np.float64, copy=False)
        lifted[columns] = (sums.T @ block).T  # faster than block.T @ sums
    lifted -= np.multiply.outer(mean, sums.sum(axis=0))
    return lifted


def turned(normal: np.ndarray, U: np.ndarray) -> np.ndarray:
    """QU, of shape (n, k), with the normal of Q."""
    image = np.multiply.outer(normal, -(normal[:-1] @ U))
    image[:-1] += U
    return image


def _row_space_by_qr(
    X: Any, weights: np.ndarray | None, *, equilibrate: bool, center: bool = True
) -> tuple[Basis, np.ndarray]:
    """`row_space` of rows for which a Gram matrix has too few digits, or that are not centred."""
    mean, centred, lengths = centred_rows(X, weights, center)
    scale = _column_scale(lengths, equilibrate)
    centred *= scale
    basis, triangle = lapack.qr(centred.T)
    # Pivoting reveals the rank; it is cheaper on an n x n matrix than on a d x n one.
    turn, pivoted, _ = linalg.qr(triangle, pivoting=True, check_finite=False)
    sizes = np.abs(np.diag(pivoted))
    directions = basis @ turn
    real = sizes > _cut(X) * sizes[0]
    real &= above_rounding(sizes, directions, rounding_of_rows(mean, len(centred), weights) * scale)
    basis, turn = directions[:, real], turn[:, real]
    matrix, inverse = scale[:, None] * basis, basis.T * reciprocal(scale)
    known = variances_of(lengths, len(centred), weights, center)
    return Explicit(mean, matrix, inverse, known), _unweighted(triangle.T @ turn, weights)


def principal_components(
    X: Any,
    weights: np.ndarray | None = None,
    *,
    equilibrate: bool = True,
    center: bool = True,
) -> tuple[Basis, np.ndarray]:
    """Basis in which columns of an ill-conditioned X are uncorrelated, and the rows in it.

    By an SVD of X. If `equilibrate`, columns are scaled to unit length first, so that a column in
    small units counts as much as any other; else the basis is orthonormal, so that a ridge on the
    features is the same ridge in it. Directions below max(n, d) eps of the largest are left out.
    """
    mean, centred, lengths = centred_rows(X, weights, center)
    rounding = rounding_of_rows(mean, len(centred), weights)
    own = Whitened.of_centred(centred, lengths, rounding, equilibrate)
    known = variances_of(lengths, len(centred), weights, center)
    basis = Explicit(mean, own.weights * own.values, own.axes.T, known)
    return basis, _unweighted(own.basis * own.values, weights)


def _unweighted(rows: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    return rows if weights is None else rows / np.sqrt(weights)[:, None]


def _moments_near_zero(X: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and lengths of the columns, if no mean is far from zero and BLAS takes X as it is."""
    if not (isinstance(X, np.ndarray) and X.dtype == np.float64 and X.flags.c_contiguous):
        return None
    some = X[:: 1 + len(X) // _SOME_ROWS]
    if (np.abs(some.mean(axis=0)) > 2 * some.std(axis=0)).any():
        return None
    mean = X.mean(axis=0)
    squares = np.einsum("ij,ij->j", X, X) - len(X) * mean**2  # exact if the mean is near 0
    lengths = np.sqrt(np.maximum(squares, 0))
    is_near = (np.sqrt(len(X)) * np.abs(mean) <= _NEAR * lengths).all()
    return (mean, lengths) if is_near else None


def _column_blocks(X: Any) -> Iterator[slice]:
    width = max(1, _BLOCK_NUMBERS // X.shape[0])
    return (slice(start, start + width) for start in range(0, X.shape[1], width))


def _column_scale(lengths: np.ndarray, equilibrate: bool) -> np.ndarray:
    return reciprocal(lengths) if equilibrate else (lengths > 0).astype(float)


def _cut(X: np.ndarray) -> float:
    return max(X.shape) * _EPS
