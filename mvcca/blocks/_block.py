"""`Block`: the protocol of the rows of one view, however they are stored.

Each kind of storage is a subclass in its own module, listed in `mvcca.blocks._kinds`. It must
say which matrices it holds, how to take some of their rows, and how to convert rows to a NumPy
array or a sparse matrix; everything else has a default, to override if the storage allows better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import prod
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from mvcca.machine.config import block_slices

# Hashed at once: only a copy of this size is made of rows on a device. Pieces are summed by CRC-32,
# which is three times as fast as SHA-256, finds every change of a single number, and misses others
# once in four billion times.
_PIECE_BYTES = 2**24


@dataclass(eq=False)
class Block(ABC):
    """Rows of one view.

    Methods that return rows return blocks, and methods that add up rows return NumPy arrays.

    Attributes
    ----------
    matrix : matrix
        The rows as the user passed them.
    shape : tuple of int
        Number of rows and number of features.
    dtype : numpy.dtype
        NumPy type of the numbers.
    is_sparse : bool
        Whether zeros are not stored, so that centring the rows would fill them in.
    is_lazy : bool
        Whether rows are read when they are needed.
    on_device : bool
        Whether rows belong to a library other than NumPy, which computes with them.
    is_frame : bool
        Whether rows may be those of a DataFrame, which labels them.
    """

    matrix: Any
    shape: tuple[int, int] = field(init=False, repr=False)
    dtype: np.dtype = field(init=False, repr=False)
    is_sparse = False
    is_lazy: ClassVar[bool] = False
    on_device: ClassVar[bool] = False
    is_frame: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.shape, self.dtype = self.matrix.shape, self.matrix.dtype

    @classmethod
    @abstractmethod
    def holds(cls, matrix: Any) -> bool:
        """Whether a matrix, and every other one of its type, is stored in this way."""

    # ---- description -----------------------------------------------------------------------------

    @property
    def row_bytes(self) -> int:
        """Average memory of a row, in bytes."""
        return self.dtype.itemsize * self.shape[1]

    @property
    def starts(self) -> tuple[int, ...] | None:
        """Rows that are read without decoding others; None if any row will do."""
        return None

    @property
    def boundaries(self) -> tuple[int, ...] | None:
        """Rows from 0 to n_rows between which reading is best split; None if any row will do."""
        return None

    @property
    def storage(self) -> str:
        """Storage in words, for the table of `Views` in a notebook."""
        return f"{type(self.matrix).__module__.partition('.')[0]} array"

    def digest(self) -> bytes:
        """Identity of the rows: every byte of rows in memory, or what identifies a file."""
        digest = sha256(f"{self.shape} {self.dtype}".encode())
        for part in self._arrays():
            step = max(1, _PIECE_BYTES // (8 * max(1, prod(part.shape[1:]))))
            for start in range(0, part.shape[0], step):
                piece = part.take(slice(start, start + step)).dense().matrix
                digest.update(crc32(np.ascontiguousarray(piece).data).to_bytes(4))
        return digest.digest()

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        """Dask array of the rows, and a function that converts its chunks; None for other rows."""
        return None

    # ---- the same rows in another form -----------------------------------------------------------

    @abstractmethod
    def take(self, rows: slice | np.ndarray) -> Block:
        """Rows selected by a slice or by positions."""

    @abstractmethod
    def plain(self) -> Block:
        """Rows as a NumPy array or a sparse matrix of SciPy, in host memory."""

    def dense(self) -> Block:
        """Rows as a NumPy array, zeros included."""
        return self.plain().dense()

    def in_memory(self) -> Block:
        """Rows read into memory."""
        return self

    def kept(self) -> Block:
        """Rows read into memory, which the next reader that begins with them is handed."""
        return self.in_memory()

    def on_host(self) -> Block:
        """Rows in host memory if they are on a device."""
        return self

    def moved_by(self, move: Callable[[np.ndarray], Any]) -> Any:
        """A matrix of the rows on a device; sparse ones stay on the host."""
        return self.matrix

    def promoted(self, dtype: np.dtype) -> Block:
        """Rows in `dtype` or in their present precision, whichever is higher."""
        if np.promote_types(self.dtype, dtype) == self.dtype:
            return self
        return self.plain().promoted(dtype)

    def canonical(self) -> Block:
        """Rows with one stored number per entry; the user's matrix never changes."""
        return self

    def by_columns(self) -> Any:
        """A matrix of the rows of which columns are cheap to take."""
        return self.plain().by_columns()

    def in_pieces(self, row_bytes: int) -> Iterator[Block]:
        """Blocks of rows whose results need `row_bytes` of memory for a row, at least one."""
        for rows in block_slices(self.shape[0], row_bytes):
            yield self.take(rows)
        if not self.shape[0]:
            yield self

    def row_blocks(self) -> Iterator[Block]:
        """Plain rows in blocks of bounded size, at least one."""
        return (part.plain() for part in self.in_pieces(self.row_bytes))

    def centred(self, mean: np.ndarray) -> tuple[Block, np.ndarray]:
        """Rows in float64 less what may be subtracted from them, and the rest of the mean.

        Dense rows are centred. Sparse ones are shifted in nearly full columns only.
        """
        rows = self.plain()
        origin = rows.origin() if rows.is_sparse else mean
        return rows.about(origin), mean - origin

    def origin(self) -> np.ndarray:
        """What may be subtracted from rows to keep digits, (d,).

        The mean of dense rows, and that of nearly full columns of sparse ones.
        """
        return self.plain().origin()

    def about(self, origin: np.ndarray | None) -> Block:
        """Rows in float64 less `origin`; sparse rows stay sparse unless all columns are moved."""
        return self.plain().about(origin)

    def scaled(self, factors: np.ndarray) -> Block:
        """Rows in host memory with columns multiplied by `factors`."""
        return self.plain().scaled(factors)

    def in_units(self, factors: np.ndarray | None) -> Block:
        """Rows in host memory, in float64, with columns multiplied by `factors` if there are."""
        if factors is None:
            return self
        return self.plain().promoted(np.dtype(np.float64)).scaled(factors)

    def as_dask(self) -> Any:
        """Rows as a Dask array."""
        import dask.array as da

        return da.asarray(self.plain().matrix)

    @classmethod
    def stacked(cls, blocks: Sequence[Any], axis: int) -> Block:
        """Rows of several blocks one after the other, or with ``axis=1`` their columns."""
        return blocks[0].dense().stacked([block.dense() for block in blocks], axis)

    def placed(self, values: np.ndarray) -> Any:
        """NumPy values in the precision and in the place of these rows."""
        with np.errstate(under="ignore"):  # less than the rounding of the rows
            return values.astype(self.dtype, copy=False)

    # ---- products and sums -----------------------------------------------------------------------

    def __matmul__(self, V: np.ndarray) -> Any:
        """X V, where the rows are."""
        return np.concatenate([block @ V for block in self.row_blocks()])

    def cross(self, U: np.ndarray) -> np.ndarray:
        """XᵀU in host memory, (d,) or (d, k)."""
        return self._added(lambda block, rows: block.cross(U[rows]))

    def column_sums(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Σ w x of the rows in float64, (d,)."""
        return self.cross(np.ones(self.shape[0]) if weights is None else weights)

    def column_means(self, weights: np.ndarray | None = None) -> np.ndarray:
        """Mean of each column in float64, (d,); zeros if all weights are zero."""
        total = self.shape[0] if weights is None else weights.sum(dtype=np.float64)
        return self.column_sums(weights) / (total or 1)

    def mean_and_variance(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance of each column in float64, (d,) each."""
        return self.plain().mean_and_variance()

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest number of each column, (d,) each."""
        parts = [block.extremes() for block in self.row_blocks()]
        low, high = (np.array(ends) for ends in zip(*parts, strict=True))
        return low.min(axis=0), high.max(axis=0)

    def sizes(self) -> np.ndarray:
        """Largest absolute value of each column, within a few powers of two; 0 if it is zero.

        Some rows or values tell enough to find columns near the ends of the range of floats.
        """
        low, high = self.extremes()
        return np.maximum(high, -low)

    def size(self) -> float:
        """Largest absolute value, as those of `sizes`."""
        return float(self.sizes().max(initial=0))

    def centred_cross(self, U: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Σ_a (x_a - mean) u_aᵀ in host memory, (d, k)."""
        return self._added(lambda block, rows: block.centred_cross(U[rows], mean))

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """X diag(weights) Xᵀ for weights of the features that are not negative, (n, n), dense."""
        return self.plain().gram(weights)

    def scatter_with(
        self, other: Block, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Scatter Σ w (a - m_a)(b - m_b)ᵀ with the same rows of another block, which is centred.

        Returns
        -------
        mean, other_mean : ndarray, shape (d_a,) and (d_b,)
            Means in float64.
        left : ndarray, shape (d_b,)
            What rounding left of the other mean.
        scatter : ndarray, shape (d_a, d_b)
        """
        X = other.dense()
        mean, other_mean = self.column_means(weights), X.column_means(weights)
        centred = X.about(other_mean)
        left = centred.column_means(weights)
        centred.matrix -= left
        if weights is not None:
            centred.matrix *= weights[:, None]
        return mean, other_mean, left, self.cross(centred.matrix)  # Σ (a - m) bᵀ = Σ a bᵀ

    def centred_squares(self, mean: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Σ w (x - mean)² of each column, (d,)."""
        return self._added(
            lambda block, rows: block.centred_squares(
                mean, None if weights is None else weights[rows]
            )
        )

    def row_sizes(self) -> np.ndarray:
        """Largest absolute value of each row, (n,)."""
        return self.plain().row_sizes()

    def squared_norms(self, mean: np.ndarray) -> np.ndarray:
        """‖x - mean‖² of each row, (n,); sparse rows by expansion."""
        return np.concatenate([block.squared_norms(mean) for block in self.row_blocks()])

    def row_squares(self) -> np.ndarray:
        """‖x‖² of each row, (n,)."""
        return np.concatenate([block.row_squares() for block in self.row_blocks()])

    def project(self, mean: np.ndarray, weights: np.ndarray) -> Any:
        """(X - mean) W where the rows are and in their precision, (n, k)."""
        return np.concatenate([block.project(mean, weights) for block in self.row_blocks()])

    def add_by_code(self, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """sums[code] += weight x over the rows, in float64 and in place."""
        for block, rows in self._with_slices():
            block.add_by_code(sums, codes[rows], weights[rows])
        return sums

    def row_hashes(self) -> np.ndarray:
        """Two hashes of each row by its numbers, (n, 2) of uint64; equal for equal rows."""
        return np.concatenate([block.row_hashes() for block in self.row_blocks()])

    def empty_rows(self) -> np.ndarray | None:
        """Which sparse rows hold zeros only, (n,); None for other rows, which may hold zeros."""
        return None

    def is_finite(self) -> bool:
        """Whether no number is NaN or infinite."""
        return all(block.is_finite() for block in self.row_blocks())

    def are_finite_floats(self) -> bool:
        """Whether this is known to be a matrix in NumPy that estimators compute with as it is."""
        return False

    def mapped(self, function: Callable[[Any], Any], width: int, row_bytes: int = 0) -> Any:
        """`function` of the rows, (n, width): block by block if they are not in memory.

        Parameters
        ----------
        function : callable
            Takes a matrix in memory and returns as many rows of `width` numbers.
        width : int
            Number of columns of the result.
        row_bytes : int, default=0
            Memory that `function` needs for a row.
        """
        return function(self.matrix)

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> Block:
        """Rows as floats that an estimator computes with; see `mvcca.blocks.checks`.

        `ids` name the rows in errors.

        Raises
        ------
        ValueError, TypeError
            If they are not finite real numbers, or too few. The message names the view.
        """
        raise NotImplementedError

    def checked_once(self) -> Block:
        """The same rows; if they are dense finite floats, `checked` and selections know it."""
        return self

    def numbers(self) -> np.ndarray:
        """The numbers that are stored: all of dense rows, and the entries of sparse ones."""
        return self.plain().numbers()

    def booleans(self) -> Any:
        """A matrix that says which numbers are not 0, dense or CSR."""
        return self.plain().booleans()

    def largest_where_true(self, values: np.ndarray) -> np.ndarray:
        """Largest of `values` in each row where these rows are true, (n,); -inf if none is."""
        return self.plain().largest_where_true(values)

    def holds_numbers(self) -> bool:
        """Whether entries are numbers, and not texts or other items."""
        return True

    def holds_texts(self) -> bool:
        """Whether rows are texts, in a single column."""
        return False

    # ---- for subclasses --------------------------------------------------------------------------

    def _arrays(self) -> list[Block]:
        """The arrays that hold the rows."""
        return [self]

    def _with_slices(self) -> Iterator[tuple[Block, slice]]:
        start = 0
        for block in self.row_blocks():
            yield block, slice(start, start + block.shape[0])
            start += block.shape[0]

    def _added(self, of: Callable[[Block, slice], np.ndarray]) -> Any:
        """The sum of a function of blocks in memory."""
        return sum(of(block, rows) for block, rows in self._with_slices())
