"""Labels of objects, word vectors of labels, and ids of rows, read from files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mvcca.blocks import SourceError, kind_of, read_array, read_table
from mvcca.blocks.sources import ZERO, lines_of_text, table_in
from mvcca.views import Labels


def read_labels(name: str, n_rows: int | None = None, header: bool | None = None) -> Labels:
    """Read labels of objects.

    Parameters
    ----------
    name : str
        A ``.txt`` file has one label set per line, separated by commas; an empty line is an object
        without labels. Other formats, see `mvcca.blocks.read_table`, contain one class per row, an
        indicator matrix or real label vectors.
    n_rows : int, optional
        Expected number of objects: a column of words with one row more has a header.
    header : bool, optional
        Whether the first line of a table in text is a header.

    Returns
    -------
    Labels

    Raises
    ------
    SourceError
        If the file cannot be read, or does not contain labels, such as a ``.txt`` file with an
        indicator matrix.
    """
    if name.lower().endswith(".txt"):
        lines = lines_of_text(name)
        _check_label_sets(name, lines)
        sets = [frozenset(filter(None, map(str.strip, line.split(",")))) for line in lines]
        if not any(sets):
            raise SourceError(f"{name}: expected one label set per line, found no label")
        return Labels.of(sets)
    array = read_array(name, header, n_rows)
    array = array if kind_of(array).is_sparse else np.asarray(array)
    if array.ndim == 2 and array.dtype.kind in "US":
        if array.shape[1] > 1:
            raise SourceError(
                f"{name}: expected one column of class names, got {array.shape[1]}; save label "
                "sets in a .txt file, one set per line"
            )
        array = array[:, 0]
    if array.ndim not in (1, 2) or not array.shape[0]:
        raise SourceError(
            f"{name}: expected a class per row or a matrix with one row per object, got an array "
            f"of shape {array.shape}"
        )
    try:
        return Labels.of(array)
    except ValueError as error:
        raise SourceError(f"{name}: {error}") from error


def read_label_vectors(name: str, header: bool | None = None) -> Any:
    """Read word vectors of labels, as `mvcca.compare` takes them.

    Parameters
    ----------
    name : str
        A ``.txt`` or ``.vec`` file has a label and its numbers on each line, separated by spaces,
        as word2vec and GloVe write them; labels may contain spaces, and a first line of two
        integers is skipped. Other formats contain one row per label, with labels as ids, as in
        word2vec's binary format, or without.
    header : bool, optional
        Whether the first line of a table in text is a header.

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
    if not name.lower().endswith((".txt", ".vec")):
        table = read_table(name, header=header)
        if table.missing is not None:
            raise SourceError(f"{name}: {table.missing}")
        rows = np.asarray(table.matrix)
        return rows if table.ids is None else dict(zip(table.ids.tolist(), rows, strict=True))
    lines = {
        number: words
        for number, line in enumerate(lines_of_text(name), start=1)
        if (words := line.split())
    }
    first = next(iter(lines), 0)
    claimed = None  # by word2vec: number of labels and of dimensions
    if len(lines) > 1 and len(lines[first]) == 2 and all(map(str.isdecimal, lines[first])):
        claimed = int(lines.pop(first)[1])
    return _vectors(name, lines, claimed)


def _vectors(name: str, lines: dict[int, list[str]], claimed: int | None) -> dict[str, np.ndarray]:
    """Vectors by label, from the words of each line by its number."""
    found = {number: _n_numbers_at_end(words) for number, words in lines.items()}
    n_dims = claimed or max(Counter(found.values()).most_common(1), default=(0, 0))[0]
    if n_dims < 1:
        raise SourceError(f"{name}: expected a label and its numbers on each line")
    for number, n_numbers in found.items():
        if n_numbers < n_dims:
            whose = "line 1 announces" if claimed else "most lines have"
            raise SourceError(
                f"{name}: expected a label and its numbers on each line; {whose} {n_dims} numbers, "
                f"line {number} has {n_numbers}"
            )
    vectors = lines.values()
    return {" ".join(line[:-n_dims]): np.array(line[-n_dims:], dtype=float) for line in vectors}


def _check_label_sets(name: str, lines: list[str]) -> None:
    """Raise unless lines can be label sets, separated by commas, rather than a table."""
    for number, line in enumerate(lines, start=1):
        if "\t" in line:
            raise SourceError(
                f"{name}: expected one label set per line, separated by commas; line {number} has "
                "a tab. Save classes as one column of a .csv file, or an indicator matrix as .tsv"
            )
    separated = sum(";" in line for line in lines)
    if separated > len(lines) / 2 and not any("," in line for line in lines):
        raise SourceError(
            f"{name}: expected one label set per line, separated by commas; {separated} of "
            f"{len(lines)} lines have semicolons and none has commas"
        )
    mark = table_in(lines)
    if mark is not None and not (mark == "," and _are_sets_of_integers(lines)):
        raise SourceError(
            f"{name}: expected one label set per line, separated by commas, found a table of "
            "numbers; give it a name that ends in .csv or .tsv"
        )


def _are_sets_of_integers(lines: list[str]) -> bool:
    """Whether lines of numbers are label sets: no 0 and 1 of an indicator, no label twice."""
    sets = [[cell.strip() for cell in line.split(",") if cell.strip()] for line in lines]
    labels = {label for own in sets for label in own}
    is_integer = all(map(str.isdecimal, labels))
    return is_integer and not labels <= {"0", "1"} and all(len(set(s)) == len(s) for s in sets)


def read_ids(name: str, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read ids of rows.

    Parameters
    ----------
    name : str
        A ``.npy`` file contains integers or strings, a ``.csv`` or ``.tsv`` file one column of
        text. Other files are texts with one id per line.
    n_rows : int, optional
        Expected number of ids. A ``.csv`` or ``.tsv`` file with one more line has a header.
    header : bool, optional
        Whether the first line of a ``.csv`` or ``.tsv`` file is a header.

    Returns
    -------
    ndarray, shape (n_rows,)

    Raises
    ------
    SourceError
        If the file cannot be read, or does not contain ids, such as a table of numbers.
    """
    if name.lower().endswith(".npy"):
        ids = read_array(name)
    elif name.lower().endswith((".csv", ".tsv", ".xlsx")):
        ids = read_array(name, header, n_rows, texts=True)
        if ids.ndim == 2 and ids.shape[1] > 1:
            raise SourceError(f"{name}: expected one column, got {ids.shape[1]}")
        ids = ids.ravel()
    else:
        lines = lines_of_text(name)
        if "\t" in "".join(lines) or table_in(lines) not in (None, ","):
            raise SourceError(f"{name}: expected one id per line, found a table; save its ids as "
                              "one column of a .csv file")  # fmt: skip
        ids = np.array(lines)
    if ids.ndim != 1 or ids.dtype.kind not in "iuU":
        raise SourceError(
            f"{name}: expected integers or strings, one per row, got {ids.dtype} {ids.shape}"
        )
    if ids.dtype.kind == "U" and any("\0" in one for one in ids.tolist()):
        raise SourceError(f"{name}: an id holds {ZERO}")
    return ids


def read_row_numbers(
    name: str, n_rows: int, n_numbers: int | None = None, header: bool | None = None
) -> np.ndarray:
    """Read distinct row numbers from 0, one per line; they select from `n_rows` rows.

    `n_numbers`, if known, tells whether there is a header, unless `header` does.
    """
    found = read_array(name, header, n_numbers)
    if kind_of(found).is_sparse or found.dtype.kind not in "iuf" or found.size != max(found.shape):
        raise SourceError(f"{name}: expected one row number per line")
    numbers = found.ravel()
    if (numbers != np.floor(numbers)).any() or numbers.min() < 0 or numbers.max() >= n_rows:
        raise SourceError(f"{name}: expected row numbers from 0 to {n_rows - 1}")
    if len(np.unique(numbers)) < len(numbers):
        raise SourceError(f"{name}: a row number is there twice; name every row once")
    return numbers.astype(np.int64)


def _n_numbers_at_end(line: list[str]) -> int:
    """Number of words at the end of a line that are numbers; the first word is a label."""
    for n_numbers, word in enumerate(reversed(line[1:])):
        try:
            float(word)
        except ValueError:
            return n_numbers
    return len(line) - 1
