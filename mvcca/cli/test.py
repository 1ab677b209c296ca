"""`mvcca test`: is a correlation of two tables real, how large is it, and what drives it?"""

from __future__ import annotations

import shlex
import warnings
from argparse import Namespace
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

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

_BESIDE = ("confounds", "confounds_y")  # views of variables to remove
_LEAVE_OUT = "Leave out the column or these rows"
_CONFOUNDS = f"{_LEAVE_OUT}: --missing drop, or fill them in: --missing mean"


def run(options: Namespace) -> None:
    """Run the command."""
    beside = {name: file for name in _BESIDE if (file := getattr(options, name))}
    files = [options.first, options.second, *beside.values()]
    report = None if options.report is None else checked_page(options.report, files)
    names = [Path(file).stem for file in files[:2]]
    if names[0] == names[1]:
        names = [f"{names[0]} {number}" for number in (1, 2)]
    names = [f"{name} as a view" if name in beside else name for name in names]
    of_views = dict(zip([*names, *beside], files, strict=True))
    views, tables, rows = _matched(of_views, beside, options)
    n_given, said = max(map(len, tables.values())), []
    if n_given > len(views):
        said = [f"{n_given - len(views)} of {n_given} subjects were left out: not in all files."]
    groups, views = _groups(options, views, tables, rows)
    missing = options.missing
    if missing in MENDS:
        views, kept, mended = without_holes(views, missing, of_views)
        rows = {name: own[kept] for name, own in rows.items()}
        groups = None if groups is None else groups[kept]
        said, missing = [*said, *mended], "error"
    confounds: dict[str, Any] = {
        name: _columns(views, name, tables[name].file) for name in beside if name in views.names
    }
    for name, columns in confounds.items():
        _check(columns, tables[name], rows[name])
    views = views.select(names)
    with configured(options):
        result = study(
            views,
            **confounds,
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
    files: dict[str, str], beside: Collection[str], options: Namespace
) -> tuple[Views, dict[str, FileRows], dict[str, np.ndarray]]:
    """Variables and confounds of the same subjects, their tables, and rows of these by view."""
    tables = opened(files, options, holes=True, confounds=beside)
    tables = {name: table.in_memory() for name, table in tables.items()}
    for name, table in tables.items():
        if table.missing is not None and options.missing == "error" and name not in beside:
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
        return views, tables, dict.fromkeys(files, np.arange(len(views)))
    matrices, common = common_rows(tables)
    n_most = max(map(len, tables.values()))
    if len(common) < n_most:
        note(f"{len(common):,} of {n_most:,} subjects are in all files")
    rows = {n: places_of(own.ids, common) for n, own in tables.items() if own.ids is not None}
    return Views(matrices).with_ids(common), tables, rows


def _columns(views: Views, view: str, file: str) -> dict[str, np.ndarray]:
    """The confounds of a view by name."""
    rows = np.asarray(views.block(view).in_memory().matrix)
    numbered = [f"{Path(file).stem} {j}" for j in range(rows.shape[1])]
    names = getattr(views[view], "columns", None) or numbered
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
    options: Namespace,
    views: Views,
    tables: Mapping[str, FileRows],
    rows: Mapping[str, np.ndarray],
) -> tuple[Any, Views]:
    """The group of each subject, or its outer and inner one; their columns leave the confounds."""
    names, levels = options.groups or [], []
    if len(names) > 2:
        raise UsageError(f"--groups: expected one or two levels, got {', '.join(names)}")
    for name in names:
        level, views = _level(name, options, views, tables, rows)
        levels.append(level)
    return np.column_stack(levels) if len(levels) > 1 else next(iter(levels), None), views


def _level(
    name: str,
    options: Namespace,
    views: Views,
    tables: Mapping[str, FileRows],
    rows: Mapping[str, np.ndarray],
) -> tuple[np.ndarray, Views]:
    """The group of each subject, from a column of the confounds or a file, and the other views."""
    beside = [view for view in _BESIDE if getattr(options, view) and view in views.names]
    for view in beside:
        columns = _columns(views, view, tables[view].file)
        if name not in columns:
            continue
        own = columns.pop(name)
        what = "Name a group for each of them, or leave out these rows"
        _reject_missing(name, own, tables[view], rows[view], what)
        if not columns:
            return _codes(own), views.select([one for one in views.names if one != view])
        rest = NamedColumns.of(np.column_stack(list(columns.values())), tuple(columns))
        return _codes(own), views.replace({**dict(views.items()), view: rest})
    if not Path(name).is_file():
        where = "".join(f" nor a column of {tables[view].file}" for view in beside)
        raise UsageError(f"--groups: {name!r} is no file{where}")
    return _codes(groups_in(name, options, len(views), views.ids)), views


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(groups, return_inverse=True)[1]
