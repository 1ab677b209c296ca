"""`mvcca align`: align two sets of vectors by few known pairs or none."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from mvcca.blocks import as_block, read_array
from mvcca.cli.console import show
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_output, configured, header_of
from mvcca.interop.alignment import Alignment, align_unpaired
from mvcca.machine.written_files import check_format
from mvcca.persistence import save
from mvcca.views.files import open_view


def run(options: Namespace) -> None:
    """Run the command."""
    check_format(options.output, "a model", (".mvcca",))
    files = [options.first, options.second, *([options.pairs] if options.pairs else [])]
    output = checked_output(options.output, files)
    x, y = (_rows(file, options) for file in files[:2])
    pairs = None if options.pairs is None else _pairs(options.pairs, options)
    with configured(options):
        found = align_unpaired(
            x,
            y,
            pairs=pairs,
            method=options.method,
            pseudo_pairs=options.pseudo_pairs,
            reg=options.reg,
            random_state=options.seed,
        )
    if not options.json:
        print(_report(found), flush=True)
    if found.has_failed and not options.force:
        raise CommandError(f"{output}: not written, since the alignment failed; --force writes it")
    save(found.model, output)
    facts: dict[str, Any] = {"file": str(output), "failed": found.has_failed}
    show(options, f"{output}: model of the views x and y", facts | found.figures())


def _rows(file: str, options: Namespace) -> np.ndarray:
    block = as_block(open_view(file, file, header_of(options))).in_memory()
    if block.is_sparse:
        raise CommandError(f"{file}: expected dense rows, got sparse ones")
    return np.asarray(block.matrix)


def _pairs(file: str, options: Namespace) -> np.ndarray:
    pairs = np.asarray(read_array(file, None, header=header_of(options)))
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise CommandError(
            f"{file}: expected two columns, the row of the first file and that of the second, "
            f"numbered from 0; got shape {pairs.shape}"
        )
    return pairs


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
