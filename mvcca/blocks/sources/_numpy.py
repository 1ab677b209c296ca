"""Binary numbers at any offset and strides (`.npy`, raw files, memory maps), and `.npz` archives.

Rows that are contiguous in the file are read into a new buffer. Other layouts are read piece by
piece: a column at a time in Fortran order, else a few rows at a time with the bytes between them.
Files are not memory-mapped, since mapped pages count as memory of the process; memory is bounded by
the block. Files too large for the page cache are dropped from it as they are read.

A CSR matrix, as `scipy.sparse.save_npz` writes it, is read by blocks of rows, other formats whole.
Compressed members of an archive can only be read forwards. Each thread keeps its place, so that
blocks read in order cost one pass over the file; reading an earlier block starts from the top.
Claimed sizes are checked against the file before memory is taken for them.
"""

from __future__ import annotations

import mmap
import os
import weakref
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from scipy.sparse import csr_array, load_npz

from mvcca.blocks.sources._file import CsrFile, FileSource, PerThread, checked_offsets, errors_named
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
            for start, stop in ranges:
                block = self._piece(file, range(start, stop), range(self.shape[1]))
                if not keep:
                    # Copies from a full cache cost three times the CPU time, and evict other files.
                    place = self._offset + start * self._strides[0]
                    os.posix_fadvise(file.fileno(), place, block.nbytes, os.POSIX_FADV_DONTNEED)
                if self._stored != self.dtype:  # in another byte order
                    block = block.byteswap(inplace=True).view(self.dtype)
                yield block

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
        file.seek(first)
        content = np.fromfile(file, np.uint8, end - first)
        if len(content) < end - first:
            raise EOFError("it ends before its last row")
        origin = self._offset - first
        if content.size:
            origin += rows[0] * self._strides[0] + columns[0] * self._strides[1]
        return np.ndarray((len(rows), len(columns)), self._stored, content, origin, self._strides)


def open_npy(path: str | os.PathLike[str]) -> BinaryFile:
    """The matrix of a `.npy` file, in C or in Fortran order."""
    with (
        errors_named(lambda: os.fspath(path), "cannot be opened as .npy"),
        open(path, "rb") as file,
    ):
        shape, fortran, dtype = read_header(file)
        offset = file.tell()
        if any(size < 0 for size in shape):
            raise ValueError(f"its shape is {shape}")
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


# ---- archives ------------------------------------------------------------------------------------


_PIECE_BYTES = 2**20
_ID_NAMES = ("ids", "id", "index")  # of an array of ids beside a matrix
_MOST_DEFLATED = 1032  # bytes per compressed byte that deflate can reach


def names_of_members(path: str | os.PathLike[str]) -> list[str]:
    """Names of the arrays in an archive."""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


class Member:
    """An array in an archive; `zipfile` keeps the position and can seek back."""

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        file = open(path, "rb")  # noqa: SIM115
        weakref.finalize(self, file.close)  # open as long as this object lives
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo(f"{name}.npy")
            self._file: Any = archive.open(info)
        self.shape, self._is_fortran, self._stored = read_header(self._file)
        self.size, self.dtype = prod(self.shape), self._stored.newbyteorder("=")
        self._begin = self._file.tell()
        ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _MOST_DEFLATED}
        room = min(
            info.file_size, info.compress_size * ratio.get(info.compress_type, info.file_size)
        )
        check_claim(repr(name), self.shape, self._stored, room - self._begin)

    def array(self) -> np.ndarray:
        """The whole array."""
        order = "F" if self._is_fortran else "C"
        return self[:].reshape(self.shape, order=order)  # type: ignore[call-overload]

    def __getitem__(self, numbers: slice) -> np.ndarray:
        """A range of the numbers, read in pieces, since `zipfile` buffers each read."""
        start, stop, _ = numbers.indices(self.size)
        found = np.empty(stop - start, dtype=self._stored)
        rest = found.view(np.uint8).data if found.nbytes else memoryview(b"")
        self._file.seek(self._begin + start * self._stored.itemsize)
        while rest.nbytes:
            n_bytes = self._file.readinto(rest[:_PIECE_BYTES])
            if not n_bytes:
                raise EOFError("it ends before its last row")
            rest = rest[n_bytes:]
        return found.astype(self.dtype, copy=False)


def open_npz(path: str, key: str | None, ids: str | None) -> tuple[Any, Any, str | None]:
    """An array of an archive, or its sparse matrix; and the array of ids beside it, and its name.

    By default it is the only array beside the ids, which by default have the name of ids.
    """
    names = names_of_members(path)
    if len(names) > 1:
        ids = next((name for name in (ids, *_ID_NAMES) if name in names), ids)
    if key is None and ids is None and (kind := kind_of_sparse(path)) is not None:
        return SparseNpz(path) if kind == "csr" else read_sparse(path), None, None
    if ids is not None and ids not in names:
        raise ValueError(f"it has no array {ids!r}; it contains {names}")
    rest = [name for name in names if name != ids]
    if key is None and len(rest) != 1:
        raise ValueError(
            f"it contains the arrays {rest}; name one, as in {os.path.basename(path)}:KEY"
        )
    key = rest[0] if key is None else key
    if key not in rest:
        raise ValueError(f"it has no array {key!r}; it contains {names}")
    return Member(path, key).array(), ids and Member(path, ids).array(), ids


def kind_of_sparse(path: str | os.PathLike[str]) -> str | None:
    """Format of the sparse matrix in an archive, such as "csr"; None if it holds none."""
    if not {"format", "shape", "data"}.issubset(names_of_members(path)):
        return None
    member = Member(path, "format")
    if member.size != 1:
        raise ValueError(f"its sparse format has the shape {member.shape}")
    kind = member.array().item()
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def read_sparse(path: str | os.PathLike[str]) -> csr_array:
    """Read a whole matrix written by `scipy.sparse.save_npz`, in any of its formats but CSR."""
    # Indices are checked here, since compiled loops would read outside the matrix.
    kind, shape = kind_of_sparse(path), _shape(path)
    members = {name: Member(path, name) for name in names_of_members(path)}
    shapes = {name: member.shape for name, member in members.items()}
    if "indptr" in members:
        data, indices = shapes["data"], shapes["indices"]
        if data[:1] != indices or len(data) != (1 if kind == "csc" else 3):
            raise ValueError(f"its arrays do not belong together: {shapes}")
        n_lines = shape[1] if kind == "csc" else shape[0] // max(data[1], 1)
        checked_offsets(members["indptr"], n_lines, indices[0])
    ends = [shapes[name][-1:] for name in ("row", "col", "coords") if name in shapes]
    ends += [shapes["data"][-1:]] * bool(ends or kind == "dia")
    if len(set(ends)) > 1 or (kind == "dia" and ends > [(max(shape),)]):
        raise ValueError(f"its arrays do not belong together: {shapes}")
    matrix: Any = load_npz(path)  # other formats check their indices on creation
    if hasattr(matrix, "indptr"):
        matrix.check_format(full_check=True)
    return csr_array(matrix)


class SparseNpz(CsrFile):
    """A CSR matrix in an `.npz` file; `indptr` stays in memory, 4 or 8 bytes per row."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._here = PerThread()
        super().__init__(path)

    def _open(self) -> None:
        kind = kind_of_sparse(self.path)
        if kind is None:
            raise SourceError(
                f"{self.shown} holds {names_of_members(self.path)}, not a sparse matrix of "
                "scipy.sparse.save_npz. Dense arrays in an .npz can only be read whole: save each "
                "to a .npy file."
            )
        if kind != "csr":
            raise SourceError(
                f"{self.shown}: expected rows stored one after the other (csr), got {kind}. Write "
                "it again with save_npz(path, load_npz(path).tocsr())."
            )
        members = self._members()
        self._row_starts: np.ndarray | None = self._describe(_shape(self.path), members)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_row_starts": None}

    def _members(self) -> dict[str, Member]:
        return {name: Member(self.path, name) for name in ("data", "indices", "indptr")}

    @contextmanager
    def _arrays(self) -> Iterator[dict[str, Any]]:
        arrays = vars(self._here).pop("place", None) or self._members()
        if self._row_starts is None:
            self._row_starts = arrays["indptr"][:]
        yield {**arrays, "indptr": self._row_starts}
        self._here.place = arrays  # not reached after an error


def _shape(path: str | os.PathLike[str]) -> tuple[int, ...]:
    member = Member(path, "shape")
    if member.dtype.kind not in "iu" or member.shape != (2,):
        kind = member.array() if member.size < 9 else member.shape
        raise SourceError(f"{path}: expected a shape of two whole numbers, got {kind}.")
    return tuple(member.array().tolist())
