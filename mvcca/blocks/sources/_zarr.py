"""Arrays in a local Zarr folder, read by zarr."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from mvcca.blocks.sources._chunked import ChunkedArray, Place, Stored
from mvcca.blocks.sources._file import library, stamp
from mvcca.blocks.sources._row_source import SourceError

_METADATA = ("zarr.json", ".zarray")  # of format 3 and format 2
_CHUNK = re.compile(r"(?:c[./])?(\d+)[./](\d+)")  # file name of a chunk: its place in the grid
_ABSENT = 2**64 - 1  # offset in the index of a shard


class ZarrArray(ChunkedArray):
    """An array of a Zarr folder."""

    def _opened(self, key: str | None = None) -> AbstractContextManager[Any]:
        return nullcontext(library("zarr", ".zarr").open(self.path, path=key or "", mode="r"))

    def _arrays(self, file: Any) -> dict[str | None, Any]:
        members = [(None, file)] if hasattr(file, "shape") else file.members(max_depth=None)
        return {name: item for name, item in members if hasattr(item, "shape")}

    def _open(self) -> None:
        for path in _files_in(self.path):
            stamp(path)  # a FIFO among them would be waited for
        super()._open()
        self._contents = self._current_contents()

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        yield from super()._read_file(ranges)
        # Checked at the end of a pass: the times of all chunks are too many for every block.
        if ranges and ranges[-1][1] == len(self) and self._current_contents() != self._contents:
            raise SourceError(f"{self._folder}: chunks have changed since it was opened.")

    def _stored(self, array: Any) -> Stored:
        reads_as = (
            f"they read as {array.fill_value}: either they hold nothing else, and Zarr left them "
            "out, or they were never written. To tell, write all chunks: "
            "config={'write_empty_chunks': True}."
        )
        return self._current_contents()[1], self._stored_chunks(array), reads_as

    def _stored_chunks(self, array: Any) -> Iterator[Place]:
        for path in self._stored_in():
            name = os.path.relpath(path, self._folder).replace(os.sep, "/")
            if place := _CHUNK.fullmatch(name):
                i, j = map(int, place.groups())
                yield from [(i, j)] if array.shards is None else _chunks_in_shard(path, i, j, array)

    @property
    def _folder(self) -> str:
        return os.path.join(self.path, self.key) if self.key else self.path

    def _current_stamp(self) -> tuple[int, ...]:
        """Stamp of the array's own metadata."""
        files = (os.path.join(self._folder, name) for name in _METADATA)
        return stamp(next(filter(os.path.exists, files), self.path))

    def _current_contents(self) -> tuple[int, int, int]:
        """Number of files, total size and last change."""
        stamps = [stamp(path) for path in self._stored_in()]
        return len(stamps), sum(size for size, _ in stamps), max(time for _, time in stamps)

    def _stored_in(self) -> list[str]:
        return _files_in(self._folder)

    def identity(self) -> tuple[Any, ...]:
        return (*super().identity(), self._contents)


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


def from_zarr(array: Any) -> ZarrArray:
    """The source of an open Zarr array, which is opened again for reading."""
    root = getattr(array.store, "root", None)
    if type(array.store).__name__ != "LocalStore" or root is None:
        raise SourceError(
            f"Expected a zarr array in a local folder, got one in a {type(array.store).__name__}. "
            "Copy it to a folder, or read it with array[:]."
        )
    return ZarrArray(root, array.path)
