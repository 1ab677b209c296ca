"""The gallery: item vectors of the rows to rank, made once, and query vectors to multiply with.

Rows are checked here, where they come in, by `checked_rows`; a gallery and its queries are made of
checked rows.

Galleries are values: a change gives a new one, and a search in progress keeps the rows it started
with. Added rows are stored in spare capacity behind the rows of older values, and removed rows are
only marked, so that a change costs what the changed rows cost. Only one thread may change a gallery
at a time, and always the newest value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.retrieval.similarity import Cosine, InnerProduct, IntegerCosine

CHUNK_ROWS = 8192  # a multiple of the width of the tiles that are searched
_PAD = 16  # a multiple of the widths of BLAS's inner loops; chunks are padded to it


def checked_rows(rows: Any, name: str, dtype: np.dtype | None = None, first: int = 0) -> np.ndarray:
    """Finite rows as a C-contiguous float32 or float64 matrix in host memory.

    Errors number the rows from `first`.
    """
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
class ChunkedRows:
    """Rows in one chunk, or in chunks of `CHUNK_ROWS` rows, all full but the last.

    A chunk has the shape (capacity, ...); beyond the rows of this value it holds zeros, or rows of
    newer values.
    """

    chunks: tuple[np.ndarray, ...] = ()
    n: int = 0

    @classmethod
    def of_parts(cls, parts: Sequence[np.ndarray]) -> ChunkedRows:
        """Rows of consecutive parts; parts that fill a chunk are not copied."""
        n_whole = next((i for i, p in enumerate(parts) if len(p) != CHUNK_ROWS), len(parts))
        rows = cls(tuple(parts[:n_whole]), CHUNK_ROWS * n_whole)
        for part in parts[n_whole:]:
            rows = rows.plus(part)
        return rows

    @property
    def dtype(self) -> np.dtype:
        """Common type of all chunks."""
        return np.result_type(*{chunk.dtype for chunk in self.chunks})

    @property
    def parts(self) -> list[np.ndarray]:
        """Rows of each chunk."""
        if len(self.chunks) == 1:
            return [self.chunks[0][: self.n]]
        starts = range(0, self.n, CHUNK_ROWS)
        return [chunk[: self.n - start] for chunk, start in zip(self.chunks, starts, strict=True)]

    def parts_from(self, start: int) -> list[np.ndarray]:
        """Rows from `start` on, chunk by chunk."""
        ends = np.cumsum([len(part) for part in self.parts])
        return [
            part[max(0, len(part) - (end - start)) :]
            for part, end in zip(self.parts, ends, strict=True)
            if end > start
        ]

    @property
    def n_bytes(self) -> int:
        """Bytes of all chunks, spare capacity included, in memory or mapped from a file."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def plus(self, added: np.ndarray) -> ChunkedRows:
        """Rows with more at the end. Only the last chunk is ever copied, to enlarge it."""
        chunks, n = list(self.chunks), self.n
        while len(added):
            fill = n - CHUNK_ROWS * (len(chunks) - 1)
            if not chunks or fill == CHUNK_ROWS:
                chunks.append(added[:0])
                fill = 0
            taken, added = np.split(added, [CHUNK_ROWS - fill])
            end, last = fill + len(taken), chunks[-1]
            dtype = np.result_type(last, taken)
            if end > len(last) or dtype != last.dtype:
                capacity = CHUNK_ROWS
                if len(chunks) == 1:  # it grows by doubling, so that a small index stays small
                    capacity = min(CHUNK_ROWS, max(2 * len(last), -(-end // _PAD) * _PAD))
                last = np.zeros((capacity, *taken.shape[1:]), dtype)
                last[:fill] = chunks[-1][:fill]
                chunks[-1] = last
            last[fill:end] = taken
            n += len(taken)
        return ChunkedRows(tuple(chunks), n)

    def take(self, positions: np.ndarray) -> np.ndarray:
        """Rows at the positions, of shape positions.shape + (...)."""
        if len(self.chunks) == 1:
            return self.chunks[0][positions]
        if positions.size > self.n:
            return np.concatenate(self.parts)[positions]
        taken = np.empty(positions.shape + self.chunks[0].shape[1:], self.dtype)
        chunk_of, place = np.divmod(positions, CHUNK_ROWS)
        for number in np.unique(chunk_of):
            here = chunk_of == number
            taken[here] = self.chunks[number][place[here]]
        return taken

    def subset(self, positions: np.ndarray) -> ChunkedRows:
        """Rows at ascending positions, copied chunk by chunk."""
        subset = ChunkedRows()
        starts = np.cumsum([0, *map(len, self.parts)])
        edges = np.searchsorted(positions, starts)
        for part, start, a, b in zip(self.parts, starts, edges, edges[1:], strict=False):
            subset = subset.plus(part[positions[a:b] - start])
        return subset


@dataclass(frozen=True, eq=False)
class RemovedRows:
    """Positions of rows that are no longer there, by chunk."""

    by_chunk: Mapping[int, np.ndarray] = field(default_factory=dict)  # sorted, within the chunk
    n: int = 0

    def plus(self, positions: np.ndarray) -> RemovedRows:
        """More positions, each of a row that was still there."""
        chunk_of, places = np.divmod(np.sort(positions), CHUNK_ROWS)
        numbers, starts = np.unique(chunk_of, return_index=True)
        by_chunk = dict(self.by_chunk)
        for number, new in zip(numbers.tolist(), np.split(places, starts[1:]), strict=True):
            by_chunk[number] = np.union1d(by_chunk.get(number, new[:0]), new)
        return RemovedRows(by_chunk, self.n + len(positions))

    def within(self, start: int, stop: int) -> np.ndarray:
        """Positions from `start` to `stop`, counted from `start`; the range is of one chunk."""
        number, first = divmod(start, CHUNK_ROWS)
        places = self.by_chunk.get(number)
        if places is None:
            return np.empty(0, dtype=np.intp)
        a, b = np.searchsorted(places, [first, first + stop - start])
        return places[a:b] - first

    def positions(self) -> np.ndarray:
        """All positions."""
        parts = [CHUNK_ROWS * number + places for number, places in self.by_chunk.items()]
        return np.concatenate([np.empty(0, dtype=np.intp), *parts])


@dataclass(frozen=True, eq=False)
class Gallery:
    """Item vectors of the rows to rank, and the similarity that made them."""

    similarity: InnerProduct
    rows: ChunkedRows = field(default_factory=ChunkedRows)  # item vectors; chunks are padded
    largest_norm: float = 0.0  # of the item vectors; 0 if unknown
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
        return cls(similarity, chunks, similarity.longest(vectors), device=device)

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

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """Query vectors of checked rows, in the precision of the gallery."""
        if rows.dtype != self.dtype:  # large numbers may overflow
            rows = checked_rows(rows, "queries", self.dtype)
        if rows.shape[1] != self.n_components:
            raise ValueError(
                f"Queries have {rows.shape[1]} components, the gallery has {self.n_components}."
            )
        vectors = self.similarity.queries(rows)
        if self.largest_norm:
            norm = self.similarity.longest(vectors)
            if norm * self.largest_norm > np.finfo(vectors.dtype).max:
                raise ValueError(
                    f"Scores overflow {vectors.dtype}: rescale queries and gallery, or use float64."
                )
        return vectors

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of query vectors with all item vectors, (n_queries, n_gallery)."""
        block, n_queries = padded(queries), len(queries)
        exact = partial(self.similarity.of_products, queries=block)
        tiles = [
            exact(block @ rows.T, items=rows)[:n_queries, :n]
            for _, rows, n in self.tiles(len(self))
        ]
        return tiles[0] if len(tiles) == 1 else np.hstack(tiles)

    def of_products(self) -> Gallery:
        """The gallery with item vectors whose products are the similarities themselves."""
        if not isinstance(self.similarity, IntegerCosine):
            return self
        chunks = tuple(map(self.similarity.compared, self.rows.chunks))
        return replace(self, similarity=Cosine(), rows=ChunkedRows(chunks, self.rows.n))

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
    equal rows have equal scores wherever they stand; but for float32 on processors without AVX-512,
    where OpenBLAS also rounds by the place among every twelve rows.
    """
    missing = -len(rows) % _PAD
    return rows if not missing else np.pad(rows, ((0, missing), (0, 0)))
