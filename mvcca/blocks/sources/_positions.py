"""Row positions as ranges or arrays: normalised, composed, and cut into runs to read."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_index", "as_positions", "composed", "mapped_boundaries", "run_edges"]

# Reading unwanted rows between wanted ones costs less than another call, up to about this gap.
_GAP_BYTES = 64 * 2**10

Positions = range | np.ndarray


def as_positions(rows: Any, n_rows: int) -> Positions:
    """Rows given as a slice, a mask or integers, as a range or positions from 0 to n_rows - 1."""
    if isinstance(rows, slice):
        return range(n_rows)[rows]
    if isinstance(rows, tuple):
        raise TypeError(
            "A source is indexed by rows only. Select columns of the blocks that it reads."
        )
    rows = np.asarray(rows)
    if rows.size == 0 and rows.ndim == 1 and rows.dtype.kind != "b":
        rows = rows.astype(np.intp)  # NumPy makes an empty list an array of floats
    if rows.ndim != 1 or rows.dtype.kind not in "biu":
        raise TypeError(
            "A source is indexed by a slice, a mask or an array of positions, got "
            f"{rows.dtype} of shape {rows.shape}. A single row i is source[i : i + 1]."
        )
    if rows.dtype.kind == "b":
        if len(rows) != n_rows:
            raise IndexError(f"Expected a mask of {n_rows} rows, got one of {len(rows)}.")
        rows = np.flatnonzero(rows)
    if rows.size and not (rows.min() >= -n_rows and rows.max() < n_rows):
        raise IndexError(
            f"Rows {rows.min()} to {rows.max()} are out of bounds: there are {n_rows} rows."
        )
    rows = rows.astype(np.intp)
    rows[rows < 0] += n_rows
    return _as_range(rows)


def as_index(positions: Positions) -> slice | np.ndarray:
    """Positions in the form that indexes an array."""
    if not isinstance(positions, range):
        return positions
    end = positions.stop if positions.stop >= 0 else None  # a reversed range stops before row 0
    return slice(positions.start, end, positions.step)


def _as_range(rows: np.ndarray) -> Positions:
    if rows.size and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows


def composed(outer: Positions, inner: Positions) -> Positions:
    """Positions ``outer[inner]`` in the matrix that `outer` selects from."""
    index = as_index(inner)
    if isinstance(index, slice):
        return outer[index]
    if isinstance(outer, range):
        return outer.start + outer.step * index
    return _as_range(outer[index])


def mapped_boundaries(
    boundaries: tuple[int, ...] | None, rows: Positions
) -> tuple[int, ...] | None:
    """Boundaries of a matrix, as positions among selected rows; None for unsorted rows."""
    if boundaries is None:
        return None
    if isinstance(rows, range):  # first row at or after a boundary; before it, if reversed
        beyond = np.array(boundaries) - rows.start
        reached = -(-beyond // rows.step) if rows.step > 0 else -beyond // -rows.step + 1
    elif (np.diff(rows) > 0).all():
        reached = np.searchsorted(rows, boundaries)
    else:
        return None
    return tuple(np.unique([0, *np.clip(reached, 0, len(rows)), len(rows)]).tolist())


def run_edges(
    ascending: np.ndarray, boundaries: tuple[int, ...] | None, row_bytes: int
) -> list[int]:
    """Edges of the runs into which sorted positions are cut; each run is read as one range.

    Positions between two boundaries form one run, since all rows there are decoded anyway.
    Otherwise runs bridge small gaps and span at most a quarter of the selected rows, which bounds
    the memory of unwanted rows.
    """
    if not len(ascending):
        return [0]
    if boundaries is not None:
        cut = np.diff(np.searchsorted(boundaries, ascending, side="right")) > 0
    else:
        gap = np.diff(ascending) - 1
        cell = (ascending - ascending[0]) // max(1, len(ascending) // 4)
        cut = (gap * max(1, row_bytes) > _GAP_BYTES) | (np.diff(cell) > 0)
    return [0, *(np.flatnonzero(cut) + 1).tolist(), len(ascending)]
