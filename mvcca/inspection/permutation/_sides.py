"""Each view as a test needs it: a basis of what confounds leave of it, and its lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mvcca.inspection.permutation._nuisance import Centred, Complement
from mvcca.machine import lapack
from mvcca.problem import principal_components

_ROUNDING = 1e-10  # share of a direction that confounds leave, below which they explain it


@dataclass(frozen=True, eq=False)
class Side:
    """A view X with singular value decomposition QᵀX = U D Vᵀ.

    Attributes
    ----------
    name : str
        The view.
    complement : Complement
        Q, which maps rows to those that may be rearranged.
    basis : ndarray, shape (m, r)
        U.
    sizes : ndarray, shape (r,)
        D; without a ridge of columns scaled to unit length, and not needed.
    n_features : int
        Number of columns, among which a ridge is in units of the mean variance.
    """

    name: str
    complement: Complement
    basis: np.ndarray
    sizes: np.ndarray
    n_features: int

    @classmethod
    def of(cls, name: str, X: np.ndarray, complement: Complement, *, for_ridge: bool) -> Side:
        """Decompose a view; only a ridge depends on the units of its columns."""
        rows = principal_components(X, equilibrate=not for_ridge)[1]
        if not rows.shape[1]:
            raise ValueError(f"View {name!r} has no variance: all its rows are equal.")
        lengths = linalg.norm(rows, axis=0)
        if isinstance(complement, Centred):
            return cls(name, complement, rows / lengths, lengths, X.shape[1])
        reduced = complement.reduce(rows if for_ridge else rows / lengths)
        basis, sizes, _ = lapack.svd(reduced)
        left = sizes > _ROUNDING * (lengths[0] if for_ridge else 1)
        if not left.any():
            raise ValueError(
                f"The confounds explain view {name!r} completely. Leave out confounds that are "
                "linear combinations of its columns."
            )
        return cls(name, complement, basis[:, left], sizes[left], X.shape[1])

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return self.basis.shape[1]

    def shrunk(self, reg: float) -> np.ndarray:
        """U F with F = D / √(D² + reg · tr D² / n_features), of shape (m, r)."""
        if not reg:
            return self.basis
        squares = self.sizes**2
        return self.basis * np.sqrt(squares / (squares + reg * squares.sum() / self.n_features))


def unit_columns(X: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Columns of length 1, or of zeros if little is left of their length before."""
    left = linalg.norm(X, axis=0)
    return np.divide(X, left, out=np.zeros_like(X), where=left > _ROUNDING * lengths)
