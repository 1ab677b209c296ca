"""Products with rows less a vector: centred rows of which sparse ones keep their zeros."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mvcca.blocks import Block, as_block


@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """The rows X of a block, less a shift: what centring sparse rows would still subtract."""

    block: Block  # (n, d)
    shift: np.ndarray  # (d,), 0 for dense rows but for rounding

    def __sub__(self, other: ShiftedRows) -> ShiftedRows:
        difference = as_block(self.block.matrix - other.block.matrix)
        return ShiftedRows(difference, self.shift - other.shift)

    def times(self, V: np.ndarray) -> np.ndarray:
        """X V, (n, k)."""
        return np.asarray(self.block @ V - self.shift @ V)

    def cross(self, U: np.ndarray) -> np.ndarray:
        """XᵀU, (d, k)."""
        product = self.block.cross(U)
        product -= np.outer(self.shift, U.sum(axis=0))
        return product

    def gram(self, T: np.ndarray) -> np.ndarray:
        """X diag(T) Xᵀ, (n, n)."""
        gram = self.block.gram(T)
        shift = self.block @ (T * self.shift)
        shift -= self.shift @ (T * self.shift) / 2
        gram -= shift[:, None]
        gram -= shift
        return gram

    def lengths(self) -> np.ndarray:
        """Euclidean norms of the rows, (n,)."""
        squares = self.block.row_squares() - 2 * (self.block @ self.shift) + self.shift @ self.shift
        return np.sqrt(np.maximum(squares, 0))
