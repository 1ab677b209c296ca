"""How far canonical correlations of a sample lie above those of the population, in closed form.

Limits for two Gaussian views without a ridge whose numbers of features grow with the number of
rows, and whose correlated components are few: Bao, Hu, Pan and Zhou, "Canonical correlation
coefficients of high-dimensional Gaussian vectors: finite rank case", Annals of Statistics 47(1),
2019. Intervals, planned sample sizes and expected correlations use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

_ROUNDING = 1e-12


@dataclass(frozen=True)
class SampleBias:
    """Limits of the components of CCA, as functions of their population correlation ρ.

    Attributes
    ----------
    n_rows : float
        Number n of rows, less the rank of removed confounds; more than p + q + 1.
    ranks : (int, int)
        Numbers p and q of independent features.
    """

    n_rows: float
    ranks: tuple[int, int]

    def __post_init__(self) -> None:
        if self.n_rows <= sum(self.ranks) + 1:
            raise ValueError(
                f"Expected more rows than p + q + 1 = {sum(self.ranks) + 1}, got {self.n_rows:g}."
            )

    @cached_property
    def shares(self) -> tuple[float, float]:
        """c_1 = p / (n - 1) and c_2 = q / (n - 1), which add up to less than 1."""
        p, q = self.ranks
        return p / (self.n_rows - 1), q / (self.n_rows - 1)

    @cached_property
    def edge(self) -> float:
        """Largest correlation of a large sample of independent views."""
        a, b = self.shares
        return float(np.sqrt(a * (1 - b)) + np.sqrt(b * (1 - a)))

    @cached_property
    def threshold(self) -> float:
        """Population correlation up to which sample correlations are at the edge."""
        a, b = self.shares
        return float((a * b / ((1 - a) * (1 - b))) ** 0.25)

    def sample(self, rho: ArrayLike) -> np.ndarray:
        """Sample correlation of population correlations; the edge if they are below threshold."""
        (a, b), t = self.shares, np.square(rho)
        t = np.maximum(t, max(self.threshold, 1e-300) ** 2)
        return np.sqrt(_mixed(t, a) * _mixed(t, b) / t)

    def population(self, r: ArrayLike) -> np.ndarray:
        """Population correlation of sample correlations, 0 up to the edge: inverse of `sample`."""
        (a, b), gamma = self.shares, np.square(r)
        leading = (1 - a) * (1 - b)
        half = (gamma - b * (1 - a) - a * (1 - b)) / 2
        root = np.sqrt(np.maximum(half**2 - leading * a * b, 0))
        t = np.clip((half + root) / leading, 0, 1)
        return np.where(np.asarray(r) > self.edge, np.sqrt(t), 0.0)

    def held_out(self, rho: ArrayLike) -> np.ndarray:
        """Correlation of the fitted variates on new rows; 0 at and below the threshold."""
        (a, b), t = self.shares, np.square(rho)
        signal = np.maximum(self._signal(t), 0)
        noise_x, noise_y = a * (1 - t) * _mixed(t, b), b * (1 - t) * _mixed(t, a)
        product = (signal + noise_x) * (signal + noise_y)
        return _ratio(np.sqrt(t) * signal, np.sqrt(product))

    def loading_shares(self, rho: ArrayLike) -> np.ndarray:
        """Factors (2, ...) by which loadings of each view shrink; 0 up to the threshold."""
        (a, b), t = self.shares, np.square(rho)
        signal, left = np.maximum(self._signal(t), 0), (1 - a) * (1 - b) * t - a * b
        squares = [_ratio(signal, _mixed(t, own) * left) for own in (a, b)]
        return np.sqrt(np.clip(squares, 0, 1))

    def is_noise(self, r: np.ndarray) -> np.ndarray:
        """Mask of the sample correlations (k,), of all components, that independent views explain.

        They are those up to the edge, if their Σ r² is at most one standard deviation above what
        it is for independent views: many weak components show there, though each is below the edge.
        """
        rest = r <= self.edge
        n_above = int(np.sum(~rest))
        m, p, q = (float(count) - n_above for count in (self.n_rows - 1, *self.ranks))
        mean = p * q / m
        variance = 2 * p * q * (m - p) * (m - q) / (m**2 * (m - 1) * (m + 2))  # Pillai, 1955
        independent = np.sum(r[rest] ** 2) <= mean + np.sqrt(max(variance, 0))
        return rest & independent

    def _signal(self, t: np.ndarray) -> np.ndarray:
        """N, positive if the component stands out."""
        a, b = self.shares
        N = t**2 * (1 - a) * (1 - b) - a * b
        return np.where(np.abs(N) > _ROUNDING * a * b, N, 0.0)


def _mixed(t: np.ndarray, share: float) -> np.ndarray:
    """F = t (1 - c) + c."""
    return t * (1 - share) + share


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide a by b, with 0 where a is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=a > 0)
