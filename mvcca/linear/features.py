"""Explicit features φ with φ(x)ᵀφ(x') ≈ k(x, x'), for a kernel of rows or a label similarity.

They turn a kernel method into a linear one, and sums over pairs of label vectors into sums over
rows. A map is drawn from a sample and applied block by block, so that statistics of features never
need more than one block of them in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from scipy import linalg

from mvcca.blocks import as_block, namespace
from mvcca.machine import lapack

_SQUARED = 1e-150, 1e150  # numbers whose squares are floats
ROUNDING = 10 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class FourierFeatures:
    """Random Fourier features c cos((x - o)ᵀw_j + b_j) of a kernel k(x - x')."""

    # The frequencies w_j are drawn from the Fourier transform of the kernel (Rahimi and Recht,
    # "Random Features for Large-Scale Kernel Machines", NIPS 2007). With random phases b_j,
    # products of features have the expectation c² m k / 2; with pairs of the phases 0 and -π/2,
    # which make cosine and sine, they also depend on x - x' only. The error is of order 1 / √m.

    frequencies: np.ndarray  # (width, m)
    phases: np.ndarray  # (m,)
    origin: np.ndarray | None = None  # o, (width,), near the mean: keeps digits of far rows
    scale: float = 1.0  # c

    @classmethod
    def of_rbf(
        cls,
        gamma: float,
        width: int,
        n_features: int,
        rng: np.random.RandomState,
        origin: np.ndarray | None = None,
        factors: np.ndarray | None = None,
    ) -> Self:
        """Draw features of exp(-γ ‖x - x'‖²), w ~ N(0, 2γ I), with random phases.

        Columns of x are multiplied by `factors`, if there are some.

        No scale is needed: a ridge in units of the mean variance does not see it.
        """
        frequencies = np.sqrt(2 * gamma) * rng.standard_normal((width, n_features))
        phases = rng.uniform(0, 2 * np.pi, n_features)
        if factors is not None:
            frequencies *= factors[:, None]
        if origin is not None:  # the same function of rows, whatever the origin
            phases = (phases + origin @ frequencies) % (2 * np.pi)
        return cls(frequencies, phases, origin)

    @classmethod
    def of_pairs(cls, frequencies: np.ndarray, origin: np.ndarray) -> Self:
        """Cosine and sine of each frequency, scaled to φ(x)ᵀφ(x) = 1."""
        phases = np.repeat([0, -np.pi / 2], frequencies.shape[1])
        return cls(np.tile(frequencies, 2), phases, origin, 1 / np.sqrt(frequencies.shape[1]))

    @property
    def width(self) -> int:
        """Number of columns of the rows."""
        return self.frequencies.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.frequencies.shape[1]

    def __call__(self, X: Any) -> np.ndarray:
        """φ of every row, (n_rows, n_features)."""
        # Angles grow with the rows: those of float32 would be off by many turns.
        angles = as_block(X).about(self.origin) @ self.frequencies
        angles += as_block(angles).placed(self.phases)
        xp = namespace(angles)
        features = xp.cos(angles)
        features *= self.scale
        return xp.astype(features, X.dtype, copy=False)

    def basis(self, X: Any) -> np.ndarray:
        """Basis functions of every row, (n_rows, n_functions)."""
        return self(X)

    def in_basis(
        self, weights: np.ndarray, mean: np.ndarray, variances: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same: the basis functions are the features."""
        return weights, mean, variances


@dataclass(frozen=True, eq=False)
class LandmarkFeatures:
    """Nyström features φ(x) = L⁻¹ k(Z, x), with L Lᵀ = k(Z, Z) of the landmarks Z."""

    # Products of features are the kernel projected onto the span of the landmarks (Williams and
    # Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2000): exact between rows
    # that are landmarks, so all training rows as landmarks make the kernel itself explicit.
    # Landmarks that add nothing beyond rounding (repeated rows, say) are left out. Always float64.

    kernel: Callable[[Any, Any], np.ndarray]  # kernel(X, Z) is the matrix of k(x, z)
    landmarks: Any  # (n_features, width), moved by -origin, or positions of columns; if some are
    # left out, in the order of pivots
    factor: np.ndarray | None  # L, (n_features, n_features), lower triangular; None if not known
    origin: np.ndarray | None  # (width,), if the kernel sees only differences
    width: int  # of the rows

    @classmethod
    def at(
        cls,
        landmarks: Any,
        kernel: Callable[[Any, Any], np.ndarray],
        K: np.ndarray,
        width: int,
        origin: np.ndarray | None = None,
        what: str = "kernel",
    ) -> Self:
        """Make features from landmarks and their kernel matrix K; `what` names K in errors."""
        # L and the order of rows, as many as are above rounding, with K[order][:, order] = L Lᵀ.
        size = np.abs(K).max()
        with np.errstate(under="ignore"):
            least = ROUNDING * len(K) * max(K.diagonal().max(), 0)
        factor, failed = linalg.lapack.dpotrf(K, lower=1, clean=1)
        if not failed and (factor.diagonal() ** 2 > least).all():
            return cls(kernel, landmarks, np.ascontiguousarray(factor), origin, width)
        factor, pivots, rank, _ = linalg.lapack.dpstrf(K, tol=least, lower=1)
        order = pivots - 1
        factor = np.tril(factor)[:, :rank]
        rest = order[rank:]
        with np.errstate(under="ignore"):
            left = K[np.ix_(rest, rest)] - factor[rank:] @ factor[rank:].T
        if np.abs(left).max(initial=0) > 1e-6 * size:
            values, _ = lapack.top_eigenpairs(K, len(K))
            raise ValueError(
                f"Expected a positive semi-definite {what}, got eigenvalues from {values[0]:.3g} "
                f"to {values[-1]:.3g} on the landmarks."
            )
        if rank == 0:  # a kernel of zeros: one constant feature, which `Problem` refuses
            rank, factor = 1, np.ones((1, 1))
        factor, order = np.ascontiguousarray(factor[:rank]), order[:rank]
        return cls(kernel, landmarks[order], factor, origin, width)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.landmarks.shape[0])

    @cached_property
    def lower(self) -> np.ndarray:
        """L."""
        if self.factor is not None:
            return self.factor
        K = self.kernel(self.landmarks, self.landmarks)
        return np.ascontiguousarray(linalg.cholesky(K, lower=True, overwrite_a=True))

    def __call__(self, X: Any) -> np.ndarray:
        """φ of every row, (n_rows, n_features)."""
        return linalg.solve_triangular(
            self.lower, self.basis(X).T, lower=True, overwrite_b=True, check_finite=False
        ).T

    def are_landmarks(self, features: np.ndarray) -> np.ndarray:
        """Which rows of features are those of landmarks, but for rounding."""
        direction = np.random.RandomState(0).standard_normal(self.n_features)
        places, own = features @ direction, np.sort(self.lower @ direction)
        after = np.searchsorted(own, places)
        nearest = [own[np.clip(i, 0, len(own) - 1)] for i in (after - 1, after)]
        size = np.sqrt((self.lower**2).sum(axis=1).max())
        return np.abs(np.subtract(nearest, places)).min(axis=0) <= 1e-10 * size

    def basis(self, X: Any) -> np.ndarray:
        """k(x, z) for all landmarks z."""
        return self.kernel(as_block(X).about(self.origin).matrix, self.landmarks)

    def in_basis(
        self, weights: np.ndarray, mean: np.ndarray, variances: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Weights and mean of k(x, z), of which φ = L⁻¹ k, and sizes in any order of landmarks.

        The sizes fix signs, in place of variances.
        """
        inverse, _ = linalg.lapack.dtrtri(self.lower, lower=1)
        sizes = sizes_in_any_order(variances.sum(), self.n_features)
        with np.errstate(under="ignore"):
            return inverse.T @ weights, self.lower @ mean, sizes


# Maps of rows to features, or to the `basis` functions of which features are combinations.
FeatureMap: TypeAlias = FourierFeatures | LandmarkFeatures


def sizes_in_any_order(variance: float, n_features: int) -> np.ndarray:
    """Variances of basis functions, for signs that do not depend on the order of landmarks."""
    return np.full(n_features, np.clip(variance, *_SQUARED) ** 2)
