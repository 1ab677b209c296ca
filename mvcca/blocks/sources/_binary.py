"""Plain binary numbers in a file, at any offset and strides: `.npy` and raw files, or parts.

Rows that are contiguous in the file are read into a new buffer. Other layouts are read piece by
piece: a column at a time in Fortran order, else a few rows at a time with the bytes between them.
Files are not memory-mapped, since mapped pages count as memory of the process; memory is bounded by
the block. Files too large for the page cache are dropped from it as they are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.blocks.sources._file import FileSource
from mvcca.blocks.sources._row_source import SourceError
from mvcca.machine.memory import memory_bytes

__all__ = ["BinaryFile"]

_COLUMNS_AT_ONCE = 16
_PIECE_BYTES = 2**20
_CACHED_SHARE = 1 / 8  # of this machine's memory that a file may fill


class BinaryFile(FileSource):
    """Matrix whose entry (i, j) is at byte offset + i * strides[0] + j * strides[1]."""

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
        """Byte range that holds some rows and columns."""
        if not rows or not columns:
            return self._offset, self._offset
        ends = [
            (axis[0] * step, axis[-1] * step)
            for axis, step in zip((rows, columns), self._strides, strict=True)
        ]
        first, last = sum(map(min, ends)), sum(map(max, ends))
        return self._offset + first, self._offset + last + self._stored.itemsize

    @property
    def _is_contiguous(self) -> bool:
        width = self._stored.itemsize * self.shape[1]
        return self._strides == (width, self._stored.itemsize)

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        # Unbuffered: each block is one system call, and a buffer would be a second copy.
        with open(self.path, "rb", buffering=0) as file:
            if not self._is_contiguous:
                yield from (self._pick_rows(file, start, stop) for start, stop in runs)
                return
            if len(runs) > 1 and hasattr(os, "posix_fadvise"):
                for start, stop in runs:  # scattered rows are read from the disk side by side
                    offset, end = self._extent(range(start, stop), range(self.shape[1]))
                    os.posix_fadvise(file.fileno(), offset, end - offset, os.POSIX_FADV_WILLNEED)
            keep = _fits_in_cache(self._stamp[0])
            yield from (self._read_rows(file, start, stop, keep) for start, stop in runs)

    def _read_rows(self, file: Any, start: int, stop: int, keep: bool) -> np.ndarray:
        block = np.empty((stop - start, self.shape[1]), dtype=self._stored)
        offset = self._offset + start * self._strides[0]
        _fill(block, file, offset)
        if not keep:
            # Copies from a full cache cost three times the CPU time, and evict other files.
            os.posix_fadvise(file.fileno(), offset, block.nbytes, os.POSIX_FADV_DONTNEED)
        return self._native(block)

    def _native(self, block: np.ndarray) -> np.ndarray:
        if self._stored == self.dtype:
            return block
        return block.byteswap(inplace=True).view(self.dtype)

    def _pick_rows(self, file: Any, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        row_step, column_step = (abs(step) for step in self._strides)
        if row_step < column_step:
            for j in range(0, self.shape[1], _COLUMNS_AT_ONCE):  # one cache line of a block's row
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
        """Some rows and columns, read with the bytes between them."""
        first, end = self._extent(rows, columns)
        content = np.empty(end - first, dtype=np.uint8)
        _fill(content, file, first)
        origin = self._offset - first
        if content.size:
            origin += rows[0] * self._strides[0] + columns[0] * self._strides[1]
        shape = len(rows), len(columns)
        return np.ndarray(shape, self._stored, content, origin, self._strides)


def _fits_in_cache(n_bytes: int) -> bool:
    """Whether a file may stay in the page cache until it is read again."""
    return not hasattr(os, "posix_fadvise") or n_bytes <= _CACHED_SHARE * memory_bytes()


def _fill(block: np.ndarray, file: Any, offset: int) -> None:
    """Fill a block with the bytes of a file from an offset on."""
    rest = block.reshape(-1).view(np.uint8).data
    file.seek(offset)
    while rest.nbytes:  # a call may read less, and at most 2 GiB
        n_bytes = file.readinto(rest)
        if not n_bytes:
            raise EOFError("it ends before its last row")
        rest = rest[n_bytes:]
