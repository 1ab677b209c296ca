"""Rows with ids: a matrix, or texts, beside a column or an array that names its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks.sources._chunked import ChunkedArray
from mvcca.blocks.sources._npz import Member, names_of_members
from mvcca.blocks.sources._open import open_matrix
from mvcca.blocks.sources._parquet import open_beside
from mvcca.blocks.sources._read import path_and_key, read_texts, reading, text_files
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._text import read_beside

__all__ = ["Identified", "read_identified"]


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
        return Identified(read_texts(name), [file.stem for file in text_files(path)])
    with reading(path):
        if suffix in (".csv", ".tsv"):
            return Identified(*read_beside(path, ids))
        if suffix in (".parquet", ".arrow"):
            matrix, found = open_beside(path, ids, key)
            return Identified(matrix, list(map(_as_id, found)))
        if suffix == ".npz":
            return _checked(name, *_in_archive(path, ids, key))
        if suffix in (".h5", ".hdf5", ".zarr"):
            matrix = open_matrix(path, key)
            assert isinstance(matrix, ChunkedArray)
            return _checked(name, matrix, matrix.beside(ids))
    raise SourceError(
        f"{name}: expected a file that names its rows: a table (.csv, .tsv, .parquet, .arrow) with "
        f"a column {ids!r}, an .npz or .h5 file with an array {ids!r} beside the matrix, such as "
        f"np.savez('rows.npz', rows=X, {ids if ids.isidentifier() else 'ids'}=names), or a folder "
        "of .txt files"
    )


def _in_archive(path: Path, ids: str, key: str | None) -> tuple[Any, np.ndarray]:
    names = names_of_members(path)
    if ids not in names:
        raise ValueError(f"it has no array {ids!r} of ids; it contains {names}")
    rest = [name for name in names if name != ids]
    if key is None and len(rest) != 1:
        raise ValueError(f"it contains the arrays {rest}; name one, as in {path.name}:KEY")
    key = rest[0] if key is None else key
    if key not in rest:
        raise ValueError(f"it has no array {key!r}; it contains {names}")
    return Member(path, key).array(), Member(path, ids).array()


def _checked(name: str, matrix: Any, ids: np.ndarray) -> Identified:
    """Ids in an array, as texts."""
    if ids.ndim != 1 or len(ids) != matrix.shape[0] or ids.dtype.kind not in "iufUSO":
        raise SourceError(
            f"{name}: expected one id per row, {matrix.shape[0]:,} integers or strings, got "
            f"{ids.dtype} of shape {ids.shape}"
        )
    return Identified(matrix, [_as_id(one) for one in ids.tolist()])


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
