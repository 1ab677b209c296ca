"""Rows in NumPy arrays, and what they share with the dense arrays of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.blocks._block import Block
from mvcca.blocks.checks import FLOATS, check_numbers, of_view
from mvcca.blocks.row_hashes import hashes_of_dense
from mvcca.machine.config import block_slices
from mvcca.machine.threads import each

__all__ = ["DenseBlock"]

_FLOAT32_POWERS = 100  # of 126
_PIECE_BYTES, _FEWEST_PIECE_ROWS = 2**20, 64  # of rows whose copies stay in the cache
_SAMPLED_ROWS, _MORE_ROWS = 256, 4096  # which tell the sizes of columns


def _power_beyond_float32(weights: np.ndarray) -> int:
    """Binary exponent of weights that are too large or too small for float32; else 0."""
    power = int(np.frexp(np.abs(weights[:, :1]).max(initial=0))[1])  # columns are of like size
    return power if abs(power) > _FLOAT32_POWERS else 0


class DenseBlock(Block):
    """Rows in a NumPy array."""

    @classmethod
    def holds(cls, matrix: Any) -> bool:
        return isinstance(matrix, np.ndarray | np.generic)

    def take(self, rows: slice | np.ndarray) -> DenseBlock:
        return type(self)(self.matrix[rows])

    def plain(self) -> DenseBlock:
        return self

    def dense(self) -> DenseBlock:
        return self

    def promoted(self, dtype: np.dtype) -> DenseBlock:
        if self.dtype.kind != "O" and np.promote_types(self.dtype, dtype) == self.dtype:
            return self
        return DenseBlock(self.matrix.astype(dtype))

    def by_columns(self) -> Any:
        return self.matrix

    def moved_by(self, move: Callable[[np.ndarray], Any]) -> Any:
        return move(self.matrix)

    def origin(self) -> np.ndarray:
        return np.asarray(self.matrix.mean(axis=0, dtype=np.float64))

    def about(self, origin: np.ndarray | None) -> DenseBlock:
        if origin is None:
            return DenseBlock(self.matrix.astype(np.float64, copy=False))
        return DenseBlock(self.matrix - origin)

    def scaled(self, factors: np.ndarray) -> DenseBlock:
        return DenseBlock(self.matrix * factors.astype(self.dtype))

    @classmethod
    def stacked(cls, blocks: Sequence[Any], axis: int) -> DenseBlock:
        return DenseBlock(np.concatenate([block.matrix for block in blocks], axis=axis))

    # ---- products and sums -----------------------------------------------------------------------

    def __matmul__(self, V: np.ndarray) -> Any:
        return self.matrix @ V

    def cross(self, U: np.ndarray) -> np.ndarray:
        return np.asarray((U.T @ self.matrix).T)  # the rows of UᵀX are contiguous

    def column_sums(self, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is None:
            return np.asarray(self.matrix.sum(axis=0, dtype=np.float64))
        return self.cross(weights)

    def mean_and_variance(self) -> tuple[np.ndarray, np.ndarray]:
        X = self.matrix.astype(np.float64, order="C")  # sums round by the order of memory
        return X.mean(axis=0), X.var(axis=0)

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix.min(axis=0), self.matrix.max(axis=0)

    def sizes(self) -> np.ndarray:
        X, sizes = self.matrix, np.zeros(self.shape[1], self.dtype)
        for n_rows in (_SAMPLED_ROWS, _MORE_ROWS):
            some = X[:: 1 + len(X) // n_rows]
            ends = (some.max(axis=0, initial=0), -some.min(axis=0, initial=0))
            sizes = np.maximum.reduce([sizes, *ends])
            if sizes.all():  # else some columns are mostly zero
                break
        return sizes

    def size(self) -> float:
        some = self.matrix[:: 1 + len(self.matrix) // _SAMPLED_ROWS]
        return float(max(some.max(initial=0), -some.min(initial=0))) or super().size()

    def centred_cross(self, U: np.ndarray, mean: np.ndarray) -> np.ndarray:
        rounded = mean.astype(self.dtype)
        products = (U.T.astype(self.dtype) @ (self.matrix - rounded)).T
        return products + np.outer(rounded - mean, U.sum(axis=0))

    def centred_squares(self, mean: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        squares = np.zeros(self.shape[1])
        for rows in self._pieces():
            centred = self.matrix[rows] - mean
            if weights is None:
                squares += np.einsum("ij,ij->j", centred, centred)
            else:
                squares += np.einsum("i,ij,ij->j", weights[rows], centred, centred)
        return squares

    def gram(self, weights: np.ndarray) -> np.ndarray:
        scaled = self.matrix * np.sqrt(weights)
        return np.asarray(scaled @ scaled.T)  # NumPy computes half of a symmetric product

    def row_sizes(self) -> np.ndarray:
        return np.asarray(np.abs(self.matrix).max(axis=1, initial=0))

    def row_squares(self) -> np.ndarray:
        return np.asarray((self.matrix**2).sum(axis=1))

    def squared_norms(self, mean: np.ndarray) -> np.ndarray:
        norms = np.empty(len(self.matrix))
        for rows in self._pieces():
            centred = self.matrix[rows] - mean
            np.einsum("ij,ij->i", centred, centred, out=norms[rows])
        return norms

    def _pieces(self) -> Iterator[slice]:
        """Rows whose copies in float64 stay in the cache."""
        size = max(_FEWEST_PIECE_ROWS, _PIECE_BYTES // max(1, 8 * self.shape[1]))
        return (slice(i, i + size) for i in range(0, len(self.matrix), size))

    def project(self: Block, mean: np.ndarray, weights: np.ndarray) -> Any:
        power = _power_beyond_float32(weights) if self.dtype == np.float32 else 0
        if power:  # in two steps, as 2**power may be no float32
            scores = self.project(mean, np.ldexp(weights, -power))
            return scores * 2.0 ** (power // 2) * 2.0 ** (power - power // 2)
        rounded = mean.astype(self.dtype)
        residue = (mean - rounded) @ weights  # the part of the mean that float32 cannot hold
        return self._affine(*map(self.placed, (rounded, weights, residue)))  # type: ignore[attr-defined]

    def _affine(self, mean: np.ndarray, weights: np.ndarray, residue: np.ndarray) -> np.ndarray:
        """(X - mean) W - residue, of arguments in the precision of the rows.

        Pieces are centred and multiplied while they are in the cache, so that no copy is kept.
        """
        n_rows, width = self.shape
        size = max(_FEWEST_PIECE_ROWS, _PIECE_BYTES // max(1, width * self.dtype.itemsize))
        scores = np.empty((n_rows, weights.shape[1]), weights.dtype)

        def fill(part: slice) -> None:
            centred = np.empty((min(size, part.stop - part.start), width), mean.dtype)
            for start in range(part.start, part.stop, size):
                rows = slice(start, min(start + size, part.stop))
                own = centred[: rows.stop - rows.start]
                np.subtract(self.matrix[rows], mean, out=own)
                np.matmul(own, weights, out=scores[rows])
                scores[rows] -= residue

        each(fill, block_slices(n_rows, self.row_bytes, at_least=size))
        return scores

    def add_by_code(self, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        from mvcca.machine.compiled_loops import add_rows_by_code

        rows = np.ascontiguousarray(self.matrix, dtype=self.dtype.newbyteorder("="))
        add_rows_by_code(rows, codes, weights, sums)
        return sums

    def row_hashes(self) -> np.ndarray:
        return hashes_of_dense(self.matrix)

    def is_finite(self) -> bool:
        slices = block_slices(len(self.matrix), self.row_bytes)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = each(lambda rows: self.matrix[rows].sum(), slices)
        # The sum is finite if all values are; check values only if it is not.
        return bool(np.isfinite(sums).all()) or bool(np.isfinite(self.matrix).all())

    def numbers(self) -> np.ndarray:
        return self.matrix

    def booleans(self) -> np.ndarray:
        return self.matrix.astype(bool, copy=False)

    def largest_where_true(self, values: np.ndarray) -> np.ndarray:
        return np.where(self.matrix, values, values.dtype.type(-np.inf)).max(axis=1)

    def holds_numbers(self) -> bool:
        return self.dtype.kind in "biufc"

    def holds_texts(self) -> bool:
        return self.shape[1] == 1 and self.shape[0] > 0 and isinstance(self.matrix[0, 0], str)

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> DenseBlock:
        if self.are_finite_floats() and len(self.matrix) >= options.get("ensure_min_samples", 1):
            return self
        try:  # scikit-learn converts other numbers, and names a fault
            return DenseBlock(check_numbers(self.matrix, estimator, ids, **options))
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error

    def checked_once(self) -> Block:
        return FiniteBlock(self.matrix) if self.are_finite_floats() else self

    def are_finite_floats(self) -> bool:
        is_plain = type(self.matrix) is np.ndarray and self.matrix.ndim == 2 and self.shape[1] > 0
        return is_plain and self.dtype in FLOATS and self.is_finite()


class FiniteBlock(DenseBlock):
    """Rows in a NumPy array of floats that are known to be finite."""

    def are_finite_floats(self) -> bool:
        return True
