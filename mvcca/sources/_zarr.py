"""Zarr arrays in a local folder.

Zarr itself reads a chunk that is missing as its fill value, since it does not write chunks that
hold nothing else: a store whose writer died is not told from a complete one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.sources._file import FileSource, chunk_edges, cut_tall, optional, stamp, the_only_matrix
from mvcca.sources._row_source import SourceError

__all__ = ["ZarrArray", "from_zarr"]

_METADATA = ("zarr.json", ".zarray")  # of version 3 and of version 2


class ZarrArray(FileSource):
    """An array of a Zarr folder, by its path in there; by default the only matrix there is."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        super().__init__(path, key or None)
        with self._errors_named("cannot be opened"):
            self._find()
            array = self._opened()
            self._describe(array.shape, array.dtype)
            edges = chunk_edges(len(self), array.chunks[0])
            self.boundaries = cut_tall(edges, self.row_bytes)
        self._contents = self._current_contents()

    def _find(self) -> None:
        """Make `key` and the stamp those of an array."""
        zarr = optional("zarr", ".zarr")
        node = zarr.open(self.path, mode="r")
        if isinstance(node, zarr.Array):
            if self.key is not None:
                raise SourceError(f"{self.path} is one array; it has no {self.key!r}.")
            return
        arrays = {k: v for k, v in node.members(max_depth=None) if isinstance(v, zarr.Array)}
        if self.key is None:
            self.key = the_only_matrix(self.path, {k: v.shape for k, v in arrays.items()})
        self.key = self.key.strip("/")
        if self.key not in arrays:
            raise SourceError(f"{self.path}: no array {self.key!r}; there are {sorted(arrays)}.")
        self._stamp = self._current_stamp()

    def _opened(self) -> Any:
        return optional("zarr", ".zarr").open_array(self.path, path=self.key or "", mode="r")

    @property
    def _folder(self) -> str:
        return os.path.join(self.path, self.key) if self.key else self.path

    def _current_stamp(self) -> tuple[int, ...]:
        """Of the array's own metadata, which every block asks for."""
        for name in _METADATA:
            file = os.path.join(self._folder, name)
            if os.path.exists(file):
                return stamp(file)
        return stamp(self.path)

    def _current_contents(self) -> tuple[int, int, int]:
        """Number of files, bytes in all and last change: of every chunk."""
        stamps = [stamp(path) for path in self._stored_in()]
        return len(stamps), sum(size for size, _ in stamps), max(time for _, time in stamps)

    def _stored_in(self) -> list[str]:
        return sorted(
            os.path.join(folder, name)
            for folder, _, names in os.walk(self._folder)
            for name in names
        )

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self._contents)

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        array = self._opened()
        for start, stop in runs:
            yield np.ascontiguousarray(array[start:stop], dtype=self.dtype)
        # Every chunk's time would be asked for at every block; a pass over the rows ends here.
        if runs and runs[-1][1] == len(self) and self._current_contents() != self._contents:
            raise SourceError(f"{self._folder}: chunks have changed since it was opened.")


def from_zarr(array: Any) -> ZarrArray:
    """The source of an open array, which is opened again where it is read."""
    root = getattr(array.store, "root", None)
    if type(array.store).__name__ != "LocalStore" or root is None:
        raise SourceError(
            f"Expected a zarr array in a local folder, got one in a {type(array.store).__name__}. "
            "Copy it to a folder, or read it with array[:]."
        )
    return ZarrArray(root, array.path)
