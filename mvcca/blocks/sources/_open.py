"""Open matrices: files by their suffix, objects of other libraries by their type."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mvcca.blocks.sources._annotated import from_sparse_dataset, open_h5ad
from mvcca.blocks.sources._arrow import ArrowTable, HuggingFaceRows
from mvcca.blocks.sources._chunked import Hdf5Dataset, ZarrArray, from_dataset, from_zarr
from mvcca.blocks.sources._dask import from_dask
from mvcca.blocks.sources._matlab import open_mat
from mvcca.blocks.sources._memory_map import from_memmap
from mvcca.blocks.sources._npy import open_npy
from mvcca.blocks.sources._parquet import ArrowFile, ParquetTable
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._sparse_npz import SparseNpz

__all__ = ["as_source", "is_source", "open_matrix"]

_SINGLE: dict[str, Callable[[str], RowSource]] = {
    ".npy": open_npy,
    ".npz": SparseNpz,
}
_KEYED: dict[str, Callable[[str, str | None], RowSource]] = {
    ".h5": Hdf5Dataset,
    ".hdf5": Hdf5Dataset,
    ".h5ad": open_h5ad,
    ".zarr": ZarrArray,
    ".mat": open_mat,
    ".parquet": ParquetTable,
    ".arrow": ArrowFile,
}
_TEXT = (".csv", ".tsv", ".txt")


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
    if suffix in _TEXT:
        raise SourceError(
            f"{path}: text cannot be read by blocks of rows. Convert it once: "
            "np.save('matrix.npy', np.loadtxt(...)), or a DataFrame's to_parquet."
        )
    if suffix not in _SINGLE and suffix not in _KEYED:
        endings = ", ".join([*_SINGLE, *_KEYED])
        raise SourceError(f"{path}: expected a file ending in one of {endings}.")
    if not os.path.exists(path):
        raise SourceError(f"{path}: no such file.")
    if os.path.isdir(path) != (suffix == ".zarr"):
        found, wanted = ("folder", "file") if os.path.isdir(path) else ("file", "folder")
        raise SourceError(f"{path}: expected a {wanted}, got a {found}.")
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise SourceError(f"{path}: not a regular file.")  # a FIFO would be waited for
    if suffix in _KEYED:
        return _KEYED[suffix](path, key)
    if key is not None:
        raise SourceError(f"{path}: a {suffix} file holds one matrix; it has no {key!r}.")
    return _SINGLE[suffix](path)


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
