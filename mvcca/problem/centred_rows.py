"""Centred rows of one view as a linear operator: products only, so that zeros stay zeros.

Solvers of problems that are too large for a covariance matrix multiply rows by a few columns at a
time. Sparse rows are centred by algebra; rows in files are multiplied block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mvcca.blocks import Block, as_block

_FLOAT64 = np.dtype(np.float64)
# Means up to so many deviations are subtracted from products, which lose as many units in the last
# place; larger ones from the rows.
_SMALL_MEAN = 1e4


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Centred rows X̄ = f √w (X - 1 mᵀ) of one view, scaled so that X̄ᵀX̄ is their covariance.

    Products are taken in float64, but for those of `in_float32`. Sparse rows are shifted in nearly
    full columns only, where centring by algebra would lose digits.

    Attributes
    ----------
    block : Block
        X. Rows in files are read for every product.
    mean : ndarray, shape (n_features,)
        m, zeros for rows that are not centred.
    variances : ndarray, shape (n_features,)
        Diagonal of X̄ᵀX̄; 0 where it would only be rounding.
    weights : ndarray, shape (n_rows,), or None
        w, how often each row counts.
    count : float
        Number of rows, or the sum of their weights.
    factor : float
        f = 1 / √(count - 1), or 1 / √count for rows that are not centred.
    parts : tuple of (Block, ndarray) or None
        Rows in memory, ready to multiply, and what is left of the mean to subtract from products;
        None if every product centres the rows block by block.
    """

    block: Block
    mean: np.ndarray
    variances: np.ndarray
    weights: np.ndarray | None
    count: float
    factor: float
    parts: tuple[Block, np.ndarray] | None

    @classmethod
    def of(cls, block: Block, weights: np.ndarray | None = None, *, center: bool = True) -> Self:
        """Find mean and variances, for which rows that are not in memory are read twice.

        Parameters
        ----------
        block : Block
            Rows in host memory or in files, or a Dask array.
        weights : ndarray, shape (n_rows,), optional
            How often each row counts.
        center : bool, default=True
            Whether to subtract the mean; else products are those of moments about zero.
        """
        n_rows, n_features = block.shape
        count = float(n_rows if weights is None else weights.sum())
        mean = np.zeros(n_features)
        if center:
            mean = sum(
                own.column_sums(None if weights is None else weights[rows])
                for own, rows in _float64_blocks(block)
            ) / (count or 1)
        factor = 1 / np.sqrt(max(count - 1, 1) if center else max(count, 1))
        squares = sum(
            own.centred_squares(mean, None if weights is None else weights[rows])
            for own, rows in _float64_blocks(block)
        )
        variances = factor**2 * np.asarray(squares)
        # As for `mean_and_variance`: what rounding of the mean leaves of constant columns.
        variances[variances <= (n_rows * np.finfo(float).eps * mean) ** 2] = 0
        parts = None
        if not (block.is_lazy or block.on_device):
            parts = _parts(block.promoted(_FLOAT64), mean, variances)
        return cls(block, mean, variances, weights, count, factor, parts)

    @classmethod
    def about(cls, block: Block, mean: np.ndarray) -> Self:
        """Rows less a known mean, of which `forward` takes products X - 1 mᵀ without a factor."""
        return cls(block, mean, np.ones(len(mean)), None, block.shape[0], 1.0, None)

    def in_units(self, factors: np.ndarray) -> Self:
        """The same rows in memory, their columns multiplied by factors; dense ones are centred."""
        X, left = self.block.promoted(_FLOAT64).centred(self.mean)
        X, left = X.scaled(factors), left * factors
        return replace(
            self, block=X, mean=left, variances=factors**2 * self.variances, parts=(X, left)
        )

    def in_float32(self) -> Self:
        """The same for float32 products of sparse rows in memory, which share their indices."""
        if self.parts is None or not self.parts[0].is_sparse:
            return self
        X, left = self.parts
        data = (self.factor * X.matrix.data).astype(np.float32)  # whose range is that of scores
        indices = X.matrix.indices, X.matrix.indptr
        rows = as_block(type(X.matrix)((data, *indices), shape=X.shape))
        left = (self.factor * left).astype(np.float32)
        return replace(self, parts=(rows, left), factor=1.0)

    @property
    def n_rows(self) -> int:
        """Number of rows, whatever they weigh."""
        return self.block.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.block.shape[1]

    def forward(self, V: np.ndarray) -> np.ndarray:
        """X̄V, of shape (n_rows, k), for V of shape (n_features, k)."""
        if self.parts is not None:
            X, left = self.parts
            scores = np.asarray(X @ V)
            if left.any():
                scores -= left @ V
        else:
            scores = np.empty((self.n_rows, *V.shape[1:]))
            for own, rows in _float64_blocks(self.block):
                X, left = own.centred(self.mean)
                np.subtract(X @ V, left @ V, out=scores[rows])
        return self._scaled(scores)

    def of_few(self, v: np.ndarray) -> np.ndarray:
        """X̄v of one vector or many as columns, from the columns of X with weights only.

        Of sparse rows, and of rows in files, all columns are multiplied.
        """
        used = np.flatnonzero(v if v.ndim == 1 else v.any(axis=1))
        if self.parts is None or self.parts[0].is_sparse or 4 * len(used) >= len(v):
            return np.asarray(self.forward(v))
        X, left = self.parts
        return self._scaled(X.matrix[:, used] @ v[used] - left[used] @ v[used])

    def backward(self, U: np.ndarray) -> np.ndarray:
        """X̄ᵀU, of shape (n_features, k), for U of shape (n_rows, k)."""
        is_float32 = self.parts is not None and self.parts[0].dtype == np.float32
        U = self._scaled(np.array(U, dtype=U.dtype if is_float32 else np.float64))
        if self.parts is not None:
            X, left = self.parts
            image = np.asarray(X.cross(U))
            if left.any():
                image -= np.multiply.outer(U.sum(axis=0), left).T
        else:
            image = np.zeros((self.n_features, *U.shape[1:]))
            for own, rows in _float64_blocks(self.block):
                X, left = own.centred(self.mean)
                image += X.cross(U[rows])
                image -= np.multiply.outer(left, U[rows].sum(axis=0))
        image[self.variances == 0] = 0  # exactly, in place of the rounding of the mean
        return image

    def _scaled(self, scores: np.ndarray) -> np.ndarray:
        """Rows of scores times f √w, in place."""
        scores *= self.factor
        if self.weights is not None:
            scores *= np.sqrt(self.weights).reshape(-1, *[1] * (scores.ndim - 1))
        return scores


def _float64_blocks(block: Block) -> Iterator[tuple[Any, slice]]:
    """Rows in host memory as float64, and where they are; a copy of a bounded number at a time."""
    start, copies = 0, 2 * _FLOAT64.itemsize // block.dtype.itemsize  # promoted, and centred
    for part in block.in_pieces(copies * block.row_bytes):
        rows = as_block(part.plain().matrix).promoted(_FLOAT64)
        yield rows, slice(start, start + rows.shape[0])
        start += rows.shape[0]


def _parts(rows: Block, mean: np.ndarray, variances: np.ndarray) -> tuple[Block, np.ndarray] | None:
    """Rows to multiply by, and what is left of their mean; None if dense rows must be centred."""
    if rows.is_sparse:  # nearly full columns are shifted once
        return rows.centred(mean)
    is_small = np.abs(mean) <= _SMALL_MEAN * np.sqrt(variances)
    return (rows, mean) if is_small[variances > 0].all() else None
