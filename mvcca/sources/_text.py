"""Read text files: tables, with or without a header, and texts, one per line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mvcca._warnings import warn

__all__ = ["NamedColumns", "read_lines", "read_table"]


class NamedColumns(np.ndarray):
    """A matrix with column names, which estimators store and check like those of a DataFrame."""

    columns: tuple[str, ...] | None  # None after an operation that changed the number of columns

    @classmethod
    def of(cls, rows: np.ndarray, columns: tuple[str, ...]) -> NamedColumns:
        """Return a view of a matrix with column names."""
        named = rows.view(cls)
        named.columns = columns
        return named

    def __array_finalize__(self, source: Any) -> None:
        columns = getattr(source, "columns", None)
        fits = columns is not None and self.shape[1:] == (len(columns),)
        self.columns = columns if fits else None


def read_table(path: Path, n_rows: int | None = None) -> np.ndarray:
    """Read rows of equal length, after a header if there is one.

    A header consists of words above numbers, or of the names that `DataFrame.to_csv` writes for
    unnamed columns: the numbers 0, 1, 2, ..., or other distinct integers above three or more
    decimals. If the first line is ambiguous, the number of rows decides (`n_rows`, if known).

    Returns
    -------
    NamedColumns, ndarray of float or ndarray of str
    """
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    head = list(islice(_lines(path, delimiter), 2))
    if not head:
        raise ValueError("it is empty")
    end, names = head[0]
    has_names = len(head) == 2 and _has_names(path, delimiter, names, head[1][1], n_rows)
    if has_names and not names[0]:
        raise ValueError(
            "its first column has no name and is likely a row index; save it without the index"
        )
    rows = islice(_lines(path, delimiter), int(has_names), None)
    if not all(map(_is_number, head[has_names][1])):
        return np.array([row for _, row in rows])
    try:
        numbers = np.loadtxt(
            path,
            delimiter=delimiter,
            skiprows=end if has_names else 0,
            ndmin=2,
            comments=None,
            quotechar='"',
            encoding="utf-8-sig",
        )
    except ValueError:
        for number, (_, row) in enumerate(rows, start=1 + has_names):
            for column, cell in enumerate(row, start=1):
                if not _is_number(cell):
                    where = f"row {number}, column {column}"
                    raise ValueError(f"expected a number in {where}, got {cell!r}") from None
        raise
    return NamedColumns.of(numbers, tuple(names)) if has_names else numbers


def read_lines(path: Path) -> np.ndarray:
    """Read texts in UTF-8, one per line, as a column of strings: (n_lines, 1)."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"expected texts in UTF-8, got the byte {content[error.start]:#04x} in line {line}; "
            "convert it, for example with iconv"
        ) from None
    # str.splitlines would split at more characters, such as U+2028 within a text.
    texts = np.array([line.rstrip("\n") for line in StringIO(text, newline=None)], dtype=object)
    if not len(texts):
        raise ValueError("expected one text per line, it is empty")
    if all(all(map(_is_number, line.replace(",", " ").split())) for line in texts):
        raise ValueError(
            "expected one text per line, found numbers only; save a matrix as .npy, or as .csv "
            "with commas between its columns"
        )
    for number, line in enumerate(texts, start=1):
        if not line.strip():
            raise ValueError(
                f"expected one text per line, line {number} is empty; leave out the object in all "
                "files, or write a word for a missing text"
            )
    return texts[:, None]


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row that is not blank; rows have equal length."""
    length = None
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        for number, row in enumerate(filter(None, reader), start=1):
            length = length or len(row)
            if len(row) != length:
                raise ValueError(f"row {number} has {len(row)} columns, expected {length}")
            yield reader.line_num, row


def _has_names(
    path: Path, delimiter: str, first: list[str], second: list[str], n_rows: int | None
) -> bool:
    """Whether the first row is a header."""
    pairs = zip(first, second, strict=True)
    if any(not _is_number(name) and _is_number(cell) for name, cell in pairs):
        return True
    counted = first == [str(number) for number in range(len(first))]
    above_decimals = (
        len(set(first)) == len(first) > 2
        and all(map(_is_integer, first))
        and not any(map(_is_integer, second))
    )
    words = not any(map(_is_number, first))
    if n_rows is not None and (counted or above_decimals or words):
        return sum(1 for _ in _lines(path, delimiter)) == n_rows + 1
    if counted and all(map(_is_integer, second)):
        warn(
            f"{path}: its first line ({', '.join(first[:3])}{', ...' * (len(first) > 3)}) is read "
            "as a header, as written by DataFrame.to_csv. If it is a row of numbers, add a header "
            "line above it."
        )
    return counted or above_decimals


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_integer(cell: str) -> bool:
    return cell.removeprefix("-").isdecimal()
