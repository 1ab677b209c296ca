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
from mvcca.cli.inputs import checked_page, configured, groups_in
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
    with_agreeing_ids,
)

_LEAVE_OUT = "Leave out the column or these rows"
_CONFOUNDS = f"{_LEAVE_OUT}: --missing drop, or fill them in: --missing mean"


def run(options: Namespace) -> None:
    """Run the command."""
    files = [file for file in (options.first, options.second, options.confounds) if file]
    report = None if options.report is None else checked_page(options.report, files)
    names = [Path(file).stem for file in files]
    if names[0] == names[1]:
        names[:2] = [f"{names[0]} {number}" for number in (1, 2)]
    views, ids, confounds, n_given = _matched(dict(zip(names, files, strict=False)), options)
    groups, rest = _groups(options, confounds, ids, len(views))
    said = []
    if n_given > len(views):
        said = [f"{n_given - len(views)} of {n_given} subjects were left out: not in all files."]
    missing = options.missing
    if missing in MENDS:
        of_views = dict(zip(views.names, files[:2], strict=True))
        views, rest, kept, mended = without_holes(views, rest, missing, of_views)
        groups = None if groups is None else groups[kept]
        said, missing = [*said, *mended], "error"
    with configured(options):
        result = study(
            views,
            confounds=None if rest is None else _checked(rest),
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
    files: dict[str, str], options: Namespace
) -> tuple[Views, np.ndarray | None, FileRows | None, int]:
    """Variables, ids and confounds of the same subjects, and the rows of the longest file."""
    first, second = list(files)[:2]
    tables = opened({name: files[name] for name in (first, second)}, options, holes=True)
    tables = {name: _named_in_memory(table) for name, table in tables.items()}
    for table in tables.values():
        if table.missing is not None and options.missing == "error":
            raise CommandError(
                f"{table.file}: {table.missing}. {_LEAVE_OUT}: --missing drop, or keep them with "
                "--missing em"
            )
    cells = None
    if options.confounds is not None:
        with telling(options) as say:
            cells = read_cells(options.confounds, reading_of(options, "confounds"))
            say(cells.took)
    if options.id is None:
        heights = {table.file: table.matrix.shape[0] for table in tables.values()}
        heights |= {} if cells is None else {cells.file: len(cells)}
        if len(set(heights.values())) > 1:
            found = ", ".join(f"{file} {height:,}" for file, height in heights.items())
            raise CommandError(
                f"files must have the same subjects in the same order, got rows: {found}. Name the "
                "column that identifies them with --id"
            )
        views = in_order(tables)
        return views, views.ids, None if cells is None else cells.without([""]), len(views)
    matched: dict[str, FileRows] = dict(tables)
    if cells is not None:
        cells = identified(cells, reading_of(options, "confounds"))
        rows = np.arange(len(cells), dtype=float)[:, None]
        matched[options.confounds] = FileRows(cells.file, rows, cells.ids)
        if how := reading_of(options, "confounds").match_ids:
            matched = with_agreeing_ids(matched, how)
            cells = replace(cells, ids=matched[options.confounds].ids)
    matrices, common = common_rows(matched)
    n_most = max(table.matrix.shape[0] for table in matched.values())
    if len(common) < n_most:
        note(f"{len(common):,} of {n_most:,} subjects are in all files")
    if cells is not None:
        assert cells.ids is not None
        cells = cells.take(places_of(cells.ids, common))
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
    options: Namespace, confounds: FileRows | None, ids: np.ndarray | None, n_rows: int
) -> tuple[Any, FileRows | None]:
    """The group of each subject, from a column of the confounds or a file, and the confounds."""
    name = options.groups
    if name is None:
        return None, confounds
    if confounds is not None and name in confounds.cells:
        rest = confounds.without([name])
        _reject_missing(confounds, name, "Name a group for each of them, or leave out these rows")
        return _codes(confounds.cells[name]), rest if rest.cells else None
    if not Path(name).is_file():
        where = "" if confounds is None else f" nor a column of {confounds.file}"
        raise UsageError(f"--groups: {name!r} is no file{where}")
    return _codes(groups_in(name, options, n_rows, ids)), confounds


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(groups, return_inverse=True)[1]
