"""Matrices of ``.h5ad`` files, which AnnData writes: dense, or CSR in a group of the HDF5 file.

A group holds ``data``, ``indices`` and ``indptr``, and its attributes the format and the shape.
Names of columns come from the index of ``var`` beside the matrix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mvcca.blocks.sources._file import CsrFile
from mvcca.blocks.sources._hdf5 import Hdf5Dataset, open_hdf5, reject_links, reject_other_files
from mvcca.blocks.sources._row_source import RowSource, SourceError


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
    if file.mode != "r":
        raise SourceError(
            f"{file.filename} is open for writing. Open it with anndata.read_h5ad(path, "
            "backed='r'), so that it can be opened again where it is read."
        )
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
