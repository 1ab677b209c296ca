"""Labels of objects, word vectors of labels, ids of rows and their numbers, read from files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.blocks import SourceError, kind_of
from mvcca.blocks.sources import FileRows, ReadOptions, read_cells, read_table, read_whole
from mvcca.views import Labels

Say = Callable[[str], None]  # takes what a file was read as


def silent(_: str) -> None:
    """Say nothing."""


def read_labels(
    file: str,
    reading: ReadOptions | None = None,
    *,
    n_rows: int | None = None,
    say: Say = silent,
) -> Labels:
    """Read labels of objects.

    Parameters
    ----------
    file : str
        As for `mvcca.blocks.read_table`: one class per row, an indicator matrix or real label
        vectors; or a text with one label set per line, separated by commas, where an empty line is
        an object without labels. Rows of integers in a .txt file are label sets too.
    reading : ReadOptions, optional
        How to read it.
    n_rows : int, optional
        Expected number of objects: a table with one row more has a header.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    Labels

    Raises
    ------
    SourceError
        If the file cannot be read, does not contain labels, or those of another number of objects.
    """
    return labels_and_ids(file, reading, n_rows, say)[0]


def labels_and_ids(
    file: str, reading: ReadOptions | None, n_rows: int | None, say: Say
) -> tuple[Labels, FileRows]:
    """Labels of objects, and the rows that hold them, with their ids if there are some."""
    table = read_whole(file, replace(reading or ReadOptions(), n_rows=n_rows))
    say(table.took)
    matrix = table.matrix
    if not kind_of(matrix).is_sparse and (matrix.ndim not in (1, 2) or not len(matrix)):
        raise SourceError(
            f"{file}: expected a class per row or a matrix with one row per object, got an array "
            f"of shape {matrix.shape}"
        )
    if n_rows not in (None, len(table)):
        raise SourceError(f"{file}: expected {n_rows:,} rows, got {len(table):,}")
    try:
        return Labels.of(_sets_of_lines(table) or _sets_of_integers(table) or matrix), table
    except ValueError as error:
        raise SourceError(f"{file}: {error}") from error


def _sets_of_lines(table: FileRows) -> list[frozenset[str]] | None:
    """Label sets in the lines of a text, which are separated by commas."""
    if not table.are_lines:
        return None
    lines = table.matrix[:, 0].tolist()
    separated = sum(";" in line or "\t" in line for line in lines)
    if separated > len(lines) / 2 and not any("," in line for line in lines):
        raise ValueError(
            f"expected one label set per line, separated by commas; {separated} of {len(lines)} "
            "lines have tabs or semicolons and none has commas"
        )
    sets = [frozenset(filter(None, map(str.strip, line.split(",")))) for line in lines]
    if not any(sets):
        raise ValueError("expected one label set per line, found no label")
    return sets


def _sets_of_integers(table: FileRows) -> list[frozenset[str]] | None:
    """Label sets of one size in a .txt file: no 0 and 1 of an indicator, no label twice."""
    rows = table.matrix
    if not table.file.lower().endswith(".txt") or table.columns is not None or rows.ndim != 2:
        return None
    if rows.dtype.kind != "f" or rows.shape[1] < 2 or table.source is None:
        return None
    ordered = np.sort(rows, axis=1)
    is_set = (ordered[:, 1:] > ordered[:, :-1]).all() and (rows == np.floor(rows)).all()
    if not is_set or table.source.dialect.delimiter != "," or np.isin(rows, (0, 1)).all():
        return None
    return [frozenset(map(str, row)) for row in rows.astype(int).tolist()]


def read_label_vectors(file: str, reading: ReadOptions | None = None, *, say: Say = silent) -> Any:
    """Read word vectors of labels, as `mvcca.compare` takes them.

    Parameters
    ----------
    file : str
        A ``.txt`` or ``.vec`` file has a label and its numbers on each line, separated by spaces,
        as word2vec and GloVe write them; labels may contain spaces, and a first line of two
        integers is skipped. Other formats contain one row per label, with labels as ids, as in
        word2vec's binary format, or without.
    reading : ReadOptions, optional
        How to read it.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    dict of str to ndarray, or matrix
        By label if the file names them, else one row per label.

    Raises
    ------
    SourceError
        If the file cannot be read, or a line holds fewer numbers than most, or than the first line
        announces.
    """
    reading = reading or ReadOptions()
    if file.lower().endswith((".txt", ".vec")):
        reading = replace(reading, kind="vectors", id="1")
    table = read_table(file, reading)
    if table.missing is not None:
        raise SourceError(f"{file}: {table.missing}")
    say(table.took)
    rows = np.asarray(table.matrix)
    return rows if table.ids is None else dict(zip(table.ids.tolist(), rows, strict=True))


def read_ids(
    file: str,
    reading: ReadOptions | None = None,
    *,
    n_rows: int | None = None,
    say: Say = silent,
) -> np.ndarray:
    """Read ids of rows: one column of a table, an array, or the lines of a text.

    Parameters
    ----------
    file : str
        As for `mvcca.blocks.read_table`.
    reading : ReadOptions, optional
        How to read it.
    n_rows : int, optional
        Expected number of ids. A table with one row more has a header.
    say : callable, optional
        Takes what the file was read as.

    Returns
    -------
    ndarray of str, shape (n_rows,)

    Raises
    ------
    SourceError
        If the file cannot be read, does not contain ids, such as a table of several columns, or
        those of another number of rows.
    """
    table = read_cells(file, replace(reading or ReadOptions(), n_rows=n_rows))
    say(table.took)
    if (width := table.matrix.shape[1]) != 1:
        raise SourceError(f"{file}: expected one column, got {width}")
    if n_rows not in (None, len(table)):
        raise SourceError(f"{file}: expected {n_rows:,} rows, got {len(table):,}")
    return np.asarray(table.matrix)[:, 0]


def read_row_numbers(
    file: str,
    n_rows: int,
    reading: ReadOptions | None = None,
    *,
    n_numbers: int | None = None,
    say: Say = silent,
) -> np.ndarray:
    """Read distinct row numbers from 0, one per line; they select from `n_rows` rows.

    `n_numbers`, if known, tells whether there is a header.
    """
    table = read_whole(file, replace(reading or ReadOptions(), n_rows=n_numbers))
    say(table.took)
    found = table.matrix
    if kind_of(found).is_sparse or found.dtype.kind not in "iuf" or found.size != max(found.shape):
        raise SourceError(f"{file}: expected one row number per line")
    numbers = np.asarray(found).ravel()
    if (numbers != np.floor(numbers)).any() or numbers.min() < 0 or numbers.max() >= n_rows:
        raise SourceError(f"{file}: expected row numbers from 0 to {n_rows - 1}")
    if len(np.unique(numbers)) < len(numbers):
        raise SourceError(f"{file}: a row number is there twice; name every row once")
    return numbers.astype(np.int64)
