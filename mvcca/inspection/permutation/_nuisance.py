"""Residuals of confounds that can be permuted: semi-orthogonal maps Q with QᵀZ = 0.

Z holds the confounds and a column of ones. Residuals R_Z X depend on each other, and permuting them
rejects too often. The rows of QᵀX, of which there are fewer, do not. Each kind of Q has

- ``kept``: positions of the rows that are left, if these keep their identity, else numbers;
- ``reduce(X)``: QᵀX, of shape (m, d);
- ``lift(U)``: QU, of shape (n_rows, d).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from mvcca.inspection._rows import orthonormal, residuals
from mvcca.problem import Whitened

_ROUNDING = 1e-10  # of the length of a unit vector
_WORK = 65 * 64  # workspace of LAPACK's blocks of reflectors


@dataclass(frozen=True, eq=False)
class Centred:
    """No confounds: centred rows are exchangeable as they are, so that Q is the identity."""

    n_rows: int

    @property
    def kept(self) -> np.ndarray:
        """All rows."""
        return np.arange(self.n_rows)

    def reduce(self, X: np.ndarray) -> np.ndarray:
        """Centred rows."""
        return X - X.mean(axis=0)

    def lift(self, U: np.ndarray) -> np.ndarray:
        """The rows themselves."""
        return U


@dataclass(frozen=True, eq=False)
class HuhJhun:
    """Any orthonormal basis of the complement of Z, here the other columns of its QR [1]_.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds.

    References
    ----------
    .. [1] Huh and Jhun, "Random permutation testing in multiple linear regression", Communications
       in Statistics 30(10), 2001.
    """

    Z: np.ndarray

    @property
    def kept(self) -> np.ndarray:
        """Rows are rotated, and stand for no row of the data."""
        return np.arange(len(self.Z) - self.Z.shape[1])

    @cached_property
    def _reflectors(self) -> tuple[np.ndarray, np.ndarray]:
        reflectors, _ = linalg.qr(self.Z, mode="raw")
        return reflectors

    def reduce(self, X: np.ndarray) -> np.ndarray:
        return self._times("T", X)[self.Z.shape[1] :]

    def lift(self, U: np.ndarray) -> np.ndarray:
        return self._times("N", np.vstack([np.zeros((self.Z.shape[1], U.shape[1])), U]))

    def _times(self, trans: str, X: np.ndarray) -> np.ndarray:
        """The square Q of the QR decomposition times X, without forming it."""
        product, _, _ = linalg.lapack.dormqr(
            "L", trans, *self._reflectors, X, _WORK + 64 * X.shape[1]
        )
        return np.ascontiguousarray(product)


@dataclass(frozen=True, eq=False)
class Theil:
    r"""Residuals that keep their rows, those of some rows less [1]_.

    With S selecting the other rows and R_Z = I - ZZᵀ,

        Q = R_Z S (Sᵀ R_Z S)^(-1/2).

    The symmetric root makes QᵀX the closest to the residuals SᵀR_Z X, so that row i of it may be
    exchanged as row i of X may be.

    Attributes
    ----------
    Z : ndarray, shape (n_rows, rank)
        Orthonormal basis of the confounds.
    kept : ndarray of int
        Rows that S selects. Those of Z in the others must have full rank.

    References
    ----------
    .. [1] Theil, "The analysis of disturbances in regression analysis", JASA 60, 1965; section
       2.6 of Winkler et al., NeuroImage 220, 2020.
    """

    Z: np.ndarray
    kept: np.ndarray

    def reduce(self, X: np.ndarray) -> np.ndarray:
        return self._whitened(residuals(X, self.Z)[self.kept])

    def lift(self, U: np.ndarray) -> np.ndarray:
        whole = np.zeros((len(self.Z), U.shape[1]))
        whole[self.kept] = self._whitened(U)
        return residuals(whole, self.Z)

    @cached_property
    def _root(self) -> tuple[np.ndarray, np.ndarray]:
        """V and c with (I - SᵀZZᵀS)^(-1/2) = I + V diag(c) Vᵀ, for orthonormal V."""
        rows = Whitened.of_rows(self.Z[self.kept], equilibrate=False, center=False)
        return rows.basis, 1 / np.sqrt((1 - rows.values) * (1 + rows.values)) - 1

    def _whitened(self, rows: np.ndarray) -> np.ndarray:
        vectors, scale = self._root
        return rows + vectors @ (scale[:, None] * (vectors.T @ rows))


Complement = Centred | HuhJhun | Theil


def kept_rows(Z: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Rows that `Theil` keeps: all but rows, or groups of rows, in which Z has full rank."""
    rank = Z.shape[1]
    if groups is None:
        dropped = linalg.qr(Z.T, mode="r", pivoting=True)[1][:rank]
        return np.setdiff1d(np.arange(len(Z)), dropped)
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    rest, kept = Z.copy(), np.ones(len(Z), dtype=bool)
    while kept.any() and np.linalg.matrix_rank(Z[~kept], _ROUNDING) < rank:
        rows = max((own for own in members if kept[own].all()), key=lambda own: _gain(rest[own]))
        kept[rows] = False
        own = Whitened.of_rows(rest[rows], equilibrate=False, center=False)
        seen = own.axes[:, own.values > _ROUNDING]
        rest -= (rest @ seen) @ seen.T
    return np.flatnonzero(kept)


def _gain(Z: np.ndarray) -> tuple[float, float]:
    """How much rank a row of a group adds, and if equal, how much length."""
    return float(np.linalg.matrix_rank(Z, _ROUNDING) / len(Z)), float((Z**2).sum() / len(Z))


def orthonormal_with_ones(name: str, Z: np.ndarray | None, n_rows: int) -> np.ndarray:
    """An orthonormal basis of confounds and a column of ones, (n_rows, rank)."""
    ones = np.full((n_rows, 1), 1 / np.sqrt(n_rows))
    return ones if Z is None else np.hstack([ones, orthonormal(name, Z)])


def residuals_of(Z: np.ndarray, projection: str, groups: np.ndarray | None) -> HuhJhun | Theil:
    """The residuals that may be permuted, by their name."""
    if projection == "huh-jhun":
        return HuhJhun(Z)
    kept = kept_rows(Z, groups)
    if len(kept) < 2:
        raise ValueError(
            "Theil's residuals leave out whole groups until the confounds have full rank in them, "
            f"which leaves {len(kept)} rows. Use fewer confounds, or smaller groups."
        )
    return Theil(Z, kept)
