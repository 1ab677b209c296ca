"""Tables of subjects in text files: named columns of numbers, beside ids, groups and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mvcca.blocks import NamedColumns, SourceError, as_block, cells_of_text, read_array
from mvcca.blocks.checks import few
from mvcca.blocks.sources import is_missing, is_number
from mvcca.views.validation import numbered_columns


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table, one row per subject, as texts.

    Attributes
    ----------
    file : str
        Where they were read, for error messages.
    columns : mapping of str to ndarray of str, shape (n_rows,)
        By name; the index that pandas writes has the name "".
    """

    file: str
    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> np.ndarray:
        """One column of texts.

        Raises
        ------
        SourceError
            If there is none of this name.
        """
        if name not in self.columns:
            raise SourceError(
                f"{self.file}: there is no column {name!r}; its columns are {few(self.columns)}"
            )
        return self.columns[name]

    def without(self, names: Sequence[str]) -> Table:
        """The other columns."""
        rest = {name: cells for name, cells in self.columns.items() if name not in names}
        if not rest:
            raise SourceError(f"{self.file}: expected columns of numbers beside {few(names)}")
        return Table(self.file, rest)

    def take(self, rows: np.ndarray) -> Table:
        """Some of the rows, in this order."""
        return Table(self.file, {name: cells[rows] for name, cells in self.columns.items()})

    def numbers(
        self, *, categories: bool = False, holes: bool = False, remedy: str = "impute them"
    ) -> NamedColumns:
        """The columns as a matrix of numbers with names.

        Parameters
        ----------
        categories : bool, default=False
            Whether a column of text becomes a column of 0 and 1 for every text but the first in
            alphabetical order; else it is refused.
        holes : bool, default=False
            Whether missing cells become NaN; else they are refused.
        remedy : str, default="impute them"
            What else to do about missing cells, for the error.

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
                if not categories:
                    raise self._text_in(name, cells) from None
                for text in np.unique(cells)[1:]:
                    found[f"{name}={text}"] = (cells == text).astype(float)
        return NamedColumns.of(np.column_stack(list(found.values())), tuple(found))

    def _missing_in(self, name: str, missing: np.ndarray, remedy: str) -> SourceError:
        return SourceError(
            f"{self.file}: column {name!r} misses {missing.sum()} of {len(missing)} values, first "
            f"in row {missing.argmax() + 1}; leave out the column or these rows, or {remedy}"
        )

    def _text_in(self, name: str, cells: np.ndarray) -> SourceError:
        row = next(i for i, cell in enumerate(cells) if not (is_number(cell) or _is_hole(cell)))
        return SourceError(
            f"{self.file}: expected a number in row {row + 1}, column {name!r}, got "
            f"{str(cells[row])!r}; leave out the column, or name it in --ids if it names the rows"
        )


def _is_hole(cell: str) -> bool:
    """Whether the value of a cell is missing."""
    return is_missing(cell) or cell.strip().lower() == "nan"


def read_table(file: str) -> Table:
    """Read a table with a header, or any matrix, whose columns are then numbered.

    Parameters
    ----------
    file : str
        A ``.csv`` or ``.tsv`` file, or a file of another format with a matrix of numbers.

    Raises
    ------
    SourceError
        If the file cannot be read, or names a column twice.
    """
    cells = cells_of_text(file)
    if cells is None:
        cells = as_block(read_array(file)).dense().matrix.astype(str)
    if all(map(is_number, cells[0])):
        names = numbered_columns(Path(file).stem, cells.shape[1])
        return Table(file, dict(zip(names, cells.T, strict=True)))
    header, rows = [name.strip() for name in cells[0].tolist()], cells[1:]
    if not len(rows):
        raise SourceError(f"{file}: it has no rows under its header")
    for name in header:
        if header.count(name) > 1:
            raise SourceError(f"{file}: two columns have the name {name!r}; rename one")
    return Table(file, dict(zip(header, rows.T, strict=True)))


def matched(tables: Sequence[Table], ids: str) -> list[Table]:
    """The rows of subjects that are in all tables, in the order of the first, without the ids.

    Raises
    ------
    SourceError
        If an id is in a table twice, or no subject is in all of them.
    """
    places = [places_of(table, ids) for table in tables]
    common = [one for one in places[0] if all(one in of_table for of_table in places)]
    if not common:
        raise SourceError(
            f"no value of {ids!r} is in all of {', '.join(table.file for table in tables)}"
        )
    return [
        table.take(np.array([of_table[one] for one in common])).without([ids])
        for table, of_table in zip(tables, places, strict=True)
    ]


def places_of(table: Table, ids: str) -> dict[str, int]:
    """The row of each id."""
    found: dict[str, int] = {}
    for row, one in enumerate(map(str.strip, table.column(ids).tolist())):
        if one in found:
            raise SourceError(
                f"{table.file}: {ids} {one!r} is in rows {found[one] + 1} and {row + 1}; keep one"
            )
        found[one] = row
    return found
