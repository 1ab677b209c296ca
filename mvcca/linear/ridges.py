"""Ridge regressions of one view on another for any ridge, and without any one of their pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mvcca.machine import lapack
from mvcca.problem import Whitened
from mvcca.statistics import Moments, column_slices

LEAST_REMAINING = 1e-6  # of 1 - h_ii, whose rounding is about 1e-12


@dataclass(frozen=True, eq=False)
class Ridges:
    """Ridge regressions with any ridge, from one eigendecomposition of the covariance of x.

    With the left-out pair i, the residual e_i and the entries h_ji of the hat matrix

        h_ji = 1/n + x̄_jᵀ (X̄ᵀX̄ + λI)⁻¹ x̄_i,

    the map without pair i sends x_j to f(x_j) - h_ji / (1 - h_ii) e_i, where λ is kept.

    Attributes
    ----------
    names : tuple of str
        Names of x and y.
    means : mapping of str to ndarray
        Means of x and y.
    n_pairs : float
        Number of pairs, or the sum of their weights.
    x : Whitened
        The rows of x.
    cross : ndarray, shape (r, n_features of y)
        Covariance of y with the coordinates of x.
    """

    names: tuple[str, str]
    means: Mapping[str, np.ndarray]
    n_pairs: float
    x: Whitened
    cross: np.ndarray

    @classmethod
    def of(cls, moments: Moments, x: str, y: str, n_features: int | None = None) -> Ridges:
        """The regressions of y on x; `n_features` is that of x before any change of basis."""
        columns, covariance = column_slices(moments.widths), moments.covariance()
        own = columns[x]
        of_x = Whitened.of_covariance(covariance[own, own], n_features=n_features)
        cross = of_x.weights.T @ covariance[own, columns[y]]
        return cls((x, y), moments.mean(), float(moments.counts[0, 0]), of_x, cross)

    def weights(self, reg: float, rank: int | None = None) -> np.ndarray:
        """Coefficients of y on x with a ridge in units of the mean variance."""
        B = self._squares(reg)[:, None] * self.cross
        if rank is not None and rank < min(B.shape):
            top = lapack.top_eigenpairs(self.cross.T @ B, rank)[1]
            B = B @ top @ top.T
        return self.x.weights @ B

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Whitened rows of x, (n_rows, r)."""
        return (x - self.means[self.names[0]]) @ self.x.weights

    def predictions(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """Predicted rows of y less its mean, (n_rows, n_features of y)."""
        return coordinates * self._squares(reg) @ self.cross

    def residuals(self, reg: float, coordinates: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Rows of y minus their predictions, (n_rows, n_features of y)."""
        return y - self.means[self.names[1]] - self.predictions(reg, coordinates)

    def leverages(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """h_ii of rows among the pairs, (n_rows,)."""
        return 1 / self.n_pairs + coordinates**2 @ self._squares(reg) / (self.n_pairs - 1)

    def duals(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """Vectors whose inner products with centred rows of x are h_ji - 1/n, (n_rows, k)."""
        return coordinates * (self._squares(reg) / (self.n_pairs - 1)) @ self.x.weights.T

    def left_out(
        self, reg: float, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None = None
    ) -> np.ndarray:
        """Predictions of rows of y, each by the regression without its own pair."""
        coordinates = self.coordinates(x)
        leverages = self.leverages(reg, coordinates)
        if weights is not None:
            leverages *= weights
        remaining = np.maximum(1 - leverages, LEAST_REMAINING)
        return np.asarray(y - self.residuals(reg, coordinates, y) / remaining[:, None])

    def _squares(self, reg: float) -> np.ndarray:
        return self.x.factors(reg) ** 2
