"""Read text files: tables, with or without a header, and texts, one per line.

`_header` decides whether there is a header.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks.checks import few
from mvcca.blocks.sources._header import holds_text, is_header, is_missing, is_number
from mvcca.machine.warnings import warn

__all__ = [
    "NamedColumns",
    "as_strings",
    "decoded_lines",
    "read_cells",
    "read_column",
    "read_lines",
    "read_table",
]

_PADDED_BYTES = 64 * 2**20
_PADDING = 64  # at most, in units of the text's characters


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


def read_table(path: Path, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read rows of equal length, below a header if there is one, as numbers or texts."""
    # A header consists of words above numbers, or of the names that `DataFrame.to_csv` writes for
    # unnamed columns: the numbers 0, 1, 2, ..., or other distinct integers above three or more
    # decimals. If the first line is ambiguous, the number of rows decides. Missing-value markers
    # are values, which no matrix of numbers may hold.
    delimiter = _delimiter(path)
    end, names, has_names = _first_line(path, n_rows, header)
    if has_names and not names[0]:
        raise ValueError(
            "its first column has no name and is likely a row index; save it without the index"
        )
    if has_names and next(islice(_lines(path, delimiter), 1, None), None) is None:
        raise ValueError("it has no rows under its header")
    if len(names) == 1:
        _check_lines(path, delimiter)  # loadtxt would skip blank ones
    try:
        table = _numbers(path, delimiter, end if has_names else 0)
    except ValueError:
        rows = [row for _, row in islice(_lines(path, delimiter), int(has_names), None)]
        if not _is_text(rows):
            _raise_for_bad_cell(rows, 1 + has_names, header)
            raise
        table = as_strings([cell for row in rows for cell in row]).reshape(len(rows), -1)
    if has_names and header is None:
        _report_header(path, names)
    has_columns = has_names and table.dtype.kind == "f"
    return NamedColumns.of(table, tuple(names)) if has_columns else table


def read_cells(path: Path) -> np.ndarray:
    """All cells of a table as texts, (n_lines, n_columns), its header among them."""
    rows = [row for _, row in _lines(path, _delimiter(path))]
    if not rows:
        raise ValueError("it is empty")
    return as_strings([cell for row in rows for cell in row]).reshape(len(rows), -1)


def read_column(path: Path, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read a single column as text, such as ids: (n_rows,), after a header if there is one.

    `n_rows` and `header` are those of `read_table`.
    """
    _, names, has_names = _first_line(path, n_rows, header, is_text=True)
    if len(names) > 1:
        raise ValueError(f"expected one column, got {len(names)}")
    cells = [cell for _, (cell,) in islice(_lines(path, _delimiter(path)), int(has_names), None)]
    if has_names and header is None:
        _report_header(path, names)
    return as_strings(cells)


def as_strings(texts: list[str]) -> np.ndarray:
    """Texts as an array of strings, which pads each of them to the longest."""
    longest, n_characters = max(map(len, texts), default=0), sum(map(len, texts))
    if 4 * len(texts) * longest > max(_PADDED_BYTES, _PADDING * n_characters):
        raise ValueError(
            f"{len(texts):,} texts padded to the longest, of {longest:,} characters, would take "
            f"{4 * len(texts) * longest:,} bytes; shorten it"
        )
    return np.array(texts, dtype=str)


def read_lines(path: Path) -> np.ndarray:
    """Read texts in UTF-8, one per line, as a column of strings: (n_lines, 1)."""
    texts = np.array(decoded_lines(path), dtype=object)
    if not len(texts):
        raise ValueError("expected one text per line, it is empty")
    if all(all(map(is_number, line.replace(",", " ").split())) for line in texts):
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


def decoded_lines(path: Path) -> list[str]:
    """The lines of a text in UTF-8, without their ends."""
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
    return [line.rstrip("\n") for line in StringIO(text, newline=None)]


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def _first_line(
    path: Path, n_rows: int | None, header: bool | None, is_text: bool = False
) -> tuple[int, list[str], bool]:
    """Where the first line ends, its cells, and whether it is a header.

    In a table of text, only the number of rows tells.
    """
    lines = _lines(path, _delimiter(path))
    if (first := next(lines, None)) is None:
        raise ValueError("it is empty")
    end, names = first
    if header is not None:
        return end, names, header

    def n_lines() -> int:
        return sum(1 for _ in _lines(path, _delimiter(path)))

    if is_text:
        return end, names, n_rows is not None and n_lines() == n_rows + 1
    below = next((row for _, row in lines if not all(map(is_missing, row))), None)
    return end, names, is_header(names, below, n_lines, n_rows)


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every row; rows have equal length, and blank lines are no rows."""
    length = blank = None
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        number = 0
        for row in reader:
            if not row:
                blank = blank or reader.line_num
                continue
            number += 1
            length = length or len(row)
            if length == 1 and blank:  # in one column, a blank line is an empty cell
                raise ValueError(f"line {blank} is empty; a value is missing")
            if len(row) != length:
                raise ValueError(f"row {number} has {len(row)} columns, expected {length}")
            yield reader.line_num, row


def _is_text(rows: list[list[str]]) -> bool:
    """Whether the first row, or a whole column of several, is text rather than numbers."""
    if all(map(is_number, rows[0])) or not any(holds_text(cell) for row in rows for cell in row):
        return False
    columns = zip(*rows, strict=True)
    return len(rows[0]) == 1 or any(not any(map(is_number, column)) for column in columns)


def _check_lines(path: Path, delimiter: str) -> None:
    for _ in _lines(path, delimiter):
        pass


def _numbers(path: Path, delimiter: str, n_skipped: int) -> np.ndarray:
    return np.loadtxt(
        path,
        delimiter=delimiter,
        skiprows=n_skipped,
        ndmin=2,
        comments=None,
        quotechar='"',
        encoding="utf-8-sig",
    )


def _raise_for_bad_cell(rows: list[list[str]], first: int, header: bool | None) -> None:
    """Raise for the first cell that is not a number; rows are numbered from `first`."""
    for number, row in enumerate(rows, start=first):
        for column, cell in enumerate(row, start=1):
            if not is_number(cell):
                hint = "; if line 1 is a header, choose header=True (--header yes)"
                raise ValueError(
                    f"expected a number in row {number}, column {column}, got {cell!r}"
                    f"{hint if number == 1 and header is None else ''}"
                ) from None


def _report_header(path: Path, names: list[str]) -> None:
    warn(
        f"{path}: line 1 ({few(names)}) is read as a header. If it is a row, choose header=False "
        "(--header no)."
    )
