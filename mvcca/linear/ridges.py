"""Ridge regressions of one view on another for any ridge, and without any one of their pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

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
    values : ndarray, shape (k,)
        Eigenvalues of the covariance of x.
    axes : ndarray, shape (n_features, k)
        Its eigenvectors.
    cross : ndarray, shape (k, n_features of y)
        Covariance of y with the coordinates of x.
    n_features : int
        Number of features of x, over which the variance is averaged that is the unit of ridges.
    """

    names: tuple[str, str]
    means: Mapping[str, np.ndarray]
    n_pairs: float
    values: np.ndarray
    axes: np.ndarray
    cross: np.ndarray
    n_features: int

    @classmethod
    def of(cls, moments: Moments, x: str, y: str, n_features: int | None = None) -> Ridges:
        """The regressions of y on x; `n_features` is that of x before any change of basis."""
        columns, covariance = column_slices(moments.widths), moments.covariance()
        own = columns[x]
        values, axes = eigh(covariance[own, own], driver="evd", check_finite=True)
        cross = axes.T @ covariance[own, columns[y]]
        n_pairs = float(moments.counts[0, 0])
        return cls((x, y), moments.mean(), n_pairs, values, axes, cross, n_features or len(values))

    def weights(self, reg: float, rank: int | None = None) -> np.ndarray:
        """Coefficients of y on x with a ridge in units of the mean variance."""
        B = self._inverse(reg)[:, None] * self.cross
        if rank is not None and rank < min(B.shape):
            top = eigh(self.cross.T @ B, subset_by_index=(B.shape[1] - rank, B.shape[1] - 1))[1]
            B = B @ top @ top.T
        return self.axes @ B

    def coordinates(self, x: np.ndarray) -> np.ndarray:
        """Centred rows of x in the axes, (n_rows, k)."""
        return (x - self.means[self.names[0]]) @ self.axes

    def residuals(self, reg: float, coordinates: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Rows of y minus their predictions, (n_rows, n_features of y)."""
        return y - self.means[self.names[1]] - coordinates * self._inverse(reg) @ self.cross

    def leverages(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """h_ii of rows among the pairs, (n_rows,)."""
        return 1 / self.n_pairs + coordinates**2 @ self._inverse(reg) / (self.n_pairs - 1)

    def duals(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """Vectors whose inner products with centred rows of x are h_ji - 1/n, (n_rows, k)."""
        return coordinates * (self._inverse(reg) / (self.n_pairs - 1)) @ self.axes.T

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

    def _inverse(self, reg: float) -> np.ndarray:
        damped = self.values + reg * self.values.sum() / self.n_features
        least = self.values[-1] * len(self.values) * np.finfo(float).eps
        return np.divide(1, damped, where=self.values > least, out=np.zeros_like(damped))
