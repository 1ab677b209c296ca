"""`mvcca align`: align two sets of vectors by few known pairs or none."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.blocks.sources import FileRows, read_cells, read_whole
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, dense_rows
from mvcca.cli.notes import ROWS
from mvcca.cli.reading import opened, reading_of, telling
from mvcca.cli.signatures import chosen
from mvcca.interop.alignment import Alignment, align_unpaired
from mvcca.machine.written_files import check_format
from mvcca.persistence import save
from mvcca.views.files import places_of, with_agreeing_ids
from mvcca.views.shared_ids import why_unmatched


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "a model", (".mvcca",))
    files = [options.first, options.second, *([options.pairs] if options.pairs else [])]
    output = checked_output(options.output, files)
    names = {"x": options.first, "y": options.second}
    tables = opened(names, options)
    x, y = (dense_rows(table.file, table.matrix) for table in tables.values())
    pairs = None
    if options.pairs is not None and options.id is None:
        pairs = _pairs(options.pairs, options)
    elif options.pairs is not None:
        pairs = _pairs_of_ids(options, tables)
    with configured(options):
        found = align_unpaired(x, y, pairs=pairs, **chosen(options))
    if not options.json:
        print(_report(found), flush=True)
    if found.has_failed and not options.force:
        raise CommandError(f"{output}: not written, since the alignment failed; --force writes it")
    save(found.model, output)
    facts: dict[str, Any] = {"file": str(output), "failed": found.has_failed}
    show(options, f"{output}: model of the views x and y", facts | found.as_dict())


def _pairs(file: str, options: Namespace) -> np.ndarray:
    reading = replace(reading_of(options, "pairs"), id=None)
    with telling(options) as say:
        table = read_whole(file, reading)
        say(table.took)
    pairs = np.asarray(table.matrix)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuf":
        raise CommandError(
            f"{file}: expected two columns of numbers, the row of the first file and that of the "
            f"second; {ROWS}; got {pairs.dtype} of shape {pairs.shape}. With --id, they are ids"
        )
    return pairs


def _pairs_of_ids(options: Namespace, tables: dict[str, FileRows]) -> np.ndarray:
    """Rows of the ids in the two columns of a table."""
    reading = reading_of(options, "pairs")
    with telling(options) as say:
        cells = read_cells(options.pairs, replace(reading, id=None, header=True))
        say(cells.took)
    if len(cells.cells) != 2:
        raise CommandError(
            f"{options.pairs}: expected two columns of ids, of {options.first} and of "
            f"{options.second}, below a header; got {len(cells.cells)}"
        )
    found = []
    for ids, table in zip(cells.cells.values(), tables.values(), strict=True):
        if table.ids is None:
            raise CommandError(f"{table.file}: expected a file that names its rows, for --pairs")
        if reading.match_ids:
            every, place = np.unique(ids, return_inverse=True)
            known = {"": table, options.pairs: FileRows(options.pairs, None, every)}
            *_, own = with_agreeing_ids(known, reading.match_ids).values()
            ids = np.asarray(own.ids)[place]
        missing = ids[~np.isin(ids, table.ids)]
        if len(missing):
            cause = why_unmatched({options.pairs: ids.tolist(), table.file: table.ids.tolist()})
            raise CommandError(
                f"{options.pairs}: {len(missing):,} ids are not in {table.file}, such as "
                f"{str(missing[0])!r}" + (f". {cause}" if cause else "")
            )
        found.append(places_of(table.ids, ids))
    return np.array(found).T


def _report(found: Alignment) -> str:
    lines = [
        f"pseudo-pairs: {len(found.pairs):,}" if found.used_pseudo_pairs else "known pairs only"
    ]
    if found.gain is not None:
        lines.append(
            f"mean reciprocal rank of left-out pairs, change by pseudo-pairs: {found.gain:+.3f} ± "
            f"{2 * (found.gain_error or 0):.3f}"
        )
        lines.append(
            f"left-out pairs that find each other first among {found.gallery_size:,} rows: "
            f"{found.found_first:.3f} ± {2 * (found.found_first_error or 0):.3f}"
        )
    if found.retraced is not None:
        lines.append(f"rows that keep their nearest row in a second fit: {found.retraced:.3f}")
    return "\n".join(lines)
