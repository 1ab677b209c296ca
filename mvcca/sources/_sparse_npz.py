"""CSR matrices written by `scipy.sparse.save_npz`.

Compressed members of a zip archive can only be read forwards. Each thread keeps its place, so that
blocks read in order cost one pass over the file; reading an earlier block starts from the top.
"""

from __future__ import annotations

import os
import weakref
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz

from mvcca.sources._file import FileSource, PerThread
from mvcca.sources._npy import read_header
from mvcca.sources._row_source import SourceError

__all__ = ["SparseNpz", "read_sparse"]

_PIECE_BYTES = 2**20


def read_sparse(file: Any) -> csr_array:
    """Read a whole matrix written by `scipy.sparse.save_npz`, in any of its formats.

    Raises
    ------
    ValueError
        If an index points outside the matrix; compiled loops would not check it.
    """
    matrix = load_npz(file)
    if hasattr(matrix, "check_format"):  # other formats check indices on creation
        matrix.check_format(full_check=True)
    return csr_array(matrix)


class SparseNpz(FileSource):
    """A CSR matrix in an `.npz` file; `indptr` stays in memory, 4 or 8 bytes per row."""

    is_sparse = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._here = PerThread()
        with self._errors_named("cannot be opened"):
            with open(self.path, "rb") as file, zipfile.ZipFile(file) as archive:
                shape = self._checked_shape(archive)
            members = {name: _Member(self.path, name) for name in ("data", "indices", "indptr")}
            self._describe(shape, members["data"].dtype)
            self._n_entries = members["data"].size
            self._row_starts: np.ndarray | None = self._checked_row_starts(members)

    def _checked_shape(self, archive: zipfile.ZipFile) -> tuple[int, ...]:
        names = archive.namelist()
        if "format.npy" not in names or "shape.npy" not in names:
            raise SourceError(
                f"{self.path} holds {names}, not a sparse matrix of scipy.sparse.save_npz. Dense "
                "arrays in an .npz can only be read whole: save each to a .npy file."
            )
        kind = np.lib.format.read_array(archive.open("format.npy"), allow_pickle=False).item()
        kind = kind.decode() if isinstance(kind, bytes) else kind
        if kind != "csr":
            raise SourceError(
                f"{self.path}: expected rows stored one after the other (csr), got {kind}. Write "
                "it again with save_npz(path, load_npz(path).tocsr())."
            )
        shape = np.lib.format.read_array(archive.open("shape.npy"), allow_pickle=False)
        if shape.dtype.kind not in "iu":
            raise SourceError(f"{self.path}: expected a shape of whole numbers, got {shape}.")
        return tuple(shape.tolist())

    def _checked_row_starts(self, members: dict[str, _Member]) -> np.ndarray:
        """`indptr`, checked to be consistent with the other arrays."""
        sizes = {name: member.size for name, member in members.items()}
        if sizes["indptr"] != len(self) + 1 or sizes["data"] != sizes["indices"]:
            raise SourceError(f"{self.path} is damaged: {len(self)} rows, but arrays of {sizes}.")
        for name in ("indices", "indptr"):
            if members[name].dtype.kind not in "iu":
                raise SourceError(f"{self.path} is damaged: its {name} are {members[name].dtype}.")
        starts = members["indptr"].read(0, len(self) + 1)
        ends_meet = starts[0] == 0 and starts[-1] == starts.max() == sizes["data"]
        if not ends_meet or (starts[1:] < starts[:-1]).any():
            raise SourceError(f"{self.path} is damaged: its row offsets are inconsistent.")
        return starts

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_row_starts": None}

    @property
    def row_bytes(self) -> int:
        entries = self._n_entries // max(1, len(self)) + 1
        return entries * (self.dtype.itemsize + 4) + 4

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[csr_array]:
        data, indices = vars(self._here).pop("place", None) or self._top()
        if self._row_starts is None:
            self._row_starts = _Member(self.path, "indptr").read(0, len(self) + 1)
        for start, stop in runs:
            row_starts = self._row_starts[start : stop + 1]
            first, end = int(row_starts[0]), int(row_starts[-1])
            columns = indices.read(first, end)
            if columns.size and not 0 <= columns.min() <= columns.max() < self.shape[1]:
                raise SourceError(
                    f"{self.path} is damaged: rows {start} to {stop} name columns "
                    f"{columns.min()} to {columns.max()} of {self.shape[1]}."
                )
            shape = (stop - start, self.shape[1])
            yield csr_array((data.read(first, end), columns, row_starts - first), shape=shape)

        self._here.place = data, indices  # not reached after an error

    def _top(self) -> tuple[_Member, _Member]:
        return _Member(self.path, "data"), _Member(self.path, "indices")


class _Member:
    """A vector in an archive; `zipfile` keeps the position and can seek back."""

    def __init__(self, path: str, name: str) -> None:
        file = open(path, "rb")  # noqa: SIM115
        weakref.finalize(self, file.close)  # open as long as this object lives
        with zipfile.ZipFile(file) as archive:
            self._file: Any = archive.open(f"{name}.npy")
        shape, _, self._stored = read_header(self._file)
        if len(shape) != 1 or self._stored.hasobject:
            raise ValueError(f"{name!r} must be a vector of numbers")
        self.size, self.dtype = shape[0], self._stored.newbyteorder("=")
        self._begin = self._file.tell()

    def read(self, start: int, stop: int) -> np.ndarray:
        """A range of the numbers, read in pieces, since `zipfile` buffers each read."""
        numbers = np.empty(stop - start, dtype=self._stored)
        self._file.seek(self._begin + start * self._stored.itemsize)
        rest = numbers.view(np.uint8).data
        while rest.nbytes:
            n_bytes = self._file.readinto(rest[:_PIECE_BYTES])
            if not n_bytes:
                raise EOFError("it ends before its last row")
            rest = rest[n_bytes:]
        return numbers.astype(self.dtype, copy=False)
