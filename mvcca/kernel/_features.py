"""Explicit features φ with φ(x)ᵀφ(x') ≈ k(x, x'), which turn a kernel method into a linear one.

A map is drawn from a sample of rows and applied to rows block by block, so that statistics of
features never need more than one block of them in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from scipy.sparse import issparse

from mvcca._backend import is_device_array, namespace, placed, promoted
from mvcca.config import block_size
from mvcca.kernel._kernels import Kernel, columns_of
from mvcca.problem import Basis, Explicit
from mvcca.sources import RowSource
from mvcca.statistics import moved, shift_of
from mvcca.views import in_memory

_ROUNDING = 10 * np.finfo(np.float64).eps


class FeatureMap(Protocol):
    """Map rows to features, or to the `basis` functions of which features are combinations."""

    @property
    def width(self) -> int:
        """Number of columns of the rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def __call__(self, X: Any) -> Any:
        """φ of every row, (n_rows, n_features)."""

    def basis(self, X: Any) -> np.ndarray:
        """Basis functions of every row, (n_rows, n_functions)."""

    def coordinates(self) -> Basis | None:
        """φ in terms of the basis functions; None if they are the same."""

    def spread(self, variances: np.ndarray) -> np.ndarray:
        """Squared sizes of the basis functions, by which signs are fixed, from variances of φ."""


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Random Fourier features of exp(-γ ‖x - x'‖²): cos(xᵀw_j + b_j), w ~ N(0, 2γ I) [1]_.

    Twice their mean product over j is the kernel in expectation, the error of order 1/√m. The
    factor is left out, as is any other: a ridge in units of the mean variance does not see it.

    Attributes
    ----------
    frequencies : ndarray, shape (width, n_features)
    phases : ndarray, shape (n_features,)

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    """

    frequencies: np.ndarray
    phases: np.ndarray

    @classmethod
    def draw(
        cls, gamma: float, width: int, n_features: int, rng: np.random.RandomState
    ) -> FourierFeatures:
        frequencies = np.sqrt(2 * gamma) * rng.standard_normal((width, n_features))
        return cls(frequencies, rng.uniform(0, 2 * np.pi, n_features))

    @property
    def width(self) -> int:
        return self.frequencies.shape[0]

    @property
    def n_features(self) -> int:
        return self.frequencies.shape[1]

    def __call__(self, X: Any) -> np.ndarray:
        # Angles grow with the rows: those of float32 would be off by many turns.
        if is_device_array(X):
            xp, rows = namespace(X), promoted(X, np.dtype(np.float64))
            angles = rows @ placed(self.frequencies, rows) + placed(self.phases, rows)
            return xp.astype(xp.cos(angles), X.dtype)
        angles = np.asarray(X.astype(np.float64, copy=False) @ self.frequencies)
        angles += self.phases
        return np.cos(angles, out=angles).astype(X.dtype, copy=False)

    def basis(self, X: Any) -> np.ndarray:
        return self(X)

    def coordinates(self) -> None:
        return None

    def spread(self, variances: np.ndarray) -> np.ndarray:
        return variances


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Nyström features φ(x) = L⁻¹ k(Z, x), with L Lᵀ = k(Z, Z) of the landmarks Z [1]_.

    Products of features are the kernel projected onto the span of the landmarks: exact between
    rows that are landmarks, so all training rows as landmarks make the kernel itself explicit.
    Landmarks that add nothing beyond rounding (repeated rows, say) are left out. Always float64.

    Attributes
    ----------
    kernel : Kernel
    landmarks : matrix, shape (n_features, width), or ndarray of int
        Rows in pivot order, moved by -origin; of a precomputed kernel, positions of its columns.
    factor : ndarray, shape (n_features, n_features)
        L, lower triangular.
    origin : ndarray, shape (width,), or None
        Mean of the sample, where the kernel sees only differences and rows are dense: rows that are
        close to each other and far from zero keep their digits.

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2000.
    """

    kernel: Kernel
    landmarks: Any
    factor: np.ndarray
    origin: np.ndarray | None
    width: int

    @classmethod
    def at(cls, kernel: Kernel, X: Any, rows: np.ndarray) -> LandmarkFeatures:
        """Features with some rows of X as landmarks.

        Raises
        ------
        ValueError
            If k of the landmarks is not finite, symmetric and positive semi-definite.
        """
        chosen = in_memory(X[rows])
        if kernel.is_precomputed:
            origin, landmarks = None, rows
            K = columns_of(chosen, rows)
        else:
            origin = _origin(kernel, X)
            landmarks = _moved(chosen, origin)
            K = kernel(landmarks, landmarks)
        factor, order = _pivoted_cholesky(K)
        return cls(kernel, landmarks[order], factor, origin, X.shape[1])

    @property
    def n_features(self) -> int:
        return len(self.factor)

    def __call__(self, X: Any) -> np.ndarray:
        return linalg.solve_triangular(
            self.factor, self.basis(X).T, lower=True, overwrite_b=True, check_finite=False
        ).T

    def basis(self, X: Any) -> np.ndarray:
        """k(x, z) for all landmarks z."""
        if self.kernel.is_precomputed:
            return columns_of(X, self.landmarks)
        return self.kernel(_moved(X, self.origin), self.landmarks)

    def coordinates(self) -> Basis:
        """φ = k(x, Z) L⁻ᵀ."""
        inverse, _ = linalg.lapack.dtrtri(self.factor, lower=1)
        return Explicit(np.zeros(self.n_features), inverse.T, self.factor.T)

    def spread(self, variances: np.ndarray) -> np.ndarray:
        return np.full(self.n_features, variances.sum() ** 2)  # the same in any order of rows


def greedy_landmarks(kernel: Kernel, X: Any, n_landmarks: int) -> np.ndarray:
    """Rows that an incomplete Cholesky decomposition of k(X, X) takes as pivots, in its order.

    Each is the row that those before it explain least [1]_. Takes n_rows x n_landmarks numbers of
    memory and as many values of the kernel.

    References
    ----------
    .. [1] Bach and Jordan, "Kernel Independent Component Analysis", JMLR 2002, section 4.
    """
    X = in_memory(X)
    if kernel.is_precomputed:
        residual = np.asarray(X.diagonal(), dtype=np.float64)
    else:
        X = _moved(X, _origin(kernel, X))
        residual = kernel.diagonal(X)
    least = _ROUNDING * len(residual) * residual.max()
    factor = np.empty((X.shape[0], n_landmarks), order="F")
    pivots: list[int] = []
    for j in range(n_landmarks):
        pivot = int(residual.argmax())
        if residual[pivot] <= least:
            break
        one = slice(pivot, pivot + 1)
        column = columns_of(X, one) if kernel.is_precomputed else kernel(X, X[one])
        column = column[:, 0] - factor[:, :j] @ factor[pivot, :j]
        factor[:, j] = column / np.sqrt(residual[pivot])
        residual = residual - factor[:, j] ** 2
        residual[pivot] = 0  # never twice, whatever rounding leaves
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp)


def _origin(kernel: Kernel, X: Any) -> np.ndarray | None:
    """A shift of the rows that improves precision: about the mean of dense rows.

    Sparse rows are shifted in nearly full columns only, to keep their zeros.
    """
    X = in_memory(X[: block_size(8 * X.shape[1])]) if isinstance(X, RowSource) else X
    if not kernel.sees_only_differences:
        return None
    if issparse(X):
        shift = shift_of(X)
        return shift if shift.any() else None
    return X.mean(axis=0, dtype=np.float64)


def _moved(X: Any, origin: np.ndarray | None) -> Any:
    if origin is None:
        return X.astype(np.float64)
    if issparse(X) and not origin.all():
        return moved(X, origin)
    return (X.toarray() if issparse(X) else X) - origin


def _pivoted_cholesky(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and the order of rows, as many as are above rounding, with K[order][:, order] = L Lᵀ."""
    if not np.isfinite(K).all():
        raise ValueError("The kernel is not finite on the training rows. Rescale them.")
    size = np.abs(K).max()
    if np.abs(K - K.T).max() > 1e-6 * size:
        raise ValueError("Expected a symmetric kernel, k(x, y) = k(y, x), got another.")
    least = _ROUNDING * len(K) * max(K.diagonal().max(), 0)
    factor, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=least, lower=1)
    order = pivots - 1
    factor = np.tril(factor)[:, :rank]
    left = K.diagonal()[order] - np.einsum("ij,ij->i", factor, factor)
    if left.min(initial=0) < -1e-6 * size or (rank == 0 and size > 0):
        raise ValueError(
            "Expected a positive semi-definite kernel, got one with negative eigenvalues, of which "
            "no features can be made."
        )
    if rank == 0:  # a kernel of zeros: one constant feature, which `Problem` refuses
        return np.ones((1, 1)), order[:1]
    return np.ascontiguousarray(factor[:rank]), order[:rank]
