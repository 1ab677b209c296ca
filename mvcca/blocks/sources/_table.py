"""Open tables: rows of numbers or texts, and what names them, from files in any format.

`read_table` decides by the content of a file; `ReadOptions` is what a user says about it. Every
table says in one line what its file was taken for. Pickled content is never loaded, and every error
names the file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.sources._arrow import ArrowTable, HuggingFaceRows, cells_in_arrow, table_in_arrow
from mvcca.blocks.sources._dask import from_dask
from mvcca.blocks.sources._dialect import ReadOptions
from mvcca.blocks.sources._file import errors_named, stamp
from mvcca.blocks.sources._file_rows import FileRows, NamedColumns, as_ids
from mvcca.blocks.sources._hdf5 import (
    Hdf5Dataset,
    from_dataset,
    from_sparse_dataset,
    ids_of_h5ad,
    open_h5ad,
)
from mvcca.blocks.sources._matlab import open_mat
from mvcca.blocks.sources._numpy import SparseNpz, from_memmap, open_npy, open_npz, read_npy
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._stream import content_of
from mvcca.blocks.sources._text import folder_of_texts, table_in_text
from mvcca.blocks.sources._word_vectors import WordVectors
from mvcca.blocks.sources._zarr import ZarrArray, from_zarr

_ARROW = (".parquet", ".arrow", ".json")
_TEXT = ("text", ".xlsx")
_KEYED = (".npz", ".h5", ".hdf5", ".h5ad", ".zarr", ".mat", ".parquet", ".arrow", ".jsonl", ".json")
_IDS = {".h5ad": "index", ".word2vec": "word"}  # by what name rows have ids by default


def read_table(
    file: str | os.PathLike[str], reading: ReadOptions | None = None, **given: Any
) -> FileRows:
    """Read a table of numbers or texts, and the ids of its rows.

    Parameters
    ----------
    file : path
        A table in text, compressed or not; a workbook; lines of JSON; Parquet, Arrow, AnnData,
        HDF5, Zarr, MATLAB or NumPy files. One array of several, or one column, is named as in
        ``file.npz:key``. Its content decides what it is, not its name.
    reading : ReadOptions, optional
        How to read it.
    **given
        Fields of `ReadOptions`.

    Returns
    -------
    FileRows

    Raises
    ------
    SourceError
        If the file cannot be read, or is ambiguous. The message names the place and the remedy.
    ImportError
        If the library that reads the format is not installed. The message names the extra.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mvcca.blocks import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "mrna.txt"
    >>> _ = file.write_text("sample\\tg1\\tg2\\nS1\\t0.5\\t1\\nS2\\t0.1\\t2\\n")
    >>> table = read_table(file)
    >>> table.ids.tolist(), table.matrix.columns
    (['S1', 'S2'], ('g1', 'g2'))
    >>> print(table.took.partition(": ")[2])
    read as a table: 2 rows, 2 columns of numbers, tab-separated, header, ids in column 1 (sample)
    >>> folder.cleanup()
    """
    reading = replace(reading or ReadOptions(), **given)
    name = os.fspath(file)
    path, key = path_and_key(name)
    with _content(str(path)) as kind:
        if kind == "folder":
            return folder_of_texts(path)
        if kind in _TEXT:
            return table_in_text(name, reading)
        if kind in _ARROW:
            return table_in_arrow(name, str(path), key, reading)
        return _matrix_and_ids(name, kind, str(path), key, reading)


def open_matrix(path: str | os.PathLike[str], key: str | None = None) -> RowSource:
    """Open a matrix in a file, to be read by blocks of rows.

    Parameters
    ----------
    path : path
        Holds ``.npy``, ``.npz`` (sparse, as `scipy.sparse.save_npz` writes it), HDF5, AnnData
        (sparse rows stay sparse), Zarr (a folder), MATLAB (files before version 7.3 are read as a
        whole), Parquet, Arrow or lines of JSON (columns of numbers, or one column of lists of
        numbers of equal length), a table in text, or a workbook. Its content decides, not its name.
    key : str, optional
        Name of the matrix, if an HDF5, Zarr or MATLAB file holds several; of AnnData ``"X"`` by
        default, or ``"layers/NAME"``; or of one column of a Parquet or Arrow file.

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
    with _content(path) as kind:
        if kind == "folder":
            raise SourceError(f"{path}: expected a file, got a folder")
        if kind in _TEXT:
            if key is not None:
                raise SourceError(f"{path}: a table is one matrix. read_table chooses its columns.")
            table = table_in_text(path, ReadOptions())
        elif kind in _ARROW:
            table = table_in_arrow(path, path, key, ReadOptions())
        else:
            return _opened(kind, path, key)
        source = table.source or table.matrix
        if not isinstance(source, RowSource) or not source.shape[1]:
            raise SourceError(f"{path}: expected columns of numbers, found texts")
        return source


# ---- other formats -------------------------------------------------------------------------------


def _matrix_and_ids(
    file: str, kind: str, path: str, key: str | None, reading: ReadOptions
) -> FileRows:
    """A matrix of a file of arrays, and an array of ids beside it."""
    if reading.columns or reading.drop:
        raise SourceError(f"{file}: a {kind} file has no columns to choose or to leave out by name")
    if kind == ".npz":
        matrix, found, name = open_npz(path, key, reading.id)
    else:
        matrix, name = _opened(kind, path, key), reading.id or _IDS.get(kind)
        if kind == ".h5ad":
            found = ids_of_h5ad(path, reading.id)
        else:
            found = None if name is None else matrix.beside(name)
    ids = None if found is None else as_ids(found, matrix=matrix)
    what = "a matrix of word vectors" if kind == ".word2vec" else "a matrix"
    took = f"{file}: read as {what}: {_size(matrix)}"
    took += "" if ids is None else f", ids in {name!r}"
    return FileRows(file, matrix, ids, took, name or "id")


def _opened(kind: str, path: str, key: str | None) -> Any:
    """The source of a matrix that can be read in blocks."""
    if kind not in (".npy", ".npz", ".word2vec"):
        return _OPEN[kind](path, key)
    if key is not None:
        raise SourceError(f"{path}: a {kind} file holds one matrix; it has no {key!r}.")
    return _OPEN[kind](path)


def _size(matrix: Any) -> str:
    rows, *rest = matrix.shape if matrix.shape else (1,)
    kind = "sparse " if issparse(matrix) or getattr(matrix, "is_sparse", False) else ""
    width = f"{rest[0]:,} columns of " if rest else ""
    return f"{rows:,} rows, {width}{kind}{matrix.dtype}"


# ---- cells and arrays ----------------------------------------------------------------------------


def read_cells(file: str, reading: ReadOptions | None = None) -> FileRows:
    """The columns of a table as texts, with ids only if `reading` names them.

    Raises
    ------
    SourceError
        If the file cannot be read, or holds no table.
    """
    reading = reading or ReadOptions()
    path, _ = path_and_key(file)
    with _content(str(path)) as kind:
        if kind in _ARROW:
            return cells_in_arrow(file, str(path), reading)
        if kind not in _TEXT:
            table = read_whole(file)
            columns = np.asarray(table.matrix).reshape(len(table), -1).T
            cells = np.array(list(map(as_ids, columns)), dtype=str).reshape(columns.shape).T
            names = tuple(f"{path.stem} {j}" for j in range(len(columns)))
            return replace(table, matrix=NamedColumns.of(cells, names))
        return table_in_text(file, reading, as_cells=True)


def read_whole(file: str, reading: ReadOptions | None = None, **given: Any) -> FileRows:
    """Read an array of any shape into memory, such as labels, as `read_table` reads its rows.

    Raises
    ------
    SourceError
        If the file is missing, damaged or misses a value, or contains neither real numbers nor
        text.
    """
    path, _ = path_and_key(file)
    with _content(str(path)) as kind:
        if kind == ".npy":  # whose array may have any shape
            array = read_npy(path)
            return FileRows(file, array, took=f"{file}: read as an array: {_size(array)}")
    table = read_table(file, reading, **given)
    if table.missing is not None:
        raise SourceError(f"{file}: {table.missing}")
    return table.in_memory()


def path_and_key(name: str) -> tuple[Path, str | None]:
    """Split ``file.npz:key`` into a path and the name of an array in the file."""
    file, separator, key = name.rpartition(":")
    if separator and key and file.lower().endswith(_KEYED) and not os.path.exists(name):
        return Path(file), key
    return Path(name), None


@contextmanager
def _content(path: str) -> Iterator[str]:
    """What a file holds; errors of reading it name it."""
    stamp(path)  # a FIFO would be waited for
    with errors_named(lambda: path, "cannot be read"):
        yield content_of(path)


# ---- what opens each format, and objects of other libraries --------------------------------------


# The source of the matrix in a file, by its path and, unless it is the only one, its key.
_OPEN: dict[str, Callable[..., RowSource]] = {
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
