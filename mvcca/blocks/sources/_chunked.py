"""Base of arrays that are stored in chunks: HDF5 data sets and Zarr arrays.

Both libraries read a missing chunk as the fill value, so that a few bytes can claim any shape. Zarr
by default does not store chunks that hold nothing else, so that chunks which were never written
look the same; HDF5 lacks only chunks that were never written. A warning tells their number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from math import ceil, prod
from typing import Any

import numpy as np

from mvcca.blocks.sources._file import FileSource, cut_tall
from mvcca.blocks.sources._row_source import SourceError
from mvcca.machine.warnings import warn

_QUICK_CHUNKS = 10_000
_MOST_BOUNDARIES = 10**6

Place = tuple[int, ...]  # of a chunk in the grid of chunks
# Bytes that are stored; places of the stored chunks, None if all are; how missing ones read.
Stored = tuple[int, Iterable[Place] | None, str]


class ChunkedArray(FileSource):
    """An array of a file, by its name in the file; without a name, the only matrix."""

    _row_axis = 0

    @abstractmethod
    def _opened(self, key: str | None = None) -> AbstractContextManager[Any]:
        """The open file, or an array of it."""

    @abstractmethod
    def _arrays(self, file: Any) -> Mapping[str | None, Any]:
        """All arrays of the open file by name; an array without a name is that of the file."""

    @abstractmethod
    def _stored(self, array: Any) -> Stored:
        """What is stored of an array, and how chunks that are not read: the end of a warning."""

    def _open(self) -> None:
        with self._opened() as file:
            arrays = self._arrays(file)
            self._choose({key: array.shape or () for key, array in arrays.items()})
            array = arrays[self.key]
            self.describe(self._rows_first(array.shape or ()), array.dtype)
            chunks = getattr(array, "chunks", None)
            chunks = None if chunks is None else self._rows_first(chunks)
            if prod(self.shape):
                self._check_stored(self._stored(array), chunks)
        self._stamp = self._current_stamp()
        if chunks is not None:  # checked, so that a claim does not decide their number
            height = chunks[0] * max(1, ceil(len(self) / chunks[0] / _MOST_BOUNDARIES))
            edges = (*range(0, len(self), height), len(self))
            self.boundaries, self.starts = cut_tall(edges, self.row_bytes), edges[:-1]

    def _rows_first(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return axes[::-1] if self._row_axis else axes

    def _check_stored(self, stored: Stored, chunks: Place | None) -> None:
        """Warn if chunks are missing, and raise if little or nothing is stored."""
        n_bytes, places, reads_as = stored
        self._check_claim(len(self) * self.row_bytes, n_bytes)
        if chunks is None:
            return
        self._check_claim(prod(chunks) * self.dtype.itemsize, n_bytes)
        if places is None:
            return
        grid = tuple(ceil(size / step) for size, step in zip(self.shape, chunks, strict=True))
        places = map(self._rows_first, places)
        inside = {place for place in places if place[0] < grid[0] and place[1] < grid[1]}
        total, missing = prod(grid), prod(grid) - len(inside)
        if total > _QUICK_CHUNKS * max(1, len(inside)):
            raise SourceError(
                f"{self.name}: {len(inside):,} of its {total:,} chunks are stored; it is damaged "
                "or was never written."
            )
        if missing:
            bands = Counter(band for band, _ in inside)
            whole = [band for band, number in bands.items() if number == grid[1]]
            n_rows = sum(min(chunks[0], len(self) - band * chunks[0]) for band in whole)
            warn(
                f"{self.name}: {missing:,} of {total:,} chunks are not stored, in "
                f"{len(self) - n_rows:,} of {len(self):,} rows; {reads_as}"
            )

    def beside(self, name: str) -> np.ndarray:
        """Another array of the file, whole; texts are objects."""
        with self._errors_named("cannot be read"), self._opened() as file:
            arrays = self._arrays(file)
            if name not in arrays:
                names = sorted(key for key in arrays if key not in (None, self.key))
                raise SourceError(
                    f"{self.shown}: it has no array {name!r} of ids; beside the matrix it has "
                    f"{', '.join(map(repr, names)) or 'none'}.{self._links()}"
                )
            found = np.asarray(arrays[name][...])
        return found if found.dtype.kind in "biufUS" else found.astype(object)

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        with self._opened(self.key) as array:
            for start, stop in ranges:
                block = array[:, start:stop].T if self._row_axis else array[start:stop]
                yield np.ascontiguousarray(block, dtype=self.dtype)
