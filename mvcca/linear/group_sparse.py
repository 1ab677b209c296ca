"""The convex problem of LGCFL and JRL: least squares that drop whole groups of features.

Losses are sums of quadratic terms, computed from second moments; no rows or labels are needed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from mvcca.blocks import as_block
from mvcca.machine.threads import threads_to_factorise
from mvcca.machine.warnings import warn

_SMOOTHING = 1e-6  # of group norms, in units of the largest


def centred_targets(Z: Any, Y: Any, shares: np.ndarray) -> tuple[np.ndarray, float]:
    """ZᵀȲ, dense, and half the mean of ‖ȳ‖² under `shares`, with ȳ = y - Σ shares y.

    Sparse targets, (n, n_labels) with a column for each of many labels, stay sparse.
    """
    targets = as_block(Y).promoted(np.dtype(np.float64))
    mean = targets.cross(shares)
    return targets.centred_cross(Z, mean).T, float(shares @ targets.squared_norms(mean)) / 2


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A term ½ Σ_pq tr(U_pᵀ M_pq U_q) - Σ_p tr(B_pᵀ U_p) + c of a loss; terms add."""

    M: Mapping[tuple[str, str], np.ndarray] = field(default_factory=dict)  # (r_p, r_q)
    B: Mapping[str, np.ndarray] = field(default_factory=dict)  # (r_p, m)
    constant: float = 0.0  # c

    def __add__(self, other: Quadratic) -> Quadratic:
        M = {**self.M, **{k: self.M[k] + v if k in self.M else v for k, v in other.M.items()}}
        B = {**self.B, **{k: self.B[k] + v if k in self.B else v for k, v in other.B.items()}}
        return Quadratic(M, B, self.constant + other.constant)

    def __rmul__(self, factor: float) -> Quadratic:
        M = {key: factor * block for key, block in self.M.items()}
        B = {name: factor * block for name, block in self.B.items()}
        return Quadratic(M, B, factor * self.constant)

    def stacked(self) -> tuple[np.ndarray, np.ndarray, float]:
        """M, B and c over all U_p, one below the other."""
        sizes = {name: len(block) for name, block in self.B.items()}
        rows = [[self.M.get((p, q), np.zeros((sizes[p], sizes[q]))) for q in sizes] for p in sizes]
        return np.block(rows), np.concatenate(list(self.B.values())), self.constant


@dataclass(frozen=True, eq=False)
class GroupSparse:
    """Minimise ½ tr(UᵀMU) - tr(BᵀU) + c + Σ_g λ_g ‖U_g‖_F over U of shape (d, m)."""

    # Norms are smoothed, ‖U_g‖ → √(‖U_g‖² + ε²), and each is majorised by the quadratic that
    # touches it at the last U (Hunter and Lange, "A Tutorial on MM Algorithms", The American
    # Statistician, 2004), so that a step is a linear system and never increases the objective:
    #
    #     U ← (M + diag(λ_g / ‖U_g‖))⁻¹ B = T (M T + I)⁻¹ B,   T = diag(‖U_g‖ / λ_g).
    #
    # The second form divides by no norm. In a basis of the rows, M = Eᵀ M' E and B = Eᵀ B', it is
    # U = T Eᵀ (M' E T Eᵀ + I)⁻¹ B': a system as large as M'.

    M: np.ndarray  # (r, r), positive semi-definite
    B: np.ndarray  # (r, m)
    constant: float  # makes the objective a sum of squares and norms
    penalties: np.ndarray  # (d,), positive: λ of the group of each feature
    groups: np.ndarray  # (d,) of int
    basis: np.ndarray | None = None  # E, (r, d); None is the identity

    def solve(self, max_iter: int, tol: float, title: str) -> tuple[np.ndarray, np.ndarray]:
        """The minimiser, shape (d, m), and the objective after every step."""
        slopes = self._norms(self.B if self.basis is None else self.basis.T @ self.B, 0.0)
        keeps = float((slopes / self.penalties).max())
        if keeps <= 1:  # the subgradient at U = 0 holds zero
            warn(
                f"{title}: reg is so large that it drops every feature, and all scores are 0. "
                f"Multiply it by less than {keeps:.3g}."
            )
            return np.zeros((len(self.penalties), self.B.shape[1])), np.array([self.constant])
        norms = np.full(len(self.penalties), linalg.norm(self.B) / np.trace(self.M))
        epsilon = None
        objectives: list[float] = []
        for _ in range(max_iter):
            with threads_to_factorise(len(self.M)):
                U = self._step(norms / self.penalties)
            if epsilon is None:
                epsilon = _SMOOTHING * self._norms(U, 0.0).max()
            norms = self._norms(U, epsilon)
            objectives.append(self._objective(U, norms))
            if len(objectives) > 1 and objectives[-2] - objectives[-1] <= tol * objectives[-1]:
                return U, np.array(objectives)
        warn(
            f"{title}: the objective still fell by more than tol={tol:g} of itself after "
            f"max_iter={max_iter} steps. Raise max_iter, or tol.",
            ConvergenceWarning,
        )
        return U, np.array(objectives)

    def _step(self, T: np.ndarray) -> np.ndarray:
        inner = self.M * T if self.basis is None else self.M @ (self.basis * T @ self.basis.T)
        inner[np.diag_indices_from(inner)] += 1
        V = linalg.solve(inner, self.B, overwrite_a=True)
        return T[:, None] * (V if self.basis is None else self.basis.T @ V)

    def _objective(self, U: np.ndarray, norms: np.ndarray) -> float:
        V = U if self.basis is None else self.basis @ U
        sizes = np.bincount(self.groups)[self.groups]
        quadratic = np.sum(V * (self.M @ V)) / 2 - np.sum(V * self.B)
        return float(quadratic + self.constant + np.sum(self.penalties * norms / sizes))

    def _norms(self, U: np.ndarray, epsilon: float) -> np.ndarray:
        """√(‖U_g‖² + ε²) of each feature's group, (d,)."""
        squares = np.bincount(self.groups, np.einsum("ij,ij->i", U, U))
        return np.sqrt(squares + epsilon**2)[self.groups]
