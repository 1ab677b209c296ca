"""Open matrices: files by their ending, objects of other libraries by their type.

A file becomes a source once, whose rows are then read in order, by position or in blocks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mvcca.blocks.sources._annotated import from_sparse_dataset, open_h5ad
from mvcca.blocks.sources._arrow import (
    ArrowTable,
    HuggingFaceRows,
    TableFile,
    beside_columns,
    read_columns,
)
from mvcca.blocks.sources._binary import from_memmap, open_npy, read_npy
from mvcca.blocks.sources._chunked import ChunkedArray
from mvcca.blocks.sources._dask import from_dask
from mvcca.blocks.sources._hdf5 import Hdf5Dataset, from_dataset
from mvcca.blocks.sources._matlab import open_mat
from mvcca.blocks.sources._npz import SparseNpz, beside_npz, read_npz
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._zarr import ZarrArray, from_zarr

__all__ = ["FILES", "TEXT", "as_source", "is_source", "open_matrix"]

TEXT = (".csv", ".tsv")
_OF_ONE_MATRIX = (".npy", ".npz")  # that is read by rows


class FileFormat(NamedTuple):
    """What reads files of one format.

    Attributes
    ----------
    open : callable
        The source of the matrix in a file, by its path and, unless it is the only one, its key.
    read : callable or None
        A whole array of any shape, text included, by path and key.
    beside : callable or None
        The rows and their ids, by path, name of the ids, and key of the rows.
    """

    open: Callable[..., RowSource]
    read: Callable[[Path, str | None], Any] | None = None
    beside: Callable[[Path, str, str | None], tuple[Any, Any]] | None = None


def _read_rows(path: Path, key: str | None) -> Any:
    source = open_matrix(path, key)
    return source.read(0, len(source))


def _beside_array(path: Path, ids: str, key: str | None) -> tuple[RowSource, np.ndarray]:
    matrix = open_matrix(path, key)
    assert isinstance(matrix, ChunkedArray)
    return matrix, matrix.beside(ids)


FILES = {
    ".npy": FileFormat(open_npy, lambda path, _: read_npy(path)),
    ".npz": FileFormat(SparseNpz, read_npz, beside_npz),
    ".h5": FileFormat(Hdf5Dataset, _read_rows, _beside_array),
    ".hdf5": FileFormat(Hdf5Dataset, _read_rows, _beside_array),
    ".h5ad": FileFormat(open_h5ad),
    ".zarr": FileFormat(ZarrArray, _read_rows, _beside_array),
    ".mat": FileFormat(open_mat, _read_rows),
    ".parquet": FileFormat(TableFile, read_columns, beside_columns),
    ".arrow": FileFormat(TableFile, read_columns, beside_columns),
}


def open_matrix(path: str | os.PathLike[str], key: str | None = None) -> RowSource:
    """Open a matrix in a file, to be read by blocks of rows.

    Parameters
    ----------
    path : path
        Ends in ``.npy``, ``.npz`` (sparse, as `scipy.sparse.save_npz` writes it), ``.h5`` or
        ``.hdf5``, ``.h5ad`` (AnnData; sparse rows stay sparse), ``.zarr`` (a folder), ``.mat``
        (MATLAB; files before version 7.3 are read as a whole), ``.parquet`` or ``.arrow`` (an
        Arrow IPC file; columns of numbers, or one column of lists of numbers of equal length).
    key : str, optional
        Name of the matrix, if an HDF5, Zarr or MATLAB file holds several; of an ``.h5ad`` file
        ``"X"`` by default, or ``"layers/NAME"``; or of one column of a Parquet or Arrow file.

    Returns
    -------
    RowSource
        Has a shape and a dtype; rows are read on demand.

    Raises
    ------
    SourceError
        If the file is missing or damaged, or does not hold a matrix of real numbers.
    ImportError
        If the library that reads the format is not installed. The message names the extra.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mvcca import open_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/text.npy", np.eye(5, 3, dtype=np.float32))
    ...     text = open_matrix(f"{folder}/text.npy")
    ...     text.shape, text.read(1, 3)
    ((5, 3), array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32))
    """
    path = os.fspath(path)
    suffix = os.path.splitext(path.rstrip("/\\"))[1].lower()
    if suffix in (*TEXT, ".txt"):
        raise SourceError(
            f"{path}: text cannot be read by blocks of rows. Convert it once: "
            "np.save('matrix.npy', np.loadtxt(...)), or a DataFrame's to_parquet."
        )
    if suffix not in FILES:
        raise SourceError(f"{path}: expected a file ending in one of {', '.join(FILES)}.")
    if not os.path.exists(path):
        raise SourceError(f"{path}: no such file.")
    if os.path.isdir(path) != (suffix == ".zarr"):
        found, wanted = ("folder", "file") if os.path.isdir(path) else ("file", "folder")
        raise SourceError(f"{path}: expected a {wanted}, got a {found}.")
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise SourceError(f"{path}: not a regular file.")  # a FIFO would be waited for
    if suffix not in _OF_ONE_MATRIX:
        return FILES[suffix].open(path, key)
    if key is not None:
        raise SourceError(f"{path}: a {suffix} file holds one matrix; it has no {key!r}.")
    return FILES[suffix].open(path)


def as_source(block: Any) -> RowSource | None:
    """Return the source of a matrix that is not in memory.

    Parameters
    ----------
    block : object
        `numpy.memmap` or part of one, `h5py.Dataset`, a sparse matrix of backed AnnData,
        `zarr.Array`, `dask.array.Array`, `pyarrow.Table`, `datasets.Dataset`, `RowSource`, or any
        matrix in memory.

    Returns
    -------
    RowSource or None
        None for a matrix in memory. Files are opened again by path where they are read, so that
        only the path is sent to another process.

    Raises
    ------
    SourceError
        If it cannot be opened again (a file open for writing, a Zarr store that is not a folder, a
        Dask array with unknown chunk sizes), or is not a matrix of real numbers.

    Warns
    -----
    UserWarning
        If the graph of a Dask array carries more than 100 MB of data.
    """
    if isinstance(block, RowSource):
        return block
    opened = _opener(block)
    return None if opened is None else opened(block)


def is_source(block: Any) -> bool:
    """Whether a matrix is of a type that `as_source` opens."""
    return isinstance(block, RowSource) or _opener(block) is not None


def _opener(block: Any) -> Callable[[Any], RowSource | None] | None:
    if isinstance(block, np.memmap):
        return from_memmap
    for library, kind, source in _FOREIGN:
        module = sys.modules.get(library)  # objects exist only after the import
        known = getattr(module, kind, None)  # a module of the user's may have the library's name
        if known is not None and isinstance(block, known):
            return source
    return None


_FOREIGN: tuple[tuple[str, str, Callable[[Any], RowSource]], ...] = (
    ("h5py", "Dataset", from_dataset),
    ("anndata.abc", "CSRDataset", from_sparse_dataset),
    ("anndata.abc", "CSCDataset", from_sparse_dataset),
    ("zarr", "Array", from_zarr),
    ("dask.array", "Array", from_dask),
    ("pyarrow", "Table", ArrowTable),
    ("datasets", "Dataset", HuggingFaceRows),
)
