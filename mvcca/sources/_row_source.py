"""What all sources have in common: a described matrix whose rows are read on demand.

How a container is read stands in that container's file; which rows a selection reads, in
`mvcca.sources._selection`.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.sparse import csr_array

__all__ = ["RowSource", "SourceError"]


class SourceError(ValueError):
    """A matrix that cannot be read: missing, damaged, changed, or not a matrix of real numbers."""


class RowSource(ABC):
    """A matrix that is read by blocks of rows and is never held whole unless asked for.

    Sources come from `open_matrix` and `as_source`. They are small: a pickled one carries a path
    and a shape, and the process that reads opens the file. Several threads may read at once.

    Attributes
    ----------
    shape : tuple of int
        (n_rows, n_columns).
    dtype : dtype
        Type of the numbers as stored, in native byte order.
    is_sparse : bool
        Whether blocks are `csr_array` rather than ndarray.
    boundaries : tuple of int, or None
        Rows at which reading may be cut without reading anything twice, such as the edges of
        chunks, from 0 to n_rows; None where any row will do.
    columns : tuple of str, or None
        Names of the columns, where the container has them.
    row_bytes : int
        What a row takes in memory once read, on average.

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

    __iter__ = None  # rows one by one would be the slowest way to read
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
        """Say what matrix this is."""
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
            0 <= start <= stop <= n_rows. A range may be empty; it is never cut to fit.

        Returns
        -------
        ndarray or csr_array, shape (stop - start, n_columns)
            A fresh block of type `dtype`; an ndarray is C-contiguous.

        Raises
        ------
        IndexError
            If there are no such rows.
        SourceError
            If the file is damaged, or no longer the one that was opened.
        """
        start, stop = operator.index(start), operator.index(stop)
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"{self._name()} has rows 0 to {len(self)}, got {start} to {stop}.")
        [block] = self._read_runs([(start, stop)])
        return block

    @abstractmethod
    def _read_runs(self, runs: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Blocks of some ranges of rows, in order, from one opening of the file."""

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        """The Dask array of these rows, and what makes of a computed chunk what `read` gives.

        The callable takes rows of the array and the position of the first, and can be pickled
        without the array. None of a source that another process can read by itself.
        """
        return None

    def fingerprint(self) -> str:
        """Digest of what and where the matrix is.

        For a file, this covers path, key, shape, dtype, size, time of change, and 64 blocks of 64
        KiB that are evenly spaced over the file. A change of other bytes goes unnoticed only if
        size and time stay the same. For a Dask array, it covers its name, which Dask derives from
        how the array is made.
        """
        identity = (type(self).__name__, *self._identity(), self.shape, self.dtype.str)
        return sha256(repr(identity).encode()).hexdigest()

    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """What tells this matrix from others of its shape and dtype."""

    @abstractmethod
    def _name(self) -> str:
        """What an error calls this matrix."""

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory once read, on average."""
        return self.dtype.itemsize * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> RowSource:
        """Rows by a slice, a mask or positions, as a source again: nothing is read."""
        from mvcca.sources._selection import Selection

        return Selection.of(self, rows)

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
        return f"<{self._name()}: {self.shape[0]} rows, {self.shape[1]} columns, {kind}>"
