"""Data sets of HDF5 files, read by h5py; no link is followed into another file.

Matrices of ``.h5ad`` files, which AnnData writes, are data sets, or CSR in a group with ``data``,
``indices`` and ``indptr``, whose attributes hold the format and the shape. Names of their columns
come from the index of ``var`` beside the matrix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, prod
from typing import Any

import numpy as np

from mvcca.blocks.sources._chunked import ChunkedArray, Stored
from mvcca.blocks.sources._file import CsrFile, library
from mvcca.blocks.sources._row_source import RowSource, SourceError

_COPY = "Copy them into a data set: file.create_dataset(name, data=old[:])."


class Hdf5Dataset(ChunkedArray):
    """A data set of an HDF5 file."""

    @contextmanager
    def _opened(self, key: str | None = None) -> Iterator[Any]:
        with open_hdf5(self.path) as file:
            yield file if key is None else file[key]

    def _arrays(self, file: Any) -> dict[str | None, Any]:
        items: list[tuple[str, Any]] = []
        file.visititems(lambda *item: items.append(item))
        return {name: item for name, item in items if hasattr(item, "shape")}

    def _links(self) -> str:
        with self._opened() as file:
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
    _reject_writing(file, "Close it and open it with h5py.File(path, 'r')")
    if dataset.name is None:
        raise SourceError(f"{file.filename}: a data set without a name cannot be opened again.")
    return Hdf5Dataset(file.filename, dataset.name)


def _reject_writing(file: Any, remedy: str) -> None:
    if file.mode != "r":
        raise SourceError(
            f"{file.filename} is open for writing. {remedy}, so that it can be opened again where "
            "it is read."
        )


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


# ---- AnnData -------------------------------------------------------------------------------------


class SparseHdf5(CsrFile):
    """A CSR matrix in a group of an HDF5 file."""

    def _open(self) -> None:
        with open_hdf5(self.path) as file:
            assert self.key is not None
            reject_links(self.path, file, self.key)
            group = file[self.key]
            if (kind := _kind(group)) != "csr":
                raise SourceError(f"{self.name}: {_not_by_rows(kind, self.key)}")
            for part in ("data", "indices", "indptr"):
                reject_links(self.name, group, part)
                reject_other_files(self.name, group[part])
                if len(group[part]) and not group[part].id.get_storage_size():
                    raise SourceError(f"{self.name}: its numbers were never written.")
            self.columns = _names_of_columns(file, self.key)
            self._describe(group.attrs["shape"], group)

    @contextmanager
    def _arrays(self) -> Iterator[Any]:
        with open_hdf5(self.path) as file:
            yield file[self.key]


def open_h5ad(path: str | os.PathLike[str], key: str | None = None) -> RowSource:
    """The matrix of an ``.h5ad`` file: ``X``, or another one such as ``layers/counts``."""
    key = "X" if key is None else key.strip("/")
    with open_hdf5(path) as file:
        reject_links(os.fspath(path), file, key)
        if key not in file:
            held = ["X", *(f"layers/{name}" for name in file.get("layers", ()))]
            raise SourceError(
                f"{path}: no matrix {key!r}; there are {[name for name in held if name in file]}."
            )
        is_dense, columns = hasattr(file[key], "shape"), _names_of_columns(file, key)
    if not is_dense:
        return SparseHdf5(path, key)
    source = Hdf5Dataset(path, key)
    source.columns = columns
    return source


def ids_of_h5ad(path: str | os.PathLike[str], ids: str | None) -> np.ndarray:
    """A column of ``obs``; its index, if there is none such."""
    with open_hdf5(path) as file:
        reject_links(os.fspath(path), file, "obs")
        table = file["obs"]
        name: str = ids if ids is not None and ids in table else table.attrs["_index"]
        reject_links(os.fspath(path), table, name)
        return np.array(_column(table[name]), dtype=object)


def _column(column: Any) -> list[Any]:
    """The values of a column of ``obs`` or ``var``: strings, categories or numbers."""
    if hasattr(column, "asstr") and column.dtype.kind == "O":
        return column.asstr()[:].tolist()
    if hasattr(column, "shape"):
        return column[:].tolist()
    if "values" in column:  # strings with a mask
        return _column(column["values"])
    kinds = _column(column["categories"])
    return [kinds[code] if code >= 0 else "" for code in column["codes"][:].tolist()]


def from_sparse_dataset(dataset: Any) -> SparseHdf5:
    """The source of a sparse matrix of backed AnnData, whose file is opened again."""
    group = dataset.group
    file = getattr(group, "file", None)
    if file is None:
        raise SourceError(
            "Expected a sparse matrix in an HDF5 file, got one in Zarr. Write the object with "
            "adata.write_h5ad(path), or read the matrix with adata.X.to_memory()."
        )
    _reject_writing(file, "Open it with anndata.read_h5ad(path, backed='r')")
    return SparseHdf5(file.filename, group.name.strip("/"))


def _not_by_rows(kind: str, key: str) -> str:
    """What is wrong with a group that is no matrix by rows, and what to do."""
    if kind != "csc":
        return f"expected a matrix, got a group of the kind {kind!r}"
    folder, _, name = key.rpartition("/")
    place = f"adata.{folder}[{name!r}]" if folder in ("layers", "obsm") else "adata.X"
    advice = f"{place} = {place}.tocsr()"
    if folder == "raw":
        advice = f"adata = adata.raw.to_adata(); {advice}"
    return f"expected rows stored one after the other (csr), got csc. Write it again with {advice}."


def _kind(group: Any) -> str:
    """Format of a sparse matrix, such as "csr"; "none" of another group."""
    kind = group.attrs.get("encoding-type", "none")
    return (kind.decode() if isinstance(kind, bytes) else str(kind)).removesuffix("_matrix")


def _names_of_columns(file: Any, key: str) -> tuple[str, ...] | None:
    """The index of ``var`` beside a matrix, or beside the layers that hold it."""
    folder = key.rpartition("/")[0]
    folder = folder.removesuffix("layers").rstrip("/")
    place = f"{folder}/var".strip("/")
    reject_links(file.filename, file, place)
    table = file.get(place)
    if table is None or "_index" not in table.attrs:
        return None
    index = table.attrs["_index"]
    reject_links(file.filename, table, index)
    return tuple(_column(table[index]))
