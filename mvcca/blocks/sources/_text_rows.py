"""Rows of texts, and of tables in text: which columns are ids, numbers or texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mvcca.blocks.checks import few, repeated
from mvcca.blocks.sources._dialect import (
    Dialect,
    ReadOptions,
    column_place,
    dialect_of,
    table_in,
)
from mvcca.blocks.sources._file_rows import FileRows, no_column, places_of_columns
from mvcca.blocks.sources._row_source import SourceError
from mvcca.blocks.sources._stream import Text, is_workbook, text_of
from mvcca.blocks.sources._text import (
    NamedColumns,
    TextTable,
    as_strings,
    first_lines,
    text_lines,
)
from mvcca.machine.warnings import warn


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
        texts = np.char.strip(as_strings(table.matrix[:, 0].tolist()))
        return replace(table, matrix=NamedColumns.of(texts[:, None], (stem,)))
    names, width = dialect.names, dialect.width
    if names is not None:
        _reject_twice(file, names)
    _reject_title(file, lines, dialect, reading)
    n_first = len(dialect.first_cells)
    is_header = n_first == 1 and all(dialect.textual) and not as_cells
    if width > 1 and (n_first == 0 or is_header):
        raise SourceError(f"{file}: it has no rows under its header")
    place = None if as_cells and reading.id is None else _place_of_ids(file, dialect, reading)
    places = places_of_columns(file, reading, names, width, [place])
    if not (places or as_cells):
        raise SourceError(f"{file}: expected columns of numbers beside the ids")
    if len(places) > 1 and all(dialect.textual[one] for one in places) and not as_cells:
        raise SourceError(
            f"{file}: its columns hold texts, such as {dialect.first_cells[0]!r}; name one of "
            f"them, as in columns='{places[-1] + 1}'. Label sets are a .txt file with a line for "
            "each row, its labels separated by commas"
        )
    is_text = len(places) == 1 and dialect.textual[places[0]] and not as_cells
    if is_text and dialect.delimiter == "\t" and place == 0 and suffix == ".txt":
        return _texts(file, text, named=True)  # quotation marks are part of them
    source = TextTable(text, dialect, [] if is_text or as_cells else places, place)
    if other := _by_height(source, reading):
        return table_in_text(file, other, as_cells=as_cells)
    what = f"{len(places):,} column{'s' * (len(places) > 1)} of numbers"
    matrix = source.in_memory()
    if as_cells:
        own = tuple(names[j] if names else f"{stem} {j}" for j in places)
        matrix = NamedColumns.of(np.char.strip(source.cells()[:, places]), own)
        what = f"{width - (place is not None):,} columns"
    elif is_text:
        matrix = source.cells()[:, places].astype(object)
        what = f"texts in column {places[0] + 1}"
    return FileRows(
        file,
        matrix,
        source.ids,
        took=_took(file, dialect, len(source), what, place),
        id_name=(names[place] if names and place is not None else "") or "id",
        missing=None if source.holes is None else source.missing_in_words(),
        source=source,
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
    if reading.id is not None:
        place = column_place(reading.id, names, width)
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
