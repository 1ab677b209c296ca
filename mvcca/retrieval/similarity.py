"""Similarities used for ranking, each computed as one matrix product.

Gallery rows and queries are prepared so that their products order the gallery for each query as the
similarity does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.array_api import to_host
from mvcca.blocks.containers import reject_masks
from mvcca.measures import merge_parallel, unit_rows

SIMILARITIES = ("cosine", "euclidean", "inner")


@dataclass(frozen=True, eq=False)
class ProfileCosine:
    """Cosine whose lengths weight components by their correlations ρ, √(Σ_i ρ_i u_i²).

    For rows u_i = √w_i a_i it is the profile likelihood of `MVCCA.retrieval_scores`.
    """

    correlations: np.ndarray  # (n_components,)

    def lengths(self, rows: np.ndarray) -> np.ndarray:
        """Lengths of rows whose squares neither overflow nor underflow, (n_rows,) in float64."""
        rho = self.correlations.astype(np.float64)
        return np.asarray(np.sqrt(np.einsum("ij,ij,j->i", rows, rows, rho)))


Similarity = Literal["cosine", "euclidean", "inner"] | ProfileCosine


def checked_similarity(similarity: Similarity) -> Similarity:
    """Raise ValueError for an unknown similarity."""
    if not isinstance(similarity, ProfileCosine) and similarity not in SIMILARITIES:
        raise ValueError(
            f"Expected similarity to be one of {list(SIMILARITIES)}, got {similarity!r}."
        )
    return similarity


def is_cosine(similarity: Similarity) -> bool:
    """Whether rows are divided by their lengths."""
    return similarity == "cosine" or isinstance(similarity, ProfileCosine)


def lengths_of_rows(rows: np.ndarray, similarity: Similarity) -> np.ndarray:
    """Lengths by which a cosine divides rows of any magnitude, in float64."""
    largest = np.abs(rows).max(axis=1, initial=0).astype(np.float64)
    scaled = np.divide(rows, largest[:, None], out=np.zeros(rows.shape), where=largest[:, None] > 0)
    if isinstance(similarity, ProfileCosine):
        return largest * similarity.lengths(scaled)
    return largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def prepared_gallery(
    rows: np.ndarray, similarity: Similarity, origin: np.ndarray | None
) -> np.ndarray:
    """Gallery rows to multiply with prepared queries; distances are measured from `origin`."""
    if is_cosine(similarity):
        return _profiled(merge_parallel(unit_rows(rows)), similarity)
    if origin is None:
        return rows
    # argmin ‖q - g‖² = argmax qᵀg - ‖g‖²/2 for any origin; rounding is least for a near one.
    rows = rows - origin.astype(rows.dtype)
    return np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows) / 2])


def prepared_queries(
    rows: np.ndarray, similarity: Similarity, origin: np.ndarray | None
) -> np.ndarray:
    """Queries to multiply with prepared gallery rows."""
    if is_cosine(similarity):
        return _profiled(unit_rows(rows), similarity)
    if origin is None:
        return rows
    return np.column_stack([rows - origin.astype(rows.dtype), np.ones(len(rows), rows.dtype)])


def _profiled(unit: np.ndarray, similarity: Similarity) -> np.ndarray:
    """Rows of length 1, scaled to the lengths of a similarity."""
    if not isinstance(similarity, ProfileCosine):
        return unit
    lengths = similarity.lengths(unit)[:, None].astype(unit.dtype)
    return np.divide(unit, lengths, out=np.zeros_like(unit), where=lengths > 0)


def origin_near(rows: np.ndarray) -> np.ndarray:
    """Point to measure distances from: the mean in columns whose values are far from 0, else 0."""
    middle = rows.mean(axis=0)
    return np.where(np.abs(middle) > rows.std(axis=0), middle, 0)


def checked_rows(rows: Any, name: str, dtype: np.dtype | None = None, first: int = 0) -> np.ndarray:
    """Finite rows as a C-contiguous float32 or float64 matrix in host memory.

    Errors number the rows from `first`.
    """
    if issparse(rows):
        raise TypeError(f"Expected {name} to be dense projected rows, got a sparse matrix.")
    reject_masks(rows)
    values = np.asarray(to_host(rows))
    if values.ndim != 2:
        raise ValueError(
            f"Expected {name} of shape (n_rows, n_components), got {values.shape}. "
            "Reshape a single row with x.reshape(1, -1)."
        )
    if values.dtype.kind not in "biufO":
        raise ValueError(f"Expected {name} to be real numbers, got {values.dtype}.")
    if dtype is None:
        dtype = np.dtype(np.float32 if values.dtype == np.float32 else np.float64)
    values = np.ascontiguousarray(values, dtype=dtype)
    if not np.isfinite(values).all():
        row = first + np.flatnonzero(~np.isfinite(values).all(axis=1))[0]
        raise ValueError(f"Expected {name} to be finite, got NaN or infinity in row {row}.")
    return values
