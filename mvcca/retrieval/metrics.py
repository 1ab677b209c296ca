"""The three ways to compare rows, each made into one matrix product.

A gallery is prepared once; queries are then prepared to match, and the product of the two orders a
query's gallery as its metric does. Input is checked here, on the way in.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import at_home, is_device_array
from mvcca.measures import merge_parallel, unit_rows

Metric = Literal["cosine", "euclidean", "inner"]
METRICS = ("cosine", "euclidean", "inner")
_PAD = 16  # a multiple of every width that BLAS's inner loops come in


class Gallery:
    """Rows to be ranked, prepared for one metric.

    Parameters
    ----------
    rows : array-like, shape (n_gallery, n_components)
        float32 is kept and everything else becomes float64. Rows on a device are searched there.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        A cosine with a zero row is 0. Rows that are multiples of each other have equal cosines with
        every query.

    Attributes
    ----------
    factor : ndarray, shape (at least n_gallery, n_components or n_components + 1)
        Its product with prepared queries orders each query's gallery; padded with zero rows, see
        `padded`.
    place : device block or None, shape (0, n_components)
        An array without rows on the device where the rows came from.

    Raises
    ------
    ValueError
        If there are no rows, a value is not finite, or the metric is unknown.
    """

    def __init__(self, rows: Any, metric: Metric = "cosine") -> None:
        if metric not in METRICS:
            raise ValueError(f"Expected metric to be one of {list(METRICS)}, got {metric!r}.")
        came, rows = rows, checked_rows(rows, "gallery")
        self.place = came[:0, :] if is_device_array(came) else None
        if not len(rows):
            raise ValueError("The gallery is empty; at least one row to search is needed.")
        self.metric = metric
        self._n_rows, self.n_components = rows.shape
        if metric == "cosine":
            rows = merge_parallel(unit_rows(rows))
        elif metric == "euclidean":
            # argmin ‖q - g‖² = argmax qᵀg - ‖g‖²/2, for any origin; a near one rounds least.
            middle = rows.mean(axis=0)
            self._origin = np.where(np.abs(middle) > rows.std(axis=0), middle, 0)
            rows = rows - self._origin
            rows = np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows) / 2])
        self._largest_norm = _largest_norm(rows)
        self.factor = padded(rows)

    def __len__(self) -> int:
        return self._n_rows

    @cached_property
    def unit(self) -> float:
        """The largest entry of the prepared rows, in size; 1 if all are zero."""
        return float(np.abs(self.factor[:, : self.n_components]).max(initial=0)) or 1.0

    def queries(self, rows: Any) -> np.ndarray:
        """Queries prepared to be multiplied with `factor`, in the precision of the gallery."""
        rows = checked_rows(rows, "queries", self.factor.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        if self.metric == "cosine":
            return unit_rows(rows)
        if self.metric == "euclidean":
            rows = np.column_stack([rows - self._origin, np.ones(len(rows), rows.dtype)])
        if _largest_norm(rows) * self._largest_norm > np.finfo(rows.dtype).max:
            raise ValueError(
                f"Scores overflow {rows.dtype}: rescale queries and gallery, or use float64."
            )
        return rows

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of prepared queries with all rows, (n_queries, n_gallery)."""
        return (padded(queries) @ self.factor.T)[: len(queries), : len(self)]

    def reported(self, queries: np.ndarray, products: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Scores as the user reads them, from prepared queries and their products with items."""
        if self.metric != "euclidean":
            return products
        # From the rows themselves: the product only orders, and cancels where distances are small.
        return -np.linalg.norm(queries[:, None, :-1] - self.factor[items, :-1], axis=2)


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows and zero rows up to a multiple of 16.

    BLAS rounds the last few rows and columns of a product in another way than the rest. With none
    such left, equal rows have equal scores, wherever they stand.
    """
    missing = -len(rows) % _PAD
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))


def checked_rows(rows: Any, name: str, dtype: np.dtype | None = None) -> np.ndarray:
    """Finite numbers in a C-contiguous matrix of float32 or float64, at home."""
    if issparse(rows):
        raise TypeError(f"Expected {name} to be dense projected rows, got a sparse matrix.")
    values = np.asarray(at_home(rows))
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
        row = np.flatnonzero(~np.isfinite(values).all(axis=1))[0]
        raise ValueError(f"Expected {name} to be finite, got NaN or infinity in row {row}.")
    return values


def _largest_norm(rows: np.ndarray) -> float:
    with np.errstate(over="ignore"):  # the caller compares with the largest float
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0)))
