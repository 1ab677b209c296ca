"""Data sets of HDF5 files, read through h5py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.sources._file import FileSource, chunk_edges, cut_tall, optional, the_only_matrix
from mvcca.sources._row_source import SourceError

__all__ = ["Hdf5Dataset", "from_dataset"]


class Hdf5Dataset(FileSource):
    """A data set of an HDF5 file, by its name in the file; by default the only matrix there is."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        super().__init__(path, key)
        with self._errors_named("cannot be opened"), self._opened() as file:
            if key is None:
                self.key = self._only_key(file)
            if self.key not in file or not hasattr(file[self.key], "shape"):
                raise SourceError(
                    f"{self.path}: no data set {self.key!r}; there are {sorted(_shapes(file))}."
                )
            dataset = file[self.key]
            self._describe(dataset.shape or (), dataset.dtype)
            if dataset.chunks is not None:
                edges = chunk_edges(len(self), dataset.chunks[0])
                self.boundaries = cut_tall(edges, self.row_bytes)

    def _only_key(self, file: Any) -> str:
        return the_only_matrix(self.path, _shapes(file))

    def _opened(self) -> Any:
        return optional("h5py", ".h5").File(self.path, "r")

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        with self._opened() as file:
            dataset = file[self.key]
            for start, stop in runs:
                yield np.ascontiguousarray(dataset[start:stop], dtype=self.dtype)


def from_dataset(dataset: Any) -> Hdf5Dataset:
    """The source of an open data set, whose file is opened again where it is read."""
    file = dataset.file
    if file.mode != "r":
        raise SourceError(
            f"{file.filename} is open for writing. Close it and open it with "
            "h5py.File(path, 'r'), so that it can be opened again where it is read."
        )
    if dataset.name is None:
        raise SourceError(f"{file.filename}: a data set without a name cannot be opened again.")
    return Hdf5Dataset(file.filename, dataset.name)


def _shapes(file: Any) -> dict[str, tuple[int, ...]]:
    """Shapes of all data sets, in groups too."""
    shapes: dict[str, tuple[int, ...]] = {}

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "shape"):
            shapes[name] = item.shape or ()

    file.visititems(visit)
    return shapes
