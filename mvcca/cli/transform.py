"""`mvcca transform`: project rows in files and write their scores, block by block."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from mvcca.cli.console import show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import (
    ROWS_IN,
    by_name,
    checked_output,
    configured,
    confounds_of,
    load_model,
    warn_of_ids,
)
from mvcca.cli.model_files import model_file
from mvcca.cli.reading import opened, reading_of, rows_together, telling
from mvcca.cli.signatures import chosen
from mvcca.machine.archive import kind_of
from mvcca.machine.replacing import replacing
from mvcca.machine.written_files import check_format
from mvcca.statistics.passes import ProjectedRows
from mvcca.views.files import read_ids

_VIEW = "{view}"


def run(options: Namespace) -> None:
    """Run the command."""
    given = chosen(options).values()
    if options.role is None and (options.weighting != "auto" or any(given)):
        raise UsageError(
            "--weighting, --query-view, --target and --similarity are those of --vectors"
        )
    files = by_name(options.views, "--view")
    inputs = [options.model, *files.values(), *([options.ids] if options.ids else [])]
    project, confounds = _projection(options)
    scored = [name for name in files if name not in confounds]
    if not scored:
        raise UsageError(f"--view {confounds[0]}: confounds have no scores; name another view, too")
    names = _targets(options, scored)
    targets = {view: checked_output(name, inputs) for view, name in names.items()}
    with configured(options), ExitStack() as outputs:  # renamed together, after all are written
        tables = opened(files, options, confounds=confounds)
        projected: dict[str, ProjectedRows] = {}
        ids: dict[str, np.ndarray | None] = {}
        for name in scored:
            beside = {one: tables[one] for one in (name, *confounds) if one in tables}
            matrices, ids[name] = rows_together(beside, options)
            projected[name] = ProjectedRows(project, matrices, files[name])
        if options.ids is not None:
            ids = _ids_in(options, projected)
        for name, rows in projected.items():
            file = outputs.enter_context(replacing(targets[name]))
            warn_of_ids(targets[name], ids[name])
            rows.write(file, targets[name].suffix.lower(), ids[name], tables[name].id_name)
    facts = [
        {
            "file": str(targets[name]),
            "rows": rows.shape[0],
            "components": rows.shape[1],
            "read": tables[name].took,
        }
        for name, rows in projected.items()
    ]
    lines = ["{file}: {rows:,} rows, {components} components".format(**one) for one in facts]
    show(options, "\n".join(lines), facts)


def _ids_in(
    options: Namespace, projected: dict[str, ProjectedRows]
) -> dict[str, np.ndarray | None]:
    """The ids in a file, which are those of every view."""
    n_rows = len(next(iter(projected.values())))
    with telling(options) as say:
        ids = read_ids(options.ids, reading_of(options, "ids"), n_rows=n_rows, say=say)
    for name, rows in projected.items():
        if len(ids) != len(rows):
            raise CommandError(
                f"--ids: {len(ids):,} ids for the {len(rows):,} rows of view {name!r}"
            )
    return dict.fromkeys(projected, ids)


def _projection(options: Namespace) -> tuple[Callable[[Any], Any], list[str]]:
    """What maps rows of views by the model or the migration in the file; its confounds."""
    if options.role is None and kind_of(model_file(options.model)) == "migration":
        from mvcca.interop.migration import Migration  # without scikit-learn, which takes a second

        return Migration.load(options.model).transform, []
    from mvcca.retrieval import retrieval_vectors

    model = load_model(options.model)
    if options.role is None:
        found: Callable[[Any], Any] = getattr(model, "project", None) or model.transform
        return found, confounds_of(model)
    vectors = partial(
        retrieval_vectors,
        model,
        role=options.role,
        weighting=options.weighting,
        **chosen(options),
    )
    return vectors, confounds_of(model)


def _targets(options: Namespace, names: list[str]) -> dict[str, str]:
    """The file of every view's scores."""
    output = options.output
    suffix = check_format(output, "scores", ROWS_IN)
    if options.id is not None and options.ids is not None:
        raise UsageError("--id names the rows already; omit --ids")
    if len(names) > 1 and _VIEW not in output:
        raise UsageError(
            f"scores of {len(names)} views need one file each: use {_VIEW} in --output, such as "
            f"scores-{_VIEW}{suffix}"
        )
    for name in names:
        if _VIEW in output and (os.sep in name or (os.altsep and os.altsep in name)):
            raise UsageError(f"view {name!r} cannot be part of a file name")
    return {name: output.replace(_VIEW, name) for name in names}
