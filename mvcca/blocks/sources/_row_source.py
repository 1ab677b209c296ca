"""`RowSource`, the interface of all sources, and `Selection`, some rows of a source.

Rows are selected by positions: a range where they are evenly spaced, else an array.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import vstack as sparse_vstack

from mvcca.machine.printable import in_one_line

# Reading unwanted rows between wanted ones costs less than another call, up to about this gap.
_GAP_BYTES = 64 * 2**10

Positions = range | np.ndarray


class SourceError(ValueError):
    """A matrix that cannot be read: missing, damaged, changed, or not a matrix of real numbers."""


class RowSource(ABC):
    """A matrix that is read by blocks of rows, never as a whole unless requested.

    `open_matrix` returns sources. A source pickles to a few bytes, such as a path and a shape; the
    process that reads opens the file. Several threads may read at once.

    A subclass for another storage sets `name`, calls `describe`, and defines `blocks` and
    `identity`; `boundaries`, `starts`, `columns` and `is_sparse` are optional. Estimators, `Views`
    and selections of rows work with it as with any file.

    Attributes
    ----------
    name : str
        Name of the matrix in error messages, such as a path.
    shape : tuple of int
        (n_rows, n_columns).
    dtype : dtype
        Type of the numbers as stored, in native byte order.
    is_sparse : bool
        Whether blocks are `csr_array` rather than ndarray.
    boundaries : tuple of int, or None
        Rows from 0 to n_rows between which reading is best split, such as the edges of chunks;
        None if any row will do.
    starts : tuple of int, or None
        Rows before which nothing is decoded to read them, such as the first ones of row groups;
        None if any row will do.
    columns : tuple of str, or None
        Column names, if the file has them.
    row_bytes : int
        Average memory of a row once read, in bytes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from mvcca import open_matrix
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.save(f"{folder.name}/image.npy", np.arange(12.0).reshape(6, 2))
    >>> image = open_matrix(f"{folder.name}/image.npy")
    >>> image.shape, image.dtype
    ((6, 2), dtype('float64'))
    >>> image[::2].read(1, 3)  # rows 2 and 4: nothing else is read
    array([[4., 5.],
           [8., 9.]])
    >>> folder.cleanup()
    """

    __iter__ = None  # iterating over single rows would be the slowest way to read
    ndim = 2
    is_sparse = False
    boundaries: tuple[int, ...] | None = None
    starts: tuple[int, ...] | None = None
    columns: tuple[str, ...] | None = None

    name: str
    shape: tuple[int, int]
    dtype: np.dtype

    def describe(self, shape: Sequence[int], dtype: Any) -> None:
        """Set the shape, and the dtype in native byte order.

        Raises
        ------
        SourceError
            If they are not those of a matrix of real numbers.
        """
        dtype = np.dtype(dtype)
        if len(shape) != 2:
            raise SourceError(
                f"{self.name}: expected a matrix of shape (n_rows, n_columns), got shape "
                f"{tuple(shape)}. Reshape a single column with x.reshape(-1, 1)."
            )
        if dtype.kind not in "biuf":
            kind = "pickled objects, which are never loaded" if dtype.hasobject else dtype
            raise SourceError(f"{self.name}: expected real numbers, got {kind}.")
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = dtype.newbyteorder("=")

    @abstractmethod
    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Yield the rows of each range, in order; a file is opened once for all of them.

        Parameters
        ----------
        ranges : sequence of (int, int)
            First row and end of each range, within the matrix. A range may be empty.

        Yields
        ------
        ndarray or csr_array, shape (end - first, n_columns)
            A new block of type `dtype`. Row i is the same in every range that holds it.
        """

    @abstractmethod
    def identity(self) -> tuple[Any, ...]:
        """Values that distinguish this matrix from others of its shape and dtype."""

    def read(self, start: int, stop: int) -> np.ndarray | csr_array:
        """Read a range of rows.

        Parameters
        ----------
        start, stop : int
            0 <= start <= stop <= n_rows. A range may be empty; it is never clipped.

        Returns
        -------
        ndarray or csr_array, shape (stop - start, n_columns)
            A new block of type `dtype`; an ndarray is C-contiguous.

        Raises
        ------
        IndexError
            If the range is out of bounds.
        SourceError
            If the file is damaged, or has changed since it was opened.
        """
        start, stop = operator.index(start), operator.index(stop)
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"{self.name} has rows 0 to {len(self)}, got {start} to {stop}.")
        [block] = self.blocks([(start, stop)])
        return block

    def _read_positions(self, rows: Positions) -> np.ndarray | csr_array:
        """Rows at some positions, in any order; each is read once, neighbours together."""
        if isinstance(rows, range) and rows.step == 1:
            return self.read(rows.start, rows.stop)
        rows = np.asarray(rows, dtype=np.intp)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        edges = _run_edges(ascending, self.boundaries, self.row_bytes)
        runs = [(int(ascending[a]), int(ascending[b - 1]) + 1) for a, b in pairwise(edges)]
        blocks = zip(self.blocks(runs), runs, pairwise(edges), strict=True)
        if not self.is_sparse:
            gathered = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
            for block, (first, _), (a, b) in blocks:
                gathered[order[a:b]] = block[ascending[a:b] - first]
            return gathered
        parts = [block[ascending[a:b] - first] for block, (first, _), (a, b) in blocks]
        if not parts:
            return self.read(0, 0)
        return csr_array(sparse_vstack(parts, format="csr"))[np.argsort(order)]

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        """The Dask array behind this source, and a function that converts its computed chunks.

        The function takes a chunk and the position of its first row, and returns what `read` would;
        it pickles without the array. None if another process can read the source by itself.
        """
        return None

    def fingerprint(self) -> str:
        """Digest of the identity and location of the matrix.

        For a file, this covers path, key, shape, dtype, size, time of change, and 64 blocks of 64
        KiB that are evenly spaced over the file. A change of other bytes goes unnoticed only if
        size and time stay the same. For a Dask array, it covers its name, which Dask derives from
        how the array is made.
        """
        identity = (type(self).__name__, *self.identity(), self.shape, self.dtype.str)
        return sha256(repr(identity).encode()).hexdigest()

    @cached_property
    def row_bytes(self) -> int:
        """Average memory of a row once read, in bytes."""
        return self.dtype.itemsize * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> RowSource:
        """Rows selected by a slice, a mask or positions, as a source; nothing is read."""
        positions = as_positions(rows, len(self))
        everything = isinstance(positions, range) and positions == range(len(self))
        return self if everything else Selection(self, positions)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Read everything."""
        if copy is False:
            raise ValueError(f"{self.name} is not in memory: reading it makes a copy.")
        if self.is_sparse:
            raise TypeError(
                f"{self.name} is sparse and would become dense. Read it as a csr_array with "
                "source.read(0, len(source))."
            )
        return np.asarray(self.read(0, len(self)), dtype=dtype)

    def __repr__(self) -> str:
        kind = f"sparse {self.dtype}" if self.is_sparse else self.dtype
        size = f"{self.shape[0]} rows, {self.shape[1]} columns"
        return in_one_line(f"<{self.name}: {size}, {kind}>")


class Selection(RowSource):
    """Rows of another source: a range, or positions in any order."""

    def __init__(self, source: RowSource, rows: Positions, dtype: Any = None) -> None:
        self.source, self.rows, self.name = source, rows, f"rows of {source.name}"
        self.is_sparse = source.is_sparse
        self.boundaries = _mapped_boundaries(source.boundaries, rows)
        self.starts = _mapped_boundaries(source.starts, rows)
        self.columns, self.row_bytes = source.columns, source.row_bytes
        self.describe((len(rows), source.shape[1]), dtype or source.dtype)

    def __getitem__(self, rows: Any) -> RowSource:
        """Rows of this selection, selected from the same source."""
        positions = composed(self.rows, as_positions(rows, len(self)))
        if isinstance(positions, range) and positions == range(len(self.source)):
            return self.source
        return Selection(self.source, positions)

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for start, stop in ranges:
            yield self.source._read_positions(self.rows[start:stop])

    def identity(self) -> tuple[Any, ...]:
        rows = self.rows
        described = rows if isinstance(rows, range) else sha256(rows.tobytes()).hexdigest()
        return (self.source.fingerprint(), described)


# ---- positions of rows ----


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


def _mapped_boundaries(
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


def _run_edges(
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
