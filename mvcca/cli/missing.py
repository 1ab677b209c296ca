"""`--missing`: rows with missing values are left out, or the values filled in, and this is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.blocks.sources import NamedColumns, is_missing, is_number
from mvcca.cli.errors import CommandError
from mvcca.views import Views

MENDS = ("drop", "mean")  # what is done to rows before a method sees them
_LEVEL = "missing"  # of a category


def without_holes(
    views: Views, how: str, files: Mapping[str, str]
) -> tuple[Views, np.ndarray, list[str]]:
    """Leave out the objects that miss a value, or fill values in.

    Parameters
    ----------
    views : Views
        Numbers, NaN where they are missing; texts, of which none is; or cells of confounds.
    how : {"drop", "mean"}
        Fill in the mean of a column, or a separate level for categories.
    files : mapping of str to str
        The file of each view.

    Returns
    -------
    views : Views
        Without missing values.
    kept : ndarray of int
        The objects that are left.
    said : list of str
        What was done.
    """
    holes = {name: _rows_with_holes(views, name) for name in views.names}
    every = np.arange(len(views))
    if how == "mean":
        filled = {name: _filled(views, name, files) for name, own in holes.items() if own.any()}
        blocks = {name: as_block(matrix) for name, (matrix, _) in filled.items()}
        views = Views.of({**views.blocks, **blocks}, views.seen, views.ids, views.removed)
        return views, every, [one for _, own in filled.values() for one in own]
    lost = {files[name]: own for name, own in holes.items()}
    bad = np.any(list(lost.values()), axis=0)
    if not bad.any():
        return views, every, []
    if bad.all():
        raise CommandError("--missing drop: every row misses a value; --drop columns, or fill them")
    kept = np.flatnonzero(~bad)
    where = ", ".join(f"{file} ({own.sum():,})" for file, own in lost.items() if own.any())
    said = [f"{bad.sum():,} of {len(bad):,} rows were left out: a value is missing in {where}."]
    return views[kept], kept, said


def _rows_with_holes(views: Views, name: str) -> np.ndarray:
    """Which objects miss a value in a view, (n_objects,)."""
    block, found = views.block(name), np.zeros(len(views), dtype=bool)
    if block.dtype.kind == "U":  # confounds
        found[views.objects(name)] = np.any([holes_of(own) for own in block.matrix.T], axis=0)
    elif block.holds_numbers():
        parts = [
            np.zeros(part.shape[0], dtype=bool) if part.is_finite()
            else np.isnan(part.dense().matrix if part.is_sparse else part.matrix).any(axis=1)
            for part in block.row_blocks()
        ]  # fmt: skip
        found[views.objects(name)] = np.concatenate(parts)
    return found


def _filled(views: Views, name: str, files: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """The rows of a view with means of its columns where values are missing."""
    block, file = views.block(name).in_memory(), files[name]
    columns: Any = getattr(views[name], "columns", None)
    if block.dtype.kind == "U":
        return _filled_cells(file, NamedColumns.of(block.matrix, columns))
    if block.is_sparse:
        raise CommandError(f"{file}: --missing mean would make sparse rows dense; give drop")
    matrix = np.array(block.matrix, dtype=float)
    holes = np.isnan(matrix)
    if (empty := np.flatnonzero(holes.all(axis=0))).size:
        raise CommandError(f"{file}: column {empty[0] + 1} holds no value; --drop it")
    matrix[holes] = np.broadcast_to(np.nanmean(matrix, axis=0), matrix.shape)[holes]
    what = "values were missing; the mean of their column stands for them."
    said = f"{file}: {holes.sum():,} of {holes.size:,} {what}"
    return matrix if columns is None else NamedColumns.of(matrix, tuple(columns)), [said]


def _filled_cells(file: str, cells: NamedColumns) -> tuple[np.ndarray, list[str]]:
    """Confounds with the mean of a column, or the level of categories, that are missing."""
    assert cells.columns is not None
    found, said = [], []
    for name, column in zip(cells.columns, np.asarray(cells).T, strict=True):
        holes = holes_of(column)
        found.append(column)
        if not holes.any():
            continue
        known = [float(cell) for cell in column[~holes] if is_number(cell)]
        is_numeric = len(known) == (~holes).sum() > 0
        found[-1] = np.where(holes, repr(float(np.mean(known))) if is_numeric else _LEVEL, column)
        what = "its mean stands" if is_numeric else f"the level {_LEVEL!r} stands"
        counts = f"{holes.sum():,} of {len(holes):,} values of {name!r}"
        said.append(f"{file}: {counts} were missing; {what} for them.")
    return NamedColumns.of(np.column_stack(found), cells.columns), said


def holes_of(column: np.ndarray) -> np.ndarray:
    """Which cells are missing."""
    return np.array([is_missing(str(cell)) for cell in column])
