"""The gallery: item vectors of the rows to rank, made once. Galleries change by value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mvcca.blocks import as_block, kind_of
from mvcca.retrieval.checked_rows import checked_rows
from mvcca.retrieval.search.growing_arrays import ChunkedRows, RemovedRows
from mvcca.retrieval.similarity import InnerProduct, Similarity, similarity_of

_PAD = 16  # a multiple of the widths of BLAS's inner loops
_SAMPLED_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Gallery:
    """Item vectors of the rows to rank, and the similarity that made them."""

    is_product: ClassVar[bool] = True  # scores order a gallery as products with its vectors do

    similarity: InnerProduct
    rows: ChunkedRows = field(default_factory=ChunkedRows)  # item vectors; chunks are padded
    n_at_origin: int = 0  # rows when the origin was last checked
    largest_norm: float = 0.0  # of the item vectors
    removed: RemovedRows = field(default_factory=RemovedRows)  # rows that are not ranked
    lineage: object = field(default_factory=object)  # another one if rows have moved
    lengths: ChunkedRows | None = None  # of a cosine: lengths of the rows that `plus` added
    device: Any = None  # array without rows on the device that the rows came from, or None

    @classmethod
    def of(cls, rows: Any, similarity: Similarity = "cosine") -> Gallery:
        """Check rows; float32 is kept, any other type becomes float64."""
        like = similarity_of(similarity)
        device = rows[:0, :] if as_block(rows).on_device else None
        rows = checked_rows(rows, "gallery")
        if not len(rows):
            raise ValueError("The gallery is empty; at least one row to search is needed.")
        like = like.near(rows)
        return cls.of_vectors(like.items(rows), like, device)

    @classmethod
    def of_vectors(
        cls, vectors: np.ndarray, similarity: InnerProduct | None = None, device: Any = None
    ) -> Gallery:
        """Gallery of item vectors, in one chunk."""
        rows = ChunkedRows((padded(vectors),), len(vectors))
        largest = _largest_norm(vectors)
        return cls(similarity or InnerProduct(), rows, len(vectors), largest, device=device)

    @classmethod
    def of_stored(
        cls,
        similarity: InnerProduct,
        stored: Sequence[np.ndarray],
        lengths: np.ndarray | None,
        n_at_origin: int,
        largest_norm: float,
    ) -> Gallery:
        """Gallery of stored parts, which are not copied; memory-mapped ones are not read."""
        origin = similarity.origin
        if (
            not stored
            or any(part.shape[1:] != stored[0].shape[1:] for part in stored)
            or bool(similarity.n_added) != (origin is not None)
            or (origin is not None and origin.shape != (stored[0].shape[1] - 1,))
            or similarity.is_cosine != (lengths is not None)
            or (lengths is not None and lengths.shape != (sum(map(len, stored)),))
        ):
            raise ValueError("rows, lengths and origin of a gallery do not belong together")
        parts = [
            np.asarray(part) if kind_of(part).is_lazy else checked_rows(part, "a gallery")
            for part in stored
        ]
        if any(part.ndim != 2 or part.dtype not in (np.float32, np.float64) for part in parts):
            raise ValueError("rows of a gallery are matrices of float32 or float64")
        kept = None
        if lengths is not None:
            kept = ChunkedRows().plus(checked_rows(lengths[:, None], "lengths")[:, 0])
        rows = ChunkedRows.of_parts(parts)
        return cls(similarity, rows, n_at_origin, float(largest_norm), lengths=kept)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_ranked(self) -> int:
        """Number of rows without the removed ones."""
        return len(self) - len(self.removed)

    @property
    def n_components(self) -> int:
        """Width of the rows that the vectors were made of."""
        return self.rows.chunks[0].shape[1] - self.similarity.n_added

    @property
    def dtype(self) -> np.dtype:
        """Precision of the scores."""
        return self.rows.dtype

    def plus(self, rows: np.ndarray) -> Gallery:
        """Gallery with finite rows added, at the cost of the added rows."""
        gallery = self
        if not len(self):
            gallery = replace(self, similarity=self.similarity.near(rows), n_at_origin=len(rows))
        similarity = gallery.similarity
        gallery = gallery.plus_vectors(similarity.items(rows), similarity.lengths(rows))
        if similarity.origin is not None and len(gallery) >= 2 * gallery.n_at_origin:
            return gallery._with_checked_origin()
        return gallery

    def plus_vectors(self, vectors: np.ndarray, lengths: np.ndarray | None = None) -> Gallery:
        """Gallery with item vectors added, and the lengths of their rows."""
        kept = self.lengths if lengths is None else (self.lengths or ChunkedRows()).plus(lengths)
        largest = max(self.largest_norm, _largest_norm(vectors))
        return replace(self, rows=self.rows.plus(vectors), lengths=kept, largest_norm=largest)

    def without(self, positions: np.ndarray) -> Gallery:
        """Gallery that no longer ranks the rows at these positions."""
        return replace(self, removed=self.removed.plus(positions))

    def compacted(self, kept: np.ndarray) -> Gallery:
        """Gallery of the rows at some ascending positions, which get new ones."""
        rows = self.rows.subset(kept)
        return replace(
            self,
            rows=rows,
            largest_norm=max(map(_largest_norm, rows.parts)),
            lengths=None if self.lengths is None else self.lengths.subset(kept),
            removed=RemovedRows(),
            lineage=object(),
        )

    def added_rows(self, positions: np.ndarray) -> np.ndarray:
        """Rows as they were added, up to rounding."""
        lengths = None if self.lengths is None else self.lengths.take(positions)
        return self.similarity.rows(self.rows.take(positions), lengths)

    def _with_checked_origin(self) -> Gallery:
        """Gallery with a new origin if most rows are far from the present one.

        The first rows of an index need not be like those added later.
        """
        step = -(-len(self) // _SAMPLED_ROWS)
        sample = np.concatenate([part[::step] for part in self.rows.parts])
        moved = sample[:, : self.n_components]
        if not (np.abs(moved.mean(axis=0)) > moved.std(axis=0)).any():
            return replace(self, n_at_origin=len(self))
        similarity = self.similarity.near(self.similarity.rows(sample, None))
        gallery = Gallery(similarity, n_at_origin=len(self), removed=self.removed)
        for part in self.rows.parts:
            rows = self.similarity.rows(part, None)
            gallery = gallery.plus_vectors(similarity.items(rows))
        return gallery

    def tiles(self, width: int) -> Iterator[tuple[int, np.ndarray, int]]:
        """Tiles of at most `width` rows: first position, padded rows, number of rows to count."""
        start = 0
        for chunk, part in zip(self.rows.chunks, self.rows.parts, strict=True):
            for first in range(0, len(part), width):
                n_rows = min(width, len(part) - first)
                yield start + first, chunk[first : first + n_rows + -n_rows % _PAD], n_rows
            start += len(part)

    def queries(self, rows: Any, exclude_self: bool = False) -> np.ndarray:
        """Query vectors of checked rows, in the precision of the gallery.

        `exclude_self` matters to corrections for hubs that depend on the best item of a query.
        """
        rows = checked_rows(rows, "queries", self.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        vectors = self.similarity.queries(rows)
        if not self.similarity.is_cosine and (
            _largest_norm(vectors) * self.largest_norm > np.finfo(vectors.dtype).max
        ):
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
        return self.similarity.scored(queries, products, items, self.rows.take)


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows, and zero rows up to a multiple of 16.

    BLAS rounds the last rows and columns of a product differently from the rest. With padding,
    equal rows have equal scores wherever they stand.
    """
    missing = -len(rows) % _PAD
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))


def _largest_norm(rows: np.ndarray) -> float:
    with np.errstate(over="ignore"):  # the caller compares with the largest float
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0)))
