"""Plain binary numbers in a file, at any offset and strides: `.npy`, raw files, and memory maps.

Rows that are contiguous in the file are read into a new buffer. Other layouts are read piece by
piece: a column at a time in Fortran order, else a few rows at a time with the bytes between them.
Files are not memory-mapped, since mapped pages count as memory of the process; memory is bounded by
the block. Files too large for the page cache are dropped from it as they are read.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from mvcca.blocks.sources._file import FileSource, reason_of
from mvcca.blocks.sources._row_source import SourceError
from mvcca.machine.memory import memory_bytes

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
        self._claimed, self._stored, self._offset, self._strides = shape, stored, offset, strides
        super().__init__(path)

    def _open(self) -> None:
        self.describe(self._claimed, self._stored)
        first, end = self._extent(range(self.shape[0]), range(self.shape[1]))
        if first < 0 or end > self._stamp[0]:
            raise SourceError(
                f"{self.shown} is truncated: {self.shape[0]} rows of {self.shape[1]} columns of "
                f"{self.dtype} end at byte {end}, the file has {self._stamp[0]}."
            )

    def identity(self) -> tuple[Any, ...]:
        return (*super().identity(), self._stored.str, self._offset, self._strides)

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

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        # Unbuffered: each block is one system call, and a buffer would be a second copy.
        with open(self.path, "rb", buffering=0) as file:
            n_bytes = self._stored.itemsize
            if self._strides != (n_bytes * self.shape[1], n_bytes):  # rows have gaps
                yield from (self._pick_rows(file, start, stop) for start, stop in ranges)
                return
            if len(ranges) > 1 and hasattr(os, "posix_fadvise"):
                for start, stop in ranges:  # scattered rows are read from the disk side by side
                    offset, end = self._extent(range(start, stop), range(self.shape[1]))
                    os.posix_fadvise(file.fileno(), offset, end - offset, os.POSIX_FADV_WILLNEED)
            fits = self._stamp[0] <= _CACHED_SHARE * memory_bytes()
            keep = fits or not hasattr(os, "posix_fadvise")  # in the page cache
            yield from (self._read_rows(file, start, stop, keep) for start, stop in ranges)

    def _read_rows(self, file: Any, start: int, stop: int, keep: bool) -> np.ndarray:
        offset = self._offset + start * self._strides[0]
        block = _numbers(file, self._stored, (stop - start, self.shape[1]), offset)
        if not keep:
            # Copies from a full cache cost three times the CPU time, and evict other files.
            os.posix_fadvise(file.fileno(), offset, block.nbytes, os.POSIX_FADV_DONTNEED)
        if self._stored != self.dtype:  # in another byte order
            block = block.byteswap(inplace=True).view(self.dtype)
        return block

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
        content = _numbers(file, np.uint8, (end - first,), first)
        origin = self._offset - first
        if content.size:
            origin += rows[0] * self._strides[0] + columns[0] * self._strides[1]
        return np.ndarray((len(rows), len(columns)), self._stored, content, origin, self._strides)


def _numbers(file: Any, dtype: Any, shape: tuple[int, ...], offset: int) -> np.ndarray:
    """An array in a file, from an offset on."""
    file.seek(offset)
    found = np.fromfile(file, dtype, prod(shape))
    if len(found) < prod(shape):
        raise EOFError("it ends before its last row")
    return found.reshape(shape)


def open_npy(path: str | os.PathLike[str]) -> BinaryFile:
    """The matrix of a `.npy` file, in C or in Fortran order."""
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype = read_header(file)
            offset = file.tell()
        if any(size < 0 for size in shape):
            raise ValueError(f"its shape is {shape}")
    except Exception as error:  # a damaged header raises any exception of Python's parser
        raise SourceError(f"{path}: cannot be opened as .npy: {reason_of(error)}") from error
    order = shape if fortran else shape[::-1]  # fastest axis first
    steps = tuple(accumulate(order[:-1], mul, initial=dtype.itemsize))  # may exceed 64 bits
    return BinaryFile(path, shape, dtype, offset, steps if fortran else steps[::-1])


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Any array of numbers or text in a `.npy` file, whole."""
    with open(path, "rb") as file:
        shape, _, dtype = read_header(file)
        check_claim("it", shape, dtype, os.fstat(file.fileno()).st_size - file.tell())
    return np.load(path, allow_pickle=False)


def check_claim(what: str, shape: tuple[int, ...], dtype: np.dtype, room: int) -> None:
    """Raise unless an array holds real numbers or text, for which there is room."""
    if dtype.kind not in "biufUS":
        kind = "pickled objects, which are never loaded" if dtype.hasobject else dtype
        raise ValueError(f"{what} holds {kind}; expected real numbers or text")
    n_bytes = prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or n_bytes > room:
        raise ValueError(f"{what} claims {dtype} {shape}, {n_bytes:,} bytes, and has {room:,}")


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and dtype; leaves the file where the numbers begin."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(file)
    if version in ((2, 0), (3, 0)):  # these differ only in the encoding of names of fields
        return npy_format.read_array_header_2_0(file)
    raise ValueError(f"format {version} is unknown; write it again by numpy.save")


def from_memmap(block: np.memmap) -> BinaryFile | None:
    """The part of a file that a memory map shows, or None if the file does not hold its numbers.

    That is the case for results computed from a map, copy-on-write maps (mode "c"), and files
    without a name.
    """
    base = getattr(block, "_mmap", None)
    path = block.filename
    if base is None or path is None or block.ndim != 2 or block.mode == "c":
        return None
    if not os.path.exists(path):  # deleted since it was mapped
        return None
    if block.mode != "r":
        block.flush()  # so that the file and its modification time are up to date
    # A slice keeps the offset of the map it was cut from; only its address is its own.
    start_of_map = np.frombuffer(base, dtype=np.uint8).__array_interface__["data"][0]
    offset_of_map = block.offset - block.offset % mmap.ALLOCATIONGRANULARITY
    offset = offset_of_map + block.__array_interface__["data"][0] - start_of_map
    return BinaryFile(path, block.shape, block.dtype, offset, block.strides)
