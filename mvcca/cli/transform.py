"""`mvcca transform`: project rows in files and write their scores, block by block."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from mvcca.cli.console import printable
from mvcca.cli.errors import UsageError
from mvcca.cli.inputs import by_name, files_of
from mvcca.cli.models import load_model
from mvcca.cli.output import (
    checked_suffix,
    replacing,
    writable,
    write_csv,
    write_npy,
    write_parquet,
)
from mvcca.cli.projection import Projection
from mvcca.cli.running import running

_VIEW = "{view}"


def run(options: Namespace) -> None:
    """Run the command."""
    files = by_name(options.views, "--view")
    inputs = [Path(options.model), *files_of(options.views)]
    targets = {
        name: writable(target, inputs)
        for name, target in _targets(options.output, list(files)).items()
    }
    model = load_model(options.model)
    with running(options), ExitStack() as outputs:  # renamed together, after all are written
        projections = [Projection.open(model.transform, name, file) for name, file in files.items()]
        for projection in projections:
            target = targets[projection.name]
            _write(projection, target, outputs.enter_context(replacing(target)))
    for projection in projections:
        n_rows, width = len(projection), projection.width
        print(printable(f"{targets[projection.name]}: {n_rows:,} rows, {width} components"))


def _targets(output: str, names: list[str]) -> dict[str, str]:
    """The file of every view's scores."""
    suffix = checked_suffix(output, "scores", (".npy", ".parquet", ".csv"))
    if len(names) > 1 and _VIEW not in output:
        raise UsageError(
            f"scores of {len(names)} views need one file each: use {_VIEW} in --output, such as "
            f"scores-{_VIEW}{suffix}"
        )
    for name in names:
        if _VIEW in output and (os.sep in name or (os.altsep and os.altsep in name)):
            raise UsageError(f"view {name!r} cannot be part of a file name")
    return {name: output.replace(_VIEW, name) for name in names}


def _write(projection: Projection, target: Path, file: BinaryIO) -> None:
    if target.suffix.lower() == ".npy":
        shape = len(projection), projection.width
        write_npy(file, projection.blocks(), shape, projection.dtype)
        return
    columns = [f"component{number}" for number in range(projection.width)]
    tables = (dict(zip(columns, block.T, strict=True)) for block in projection.blocks())
    write = write_csv if target.suffix.lower() == ".csv" else write_parquet
    write(file, tables)
