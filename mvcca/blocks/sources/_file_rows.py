"""`FileRows`: what is read of a file, and what names its rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.blocks.checks import few
from mvcca.blocks.places import row_in_words
from mvcca.blocks.sources._dialect import ReadOptions, column_place
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.machine.warnings import warn

_LETTER = re.compile(r"[^\W\d_]|[^\0-\x7f]")  # or a sign of another script
_MOST_TURNED = 2**30  # bytes of a matrix that is turned in memory
_PADDED_BYTES = 64 * 2**20
_PADDING = 64  # at most, in units of the text's characters


class NamedColumns(np.ndarray):
    """A matrix with column names, which estimators store and check like those of a DataFrame."""

    columns: tuple[str, ...] | None  # None after an operation that changed the number of columns

    @classmethod
    def of(cls, rows: np.ndarray, columns: tuple[str, ...] | None) -> Any:
        """Return a view of a matrix with column names; without names, the matrix."""
        if columns is None:
            return rows
        named = rows.view(cls)
        named.columns = columns
        return named

    def __array_finalize__(self, source: Any) -> None:
        columns = getattr(source, "columns", None)
        fits = columns is not None and self.shape[1:] == (len(columns),)
        self.columns = columns if fits else None


@dataclass(frozen=True, eq=False)
class FileRows:
    """Rows of a file and what identifies them.

    Attributes
    ----------
    file : str
        In messages.
    matrix : RowSource, ndarray or csr_array
        The rows: opened, if they can be read in blocks; a column of strings, if they are texts.
        All columns as strings, as `read_cells` reads them; a first one without name has the name
        "".
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
    are_lines : bool
        Whether the rows are the lines of a text that is no table.
    are_lists : bool
        Whether the rows are lists of numbers in one column.
    """

    file: str
    matrix: Any
    ids: np.ndarray | None = None
    took: str = ""
    id_name: str = "id"
    missing: str | None = None
    source: Any = None
    are_lines: bool = False
    are_lists: bool = False

    def __len__(self) -> int:
        return self.matrix.shape[0]

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, if there are any."""
        return getattr(self.matrix, "columns", None)

    def place_of(self, row: int) -> str:
        """A row, by its line if it has one."""
        if self.are_lines:
            return f"line {row + 1}"
        return row_in_words(row) if self.source is None else f"line {self.source.line_of(row)}"

    def row_in_words(self, row: int) -> str:
        """A row, by its place and its id."""
        place = self.place_of(row)
        return place if self.ids is None else f"{place} ({self.ids[row]})"

    def check_texts(self) -> None:
        """Raise if a text is empty; warn if all of them are digits and signs."""
        texts = self.matrix[:, 0].tolist()
        if len(texts) > 1 and not any(map(_LETTER.search, texts)):
            warn(
                f"{self.file}: no text has a letter, such as {texts[0][:40]!r}; digits are taken "
                "for words. If they are numbers, write them as a table"
            )
        for row, one in enumerate(texts):
            if not one.strip():
                raise SourceError(
                    f"{self.file}: expected a text in {self.place_of(row)}, it is empty; leave "
                    "out the object in all files, or write a word"
                )

    def check_ids(self) -> None:
        """Raise unless ids name every row, each by another one."""
        if self.ids is None:
            return
        if (is_empty := self.ids == "").any():
            where = self.place_of(int(is_empty.argmax()))
            raise SourceError(f"{self.file}: {where} has no id; name it, or leave it out")
        names, counts = np.unique(self.ids, return_counts=True)
        if counts.max(initial=0) > 1:
            name = names[counts.argmax()]
            first, again = map(self.place_of, np.flatnonzero(self.ids == name)[:2].tolist())
            raise SourceError(
                f"{self.file}: id {str(name)!r} is in {first} and in {again}; keep one of them"
            )

    def in_memory(self) -> FileRows:
        """The same rows in memory, with the names of their columns."""
        if not isinstance(self.matrix, RowSource):
            return self
        rows = self.matrix.read(0, len(self.matrix))
        columns = self.columns if isinstance(rows, np.ndarray) else None
        return replace(self, matrix=NamedColumns.of(rows, columns))

    def turned(self) -> FileRows:
        """The table whose rows are the columns of this one."""
        if self.columns is None:
            raise SourceError(f"{self.file}: its columns have no names, so it cannot be turned")
        n_bytes = 8 * self.matrix.shape[0] * self.matrix.shape[1]
        if n_bytes > _MOST_TURNED:
            raise SourceError(
                f"{self.file}: its columns are the objects; to turn it would take {n_bytes:,} "
                "bytes. Write it with a row for each object, such as frame.T.to_parquet(...)"
            )
        names = None if self.ids is None else tuple(self.ids.tolist())
        matrix = NamedColumns.of(np.asarray(self.matrix).T, names)
        return replace(self, matrix=matrix, ids=as_strings(list(self.columns)), source=None)


def places_of_columns(
    file: str,
    reading: ReadOptions,
    names: Sequence[str] | None,
    width: int,
    left: Collection[int | None],
) -> list[int]:
    """The columns to read, which `reading` names or numbers from 1, less those that are `left`."""
    known = {name: place for place, name in enumerate(names or ())}

    def place_of(name: str) -> int:
        place = known.get(name, column_place(name, None, width))
        if place is None:
            raise no_column(file, name, names)
        return place

    left = {*left, *map(place_of, reading.drop)}
    wanted = list(map(place_of, reading.columns)) or range(width)
    return sorted(place for place in wanted if place not in left)


def no_column(
    file: str, name: str | None, columns: Iterable[str] | None, remedy: str = ""
) -> SourceError:
    """The error that a table has no such column; None for `columns` if it has no header."""
    have = "it has no header" if columns is None else f"its columns are {few(columns)}"
    return SourceError(f"{file}: there is no column {name!r}; {have}{remedy}")


def as_ids(ids: Any, matrix: Any = None) -> np.ndarray:
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


def as_strings(texts: list[str]) -> np.ndarray:
    """Texts as an array of strings, which pads each to the longest with zero bytes."""
    if "\0" in "".join(texts):
        zero = next(text for text in texts if "\0" in text)
        raise ValueError(
            f"got {zero!r} with a zero byte, which arrays of strings lose at the end; remove it"
        )
    longest, n_characters = max(map(len, texts), default=0), sum(map(len, texts))
    if 4 * len(texts) * longest > max(_PADDED_BYTES, _PADDING * n_characters):
        raise ValueError(
            f"{len(texts):,} texts padded to the longest, of {longest:,} characters, would take "
            f"{4 * len(texts) * longest:,} bytes; shorten it"
        )
    return np.array(texts, dtype=str)
