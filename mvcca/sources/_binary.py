"""Plain numbers in a file, at any offset and strides: `.npy` files, raw files, parts of either.

Rows that lie in the file one after the other are read straight into a fresh buffer, of files too
large for the page cache past it. From any other
layout they are picked piece by piece: a column at a time where columns lie together (Fortran
order), else a few rows at a time with what lies between them. Nothing is read through a map, whose
pages would count as memory of the process, so that this is bounded by the block.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.sources._file import FileSource
from mvcca.sources._past_cache import fits_in_cache, open_past_cache, read_past_cache
from mvcca.sources._row_source import SourceError

__all__ = ["BinaryFile"]

_COLUMNS_AT_ONCE = 16
_PIECE_BYTES = 2**20


class BinaryFile(FileSource):
    """Numbers of type `stored`, entry (i, j) at byte offset + i * strides[0] + j * strides[1]."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: tuple[int, ...],
        stored: np.dtype,
        offset: int,
        strides: tuple[int, ...],
    ) -> None:
        super().__init__(path)
        self._describe(shape, stored)
        self._stored, self._offset, self._strides = stored, offset, strides
        first, end = self._extent(range(self.shape[0]), range(self.shape[1]))
        if first < 0 or end > self._stamp[0]:
            raise SourceError(
                f"{self.path} is truncated: {shape[0]} rows of {shape[1]} columns of {self.dtype} "
                f"end at byte {end}, the file has {self._stamp[0]}."
            )

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self._stored.str, self._offset, self._strides)

    def _extent(self, rows: range, columns: range) -> tuple[int, int]:
        """The first byte that belongs to some rows and columns, and the one after the last."""
        if not rows or not columns:
            return self._offset, self._offset
        ends = [
            (axis[0] * step, axis[-1] * step)
            for axis, step in zip((rows, columns), self._strides, strict=True)
        ]
        first, last = sum(map(min, ends)), sum(map(max, ends))
        return self._offset + first, self._offset + last + self._stored.itemsize

    @property
    def _rows_lie_together(self) -> bool:
        width = self._stored.itemsize * self.shape[1]
        return self._strides == (width, self._stored.itemsize)

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        if (descriptor := self._open_past_cache()) is not None:
            try:
                for start, stop in runs:
                    first, end = self._extent(range(start, stop), range(self.shape[1]))
                    content = read_past_cache(descriptor, first, end).view(self._stored)
                    yield self._native(content.reshape(-1, self.shape[1]))
            finally:
                os.close(descriptor)
            return
        # Rows of this size are one system call each; a buffer between would only copy them.
        with open(self.path, "rb", buffering=0) as file:
            read = self._read_rows if self._rows_lie_together else self._pick_rows
            for start, stop in runs:
                yield read(file, start, stop)

    def _open_past_cache(self) -> int | None:
        # Numbers at odd places in the file would be at odd places in memory.
        is_aligned = self._offset % self._stored.itemsize == 0
        if fits_in_cache(self._stamp[0]) or not (is_aligned and self._rows_lie_together):
            return None
        return open_past_cache(self.path)

    def _read_rows(self, file: Any, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.shape[1]), dtype=self._stored)
        _fill(block, file, self._offset + start * self._strides[0])
        return self._native(block)

    def _native(self, block: np.ndarray) -> np.ndarray:
        if self._stored == self.dtype:
            return block
        return block.byteswap(inplace=True).view(self.dtype)

    def _pick_rows(self, file: Any, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        row_step, column_step = (abs(step) for step in self._strides)
        if row_step < column_step:
            for j in range(0, self.shape[1], _COLUMNS_AT_ONCE):  # a cache line of the block each
                part = block[:, j : j + _COLUMNS_AT_ONCE]
                each = range(j, j + part.shape[1])
                columns = [self._piece(file, range(start, stop), range(k, k + 1)) for k in each]
                part[:] = np.concatenate([column.T for column in columns]).T
            return block
        height = max(1, _PIECE_BYTES // max(1, row_step))
        for row in range(start, stop, height):
            rows = range(row, min(row + height, stop))
            block[row - start : rows.stop - start] = self._piece(file, rows, range(self.shape[1]))
        return block

    def _piece(self, file: Any, rows: range, columns: range) -> np.ndarray:
        """Some rows and columns, of which all that lies between them is read."""
        first, end = self._extent(rows, columns)
        content = np.empty(end - first, dtype=np.uint8)
        _fill(content, file, first)
        origin = self._offset - first
        if content.size:
            origin += rows[0] * self._strides[0] + columns[0] * self._strides[1]
        shape = len(rows), len(columns)
        return np.ndarray(shape, self._stored, content, origin, self._strides)


def _fill(block: np.ndarray, file: Any, offset: int) -> None:
    """Read a block's bytes from a place in a file."""
    rest = block.reshape(-1).view(np.uint8).data
    file.seek(offset)
    while rest.nbytes:  # one call may return less, above 2 GiB it always does
        n_bytes = file.readinto(rest)
        if not n_bytes:
            raise EOFError("it ends before its last row")
        rest = rest[n_bytes:]
