"""The dense problem of wide views whose rows are on a device, solved there.

`DeviceWhitener` stands for `Whitener`, and functions for those of `mvcca.machine.lapack`, by the
operators of the array API. Matrices come from the host, and weights and values return to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mvcca.blocks import as_block, beside, namespace, to_host
from mvcca.machine import lapack
from mvcca.machine.config import get_config
from mvcca.machine.devices import mover
from mvcca.machine.memory import WIDE
from mvcca.problem.whitener import Whitener
from mvcca.views import Views

_STEPS = 5  # of power iteration
_SMALLEST = 1e-3  # of the largest singular value, that squares tell from rounding


def device_of(views: Views) -> Any:
    """An array on the device on which to solve for the maps of views, or None: on the host."""
    if max(views.widths.values()) < WIDE:
        return None
    blocks = views.blocks.values()
    like = next((block.matrix for block in blocks if block.on_device), None)
    if like is None and (name := get_config().rows_device) is not None:
        like = mover(name)(np.zeros((1, 1)))
    return like


@dataclass(frozen=True, eq=False)
class DeviceWhitener(Whitener):
    """A `Whitener` whose `factor` is Wᵀ of the scaled B, (rank, d), on a device."""

    @classmethod
    def beside(cls, like: Any, B: np.ndarray, rounding: np.ndarray | float = 0.0) -> Self:
        """Factorise B on the device of an array; what lacks rank, on the host."""
        variances = np.diag(B)
        scale = np.divide(1, np.sqrt(variances), out=np.zeros(len(B)), where=variances > 0)
        columns = np.flatnonzero(scale)
        d, most = scale[columns], float(np.max(rounding * scale, initial=0))
        kept = B if len(columns) == len(B) else B[np.ix_(columns, columns)]
        xp, d_there = namespace(like), beside(d, like)
        correlation = beside(kept, like) * d_there * d_there[:, None]
        try:
            L = xp.linalg.cholesky(correlation)
            inverse = xp.linalg.inv(L)
        except Exception:  # each library has its own error of linear algebra
            smallest = largest = float("nan")
        else:
            largest, smallest = _extreme_eigenvalues(L, inverse)
        if smallest > max(10 * len(d) * np.finfo(float).eps * largest, most**2):
            condition, noise = float(np.sqrt(largest / smallest)), most / float(np.sqrt(smallest))
            return cls(scale, inverse, columns, False, len(d), condition, noise)
        host = Whitener.of(B, rounding)  # which reveals the rank
        basis = beside(host.factor.T, like)
        return cls(scale, basis, columns, False, host.rank, host.condition, host.noise)

    def project(self, C: Any) -> Any:
        """WᵀC on the device, of shape (rank, m)."""
        C = self._placed(C)
        if len(self.columns) < len(self.scale):
            C = namespace(C).take(C, self._placed(self.columns), axis=0)
        return self.factor @ (C * self._placed(self.scale[self.columns])[:, None])

    def lift(self, U: Any) -> np.ndarray:
        """WU in host memory, of shape (d, m)."""
        weights = np.zeros((len(self.scale), U.shape[1]))
        lifted = namespace(self.factor).matrix_transpose(self.factor) @ self._placed(U)
        weights[self.columns] = to_host(lifted) * self.scale[self.columns, None]
        return weights

    def squared_norm(self) -> float:
        """‖W‖² (Frobenius), which is tr B⁻¹ if no direction was left out."""
        squares = to_host(namespace(self.factor).sum(self.factor * self.factor, axis=0))
        return float(squares @ self.scale[self.columns] ** 2)

    def _placed(self, values: Any) -> Any:
        return values if as_block(values).on_device else beside(values, self.factor)


def top_singular(A: Any, k: int) -> tuple[Any, np.ndarray, Any]:
    """`lapack.top_singular` of a device array: singular vectors on the device, if they are few."""
    xp, tall = namespace(A), A.shape[0] >= A.shape[1]
    if 4 * k < min(A.shape):
        At = xp.matrix_transpose(A)
        squares, vectors = top_eigenpairs(At @ A if tall else A @ At, k)
        values = np.sqrt(np.maximum(squares[::-1], 0))
        vectors = xp.flip(vectors, axis=1)
        if values[k - 1] > _SMALLEST * values[0]:
            other = (A if tall else At) @ vectors / beside(values[:k], A)
            return (other, values, vectors) if tall else (vectors, values, other)
    left, values, right = lapack.svd(to_host(A))
    return left, values, right.T


def top_eigenpairs(A: Any, k: int) -> tuple[np.ndarray, Any]:
    """All eigenvalues of a symmetric A, increasing, and the eigenvectors of the k largest."""
    values, vectors = namespace(A).linalg.eigh(A)
    return to_host(values), vectors[:, max(0, A.shape[1] - k) :]


def _extreme_eigenvalues(L: Any, inverse: Any) -> tuple[float, float]:
    """λ_max and λ_min of LLᵀ, within about a third, as `whitener.extreme_eigenvalues`."""
    xp = namespace(L)
    start = beside(np.random.RandomState(0).standard_normal(L.shape[0]), L)
    largest = smallest = start
    for _ in range(_STEPS):
        largest = largest / xp.linalg.vector_norm(largest)
        largest = L @ (xp.matrix_transpose(L) @ largest)
        smallest = smallest / xp.linalg.vector_norm(smallest)
        smallest = xp.matrix_transpose(inverse) @ (inverse @ smallest)
    return float(xp.linalg.vector_norm(largest)), float(1 / xp.linalg.vector_norm(smallest))
