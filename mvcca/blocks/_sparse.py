"""Rows in sparse matrices of SciPy, with one stored entry per position.

Centring sparse rows would fill in their zeros, so they are centred by algebra. AᵀB - n m_a m_bᵀ
cancels if a column's mean is large compared with its deviation. With a share f of entries stored,
m² / variance ≤ f / (1 - f), so that only nearly full columns can lose digits. These are shifted,
including their zeros, which adds few entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.sparse import hstack as sparse_hstack
from scipy.sparse import vstack as sparse_vstack

from mvcca.blocks._block import Block
from mvcca.blocks._dense import DenseBlock
from mvcca.blocks.checks import check_numbers, of_view
from mvcca.blocks.row_hashes import hashes_of_sparse

__all__ = ["SparseBlock", "grouping", "host_block", "own_csr"]

_SAMPLED_VALUES = 2**20  # which tell the sizes of columns
_SAFE = 256  # binary exponents up to which all columns pass for 1
_FREQUENT = 0.05  # share of rows in which an entry makes a dense product of a column cheaper
_NEARLY_FULL = 0.9  # of all entries; below, m² is less than 9 variances


class SparseBlock(Block):
    """Rows in a sparse matrix of SciPy."""

    is_sparse = True

    @classmethod
    def holds(cls, matrix: Any) -> bool:
        return bool(issparse(matrix))

    @property
    def row_bytes(self) -> int:
        """Average memory of the stored entries of a row, in bytes."""
        rows = self.matrix.tocsr()
        return (rows.data.nbytes + rows.indices.nbytes) // max(1, self.shape[0]) + 1

    @property
    def storage(self) -> str:
        return f"sparse {self.matrix.format}"

    # ---- the same rows in another form -----------------------------------------------------------

    def take(self, rows: slice | np.ndarray) -> SparseBlock:
        return SparseBlock(self.matrix[rows])

    def plain(self) -> SparseBlock:
        return self

    def dense(self) -> DenseBlock:
        return DenseBlock(self.matrix.toarray())

    def promoted(self, dtype: np.dtype) -> SparseBlock:
        if np.promote_types(self.dtype, dtype) == self.dtype:
            return self
        return SparseBlock(self.matrix.astype(dtype))

    def canonical(self) -> SparseBlock:
        """CSR with sorted indices and duplicate entries summed.

        SciPy allows several entries at one position and defines the value as their sum. Operations
        on stored entries, such as squares or kernels, need that sum. A matrix that is not canonical
        is copied, so the caller's arrays never change.
        """
        rows = self.matrix.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy() if rows is self.matrix else rows
            rows.sum_duplicates()
        return SparseBlock(rows)

    def by_columns(self) -> Any:
        return self.matrix.tocsc()

    def _arrays(self) -> list[Block]:
        rows = self.matrix.tocsr()
        return [DenseBlock(part) for part in (rows.data, rows.indices, rows.indptr)]

    def origin(self) -> np.ndarray:
        """Mean of the stored entries of nearly full columns, and 0 for all others, (d,)."""
        X = self.matrix.tocsr()
        n_rows, n_features = X.shape
        stored = np.bincount(X.indices, minlength=n_features)
        full = stored > _NEARLY_FULL * n_rows
        if not full.any():
            return np.zeros(n_features)
        totals = np.bincount(X.indices, weights=X.data, minlength=n_features)  # in float64
        return np.where(full, totals / np.maximum(stored, 1), 0)

    def about(self, origin: np.ndarray | None) -> DenseBlock | SparseBlock:
        X = self.matrix.astype(np.float64, copy=False)  # SciPy sums float32 rows in float32
        if origin is None or not origin.any():
            return SparseBlock(X)
        if origin.all():
            return self.dense().about(origin)
        return SparseBlock(
            csr_array(X - csr_array(np.ones((X.shape[0], 1))) @ csr_array(origin[None]))
        )

    def scaled(self, factors: np.ndarray) -> SparseBlock:
        X = own_csr(self.matrix)
        X.data *= factors.astype(X.dtype)[X.indices]
        return SparseBlock(X)

    @classmethod
    def stacked(cls, blocks: Sequence[Any], axis: int) -> SparseBlock:
        joined = sparse_hstack if axis else sparse_vstack
        return SparseBlock(csr_array(joined([block.matrix for block in blocks], format="csr")))

    # ---- products and sums -----------------------------------------------------------------------

    def __matmul__(self, V: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix @ V)

    def cross(self, U: np.ndarray) -> np.ndarray:
        product = self.matrix.T @ U
        return product.toarray() if issparse(product) else product  # as U is

    def column_sums(self, weights: np.ndarray | None = None) -> np.ndarray:
        if weights is None:  # SciPy sums in the precision of the rows, whatever dtype it is given
            X = self.matrix.tocsr()
            return np.bincount(X.indices, weights=X.data, minlength=X.shape[1])
        return self.cross(weights)

    def mean_and_variance(self) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.utils.sparsefuncs import mean_variance_axis

        mean, variance = mean_variance_axis(self.matrix.tocsr().astype(np.float64), axis=0)
        return mean, variance

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        X = self.matrix
        low, high = (ends.toarray().reshape(-1) for ends in (X.min(axis=0), X.max(axis=0)))
        return low, high

    def sizes(self) -> np.ndarray:
        data = self.matrix.tocsr().data
        values = np.abs(data[:: 1 + len(data) // _SAMPLED_VALUES])
        values = values[values > 0]
        if not len(values) or np.abs(np.frexp([values.min(), values.max()])[1]).max() <= _SAFE:
            return np.ones(self.shape[1])
        return np.asarray(np.abs(self.matrix).max(axis=0).toarray()).reshape(-1)

    def centred_cross(self, U: np.ndarray, mean: np.ndarray) -> np.ndarray:
        return self.cross(U) - np.outer(mean, U.sum(axis=0))

    def centred_squares(self, mean: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        X = self.matrix.tocsr()
        deviations = (X.data.astype(np.float64) - mean[X.indices]) ** 2
        of_stored, total = None, float(X.shape[0])
        if weights is not None:
            of_stored, total = np.repeat(weights, np.diff(X.indptr)), weights.sum()
            deviations *= of_stored
        stored = np.bincount(X.indices, weights=of_stored, minlength=len(mean))
        squares = np.bincount(X.indices, weights=deviations, minlength=len(mean))
        return squares + np.maximum(total - stored, 0) * mean**2

    def squared_norms(self, mean: np.ndarray) -> np.ndarray:
        rows, left = self.centred(mean)
        return rows.row_squares() - 2 * (rows @ left) + left @ left

    def gram(self, weights: np.ndarray) -> np.ndarray:
        X = self.matrix.tocsc()
        frequent = np.diff(X.indptr) > _FREQUENT * X.shape[0]
        rare = X[:, ~frequent]
        rare.data *= np.repeat(np.sqrt(weights[~frequent]), np.diff(rare.indptr))
        product = DenseBlock(X[:, frequent].toarray()).gram(weights[frequent])
        product += (rare @ rare.T).toarray()
        return product

    def row_sizes(self) -> np.ndarray:
        return np.asarray(np.abs(self.matrix.tocsr()).max(axis=1).toarray()).reshape(-1)

    def row_squares(self) -> np.ndarray:
        return np.asarray(self.matrix.multiply(self.matrix).sum(axis=1)).reshape(-1)

    def scatter_with(
        self, other: Block, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        if not other.is_sparse:
            return super().scatter_with(other, weights)
        mean, other_mean = self.column_means(weights), other.column_means(weights)
        total = self.shape[0] if weights is None else weights.sum()
        A = self.matrix if weights is None else self.matrix.multiply(weights[:, None]).tocsr()
        scatter = np.asarray((A.T @ other.plain().matrix).toarray())
        scatter -= np.outer(total * mean, other_mean)
        return mean, other_mean, np.zeros_like(other_mean), scatter

    def project(self, mean: np.ndarray, weights: np.ndarray) -> np.ndarray:
        scores = np.asarray(self.matrix @ weights - mean @ weights)
        return scores.astype(self.dtype, copy=False)

    def add_by_code(self, sums: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        sums += (grouping(codes, len(sums), weights) @ self.matrix).toarray()
        return sums

    def row_hashes(self) -> np.ndarray:
        return hashes_of_sparse(self.canonical().matrix)

    def empty_rows(self) -> np.ndarray:
        X = self.matrix
        if X.format == "csr" and X.data.all():
            return np.diff(X.indptr) == 0
        is_empty = np.ones(X.shape[0], dtype=bool)
        is_empty[X.nonzero()[0]] = False  # which leaves out stored zeros
        return is_empty

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.matrix.tocsr().data).all())

    def numbers(self) -> np.ndarray:
        return self.matrix.data

    def booleans(self) -> csr_array:
        return own_csr(self.matrix, dtype=bool)

    def largest_where_true(self, values: np.ndarray) -> np.ndarray:
        true = self.booleans()
        largest, n_true = np.full(len(values), -np.inf, dtype=values.dtype), np.diff(true.indptr)
        filled = np.flatnonzero(n_true)
        if len(filled):
            rows = np.repeat(np.arange(len(values)), n_true)
            starts = true.indptr[filled]
            largest[filled] = np.maximum.reduceat(values[rows, true.indices], starts)
        return largest

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> SparseBlock:
        try:
            return SparseBlock(check_numbers(self.matrix, estimator, ids, **options))
        except (ValueError, TypeError) as error:
            raise of_view(name, error) from error


def host_block(matrix: Any) -> DenseBlock | SparseBlock:
    """The block of a NumPy array or a sparse matrix."""
    return SparseBlock(matrix) if issparse(matrix) else DenseBlock(matrix)


def own_csr(matrix: Any, dtype: Any = None) -> csr_array:
    """A canonical copy of a matrix without stored zeros, which may be modified in place."""
    rows = SparseBlock(matrix).canonical().matrix if issparse(matrix) else matrix
    rows = csr_array(rows, dtype=dtype, copy=True)
    rows.eliminate_zeros()
    return rows


def grouping(codes: np.ndarray, n_groups: int, weights: np.ndarray) -> csr_array:
    """The (n_groups, n_rows) matrix that adds up the weighted rows of each group."""
    n = len(codes)
    return csr_array((weights, (codes, np.arange(n))), shape=(n_groups, n))
