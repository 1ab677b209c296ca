"""Tables in text: columns of numbers that are read by blocks of rows, ids and other cells.

A text is scanned once, in chunks of whole records: numbers are checked, and the place of each chunk
is kept, so that blocks are read from there. NumPy parses numbers; Python's `csv` reads chunks with
quotation marks, and finds bad cells.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from mvcca.blocks.sources._dialect import (
    BLANKS,
    MISSING,
    Dialect,
    cells_of,
    is_missing,
    is_number,
)
from mvcca.blocks.sources._file import FileSource, PerThread, in_order
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._stream import Text, is_packed, open_text
from mvcca.machine.warnings import warn

ZERO = "a zero byte, which arrays of strings lose at the end; remove it"

_CHUNK = 4 * 2**20
_LONGEST = 64 * 2**20  # bytes of a record
_KEPT_BYTES = 64 * 2**20  # of numbers, which are not read again
_SLOW_BYTES = 2**30  # of a file that is read from its beginning again
_PADDED_BYTES = 64 * 2**20
_PADDING = 64  # at most, in units of the text's characters
_SEEN, _ENOUGH = 1000, 60  # lines that tell what a text holds, if they are short; if they are long
_CELL = "\x1f"  # between the cells of normalized records


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


# Whole records of a text with the ends of lines of Unix: where they begin in the stream, the number
# of their first line, and they themselves.
Chunk = tuple[int, int, str]


class TextTable(FileSource):
    """Columns of numbers in a text, with NaN for what is missing.

    Attributes
    ----------
    ids : ndarray of str or None
        One per row, of the column `id_place`.
    holes : tuple of int or None
        How many values are missing, and the row and the column of the first.
    kept : ndarray or None
        All rows, unless they take much memory.
    """

    def __init__(
        self, text: Text, dialect: Dialect, places: Sequence[int], id_place: int | None
    ) -> None:
        self._text, self.dialect, self._places = text, dialect, list(places)
        self._id_place, self._here = id_place, PerThread()
        names = dialect.names
        self.columns = None if names is None else tuple(names[place] for place in places)
        super().__init__(text[1])

    def identity(self) -> tuple[Any, ...]:
        return (*super().identity(), self._text, self.dialect, tuple(self._places))

    def _open(self) -> None:
        if is_packed(self._text) and self._stamp[0] > _SLOW_BYTES:
            warn(
                f"{self.shown}: it is packed or in {self._text[2]}, so that blocks are read "
                "from its beginning again; unpack it, or convert it to UTF-8 or .parquet"
            )
        kept: list[np.ndarray] = []
        starts, ids, n_rows, holes, first = [], [], 0, 0, None
        for chunk in chunks_of(self._text, *_after_lines(self._text, self.dialect.begin)):
            lines, mark, own = self._records(chunk)
            block = self._numbers(chunk, lines, mark)
            starts.append((n_rows, *chunk[:2]))
            rows, columns = np.isnan(block).nonzero()
            if len(rows) and first is None:
                first = n_rows + int(rows[0]), int(columns[0])
            holes, n_rows = holes + len(rows), n_rows + len(block)
            ids.append(as_strings(own))
            kept = [*kept, block] if n_rows * block.shape[1] * 8 <= _KEPT_BYTES else []
        if not n_rows:
            raise SourceError(f"{self.shown}: it has no rows under its header")
        self._edges = [*(row for row, *_ in starts), n_rows]
        self._begins = [place for _, *place in starts]  # and their lines
        self.boundaries = tuple(dict.fromkeys(self._edges))
        self.describe((n_rows, len(self._places)), np.float64)
        self.ids = np.concatenate(ids) if self._id_place is not None else None
        self.holes = (holes, *first) if first else None
        self.kept = np.concatenate(kept) if sum(map(len, kept)) == n_rows else None

    def in_memory(self) -> Any:
        """The rows, with the names of the columns, or this source if they take much memory."""
        if self.kept is None:
            return self
        return self.kept if self.columns is None else NamedColumns.of(self.kept, self.columns)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": None, "ids": None}

    def line_of(self, row: int) -> int:
        """The line of a row, from 1."""
        number = bisect_right(self._edges, row) - 1
        with closing(self._chunks(number)) as chunks:
            chunk = next(chunks)
        return [line for line, _ in self._cells(chunk)][row - self._edges[number]]

    def _read_file(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray]:
        return in_order(self._here, self._edges, self, ranges, self._pieces)

    def _pieces(self, number: int, _: int) -> Iterator[np.ndarray]:
        """The numbers of the chunks from one on."""
        for chunk in self._chunks(number):
            yield self._numbers(chunk, *self._records(chunk)[:2])

    def _chunks(self, number: int = 0) -> Generator[Chunk]:
        """The chunks from a number on, as the scan has cut them."""
        return chunks_of(self._text, *self._begins[number])

    def _records(self, chunk: Chunk) -> tuple[list[str], str, list[str]]:
        """Records without quotation marks, what separates their cells, and their ids."""
        dialect, place, text = self.dialect, self._id_place, chunk[2]
        mark, lines = dialect.delimiter, text.removesuffix("\n").split("\n")
        n_all = len(lines)
        if mark == BLANKS and re.search(r"  |\t|^ | $", text, re.MULTILINE):
            lines = [" ".join(line.split()) for line in lines]
            text = "\n".join(lines)
        if not all(map(str.strip, lines)):
            lines = [line for line in lines if line.strip(" ")]
        is_plain = lines and '"' not in text and (dialect.width > 1 or len(lines) == n_all)
        # NumPy checks that records are of one length, or reach to the last column that is read.
        n_marks = dialect.width - 1
        if is_plain and (
            (len(self._places) == dialect.width and lines[0].count(mark) == n_marks)
            or (self._places[-1:] == [n_marks] and text.count(mark) == n_marks * len(lines))
            or {line.count(mark) for line in lines} <= {n_marks}
        ):
            if place is None:
                return lines, mark, []
            return lines, mark, [line.split(mark, place + 1)[place].strip() for line in lines]
        rows = [row for _, row in self._cells(chunk)]
        ids = [] if place is None else [row[place].strip() for row in rows]
        return [_CELL.join(row).replace("\n", " ") for row in rows], _CELL, ids

    def _cells(self, chunk: Chunk) -> Iterator[tuple[int, list[str]]]:
        """The line and the cells of each record."""
        width, is_blank = self.dialect.width, self.dialect.delimiter == BLANKS
        reader: Any = cells_of(chunk[2].removesuffix("\n").split("\n"), self.dialect.delimiter)
        number, blank = chunk[1], 0
        for row in reader:
            line, number = number, chunk[1] + reader.line_num
            if not row or (width > 1 and len(row) == 1 and not row[0].strip()):
                blank = blank or line
                continue
            if blank and width == 1:  # in one column, a blank line is an empty cell
                raise SourceError(f"{self.shown}: line {blank} is empty; a value is missing")
            if is_blank and len(row) > width > 1:  # the name of a row may hold spaces
                row = [" ".join(row[: 1 - width]), *row[1 - width :]]
            if len(row) == width + 1 and not row[-1].strip():
                row = row[:width]
            if len(row) != width:
                joined = self.dialect.delimiter == "," and len(row) > width
                raise SourceError(
                    f"{self.shown}: line {line} has {len(row)} cell{'s' * (len(row) > 1)}, the "
                    f"others have {width}" + "; quote cells that hold commas" * joined
                )
            yield line, row

    def _numbers(self, chunk: Chunk, lines: list[str], mark: str) -> np.ndarray:
        """The columns of numbers of a chunk, with NaN for what is missing."""
        if not lines:
            return np.empty((0, len(self._places)))
        for sign, plain in ((self.dialect.thousands, ""), (self.dialect.decimal, ".")):
            if sign and sign not in (plain, mark):
                lines = [line.replace(sign, plain) for line in lines]
        if self.dialect.width == 1:  # NumPy skips empty records
            lines = [line or "nan" for line in lines]
        try:
            block = self._parsed(lines, mark)
        except ValueError:
            try:
                block = self._parsed(_with_nan(lines, mark), mark)
            except ValueError:
                self._raise_for_bad_cell(chunk)
                raise
        if not np.isfinite(block).all() and np.isinf(block).any():
            self._raise_for_bad_cell(chunk)
        return block

    def _parsed(self, lines: list[str], mark: str) -> np.ndarray:
        is_whole = len(self._places) == self.dialect.width
        columns = None if is_whole else self._places
        return np.loadtxt(lines, delimiter=mark, usecols=columns, comments=None, ndmin=2)

    def _raise_for_bad_cell(self, chunk: Chunk) -> None:
        """Name the first cell that is no number by its line, id and column."""
        dialect = self.dialect
        for line, row in self._cells(chunk):
            for place in self._places:
                plain = row[place].replace(dialect.thousands or "\0", "")
                plain = plain.replace(dialect.decimal, ".")
                if is_missing(plain) or (is_number(plain) and abs(float(plain)) < np.inf):
                    continue
                own = "" if self._id_place is None else f" ({row[self._id_place].strip()})"
                column = self._column(place)
                where = f"in line {line}{own}, {column}"
                raise SourceError(f"{self.shown}: {_said(row[place], where, column)}")

    def _column(self, place: int) -> str:
        names = self.dialect.names
        return f"column {place + 1}" if names is None else f"column {names[place]!r}"

    def missing_in_words(self) -> str:
        """How many values are missing, and where the first is."""
        assert self.holes is not None
        count, row, column = self.holes
        own = "" if self.ids is None else f" ({self.ids[row]})"
        return (
            f"{count:,} of {len(self) * self.shape[1]:,} values are missing, first in line "
            f"{self.line_of(row)}{own}, {self._column(self._places[column])}"
        )

    def cells(self) -> np.ndarray:
        """All cells as texts, (n_rows, width)."""
        rows = (row for chunk in self._chunks() for _, row in self._cells(chunk))
        return as_strings([cell for row in rows for cell in row]).reshape(len(self), -1)


def _said(cell: str, where: str, column: str) -> str:
    """What is wrong with a cell, and what to do."""
    if re.fullmatch(r"\s*[+-]?\d{1,3},\d{3}\s*", cell):
        plain = cell.replace(",", "").strip()
        what = f"may be {plain} or a decimal comma; give thousands=',' or decimal=','"
        return f"{cell!r} {where} {what}"
    if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", cell):
        return f"{cell!r} {where} has a decimal comma; give decimal=','"
    shown, name = cell[:40] + "..." * (len(cell) > 40), column.removeprefix("column ").strip("'")
    return f"expected a number {where}, got {shown!r}; correct it, or give drop={name!r}"


def _with_nan(lines: list[str], mark: str) -> list[str]:
    """Records in which missing values are spelled nan."""
    edge = re.escape(mark)
    markers = "|".join(map(re.escape, sorted(MISSING, key=len, reverse=True)))
    pattern = rf"(?<![^{edge}\n])[ ]*(?:{markers})?[ ]*(?![^{edge}\n])"
    return re.sub(pattern, "nan", "\n".join(lines), flags=re.IGNORECASE).split("\n")


def as_strings(texts: list[str]) -> np.ndarray:
    """Texts as an array of strings, which pads each to the longest with zero bytes."""
    if "\0" in "".join(texts):
        zero = next(text for text in texts if "\0" in text)
        raise ValueError(f"got {zero!r} with {ZERO}")
    longest, n_characters = max(map(len, texts), default=0), sum(map(len, texts))
    if 4 * len(texts) * longest > max(_PADDED_BYTES, _PADDING * n_characters):
        raise ValueError(
            f"{len(texts):,} texts padded to the longest, of {longest:,} characters, would take "
            f"{4 * len(texts) * longest:,} bytes; shorten it"
        )
    return np.array(texts, dtype=str)


# ---- lines and chunks ----------------------------------------------------------------------------


def text_lines(text: Text) -> list[str]:
    """All lines of a text, without their ends."""
    lines = "".join(chunk[2] for chunk in chunks_of(text, quoted=False)).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def first_lines(text: Text) -> list[str]:
    """The first lines of a text."""
    lines: list[str] = []
    with closing(chunks_of(text, quoted=False, size=_CHUNK // 8)) as chunks:
        for _, chunk in zip(range(8), chunks, strict=False):
            lines += chunk[2].removesuffix("\n").split("\n", _SEEN)[:_SEEN]
            if len(lines) > _ENOUGH:
                break
    return lines[:_SEEN]


def chunks_of(
    text: Text, place: int = 0, line: int = 1, *, quoted: bool = True, size: int = 0
) -> Generator[Chunk]:
    """Whole records of a text, from a place on, where this line begins.

    A record ends with its line, unless it is `quoted`, where a quoted cell goes on. The ends of
    chunks depend only on where the first one begins.
    """
    stream, rest = open_text(text, place)
    with closing(stream):
        while True:
            rest, end = _to_end_of_records(stream, rest, quoted, size or _CHUNK)
            if end < 0:
                raise SourceError(
                    f"{text[1]}: line {line} is longer than {_LONGEST // 2**20} MiB, or its "
                    "quotation mark is never closed"
                )
            if not end:
                return
            decoded = _decoded(rest[:end], text, line, place == 0)
            yield place, line, decoded
            place, line, rest = place + end, line + decoded.count("\n"), rest[end:]


def _to_end_of_records(stream: Any, rest: bytes, quoted: bool, size: int) -> tuple[bytes, int]:
    """What follows in a stream, and where the last whole record ends in it; -1 if it does not."""
    for n_bytes in range(size, _LONGEST + size, size):
        while len(rest) < n_bytes and (more := stream.read(n_bytes - len(rest))):
            rest += more
        if len(rest) < n_bytes:  # the stream ends
            is_open = quoted and rest.count(b'"') % 2 and len(rest) > size
            return rest, -1 if is_open else len(rest)
        if end := _end_of_records(rest[:n_bytes], quoted):
            return rest, end
    return rest, -1


def _after_lines(text: Text, n_lines: int) -> tuple[int, int]:
    """The place after some lines of a text, and the number of the next one."""
    (stream, piece), end = open_text(text), 0
    with closing(stream):
        while n_lines and end in (0, len(piece)) and (more := stream.read(_CHUNK)):
            piece += more
            ends = islice(re.finditer(rb"\r\n|\n|\r", piece), n_lines - 1, None)
            end = next((one.end() for one in ends), 0)
    return end or len(piece), n_lines + 1


def _end_of_records(piece: bytes, quoted: bool) -> int:
    """Where the last whole record ends; 0 if there is none."""
    end, n_quotes = len(piece), piece.count(b'"') if quoted else 0
    while (cut := piece.rfind(b"\n", 0, end)) >= 0:
        n_quotes -= piece.count(b'"', cut, end) if quoted else 0
        if not n_quotes % 2:
            return cut + 1
        end = cut
    return piece.rfind(b"\r", 0, len(piece) - 1) + 1 if b"\n" not in piece else 0


def _decoded(piece: bytes, text: Text, line: int, is_first: bool) -> str:
    if is_first:
        piece = piece.removeprefix(b"\xef\xbb\xbf")
    if (place := piece.find(b"\0")) < 0:
        try:
            decoded = piece.decode()
            return decoded.replace("\r\n", "\n").replace("\r", "\n") if b"\r" in piece else decoded
        except UnicodeDecodeError as error:
            place = error.start
    where = f"got the byte {piece[place]:#04x} in line {line + piece.count(10, 0, place)}"
    remedy = "give encoding='cp1252'" if piece[place] else "remove zero bytes: tr -d '\\000'"
    raise SourceError(f"{text[1]}: {where}; {remedy}")
