"""`mvcca compare`: views and labels in the user's files, made into a case.

Training and held-out rows are in memory, once: methods fit all of them, some several times.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from scipy.sparse import issparse

from mvcca.cli.case import Case, split
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import checked_view, read_inputs
from mvcca.cli.labels import Labels
from mvcca.cli.notes import note
from mvcca.cli.session import run_cases
from mvcca.sources import RowSource
from mvcca.views import Views

__all__ = ["run"]

_LARGE_BYTES = 10**9


def run(options: Namespace) -> None:
    """Run the command."""
    case = _case(*read_inputs(options.views, options.labels, checked_view), options)
    run_cases([case], options, options.n_components)


def _case(views: Views, labels: Labels | None, options: Namespace) -> Case:
    try:
        train, test = split(views, options.test_size, options.seed)
    except ValueError as error:
        raise CommandError(f"--test-size {options.test_size}: {error}") from error
    n_bytes = sum(_n_bytes(block) for _, block in views.items())
    if n_bytes > _LARGE_BYTES:
        note(
            f"comparing keeps all rows in memory: {n_bytes / 1e9:.1f} GB of views, and methods may "
            "take as much again or more while they fit. `mvcca fit` reads files by blocks of rows"
        )
    own = (None, None) if labels is None else (labels[train], labels[test])
    return Case(
        " and ".join(views.names),
        views[train].in_memory(),
        views[test].in_memory(),
        {} if own[0] is None else {"labels": own[0]},
        *own,
    )


def _n_bytes(block: Any) -> int:
    """What a view takes in memory."""
    if isinstance(block, RowSource):
        return block.row_bytes * len(block)
    if issparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    return int(block.nbytes)
