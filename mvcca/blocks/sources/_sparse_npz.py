"""Sparse matrices written by `scipy.sparse.save_npz`: CSR by blocks of rows, other formats whole.

Compressed members of a zip archive can only be read forwards. Each thread keeps its place, so that
blocks read in order cost one pass over the file; reading an earlier block starts from the top.
Sizes and row offsets are checked before the entries are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse import bsr_array, csc_array, csr_array, load_npz

from mvcca.blocks.sources._file import FileSource, PerThread
from mvcca.blocks.sources._npz import Member, names_of_members
from mvcca.blocks.sources._row_source import SourceError

__all__ = ["SparseNpz", "check_offsets", "kind_of_sparse", "read_sparse"]


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


class SparseNpz(FileSource):
    """A CSR matrix in an `.npz` file; `indptr` stays in memory, 4 or 8 bytes per row."""

    is_sparse = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self._here = PerThread()
        with self._errors_named("cannot be opened"):
            self._check_kind()
            data, indices, indptr = (
                Member(self.path, name) for name in ("data", "indices", "indptr")
            )
            self._describe(_shape(self.path), data.dtype)
            self._n_entries = data.size
            self._row_starts: np.ndarray | None = self._checked_row_starts(data, indices, indptr)

    def _check_kind(self) -> None:
        kind = kind_of_sparse(self.path)
        if kind is None:
            raise SourceError(
                f"{self.path} holds {names_of_members(self.path)}, not a sparse matrix of "
                "scipy.sparse.save_npz. Dense arrays in an .npz can only be read whole: save each "
                "to a .npy file."
            )
        if kind != "csr":
            raise SourceError(
                f"{self.path}: expected rows stored one after the other (csr), got {kind}. Write "
                "it again with save_npz(path, load_npz(path).tocsr())."
            )

    def _checked_row_starts(self, data: Member, indices: Member, indptr: Member) -> np.ndarray:
        """`indptr`, checked to be consistent with the other arrays."""
        if data.shape != indices.shape or len(data.shape) != 1:
            raise SourceError(
                f"{self.path} is damaged: its data have the shape {data.shape}, its indices "
                f"{indices.shape}."
            )
        if indices.dtype.kind not in "iu":
            raise SourceError(f"{self.path} is damaged: its indices are {indices.dtype}.")
        try:
            return _offsets(indptr, len(self), data.size)
        except ValueError as error:
            raise SourceError(f"{self.path} is damaged: {error}.") from error

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_row_starts": None}

    @property
    def row_bytes(self) -> int:
        entries = self._n_entries // max(1, len(self)) + 1
        return entries * (self.dtype.itemsize + 4) + 4

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[csr_array]:
        data, indices = vars(self._here).pop("place", None) or self._top()
        if self._row_starts is None:
            self._row_starts = Member(self.path, "indptr").read(0, len(self) + 1)
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
