"""Arrays stored in chunks: HDF5 data sets, read by h5py, and Zarr arrays in a local folder.

Both read a missing chunk as the fill value. Zarr by default does not store chunks that hold nothing
else, so that chunks which were never written look the same; HDF5 lacks only chunks that were never
written. A warning tells their number.
"""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import ceil, prod
from typing import Any

import numpy as np

from mvcca.blocks.sources._claims import check_chunks, check_claim
from mvcca.blocks.sources._file import FileSource, cut_tall, library, stamp
from mvcca.blocks.sources._links import links_in_words, reject_other_files
from mvcca.blocks.sources._row_source import SourceError

__all__ = ["ChunkedArray", "Hdf5Dataset", "ZarrArray", "from_dataset", "from_zarr"]

_ZARR_METADATA = ("zarr.json", ".zarray")  # of format 3 and format 2
_ZARR_CHUNK = re.compile(r"(?:c[./])?(\d+)[./](\d+)")  # file name of a chunk: its place in the grid
_ABSENT = 2**64 - 1  # offset in the index of a shard
_MOST_BOUNDARIES = 10**6

Place = tuple[int, ...]  # of a chunk in the grid of chunks


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
                self._describe(self._rows_first(shape), dtype)
                if prod(self.shape):
                    self._check_stored(array, None if chunks is None else self._rows_first(chunks))
            self._stamp = self._current_stamp()
            if chunks is not None:
                height = chunks[self._row_axis]
                height *= max(1, ceil(len(self) / height / _MOST_BOUNDARIES))
                edges = (*range(0, len(self), height), len(self))
                self.boundaries = cut_tall(edges, self.row_bytes)

    def _rows_first(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        return axes[::-1] if self._row_axis else axes

    def _check_stored(self, array: Any, chunks: tuple[int, ...] | None) -> None:
        """Warn if chunks are missing, and raise if little or nothing is stored."""
        name, n_bytes = self._name(), self._stored_bytes(array)
        check_claim(name, len(self) * self.row_bytes, n_bytes)
        if chunks is None:
            return
        check_claim(name, prod(chunks) * self.dtype.itemsize, n_bytes)
        if (places := self._stored_chunks(array)) is not None:
            stored = map(self._rows_first, places)
            check_chunks(name, self.shape, chunks, stored, self._reads_as(array))

    @abstractmethod
    def _stored_bytes(self, array: Any) -> int:
        """Bytes that are stored of an array."""

    @abstractmethod
    def _stored_chunks(self, array: Any) -> Iterable[Place] | None:
        """Places of the stored chunks, or None if all are stored."""

    @abstractmethod
    def _reads_as(self, array: Any) -> str:
        """End of the warning of missing chunks."""

    @abstractmethod
    def _arrays(self) -> AbstractContextManager[Mapping[str | None, Any]]:
        """All arrays of the open file by name; an array without a name is that of the file."""

    def _links(self) -> str:
        """What links in the file lead to, as sentences that follow an error."""
        return ""

    def beside(self, name: str) -> np.ndarray:
        """Another array of the file, whole; texts are objects."""
        with self._errors_named("cannot be read"), self._arrays() as arrays:
            if name not in arrays:
                others = ", ".join(repr(key) for key in arrays if key not in (None, self.key))
                raise SourceError(
                    f"{self.path}: it has no array {name!r} of ids; beside the matrix it has "
                    f"{others or 'none'}.{self._links()}"
                )
            found = np.asarray(arrays[name][...])
        return found if found.dtype.kind in "biufUS" else found.astype(object)

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

    def _checked_key(self, shapes: Mapping[str | None, tuple[int, ...]]) -> str | None:
        try:
            return super()._checked_key(shapes)
        except SourceError as error:
            raise SourceError(f"{error}{self._links()}") from None

    def _links(self) -> str:
        with self._file() as file:
            return links_in_words(file)

    @contextmanager
    def _array(self) -> Iterator[Any]:
        with self._file() as file:
            yield file[self.key]

    def _check_stored(self, array: Any, chunks: tuple[int, ...] | None) -> None:
        reject_other_files(self._name(), array)
        if not self._stored_bytes(array):
            raise SourceError(f"{self._name()}: its numbers were never written.")
        super()._check_stored(array, chunks)

    def _stored_bytes(self, array: Any) -> int:
        return array.id.get_storage_size()

    def _stored_chunks(self, array: Any) -> Iterable[Place] | None:
        n_stored = array.id.get_num_chunks()
        if n_stored == prod(map(ceil, np.divide(array.shape, array.chunks).tolist())):
            return None
        stored: list[Any] = []
        if hasattr(array.id, "chunk_iter"):
            array.id.chunk_iter(stored.append)
        else:  # HDF5 before 1.12.3
            stored = [array.id.get_chunk_info(number) for number in range(n_stored)]
        return [tuple(np.floor_divide(one.chunk_offset, array.chunks).tolist()) for one in stored]

    def _reads_as(self, array: Any) -> str:
        return f"they were never written and read as {array.fillvalue}."

    def _file(self) -> Any:
        return library("h5py", os.path.splitext(self.path)[1]).File(self.path, "r")


class ZarrArray(ChunkedArray):
    """An array of a Zarr folder."""

    def __init__(self, path: str | os.PathLike[str], key: str | None = None) -> None:
        super().__init__(path, key)
        self._contents = self._current_contents()

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str | None, Any]]:
        zarr = library("zarr", ".zarr")
        for path in _files_in(self.path):
            stamp(path)  # a FIFO among them would be waited for
        node = zarr.open(self.path, mode="r")
        if isinstance(node, zarr.Array):
            yield {None: node}
        else:
            members = node.members(max_depth=None)
            yield {name: item for name, item in members if isinstance(item, zarr.Array)}

    @contextmanager
    def _array(self) -> Iterator[Any]:
        zarr = library("zarr", ".zarr")
        yield zarr.open_array(self.path, path=self.key or "", mode="r")

    def _read_file(self, runs: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        yield from super()._read_file(runs)
        # Checked at the end of a pass: the times of all chunks are too many for every block.
        if runs and runs[-1][1] == len(self) and self._current_contents() != self._contents:
            raise SourceError(f"{self._folder}: chunks have changed since it was opened.")

    def _stored_bytes(self, array: Any) -> int:
        return self._current_contents()[1]

    def _stored_chunks(self, array: Any) -> Iterator[Place]:
        for path in self._stored_in():
            name = os.path.relpath(path, self._folder).replace(os.sep, "/")
            if place := _ZARR_CHUNK.fullmatch(name):
                i, j = map(int, place.groups())
                yield from [(i, j)] if array.shards is None else _chunks_in_shard(path, i, j, array)

    def _reads_as(self, array: Any) -> str:
        return (
            f"they read as {array.fill_value}: either they hold nothing else, and Zarr left them "
            "out, or they were never written. To tell, write all chunks: "
            "config={'write_empty_chunks': True}."
        )

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
        return _files_in(self._folder)

    def _identity(self) -> tuple[Any, ...]:
        return (*super()._identity(), self._contents)


def _files_in(folder: str) -> list[str]:
    folders = os.walk(folder)
    return sorted(os.path.join(folder, name) for folder, _, names in folders for name in names)


def _chunks_in_shard(path: str, i: int, j: int, array: Any) -> Iterator[Place]:
    """Places of the chunks in a shard that its index locates; all if the index is compressed."""
    height, width = (a // b for a, b in zip(array.shards, array.chunks, strict=True))
    (codec,) = array.metadata.codecs
    is_plain = {type(one).__name__ for one in codec.index_codecs} <= {"BytesCodec", "Crc32cCodec"}
    n_bytes, offsets = 16 * height * width, np.zeros((height, width), dtype="<u8")
    if is_plain:
        with open(path, "rb") as file:
            if codec.index_location.value == "end":
                file.seek(-n_bytes - 4 * (len(codec.index_codecs) - 1), os.SEEK_END)
            offsets = np.frombuffer(file.read(n_bytes), "<u8").reshape(height, width, 2)[..., 0]
    for row, column in np.argwhere(offsets != _ABSENT).tolist():
        yield i * height + row, j * width + column


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
