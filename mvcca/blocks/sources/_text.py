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
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from mvcca.blocks.checks import few, repeated
from mvcca.blocks.sources._dialect import (
    BLANKS,
    MISSING,
    Dialect,
    ReadOptions,
    cells_of,
    column_place,
    dialect_of,
    is_missing,
    is_number,
    table_in,
)
from mvcca.blocks.sources._file import DecodedFile
from mvcca.blocks.sources._file_rows import (
    FileRows,
    NamedColumns,
    as_strings,
    no_column,
    places_of_columns,
)
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._stream import Text, is_packed, is_workbook, open_text, text_of
from mvcca.machine.warnings import warn

_CHUNK = 4 * 2**20
_LONGEST = 64 * 2**20  # bytes of a record
_KEPT_BYTES = 64 * 2**20  # of numbers, which are not read again
_SLOW_BYTES = 2**30  # of a file that is read from its beginning again
_SEEN, _ENOUGH = 1000, 60  # lines that tell what a text holds, if they are short; if they are long
_CELL = "\x1f"  # between the cells of normalized records


# Whole records of a text with the ends of lines of Unix: where they begin in the stream, the number
# of their first line, and they themselves.
Chunk = tuple[int, int, str]


class TextTable(DecodedFile):
    """Columns of numbers in a text, with NaN for what is missing.

    Attributes
    ----------
    ids : ndarray of str or None
        One per row, of the column `id_place`.
    holes : tuple of int or None
        How many values are missing, and the row and the column of the first.
    kept : ndarray or None
        All rows, with the names of the columns, unless they take much memory.
    """

    def __init__(
        self, text: Text, dialect: Dialect, places: Sequence[int], id_place: int | None
    ) -> None:
        self._text, self.dialect, self._places = text, dialect, list(places)
        self._id_place, names = id_place, dialect.names
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
        for chunk in chunks_of(self._text, above=self.dialect.begin):
            lines, mark, own = self._records(chunk)
            block = self._numbers(chunk, lines, mark)
            starts.append((n_rows, *chunk[:2]))
            missing = np.flatnonzero(np.isnan(block))
            if len(missing) and first is None:
                row, column = divmod(int(missing[0]), block.shape[1])
                first = n_rows + row, column
            holes, n_rows = holes + len(missing), n_rows + len(block)
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
        is_kept = sum(map(len, kept)) == n_rows
        self.kept = NamedColumns.of(np.concatenate(kept), self.columns) if is_kept else None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "kept": None, "ids": None}

    def line_of(self, row: int) -> int:
        """The line of a row, from 1."""
        number = bisect_right(self._edges, row) - 1
        with closing(self._chunks(number)) as chunks:
            chunk = next(chunks)
        return [line for line, _ in self._cells(chunk)][row - self._edges[number]]

    def _decoded(self, number: int, stop: int) -> tuple[int, list[tuple[slice, Iterator[Any]]]]:
        return len(self), [(slice(None), self._chunks(number))]

    def _rows(self, piece: Any, columns: slice, first: int) -> np.ndarray:
        return self._numbers(piece, *self._records(piece)[:2])

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
        if "" in lines or " " in text:
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
                may_be_id = f", or id={place + 1} if it names the rows" * (not place and not own)
                raise SourceError(f"{self.shown}: {_said(row[place], where, column)}{may_be_id}")

    def _column(self, place: int) -> str:
        names = self.dialect.names
        return f"column {place + 1}" if names is None else f"column {names[place]!r}"

    def missing_in_words(self) -> str | None:
        """How many values are missing, and where the first is."""
        if self.holes is None:
            return None
        count, row, column = self.holes
        own = "" if self.ids is None else f" ({self.ids[row]})"
        return (
            f"{count:,} of {len(self) * self.shape[1]:,} values are missing, first in line "
            f"{self.line_of(row)}{own}, {self._column(self._places[column])}"
        )

    def vectors(self, place: int) -> np.ndarray:
        """The lists of numbers in a column, (n_rows, length)."""
        found: list[np.ndarray] = []
        for line, row in (record for chunk in self._chunks() for record in self._cells(chunk)):
            cell, where = row[place], f"{self.shown}: line {line}, {self._column(place)}"
            try:
                found.append(np.array(cell.strip("[] \n").replace(",", " ").split(), dtype=float))
            except ValueError:
                raise SourceError(
                    f"{where}: expected a list of numbers, got {cell[:20]!r}...; write it in full, "
                    "as by json.dumps(x.tolist())"
                ) from None
            if len(found[-1]) != len(found[0]):
                raise SourceError(
                    f"{where}: expected a list of {len(found[0])} numbers, as in the first row, "
                    f"got {len(found[-1])}; shorten it, or leave it out"
                )
        return np.array(found)

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
    text: Text, place: int = 0, line: int = 1, *, above: int = 0, quoted: bool = True, size: int = 0
) -> Generator[Chunk]:
    """Whole records of a text, from a place on, where this line begins, and below some lines.

    A record ends with its line, unless it is `quoted`, where a quoted cell goes on. The ends of
    chunks depend only on where the first one begins.
    """
    with closing(open_text(text, place)) as stream:
        piece = "".join(stream.readline() for _ in range(above))
        place, line = place + _checked_size(piece, text, line), line + above
        while piece := _whole_records(stream, text, line, quoted, size or _CHUNK):
            n, lines = _checked_size(piece, text, line), piece
            if "\r" in piece:
                lines = piece.replace("\r\n", "\n").replace("\r", "\n")
            yield place, line, lines if place else lines.removeprefix("\ufeff")
            place, line = place + n, line + lines.count("\n")


def _whole_records(stream: TextIO, text: Text, line: int, quoted: bool, size: int) -> str:
    """About as many characters of a stream, from a line on, up to the end of a record."""
    parts = [stream.read(size), stream.readline(_LONGEST)]
    n_quotes, n_more = quoted * sum(part.count('"') for part in parts), 0
    while n_quotes % 2 and n_more < _LONGEST and (more := stream.readline(_LONGEST)):
        parts.append(more)
        n_quotes, n_more = n_quotes + more.count('"'), n_more + len(more)
    if len(parts[-1]) < _LONGEST and not (n_quotes % 2 and n_more > size):
        return "".join(parts)
    lines = "".join(parts).split("\n")
    quotes_above = np.cumsum([0, *(quoted * one.count('"') for one in lines)])[:-1]
    line += int(np.flatnonzero(quotes_above % 2 == 0)[-1])
    raise SourceError(
        f"{text[1]}: line {line} is longer than {_LONGEST // 2**20} MiB, or its quotation mark is "
        "never closed"
    )


def _checked_size(piece: str, text: Text, line: int) -> int:
    """By how much a piece of a text, from a line on, moves the place; refuse what is no text."""
    if (place := piece.find("\0")) < 0:
        try:
            n_bytes = len(piece if piece.isascii() else piece.encode())
            return len(piece) if is_packed(text) else n_bytes
        except UnicodeEncodeError as error:
            place = error.start
    byte = ord(piece[place]) % 256  # one that is no UTF-8 is escaped as a surrogate
    where = f"got the byte {byte:#04x} in line {line + piece.count(chr(10), 0, place)}"
    remedy = "give encoding='cp1252'" if byte else "remove zero bytes: tr -d '\\000'"
    raise SourceError(f"{text[1]}: {where}; {remedy}")


# ---- rows: which columns are ids, numbers or texts -----------------------------------------------


def table_in_text(file: str, reading: ReadOptions, *, as_cells: bool = False) -> FileRows:
    """The rows of a table, or of texts, in a text or a worksheet.

    Columns are texts `as_cells`, with ids only if `reading` names them.
    """
    text = text_of(file, reading.encoding, reading.sheet)
    lines, stem = first_lines(text), Path(file).stem
    if not any(map(str.strip, lines)):
        raise SourceError(f"{file}: it is empty")
    suffix = ".csv" if is_workbook(text[0]) else Path(text[0]).suffix.lower()
    dialect = dialect_of(lines, suffix, reading)
    if dialect is None:
        table = _texts(file, text)
        if not as_cells:
            return table
        texts = np.char.strip(as_strings(table.matrix[:, 0].tolist()))[:, None]
        places = places_of_columns(file, reading, [stem], 1, [])
        return replace(table, matrix=NamedColumns.of(texts[:, places], (stem,) * len(places)))
    names, width = dialect.names, dialect.width
    if names is not None:
        _reject_twice(file, names)
    _reject_title(file, lines, dialect, reading)
    n_first = len(dialect.first_cells)
    is_header = n_first == 1 and all(dialect.textual) and not as_cells
    if width > 1 and (n_first == 0 or is_header):
        raise SourceError(f"{file}: it has no rows under its header")
    place = None if as_cells and reading.id is None else _place_of_ids(file, dialect, reading)
    known = names or tuple(f"{stem} {j}" for j in range(width))
    places = places_of_columns(file, reading, known if as_cells else names, width, [place])
    if not (places or as_cells):
        raise SourceError(f"{file}: expected columns of numbers beside the ids")
    unread: list[str] = []
    if lists := [one for one in places if one in dialect.lists and not as_cells]:
        called = names or list(map(str, range(1, width + 1)))
        if len(lists) > 1:
            raise SourceError(
                f"{file}: columns {few([called[one] for one in lists])} hold lists; name the one "
                f"you mean: columns={called[lists[0]]!r}"
            )
        unread, places = [called[one] for one in places if one not in lists], lists
    if len(places) > 1 and all(dialect.textual[one] for one in places) and not as_cells:
        raise SourceError(
            f"{file}: its columns hold texts, such as {dialect.first_cells[0]!r}; name one of "
            f"them, as in columns='{places[-1] + 1}'. Label sets are a .txt file with a line for "
            "each row, its labels separated by commas"
        )
    is_text = len(places) == 1 and dialect.textual[places[0]] and not (as_cells or lists)
    if is_text and dialect.delimiter == "\t" and place == 0 and suffix == ".txt":
        return _texts(file, text, named=True)  # quotation marks are part of them
    source = TextTable(text, dialect, [] if is_text or as_cells or lists else places, place)
    if other := _by_height(source, reading):
        return table_in_text(file, other, as_cells=as_cells)
    what = f"{len(places):,} column{'s' * (len(places) > 1)} of numbers"
    matrix = source if source.kept is None else source.kept
    if as_cells:
        cells = np.char.strip(source.cells()[:, places])
        matrix = NamedColumns.of(cells, tuple(known[j] for j in places))
        n_columns = width - (place is not None)
        what = f"{n_columns:,} column{'s' * (n_columns != 1)}"
    elif lists:
        matrix = source.vectors(*lists)
        what = f"{matrix.shape[1]:,} columns of numbers in the lists of column {lists[0] + 1}"
        what += f", left out: {few(unread)}" if unread else ""
    elif is_text:
        matrix = source.cells()[:, places].astype(object)
        what = f"texts in column {places[0] + 1}"
    return FileRows(
        file,
        matrix,
        source.ids,
        took=_took(file, dialect, len(source), what, place),
        id_name=(names[place] if names and place is not None else "") or "id",
        missing=source.missing_in_words(),
        source=source,
        are_lists=bool(lists),
    )


def _by_height(source: TextTable, reading: ReadOptions) -> ReadOptions | None:
    """The other choice of a header, if the expected number of rows tells so."""
    is_first_row = source.dialect.names is not None
    if reading.header is not None or reading.n_rows != len(source) + (1 if is_first_row else -1):
        return None
    if not is_first_row:
        first = few(source.cells()[0].tolist())
        warn(f"{source.name}: line 1 ({first}) is read as a header, as there is one row too many")
    return replace(reading, header=not is_first_row)


def _took(file: str, dialect: Dialect, n_rows: int, what: str, place: int | None) -> str:
    """What a text was taken for."""
    parts = [f"{n_rows:,} row{'s' * (n_rows > 1)}", what, dialect.words]
    parts.append("no header" if dialect.names is None else "header")
    if place is not None:
        name = dialect.names[place] if dialect.names else ""
        parts.append(f"ids in column {place + 1}" + (f" ({name})" if name else ""))
    if dialect.decimal == ",":
        parts.append("decimal commas")
    return f"{file}: read as a table: {', '.join(parts)}"


def _reject_title(file: str, lines: list[str], dialect: Dialect, reading: ReadOptions) -> None:
    """Raise for a line above the header that holds a single cell."""
    if dialect.width < 3 or reading.skip_lines or reading.header is not None:
        return
    names = dialect.names
    begin = dialect.begin - (0 if names is None else 1 + "".join(names).count("\n"))
    first = lines[begin].split(dialect.delimiter)
    rest = [cell for cell in first if cell.strip()]
    if len(rest) == 1 and len(first) in (1, dialect.width) and rest[0].strip():
        raise SourceError(
            f"{file}: row {begin + 1} holds only {rest[0].strip()!r}; the header seems to be in "
            f"row {begin + 2}. Give skip_lines={begin + 1}"
        )


def _place_of_ids(file: str, dialect: Dialect, reading: ReadOptions) -> int | None:
    """The column of ids: the named one, else a first without name, or of distinct texts."""
    names, width = dialect.names, dialect.width
    place = None if reading.id is None else column_place(reading.id, names, width)
    if place is not None:
        return place
    first = dialect.first_cells
    is_name = dialect.textual[0] or (width == 2 and dialect.textual[1])  # of a text
    is_distinct = is_name and len(set(first)) == len(first) and all(first)
    is_unnamed = names is not None and names[0] == ""
    if width > 1 and (is_unnamed or is_distinct):
        return 0
    if reading.id is None:
        return None
    raise no_column(file, reading.id, names, ". Give id='COLUMN', a name or a number")


def _reject_twice(file: str, names: Sequence[str]) -> None:
    if twice := repeated(names):
        a, b, *_ = (place for place, name in enumerate(names, start=1) if name == twice[0])
        raise SourceError(
            f"{file}: columns {a} and {b} have the same name, {twice[0]!r}; rename one"
        )


def _texts(file: str, text: Text, *, named: bool = False) -> FileRows:
    """One text per line, which may be `named` by an id and a tab before it."""
    lines = text_lines(text)
    took = f"{file}: read as texts: {len(lines):,}, one per line"
    ids = None
    if named:
        parts = [line.split("\t", 1) for line in lines]
        ids, lines = as_strings([one for one, _ in parts]), [one for _, one in parts]
        took = f"{took}, ids before a tab"
    matrix = np.array(lines, dtype=object)[:, None]
    return FileRows(file, matrix, ids, took, are_lines=True)


def folder_of_texts(path: Path) -> FileRows:
    """A folder of .txt files, each of which is one text, in the order of their names."""
    files = sorted(
        one for one in path.iterdir() if one.suffix.lower() == ".txt" and one.name[0] != "."
    )
    if not files:
        raise SourceError(f"{path}: expected a folder of .txt files, each one text; found none")
    lines = [text_lines(text_of(str(one))) for one in files]
    texts = [" ".join(own).strip() for own in lines]
    if "" in texts:
        raise SourceError(
            f"{files[texts.index('')]}: expected a text, it is empty; leave out the file, or write "
            "a word"
        )
    tables = [one for one, own in zip(files, lines, strict=True) if table_in(own) is not None]
    if len(tables) > len(files) / 2:
        raise SourceError(
            f"{path}: expected a folder of .txt files, each one text; {len(tables)} of "
            f"{len(files)} are tables of numbers, such as {tables[0].name}. Save one table for all "
            "objects, one row each, as .csv"
        )
    took = f"{path}: read as texts: {len(files):,} files, their names are ids"
    ids = as_strings([one.stem for one in files])
    return FileRows(str(path), np.array(texts, dtype=object)[:, None], ids, took)
