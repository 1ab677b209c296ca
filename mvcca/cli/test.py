"""`mvcca test`: is a correlation of two tables real, how large is it, and what drives it?"""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks.sources import NamedColumns
from mvcca.cli.console import note, show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import checked_output, configured, groups_of_ids
from mvcca.cli.signatures import chosen
from mvcca.inspection import study
from mvcca.views.files import SubjectTable, matched, read_ids, read_table

_TABLES = (".csv", ".tsv", ".parquet", ".arrow")
_LEAVE_OUT = "Leave out the column or these rows"
_CONFOUNDS = f"{_LEAVE_OUT}, or impute them"


def run(options: Namespace) -> None:
    """Run the command."""
    files = [file for file in (options.first, options.second, options.confounds) if file]
    report = None if options.report is None else checked_output(options.report, files)
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"--report: expected a name ending in .html, got {options.report}")
    given = list(map(read_table, files))
    tables = _matched(given, options)
    first, second, *confounds = tables
    groups, rest = _groups(options, confounds[0] if confounds else None, first)
    names = [Path(file).stem for file in files]
    if names[0] == names[1]:
        names[:2] = [f"{names[0]} {number}" for number in (1, 2)]
    holes = options.missing != "error"
    views = dict(zip(names, (_numbers(table, holes) for table in (first, second)), strict=False))
    with configured(options):
        result = study(
            views,
            confounds=None if rest is None else rest.confounds(_CONFOUNDS),
            groups=groups,
            **chosen(options),
        )
    if (n_given := max(map(len, given))) > result.n_rows:
        lost = f"{n_given - result.n_rows} of {n_given} subjects were left out: not in all files."
        result = replace(result, left_out=(lost,))
    show(options, str(result), result.as_dict())
    if report is not None:
        result.save_page(report, command=f"mvcca {shlex.join(options.arguments)}")
        note(f"report: {report}")


def _numbers(table: SubjectTable, holes: bool) -> NamedColumns:
    return table.numbers(holes=holes, remedy=f"{_LEAVE_OUT}, or keep them with --missing em")


def _matched(tables: list[SubjectTable], options: Namespace) -> list[SubjectTable]:
    """Tables with the same subjects in the same order."""
    if options.id is not None:
        heights = max(map(len, tables))
        tables = matched(tables, options.id)
        if len(tables[0]) < heights:
            note(f"{len(tables[0]):,} of {heights:,} subjects are in all files")
        return tables
    if len({len(table) for table in tables}) > 1:
        found = ", ".join(f"{table.file} {len(table):,}" for table in tables)
        raise CommandError(
            f"files must have the same subjects in the same order, got rows: {found}. Name the "
            "column that identifies them with --id"
        )
    return [table.without([""]) if "" in table.columns else table for table in tables]


def _groups(
    options: Namespace, confounds: SubjectTable | None, first: SubjectTable
) -> tuple[Any, SubjectTable | None]:
    """The group of each subject, from a column of the confounds or a file, and the confounds."""
    name, n_rows = options.groups, len(first)
    if name is None:
        return None, confounds
    if confounds is not None and name in confounds.columns:
        groups = confounds.column(name)
        others = [column for column in confounds.columns if column != name]
        return _codes(groups), confounds.without([name]) if others else None
    if not Path(name).is_file():
        where = "" if confounds is None else f" nor a column of {confounds.file}"
        raise UsageError(f"--groups: {name!r} is no file{where}")
    if options.id is not None and Path(name).suffix.lower() in _TABLES:
        return _codes(groups_of_ids(name, options.id, first.ids)), confounds
    groups = read_ids(name, n_rows)
    if len(groups) != n_rows:
        raise CommandError(f"{name}: {len(groups):,} groups for {n_rows:,} subjects")
    return _codes(groups), confounds


def _codes(groups: np.ndarray) -> np.ndarray:
    return np.unique(groups, return_inverse=True)[1]
