"""`mvcca align`: align two sets of vectors by few known pairs or none."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.blocks.sources import FileRows, ReadOptions, read_cells, read_whole
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, dense_rows
from mvcca.cli.notes import ROWS
from mvcca.cli.reading import opened, reading_of, telling
from mvcca.cli.signatures import chosen
from mvcca.interop.alignment import Alignment, align_unpaired
from mvcca.machine.warnings import warn
from mvcca.machine.written_files import check_format
from mvcca.persistence import save
from mvcca.views.files import rows_of_ids

_LEAST_KNOWN = 0.5  # share of pairs whose ids are there; fewer are those of other files


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "a model", (".mvcca",))
    files = [options.first, options.second, *([options.pairs] if options.pairs else [])]
    output = checked_output(options.output, files)
    names = {"x": options.first, "y": options.second}
    tables = opened(names, options)
    x, y = (dense_rows(table.file, table.matrix) for table in tables.values())
    pairs = None if options.pairs is None else _pairs(options, tables)
    with configured(options):
        found = align_unpaired(x, y, pairs=pairs, **chosen(options))
    if not options.json:
        print(_report(found), flush=True)
    if found.has_failed and not options.force:
        raise CommandError(f"{output}: not written, since the alignment failed; --force writes it")
    save(found.model, output)
    facts: dict[str, Any] = {"file": str(output), "failed": found.has_failed}
    show(options, f"{output}: model of the views x and y", facts | found.as_dict())


def _pairs(options: Namespace, tables: dict[str, FileRows]) -> np.ndarray:
    """Rows that belong together, from two columns of row numbers, or of ids."""
    file, reading = options.pairs, replace(reading_of(options, "pairs"), id=None)
    with telling(options) as say:
        if options.id is None:
            table = read_whole(file, reading)
            pairs = np.asarray(table.matrix)
            if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iuf":
                say(table.took)
                return pairs
        columns = _columns(file, reading)
        if len(columns) != 2 or any(table.ids is None for table in tables.values()):
            raise CommandError(
                f"{file}: expected two columns of numbers, the row of the first file and that of "
                f"the second; {ROWS}; or their ids, if both files name their rows, as by --id; got "
                f"{len(columns)} of texts"
            )
        known = np.array([_is_id(*own) for own in zip(tables.values(), columns, strict=True)])
        first = int(reading.header is None and not known[:, 0].any())  # it is a header
        columns, known = columns[:, first:], np.all(known[:, first:], axis=0)
        say(f"{file}: read as {columns.shape[1]:,} pairs of ids")
    if not reading.match_ids and _LEAST_KNOWN <= known.mean() < 1:
        lost = columns[:, ~known]
        words = " and ".join(map(repr, lost[:, 0].tolist()))
        warn(f"{file}: {lost.shape[1]:,} pairs are left out: no row of both, such as {words}")
        columns = columns[:, known]
    rows = [
        rows_of_ids(table, ids, file, f"ids of {file} are not there", reading.match_ids)
        for table, ids in zip(tables.values(), columns, strict=True)
    ]
    return np.array(rows).T


def _columns(file: str, reading: ReadOptions) -> np.ndarray:
    """The cells of all columns; lines of two words, as of a dictionary, are two columns."""
    cells = read_cells(file, replace(reading, header=bool(reading.header)))
    columns = np.asarray(cells.matrix).T
    words = [line.split() for line in columns[0]] if len(columns) == 1 else []
    if words and all(len(own) == 2 for own in words):
        return np.array(words).T
    return columns


def _is_id(table: FileRows, ids: np.ndarray) -> np.ndarray:
    assert table.ids is not None
    return np.isin(ids, table.ids)


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
