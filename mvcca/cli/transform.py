"""`mvcca transform`: project rows in files and write their scores, block by block."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mvcca.cli.console import show
from mvcca.cli.errors import CommandError, UsageError
from mvcca.cli.inputs import by_name, files_of, read_ids
from mvcca.cli.models import load_model
from mvcca.cli.output import (
    checked_suffix,
    lists_of_rows,
    replacing,
    writable,
    write_arrow,
    write_csv,
    write_npy,
    write_parquet,
)
from mvcca.cli.projection import Projection
from mvcca.cli.running import running
from mvcca.retrieval import retrieval_vectors

_VIEW = "{view}"


def run(options: Namespace) -> None:
    """Run the command."""
    files = by_name(options.views, "--view")
    ids = None if options.ids is None else read_ids(options.ids)
    inputs = [Path(options.model), *files_of(options.views)]
    targets = {
        name: writable(target, inputs) for name, target in _targets(options, list(files)).items()
    }
    model = load_model(options.model)
    project = model.transform
    if options.vectors is not None:
        project = partial(retrieval_vectors, model, role=options.vectors)
    with running(options), ExitStack() as outputs:  # renamed together, after all are written
        projections = [Projection.open(project, name, file) for name, file in files.items()]
        for projection in projections:
            _check_ids(ids, projection)
        for projection in projections:
            target = targets[projection.name]
            _write(projection, ids, target, outputs.enter_context(replacing(target)))
    sizes = {str(targets[one.name]): (len(one), one.width) for one in projections}
    lines = [f"{file}: {rows:,} rows, {width} components" for file, (rows, width) in sizes.items()]
    facts = [{"file": file, "rows": rows, "components": w} for file, (rows, w) in sizes.items()]
    show(options, "\n".join(lines), facts)


def _targets(options: Namespace, names: list[str]) -> dict[str, str]:
    """The file of every view's scores."""
    output = options.output
    suffix = checked_suffix(output, "scores", (".npy", ".parquet", ".arrow", ".csv"))
    if suffix == ".npy" and options.ids is not None:
        raise UsageError("a .npy file holds no ids; write .parquet, .arrow or .csv")
    if len(names) > 1 and _VIEW not in output:
        raise UsageError(
            f"scores of {len(names)} views need one file each: use {_VIEW} in --output, such as "
            f"scores-{_VIEW}{suffix}"
        )
    for name in names:
        if _VIEW in output and (os.sep in name or (os.altsep and os.altsep in name)):
            raise UsageError(f"view {name!r} cannot be part of a file name")
    return {name: output.replace(_VIEW, name) for name in names}


def _check_ids(ids: np.ndarray | None, projection: Projection) -> None:
    if ids is not None and len(ids) != len(projection):
        raise CommandError(
            f"--ids: {len(ids):,} ids for the {len(projection):,} rows of view {projection.name!r}"
        )


def _write(projection: Projection, ids: np.ndarray | None, target: Path, file: BinaryIO) -> None:
    suffix = target.suffix.lower()
    if suffix == ".npy":
        shape = len(projection), projection.width
        write_npy(file, projection.blocks(), shape, projection.dtype)
        return
    tables = _tables(projection.blocks(), ids, in_lists=suffix != ".csv")
    write = {".csv": write_csv, ".parquet": write_parquet, ".arrow": write_arrow}[suffix]
    write(file, tables)


def _tables(
    blocks: Iterator[np.ndarray], ids: np.ndarray | None, in_lists: bool
) -> Iterator[dict[str, Any]]:
    """Tables of ids and of vectors, in one column of lists or a column per component."""
    start = 0
    for block in blocks:
        own = {} if ids is None else {"id": ids[start : start + len(block)]}
        start += len(block)
        if in_lists:
            yield own | {"vector": lists_of_rows(block)}
        else:
            yield own | {f"component{number}": column for number, column in enumerate(block.T)}
