"""Read text files in UTF-8: tables, with or without a header, and texts, one per line.

A file that is not one is named for what it is. `_dialect` decides what the lines hold.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

import numpy as np

from mvcca.blocks.checks import few
from mvcca.blocks.places import cell_in_words
from mvcca.blocks.sources._dialect import (
    TAB,
    holds_text,
    is_header,
    is_missing,
    is_number,
    reject_tables,
)
from mvcca.machine.warnings import warn

__all__ = [
    "MISSING",
    "UNNAMED",
    "ZERO",
    "NamedColumns",
    "as_strings",
    "bad_cell",
    "decoded_lines",
    "name_among",
    "read_beside",
    "read_cells",
    "read_column",
    "read_ids",
    "read_lines",
    "read_table",
]

UNNAMED = "index"  # name of a first column without one, as of pandas' `reset_index`

MISSING = "a value is missing"

ZERO = "a zero byte, which arrays of strings lose at the end; remove it"

_UNPACK = "is compressed by {0}; unpack it: {0} -d {1}"
_BEGINNINGS = {  # of files that are no text, and what to do with them
    b"\x1f\x8b": ("gzip", _UNPACK),
    b"BZh": ("bzip2", _UNPACK),
    b"\xfd7zXZ\0": ("xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("zstd", _UNPACK),
    b"PAR1": (".parquet", ""),
    b"ARROW1": (".arrow", ""),
    b"\x89HDF": (".h5", ""),
    b"\x93NUMPY": (".npy", ""),
    b"PK\x03\x04": ("", "is a workbook or a .npz file; save a sheet as .csv, or rename it to .npz"),
    b"\xd0\xcf\x11\xe0": ("", "is an old workbook; save a sheet as .csv"),
}
_WIDE = {  # byte-order marks, the longer ones first
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_PIECE = 2**12  # bytes that tell a kind of file

_FEW_ROWS = 200  # that tell what is in a column
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
            "its first column has no name, like an index that pandas writes. If it names the rows, "
            f"give it by --id {UNNAMED}; else leave it out: to_csv(..., index=False)"
        )
    if has_names and next(islice(_lines(path, delimiter), 1, None), None) is None:
        raise ValueError("it has no rows under its header")
    if len(names) == 1:
        _check_one_column(path, delimiter)
    try:
        table = _numbers(path, delimiter, end if has_names else 0)
    except ValueError:
        rows = list(islice(_lines(path, delimiter), int(has_names), None))
        if not _is_text([row for _, row in rows]):
            _raise_for_bad_cell(path, rows, names if has_names else None, header)
            raise
        table = as_strings([cell for _, row in rows for cell in row], path).reshape(len(rows), -1)
    if has_names and header is None and not _are_words(path, delimiter, names):
        _report_header(path, names)
    has_columns = has_names and table.dtype.kind == "f"
    return NamedColumns.of(table, tuple(names)) if has_columns else table


def _are_words(path: Path, delimiter: str, names: list[str]) -> bool:
    """Whether the first line consists of words, some above numbers, and cannot be a row."""
    below = next((row for _, row in islice(_lines(path, delimiter), 1, None)), [])
    return all(map(holds_text, names)) and any(map(is_number, below))


def read_cells(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """All cells of a table as texts, (n_lines, n_columns), header included; and their lines."""
    delimiter = _delimiter(path)
    rows = list(_lines(path, delimiter))
    if not rows:
        raise ValueError("it is empty")
    if len(rows[0][1]) == 1:
        _check_one_column(path, delimiter)
    cells = as_strings([cell for _, row in rows for cell in row], path).reshape(len(rows), -1)
    return cells, np.array([line for line, _ in rows])


def read_beside(path: Path, column: str) -> tuple[NamedColumns | None, list[str], list[int]]:
    """The columns of numbers beside one column of texts, below a header; its cells and their lines.

    The numbers are None if a cell is not a number, or if there is no column of this name.
    """
    delimiter = _delimiter(path)
    lines = _lines(path, delimiter)
    if (first := next(lines, None)) is None:
        raise ValueError("it is empty")
    end, names = first
    names = [name.strip() for name in names]
    column = name_among(column, names)
    if names.count(column) != 1 or len(set(names)) < len(names):
        return None, [], []
    place = names.index(column)
    rest = [number for number in range(len(names)) if number != place]
    numbers, cells = [], []
    for line, row in lines:
        numbers.append(line)
        cells.append(row[place].strip())
    if not rest or not cells:
        return None, cells, numbers
    try:
        table = _numbers(path, delimiter, end, rest)
    except ValueError:
        return None, cells, numbers
    return NamedColumns.of(table, tuple(names[number] for number in rest)), cells, numbers


def read_column(path: Path, n_rows: int | None = None, header: bool | None = None) -> np.ndarray:
    """Read a single column as text, such as ids: (n_rows,), after a header if there is one.

    `n_rows` and `header` are those of `read_table`.
    """
    _, names, has_names = _first_line(path, n_rows, header, is_text=True)
    if len(names) > 1:
        raise ValueError(f"expected one column, got {len(names)}")
    delimiter = _delimiter(path)
    _check_one_column(path, delimiter, besides=" ")  # which ids may contain
    cells = [cell for _, (cell,) in islice(_lines(path, delimiter), int(has_names), None)]
    if has_names and header is None:
        _report_header(path, names)
    return as_strings(cells, path)


def name_among(name: str, names: Collection[str]) -> str:
    """The name of a column; that of a first column without one is "", and may be called index."""
    return "" if name == UNNAMED and name not in names and "" in names else name


def as_strings(texts: list[str], path: Path | None = None) -> np.ndarray:
    """Texts as an array of strings, which pads each to the longest with zero bytes.

    `path` is the text file that they are from, for the error.
    """
    if "\0" in "".join(texts):
        zero = next(text for text in texts if "\0" in text)
        raise ValueError(f"got {zero!r} with {ZERO}" if path is None else _not_a_text(path))
    longest, n_characters = max(map(len, texts), default=0), sum(map(len, texts))
    if 4 * len(texts) * longest > max(_PADDED_BYTES, _PADDING * n_characters):
        raise ValueError(
            f"{len(texts):,} texts padded to the longest, of {longest:,} characters, would take "
            f"{4 * len(texts) * longest:,} bytes; shorten it"
        )
    return np.array(texts, dtype=str)


def read_ids(path: Path) -> np.ndarray:
    """Read ids, one per line: (n_lines,)."""
    lines = decoded_lines(path)
    if TAB in "".join(lines):
        number = next(number for number, line in enumerate(lines, start=1) if TAB in line)
        raise ValueError(
            f"expected one id per line, line {number} has a tab; save one column of ids"
        )
    remedy = "; if these are ids, quote each one in a .csv file"
    reject_tables(lines, "one id per line", remedy)
    return as_strings(lines)


def read_lines(path: Path) -> np.ndarray:
    """Read texts in UTF-8, one per line, as a column of strings: (n_lines, 1)."""
    texts = decoded_lines(path)
    if not texts:
        raise ValueError("expected one text per line, it is empty")
    if all(all(map(is_number, line.replace(",", " ").split())) for line in texts):
        raise ValueError(
            "expected one text per line, found numbers only; save a matrix as .npy, or as .csv "
            "with commas between its columns"
        )
    reject_tables(
        texts,
        "one text per line",
        "; if these are texts, put each one into a .txt file, all of them into one folder",
    )
    for number, line in enumerate(texts, start=1):
        if not line.strip():
            raise ValueError(
                f"expected one text per line, line {number} is empty; leave out the object in all "
                "files, or write a word for a missing text"
            )
    return np.array(texts, dtype=object)[:, None]


def _delimiter(path: Path) -> str:
    """Tab in .tsv files; in .csv files what separates the names or numbers of the first line."""
    with _open_text(path) as file:
        first = next(csv.reader(file, delimiter=TAB if path.suffix.lower() == ".tsv" else ","), [])
    if any("\0" in cell for cell in first):
        raise ValueError(_not_a_text(path))
    if path.suffix.lower() == ".tsv":
        return TAB
    if len(first) == 1:  # quoted commas do not count
        return next((mark for mark in (";", TAB) if mark in first[0]), ",")
    return ","


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
    length, blank, n_read = None, None, 0
    with _open_text(path) as file:
        reader = csv.reader(file, delimiter=delimiter)
        for row in reader:
            if not row:
                blank = blank or reader.line_num
                continue
            length = length or len(row)
            if length == 1 and blank:  # in one column, a blank line is an empty cell
                raise ValueError(f"line {blank} is empty; a value is missing")
            if len(row) != length:
                advice = _advice_on(row, delimiter)
                if n_read == 1 and len(row) == length + 1:
                    advice = (
                        "; if the header lacks a name for the names of rows, as R writes it, add "
                        "one: write.table(..., col.names=NA)"
                    )
                raise ValueError(
                    f"line {reader.line_num} has {len(row)} cells, expected {length} as in the "
                    f"lines above{advice}"
                )
            n_read += 1
            yield reader.line_num, row


def _is_text(rows: list[list[str]]) -> bool:
    """Whether the first row, or a whole column of several, is text rather than numbers."""
    if all(map(is_number, rows[0])) or not any(holds_text(cell) for row in rows for cell in row):
        return False
    columns = zip(*rows, strict=True)
    return len(rows[0]) == 1 or any(not any(map(is_number, column)) for column in columns)


def _check_one_column(path: Path, delimiter: str, besides: str = "") -> None:
    """Raise for blank lines, which `loadtxt` skips, and for several columns in each cell."""
    lines = _lines(path, delimiter)
    cells = [row[0] for _, row in islice(lines, _FEW_ROWS)]
    for _ in lines:  # is any blank?
        pass
    expected = f"cells separated by {'tabs' if delimiter == TAB else 'commas'}"
    reject_tables(cells, expected, besides=delimiter + besides)


def _numbers(
    path: Path, delimiter: str, n_skipped: int, columns: list[int] | None = None
) -> np.ndarray:
    return np.loadtxt(
        path,
        delimiter=delimiter,
        skiprows=n_skipped,
        usecols=columns,
        ndmin=2,
        comments=None,
        quotechar='"',
        encoding="utf-8-sig",
    )


def _raise_for_bad_cell(
    path: Path, rows: list[tuple[int, list[str]]], names: list[str] | None, header: bool | None
) -> None:
    """Raise for the first cell that is not a number; `rows` have their lines, but no header."""
    for number, (line, row) in enumerate(rows):
        for column, cell in enumerate(row):
            if not is_number(cell):
                name = column if names is None else names[column]
                is_first = number == 0 and names is None and header is None
                hint = "; if line 1 is a header, choose header=True (--header yes)"
                raise ValueError(
                    bad_cell(cell, number, name, line, file=path) + (hint if is_first else "")
                ) from None


def bad_cell(
    cell: str,
    row: int,
    column: int | str,
    line: int | None = None,
    name: Any = None,
    file: str | Path = "",
) -> str:
    """What is wrong with a cell that is not a number, and what to do.

    `name` is the id of its row; `file`, if it is a text, tells how to convert it.
    """
    where = cell_in_words(row, column, line=line, name=name)
    if is_missing(cell):
        return f"expected a number in {where}, got {cell!r}: {MISSING}"
    is_text = Path(file).suffix.lower() in (".csv", ".tsv")
    advice = _advice_on([cell], _delimiter(Path(file)) if is_text else None)
    return f"expected a number in {where}, got {cell!r}{advice}"


def _advice_on(cells: list[str], delimiter: str | None) -> str:
    """What to do about cells with commas; without `delimiter`, not how to convert the file."""
    if any(re.fullmatch(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*", cell) for cell in cells):
        what, option = "write numbers without commas between digits", "thousands"
        if not any("." in cell or cell.count(",") > 1 for cell in cells):
            what += ", or decimals with a point"
    elif any(re.fullmatch(r"\s*[-+]?\d*,\d+\s*|.*\d;\d*", cell) for cell in cells):
        what, option = "decimals need a point", "decimal"
    else:
        return ""
    if any(";" in cell for cell in cells):  # cut at a decimal comma
        delimiter = ";"
    if delimiter is None:
        return f"; {what}"
    convert = f"pandas.read_csv(FILE, sep={delimiter!r}, {option}=',').to_csv(NEW, index=False)"
    if "or decimals" in what:
        convert += ", with decimal=',' if it separates decimals"
    return f"; {what}. To convert: {convert}"


def _report_header(path: Path, names: list[str]) -> None:
    warn(
        f"{path}: line 1 ({few(names)}) is read as a header. If it is a row, choose header=False "
        "(--header no)."
    )


# ---- decoding ------------------------------------------------------------------------------------


def decoded_lines(path: Path) -> list[str]:
    """The lines of a text in UTF-8, without their ends."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(_not_a_text(path)) from None
    if "\0" in text:
        raise ValueError(_not_a_text(path))
    # str.splitlines would split at more characters, such as U+2028 within a text.
    return [line.rstrip("\n") for line in StringIO(text, newline=None)]


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """An open text in UTF-8, as `csv.reader` takes it."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            yield file
        except UnicodeDecodeError:
            raise ValueError(_not_a_text(path)) from None


def _not_a_text(path: Path) -> str:
    """What a file is that is not text in UTF-8 without zero bytes, and what to do."""
    content = path.read_bytes()
    for beginning, (kind, advice) in _BEGINNINGS.items():
        if content.startswith(beginning):
            advice = advice or "is a {0} file; give it a name that ends in {0}"
            return "it " + advice.format(kind, quote(str(path)))
    marked = (name for mark, name in _WIDE.items() if content.startswith(mark))
    wide = next(marked, _wide_without_mark(content[:_PIECE]))
    if wide is not None:
        return f"expected text in UTF-8, got {wide}; convert it: {_converted(path, wide)}"
    try:
        content.decode("utf-8-sig")
        place, advice = (
            content.find(b"\0"),
            f"remove zero bytes: tr -d '\\000' < {quote(str(path))} > NEW",
        )
    except UnicodeDecodeError as error:
        place = error.start
        advice = f"convert it, for example by {_converted(path, 'WINDOWS-1252')}"
    line = content.count(b"\n", 0, place) + 1
    return f"expected text in UTF-8, got the byte {content[place]:#04x} in line {line}; {advice}"


def _wide_without_mark(content: bytes) -> str | None:
    """Which UTF-16 Latin letters are in, every other byte of which is zero."""
    even, odd = (part.count(0) / max(1, len(part)) for part in (content[::2], content[1::2]))
    if max(even, odd) < 0.8 or min(even, odd) > 0.2:
        return None
    return "UTF-16LE" if odd > even else "UTF-16BE"


def _converted(path: Path, encoding: str) -> str:
    return f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > NEW"
