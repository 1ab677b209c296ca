"""Features Φ of label vectors with Φ(z)ᵀΦ(z') ≈ g(z, z'), which turn sums over pairs into products.

A map is drawn once and then takes label vectors block by block. What is summed with them is
`mvcca.statistics`' business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy import linalg

from mvcca.similarity._formulas import Similarity, similarities_within, similarity_function

__all__ = ["FourierLabelFeatures", "LabelFeatures", "LandmarkLabelFeatures"]


class LabelFeatures(Protocol):
    """A map of label vectors to features whose inner products are about their similarity."""

    @property
    def n_features(self) -> int:
        """Of what the map makes of a label vector."""

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Φ of dense label vectors (n, n_labels): float64, (n, n_features)."""


@dataclass(frozen=True, eq=False)
class FourierLabelFeatures:
    """Random Fourier features of the exponential similarities, of label vectors of any kind.

    The cosine and the sine of zᵀw_j for each of m / 2 frequencies, over √(m / 2), have the inner
    product Σ_j cos((z - z')ᵀw_j) / (m / 2), whose expectation is g(z, z') if the w_j are drawn from
    g's Fourier transform [1]_: the error is of order 1 / √m, and g(z, z) = 1 exactly.

    Attributes
    ----------
    frequencies : ndarray, shape (n_labels, n_features / 2)
    origin : ndarray, shape (n_labels,)
        Mean of the label vectors at hand when drawing. Only differences count: it saves digits.

    References
    ----------
    .. [1] Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NIPS 2007.
    """

    frequencies: np.ndarray
    origin: np.ndarray

    @classmethod
    def draw(
        cls,
        similarity: Similarity,
        sigma: float,
        vectors: Any,
        n_features: int,
        rng: np.random.RandomState,
    ) -> Self:
        """Draw frequencies, for label vectors with the columns of those given.

        Parameters
        ----------
        similarity : {"sqexp", "exp"}
            w ~ N(0, I / σ) for exp(-‖·‖² / (2σ)), and multivariate Cauchy for exp(-‖·‖ / σ).
        sigma : float
            Bandwidth σ.
        vectors : ndarray or csr_array, shape (n, n_labels)
            Label vectors.
        n_features : int
            m, an even number.
        rng : RandomState
            Source of the frequencies.

        Raises
        ------
        ValueError
            If the similarity is another, m is odd, or σ so small that frequencies overflow.
        """
        if similarity not in ("sqexp", "exp"):
            raise ValueError(
                'label_features="fourier" is for label_similarity="sqexp" or "exp", got '
                f'label_similarity={similarity!r}. Use label_features="nystroem".'
            )
        if n_features % 2:
            raise ValueError(
                "Fourier label features are a cosine and a sine of each frequency: expected an "
                f"even n_label_features, got {n_features}."
            )
        frequencies = rng.standard_normal((vectors.shape[1], n_features // 2))
        with np.errstate(over="ignore"):
            if similarity == "sqexp":
                frequencies /= np.sqrt(sigma)
            else:
                frequencies /= np.abs(rng.standard_normal(n_features // 2)) * sigma
        if not np.isfinite(frequencies).all():
            raise ValueError(
                f"sigma={sigma} is too small for Fourier label features: frequencies overflow. "
                "Expected a bandwidth of the size of distances between label vectors."
            )
        return cls(frequencies, np.asarray(vectors.mean(axis=0)).reshape(-1))

    @property
    def n_features(self) -> int:
        return 2 * self.frequencies.shape[1]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        n_frequencies = self.frequencies.shape[1]
        features = np.empty((len(vectors), self.n_features))
        angles = (vectors - self.origin) @ self.frequencies
        np.cos(angles, out=features[:, :n_frequencies])
        np.sin(angles, out=features[:, n_frequencies:])
        features /= np.sqrt(n_frequencies)
        return features


@dataclass(frozen=True, eq=False)
class LandmarkLabelFeatures:
    """Nyström features g(z, Z) U Λ^(-1/2), with U Λ Uᵀ = g(Z, Z) of the landmark label vectors Z.

    Their products are the similarity projected onto the span of the landmarks [1]_: exact for
    landmarks, so all distinct label vectors as landmarks give what pairs give. For any positive
    semi-definite similarity; directions that rounding alone has made are left out.

    Attributes
    ----------
    similarity : str or callable
    sigma : float
    landmarks : ndarray, shape (n_landmarks, n_labels)
    root : ndarray, shape (n_landmarks, n_features)
        U Λ^(-1/2).

    References
    ----------
    .. [1] Williams and Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2000.
    """

    similarity: Similarity
    sigma: float
    landmarks: np.ndarray
    root: np.ndarray

    @classmethod
    def at(cls, similarity: Similarity, sigma: float, landmarks: np.ndarray) -> Self:
        """Features with these label vectors as landmarks.

        Raises
        ------
        ValueError
            If g of the landmarks is not finite, symmetric and positive semi-definite.
        """
        gram = similarities_within(similarity, sigma, landmarks)
        values, basis = linalg.eigh((gram + gram.T) / 2)
        size = np.abs(values).max()
        if values[0] < -1e-6 * size:
            raise ValueError(
                "Label features need a positive semi-definite similarity, got one with the "
                f"eigenvalues {values[0]:.3g} to {values[-1]:.3g} on the landmarks. Use "
                "label_features=None."
            )
        real = values > 10 * len(values) * np.finfo(float).eps * size
        if not real.any():
            raise ValueError(
                "The similarity of all landmark label vectors is zero, also to themselves: there "
                "is nothing to make features of. Check the similarity and the labels."
            )
        return cls(similarity, sigma, landmarks, basis[:, real] / np.sqrt(values[real]))

    @property
    def n_features(self) -> int:
        return self.root.shape[1]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        function = similarity_function(self.similarity, self.sigma)
        return np.asarray(function(vectors, self.landmarks), dtype=float) @ self.root
