"""Each view as a test needs it: decomposed, less what confounds explain."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from mvcca.inspection._rows import decomposed
from mvcca.inspection.permutation._nuisance import Centred, Complement
from mvcca.problem import Whitened

_ROUNDING = 1e-10  # share of a column that confounds leave, below which they explain it


@dataclass(frozen=True, eq=False)
class Side:
    """A view X with the decomposition QᵀX = U D Aᵀ.

    Attributes
    ----------
    name : str
        The view.
    complement : Complement
        Q, which maps rows to those that may be rearranged.
    view : Whitened
        The decomposition; without a ridge, D = I.
    """

    name: str
    complement: Complement
    view: Whitened

    @classmethod
    def of(cls, name: str, X: np.ndarray, complement: Complement, *, for_ridge: bool) -> Side:
        """Decompose a view; only a ridge depends on the units of its columns."""
        less = None if isinstance(complement, Centred) else complement.reduce
        view = decomposed(name, X, less, equilibrate=not for_ridge)
        return cls(name, complement, view if for_ridge else view.unit_lengths())

    @property
    def basis(self) -> np.ndarray:
        """U, of shape (m, r)."""
        return np.asarray(self.view.basis)

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return self.view.rank

    def variables(self, X: np.ndarray) -> np.ndarray:
        """Other variables of the rows, less confounds, as columns of length 1."""
        return _unit_columns(self.complement.reduce(X - X.mean(axis=0)), linalg.norm(X, axis=0))

    def rearranged(self, basis: np.ndarray) -> Side:
        """The same view with other rows of U."""
        return replace(self, view=replace(self.view, basis=basis))

    def shrunk(self, reg: float) -> np.ndarray:
        """U F, of shape (m, r), where F = D / √(D² + r)."""
        return self.basis * self.view.factors(reg)


def _unit_columns(X: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Columns of length 1, or of zeros if little is left of their length before."""
    left = linalg.norm(X, axis=0)
    return np.divide(X, left, out=np.zeros_like(X), where=left > _ROUNDING * lengths)
