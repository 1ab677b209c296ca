"""Arrays in `.npz` archives, and sparse matrices as `scipy.sparse.save_npz` writes them.

A CSR matrix is read by blocks of rows, other formats whole. Compressed members of a zip archive can
only be read forwards. Each thread keeps its place, so that blocks read in order cost one pass over
the file; reading an earlier block starts from the top. Claimed sizes are checked against the
archive, and row offsets against the entries, before memory is taken for them.
"""

from __future__ import annotations

import os
import weakref
import zipfile
from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, csc_array, csr_array, load_npz

from mvcca.blocks.sources._binary import read_header
from mvcca.blocks.sources._file import CsrFile, PerThread
from mvcca.blocks.sources._row_source import SourceError

__all__ = ["SparseNpz", "beside_npz", "check_offsets", "kind_of_sparse", "read_npz", "read_sparse"]

_PIECE_BYTES = 2**20
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
        if self._stored.hasobject:
            raise ValueError(f"{name!r} holds pickled objects, which are never loaded")
        self.size, self.dtype = prod(self.shape), self._stored.newbyteorder("=")
        self._begin = self._file.tell()
        end = self._begin + self.size * self._stored.itemsize
        ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _MOST_DEFLATED}
        room = min(
            info.file_size, info.compress_size * ratio.get(info.compress_type, info.file_size)
        )
        if min(self.shape, default=0) < 0 or end > room:
            raise ValueError(
                f"{name!r} claims {self._stored} {self.shape}, more than the archive holds"
            )

    def array(self) -> np.ndarray:
        """The whole array."""
        order = "F" if self._is_fortran else "C"
        return self.read(0, self.size).reshape(self.shape, order=order)  # type: ignore[call-overload]

    def read(self, start: int, stop: int) -> np.ndarray:
        """A range of the numbers, read in pieces, since `zipfile` buffers each read."""
        numbers = np.empty(stop - start, dtype=self._stored)
        if not numbers.nbytes:
            return numbers.astype(self.dtype, copy=False)
        self._file.seek(self._begin + start * self._stored.itemsize)
        rest = numbers.view(np.uint8).data
        while rest.nbytes:
            n_bytes = self._file.readinto(rest[:_PIECE_BYTES])
            if not n_bytes:
                raise EOFError("it ends before its last row")
            rest = rest[n_bytes:]
        return numbers.astype(self.dtype, copy=False)


def read_npz(path: Path, key: str | None) -> Any:
    """An array of an archive, or the sparse matrix that it holds."""
    if key is None and kind_of_sparse(path) is not None:
        return read_sparse(path)
    return _member(path, names_of_members(path), key).array()


def beside_npz(path: Path, ids: str, key: str | None) -> tuple[np.ndarray, np.ndarray]:
    """An array of an archive, by default the only one beside the ids; and the ids."""
    names = names_of_members(path)
    if ids not in names:
        raise ValueError(f"it has no array {ids!r} of ids; it contains {names}")
    return _member(path, names, key, ids).array(), Member(path, ids).array()


def _member(path: Path, names: list[str], key: str | None, ids: str | None = None) -> Member:
    """The array of this name; by default the only one, except ids."""
    rest = [name for name in names if name != ids]
    if key is None and len(rest) != 1:
        raise ValueError(f"it contains the arrays {rest}; name one, as in {path.name}:KEY")
    key = rest[0] if key is None else key
    if key not in rest:
        raise ValueError(f"it has no array {key!r}; it contains {names}")
    return Member(path, key)


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
    """Read a whole matrix written by `scipy.sparse.save_npz`, in any of its formats."""
    # Indices are checked here, since compiled loops would read outside the matrix.
    kind = kind_of_sparse(path)
    if kind == "csr":
        source = SparseNpz(path)
        return source.read(0, len(source))
    shape = _shape(path)
    members = {name: Member(path, name) for name in names_of_members(path)}
    shapes = {name: member.shape for name, member in members.items()}
    if kind in ("csc", "bsr"):
        data, indices, indptr = (members[name] for name in ("data", "indices", "indptr"))
        n_lines = shape[1] if kind == "csc" else shape[0] // max((*data.shape, 1, 1)[1], 1)
        if data.shape[:1] != indices.shape or len(data.shape) != (1 if kind == "csc" else 3):
            raise ValueError(f"its arrays do not belong together: {shapes}")
        offsets = _offsets(indptr, n_lines, indices.size)
        parts = data.array(), indices.array(), offsets
        matrix: Any = (csc_array if kind == "csc" else bsr_array)(parts, shape=shape)
        matrix.check_format(full_check=True)
        return csr_array(matrix)
    ends = [shapes[name][-1:] for name in ("data", "row", "col", "coords") if name in shapes]
    if len(set(ends)) != 1 or (kind == "dia" and ends > [(max(shape),)]):
        raise ValueError(f"its arrays do not belong together: {shapes}")
    return csr_array(load_npz(path))  # other formats check their indices on creation


class SparseNpz(CsrFile):
    """A CSR matrix in an `.npz` file; `indptr` stays in memory, 4 or 8 bytes per row."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._here = PerThread()
        super().__init__(path)

    def _open(self) -> None:
        self._check_kind()
        data, indices, indptr = (Member(self.path, name) for name in ("data", "indices", "indptr"))
        self.describe(_shape(self.path), data.dtype)
        self._n_entries = data.size
        self._row_starts: np.ndarray | None = self._checked_row_starts(data, indices, indptr)

    def _check_kind(self) -> None:
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

    def _checked_row_starts(self, data: Member, indices: Member, indptr: Member) -> np.ndarray:
        """`indptr`, checked to be consistent with the other arrays."""
        if data.shape != indices.shape or len(data.shape) != 1:
            raise SourceError(
                f"{self.shown} is damaged: its data have the shape {data.shape}, its indices "
                f"{indices.shape}."
            )
        if indices.dtype.kind not in "iu":
            raise SourceError(f"{self.shown} is damaged: its indices are {indices.dtype}.")
        try:
            return _offsets(indptr, len(self), data.size)
        except ValueError as error:
            raise SourceError(f"{self.shown} is damaged: {error}.") from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_row_starts": None}

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[csr_array]:
        data, indices = vars(self._here).pop("place", None) or self._top()
        if self._row_starts is None:
            self._row_starts = Member(self.path, "indptr").read(0, len(self) + 1)
        for start, stop in ranges:
            ends = self._row_starts[start : stop + 1]
            first, end = int(ends[0]), int(ends[-1])
            columns = indices.read(first, end)
            yield self._csr(start, columns, data.read(first, end), ends - first)
        self._here.place = data, indices  # not reached after an error

    def _top(self) -> tuple[Member, Member]:
        return Member(self.path, "data"), Member(self.path, "indices")


def check_offsets(offsets: np.ndarray, n_entries: int) -> None:
    """Raise unless offsets of rows, or of columns, rise from 0 to the number of entries."""
    ends_meet = offsets[0] == 0 and offsets[-1] == offsets.max() == n_entries
    if not ends_meet or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("its row offsets are inconsistent")


def _offsets(indptr: Member, n_lines: int, n_entries: int) -> np.ndarray:
    if indptr.shape != (n_lines + 1,) or indptr.dtype.kind not in "iu":
        raise ValueError(
            f"its row offsets are {indptr.dtype} {indptr.shape}, expected {n_lines + 1} integers"
        )
    offsets = indptr.array()
    check_offsets(offsets, n_entries)
    return offsets


def _shape(path: str | os.PathLike[str]) -> tuple[int, ...]:
    member = Member(path, "shape")
    if member.dtype.kind not in "iu" or member.shape != (2,):
        kind = member.array() if member.size < 9 else member.shape
        raise SourceError(f"{path}: expected a shape of two whole numbers, got {kind}.")
    return tuple(member.array().tolist())
