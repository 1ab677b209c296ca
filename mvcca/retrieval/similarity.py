"""The three ways to compare rows, each made into one matrix product.

A gallery is prepared once; queries are then prepared to match, and the product of the two orders a
query's gallery as its similarity does. Input is checked here, on the way in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import is_device_array, to_host
from mvcca._containers import reject_masks
from mvcca.measures import merge_parallel, unit_rows
from mvcca.retrieval._growing import Chunked

Similarity = Literal["cosine", "euclidean", "inner"]
SIMILARITIES = ("cosine", "euclidean", "inner")
_PAD = 16  # a multiple of every width that BLAS's inner loops come in


class Gallery:
    """Rows to be ranked, prepared for one similarity.

    Parameters
    ----------
    rows : array-like, shape (n_gallery, n_components)
        float32 is kept and everything else becomes float64. Rows on a device are searched there.
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        A cosine with a zero row is 0. Rows that are multiples of each other have equal cosines with
        every query.

    Attributes
    ----------
    prepared : Chunked
        Rows whose products with prepared queries order each query's gallery, in one chunk or
        several; chunks are padded with rows that count for nothing, see `padded`.
    place : device block or None, shape (0, n_components)
        An array without rows on the device where the rows came from.

    Raises
    ------
    ValueError
        If there are no rows, a value is not finite, or the similarity is unknown.
    """

    def __init__(self, rows: Any, similarity: Similarity = "cosine") -> None:
        if similarity not in SIMILARITIES:
            raise ValueError(
                f"Expected similarity to be one of {list(SIMILARITIES)}, got {similarity!r}."
            )
        came, rows = rows, checked_rows(rows, "gallery")
        self.place = came[:0, :] if is_device_array(came) else None
        if not len(rows):
            raise ValueError("The gallery is empty; at least one row to search is needed.")
        self.similarity = similarity
        self.n_components = rows.shape[1]
        self._origin = origin_near(rows) if similarity == "euclidean" else None
        rows = prepared(rows, similarity, self._origin)
        self._largest_norm = largest_norm(rows)
        self.prepared = Chunked((padded(rows),), len(rows))

    @classmethod
    def of_prepared(
        cls, rows: Chunked, similarity: Similarity, origin: np.ndarray | None, norm: float
    ) -> Gallery:
        """A gallery of rows that are prepared already, the largest of which has that norm."""
        gallery = cls.__new__(cls)
        gallery.place, gallery.similarity, gallery._origin = None, similarity, origin
        gallery.n_components = rows.chunks[0].shape[1] - (origin is not None)
        gallery.prepared, gallery._largest_norm = rows, norm
        return gallery

    def __len__(self) -> int:
        return len(self.prepared)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the scores."""
        return self.prepared.dtype

    def tiles(self, width: int) -> Iterator[tuple[int, np.ndarray, int]]:
        """Position of a first row, up to `width` rows with padding, and how many rows they are."""
        start = 0
        for chunk, part in zip(self.prepared.chunks, self.prepared.parts, strict=True):
            for first in range(0, len(part), width):
                n_rows = min(width, len(part) - first)
                yield start + first, chunk[first : first + _padded_height(n_rows)], n_rows
            start += len(part)

    def queries(self, rows: Any) -> np.ndarray:
        """Queries prepared to be multiplied with `factor`, in the precision of the gallery."""
        rows = checked_rows(rows, "queries", self.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        if self.similarity == "cosine":
            return unit_rows(rows)
        if self._origin is not None:
            rows = np.column_stack(
                [rows - self._origin.astype(rows.dtype), np.ones(len(rows), rows.dtype)]
            )
        if largest_norm(rows) * self._largest_norm > np.finfo(rows.dtype).max:
            raise ValueError(
                f"Scores overflow {rows.dtype}: rescale queries and gallery, or use float64."
            )
        return rows

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of prepared queries with all rows, (n_queries, n_gallery)."""
        block, n_queries = padded(queries), len(queries)
        tiles = [(block @ rows.T)[:n_queries, :n] for _, rows, n in self.tiles(len(self))]
        return tiles[0] if len(tiles) == 1 else np.hstack(tiles)

    def reported(self, queries: np.ndarray, products: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Scores as the user reads them, from prepared queries and their products with items."""
        if self.similarity != "euclidean":
            return products
        # From the rows themselves: the product only orders, and cancels where distances are small.
        rows = self.prepared.take(items)
        return -np.linalg.norm(queries[:, None, :-1] - rows[..., :-1], axis=2)


def origin_near(rows: np.ndarray) -> np.ndarray:
    """A point to measure distances from: the mean in columns where 0 is far away, else 0."""
    middle = rows.mean(axis=0)
    return np.where(np.abs(middle) > rows.std(axis=0), middle, 0)


def prepared(rows: np.ndarray, similarity: Similarity, origin: np.ndarray | None) -> np.ndarray:
    """Rows whose products with prepared queries order a gallery as the similarity does."""
    if similarity == "cosine":
        return merge_parallel(unit_rows(rows))
    if origin is None:
        return rows
    # argmin ‖q - g‖² = argmax qᵀg - ‖g‖²/2, for any origin; a near one rounds least.
    rows = rows - origin.astype(rows.dtype)
    return np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows) / 2])


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows and zero rows up to a multiple of 16.

    BLAS rounds the last few rows and columns of a product in another way than the rest. With none
    such left, equal rows have equal scores, wherever they stand.
    """
    missing = _padded_height(len(rows)) - len(rows)
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))


def _padded_height(n_rows: int) -> int:
    return -(-n_rows // _PAD) * _PAD


def checked_rows(rows: Any, name: str, dtype: np.dtype | None = None, first: int = 0) -> np.ndarray:
    """Finite numbers in a C-contiguous matrix of float32 or float64, in host memory.

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


def largest_norm(rows: np.ndarray) -> float:
    """Norm of the longest row."""
    with np.errstate(over="ignore"):  # the caller compares with the largest float
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0)))
