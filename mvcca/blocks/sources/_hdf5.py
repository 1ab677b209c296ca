"""Data sets of HDF5 files, read by h5py; no link is followed into another file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil, prod
from typing import Any

import numpy as np

from mvcca.blocks.sources._chunked import ChunkedArray, Stored
from mvcca.blocks.sources._file import library
from mvcca.blocks.sources._row_source import SourceError

_COPY = "Copy them into a data set: file.create_dataset(name, data=old[:])."


class Hdf5Dataset(ChunkedArray):
    """A data set of an HDF5 file."""

    @contextmanager
    def _arrays(self) -> Iterator[Mapping[str | None, Any]]:
        with open_hdf5(self.path) as file:
            found: dict[str | None, Any] = {}
            file.visititems(lambda name, item: found.update(self._listed(name, item)))
            yield found

    def _listed(self, name: str, item: Any) -> dict[str, Any]:
        return {name: item} if hasattr(item, "shape") else {}

    @contextmanager
    def _array(self) -> Iterator[Any]:
        with open_hdf5(self.path) as file:
            yield file[self.key]

    def _links(self) -> str:
        with open_hdf5(self.path) as file:
            return _links_in_words(file)

    def _stored(self, array: Any) -> Stored:
        reject_other_files(self.name, array)
        n_bytes = array.id.get_storage_size()
        if not n_bytes:
            raise SourceError(f"{self.name}: its numbers were never written.")
        reads_as = f"they were never written and read as {array.fillvalue}."
        n_chunks = array.chunks and prod(map(ceil, np.divide(array.shape, array.chunks).tolist()))
        if not array.chunks or array.id.get_num_chunks() == n_chunks:
            return n_bytes, None, reads_as
        found: list[Any] = []
        if hasattr(array.id, "chunk_iter"):
            array.id.chunk_iter(found.append)
        else:  # HDF5 before 1.12.3
            found = [array.id.get_chunk_info(n) for n in range(array.id.get_num_chunks())]
        places = (np.floor_divide(one.chunk_offset, array.chunks).tolist() for one in found)
        return n_bytes, map(tuple, places), reads_as


def open_hdf5(path: str | os.PathLike[str]) -> Any:
    """An HDF5 file, open for reading."""
    return library("h5py", os.path.splitext(path)[1] or "HDF5").File(path, "r")


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


# ---- links ----


def _links_in_words(file: Any) -> str:
    """What the links of a file lead to, as sentences that follow an error; "" without links."""
    found: dict[str, Any] = {}
    file.visititems_links(lambda name, link: found.update({name: link}))
    said = [
        f" {_link_in_words(name, link, file)}"
        for name, link in found.items()
        if hasattr(link, "path")
    ]
    return "".join(said[:3]) + (f" There are {len(said)} links." if len(said) > 3 else "")


def reject_links(name: str, group: Any, key: str) -> None:
    """Raise if a path in a group leads into another file or to nothing; `name` names the file."""
    parts = key.strip("/").split("/")
    for number, part in enumerate(parts, start=1):
        link = group.get(part, getlink=True)
        inner = None if hasattr(link, "filename") else group.get(part)
        if inner is None and hasattr(link, "path"):
            message = _link_in_words("/".join(parts[:number]), link, group.file)
            raise SourceError(f"{name}: {message}")
        if not hasattr(inner, "keys"):
            return
        group = inner


def reject_other_files(name: str, array: Any) -> None:
    """Raise if the numbers of a data set are stored in other files."""
    if array.external or array.is_virtual:
        raise SourceError(
            f"{name}: its numbers are in other files, which are not followed. {_COPY}"
        )


def _link_in_words(name: str, link: Any, file: Any) -> str:
    if hasattr(link, "filename"):
        return (
            f"{name!r} is a link to {link.path!r} in {link.filename!r}; links to other files are "
            f"not followed. {_COPY}"
        )
    if file.get(link.path) is None:
        return f"{name!r} is a link to {link.path!r}, which is not in the file."
    return f"{name!r} is a link to {link.path!r}; name that."
