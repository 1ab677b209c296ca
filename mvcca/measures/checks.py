"""Input checks and small operations shared by the measures."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray, spmatrix

from mvcca.blocks import as_block

RelevanceLike: TypeAlias = ArrayLike | sparray | spmatrix


def checked_matrix(scores: ArrayLike, name: str = "scores") -> np.ndarray:
    """Array of two dimensions with finite floats; float32 is kept."""
    values = np.asarray(scores)
    if values.dtype != np.float32:
        values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"Expected {name} to be a matrix that is not empty, got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"Expected {name} to be finite, got NaN or infinity.")
    return values


def checked_relevance(relevance: Any, shape: tuple[int, ...]) -> Any:
    """Relevance as a boolean csr_array or ndarray of the shape of the scores."""
    relevant = as_block(relevance).plain()
    if relevant.dtype.kind not in "biuf":
        raise ValueError(f"Expected relevance to be boolean, got {relevant.dtype}.")
    same_shape(relevant.shape, shape, "relevance")
    return relevant.booleans()


def same_shape(shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    """Raise ValueError unless the shapes are equal."""
    if shape != expected:
        raise ValueError(f"Expected {name} of shape {expected}, got {shape}.")


def positive(k: int, name: str = "k") -> int:
    """Raise ValueError unless the cut-off is an integer of at least 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"Expected {name} to be an integer of at least 1, got {k!r}.")
    return int(k)


def one_of(value: str, options: Any, name: str) -> str:
    """Raise ValueError for an unknown option."""
    if value not in options:
        raise ValueError(f"Expected {name} to be one of {list(options)}, got {value!r}.")
    return value


def count_true(mask: np.ndarray) -> np.ndarray:
    """Number of True in each row; counting row by row is several times as fast as along an axis."""
    return np.array([np.count_nonzero(row) for row in mask], dtype=np.intp)


def dense(relevant: Any) -> np.ndarray:
    """Relevance as an ndarray."""
    return as_block(relevant).dense().matrix
