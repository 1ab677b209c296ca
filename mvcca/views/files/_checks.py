"""Checks of matrices in files, with errors that name the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mvcca.blocks import Block, SourceError
from mvcca.blocks.checks import column_labels, not_finite


def check_block(
    name: str,
    file: str,
    block: Block,
    start: int = 0,
    *,
    ids: Sequence[str] | np.ndarray | None = None,
    holes: bool = False,
) -> None:
    """Raise SourceError unless a block is a matrix, and if it is in memory, of finite numbers.

    Rows of the file are numbered from `start`; `ids` are those of the rows. NaN is
    allowed with `holes`. Numbers that are not in memory are checked as they are read.
    """
    if len(block.shape) != 2:
        raise SourceError(
            f"{file}: view {name!r} must be a matrix with one row per object, got an array of "
            f"shape {block.shape}"
        )
    if block.dtype.kind in "US":
        raise SourceError(
            f"{file}: view {name!r} must contain numbers, got text; if a column names the rows, "
            "give id='COLUMN'; save texts in a .txt file, one per line"
        )
    if not min(block.shape):
        raise SourceError(f"{file}: view {name!r} is empty: its shape is {block.shape}")
    if block.is_lazy or block.is_finite():
        return
    matrix = block.matrix
    if not block.is_sparse and not (np.isinf(matrix) if holes else ~np.isfinite(matrix)).any():
        return  # only their sum is infinite, or there are holes
    found = not_finite(
        matrix,
        numbers=range(start, start + block.shape[0]),
        ids=ids,
        columns=column_labels(matrix),
        allows_nan=holes,
    )
    raise SourceError(f"{file}: view {name!r} {found}")


def check_numbers(name: str, file: str, block: Block, ids: np.ndarray | None = None) -> None:
    """Read rows that are not in memory once, and raise SourceError unless all are finite."""
    start = 0
    for part in block.row_blocks() if block.is_lazy else ():
        own = None if ids is None else ids[start : start + part.shape[0]]
        check_block(name, file, part, start, ids=own)
        start += part.shape[0]
