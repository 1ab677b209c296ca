"""Views in files that name their rows, matched by these ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.blocks import SourceError, as_block, read_identified
from mvcca.blocks.checks import few
from mvcca.machine.warnings import warn
from mvcca.views import Labels, Views
from mvcca.views.files._checks import check_block, check_numbers
from mvcca.views.files._tables import SubjectTable, check_ids, read_table
from mvcca.views.shared_ids import unmatched, why_unmatched

_TABLES = (".csv", ".tsv")


@dataclass(frozen=True, eq=False)
class IdentifiedRows:
    """The rows of a file and what identifies them.

    Attributes
    ----------
    file : str
        Their file, for error messages.
    matrix : RowSource or ndarray
        The rows; texts are a column of strings.
    places : dict of str to int
        The row of each id, in the order of the rows.
    """

    file: str
    matrix: Any
    places: dict[str, int]

    @property
    def ids(self) -> np.ndarray:
        """One per row."""
        return np.array(list(self.places))

    def take(self, ids: Sequence[str]) -> Any:
        """Rows of some ids, in this order; not read if they are in a file."""
        return as_block(self.matrix).take(np.array([self.places[one] for one in ids])).matrix


def open_identified(name: str, file: str, ids: str, *, holes: bool = False) -> IdentifiedRows:
    """Open the rows of a view, to be read in blocks if possible, with their ids.

    Parameters
    ----------
    name : str
        The view, for error messages.
    file : str
        See `mvcca.blocks.read_identified`.
    ids : str
        Name of the column or the array of ids. A folder of texts needs none.
    holes : bool, default=False
        Whether missing numbers of a ``.csv`` or ``.tsv`` file become NaN; else they are refused.

    Raises
    ------
    SourceError
        If the file cannot be read, holds no such ids, misses an id or has one twice, or holds text
        in place of numbers.
    """
    found = read_identified(file, ids)
    matrix = found.matrix
    if matrix is None:  # of a text file: the table tells what it holds
        table = read_table(file).by(ids)
        texts = table.texts()
        matrix = table.numbers(holes=holes) if texts is None else texts
    places = check_ids(file, ids, found.ids, found.lines)
    block = as_block(matrix)
    if not block.holds_texts():
        check_block(name, file, block, ids=found.ids, lines=found.lines, holes=holes)
    return IdentifiedRows(file, matrix, places)


def open_all(
    files: Mapping[str, str], ids: str, *, holes: bool = False
) -> dict[str, IdentifiedRows]:
    """Open the rows of several views with their ids; see `open_identified`.

    Raises
    ------
    SourceError
        As `open_identified`. If a file has no such column, but a header of the ids of another
        file, the error says that it is transposed.
    """
    return _identified(
        files,
        lambda name, file: open_identified(name, file, ids, holes=holes),
        lambda file: read_table(file).columns if file.lower().endswith(_TABLES) else (),
    )


def read_matched_views(
    files: Mapping[str, str],
    ids: str,
    labels: str | None = None,
    *,
    check_finite: bool = False,
    holes: bool = False,
) -> tuple[Views, Labels | None]:
    """Open views in files that name their rows, and match these.

    Parameters
    ----------
    files : mapping of str to str
        The file of each view, see `mvcca.blocks.read_identified`.
    ids : str
        Name of the column or the array of ids in all files.
    labels : str, optional
        A table with the ids and a column of classes, or columns of numbers.
    check_finite : bool, default=False
        Read all matrices once to check their numbers now.
    holes : bool, default=False
        Whether missing numbers of a ``.csv`` or ``.tsv`` file become NaN; else they are refused.

    Returns
    -------
    views : Views
        The objects of all files, in order of first occurrence; an object that is missing from a
        file is not seen in that view. ``views.ids`` are their ids.
    y : Labels or None

    Raises
    ------
    SourceError
        If a file cannot be read, has no such ids or one twice, or if views share no id.
    """
    opened = open_all(files, ids, holes=holes)
    if check_finite:
        for name, rows in opened.items():
            check_numbers(name, rows.file, as_block(rows.matrix), rows.ids)
    views = paired(opened)
    if not (views.seen.sum(axis=1) > 1).any():
        raise SourceError(_nothing_shared(opened.values(), "two", ids))
    _warn_of_unmatched(opened)
    assert views.ids is not None
    return views, None if labels is None else _labels_of_ids(labels, ids, views.ids.tolist())


def paired(rows: Mapping[str, IdentifiedRows]) -> Views:
    """Views of the objects of all files, in order of first occurrence, with their ids."""
    every = list(dict.fromkeys(one for own in rows.values() for one in own.places))
    index = np.array([[own.places.get(one, -1) for own in rows.values()] for one in every])
    return Views({name: own.matrix for name, own in rows.items()}, index).with_ids(every)


def common_rows(
    rows: Mapping[str, IdentifiedRows], ids: str, counted: Collection[str] | None = None
) -> tuple[dict[str, Any], np.ndarray]:
    """Matrices of the objects that are in all files, in the order of the first; and their ids.

    It warns if more than a fifth of the rows of a view are left over: of any view, or of those
    `counted` if others are meant to hold more.

    Raises
    ------
    SourceError
        If no id is in all files.
    """
    first, *others = rows.values()
    common = [one for one in first.places if all(one in other.places for other in others)]
    if not common:
        raise SourceError(_nothing_shared(rows.values(), "all", ids))
    if not others:
        return {name: own.matrix for name, own in rows.items()}, first.ids
    _warn_of_unmatched(rows, counted=counted, joint=True)
    return {name: own.take(common) for name, own in rows.items()}, np.array(common)


def matched(tables: Sequence[SubjectTable], ids: str) -> list[SubjectTable]:
    """The rows of subjects that are in all tables, in the order of the first, without the ids.

    Raises
    ------
    SourceError
        If an id is in a table twice, or no subject is in all of them.
    """
    every = {f"{number}: {table.file}": table for number, table in enumerate(tables, 1)}
    named = [*_identified(every, lambda _, table: table.by(ids), _columns).values()]
    places = [IdentifiedRows(table.file, table, table.places) for table in named]
    common = [one for one in places[0].places if all(one in own.places for own in places)]
    if not common:
        raise SourceError(_nothing_shared(places, "all", ids))
    _warn_of_unmatched({own.file: own for own in places}, joint=True)
    return [
        table.take(np.array([own.places[one] for one in common]))
        for table, own in zip(named, places, strict=True)
    ]


def values_of_ids(file: str, ids: str, wanted: Sequence[str], what: str) -> SubjectTable:
    """The other columns of a table, for some ids.

    Raises
    ------
    SourceError
        If one of them is not in the table; `what` says what it lacks.
    """
    table = read_table(file).by(ids)
    places = table.places
    if missing := [one for one in wanted if one not in places]:
        cause = why_unmatched({"the views": wanted, file: list(places)})
        raise SourceError(
            f"{file}: {len(missing):,} of {len(wanted):,} objects have no {what}, such as "
            f"{missing[0]!r}; add them to the file, or leave out these rows of the views"
            + (f". {cause}" if cause else "")
        )
    return table.take(np.array([places[one] for one in wanted]))


def _labels_of_ids(file: str, ids: str, wanted: Sequence[str]) -> Labels:
    """Labels of objects, from a table of ids and classes or numbers."""
    table = values_of_ids(file, ids, wanted, "label")
    try:
        if len(table.columns) == 1:
            return Labels.of(next(iter(table.columns.values())))
        return Labels.of(np.asarray(table.numbers()))
    except SourceError:
        raise
    except ValueError as error:
        raise SourceError(f"{file}: {error}") from error


def _identified(
    sources: Mapping[str, Any], named: Callable[[str, Any], Any], header: Callable[[Any], Any]
) -> dict[str, Any]:
    """Sources of rows with their ids; one without such a column may be transposed."""
    found: dict[str, Any] = {}
    refused: dict[str, SourceError] = {}
    for name, source in sources.items():
        try:
            found[name] = named(name, source)
        except SourceError as error:
            refused[name] = error
    for name, reason in refused.items():
        known = {other: rows.places for other, rows in found.items()}
        columns: Any = ()
        with suppress(SourceError):
            columns = header(sources[name])
        cause = why_unmatched(known, {name: columns})
        raise SourceError(f"{reason}. {cause}") if cause else reason
    return found


def _nothing_shared(rows: Iterable[IdentifiedRows], of: str, ids: str) -> str:
    """Error message, with the first ids of each file, which show how they differ."""
    rows = list(rows)
    firsts = ", ".join(f"{own.file} has {few(list(own.places)[:2])}" for own in rows)
    cause = why_unmatched(
        {own.file: own.places for own in rows}, {own.file: _columns(own.matrix) for own in rows}
    )
    return f"no value of {ids!r} is in {of} of the files: {firsts}; ids are compared as text" + (
        f". {cause}" if cause else ""
    )


def _warn_of_unmatched(rows: Mapping[str, IdentifiedRows], **options: Any) -> None:
    """Warn if many rows are left over, or if ids would match more in another spelling."""
    headers = {name: _columns(own.matrix) for name, own in rows.items()}
    if message := unmatched({name: own.places for name, own in rows.items()}, headers, **options):
        warn(message)


def _columns(matrix: Any) -> Any:
    """Names of columns, of a matrix or a table that has them."""
    return getattr(matrix, "columns", None) or ()
