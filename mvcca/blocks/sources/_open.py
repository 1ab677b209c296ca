"""What reads each format of files, and objects of other libraries, by their type."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mvcca.blocks.sources._annotated import from_sparse_dataset, open_h5ad
from mvcca.blocks.sources._arrow import ArrowTable, HuggingFaceRows
from mvcca.blocks.sources._binary import from_memmap, open_npy
from mvcca.blocks.sources._dask import from_dask
from mvcca.blocks.sources._hdf5 import Hdf5Dataset, from_dataset
from mvcca.blocks.sources._matlab import open_mat
from mvcca.blocks.sources._npz import SparseNpz
from mvcca.blocks.sources._row_source import RowSource
from mvcca.blocks.sources._word_vectors import WordVectors
from mvcca.blocks.sources._zarr import ZarrArray, from_zarr

# The source of the matrix in a file, by its path and, unless it is the only one, its key.
OPEN: dict[str, Callable[..., RowSource]] = {
    ".npy": open_npy,
    ".npz": SparseNpz,
    ".h5": Hdf5Dataset,
    ".hdf5": Hdf5Dataset,
    ".h5ad": open_h5ad,
    ".zarr": ZarrArray,
    ".mat": open_mat,
    ".word2vec": WordVectors,
}


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
