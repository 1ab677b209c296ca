"""`mvcca align`: align two sets of vectors by few known pairs or none."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from mvcca.blocks import as_block, read_array
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, header_of, id_of
from mvcca.cli.notes import ROWS
from mvcca.cli.signatures import chosen
from mvcca.interop.alignment import Alignment, align_unpaired
from mvcca.machine.written_files import check_format
from mvcca.persistence import save
from mvcca.views.files import open_identified, open_view, read_table
from mvcca.views.shared_ids import why_unmatched


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "a model", (".mvcca",))
    files = [options.first, options.second, *([options.pairs] if options.pairs else [])]
    output = checked_output(options.output, files)
    (x, ids_of_x), (y, ids_of_y) = (_rows(file, options) for file in files[:2])
    pairs = None
    if options.pairs is not None and options.id is None:
        pairs = _pairs(options.pairs, options)
    elif options.pairs is not None:
        pairs = _pairs_of_ids(options, ids_of_x, ids_of_y)
    with configured(options):
        found = align_unpaired(x, y, pairs=pairs, **chosen(options))
    if not options.json:
        print(_report(found), flush=True)
    if found.has_failed and not options.force:
        raise CommandError(f"{output}: not written, since the alignment failed; --force writes it")
    save(found.model, output)
    facts: dict[str, Any] = {"file": str(output), "failed": found.has_failed}
    show(options, f"{output}: model of the views x and y", facts | found.as_dict())


def _rows(file: str, options: Namespace) -> tuple[np.ndarray, dict[str, int]]:
    """The rows of a file, and with --id the row of each id."""
    places: dict[str, int] = {}
    if options.id is None:
        opened = open_view(file, file, header_of(options))
    else:
        found = open_identified(file, file, id_of(options))
        opened, places = found.matrix, found.places
    block = as_block(opened).in_memory()
    if block.is_sparse or block.holds_texts():
        kind = "sparse ones" if block.is_sparse else "texts"
        raise CommandError(f"{file}: expected dense rows of numbers, got {kind}")
    return np.asarray(block.matrix), places


def _pairs(file: str, options: Namespace) -> np.ndarray:
    pairs = np.asarray(read_array(file, None, header=header_of(options)))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuf":
        raise CommandError(
            f"{file}: expected two columns of numbers, the row of the first file and that of the "
            f"second; {ROWS}; got {pairs.dtype} of shape {pairs.shape}. With --id, they are ids"
        )
    return pairs


def _pairs_of_ids(
    options: Namespace, ids_of_x: dict[str, int], ids_of_y: dict[str, int]
) -> np.ndarray:
    """Rows of the ids in the two columns of a table, below a header."""
    table = read_table(options.pairs)
    if len(table.columns) != 2:
        raise CommandError(
            f"{options.pairs}: expected two columns of ids, of {options.first} and of "
            f"{options.second}, below a header; got {len(table.columns)}"
        )
    found = []
    places = (ids_of_x, ids_of_y)
    files = (options.first, options.second)
    for column, known, file in zip(table.columns.values(), places, files, strict=True):
        ids = [str(one).strip() for one in column]
        if missing := [one for one in ids if one not in known]:
            cause = why_unmatched({options.pairs: set(ids), file: known})
            raise CommandError(
                f"{options.pairs}: {len(missing):,} ids are not in {file}, such as {missing[0]!r}"
                + (f". {cause}" if cause else "")
            )
        found.append([known[one] for one in ids])
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
