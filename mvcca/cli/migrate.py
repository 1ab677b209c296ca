"""`mvcca migrate`: map stored vectors of an old embedding model to the space of a new one."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import fields
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, header_of
from mvcca.interop.migration import Migration, fit_migration
from mvcca.machine.replacing import replacing
from mvcca.persistence import ProjectedRows, check_format, write_npy
from mvcca.views.files import open_view, read_row_numbers


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "vectors", (".npy",))
    files = [options.old, options.new, *([options.sample] if options.sample else [])]
    output = checked_output(options.output, files)
    old = open_view("old", options.old, header_of(options))
    with configured(options):
        found = fit_migration(
            *_sample(options, old),
            stored=old,
            method=options.method,
            n_components=options.n_components,
            reg=options.reg,
            normalize=options.normalize,
            random_state=options.seed,
        )
        if not options.json:
            print(_report(found), flush=True)
        if not (found.is_useful or options.force):
            raise CommandError(
                f"{output}: not written, since fewer than half of the queries find their own row "
                f"first ({found.found_first:.3f}); --force writes it"
            )

        def migrated(views: Any) -> dict[str, np.ndarray]:
            return {"old": found.predict(views["old"])}

        projected = ProjectedRows(migrated, "old", old, options.old)
        with replacing(output) as file:
            write_npy(file, projected.blocks(), projected.shape, projected.dtype)
    n_rows, n_features = projected.shape
    facts = {"file": str(output), "rows": n_rows, "features": n_features}
    names = [field.name for field in fields(found) if not field.name.startswith("_")]
    figures = {name: getattr(found, name) for name in names}
    show(options, f"{output}: {n_rows:,} rows, {n_features} features", facts | figures)


def _sample(options: Namespace, old: Any) -> list[np.ndarray]:
    """Rows of both models that embed the same items."""
    new = open_view("new", options.new, header_of(options))
    n_old, n_new = old.shape[0], new.shape[0]
    if options.sample is not None:
        numbers = read_row_numbers(options.sample, n_old, n_new, header_of(options))
        if len(numbers) != n_new:
            raise CommandError(
                f"{options.sample}: {len(numbers)} row numbers for the {n_new} rows of "
                f"{options.new}"
            )
        old = old[numbers]
    elif n_new != n_old:
        raise CommandError(
            f"{options.new} has {n_new:,} rows and {options.old} {n_old:,}; name the rows of "
            f"{options.old} that belong together with those of {options.new} by --sample FILE"
        )
    pairs = [as_block(rows).in_memory().matrix for rows in (old, new)]
    for file, rows in zip((options.old, options.new), pairs, strict=True):
        if as_block(rows).is_sparse:
            raise CommandError(f"{file}: expected dense rows, got sparse ones")
    return pairs


def _report(found: Migration) -> str:
    name = found.method if found.reg is None else f"{found.method}, reg={found.reg:.3g}"
    gallery = f"{found.gallery_size:,} rows"
    if found.gallery_size < found.n_stored:
        gallery += f" drawn from {found.n_stored:,}"
    error = 2 * found.found_first_error
    return f"""\
{name}: fitted to {found.n_pairs:,} pairs; the figures are of pairs left out of the fit
own migrated row found first among {gallery}: {found.found_first:.3f} ± {error:.3f} \
({found.n_queries:,} queries)
nearest {found.nearest_share:.1%} of rows that are still nearest: {found.neighbors_kept:.3f} \
(old model: {found.neighbors_kept_before:.3f})"""
