"""Whole arrays, texts, and rows with ids, from files in any supported format.

Pickled content is never loaded, and every error names the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.sources._arrow import cells_of_columns
from mvcca.blocks.sources._dialect import table_in
from mvcca.blocks.sources._file import reason_of
from mvcca.blocks.sources._npz import kind_of_sparse
from mvcca.blocks.sources._open import FILES, TEXT, open_matrix
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._text import (
    decoded_lines,
    read_beside,
    read_cells,
    read_column,
    read_ids,
    read_lines,
    read_table,
)

__all__ = [
    "FORMATS",
    "Identified",
    "cells_of_text",
    "columns_of_texts",
    "lines_of_text",
    "open_or_read",
    "path_and_key",
    "read_array",
    "read_identified",
    "read_names",
    "read_texts",
]

FORMATS = ".npy, .npz, .h5, .zarr, .mat, .parquet, .arrow, .csv or .tsv"

_PACKED = (".gz", ".bz2", ".xz", ".zst")
_READERS = {ending: one.read for ending, one in FILES.items() if one.read is not None}
_KEYED = tuple(_READERS.keys() - {".npy"})  # may hold several arrays
_BY_ROWS = _READERS.keys() - {".npz"}


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
    if suffix not in TEXT and suffix not in _READERS:
        advice = "; it is compressed, unpack it" if suffix in _PACKED else ""
        raise SourceError(f"{path}: expected a file ending in {formats}{advice}")
    with _reading(path):
        array = read_table(path, n_rows, header) if suffix in TEXT else _READERS[suffix](path, key)
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
    with _reading(path):
        return read_lines(path)


def _text_files(folder: Path) -> list[Path]:
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
    files, texts, tables = _text_files(folder), [], []
    for path in files:
        with _reading(path):
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
    if path.suffix.lower() not in TEXT:
        return None
    with _reading(path):
        return read_cells(path)


def columns_of_texts(name: str) -> dict[str, np.ndarray] | None:
    """All columns of a .parquet or .arrow file as texts; None for other files, and for lists."""
    path = Path(name)
    if path.suffix.lower() not in (".parquet", ".arrow"):
        return None
    with _reading(path):
        return cells_of_columns(path)


def read_names(name: str, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read names of rows as strings: the column of a .csv or .tsv file, or the lines of any other.

    `n_rows` and `header` are those of `read_array`, for a .csv or .tsv file.
    """
    path = Path(name)
    if path.suffix.lower() not in TEXT:
        with _reading(path):
            return read_ids(path)
    with _reading(path):
        return read_column(path, n_rows, header)


def lines_of_text(name: str) -> list[str]:
    """Read the lines of a text in UTF-8, empty ones included."""
    path = Path(name)
    with _reading(path):
        return decoded_lines(path)


def open_or_read(name: str, header: bool | None = None) -> Any:
    """Open a matrix to be read in blocks if its format allows, else read it as a whole.

    `header` is that of `read_array`.
    """
    path, key = path_and_key(name)
    with _reading(path):
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
def _reading(path: Path) -> Iterator[None]:
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
        kind = f" as {path.suffix}" if path.suffix else ""
        raise SourceError(f"{path}: cannot be read{kind}: {reason_of(error)}") from error


def _is_csr(path: Path) -> bool:
    """Whether a file was written by `scipy.sparse.save_npz` in CSR format."""
    with suppress(Exception):  # `read_array` reports what is wrong
        return path.suffix.lower() == ".npz" and kind_of_sparse(path) == "csr"
    return False


# ---- rows with ids -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Identified:
    """Rows and their ids.

    Attributes
    ----------
    matrix : RowSource, ndarray or None
        The rows: opened, if they can be read in blocks; a column of strings, if they are texts;
        None, if a table of text holds more than numbers beside the ids.
    ids : list of str
        One per row.
    lines : sequence of int or None
        Lines of the rows in a text file, from 1.
    """

    matrix: Any
    ids: list[str]
    lines: Sequence[int] | None = None


def read_identified(name: str, ids: str) -> Identified:
    """Open the rows in a file, or a folder of texts, that names them.

    Parameters
    ----------
    name : str
        A table (.csv, .tsv, .parquet, .arrow) with a column of ids; a file of arrays (.npz, .h5,
        .zarr) with an array of ids beside the matrix, which may be named as in ``file.npz:key``; or
        a folder of .txt files, whose names are the ids.
    ids : str
        Name of the column or of the array of ids.

    Raises
    ------
    SourceError
        If the file cannot be read, or holds no such ids.
    """
    path, key = path_and_key(name)
    suffix = path.suffix.lower()
    if path.is_dir() and suffix != ".zarr":
        return Identified(read_texts(name), [file.stem for file in _text_files(path)])
    with _reading(path):
        if suffix in TEXT:
            return Identified(*read_beside(path, ids))
        if suffix in FILES and (beside := FILES[suffix].beside) is not None:
            matrix, found = beside(path, ids, key)
            return Identified(matrix, _as_ids(name, matrix, found))
    raise SourceError(
        f"{name}: expected a file that names its rows: a table (.csv, .tsv, .parquet, .arrow) with "
        f"a column {ids!r}, an .npz or .h5 file with an array {ids!r} beside the matrix, such as "
        f"np.savez('rows.npz', rows=X, {ids if ids.isidentifier() else 'ids'}=names), or a folder "
        "of .txt files"
    )


def _as_ids(name: str, matrix: Any, ids: Any) -> list[str]:
    """Ids as texts, one for each row."""
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1 or len(ids) != matrix.shape[0] or ids.dtype.kind not in "iufUSO":
            raise SourceError(
                f"{name}: expected one id per row, {matrix.shape[0]:,} integers or strings, got "
                f"{ids.dtype} of shape {ids.shape}"
            )
        ids = ids.tolist()
    return [_as_id(one) for one in ids]


def _as_id(value: Any) -> str:
    """An id as text: a whole number without a decimal point, and "" where it is missing."""
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"expected ids in UTF-8, got {value!r}") from None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None or value != value else str(value).strip()
