"""The convex problem of LGCFL and JRL: least squares that drop whole groups of features.

Losses are quadratic, computed from second moments; no rows or labels are needed to minimise them.
The problem is convex, so that starts do not matter; `mvcca.problem.ascent` climbs one that is not.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from mvcca.blocks import as_block
from mvcca.machine.progress import steps
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


class Loss(Protocol):
    """A quadratic loss ½ tr(UᵀMU) - tr(BᵀU) + c of U of shape (d, m)."""

    @property
    def slopes(self) -> np.ndarray:
        """B, (d, m)."""

    @property
    def curvature(self) -> float:
        """The trace of M."""

    @property
    def constant(self) -> float:
        """c, which makes the loss a sum of squares."""

    def minimised(self, T: np.ndarray) -> tuple[np.ndarray, float]:
        """The U that minimises the loss plus ½ tr(UᵀT⁻¹U), T diagonal, and the loss at U."""


@dataclass(frozen=True, eq=False)
class MomentLoss:
    """A loss by its matrices, perhaps in a basis of the rows: M = EᵀM'E and B = EᵀB'.

    A step is U = T Eᵀ (M' E T Eᵀ + I)⁻¹ B', a system as large as M'.
    """

    matrix: np.ndarray  # M', (r, r), positive semi-definite
    targets: np.ndarray  # B', (r, m)
    constant: float
    basis: np.ndarray | None = None  # E, (r, d); None is the identity

    @property
    def slopes(self) -> np.ndarray:
        """EᵀB', (d, m)."""
        return self.targets if self.basis is None else self.basis.T @ self.targets

    @property
    def curvature(self) -> float:
        """The trace of M', which is that of M."""
        return float(np.trace(self.matrix))  # E has orthonormal rows

    def minimised(self, T: np.ndarray) -> tuple[np.ndarray, float]:
        """The U that minimises the loss plus ½ tr(UᵀT⁻¹U), T diagonal, and the loss at U."""
        E, M, B = self.basis, self.matrix, self.targets
        inner = M * T if E is None else M @ (E * T @ E.T)
        inner[np.diag_indices_from(inner)] += 1
        with threads_to_factorise(len(M)):
            V = linalg.solve(inner, B, overwrite_a=True)
        U = T[:, None] * (V if E is None else E.T @ V)
        Z = U if E is None else E @ U
        return U, float(np.sum(Z * (M @ Z)) / 2 - np.sum(Z * B) + self.constant)


def minimised_in_groups(
    loss: Loss,
    penalties: np.ndarray,
    groups: np.ndarray,
    max_iter: int,
    tol: float,
    title: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise a loss plus Σ_g λ_g ‖U_g‖_F; return U, (d, m), and the objective after every step.

    `penalties`, (d,), are the positive λ of the group of each feature, and `groups`, (d,), are
    numbers of groups.
    """
    # Norms are smoothed, ‖U_g‖ → √(‖U_g‖² + ε²), and each is majorised by the quadratic that
    # touches it at the last U (Hunter and Lange, "A Tutorial on MM Algorithms", The American
    # Statistician, 2004), so that a step is a linear system and never increases the objective:
    #
    #     U ← (M + diag(λ_g / ‖U_g‖))⁻¹ B = T (M T + I)⁻¹ B,   T = diag(‖U_g‖ / λ_g).
    #
    # The second form divides by no norm.
    B = loss.slopes
    keeps = float((_norms(B, groups, 0.0) / penalties).max())
    if keeps <= 1:  # the subgradient at U = 0 holds zero
        warn(
            f"{title}: reg is so large that it drops every feature, and all scores are 0. "
            f"Multiply it by less than {keeps:.3g}."
        )
        return np.zeros_like(B), np.array([loss.constant])
    norms = np.full(len(B), linalg.norm(B) / loss.curvature)
    shares = penalties / np.bincount(groups)[groups]  # of a group's penalty
    epsilon = None
    objectives: list[float] = []
    with closing(steps(max_iter, title, is_exact=False)) as counted:
        for _ in counted:
            U, value = loss.minimised(norms / penalties)
            if epsilon is None:
                epsilon = _SMOOTHING * _norms(U, groups, 0.0).max()
            norms = _norms(U, groups, epsilon)
            objectives.append(value + float(np.sum(shares * norms)))
            if len(objectives) > 1 and objectives[-2] - objectives[-1] <= tol * objectives[-1]:
                return U, np.array(objectives)
    warn(
        f"{title}: the objective still fell by more than tol={tol:g} of itself after "
        f"max_iter={max_iter} steps. Raise max_iter, or tol.",
        ConvergenceWarning,
    )
    return U, np.array(objectives)


def _norms(U: np.ndarray, groups: np.ndarray, epsilon: float) -> np.ndarray:
    """√(‖U_g‖² + ε²) of each feature's group, (d,)."""
    squares = np.bincount(groups, np.einsum("ij,ij->i", U, U))
    return np.sqrt(squares + epsilon**2)[groups]
