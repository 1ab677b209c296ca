"""Checks of projected rows, made once where rows come in."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.containers import reject_masks


def checked_rows(rows: Any, name: str, dtype: np.dtype | None = None, first: int = 0) -> np.ndarray:
    """Finite rows as a C-contiguous float32 or float64 matrix in host memory.

    Errors number the rows from `first`.
    """
    reject_masks(rows)
    block = as_block(rows)
    if block.is_sparse:
        raise TypeError(f"Expected {name} to be dense projected rows, got a sparse matrix.")
    values = block.dense().matrix
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
