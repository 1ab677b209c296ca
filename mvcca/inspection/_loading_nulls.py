"""Loadings that permuted rows give: their largest absolute value over variables and components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

LOADINGS = ("cross", "own", "own-permuted")


@dataclass(frozen=True, eq=False)
class LoadingNull:
    """Correlations of the variables of two views with variates whose weights permuted rows give.

    Attributes
    ----------
    kind : {"cross", "own", "own-permuted"}
        Whether variates are those of the other view, or a view's own; those of "own-permuted" are
        of permuted rows.
    variables : tuple of ndarray, shape (m, d)
        Columns of unit length, of the view whose rows are rearranged and of the other.
    variates : tuple of ndarray, shape (m, p)
        Canonical variates that each is correlated with.
    products : tuple of ndarray, shape (d, p)
        Variablesᵀ variates.
    grams : tuple of ndarray, shape (p, p)
        Variatesᵀ variates.
    """

    kind: str
    variables: tuple[np.ndarray, ...]
    variates: tuple[np.ndarray, ...]
    products: tuple[np.ndarray, ...]
    grams: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls, kind: str, variables: tuple[np.ndarray, ...], variates: tuple[np.ndarray, ...]
    ) -> LoadingNull:
        """Multiply variables and variates once for all permutations."""
        sources = variates[::-1] if kind == "cross" else variates
        products = tuple(X.T @ Z for X, Z in zip(variables, sources, strict=True))
        return cls(kind, variables, sources, products, tuple(Z.T @ Z for Z in sources))

    @property
    def of_permuted(self) -> bool:
        """Whether variates are those of permuted rows."""
        return self.kind == "own-permuted"

    def observed(self, n_steps: int) -> list[np.ndarray]:
        """Loadings of the rows as they are, (d, n_steps) for each view."""
        pairs = zip(self.products, self.variates, strict=True)
        return [cross[:, :n_steps] / linalg.norm(Z[:, :n_steps], axis=0) for cross, Z in pairs]

    def maxima(self, C: np.ndarray, permuted: tuple[np.ndarray, ...], n_steps: int) -> np.ndarray:
        """Largest absolute loading of each view over variables and steps, (2,).

        Step i has the first singular vectors of C[i:, i:] as weights.
        """
        products = self.products
        if self.of_permuted:
            products = tuple(X.T @ Z for X, Z in zip(self.variables, permuted, strict=True))
        largest = np.zeros(2)
        for i in range(n_steps):
            left, _, right = linalg.svd(C[i:, i:], full_matrices=False, check_finite=False)
            weights = [left[:, 0], right[0]]
            if self.kind == "cross":
                weights.reverse()
            for view, w in enumerate(weights):
                length = np.sqrt(w @ self.grams[view][i:, i:] @ w)
                found = np.abs(products[view][:, i:] @ w).max() / length
                largest[view] = max(largest[view], found)
        return largest
