"""The gallery: rows to rank, prepared once for their similarity. Galleries change by value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from mvcca.blocks.array_api import is_device_array
from mvcca.machine.config import block_slices
from mvcca.machine.threads import each
from mvcca.retrieval.search.growing_arrays import ChunkedRows, RemovedRows
from mvcca.retrieval.similarity import (
    Similarity,
    checked_rows,
    checked_similarity,
    is_cosine,
    lengths_of_rows,
    origin_near,
    prepared_gallery,
    prepared_queries,
)

_PAD = 16  # a multiple of the widths of BLAS's inner loops
_SAMPLED_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Gallery:
    """Rows to rank, prepared for one similarity.

    The cosine with a zero row is 0. Rows that are multiples of each other have equal cosines with
    every query.
    """

    is_product: ClassVar[bool] = True  # scores order a gallery as products with its rows do

    similarity: Similarity
    rows: ChunkedRows = field(default_factory=ChunkedRows)  # prepared; chunks are padded
    origin: np.ndarray | None = None  # (n_components,), from which distances are measured
    n_at_origin: int = 0  # rows when the origin was last checked
    largest_norm: float = 0.0  # of the prepared rows
    removed: RemovedRows = field(default_factory=RemovedRows)  # rows that are not ranked
    lineage: object = field(default_factory=object)  # another one if rows have moved
    norms: ChunkedRows | None = None  # of a cosine: lengths of the rows that `plus` added
    device: Any = None  # array without rows on the device that the rows came from, or None

    @classmethod
    def of(cls, rows: Any, similarity: Similarity = "cosine") -> Gallery:
        """Check and prepare rows; float32 is kept, any other type becomes float64."""
        checked_similarity(similarity)
        device = rows[:0, :] if is_device_array(rows) else None
        rows = checked_rows(rows, "gallery")
        if not len(rows):
            raise ValueError("The gallery is empty; at least one row to search is needed.")
        origin = origin_near(rows) if similarity == "euclidean" else None
        rows = prepared_gallery(rows, similarity, origin)
        chunk = ChunkedRows((padded(rows),), len(rows))
        return cls(similarity, chunk, origin, len(rows), _largest_norm(rows), device=device)

    @classmethod
    def of_prepared(
        cls,
        similarity: Similarity,
        stored: Sequence[np.ndarray],
        norms: np.ndarray | None,
        origin: np.ndarray | None,
        n_at_origin: int,
        largest_norm: float,
    ) -> Gallery:
        """Gallery of stored parts, which are not copied; memory-mapped ones are not read."""
        if (
            not stored
            or any(part.shape[1:] != stored[0].shape[1:] for part in stored)
            or (similarity == "euclidean") != (origin is not None)
            or (origin is not None and origin.shape != (stored[0].shape[1] - 1,))
            or is_cosine(similarity) != (norms is not None)
            or (norms is not None and norms.shape != (sum(map(len, stored)),))
        ):
            raise ValueError("rows, lengths and origin of a gallery do not belong together")
        parts = [
            np.asarray(part) if isinstance(part, np.memmap) else checked_rows(part, "a gallery")
            for part in stored
        ]
        if any(part.ndim != 2 or part.dtype not in (np.float32, np.float64) for part in parts):
            raise ValueError("rows of a gallery are matrices of float32 or float64")
        lengths = None
        if norms is not None:
            lengths = ChunkedRows().plus(checked_rows(norms[:, None], "lengths")[:, 0])
        rows = ChunkedRows.of_parts(parts)
        return cls(similarity, rows, origin, n_at_origin, float(largest_norm), norms=lengths)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_ranked(self) -> int:
        """Number of rows without the removed ones."""
        return len(self) - len(self.removed)

    @property
    def n_components(self) -> int:
        """Width of the rows before they were prepared."""
        return self.rows.chunks[0].shape[1] - (self.origin is not None)

    @property
    def dtype(self) -> np.dtype:
        """Precision of the scores."""
        return self.rows.dtype

    def plus(self, rows: np.ndarray) -> Gallery:
        """Gallery with finite rows added, at the cost of the added rows."""
        gallery, norms = self, None
        if self.similarity == "euclidean" and self.origin is None:
            gallery = replace(self, origin=origin_near(rows), n_at_origin=len(rows))
        if is_cosine(self.similarity):
            norms = lengths_of_rows(rows, self.similarity)
        prepared = prepared_gallery(rows, self.similarity, gallery.origin)
        gallery = gallery.plus_prepared(prepared, norms)
        if gallery.origin is not None and len(gallery) >= 2 * gallery.n_at_origin:
            return gallery._with_checked_origin()
        return gallery

    def plus_prepared(self, rows: np.ndarray, norms: np.ndarray | None = None) -> Gallery:
        """Gallery with prepared rows added, and their lengths before."""
        lengths = self.norms if norms is None else (self.norms or ChunkedRows()).plus(norms)
        largest = max(self.largest_norm, _largest_norm(rows))
        return replace(self, rows=self.rows.plus(rows), norms=lengths, largest_norm=largest)

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
            norms=None if self.norms is None else self.norms.subset(kept),
            removed=RemovedRows(),
            lineage=object(),
        )

    def added_rows(self, positions: np.ndarray) -> np.ndarray:
        """Rows as they were added, up to rounding."""
        rows = self.rows.take(positions)
        if self.origin is not None:
            return rows[:, :-1] + self.origin.astype(rows.dtype)
        if not is_cosine(self.similarity):
            return rows
        assert self.norms is not None  # rows were added by `plus`
        return (rows * self.norms.take(positions)[:, None]).astype(rows.dtype)

    def stored_norms(self) -> np.ndarray | None:
        """Lengths of the rows before they were prepared, in one array."""
        return None if self.norms is None else np.concatenate(self.norms.parts)

    def _with_checked_origin(self) -> Gallery:
        """Gallery with a new origin if most rows are far from the present one.

        The first rows of an index need not be like those added later.
        """
        assert self.origin is not None
        step = -(-len(self) // _SAMPLED_ROWS)
        sample = np.concatenate([part[::step, :-1] for part in self.rows.parts])
        if not (np.abs(sample.mean(axis=0)) > sample.std(axis=0)).any():
            return replace(self, n_at_origin=len(self))
        origin = origin_near(sample + self.origin.astype(sample.dtype))
        moved = replace(
            self, rows=ChunkedRows(), largest_norm=0.0, origin=origin, n_at_origin=len(self)
        )
        for part in self.rows.parts:
            rows = part[:, :-1] + self.origin.astype(part.dtype)
            moved = moved.plus_prepared(prepared_gallery(rows, self.similarity, origin))
        return moved

    def tiles(self, width: int) -> Iterator[tuple[int, np.ndarray, int]]:
        """Tiles of at most `width` rows: first position, padded rows, number of rows to count."""
        start = 0
        for chunk, part in zip(self.rows.chunks, self.rows.parts, strict=True):
            for first in range(0, len(part), width):
                n_rows = min(width, len(part) - first)
                yield start + first, chunk[first : first + _padded_height(n_rows)], n_rows
            start += len(part)

    def queries(self, rows: Any, exclude_self: bool = False) -> np.ndarray:
        """Check and prepare queries, in the precision of the gallery.

        `exclude_self` matters to corrections for hubs that depend on the best item of a query.
        """
        rows = checked_rows(rows, "queries", self.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        rows = prepared_queries(rows, self.similarity, self.origin)
        if not is_cosine(self.similarity) and (
            _largest_norm(rows) * self.largest_norm > np.finfo(rows.dtype).max
        ):
            raise ValueError(
                f"Scores overflow {rows.dtype}: rescale queries and gallery, or use float64."
            )
        return rows

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of prepared queries with all rows, (n_queries, n_gallery)."""
        block, n_queries = padded(queries), len(queries)
        tiles = [(block @ rows.T)[:n_queries, :n] for _, rows, n in self.tiles(len(self))]
        return tiles[0] if len(tiles) == 1 else np.hstack(tiles)

    def offsets(self, queries: np.ndarray) -> np.ndarray:
        """Column to add to products with prepared queries so that they are similarities.

        The similarity of distances is -‖q - g‖² / 2.
        """
        if self.similarity != "euclidean":
            return np.zeros((len(queries), 1), queries.dtype)
        return -np.einsum("ij,ij->i", queries[:, :-1], queries[:, :-1])[:, None] / 2

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists, from the products of prepared queries with items."""
        if self.similarity != "euclidean":
            return products, items

        def distances(block: slice) -> np.ndarray:  # of the rows: in products, small ones cancel
            rows = self.rows.take(items[block])
            return np.linalg.norm(queries[block, None, :-1] - rows[..., :-1], axis=2)

        blocks = block_slices(len(queries), queries.itemsize * queries.shape[1] * items.shape[1])
        return in_order(-np.concatenate([products[:0], *each(distances, blocks)]), items)


def in_order(scores: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lists by descending score, equal scores by index."""
    order = np.lexsort((items, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(items, order, 1)


def padded(rows: np.ndarray) -> np.ndarray:
    """Rows, and zero rows up to a multiple of 16.

    BLAS rounds the last rows and columns of a product differently from the rest. With padding,
    equal rows have equal scores wherever they stand.
    """
    missing = _padded_height(len(rows)) - len(rows)
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))


def _padded_height(n_rows: int) -> int:
    return -(-n_rows // _PAD) * _PAD


def _largest_norm(rows: np.ndarray) -> float:
    with np.errstate(over="ignore"):  # the caller compares with the largest float
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
        return float(np.sqrt(squares.max(initial=0)))
