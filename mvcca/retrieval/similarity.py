"""Similarities used for ranking, each computed as one matrix product.

Gallery rows and queries are prepared so that their products order the gallery for each query as the
similarity does.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import to_host
from mvcca._containers import reject_masks
from mvcca.measures import merge_parallel, unit_rows

Similarity = Literal["cosine", "euclidean", "inner"]
SIMILARITIES = ("cosine", "euclidean", "inner")


def checked_similarity(similarity: Similarity) -> Similarity:
    """Raise ValueError for an unknown similarity."""
    if similarity not in SIMILARITIES:
        raise ValueError(
            f"Expected similarity to be one of {list(SIMILARITIES)}, got {similarity!r}."
        )
    return similarity


def prepared_gallery(
    rows: np.ndarray, similarity: Similarity, origin: np.ndarray | None
) -> np.ndarray:
    """Gallery rows to multiply with prepared queries; distances are measured from `origin`."""
    if similarity == "cosine":
        return merge_parallel(unit_rows(rows))
    if origin is None:
        return rows
    # argmin ‖q - g‖² = argmax qᵀg - ‖g‖²/2 for any origin; rounding is least for a near one.
    rows = rows - origin.astype(rows.dtype)
    return np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows) / 2])


def prepared_queries(
    rows: np.ndarray, similarity: Similarity, origin: np.ndarray | None
) -> np.ndarray:
    """Queries to multiply with prepared gallery rows."""
    if similarity == "cosine":
        return unit_rows(rows)
    if origin is None:
        return rows
    return np.column_stack([rows - origin.astype(rows.dtype), np.ones(len(rows), rows.dtype)])


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
