"""Loadings that permuted rows give: their largest absolute value over variables and components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from mvcca.machine.lapack import top_singular

LOADINGS = ("cross", "own", "own-permuted")


@dataclass(frozen=True, eq=False)
class LoadingNull:
    """Correlations of the variables of two views with variates whose weights permuted rows give.

    Variables are linear combinations of the variates of their view, so that all of their products
    with permuted variates follow from C = A_πᵀB.

    Attributes
    ----------
    kind : {"cross", "own", "own-permuted"}
        Whether variates are those of the other view, or a view's own; those of "own-permuted" are
        of permuted rows, and variables of rows as they are.
    coefficients : list of ndarray, shape (p, d)
        Variables of length 1 in terms of the variates, of the view whose rows are rearranged and of
        the other.
    variates : tuple of ndarray, shape (m, p)
        Canonical variates of both views; with a ridge, their lengths are not 1.
    grams : list of ndarray, shape (p, p)
        Variatesᵀ variates.
    """

    kind: str
    coefficients: list[np.ndarray]
    variates: tuple[np.ndarray, np.ndarray]
    grams: list[np.ndarray]

    @classmethod
    def of(
        cls,
        kind: str,
        variables: tuple[np.ndarray, np.ndarray],
        variates: tuple[np.ndarray, np.ndarray],
    ) -> LoadingNull:
        """Express variables in terms of variates."""
        pairs = zip(variates, variables, strict=True)
        coefficients = [linalg.lstsq(Z, X)[0] for Z, X in pairs]
        return cls(kind, coefficients, variates, [Z.T @ Z for Z in variates])

    @property
    def of_permuted(self) -> bool:
        """Whether variates are those of permuted rows."""
        return self.kind == "own-permuted"

    def observed(self, r: np.ndarray, n_steps: int) -> list[np.ndarray]:
        """Loadings of the rows as they are, (d, n_steps) for each view."""
        C = np.zeros([len(gram) for gram in self.grams])
        np.fill_diagonal(C, r)
        products = self._products(C, self.variates)
        sources = self._sources(self.grams)
        return [
            coefficients.T @ product[:, :n_steps] / np.sqrt(np.diag(gram)[:n_steps])
            for coefficients, product, gram in zip(
                self.coefficients, products, sources, strict=True
            )
        ]

    def maxima(
        self, C: np.ndarray, permuted: tuple[np.ndarray, np.ndarray], n_steps: int
    ) -> np.ndarray:
        """Largest absolute loading of each view over variables and steps, (2,).

        Step i has the first singular vectors of C[i:, i:] as weights.
        """
        products, sources = self._products(C, permuted), self._sources(self.grams)
        largest = np.zeros(2)
        for i in range(n_steps):
            left, _, right = top_singular(C[i:, i:], 1)
            for view, w in enumerate(self._sources([left[:, 0], right[:, 0]])):
                length = np.sqrt(w @ sources[view][i:, i:] @ w)
                found = self.coefficients[view].T @ (products[view][:, i:] @ w)
                largest[view] = max(largest[view], np.abs(found).max() / length)
        return largest

    def _sources(self, of_views: list[np.ndarray]) -> list[np.ndarray]:
        """What belongs to the variates that each view is correlated with."""
        return of_views[::-1] if self.kind == "cross" else of_views

    def _products(self, C: np.ndarray, permuted: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
        """Own variatesᵀ the variates that each view is correlated with."""
        if self.kind == "cross":
            return [C, C.T]
        if self.kind == "own":
            return self.grams
        return [Z.T @ moved for Z, moved in zip(self.variates, permuted, strict=True)]
