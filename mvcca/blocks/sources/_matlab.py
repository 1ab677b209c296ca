"""MATLAB `.mat` files: up to version 7 read by SciPy, version 7.3 as the HDF5 files that they are.

SciPy reads a variable as a whole, so the matrix of an older file stays in memory. Version 7.3
stores matrices transposed; blocks of rows are read from the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca.blocks.sources._file import FileSource
from mvcca.blocks.sources._hdf5 import Hdf5Dataset
from mvcca.blocks.sources._row_source import RowSource

_HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_USER_BLOCK = 512  # bytes that MATLAB writes before the signature
_INTEGERS = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
_NUMBERS = {name: np.dtype(name) for name in _INTEGERS} | {
    "double": np.dtype(np.float64),
    "single": np.dtype(np.float32),
    "logical": np.dtype(bool),
    "sparse": np.dtype(np.float64),
}


def open_mat(path: str | os.PathLike[str], key: str | None = None) -> RowSource:
    """The matrix of a `.mat` file, by the name of the variable."""
    with open(path, "rb") as file:
        file.seek(_USER_BLOCK)
        is_hdf5 = file.read(len(_HDF5_SIGNATURE)) == _HDF5_SIGNATURE
    return MatlabDataset(path, key) if is_hdf5 else MatlabMatrix(path, key)


class MatlabDataset(Hdf5Dataset):
    """A full matrix of numbers in a `.mat` file of version 7.3."""

    _row_axis = 1

    def _arrays(self, file: Any) -> dict[str | None, Any]:
        """Variables other than text, cells and structures, whose contents are references."""
        found = {name: item for name, item in super()._arrays(file).items() if "/" not in str(name)}
        kinds = {name: item.attrs.get("MATLAB_class") for name, item in found.items()}
        return {name: found[name] for name in found if kinds[name] not in (b"char", b"cell")}


class MatlabMatrix(FileSource):
    """A matrix of numbers, full or sparse, in a `.mat` file of version 4 to 7."""

    def _open(self) -> None:
        self._matrix: Any = self._loaded()  # not pickled
        self.is_sparse = issparse(self._matrix)
        self.describe(self._matrix.shape, self._matrix.dtype)
        if self.is_sparse:
            parts = self._matrix.data, self._matrix.indices, self._matrix.indptr
            self.row_bytes = sum(part.nbytes for part in parts) // max(1, len(self))

    def _loaded(self) -> Any:
        from scipy.io import loadmat, whosmat

        kinds = {name: (shape, kind) for name, shape, kind in whosmat(self.path)}
        self._choose({name: shape for name, (shape, kind) in kinds.items() if kind in _NUMBERS})
        assert self.key is not None
        shape, kind = kinds[self.key]
        numbers = shape[:1] if kind == "sparse" else shape  # row offsets
        self._check_claim(prod(numbers) * _NUMBERS[kind].itemsize)
        matrix: Any = loadmat(self.path, variable_names=[self.key])[self.key]
        if hasattr(matrix, "check_format"):  # before compiled loops follow its indices
            matrix.check_format(full_check=True)
        matrix = csr_array(matrix) if issparse(matrix) else np.ascontiguousarray(matrix)
        # MATLAB stores doubles that are small whole numbers as integers.
        dtype = _NUMBERS[kind] if matrix.dtype.kind in "biu" else matrix.dtype
        return matrix.astype(dtype, copy=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_matrix": None}

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        if self._matrix is None:
            self._matrix = self._loaded()
        for start, stop in ranges:
            yield self._matrix[start:stop].copy()
