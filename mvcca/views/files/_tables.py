"""Tables of subjects in text files: named columns of numbers, beside ids, groups and categories."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import SourceError, as_block, read_array
from mvcca.blocks.checks import FILL_IN, few, repeated
from mvcca.blocks.places import row_in_words
from mvcca.blocks.sources import (
    UNNAMED,
    ZERO,
    NamedColumns,
    bad_cell,
    begins_with_index,
    cells_of_text,
    columns_of_texts,
    is_missing,
    is_number,
    name_among,
)
from mvcca.views.coding import coding_of
from mvcca.views.validation import numbered_columns


@dataclass(frozen=True, eq=False)
class SubjectTable:
    """The columns of a table, one row per subject, as texts.

    Attributes
    ----------
    file : str
        Where they were read, for error messages.
    columns : mapping of str to ndarray of str, shape (n_rows,)
        By name; the index that pandas writes has the name "".
    lines : ndarray of int or None, shape (n_rows,)
        Lines of the rows in a text file, from 1.
    ids : ndarray of str or None, shape (n_rows,)
        What identifies the rows.
    numbers_in_file : ndarray of int or None, shape (n_rows,)
        Numbers of the rows in the file, from 0, if some were taken.
    """

    file: str
    columns: Mapping[str, np.ndarray]
    lines: np.ndarray | None = None
    ids: np.ndarray | None = None
    numbers_in_file: np.ndarray | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def places(self) -> dict[str, int]:
        """The row of each id."""
        return {} if self.ids is None else {str(one): row for row, one in enumerate(self.ids)}

    def column(self, name: str) -> np.ndarray:
        """One column of texts.

        Raises
        ------
        SourceError
            If there is none of this name.
        """
        name = name_among(name, self.columns)
        if name not in self.columns:
            raise SourceError(
                f"{self.file}: there is no column {name!r}; its columns are "
                f"{few(one or f'{UNNAMED} (without a name)' for one in self.columns)}. If it names "
                "the rows, rename it: all files need the same name"
            )
        return self.columns[name]

    def without(self, names: Sequence[str]) -> SubjectTable:
        """The other columns."""
        rest = {name: cells for name, cells in self.columns.items() if name not in names}
        if not rest:
            raise SourceError(f"{self.file}: expected columns of numbers beside {few(names)}")
        return replace(self, columns=rest)

    def by(self, name: str) -> SubjectTable:
        """The other columns, with rows identified by this one.

        Raises
        ------
        SourceError
            If there is no such column, or if it does not name every row, each by another id.
        """
        ids = np.char.strip(self.column(name))
        check_ids(self.file, name, ids, self.lines)
        return replace(self.without([name_among(name, self.columns)]), ids=ids)

    def take(self, rows: np.ndarray) -> SubjectTable:
        """Some of the rows, in this order."""
        columns = {name: cells[rows] for name, cells in self.columns.items()}
        known = np.arange(len(self)) if self.numbers_in_file is None else self.numbers_in_file
        lines, ids = (None if own is None else own[rows] for own in (self.lines, self.ids))
        return SubjectTable(self.file, columns, lines, ids, known[rows])

    def numbers(self, *, holes: bool = False, remedy: str = FILL_IN) -> NamedColumns:
        """The columns as a matrix of numbers with names.

        Parameters
        ----------
        holes : bool, default=False
            Whether missing cells become NaN; else they are refused.
        remedy : str, optional
            What to do about missing cells, for the error.

        Raises
        ------
        SourceError
            If a cell is missing, or a column holds text.
        """
        found: dict[str, np.ndarray] = {}
        for name, cells in self.columns.items():
            missing = np.array([_is_hole(cell) for cell in cells])
            if missing.any() and not holes:
                raise self._missing_in(name, missing, remedy)
            try:
                found[name] = np.where(missing, "nan", cells).astype(float)
            except ValueError:
                raise self._text_in(name, cells) from None
        return NamedColumns.of(np.column_stack(list(found.values())), tuple(found))

    def confounds(self, remedy: str = FILL_IN) -> Mapping[str, np.ndarray]:
        """The columns as they are, if all are confounds; errors name the file and the line.

        Raises
        ------
        SourceError
            If a cell is missing.
        ValueError
            If a column holds dates, names rows, or holds numbers beside a few texts.
        """
        for name, cells in self.columns.items():
            missing = np.array([_is_hole(cell) for cell in cells])
            if missing.any():
                raise self._missing_in(name, missing, remedy)
        with warnings.catch_warnings(action="ignore"):  # of ids and families, as the test warns
            coding_of(self.columns, name=self.file, place=self._row_in_words)
        return self.columns

    def texts(self) -> np.ndarray | None:
        """The only column as texts, (n_rows, 1); None if there are several, or if it is numbers."""
        if len(self.columns) > 1:
            return None
        (cells,) = self.columns.values()
        if all(is_number(cell) or _is_hole(cell) for cell in cells):
            return None
        for row, cell in enumerate(cells):
            if not cell.strip():
                where = self._row_in_words(row)
                raise SourceError(
                    f"{self.file}: expected a text in {where}, it is empty; leave out the row, or "
                    "write a word"
                )
        return cells.astype(object)[:, None]

    def _place(self, row: int) -> dict[str, Any]:
        """What `mvcca.blocks.places` says of a row."""
        number = row if self.numbers_in_file is None else int(self.numbers_in_file[row])
        line = None if self.lines is None else int(self.lines[row])
        return {"row": number, "line": line, "name": None if self.ids is None else self.ids[row]}

    def _row_in_words(self, row: int) -> str:
        return row_in_words(**self._place(row))

    def _missing_in(self, name: str, missing: np.ndarray, remedy: str) -> SourceError:
        return SourceError(
            f"{self.file}: column {name!r} misses {missing.sum()} of {len(missing)} values, first "
            f"in {self._row_in_words(int(missing.argmax()))}. {remedy}"
        )

    def _text_in(self, name: str, cells: np.ndarray) -> SourceError:
        row = next(i for i, cell in enumerate(cells) if not (is_number(cell) or _is_hole(cell)))
        message = bad_cell(str(cells[row]), column=name or 0, file=self.file, **self._place(row))
        if "To convert" not in message:
            what = "write categories as columns of 0 and 1"
            if self.ids is None:
                what += f", or give --id {name or UNNAMED} if it names the rows"
            else:
                what = f"or {what}"
            message += f"; leave out the column, {what}"
        return SourceError(f"{self.file}: {message}")


def _is_hole(cell: str) -> bool:
    """Whether the value of a cell is missing."""
    return is_missing(cell) or cell.strip().lower() == "nan"


def read_table(file: str) -> SubjectTable:
    """Read a table with a header, or any matrix, whose columns are then numbered.

    Parameters
    ----------
    file : str
        A ``.csv``, ``.tsv``, ``.parquet`` or ``.arrow`` file, or a file of another format with a
        matrix of numbers.

    Raises
    ------
    SourceError
        If the file cannot be read, or names a column twice.
    """
    if (columns := columns_of_texts(file)) is not None:
        return SubjectTable(file, columns)
    found, lines = cells_of_text(file), None
    if found is None:
        cells = as_block(read_array(file)).dense().matrix.astype(str)
    else:
        cells, lines = found
    first = cells[0].tolist()
    if all(is_number(c) or is_missing(c) for c in first) and not begins_with_index(first):
        names = numbered_columns(Path(file).stem, cells.shape[1])
        return SubjectTable(file, dict(zip(names, cells.T, strict=True)), lines)
    header, rows = [name.strip() for name in first], cells[1:]
    if not len(rows):
        raise SourceError(f"{file}: it has no rows under its header")
    if names_twice := repeated(header):
        raise SourceError(f"{file}: two columns have the name {names_twice[0]!r}; rename one")
    lines = None if lines is None else lines[1:]
    return SubjectTable(file, dict(zip(header, rows.T, strict=True)), lines)


def check_ids(
    file: str, name: str, ids: Iterable[str], lines: Sequence[int] | np.ndarray | None
) -> dict[str, int]:
    """The row of each id.

    Raises
    ------
    SourceError
        If a row has none, or two rows have the same.
    """
    found: dict[str, int] = {}
    for row, one in enumerate(ids):
        if not one:
            line = None if lines is None else int(lines[row])
            raise SourceError(
                f"{file}: {row_in_words(row, line=line)} has no {name!r}; name it, or leave it out"
            )
        if "\0" in one:
            raise SourceError(f"{file}: {row_in_words(row)} has the {name} {one!r} with {ZERO}")
        if one in found:
            first, again = (
                row_in_words(number, line=None if lines is None else int(lines[number]))
                for number in (found[one], row)
            )
            raise SourceError(
                f"{file}: {name} {str(one)!r} is in {first} and in {again}; keep one of them"
            )
        found[str(one)] = row
    return found
