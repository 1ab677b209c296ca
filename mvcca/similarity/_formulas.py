"""Similarity functions of two stacks of label vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.measures import unit_rows
from mvcca.views.labels import distinct_rows

__all__ = ["cosine", "equal", "exponential", "squared_exponential"]


def squared_exponential(A: np.ndarray, B: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Similarity exp(-‖a - b‖² / (2σ)) of label vectors, eq. (5) of [1]_.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.
    sigma : float, default=1.0
        Bandwidth σ in squared label units: two label sets that differ in one label have
        similarity exp(-1 / (2σ)).

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1].

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    with np.errstate(over="ignore"):  # exp(-inf) = 0 for a tiny sigma
        return np.exp(-squared_distances(A, B) / sigma / 2)


def exponential(A: np.ndarray, B: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Similarity exp(-‖a - b‖ / σ), as in the official code of Fast MLCCA [1]_.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.
    sigma : float, default=1.0
        Bandwidth σ in label units.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1].

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    """
    with np.errstate(over="ignore"):
        return np.exp(-np.sqrt(squared_distances(A, B)) / sigma)


def cosine(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Similarity aᵀb / (‖a‖ ‖b‖), the dot-product similarity of MLCCA [1]_; 0 for a zero vector.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Similarities in [0, 1] for indicators, in [-1, 1] for real label vectors.

    References
    ----------
    .. [1] Ranjan, Rasiwasia and Jawahar, "Multi-label Cross-modal Retrieval", ICCV 2015.
    """
    return unit_rows(to_array(A, float)) @ unit_rows(to_array(B, float)).T


def equal(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Similarity 1 for equal label vectors and 0 for others, as in cluster-CCA.

    Parameters
    ----------
    A, B : ndarray, shapes (n_a, n_labels) and (n_b, n_labels)
        Label vectors.

    Returns
    -------
    ndarray, shape (n_a, n_b)
        Zeros and ones.
    """
    _, codes = distinct_rows(np.concatenate([A, B]).astype(float))
    return (codes[: len(A), None] == codes[len(A) :]).astype(float)


Similarity = str | Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class LabelKernel:
    """A label similarity and its bandwidth, as a function of two stacks of label vectors.

    Attributes
    ----------
    similarity : {"sqexp", "exp", "cosine", "equal"} or callable
        The formula, by its name or as ``similarity(A, B)``.
    sigma : float
        Bandwidth of "sqexp" and "exp".
    """

    similarity: Similarity
    sigma: float = 1.0

    def __call__(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Similarities of all pairs of label vectors, (n_a, n_b)."""
        if self.similarity == "sqexp":
            return squared_exponential(A, B, self.sigma)
        if self.similarity == "exp":
            return exponential(A, B, self.sigma)
        named = {"cosine": cosine, "equal": equal}
        function = self.similarity if callable(self.similarity) else named[self.similarity]
        return np.asarray(function(A, B), dtype=float)

    def within(self, vectors: np.ndarray) -> np.ndarray:
        """Similarities of all pairs of some vectors; raise unless they are finite and symmetric."""
        values = self(vectors, vectors)
        if values.shape != (len(vectors), len(vectors)):
            raise ValueError(
                "similarity(A, B) must return one value per pair, of shape "
                f"{(len(vectors), len(vectors))} for {len(vectors)} label vectors each, got "
                f"{values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError("similarity(A, B) must be finite, got NaN or infinity.")
        if not np.allclose(values, values.T):
            raise ValueError(
                "similarity(A, B) must be symmetric: similarity(B, A) is its transpose."
            )
        return values


def squared_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    A, B = to_array(A, float), to_array(B, float)
    origin = B.mean(axis=0)  # rounding of the expansion below grows with the norms
    A, B = A - origin, B - origin
    norms = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1)
    squares = norms - 2 * (A @ B.T)
    # Squares for equal rows are rounding: they may be negative, and their roots are not small.
    rounding = (4 + A.shape[1]) * np.finfo(float).eps * norms
    return np.where(squares > rounding, squares, 0.0)
