"""`mvcca test`: is a correlation of two tables real, how large is it, and what drives it?"""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.sources import FileRows, NamedColumns
from mvcca.cli.console import note, show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import checked_page, configured, groups_in
from mvcca.cli.missing import MENDS, holes_of, without_holes
from mvcca.cli.reading import opened
from mvcca.cli.signatures import chosen
from mvcca.inspection import study
from mvcca.views import Views
from mvcca.views.coding import coding_of
from mvcca.views.files import common_rows, in_order, places_of

_Z = "confounds"  # their view
_LEAVE_OUT = "Leave out the column or these rows"
_CONFOUNDS = f"{_LEAVE_OUT}: --missing drop, or fill them in: --missing mean"


def run(options: Namespace) -> None:
    """Run the command."""
    files = [file for file in (options.first, options.second, options.confounds) if file]
    report = None if options.report is None else checked_page(options.report, files)
    names = [Path(file).stem for file in files[:2]]
    if names[0] == names[1]:
        names = [f"{names[0]} {number}" for number in (1, 2)]
    names = [f"{name} as a view" if name == _Z and options.confounds else name for name in names]
    of_views = dict(zip([*names, _Z], files, strict=False))
    views, tables, rows = _matched(of_views, options)
    n_given, said = max(map(len, tables.values())), []
    if n_given > len(views):
        said = [f"{n_given - len(views)} of {n_given} subjects were left out: not in all files."]
    groups, views = _groups(options, views, tables.get(_Z), rows)
    missing = options.missing
    if missing in MENDS:
        views, kept, mended = without_holes(views, missing, of_views)
        rows, groups = rows[kept], None if groups is None else groups[kept]
        said, missing = [*said, *mended], "error"
    confounds = _columns(views, tables[_Z].file) if _Z in views.names else None
    if confounds is not None:
        _check(confounds, tables[_Z], rows)
        views = views.select(names)
    with configured(options):
        result = study(
            views,
            confounds=confounds,
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
) -> tuple[Views, dict[str, FileRows], np.ndarray]:
    """Variables and confounds of the same subjects, their tables, and rows of the last of these."""
    tables = opened(files, options, holes=True, confounds=options.confounds and _Z)
    tables = {name: _named_in_memory(table) for name, table in tables.items()}
    for name, table in tables.items():
        if table.missing is not None and options.missing == "error" and name != _Z:
            raise CommandError(
                f"{table.file}: {table.missing}. {_LEAVE_OUT}: --missing drop, or keep them with "
                "--missing em"
            )
    if options.id is None:
        heights = {table.file: len(table) for table in tables.values()}
        if len(set(heights.values())) > 1:
            found = ", ".join(f"{file} {height:,}" for file, height in heights.items())
            raise CommandError(
                f"files must have the same subjects in the same order, got rows: {found}. Name the "
                "column that identifies them with --id"
            )
        views = in_order(tables)
        return views, tables, np.arange(len(views))
    matrices, common = common_rows(tables)
    n_most = max(map(len, tables.values()))
    if len(common) < n_most:
        note(f"{len(common):,} of {n_most:,} subjects are in all files")
    *_, last = tables.values()
    assert last.ids is not None
    return Views(matrices).with_ids(common), tables, places_of(last.ids, common)


def _named_in_memory(table: FileRows) -> FileRows:
    """A table in memory, with the names of its columns."""
    block = as_block(table.matrix)
    if not block.is_lazy:
        return table
    matrix = block.in_memory().matrix
    named = matrix if table.columns is None else NamedColumns.of(matrix, table.columns)
    return replace(table, matrix=named)


def _columns(views: Views, file: str) -> dict[str, np.ndarray]:
    """The confounds by name."""
    rows = np.asarray(views.block(_Z).in_memory().matrix)
    numbered = [f"{Path(file).stem} {j}" for j in range(rows.shape[1])]
    names = getattr(views[_Z], "columns", None) or numbered
    return dict(zip(map(str, names), rows.T, strict=True))


def _check(columns: Mapping[str, np.ndarray], table: FileRows, rows: np.ndarray) -> None:
    """Refuse confounds with missing values; errors name the file and the line."""
    for name, column in columns.items():
        _reject_missing(name, column, table, rows, _CONFOUNDS)
    with warnings.catch_warnings(action="ignore"):  # of ids and families, as the test warns
        coding_of(columns, name=table.file, place=lambda row: table.row_in_words(int(rows[row])))


def _reject_missing(
    name: str, column: np.ndarray, table: FileRows, rows: np.ndarray, remedy: str
) -> None:
    missing = holes_of(column)
    if missing.any():
        raise CommandError(
            f"{table.file}: column {name!r} misses {missing.sum()} of {len(missing)} values, "
            f"first in {table.row_in_words(int(rows[missing.argmax()]))}. {remedy}"
        )


def _groups(
    options: Namespace, views: Views, table: FileRows | None, rows: np.ndarray
) -> tuple[Any, Views]:
    """The group of each subject, from a column of the confounds or a file, and the other views."""
    name = options.groups
    if name is None:
        return None, views
    columns = {} if table is None else _columns(views, table.file)
    if table is not None and name in columns:
        own = columns.pop(name)
        what = "Name a group for each of them, or leave out these rows"
        _reject_missing(name, own, table, rows, what)
        if not columns:
            return _codes(own), views.select([one for one in views.names if one != _Z])
        rest = NamedColumns.of(np.column_stack(list(columns.values())), tuple(columns))
        return _codes(own), views.replace({**dict(views.items()), _Z: rest})
    if not Path(name).is_file():
        where = "" if table is None else f" nor a column of {table.file}"
        raise UsageError(f"--groups: {name!r} is no file{where}")
    return _codes(groups_in(name, options, len(views), views.ids)), views


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(groups, return_inverse=True)[1]
