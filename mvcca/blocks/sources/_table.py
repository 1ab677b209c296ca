"""Open tables: rows of numbers or texts, and what names them, from files in any format.

`read_table` decides by the content of a file; `ReadOptions` is what a user says about it. Every
table says in one line what its file was taken for. Pickled content is never loaded, and every error
names the file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks.checks import few
from mvcca.blocks.places import row_in_words
from mvcca.blocks.sources._arrow import (
    TableFile,
    column_of_ids,
    columns_as_texts,
    feature_names,
    is_text_column,
    list_columns,
    read_column,
)
from mvcca.blocks.sources._dialect import Dialect, column_place, dialect_of, table_in
from mvcca.blocks.sources._file import reason_of
from mvcca.blocks.sources._npz import kind_of_sparse, names_of_members
from mvcca.blocks.sources._open import BESIDE, OPEN, READ
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._stream import Text, content_of, is_workbook, text_of
from mvcca.blocks.sources._text import (
    NamedColumns,
    TextTable,
    as_strings,
    first_lines,
    text_lines,
)
from mvcca.machine.warnings import warn

__all__ = [
    "FileRows",
    "ReadOptions",
    "lines_of_text",
    "open_matrix",
    "path_and_key",
    "read_array",
    "read_cells",
    "read_table",
]

_ARROW = (".parquet", ".arrow")
_TEXT = ("text", ".xlsx")
_KEYED = (".npz", ".h5", ".hdf5", ".h5ad", ".zarr", ".mat", ".parquet", ".arrow")
_ID_NAMES = ("ids", "id", "index")  # of an array of ids beside a matrix


@dataclass(frozen=True)
class ReadOptions:
    """How to read a table, where its file does not tell.

    Attributes
    ----------
    id : str or None
        Column of ids: its name, its number from 1, or "index" for a first column without a name;
        or the array of ids beside a matrix.
    columns : sequence of str
        The columns to read; by default all others.
    drop : sequence of str
        Columns to leave out.
    header : bool or None
        Whether the first line is a header.
    sheet : str or None
        Of a workbook.
    decimal, thousands : str or None
        What separates decimals, and groups of digits.
    skip_lines : int
        Lines above the table.
    encoding : str or None
        Of a text, such as "cp1252"; UTF-8 and UTF-16 are recognized.
    kind : {"table", "texts"} or None
        What a text holds.
    transpose : bool or None
        Whether columns are the objects; `mvcca.views.files` asks the ids of other files.
    match_ids : str
        What may differ between the ids of two files, as for `Views.aligned`.
    """

    id: str | None = None
    columns: Sequence[str] = ()
    drop: Sequence[str] = ()
    header: bool | None = None
    sheet: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    skip_lines: int = 0
    encoding: str | None = None
    kind: str | None = None
    transpose: bool | None = None
    match_ids: str = ""

    @property
    def named(self) -> set[str]:
        """Columns that are named, and must be in a header."""
        given = [self.id, *self.columns, *self.drop]
        return {one for one in given if one is not None and not one.isdecimal()}


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of a file and what identifies them.

    Attributes
    ----------
    file : str
        In messages.
    matrix : RowSource, ndarray or csr_array
        The rows: opened, if they can be read in blocks; a column of strings, if they are texts.
    ids : ndarray of str or None
        One per row.
    took : str
        What the file was taken for, in one line.
    id_name : str
        Name of the ids in the file; "id" if they have none.
    missing : str or None
        How many values of a text are missing, and where the first is.
    source : TextTable or None
        Of a text, which tells lines.
    cells : mapping of str to ndarray of str, shape (n_rows,)
        The columns as texts in place of a matrix, as `read_cells` reads them, by name; a first
        column without one has the name "".
    lines : ndarray of int or None
        Lines of the rows of cells in a text, from 1.
    """

    file: str
    matrix: Any
    ids: np.ndarray | None = None
    took: str = ""
    id_name: str = "id"
    missing: str | None = None
    source: TextTable | None = None
    cells: Mapping[str, np.ndarray] = field(default_factory=dict)
    lines: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.cells.values()))) if self.cells else self.matrix.shape[0]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, if there are any."""
        return getattr(self.matrix, "columns", None)

    def place_of(self, row: int) -> str:
        """A row, by its line if it has one."""
        if self.lines is not None:
            return f"line {self.lines[row]}"
        return row_in_words(row) if self.source is None else f"line {self.source.line_of(row)}"

    def row_in_words(self, row: int) -> str:
        """A row, by its place and its id."""
        place = self.place_of(row)
        return place if self.ids is None else f"{place} ({self.ids[row]})"

    def without(self, names: Collection[str]) -> FileRows:
        """The other cells."""
        rest = {name: cells for name, cells in self.cells.items() if name not in names}
        return replace(self, cells=rest)

    def take(self, rows: np.ndarray) -> FileRows:
        """Some of the rows of cells, in this order."""
        cells = {name: column[rows] for name, column in self.cells.items()}
        ids, lines = (None if own is None else own[rows] for own in (self.ids, self.lines))
        return replace(self, cells=cells, ids=ids, lines=lines)

    def check_ids(self) -> None:
        """Raise unless ids name every row, each by another one."""
        if self.ids is None:
            return
        empty = np.flatnonzero(self.ids == "")
        if len(empty):
            where = self.place_of(int(empty[0]))
            raise SourceError(f"{self.file}: {where} has no id; name it, or leave it out")
        order = np.argsort(self.ids, kind="stable")
        ordered = self.ids[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if len(twice):
            first, again = (self.place_of(int(order[twice[0] + k])) for k in (0, 1))
            raise SourceError(
                f"{self.file}: id {str(ordered[twice[0]])!r} is in {first} and in {again}; keep "
                "one of them"
            )

    def turned(self) -> FileRows:
        """The table whose rows are the columns of this one."""
        if self.columns is None:
            raise SourceError(f"{self.file}: its columns have no names, so it cannot be turned")
        matrix = np.asarray(self.matrix).T
        if self.ids is not None:
            matrix = NamedColumns.of(matrix, tuple(self.ids.tolist()))
        return replace(self, matrix=matrix, ids=as_strings(list(self.columns)), source=None)


def read_table(
    file: str | os.PathLike[str], reading: ReadOptions | None = None, **given: Any
) -> FileRows:
    """Read a table of numbers or texts, and the ids of its rows.

    Parameters
    ----------
    file : path
        A table in text, compressed or not; a workbook; Parquet, Arrow, AnnData, HDF5, Zarr, MATLAB
        or NumPy files. One array of several, or one column, is named as in ``file.npz:key``. Its
        content decides what it is, not its name.
    reading : ReadOptions, optional
        How to read it.
    **given
        Fields of `ReadOptions`.

    Returns
    -------
    FileRows

    Raises
    ------
    SourceError
        If the file cannot be read, or is ambiguous. The message names the place and the remedy.
    ImportError
        If the library that reads the format is not installed. The message names the extra.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from mvcca.blocks import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name) / "mrna.txt"
    >>> _ = file.write_text("sample\\tg1\\tg2\\nS1\\t0.5\\t1\\nS2\\t0.1\\t2\\n")
    >>> table = read_table(file)
    >>> table.ids.tolist(), table.matrix.columns
    (['S1', 'S2'], ('g1', 'g2'))
    >>> print(table.took.partition(": ")[2])
    read as a table: 2 rows, 2 columns of numbers, tab-separated, header, ids in column 1 (sample)
    >>> folder.cleanup()
    """
    reading = replace(reading or ReadOptions(), **given)
    name = os.fspath(file)
    path, key = path_and_key(name)
    with _reading(path):
        kind = content_of(str(path))
        if kind == "folder":
            return _folder(path)
        if kind in _TEXT:
            return _table_in_text(name, text_of(name, reading.encoding, reading.sheet), reading)
        if kind in _ARROW:
            return _table_in_arrow(name, str(path), key, reading)
        return _matrix_and_ids(name, kind, str(path), key, reading)


def open_matrix(path: str | os.PathLike[str], key: str | None = None) -> RowSource:
    """Open a matrix in a file, to be read by blocks of rows.

    Parameters
    ----------
    path : path
        Holds ``.npy``, ``.npz`` (sparse, as `scipy.sparse.save_npz` writes it), HDF5, AnnData
        (sparse rows stay sparse), Zarr (a folder), MATLAB (files before version 7.3 are read as a
        whole), Parquet or Arrow (columns of numbers, or one column of lists of numbers of equal
        length), a table in text, or a workbook. Its content decides, not its name.
    key : str, optional
        Name of the matrix, if an HDF5, Zarr or MATLAB file holds several; of AnnData ``"X"`` by
        default, or ``"layers/NAME"``; or of one column of a Parquet or Arrow file.

    Returns
    -------
    RowSource
        Has a shape and a dtype; rows are read on demand.

    Raises
    ------
    SourceError
        If the file is missing or damaged, or does not hold a matrix of real numbers.
    ImportError
        If the library that reads the format is not installed. The message names the extra.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mvcca import open_matrix
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/text.npy", np.eye(5, 3, dtype=np.float32))
    ...     text = open_matrix(f"{folder}/text.npy")
    ...     text.shape, text.read(1, 3)
    ((5, 3), array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32))
    """
    path = os.fspath(path)
    with _reading(Path(path)):
        kind = content_of(path)
        if kind in _TEXT:
            table = read_table(path)
            if table.source is None or not table.source.shape[1]:
                raise SourceError(f"{path}: expected a table of numbers, found texts")
            return table.source
        if kind == "folder":
            raise SourceError(f"{path}: expected a file, got a folder")
        if kind in _ARROW:
            table = _table_in_arrow(path, path, key, ReadOptions())
            if not isinstance(table.matrix, RowSource):
                raise SourceError(f"{path}: expected columns of numbers, found texts")
            return table.matrix
        if kind not in (".npy", ".npz"):
            return OPEN[kind](path, key)
        if key is not None:
            raise SourceError(f"{path}: a {kind} file holds one matrix; it has no {key!r}.")
        return OPEN[kind](path)


# ---- tables in text ------------------------------------------------------------------------------


def _dialect_in(text: Text, reading: ReadOptions, lines: list[str] | None = None) -> Dialect | None:
    """The layout of the table in a text; None if it holds texts."""
    if reading.kind == "texts":
        return None
    suffix = ".csv" if is_workbook(text[0]) else Path(text[0]).suffix.lower()
    return dialect_of(
        first_lines(text) if lines is None else lines,
        suffix=suffix,
        skip=reading.skip_lines,
        header=reading.header,
        named=reading.named,
        decimal=reading.decimal,
        thousands=reading.thousands,
        is_table=reading.kind == "table",
    )


def _table_in_text(file: str, text: Text, reading: ReadOptions) -> FileRows:
    lines = first_lines(text)
    if not any(map(str.strip, lines)):
        raise SourceError(f"{file}: it is empty")
    dialect = _dialect_in(text, reading, lines)
    if dialect is None:
        return _texts(file, text)
    _reject_title(file, lines, dialect, reading)
    n_first = len(dialect.first_cells)
    if dialect.width > 1 and (n_first == 0 or (n_first == 1 and all(dialect.textual))):
        raise SourceError(f"{file}: it has no rows under its header")
    place = _place_of_ids(file, dialect, reading)
    places = _places(file, dialect, reading, place)
    named = (dialect.names[place] if dialect.names and place is not None else "") or "id"
    if len(places) == 1 and dialect.textual[places[0]]:
        if dialect.delimiter == "\t" and place == 0 and text[0].lower().endswith(".txt"):
            return _texts(file, text, named=True)  # quotation marks are part of them
        source = TextTable(text, dialect, (), place)
        cells, numbers = source.cells()
        matrix: Any = _checked_texts(file, cells[:, places[0]], numbers)
        what = f"texts in column {places[0] + 1}"
        took = _took(file, dialect, len(source), what, place)
        return FileRows(file, matrix, source.ids, took, named, source=source)
    source = TextTable(text, dialect, places, place)
    matrix = source
    if source.kept is not None:
        matrix = source.kept
        matrix = matrix if source.columns is None else NamedColumns.of(matrix, source.columns)
    missing = None if source.holes is None else source.missing_in_words()
    what = f"{len(places):,} column{'s' * (len(places) > 1)} of numbers"
    took = _took(file, dialect, len(source), what, place)
    return FileRows(file, matrix, source.ids, took, named, missing, source)


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
    begin = dialect.begin - (dialect.names is not None)
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
    if names is not None:
        _reject_twice(file, names)
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
    found = "it has no header" if names is None else f"its columns are {few(names)}"
    raise SourceError(
        f"{file}: there is no column {reading.id!r}; {found}. Give id='COLUMN', a name or a number"
    )


def _reject_twice(file: str, names: Sequence[str]) -> None:
    ordered = np.argsort(np.array(names), kind="stable")
    for a, b in pairwise(ordered):
        if names[a] == names[b]:
            raise SourceError(
                f"{file}: columns {a + 1} and {b + 1} have the same name, {names[a]!r}; rename one"
            )


def _places(file: str, dialect: Dialect, reading: ReadOptions, ids: int | None) -> list[int]:
    """The columns to read."""
    names, width = dialect.names, dialect.width
    found: dict[str, list[int]] = {}
    known = None if names is None else {name: place for place, name in enumerate(names)}
    for what, wanted in (("columns", reading.columns), ("drop", reading.drop)):
        found[what] = []
        for one in wanted:
            place = (known or {}).get(one, column_place(one, None, width))
            if place is None:
                have = "it has no header" if names is None else f"its columns are {few(names)}"
                raise SourceError(f"{file}: there is no column {one!r} ({what}); {have}")
            found[what].append(place)
    left = {*found["drop"], ids}
    rest = [place for place in found["columns"] or range(width) if place not in left]
    if not rest:
        raise SourceError(f"{file}: expected columns of numbers beside the ids")
    return sorted(rest)


def _texts(file: str, text: Text, *, named: bool = False) -> FileRows:
    """One text per line, which may be `named` by an id and a tab before it."""
    lines = text_lines(text)
    took = f"{file}: read as texts: {len(lines):,}, one per line"
    if not named:
        return FileRows(file, _checked_texts(file, lines), took=took)
    ids, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    matrix = _checked_texts(file, texts)
    return FileRows(file, matrix, as_strings(list(ids)), f"{took}, ids before a tab")


def _checked_texts(
    file: str, texts: Sequence[str] | np.ndarray, lines: Sequence[int] | np.ndarray | None = None
) -> np.ndarray:
    for row, one in enumerate(texts):
        if not one.strip():
            line = row + 1 if lines is None else lines[row]
            raise SourceError(
                f"{file}: expected a text in line {line}, it is empty; leave out the object in all "
                "files, or write a word"
            )
    return np.array(texts, dtype=object)[:, None]


def _folder(path: Path) -> FileRows:
    """A folder of .txt files, each of which is one text, in the order of their names."""
    files = sorted(
        one for one in path.iterdir() if one.suffix.lower() == ".txt" and one.name[0] != "."
    )
    if not files:
        raise SourceError(f"{path}: expected a folder of .txt files, each one text; found none")
    texts, tables = [], []
    for one in files:
        lines = lines_of_text(str(one))
        texts.append(" ".join(lines).strip())
        if not texts[-1]:
            raise SourceError(
                f"{one}: expected a text, it is empty; leave out the file, or write a word"
            )
        if table_in(lines) is not None:
            tables.append(one)
    if len(tables) > len(files) / 2:
        raise SourceError(
            f"{path}: expected a folder of .txt files, each one text; {len(tables)} of "
            f"{len(files)} are tables of numbers, such as {tables[0].name}. Save one table for all "
            "objects, one row each, as .csv"
        )
    took = f"{path}: read as texts: {len(files):,} files, their names are ids"
    ids = as_strings([one.stem for one in files])
    return FileRows(str(path), np.array(texts, dtype=object)[:, None], ids, took)


# ---- other formats -------------------------------------------------------------------------------


def _table_in_arrow(file: str, path: str, key: str | None, reading: ReadOptions) -> FileRows:
    names = feature_names(path)
    column, ids = _ids_in_arrow(path, reading, names)
    left = {*reading.drop, column}
    wanted = [key] if key is not None else list(reading.columns)
    for one in [*wanted, *reading.drop]:
        if one not in names and one != column:
            raise SourceError(f"{file}: there is no column {one!r}; its columns are {few(names)}")
    rest = wanted or [name for name in names if name not in left]
    lists = list_columns(path, rest)
    unread = []
    if len(lists) == 1 and len(rest) > 1:
        unread = [name for name in rest if name not in lists]
        rest = lists
    if len(lists) > 1:
        raise SourceError(
            f"{file}: columns {few(lists)} hold lists; name the one you mean: columns={lists[0]!r}"
        )
    if not rest:
        raise SourceError(f"{file}: expected columns of numbers beside {column!r}")
    if len(rest) == 1 and is_text_column(path, rest[0]):
        matrix: Any = _checked_texts(file, [one or "" for one in read_column(path, rest[0])])
        what = f"{len(matrix):,} texts in column {rest[0]!r}"
    else:
        matrix = TableFile(path, None, rest)
        what = f"{matrix.shape[0]:,} rows, {matrix.shape[1]:,} columns of numbers"
        what += f" in the lists of {rest[0]!r}" if lists else ""
    what += "" if column is None else f", ids in column {column!r}"
    what += f"; left out: {few(unread)}" if unread else ""
    name = "id" if column is None or column.startswith("__index_level") else column
    return FileRows(file, matrix, ids, f"{file}: read as a table: {what}", name)


def _ids_in_arrow(
    path: str, reading: ReadOptions, names: Sequence[str]
) -> tuple[str | None, np.ndarray | None]:
    """The column of ids, if there is one, and the ids; texts that repeat are categories unasked."""
    column = column_of_ids(path, reading.id, names)
    ids = None if column is None else _as_ids(read_column(path, column))
    if ids is None or (reading.id is None and len(np.unique(ids)) < len(ids)):
        return None, None
    return column, ids


def _matrix_and_ids(
    file: str, kind: str, path: str, key: str | None, reading: ReadOptions
) -> FileRows:
    """A matrix of a file of arrays, and an array of ids beside it."""
    if reading.columns or reading.drop:
        raise SourceError(f"{file}: a {kind} file has no columns to choose or to leave out by name")
    beside, name = BESIDE.get(kind), _name_of_ids(kind, path, reading.id)
    if name is None:
        matrix, ids = _opened(file, kind, path, key), None
    elif beside is None:
        raise SourceError(
            f"{file}: it has no ids {name!r} of its rows; a .npz file may have, as "
            "np.savez('rows.npz', rows=X, ids=names) writes it"
        )
    else:
        matrix, found = beside(Path(path), name, key)
        ids = _as_ids(found, matrix=matrix)
    took = f"{file}: read as a matrix: {_size(matrix)}"
    took += "" if ids is None else f", ids in {name!r}"
    return FileRows(file, matrix, ids, took, name or "id")


def _name_of_ids(kind: str, path: str, given: str | None) -> str | None:
    """The array of ids beside a matrix: the named one, else one that has such a name."""
    if kind == ".h5ad":
        return given or "index"
    names = names_of_members(path) if kind == ".npz" else []
    known = [one for one in (given, *_ID_NAMES) if one in names]
    return known[0] if known and len(names) > 1 else given


def _opened(file: str, kind: str, path: str, key: str | None) -> Any:
    """The matrix, to be read in blocks if its format allows; else the whole array."""
    if kind == ".npz" and (key is not None or not _is_csr(path)):
        return read_array(file)
    return OPEN[kind](path) if kind in (".npy", ".npz") else OPEN[kind](path, key)


def _size(matrix: Any) -> str:
    rows, *rest = matrix.shape if matrix.shape else (1,)
    kind = "sparse " if issparse(matrix) or getattr(matrix, "is_sparse", False) else ""
    width = f"{rest[0]:,} columns of " if rest else ""
    return f"{rows:,} rows, {width}{kind}{matrix.dtype}"


def _is_csr(path: str) -> bool:
    """Whether a file was written by `scipy.sparse.save_npz` in CSR format."""
    with suppress(Exception):  # whichever reader comes next says what is wrong
        return kind_of_sparse(path) == "csr"
    return False


def _as_ids(ids: Any, matrix: Any = None) -> np.ndarray:
    """Ids as texts, one for each row."""
    if isinstance(ids, np.ndarray):
        height = len(ids) if matrix is None else matrix.shape[0]
        if ids.ndim != 1 or len(ids) != height or ids.dtype.kind not in "iufUSO":
            raise ValueError(
                f"expected one id per row, {height:,} integers or strings, got {ids.dtype} of "
                f"shape {ids.shape}"
            )
        ids = ids.tolist()
    return as_strings([_as_id(one) for one in ids])


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


# ---- cells, arrays and lines ---------------------------------------------------------------------


def read_cells(file: str, reading: ReadOptions | None = None) -> FileRows:
    """The columns of a table as texts, with ids only if `reading` names them.

    Raises
    ------
    SourceError
        If the file cannot be read, or holds no table.
    """
    reading = reading or ReadOptions()
    path, _ = path_and_key(file)
    with _reading(path):
        kind = content_of(str(path))
        if kind in _ARROW:
            cells = columns_as_texts(str(path))
            if reading.id is None:
                return FileRows(file, None, cells=cells)
            name = column_of_ids(str(path), reading.id, [*cells]) or ""
            ids = cells.get(name, cells.get(""))
            return FileRows(file, None, ids, cells=cells).without([name, ""])
        if kind not in _TEXT:
            matrix = np.asarray(read_array(file))
            matrix = matrix.reshape(len(matrix), -1).astype(str)
            named = {f"{path.stem} {j}": column for j, column in enumerate(matrix.T)}
            return FileRows(file, None, cells=named)
        text = text_of(file, reading.encoding, reading.sheet)
        dialect = _dialect_in(text, reading)
        if dialect is None:
            raise SourceError(f"{file}: expected a table, found texts")
        place = None if reading.id is None else _place_of_ids(file, dialect, reading)
        if dialect.names is not None:
            _reject_twice(file, dialect.names)
        source = TextTable(text, dialect, (), place)
        rows, lines = source.cells()
        names = dialect.names or [f"{path.stem} {j}" for j in range(dialect.width)]
        found = {
            name: np.char.strip(rows[:, j])
            for j, name in enumerate(names)
            if j != place and name not in reading.drop
        }
        return FileRows(file, None, source.ids, cells=found, lines=lines)


def read_array(
    file: str, header: bool | None = None, n_rows: int | None = None, *, texts: bool = False
) -> Any:
    """Read a whole array: a matrix, or labels as numbers or texts.

    Parameters
    ----------
    file : str
        As for `read_table`, and arrays of one dimension.
    header : bool, optional
        Whether the first line of a text is a header.
    n_rows : int, optional
        Expected number of rows, which tells if the file does not.
    texts : bool, default=False
        Whether numbers in a text stay as they are written, such as ids.

    Returns
    -------
    ndarray or csr_array
        Texts are strings. A table of numbers with a header has the attribute ``columns``.

    Raises
    ------
    SourceError
        If the file is missing or damaged, or contains neither real numbers nor text.
    """
    path, key = path_and_key(file)
    with _reading(path):
        kind = content_of(str(path))
        if kind in _TEXT:
            return _array_in_text(file, header, n_rows, texts)
        if kind not in READ:
            raise SourceError(f"{file}: expected a table or an array, got {kind}")
        array = READ[kind](path, key)
    if not issparse(array) and array.dtype.kind not in "biufUS":
        raise SourceError(f"{file}: expected real numbers or text, got {array.dtype}")
    return array


def _array_in_text(file: str, header: bool | None, n_rows: int | None, texts: bool) -> Any:
    text = text_of(file)
    dialect = _dialect_in(text, ReadOptions(header=header, kind="table"))
    if dialect is None:
        raise SourceError(f"{file}: it is empty")
    is_text = texts or any(dialect.textual)
    source = TextTable(text, dialect, () if is_text else range(dialect.width), None)
    if header is None and n_rows == len(source) + (1 if dialect.names is not None else -1):
        if dialect.names is None:
            first = few(source.cells()[0][0].tolist())
            warn(f"{file}: line 1 ({first}) is read as a header, as there is one row too many")
        return _array_in_text(file, dialect.names is None, None, texts)
    if is_text:
        return source.cells()[0]
    if source.holes is not None:
        raise SourceError(f"{file}: {source.missing_in_words()}")
    matrix = source.read(0, len(source))
    return matrix if source.columns is None else NamedColumns.of(matrix, source.columns)


def lines_of_text(file: str) -> list[str]:
    """Read the lines of a text, empty ones included."""
    with _reading(Path(file)):
        kind = content_of(file)
        if kind != "text":
            raise SourceError(f"{file}: expected a text, it is a {kind} file")
        return text_lines(text_of(file))


def path_and_key(name: str) -> tuple[Path, str | None]:
    """Split ``file.npz:key`` into a path and the name of an array in the file."""
    file, separator, key = name.rpartition(":")
    if separator and key and file.lower().endswith(_KEYED) and not os.path.exists(name):
        return Path(file), key
    return Path(name), None


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert all errors of reading a file to a `SourceError` that names the file."""
    if not path.exists():
        raise SourceError(f"{path}: no such file")
    if not (path.is_file() or path.is_dir()):  # a FIFO would be waited for
        raise SourceError(f"{path}: not a regular file")
    try:
        yield
    except (SourceError, ImportError, MemoryError, Warning):
        raise
    except Exception as error:  # readers raise exceptions of any type for damaged files
        raise SourceError(f"{path}: cannot be read: {reason_of(error)}") from error
