"""Features Φ of label vectors with Φ(z)ᵀΦ(z') ≈ g(z, z'), which replace sums over pairs.

A feature map is drawn once and then applied to blocks of label vectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy import linalg

from mvcca.similarity._formulas import Similarity, similarities_within, similarity_function

__all__ = ["FourierLabelFeatures", "LabelFeatures", "LandmarkLabelFeatures"]


class LabelFeatures(Protocol):
    """A map of label vectors to features whose inner products approximate their similarity."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """Φ of dense label vectors (n, n_labels): float64, (n, n_features)."""


@dataclass(frozen=True, eq=False)
class FourierLabelFeatures:
    """Random Fourier features of the exponential similarities.

    The features are cosine and sine of zᵀw_j, divided by √(m / 2), for each of m / 2 frequencies.
    Their inner product Σ_j cos((z - z')ᵀw_j) / (m / 2) has the expectation g(z, z') if the w_j are
    drawn from the Fourier transform of g [1]_. The error is of order 1 / √m, and g(z, z) = 1 is
    exact.

    Attributes
    ----------
    frequencies : ndarray, shape (n_labels, n_features / 2)
    origin : ndarray, shape (n_labels,)
        Mean of the label vectors given to `draw`, subtracted to reduce rounding errors.

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
        """Draw frequencies for label vectors.

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
            Random generator.

        Raises
        ------
        ValueError
            If another similarity is given, m is odd, or frequencies overflow because σ is too
            small.
        """
        if similarity not in ("sqexp", "exp"):
            raise ValueError(
                'label_features="fourier" is for label_similarity="sqexp" or "exp", got '
                f'label_similarity={similarity!r}. Use label_features="nystroem".'
            )
        if n_features % 2:
            raise ValueError(
                "Fourier label features are cosine and sine of each frequency: expected an even "
                f"n_label_features, got {n_features}."
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
                "Use a bandwidth similar to the distances between label vectors."
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

    Their products are the similarity projected onto the span of the landmarks [1]_, which is exact
    if all distinct label vectors are landmarks. For any positive semi-definite similarity;
    directions due to rounding are dropped.

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
        """Make features with given landmarks.

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
                "Label features need a positive semi-definite similarity, got eigenvalues from "
                f"{values[0]:.3g} to {values[-1]:.3g} on the landmarks. Use label_features=None."
            )
        kept = values > 10 * len(values) * np.finfo(float).eps * size
        if not kept.any():
            raise ValueError(
                "The similarity of all landmark label vectors is zero, even to themselves. Check "
                "the similarity and the labels."
            )
        return cls(similarity, sigma, landmarks, basis[:, kept] / np.sqrt(values[kept]))

    @property
    def n_features(self) -> int:
        return self.root.shape[1]

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        function = similarity_function(self.similarity, self.sigma)
        return np.asarray(function(vectors, self.landmarks), dtype=float) @ self.root
