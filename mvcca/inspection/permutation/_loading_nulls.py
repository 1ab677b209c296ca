"""Loadings that permuted rows give: their largest absolute value over variables and components."""

from __future__ import annotations

from collections.abc import Sequence
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

    def without(
        self, i: int, before: Sequence[np.ndarray], variates: tuple[np.ndarray, np.ndarray]
    ) -> LoadingNull:
        """The same of variables that have lost i variates; the others are `before` in new rows.

        `variates` are an orthonormal basis of them, or they themselves.
        """
        coefficients = [
            linalg.lstsq(new, old)[0] @ own[i:]
            for own, old, new in zip(self.coefficients, before, variates, strict=True)
        ]
        return LoadingNull(self.kind, coefficients, variates, [Z.T @ Z for Z in variates])

    def largest(
        self, C: np.ndarray, permuted: tuple[np.ndarray, np.ndarray], i: int = 0
    ) -> np.ndarray:
        """Largest absolute loading of each view over variables, (2,).

        Weights are the first singular vectors of C[i:, i:].
        """
        products, sources = self._products(C, permuted), self._sources(self.grams)
        left, _, right = top_singular(C[i:, i:], 1)
        found = np.empty(2)
        for view, w in enumerate(self._sources([left[:, 0], right[:, 0]])):
            length = np.sqrt(w @ sources[view][i:, i:] @ w)
            loadings = self.coefficients[view].T @ (products[view][:, i:] @ w)
            found[view] = np.abs(loadings).max() / length
        return found

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
