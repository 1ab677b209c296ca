"""`mvcca migrate`: map stored vectors, or queries, between an old and a new embedding model."""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np

from mvcca.blocks.sources import FileRows
from mvcca.cli.console import note, show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import (
    ROWS_IN,
    checked_output,
    checked_page,
    configured,
    dense_rows,
    warn_of_ids,
)
from mvcca.cli.reading import ids_in_words, opened, reading_of, telling
from mvcca.cli.signatures import chosen
from mvcca.interop.migration import Migration, fit_migration
from mvcca.machine.replacing import replacing
from mvcca.machine.written_files import check_format
from mvcca.statistics.passes import ProjectedRows
from mvcca.views.files import check_same_order, common_rows, read_row_numbers


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "vectors", (*ROWS_IN, ".mvcca"))
    is_map = Path(options.output).suffix == ".mvcca"
    if options.direction == "queries" and not is_map:
        raise CommandError(
            f"{options.output}: --direction queries leaves the rows of {options.old} as they are; "
            "expected a file for the map of queries, ending in .mvcca"
        )
    files = [options.old, options.new, *([options.sample] if options.sample else [])]
    output = checked_output(options.output, files)
    report = None if options.report is None else checked_page(options.report, files)
    names = {"old": options.old, "new": options.new}
    tables = opened(names, options)
    old = tables["old"].matrix
    sample = _sample(options, tables) if options.id is None else _matched(options, tables)
    with configured(options):
        settings = chosen(options)
        settings["learning_curve"] |= report is not None
        found = fit_migration(*sample, stored=old, **settings)
        if report is not None:
            found.save_page(report, command=f"mvcca {shlex.join(options.arguments)}")
            note(f"report: {report}")
        if not options.json:
            print(found, flush=True)
        if not (found.is_useful or options.force):
            raise CommandError(
                f"{output}: not written, since the map finds no more rows than one of permuted "
                f"pairs ({found.found_first:.3f}, {found.found_first_permuted:.3f}); --force "
                "writes it"
            )
        facts: dict[str, Any] = {"file": str(output)}
        if is_map:
            found.save(output)
            summary = f"map of {found.direction}"
        else:
            n_rows, n_features = _write_mapped(found, tables["old"], output)
            facts |= {"rows": n_rows, "features": n_features}
            summary = f"{n_rows:,} rows, {n_features} features"
    show(options, f"{output}: {summary}", facts | found.as_dict())


def _write_mapped(found: Migration, old: FileRows, output: Path) -> tuple[int, int]:
    """Map all stored rows block by block, beside their ids; returns the shape of the result."""
    projected = ProjectedRows(found.transform, {"old": old.matrix}, old.file)
    warn_of_ids(output, old.ids)
    with replacing(output) as file:
        projected.write(file, output.suffix.lower(), old.ids, old.id_name)
    return projected.shape


def _matched(options: Namespace, tables: dict[str, FileRows]) -> list[np.ndarray]:
    """Rows of both models that have the same ids."""
    pairs, common = common_rows(tables, counted=["new"])  # the old model knows all items
    note(
        f"{len(common):,} items by {ids_in_words(options)} are in both files ({options.old} "
        f"{tables['old'].matrix.shape[0]:,}, {options.new} {tables['new'].matrix.shape[0]:,})"
    )
    return [dense_rows(tables[name].file, rows) for name, rows in pairs.items()]


def _sample(options: Namespace, tables: dict[str, FileRows]) -> list[np.ndarray]:
    """Rows of both models that embed the same items."""
    old, new = tables["old"].matrix, tables["new"].matrix
    n_old, n_new = old.shape[0], new.shape[0]
    if options.sample is not None:
        with telling(options) as say:
            reading = reading_of(options, "sample")
            numbers = read_row_numbers(options.sample, n_old, reading, n_numbers=n_new, say=say)
        if len(numbers) != n_new:
            raise CommandError(
                f"{options.sample}: {len(numbers)} row numbers for the {n_new} rows of "
                f"{options.new}"
            )
        old = old[numbers]
    elif n_new != n_old:
        raise CommandError(
            f"{options.new} has {n_new:,} rows and {options.old} {n_old:,}; name the rows of "
            f"{options.old} that belong together with those of {options.new} by --sample FILE, "
            "or the column of ids in both by --id COLUMN"
        )
    else:
        check_same_order([tables["old"], tables["new"]])
    return [dense_rows(options.old, old), dense_rows(options.new, new)]
