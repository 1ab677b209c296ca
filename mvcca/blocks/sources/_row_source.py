"""`RowSource`, the interface of all sources, and `Selection`, some rows of a source."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse import vstack as sparse_vstack

from mvcca.blocks.sources._positions import (
    Positions,
    as_positions,
    composed,
    mapped_boundaries,
    run_edges,
)
from mvcca.machine.printable import in_one_line

__all__ = ["RowSource", "Selection", "SourceError"]


class SourceError(ValueError):
    """A matrix that cannot be read: missing, damaged, changed, or not a matrix of real numbers."""


class RowSource(ABC):
    """A matrix that is read by blocks of rows, never as a whole unless requested.

    `open_matrix` returns sources. A source pickles to a few bytes, such as a path and a shape; the
    process that reads opens the file. Several threads may read at once.

    Attributes
    ----------
    shape : tuple of int
        (n_rows, n_columns).
    dtype : dtype
        Type of the numbers as stored, in native byte order.
    is_sparse : bool
        Whether blocks are `csr_array` rather than ndarray.
    boundaries : tuple of int, or None
        Rows from 0 to n_rows between which reading is best split, such as the edges of chunks;
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

    shape: tuple[int, int]
    dtype: np.dtype
    boundaries: tuple[int, ...] | None
    columns: tuple[str, ...] | None

    def _describe(
        self,
        shape: Sequence[int],
        dtype: Any,
        boundaries: tuple[int, ...] | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        """Set the attributes, after checking that they describe a matrix of real numbers."""
        dtype = np.dtype(dtype)
        if len(shape) != 2:
            raise SourceError(
                f"{self._name()}: expected a matrix of shape (n_rows, n_columns), got shape "
                f"{tuple(shape)}. Reshape a single column with x.reshape(-1, 1)."
            )
        if dtype.kind not in "biuf":
            kind = "pickled objects, which are never loaded" if dtype.hasobject else dtype
            raise SourceError(f"{self._name()}: expected real numbers, got {kind}.")
        self.shape = (int(shape[0]), int(shape[1]))
        self.dtype = dtype.newbyteorder("=")
        self.boundaries = boundaries
        self.columns = columns

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
            raise IndexError(f"{self._name()} has rows 0 to {len(self)}, got {start} to {stop}.")
        [block] = self._read_runs([(start, stop)])
        return block

    @abstractmethod
    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Yield blocks of several ranges of rows, in order, opening the file once."""

    def _read_positions(self, rows: Positions) -> np.ndarray | csr_array:
        """Rows at some positions, in any order; each is read once, neighbours together."""
        if isinstance(rows, range) and rows.step == 1:
            return self.read(rows.start, rows.stop)
        rows = np.asarray(rows, dtype=np.intp)
        order = np.argsort(rows, kind="stable")
        ascending = rows[order]
        edges = run_edges(ascending, self.boundaries, self.row_bytes)
        runs = [(int(ascending[a]), int(ascending[b - 1]) + 1) for a, b in pairwise(edges)]
        blocks = zip(self._read_runs(runs), runs, pairwise(edges), strict=True)
        if not self.is_sparse:
            gathered = np.empty((len(rows), self.shape[1]), dtype=self.dtype)
            for block, (first, _), (a, b) in blocks:
                gathered[order[a:b]] = block[ascending[a:b] - first]
            return gathered
        parts = [block[ascending[a:b] - first] for block, (first, _), (a, b) in blocks]
        if not parts:
            return self.read(0, 0)
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        return csr_array(sparse_vstack(parts, format="csr"))[inverse]

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
        identity = (type(self).__name__, *self._identity(), self.shape, self.dtype.str)
        return sha256(repr(identity).encode()).hexdigest()

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """Values that distinguish this matrix from others of its shape and dtype."""

    @abstractmethod
    def _name(self) -> str:
        """Name of this matrix in error messages."""

    @property
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
            raise ValueError(f"{self._name()} is not in memory: reading it makes a copy.")
        if self.is_sparse:
            raise TypeError(
                f"{self._name()} is sparse and would become dense. Read it as a csr_array with "
                "source.read(0, len(source))."
            )
        return np.asarray(self.read(0, len(self)), dtype=dtype)

    def __repr__(self) -> str:
        kind = f"sparse {self.dtype}" if self.is_sparse else self.dtype
        size = f"{self.shape[0]} rows, {self.shape[1]} columns"
        return in_one_line(f"<{self._name()}: {size}, {kind}>")


class Selection(RowSource):
    """Rows of another source: a range, or positions in any order."""

    def __init__(self, source: RowSource, rows: Positions) -> None:
        self._select(source, rows)

    def _select(self, source: RowSource, rows: Positions, dtype: Any = None) -> None:
        self.source, self.rows = source, rows
        self.is_sparse = source.is_sparse
        boundaries = mapped_boundaries(source.boundaries, rows)
        shape = len(rows), source.shape[1]
        self._describe(shape, dtype or source.dtype, boundaries, source.columns)

    def __getitem__(self, rows: Any) -> RowSource:
        """Rows of this selection, selected from the same source."""
        positions = composed(self.rows, as_positions(rows, len(self)))
        if isinstance(positions, range) and positions == range(len(self.source)):
            return self.source
        return Selection(self.source, positions)

    @property
    def row_bytes(self) -> int:
        return self.source.row_bytes

    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        for start, stop in runs:
            yield self.source._read_positions(self.rows[start:stop])

    def _identity(self) -> tuple[Any, ...]:
        rows = self.rows
        described = rows if isinstance(rows, range) else sha256(rows.tobytes()).hexdigest()
        return (self.source.fingerprint(), described)

    def _name(self) -> str:
        return f"rows of {self.source._name()}"
