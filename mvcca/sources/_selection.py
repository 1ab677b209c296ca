"""Some rows of a source: which ranges to read for them, and how to put them in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import vstack as sparse_vstack

from mvcca.sources._row_source import RowSource

__all__ = ["Selection", "as_index", "as_positions", "composed"]

# Reading on over rows that are not wanted costs less than one more call, up to about here.
_GAP_BYTES = 64 * 2**10


class Selection(RowSource):
    """The rows of another source at some positions: a range, or an array in any order."""

    def __init__(self, source: RowSource, rows: range | np.ndarray) -> None:
        self._source, self._rows = source, rows
        self.is_sparse = source.is_sparse
        self._describe(
            (len(rows), source.shape[1]),
            source.dtype,
            _mapped(source.boundaries, rows),
            source.columns,
        )

    @classmethod
    def of(cls, source: RowSource, rows: Any) -> RowSource:
        """The selection, of the source itself where it is a selection already."""
        positions = as_positions(rows, len(source))
        if isinstance(source, Selection):
            positions, source = composed(source._rows, positions), source._source
        if isinstance(positions, range) and positions == range(len(source)):
            return source
        return cls(source, positions)

    @property
    def row_bytes(self) -> int:
        return self._source.row_bytes

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for start, stop in runs:
            rows = self._rows[start:stop]
            if isinstance(rows, range) and rows.step == 1:
                yield self._source.read(rows.start, rows.stop)
            else:
                yield _gather(self._source, np.asarray(rows, dtype=np.intp))

    def _identity(self) -> tuple[Any, ...]:
        whole = self._rows
        rows = whole if isinstance(whole, range) else sha256(whole.tobytes()).hexdigest()
        return (self._source.fingerprint(), rows)

    def _name(self) -> str:
        return f"rows of {self._source._name()}"


def as_positions(rows: Any, n_rows: int) -> range | np.ndarray:
    """Rows as a user gives them, as a range or as positions from 0 to n_rows - 1."""
    if isinstance(rows, slice):
        return range(n_rows)[rows]
    if isinstance(rows, tuple):
        raise TypeError("A source is indexed by rows alone: take columns of the blocks it reads.")
    rows = np.asarray(rows)
    if rows.size == 0 and rows.ndim == 1 and rows.dtype.kind != "b":
        rows = rows.astype(np.intp)  # an empty list is of floats
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
        raise IndexError(f"Rows {rows.min()} to {rows.max()} were asked for; there are {n_rows}.")
    rows = rows.astype(np.intp)
    rows[rows < 0] += n_rows
    return _as_range(rows)


def as_index(positions: range | np.ndarray) -> slice | np.ndarray:
    """Positions as an array is indexed by."""
    if not isinstance(positions, range):
        return positions
    end = positions.stop if positions.stop >= 0 else None  # a range downwards ends before row 0
    return slice(positions.start, end, positions.step)


def _as_range(rows: np.ndarray) -> range | np.ndarray:
    if rows.size and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows


def composed(outer: range | np.ndarray, inner: range | np.ndarray) -> range | np.ndarray:
    """Positions `outer[inner]` in the source that `outer` selects from."""
    index = as_index(inner)
    if isinstance(index, slice):
        return outer[index]
    if isinstance(outer, range):
        return outer.start + outer.step * index
    return _as_range(outer[index])


def _mapped(boundaries: tuple[int, ...] | None, rows: range | np.ndarray) -> tuple[int, ...] | None:
    """Where the source's boundaries fall among the selected rows; None if these jump about."""
    if boundaries is None:
        return None
    if isinstance(rows, range):  # the first row at or after a boundary; downwards, before it
        beyond = np.array(boundaries) - rows.start
        reached = -(-beyond // rows.step) if rows.step > 0 else -beyond // -rows.step + 1
    elif (np.diff(rows) > 0).all():
        reached = np.searchsorted(rows, boundaries)
    else:
        return None
    return tuple(np.unique([0, *np.clip(reached, 0, len(rows)), len(rows)]).tolist())


def _gather(source: RowSource, rows: np.ndarray) -> np.ndarray | csr_array:
    """The rows at some positions, each read once, neighbours together."""
    order = np.argsort(rows, kind="stable")
    ascending = rows[order]
    edges = _run_edges(source, ascending)
    runs = [(int(ascending[a]), int(ascending[b - 1]) + 1) for a, b in pairwise(edges)]
    blocks = source._read_runs(runs)
    if not source.is_sparse:
        gathered = np.empty((len(rows), source.shape[1]), dtype=source.dtype)
        for block, (first, _), (a, b) in zip(blocks, runs, pairwise(edges), strict=True):
            gathered[order[a:b]] = block[ascending[a:b] - first]
        return gathered
    parts = [
        block[ascending[a:b] - first]
        for block, (first, _), (a, b) in zip(blocks, runs, pairwise(edges), strict=True)
    ]
    if not parts:
        return source.read(0, 0)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return csr_array(sparse_vstack(parts, format="csr"))[back]


def _run_edges(source: RowSource, ascending: np.ndarray) -> list[int]:
    """Where sorted positions are cut into runs, each of which is read as one range.

    Between two boundaries everything is decoded anyway, so that is one run. Elsewhere runs pass
    over small gaps, and span at most a quarter of the rows wanted, so that what is read beyond
    them stays small beside the result.
    """
    if not len(ascending):
        return [0]
    if source.boundaries is not None:
        cut = np.diff(np.searchsorted(source.boundaries, ascending, side="right")) > 0
    else:
        gap = np.diff(ascending) - 1
        cell = (ascending - ascending[0]) // max(1, len(ascending) // 4)
        cut = (gap * max(1, source.row_bytes) > _GAP_BYTES) | (np.diff(cell) > 0)
    return [0, *(np.flatnonzero(cut) + 1).tolist(), len(ascending)]
