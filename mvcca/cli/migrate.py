"""`mvcca migrate`: map stored vectors of an old embedding model to the space of a new one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca._replacing import replacing
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, header_of
from mvcca.files import ProjectedRows, check_format, open_view, read_row_numbers, write_npy
from mvcca.measures import unit_rows
from mvcca.migration import Migration, fit_migration
from mvcca.views import in_memory


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "vectors", (".npy",))
    files = [options.old, options.new, *([options.sample] if options.sample else [])]
    output = checked_output(options.output, files)
    old = open_view("old", options.old, header_of(options))
    with configured(options):
        found = fit_migration(
            *_sample(options, old),
            method=options.method,
            n_components=options.n_components,
            reg=options.reg,
            test_size=options.test_size,
            random_state=options.seed,
        )
        if not options.json:
            print(_report(found), flush=True)

        def migrated(views: Any) -> dict[str, np.ndarray]:
            rows = found.predict(views["old"])
            return {"old": unit_rows(rows) if options.normalize else rows}

        projected = ProjectedRows(migrated, "old", old, options.old)
        with replacing(output) as file:
            write_npy(file, projected.blocks(), projected.shape, projected.dtype)
    n_rows, n_features = projected.shape
    facts = {"file": str(output), "rows": n_rows, "features": n_features, "reg": found.reg}
    figures = {"found_first": found.found_first, "neighbors_kept": found.neighbors_kept}
    show(options, f"{output}: {n_rows:,} rows, {n_features} features", facts | figures)


def _sample(options: Namespace, old: Any) -> list[np.ndarray]:
    """Rows of both models that embed the same items."""
    new = open_view("new", options.new, header_of(options))
    n_old, n_new = old.shape[0], new.shape[0]
    numbers = np.arange(n_new)
    if options.sample is not None:
        numbers = read_row_numbers(options.sample, n_old, n_new, header_of(options))
        if len(numbers) != n_new:
            raise CommandError(
                f"{options.sample}: {len(numbers)} row numbers for the {n_new} rows of "
                f"{options.new}"
            )
    elif n_new > n_old:
        raise CommandError(f"{options.new}: {n_new} rows, but {options.old} has only {n_old}")
    pairs = [in_memory(old[numbers]), in_memory(new)]
    for file, rows in zip((options.old, options.new), pairs, strict=True):
        if issparse(rows):
            raise CommandError(f"{file}: expected dense rows, got sparse ones")
    return pairs


def _report(found: Migration) -> str:
    name = found.method if found.reg is None else f"{found.method}, reg={found.reg:g}"
    k = min(10, found.n_held_out)
    return f"""\
{name}: fitted to {found.n_fitted:,} pairs, measured on {found.n_held_out:,} held-out pairs
queries of the new model that find their own migrated row first: {found.found_first:.3f}
their {k} nearest rows that are still among the {k} nearest: {found.neighbors_kept:.3f}"""
