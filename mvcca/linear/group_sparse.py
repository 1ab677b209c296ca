"""The convex problem of LGCFL and JRL: least squares that drop whole groups of features.

Losses are quadratic, computed from second moments; no rows or labels are needed to minimise them.
"""

from __future__ import annotations

from dataclasses import dataclass
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
        E = self.basis
        slopes = self._norms(self.B if E is None else E.T @ self.B, 0.0)
        keeps = float((slopes / self.penalties).max())
        if keeps <= 1:  # the subgradient at U = 0 holds zero
            warn(
                f"{title}: reg is so large that it drops every feature, and all scores are 0. "
                f"Multiply it by less than {keeps:.3g}."
            )
            return np.zeros((len(self.penalties), self.B.shape[1])), np.array([self.constant])
        norms = np.full(len(self.penalties), linalg.norm(self.B) / np.trace(self.M))
        shares = self.penalties / np.bincount(self.groups)[self.groups]  # of a group's penalty
        epsilon = None
        objectives: list[float] = []
        for _ in range(max_iter):
            T = norms / self.penalties
            inner = self.M * T if E is None else self.M @ (E * T @ E.T)
            inner[np.diag_indices_from(inner)] += 1
            with threads_to_factorise(len(self.M)):
                V = linalg.solve(inner, self.B, overwrite_a=True)
            U = T[:, None] * (V if E is None else E.T @ V)
            if epsilon is None:
                epsilon = _SMOOTHING * self._norms(U, 0.0).max()
            norms, Z = self._norms(U, epsilon), U if E is None else E @ U
            quadratic = np.sum(Z * (self.M @ Z)) / 2 - np.sum(Z * self.B)
            objectives.append(float(quadratic + self.constant + np.sum(shares * norms)))
            if len(objectives) > 1 and objectives[-2] - objectives[-1] <= tol * objectives[-1]:
                return U, np.array(objectives)
        warn(
            f"{title}: the objective still fell by more than tol={tol:g} of itself after "
            f"max_iter={max_iter} steps. Raise max_iter, or tol.",
            ConvergenceWarning,
        )
        return U, np.array(objectives)

    def _norms(self, U: np.ndarray, epsilon: float) -> np.ndarray:
        """√(‖U_g‖² + ε²) of each feature's group, (d,)."""
        squares = np.bincount(self.groups, np.einsum("ij,ij->i", U, U))
        return np.sqrt(squares + epsilon**2)[self.groups]
