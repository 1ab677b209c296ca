"""Whole arrays from files in any supported format, text and single `.npz` arrays included.

Pickled content is never loaded, and every error names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.sources._decoded import decoded_lines
from mvcca.blocks.sources._npy import read_npy
from mvcca.blocks.sources._npz import Member, names_of_members
from mvcca.blocks.sources._open import open_matrix
from mvcca.blocks.sources._parquet import cells_of_columns, read_text_column
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._sparse_npz import kind_of_sparse, read_sparse
from mvcca.blocks.sources._tabular import table_in
from mvcca.blocks.sources._text import (
    read_cells,
    read_column,
    read_ids,
    read_lines,
    read_table,
)

__all__ = [
    "FORMATS",
    "lines_of_text",
    "open_or_read",
    "path_and_key",
    "read_array",
    "read_names",
    "read_texts",
    "reading",
    "text_files",
]

FORMATS = ".npy, .npz, .h5, .zarr, .mat, .parquet, .arrow, .csv or .tsv"

_TEXT = (".csv", ".tsv")
_PACKED = (".gz", ".bz2", ".xz", ".zst")
_KEYED = (".npz", ".h5", ".hdf5", ".zarr", ".mat", ".parquet", ".arrow")
_BY_ROWS = (".npy", ".h5", ".hdf5", ".zarr", ".mat", ".parquet", ".arrow")


def read_array(
    name: str, n_rows: int | None = None, formats: str = FORMATS, header: bool | None = None
) -> Any:
    """Read a whole array from a file: a matrix, or labels as numbers or text.

    Parameters
    ----------
    name : str
        Path ending in .npy, .npz, .h5, .zarr, .mat, .parquet, .arrow, .csv or .tsv. One array of
        several, or one column of a table, is named as in ``file.npz:key``.
    n_rows : int, optional
        Expected number of rows, which decides whether an ambiguous first line of a text file is a
        header.
    formats : str, optional
        Supported file extensions, for the error message.
    header : bool, optional
        Whether the first line of a .csv or .tsv file is a header. By default, words above numbers
        are, and the integers that `DataFrame.to_csv` writes for unnamed columns.

    Returns
    -------
    ndarray or csr_array
        Text columns are strings. A numeric text table with a header has the attribute ``columns``.

    Raises
    ------
    SourceError
        If the file is missing or damaged, or contains neither real numbers nor text.
    ImportError
        If the library that reads the format is not installed. The message names the extra.

    Warns
    -----
    UserWarning
        If the first line of a .csv or .tsv file is taken for a header and `header` is None.
    """
    path, key = path_and_key(name)
    suffix = path.suffix.lower()
    if suffix not in _TEXT and suffix not in _READERS:
        advice = "; it is compressed, unpack it" if suffix in _PACKED else ""
        raise SourceError(f"{path}: expected a file ending in {formats}{advice}")
    with reading(path):
        array = read_table(path, n_rows, header) if suffix in _TEXT else _READERS[suffix](path, key)
    if not issparse(array) and array.dtype.kind not in "biufUS":
        raise SourceError(f"{path}: expected real numbers or text, got {array.dtype}")
    return array


def read_texts(name: str) -> np.ndarray:
    """Read texts as a column of strings, (n_texts, 1).

    Parameters
    ----------
    name : str
        A ``.txt`` file with one text per line; or a folder of ``.txt`` files, each of which is one
        text, in the order of their names.

    Raises
    ------
    SourceError
        If there is no such file, if one is not in UTF-8, if a text is empty, or if the file is a
        table of numbers.
    """
    path = Path(name)
    if path.is_dir():
        return _texts_of_folder(path)
    with reading(path):
        return read_lines(path)


def text_files(folder: Path) -> list[Path]:
    """The .txt files of a folder, by name.

    Raises
    ------
    SourceError
        If there are none.
    """
    found = sorted(
        file
        for file in folder.iterdir()
        if file.suffix.lower() == ".txt" and not file.name.startswith(".") and file.is_file()
    )
    if not found:
        raise SourceError(f"{folder}: expected a folder of .txt files, each one text; found none")
    return found


def _texts_of_folder(folder: Path) -> np.ndarray:
    """One text per file, unless most files are tables."""
    files, texts, tables = text_files(folder), [], []
    for path in files:
        with reading(path):
            lines = decoded_lines(path)
            texts.append(" ".join(lines).strip())
            if not texts[-1]:
                raise ValueError(
                    "expected a text, it is empty; leave out the file, or write a word"
                )
            if table_in(lines) is not None:
                tables.append(path)
    if len(tables) > len(files) / 2:
        raise SourceError(
            f"{folder}: expected a folder of .txt files, each one text; {len(tables)} of "
            f"{len(files)} are tables of numbers, such as {tables[0].name}. Save one table for all "
            "objects, one row each, as .csv"
        )
    return np.array(texts, dtype=object)[:, None]


def cells_of_text(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """All cells of a .csv or .tsv file as texts, its header among them, and their lines.

    None for other files.
    """
    path = Path(name)
    if path.suffix.lower() not in _TEXT:
        return None
    with reading(path):
        return read_cells(path)


def columns_of_texts(name: str) -> dict[str, np.ndarray] | None:
    """All columns of a .parquet or .arrow file as texts; None for other files, and for lists."""
    path = Path(name)
    if path.suffix.lower() not in (".parquet", ".arrow"):
        return None
    with reading(path):
        return cells_of_columns(path)


def read_names(name: str, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read names of rows as strings: the column of a .csv or .tsv file, or the lines of any other.

    `n_rows` and `header` are those of `read_array`, for a .csv or .tsv file.
    """
    path = Path(name)
    if path.suffix.lower() not in _TEXT:
        with reading(path):
            return read_ids(path)
    with reading(path):
        return read_column(path, n_rows, header)


def lines_of_text(name: str) -> list[str]:
    """Read the lines of a text in UTF-8, empty ones included."""
    path = Path(name)
    with reading(path):
        return decoded_lines(path)


def open_or_read(name: str, header: bool | None = None) -> Any:
    """Open a matrix to be read in blocks if its format allows, else read it as a whole.

    `header` is that of `read_array`.
    """
    path, key = path_and_key(name)
    with reading(path):
        if path.suffix.lower() in _BY_ROWS or (key is None and _is_csr(path)):
            return open_matrix(path, key)
    return read_array(name, header=header)


def path_and_key(name: str) -> tuple[Path, str | None]:
    """Split ``file.npz:key`` into a path and the name of an array in the file."""
    file, separator, key = name.rpartition(":")
    if separator and key and file.lower().endswith(_KEYED):
        return Path(file), key
    return Path(name), None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert all errors of reading a file to a `SourceError` that names the file."""
    if not path.exists():
        raise SourceError(f"{path}: no such file")
    is_store = path.is_dir() and path.suffix.lower() == ".zarr"
    if not (path.is_file() or is_store):  # a FIFO would be waited for
        raise SourceError(f"{path}: not a file")
    try:
        yield
    except (SourceError, ImportError, Warning):
        raise
    except Exception as error:  # readers raise exceptions of any type for damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        kind = f" as {path.suffix}" if path.suffix else ""
        raise SourceError(f"{path}: cannot be read{kind}: {reason}") from error


def _is_csr(path: Path) -> bool:
    """Whether a file was written by `scipy.sparse.save_npz` in CSR format."""
    with suppress(Exception):  # `read_array` reports what is wrong
        return path.suffix.lower() == ".npz" and kind_of_sparse(path) == "csr"
    return False


def _read_npy(path: Path, _: None) -> np.ndarray:
    return read_npy(path)


def _read_npz(path: Path, key: str | None) -> Any:
    keys = names_of_members(path)
    if key is None and kind_of_sparse(path) is not None:
        return read_sparse(path)
    if key is None and len(keys) != 1:
        raise ValueError(f"it contains the arrays {keys}; name one, as in {path.name}:KEY")
    key = keys[0] if key is None else key
    if key not in keys:
        raise ValueError(f"it has no array {key!r}; it contains {keys}")
    return Member(path, key).array()


def _read_columns(path: Path, key: str | None) -> Any:
    """A column of text, as strings, or all columns of numbers."""
    text = read_text_column(path, key)
    return _read_rows(path, key) if text is None else text


def _read_rows(path: Path, key: str | None) -> Any:
    source = open_matrix(path, key)
    return source.read(0, len(source))


_READERS: dict[str, Callable[[Path, Any], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_columns,
    ".arrow": _read_columns,
    ".h5": _read_rows,
    ".hdf5": _read_rows,
    ".zarr": _read_rows,
    ".mat": _read_rows,
}
