"""Tables of confounds as numbers: categories become indicators, with a reference level.

Python functions, estimators and the command line all encode here, so that one table gives the same
numbers through every door.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from numbers import Number
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.checks import column_labels, few, reject_masks, repeated
from mvcca.blocks.places import row_in_words
from mvcca.blocks.sources import NamedColumns
from mvcca.machine.warnings import warn
from mvcca.views import Views
from mvcca.views.validation import numbered_columns

Coding = dict[str, list[Any] | None]  # levels of each column, the reference first; None: numbers

_MANY = 0.2  # levels per row above which a column looks like families, and above _FEWEST of them
_FEWEST = 5
_MOST = 0.5  # levels per row above which it looks like ids
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
)
PRODUCTS = "products of all pairs"  # of confounds
_NAME_OF_IDS = re.compile(
    r"(^|[_ .-])(ids?|index|key|subject|participant|family|fam|pedigree)$|[a-z]I[dD]$",
    re.IGNORECASE,
)


def coded(table: Any, coding: Coding | None = None, *, name: str = "confounds") -> Any:
    """Confounds as a matrix of numbers; what holds no text, categories or dates is returned as is.

    Parameters
    ----------
    table : matrix, DataFrame, mapping of names to columns, Series or sequence
        Columns of text and categories become a column of 0 and 1 for every level but the reference.
    coding : dict, optional
        That of other rows, from `coding_of`; by default that of these rows.
    name : str
        What the table is called in errors.

    Raises
    ------
    ValueError
        If a column holds dates, misses a category, names rows, holds a level that `coding` lacks,
        or holds numbers beside a few texts.
    """
    columns = _columns(table, name)
    if columns is None or coding == {}:
        return table
    coding = coding_of(table, name=name) if coding is None else coding
    if all(levels is None for levels in coding.values()) and not _is_loose(table):
        return table
    found: dict[str, np.ndarray] = {}
    for column, levels in coding.items():
        what = _what(name, column)
        if column not in columns:
            raise ValueError(f"{what} is missing; it was there before.")
        cells, _ = columns[column]
        if levels is None:
            found[column] = _as_numbers(what, cells)
        else:
            found |= _indicators(what, column, cells, levels)
    if not found:
        raise ValueError(f"{name} do not vary: all their rows are equal. Omit them.")
    return NamedColumns.of(np.column_stack([*found.values()]), tuple(found))


def coding_of(
    table: Any, *, name: str = "confounds", place: Callable[[int], str] = row_in_words
) -> Coding:
    """Levels of the columns of a table, the reference first, and None for columns of numbers.

    The reference is the first level in the order of a category type, otherwise alphabetically. It
    warns of columns that look like ids or families. Errors call a row as `place` does.
    """
    coding: Coding = {}
    for column, (cells, order) in (_columns(table, name) or {}).items():
        what = _what(name, column)
        _refuse_dates(what, cells, is_category=order is not None)
        if order is None and _is_numeric(what, cells, place):
            coding[column] = None
            if _NAME_OF_IDS.search(column):
                _warn_of_numbers(what, _as_numbers(what, cells))
            continue
        texts = _texts(what, cells, place)
        known = set(texts)
        every = sorted(known) if order is None else [str(one).strip() for one in order]
        coding[column] = levels = [one for one in every if one in known]
        _check_levels(what, levels, len(texts))
    return coding


def _what(name: str, column: str) -> str:
    """A column of a table in errors."""
    return f"{name}: column {column!r}"


def coded_view(views: Views, name: str, coding: Coding | None = None) -> tuple[Views, Coding]:
    """Views in which one, of confounds, holds numbers; and its coding, by default that of its rows.

    Rows that are encoded already, or that are read from a file, stay as they are.
    """
    block = views.block(name)
    if block.is_lazy or block.is_sparse or block.on_device:
        return views, {} if coding is None else coding
    what = f"View {name!r}"
    coding = coding_of(block.matrix, name=what) if coding is None else coding
    matrix = coded(block.matrix, coding, name=what)
    if matrix is block.matrix:
        return views, coding
    blocks = {**views.blocks, name: as_block(matrix)}
    return Views.of(blocks, views.seen, views.ids, views.removed), coding


def coding_in_words(table: Any, coding: Coding, *, degree: int | str = 1) -> tuple[str, ...]:
    """How each column was encoded, such as "site: 4 columns, reference A", "age and its square".

    The degree is that of `mvcca.compose.Deconfound`.
    """
    squares = degree != 1
    if not coding:
        width = np.shape(table)[1] if len(np.shape(table)) == 2 else 1
        what = "a column" if width == 1 else f"{width} columns"
        own = "its square" if width == 1 else "their squares"
        words = [f"{what} of numbers{f' and {own}' if squares else ''}"]
        return (*words, *[PRODUCTS] * (degree == 2 and width > 1))
    columns, found = _columns(table, "confounds") or {}, []
    for column, levels in coding.items():
        if levels is None:
            has_square = squares and len({*map(_plain, columns[column][0])}) > 2
            found.append(f"{column} and its square" if has_square else column)
        elif len(levels) == 1:
            found.append(f"{column}: left out, all rows are {levels[0]}")
        else:
            n = len(levels) - 1
            found.append(f"{column}: {n} column{'s' * (n > 1)}, reference {levels[0]}")
    return (*found, *[PRODUCTS] * (degree == 2 and len(coding) > 1))


# ---- columns of containers ----------------------------------------------------------------------

_Columns = dict[str, tuple[np.ndarray, list[Any] | None]]  # cells, and the order of a category type


def _columns(table: Any, name: str) -> _Columns | None:
    """Columns by name; None for a matrix of numbers without names of columns."""
    reject_masks(table)
    columns: Iterable[tuple[Any, Any]]
    if isinstance(table, Mapping):
        columns = table.items()
    elif hasattr(table, "to_frame") and getattr(table, "ndim", 1) == 1:  # a Series
        columns = [(getattr(table, "name", None) or name, table)]
    elif hasattr(table, "dtypes") and (labels := column_labels(table)) is not None:
        if twice := repeated(labels):
            raise ValueError(f"{name}: two columns have the name {twice[0]!r}; rename one.")
        columns = zip(labels, (table[key] for key in table.columns), strict=True)
    else:
        kind = getattr(table, "dtype", np.dtype(object if isinstance(table, list | tuple) else "f"))
        if hasattr(table, "read") or getattr(kind, "kind", "f") not in "OUSMm":
            return None
        cells = np.asarray(table)
        cells = cells[:, None] if cells.ndim == 1 else cells
        if cells.ndim != 2 or cells.dtype.kind not in "OUSMm":
            return None
        of_one = [name] if cells.shape[1] == 1 else numbered_columns(name, cells.shape[1])
        columns = zip(column_labels(table) or of_one, cells.T, strict=True)
    return {str(key): _column(cells) for key, cells in columns}


def _column(cells: Any) -> tuple[np.ndarray, list[Any] | None]:
    kind = getattr(cells, "dtype", None)
    is_pandas = hasattr(cells, "iloc")  # categories of polars are in order of texts
    order = getattr(kind, "categories", None) if is_pandas else None
    array = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
    if getattr(kind, "kind", "") == "M":  # dates with a time zone are objects
        array = array.astype("datetime64[ns]") if array.dtype.kind != "O" else array
    if type(kind).__name__ in ("Categorical", "Enum"):  # of polars
        return array.astype(object), sorted({one for one in array if one is not None})
    return np.asarray(array), None if order is None else list(order)


def _is_loose(table: Any) -> bool:
    """Whether a container of numbers must be converted, since no matrix is made of it by itself."""
    kind = getattr(getattr(table, "dtype", None), "kind", "f")
    return isinstance(table, Mapping) or (kind in "USO" and not hasattr(table, "dtypes"))


# ---- cells --------------------------------------------------------------------------------------


def _plain(cell: Any) -> Any:
    """A cell without trailing whitespace, and None if it is missing."""
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        return str(cell).strip() or None
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    return None if isinstance(cell, float) and cell != cell else cell


def _is_text_of_number(cell: str) -> bool:
    with suppress(ValueError):
        return float(cell) is not None
    return False


def _is_numeric(what: str, cells: np.ndarray, place: Callable[[int], str]) -> bool:
    """Whether a column holds numbers; refuse it if most cells are numbers and some are not."""
    if cells.dtype.kind not in "OUS":
        return True
    known = [(row, one) for row, cell in enumerate(cells) if (one := _plain(cell)) is not None]
    texts = [(row, one) for row, one in known if isinstance(one, str)]
    if not texts:
        return all(isinstance(one, Number | np.bool_) for _, one in known)
    words = [(row, one) for row, one in texts if not _is_text_of_number(one)]
    only_texts = cells.dtype.kind in "US"  # a container of texts, such as a file
    if not words and not only_texts and len(texts) == len(known):
        raise ValueError(
            f"{what} holds numbers as text. Convert it with pandas.to_numeric, "
            "or with astype('category') if it names categories."
        )
    if words and len(words) < len(known) / 2:
        row, one = words[0]
        raise ValueError(
            f"{what} holds numbers, but {one!r} in {place(row)}. Expected only numbers, or a "
            "category type."
        )
    return not words


def _as_numbers(what: str, cells: np.ndarray) -> np.ndarray:
    plain = cells if cells.dtype.kind in "biuf" else [_plain(one) for one in cells]
    try:
        return np.array([np.nan if one is None else float(one) for one in plain])
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold numbers, as before.") from None


def _texts(what: str, cells: np.ndarray, place: Callable[[int], str] = row_in_words) -> list[str]:
    """Cells of a category as texts; refuse missing ones."""
    plain = [_plain(one) for one in cells]
    if missing := [row for row, one in enumerate(plain) if one is None]:
        raise ValueError(
            f"{what} misses {len(missing)} of {len(plain)} values, first in {place(missing[0])}. "
            "Leave out the column or these rows, or name a level for them."
        )
    return list(map(str, plain))


def _indicators(
    what: str, column: str, cells: np.ndarray, levels: Sequence[Any]
) -> dict[str, np.ndarray]:
    """Columns of 0 and 1, by name, of all levels but the first."""
    texts = _texts(what, cells)
    if unknown := sorted({*texts} - {*map(str, levels)}):
        raise ValueError(
            f"{what} has levels that were not fitted: {few(unknown)}. The fitted ones are "
            f"{few(levels)}."
        )
    return {
        f"{column}={level}": np.array([one == str(level) for one in texts], dtype=float)
        for level in levels[1:]
    }


# ---- columns that are no confounds --------------------------------------------------------------


def _refuse_dates(what: str, cells: np.ndarray, *, is_category: bool) -> None:
    are_dates = cells.dtype.kind in "Mm"
    if cells.dtype.kind in "OUS" and (
        known := [one for one in map(_plain, cells) if one is not None]
    ):
        are_dates = (
            all(isinstance(one, date | time | timedelta | np.datetime64) for one in known)
            or all(hasattr(one, "strftime") for one in known)
            or (not is_category and all(isinstance(x, str) and _DATE.fullmatch(x) for x in known))
        )
    if are_dates:
        raise ValueError(
            f"{what} holds dates or times. Convert it to a number, such as days since the first "
            "one, or leave it out."
        )


def _check_levels(what: str, levels: Sequence[Any], n_rows: int) -> None:
    """Refuse a column that names rows, and warn of one that may name families."""
    if len(levels) > max(2, _MOST * n_rows):
        raise ValueError(
            f"{what} has {len(levels)} levels in {n_rows} rows, such as {few(levels[:2])}. Leave "
            "it out if it names the rows; if it names families or other groups, pass it as groups."
        )
    if len(levels) > max(_FEWEST, _MANY * n_rows):
        warn(
            f"{what} becomes {len(levels) - 1} columns of 0 and 1 for {n_rows} rows. If it names "
            "families or other groups, pass it as groups in place of a confound."
        )


def _warn_of_numbers(what: str, numbers: np.ndarray) -> None:
    """Warn of whole numbers in a column that is called like ids or families."""
    if (numbers == np.floor(numbers)).all() and len(np.unique(numbers)) > _FEWEST:
        warn(
            f"{what} is used as a number. Leave it out if it names rows; if it names families or "
            "other groups, pass it as groups."
        )
