"""`mvcca search`: find the best gallery rows for queries in other views."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from typing import Any

import numpy as np

from mvcca.cli.console import show
from mvcca.cli.errors import UsageError
from mvcca.cli.inputs import by_name, checked_output, configured, confounds_of, load_model
from mvcca.cli.reading import opened, rows_together
from mvcca.cli.signatures import chosen
from mvcca.interop import Hits
from mvcca.machine.printable import printable
from mvcca.machine.replacing import replacing
from mvcca.machine.written_files import check_format
from mvcca.retrieval import RetrievalIndex
from mvcca.views import Views
from mvcca.views.files import check_same_order, paired


def run(options: Namespace) -> None:
    """Run the command."""
    galleries = by_name(options.galleries, "--gallery")
    queries = by_name(options.queries, "--query")
    banks = by_name(options.bank, "--bank")
    if bool(banks) != (options.hubness is not None):
        raise UsageError("--hubness and --bank are used together")
    output = None
    if options.output is not None:
        _check_format(options.output, [] if options.joint else list(galleries), options.id)
        files = [*galleries.values(), *queries.values(), *banks.values()]
        output = checked_output(options.output, [options.model, *files])
    model = load_model(options.model)
    z = confounds_of(model)
    with configured(options):
        items, item_ids = _rows(galleries, options, z, joint=options.joint)
        asked, query_ids = _rows(queries, options, z, joint=True)
        index = RetrievalIndex(
            model,
            bank=_bank(banks, options, z) if banks else None,
            weighting=options.weighting,
            **chosen(options),
        )
        beside = {name: items.pop(name) for name in z if name in items}
        hits = Hits(index, items, asked, options.k, options.joint, item_ids, query_ids, beside)
        if output is None:
            _print(hits, ".jsonl" if options.json else ".csv")
            return
        with replacing(output) as file:
            hits.write(file, output.suffix.lower())
    n_queries, k = hits.shape
    text = f"{output}: {k} hits for each of {n_queries:,} queries"
    show(options, text, {"file": str(output), "k": k, "queries": n_queries})


def _rows(
    files: dict[str, str], options: Namespace, confounds: list[str], *, joint: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray] | None]:
    """Rows of views, and with --id their ids; if `joint`, only objects that are in all files.

    Confounds belong to the rows of the other files.
    """
    tables = opened(files, options, confounds=confounds)
    if files.keys() & confounds and not joint:
        if len(files) > 2:
            raise UsageError(
                f"--gallery {confounds[0]}: several galleries have the same confounds only if they "
                "are searched as one, by --joint; search them one by one"
            )
        joint = True
    if joint:
        matrices, common = rows_together(tables, options)
        if options.id is None or common is None:
            return matrices, None
        return matrices, dict.fromkeys(matrices, common)
    ids = {name: own for name, table in tables.items() if (own := table.ids) is not None}
    return {name: table.matrix for name, table in tables.items()}, ids if options.id else None


def _bank(files: dict[str, str], options: Namespace, confounds: list[str]) -> Views:
    """Training rows: matched by ids, or else paired if the files have the same number of rows."""
    tables = opened(files, options, confounds=confounds)
    if options.id is not None:
        return paired(tables)
    rows = {name: table.matrix for name, table in tables.items()}
    if len({own.shape[0] for own in rows.values()}) > 1:
        return Views.unpaired(rows)
    check_same_order(tables.values())
    return Views(rows)


def _print(hits: Hits, suffix: str) -> None:
    """Write hits to standard output; at a terminal, names of views cannot control it."""
    if not sys.stdout.isatty():
        hits.write(sys.stdout.buffer, suffix)
        return
    text = io.BytesIO()
    hits.write(text, suffix)
    print(printable(text.getvalue().decode().replace("\r\n", "\n")), end="", flush=True)


def _check_format(output: str, galleries: list[str], ids: str | None) -> None:
    suffix = check_format(output, "hits", (".csv", ".parquet", ".arrow", ".npz", ".npy", ".trec"))
    if ids is not None and suffix in (".npy", ".npz"):
        raise UsageError(f"a {suffix} file numbers rows; with --id write .csv, .parquet or .arrow")
    if suffix == ".npy" and len(galleries) > 1:
        raise UsageError(
            "a .npy file cannot tell which gallery an item belongs to; write .npz, .csv or .parquet"
        )
    if suffix == ".trec" and len(galleries) > 1 and any(len(n.split()) > 1 for n in galleries):
        raise UsageError(
            "a .trec file separates columns by spaces, so names of galleries must not contain any"
        )
