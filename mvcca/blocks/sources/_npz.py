"""Arrays in `.npz` archives, and sparse matrices as `scipy.sparse.save_npz` writes them.

A CSR matrix is read by blocks of rows, other formats whole. Compressed members of a zip archive can
only be read forwards. Each thread keeps its place, so that blocks read in order cost one pass over
the file; reading an earlier block starts from the top. Claimed sizes are checked against the
archive before memory is taken for them.
"""

from __future__ import annotations

import os
import weakref
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from mvcca.blocks.sources._binary import check_claim, read_header
from mvcca.blocks.sources._file import CsrFile, PerThread, checked_offsets
from mvcca.blocks.sources._row_source import SourceError

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
    """Read a whole matrix written by `scipy.sparse.save_npz`, in any of its formats."""
    # Indices are checked here, since compiled loops would read outside the matrix.
    kind = kind_of_sparse(path)
    if kind == "csr":
        source = SparseNpz(path)
        return source.read(0, len(source))
    shape = _shape(path)
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
