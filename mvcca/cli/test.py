"""`mvcca test`: is a correlation of two tables real, how large is it, and what drives it?"""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.sources import FileRows, NamedColumns, is_missing, read_cells
from mvcca.cli.console import note, show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import checked_page, configured, groups_of_ids
from mvcca.cli.missing import MENDS, without_holes
from mvcca.cli.reading import opened, reading_of, telling
from mvcca.cli.signatures import chosen
from mvcca.inspection import study
from mvcca.views import Views
from mvcca.views.coding import coding_of
from mvcca.views.files import (
    common_rows,
    identified,
    in_order,
    places_of,
    read_ids,
    with_agreeing_ids,
)

_BESIDE = ("confounds", "confounds_y")
_TABLES = (".csv", ".tsv", ".parquet", ".arrow")
_LEAVE_OUT = "Leave out the column or these rows"
_CONFOUNDS = f"{_LEAVE_OUT}: --missing drop, or fill them in: --missing mean"


def run(options: Namespace) -> None:
    """Run the command."""
    beside = {name: getattr(options, name) for name in _BESIDE if getattr(options, name)}
    files = [options.first, options.second, *beside.values()]
    report = None if options.report is None else checked_page(options.report, files)
    names = [Path(file).stem for file in files]
    if names[0] == names[1]:
        names[:2] = [f"{names[0]} {number}" for number in (1, 2)]
    views, ids, cells, n_given = _matched(
        dict(zip(names, files[:2], strict=False)), beside, options
    )
    groups = _groups(options, cells, ids, len(views))
    said = []
    if n_given > len(views):
        said = [f"{n_given - len(views)} of {n_given} subjects were left out: not in all files."]
    missing = options.missing
    if missing in MENDS:
        of_views = dict(zip(views.names, files[:2], strict=True))
        for name in [*cells] or [""]:
            views, rest, kept, mended = without_holes(views, cells.get(name), missing, of_views)
            cells = {other: own.take(kept) for other, own in cells.items()}
            cells |= {} if rest is None else {name: rest}
            groups = None if groups is None else groups[kept]
            said = [*said, *mended]
        missing = "error"
    with configured(options):
        result = study(
            views,
            **{name: _checked(own) for name, own in cells.items()},
            groups=groups,
            missing=missing,
            **chosen(options),
        )
    result = replace(result, left_out=tuple(said))
    show(options, str(result), result.as_dict())
    if report is not None:
        result.save_page(report, command=f"mvcca {shlex.join(options.arguments)}")
        note(f"report: {report}")


def _matched(
    files: dict[str, str], beside: dict[str, str], options: Namespace
) -> tuple[Views, np.ndarray | None, dict[str, FileRows], int]:
    """Variables, ids and confounds of the same subjects, and the rows of the longest file."""
    tables = opened(files, options, holes=True)
    tables = {name: _named_in_memory(table) for name, table in tables.items()}
    for table in tables.values():
        if table.missing is not None and options.missing == "error":
            raise CommandError(
                f"{table.file}: {table.missing}. {_LEAVE_OUT}: --missing drop, or keep them with "
                "--missing em"
            )
    cells = {}
    for name, file in beside.items():
        with telling(options) as say:
            cells[name] = read_cells(file, reading_of(options, name))
            say(cells[name].took)
    if options.id is None:
        heights = {table.file: table.matrix.shape[0] for table in tables.values()}
        heights |= {own.file: len(own) for own in cells.values()}
        if len(set(heights.values())) > 1:
            found = ", ".join(f"{file} {height:,}" for file, height in heights.items())
            raise CommandError(
                f"files must have the same subjects in the same order, got rows: {found}. Name the "
                "column that identifies them with --id"
            )
        views = in_order(tables)
        return (
            views,
            views.ids,
            {name: own.without([""]) for name, own in cells.items()},
            len(views),
        )
    matched: dict[str, FileRows] = dict(tables)
    for name, own in cells.items():
        cells[name] = own = identified(own, reading_of(options, name))
        rows = np.arange(len(own), dtype=float)[:, None]
        matched[own.file] = FileRows(own.file, rows, own.ids)
        if how := reading_of(options, name).match_ids:
            matched = with_agreeing_ids(matched, how)
    cells = {name: replace(own, ids=matched[own.file].ids) for name, own in cells.items()}
    matrices, common = common_rows(matched)
    n_most = max(table.matrix.shape[0] for table in matched.values())
    if len(common) < n_most:
        note(f"{len(common):,} of {n_most:,} subjects are in all files")
    for name, own in cells.items():
        assert own.ids is not None
        cells[name] = own.take(places_of(own.ids, common))
    return Views({name: matrices[name] for name in tables}), common, cells, n_most


def _named_in_memory(table: FileRows) -> FileRows:
    """A table in memory, with the names of its columns."""
    block = as_block(table.matrix)
    if not block.is_lazy:
        return table
    matrix = block.in_memory().matrix
    named = matrix if table.columns is None else NamedColumns.of(matrix, table.columns)
    return replace(table, matrix=named)


def _checked(cells: FileRows) -> Any:
    """Confounds without missing values; errors name the file and the line."""
    for name in cells.cells:
        _reject_missing(cells, name, _CONFOUNDS)
    with warnings.catch_warnings(action="ignore"):  # of ids and families, as the test warns
        coding_of(cells.cells, name=cells.file, place=cells.row_in_words)
    return cells.cells


def _reject_missing(cells: FileRows, name: str, remedy: str) -> None:
    missing = np.array([is_missing(cell) for cell in cells.cells[name]])
    if missing.any():
        raise CommandError(
            f"{cells.file}: column {name!r} misses {missing.sum()} of {len(missing)} values, "
            f"first in {cells.row_in_words(int(missing.argmax()))}. {remedy}"
        )


def _groups(
    options: Namespace, cells: dict[str, FileRows], ids: np.ndarray | None, n_rows: int
) -> Any:
    """The group of each subject, or its outer and inner one; their columns leave the confounds."""
    if options.groups is None:
        return None
    if len(options.groups) > 2:
        raise UsageError(f"--groups: expected one or two levels, got {', '.join(options.groups)}")
    levels = [_level(name, options, cells, ids, n_rows) for name in options.groups]
    return levels[0] if len(levels) == 1 else np.column_stack(levels)


def _level(
    name: str,
    options: Namespace,
    cells: dict[str, FileRows],
    ids: np.ndarray | None,
    n_rows: int,
) -> np.ndarray:
    """The group of each subject, from a column of the confounds or a file."""
    for where, own in [*cells.items()]:
        if name in own.cells:
            _reject_missing(own, name, "Name a group for each of them, or leave out these rows")
            cells[where] = own.without([name])
            if not cells[where].cells:
                del cells[where]
            return _codes(own.cells[name])
    if not Path(name).is_file():
        where = "".join(f" nor a column of {own.file}" for own in cells.values())
        raise UsageError(f"--groups: {name!r} is no file{where}")
    if options.id is not None and Path(name).suffix.lower() in _TABLES:
        return _codes(groups_of_ids(name, reading_of(options, "groups"), ids))
    groups = read_ids(name, n_rows)
    if len(groups) != n_rows:
        raise CommandError(f"{name}: {len(groups):,} groups for {n_rows:,} subjects")
    return _codes(groups)


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(groups, return_inverse=True)[1]
