"""The gallery: item vectors of the rows to rank, made once, and query vectors to multiply with.

Rows are checked here, where they come in, by `checked_rows`; a gallery and its queries are made of
checked rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import reject_masks
from mvcca.retrieval.search.growing_arrays import ChunkedRows, RemovedRows
from mvcca.retrieval.similarity import InnerProduct

_PAD = 16  # a multiple of the widths of BLAS's inner loops


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


@dataclass(frozen=True, eq=False)
class Gallery:
    """Item vectors of the rows to rank, and the similarity that made them."""

    is_product: ClassVar[bool] = True  # scores order a gallery as products with its vectors do

    similarity: InnerProduct
    rows: ChunkedRows = field(default_factory=ChunkedRows)  # item vectors; chunks are padded
    largest_norm: float = 0.0  # of the item vectors, unless the similarity is a cosine
    removed: RemovedRows = field(default_factory=RemovedRows)  # rows that are not ranked
    lineage: object = field(default_factory=object)  # another one if rows have moved
    device: Any = None  # array without rows on the device that the rows came from, or None

    n_ranked: int = field(init=False)  # rows without the removed ones
    n_components: int = field(init=False)  # of the rows that the vectors were made of
    dtype: Any = field(init=False)  # precision of the scores

    def __post_init__(self) -> None:
        chunks = self.rows.chunks
        width = chunks[0].shape[1] if chunks else 0
        dtype = np.result_type(*{chunk.dtype for chunk in chunks}) if chunks else None
        object.__setattr__(self, "n_ranked", self.rows.n - self.removed.n)
        object.__setattr__(self, "n_components", width - self.similarity.n_added)
        object.__setattr__(self, "dtype", dtype)

    @classmethod
    def of(cls, rows: np.ndarray, similarity: InnerProduct, device: Any = None) -> Gallery:
        """Gallery of checked rows; their precision is kept."""
        if not len(rows):
            raise ValueError("The gallery is empty; at least one row to search is needed.")
        similarity = similarity.near(rows)
        vectors = similarity.items(rows)
        chunks = ChunkedRows((padded(vectors),), len(vectors))
        return cls(similarity, chunks, largest_norm(similarity, vectors), device=device)

    def __len__(self) -> int:
        return self.rows.n

    def tiles(self, width: int) -> Iterator[tuple[int, np.ndarray, int]]:
        """Tiles of at most `width` rows: first position, padded rows, number of rows to count."""
        start = 0
        for chunk in self.rows.chunks:
            n_used = min(len(chunk), self.rows.n - start)  # the rest is spare
            for first in range(0, n_used, width):
                n_rows = min(width, n_used - first)
                yield start + first, chunk[first : first + n_rows + -n_rows % _PAD], n_rows
            start += n_used

    def queries(self, rows: np.ndarray, exclude_self: bool = False) -> np.ndarray:
        """Query vectors of checked rows, in the precision of the gallery.

        `exclude_self` matters to corrections for hubs that depend on the best item of a query.
        """
        if rows.dtype != self.dtype:  # large numbers may overflow
            rows = checked_rows(rows, "queries", self.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        vectors = self.similarity.queries(rows)
        norm = largest_norm(self.similarity, vectors)
        if norm * self.largest_norm > np.finfo(vectors.dtype).max:
            raise ValueError(
                f"Scores overflow {vectors.dtype}: rescale queries and gallery, or use float64."
            )
        return vectors

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of query vectors with all item vectors, (n_queries, n_gallery)."""
        block, n_queries = padded(queries), len(queries)
        tiles = [(block @ rows.T)[:n_queries, :n] for _, rows, n in self.tiles(len(self))]
        return tiles[0] if len(tiles) == 1 else np.hstack(tiles)

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists, from the products of query vectors with items."""
        if not self.similarity.scores_rows:
            return products, items
        return self.similarity.scored(queries, items, self.rows.take)


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows, and zero rows up to a multiple of 16.

    BLAS rounds the last rows and columns of a product differently from the rest. With padding,
    equal rows have equal scores wherever they stand.
    """
    missing = -len(rows) % _PAD
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))


def largest_norm(similarity: InnerProduct, vectors: np.ndarray) -> float:
    """Largest length of vectors; 0 for a cosine, whose products do not overflow."""
    if similarity.is_cosine:
        return 0.0
    with np.errstate(over="ignore"):  # the caller compares with the largest float
        squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0)))
