"""Arrays stored in chunks: HDF5 data sets, read by h5py, and Zarr arrays in a local folder.

Zarr reads a missing chunk as its fill value, because it does not write chunks that hold nothing
else; a store whose writer died looks complete.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from mvcca.sources._file import FileSource, cut_tall, optional, stamp
from mvcca.sources._row_source import SourceError

__all__ = ["ChunkedArray", "Hdf5Dataset", "ZarrArray", "from_dataset", "from_zarr"]

_ZARR_METADATA = ("zarr.json", ".zarray")  # of format 3 and format 2


class ChunkedArray(FileSource):
    """An array of a file, by its name in the file; without a name, the only matrix."""

    _row_axis = 0

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        super().__init__(path, key or None)
        with self._errors_named("cannot be opened"):
            with self._arrays() as arrays:
                self.key = self._checked_key({k: a.shape or () for k, a in arrays.items()})
                array = arrays[self.key]
                shape, dtype = array.shape or (), array.dtype
                chunks = getattr(array, "chunks", None)
            self._stamp = self._current_stamp()
            self._describe(shape[:: -1 if self._row_axis else 1], dtype)
            if chunks is not None:
                edges = (*range(0, len(self), chunks[self._row_axis]), len(self))
                self.boundaries = cut_tall(edges, self.row_bytes)

    @abstractmethod
    def _arrays(self) -> AbstractContextManager[Mapping[str | None, Any]]:
        """All arrays of the open file by name; an array without a name is that of the file."""

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        with self._array() as array:
            for start, stop in runs:
                block = array[:, start:stop].T if self._row_axis else array[start:stop]
                yield np.ascontiguousarray(block, dtype=self.dtype)

    @abstractmethod
    def _array(self) -> AbstractContextManager[Any]:
        """The open array, without listing the others of the file."""


class Hdf5Dataset(ChunkedArray):
    """A data set of an HDF5 file."""

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str | None, Any]]:
        with self._file() as file:
            found: dict[str | None, Any] = {}
            file.visititems(lambda name, item: found.update(self._listed(name, item)))
            yield found

    def _listed(self, name: str, item: Any) -> dict[str, Any]:
        return {name: item} if hasattr(item, "shape") else {}

    @contextmanager
    def _array(self) -> Iterator[Any]:
        with self._file() as file:
            yield file[self.key]

    def _file(self) -> Any:
        return optional("h5py", os.path.splitext(self.path)[1]).File(self.path, "r")


class ZarrArray(ChunkedArray):
    """An array of a Zarr folder."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        super().__init__(path, key)
        self._contents = self._current_contents()

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str | None, Any]]:
        zarr = optional("zarr", ".zarr")
        node = zarr.open(self.path, mode="r")
        if isinstance(node, zarr.Array):
            yield {None: node}
        else:
            members = node.members(max_depth=None)
            yield {name: item for name, item in members if isinstance(item, zarr.Array)}

    @contextmanager
    def _array(self) -> Iterator[Any]:
        zarr = optional("zarr", ".zarr")
        yield zarr.open_array(self.path, path=self.key or "", mode="r")

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        yield from super()._read_file(runs)
        # Checked at the end of a pass: the times of all chunks are too many for every block.
        if runs and runs[-1][1] == len(self) and self._current_contents() != self._contents:
            raise SourceError(f"{self._folder}: chunks have changed since it was opened.")

    @property
    def _folder(self) -> str:
        return os.path.join(self.path, self.key) if self.key else self.path

    def _current_stamp(self) -> tuple[int, ...]:
        """Stamp of the array's own metadata."""
        files = (os.path.join(self._folder, name) for name in _ZARR_METADATA)
        return stamp(next(filter(os.path.exists, files), self.path))

    def _current_contents(self) -> tuple[int, int, int]:
        """Number of files, total size and last change."""
        stamps = [stamp(path) for path in self._stored_in()]
        return len(stamps), sum(size for size, _ in stamps), max(time for _, time in stamps)

    def _stored_in(self) -> list[str]:
        folders = os.walk(self._folder)
        return sorted(os.path.join(folder, name) for folder, _, names in folders for name in names)

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self._contents)


def from_dataset(dataset: Any) -> Hdf5Dataset:
    """The source of an open HDF5 data set; its file is opened again for reading."""
    file = dataset.file
    if file.mode != "r":
        raise SourceError(
            f"{file.filename} is open for writing. Close it and open it with "
            "h5py.File(path, 'r'), so that it can be opened again where it is read."
        )
    if dataset.name is None:
        raise SourceError(f"{file.filename}: a data set without a name cannot be opened again.")
    return Hdf5Dataset(file.filename, dataset.name)


def from_zarr(array: Any) -> ZarrArray:
    """The source of an open Zarr array, which is opened again for reading."""
    root = getattr(array.store, "root", None)
    if type(array.store).__name__ != "LocalStore" or root is None:
        raise SourceError(
            f"Expected a zarr array in a local folder, got one in a {type(array.store).__name__}. "
            "Copy it to a folder, or read it with array[:]."
        )
    return ZarrArray(root, array.path)
