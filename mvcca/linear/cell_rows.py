"""Rows standardised over their features: what correlations between rows depend on.

The correlation of two rows over d features is x̂ᵀŷ, where x̂ = (x - m 1) / s has mean 0 and norm 1.
Correlations between the rows of two matrices thus have the singular values of X̂Ŷᵀ, of which only
K = Σ x̂ x̂ᵀ of each matrix needs to be known. Sparse rows stay sparse: with the features' origin o
and what is stored beside it, x = t + o, each x̂ is (t + o - m 1) / s, and the products of t, 1 and
m add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks import Block, as_block
from mvcca.statistics.passes import accumulate
from mvcca.views import Views

_DENSE = 0.3  # share of stored entries above which dense products are faster
_KERNEL_ROWS = 1024  # of a sparse block whose entries stay in the cache
_TABLES = 4  # of a block of dense rows in float64, with its copies
_CONSTANT = 1e-13  # variance of a row in units of its mean square: rounding


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """Number of rows, and mean and centred sum of squares of each feature.

    Attributes
    ----------
    n_rows : ndarray, shape (1,)
    mean : ndarray, shape (d,)
    squares : ndarray, shape (d,)
        Σ (x - mean)².
    """

    n_rows: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, rows: Block, columns: np.ndarray | None = None) -> FeatureMoments:
        """Compute the moments of all features, or of some columns, in blocks of rows."""
        views = Views.of({"rows": rows}, np.ones((rows.shape[0], 1), dtype=bool))
        moments = accumulate(_feature_moments, _no_moments(rows.shape[1]), views)
        if columns is None:
            return moments
        return cls(moments.n_rows, moments.mean[columns], moments.squares[columns])

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        n = self.n_rows + other.n_rows
        share = other.n_rows / np.maximum(n, 1)
        moved = other.mean - self.mean
        return FeatureMoments(
            n,
            self.mean + share * moved,
            self.squares + other.squares + self.n_rows * share * moved**2,
        )


@dataclass(frozen=True, eq=False)
class StandardizedRows:
    """Sum of x̂ x̂ᵀ over rows that are standardised over their features.

    x̂ = (x - m 1) / s, where m is the mean of the row and s² = Σ_j (x_j - m)². With x = t + o,

        K = Σ x̂ x̂ᵀ = T P Tᵀ,    P = Σ u uᵀ,    u = (t, 1, m) / s,    T = (I, o, -1),

    so that sparse t need not be filled in.

    Attributes
    ----------
    products : ndarray, shape (d + 2, d + 2)
        P; only its upper triangle is filled.
    origin : ndarray, shape (d,)
        o.
    """

    products: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(cls, rows: Block, prepared: PreparedRows) -> StandardizedRows:
        """Compute the sum in one pass over the rows, in blocks.

        Parameters
        ----------
        rows : Block
            In memory or not.
        prepared : PreparedRows
            Which columns, and how they are scaled.

        Raises
        ------
        ValueError
            If all features of a row are equal. The message names the rows.
        """
        views = Views.of({"rows": rows}, np.ones((rows.shape[0], 1), dtype=bool))
        start = cls.of_nothing(prepared.origin)
        numbers = np.arange(rows.shape[0])
        row_bytes = None if rows.is_sparse else 8 * _TABLES * rows.shape[1]
        return accumulate(prepared.sums_of, start, views, numbers, row_bytes=row_bytes)

    @classmethod
    def of_nothing(cls, origin: np.ndarray) -> StandardizedRows:
        """The sum over no rows."""
        return cls(np.zeros((len(origin) + 2, len(origin) + 2)), origin)

    def __add__(self, other: StandardizedRows) -> StandardizedRows:
        return StandardizedRows(self.products + other.products, self.origin)

    def scatter(self) -> np.ndarray:
        """K, (d, d)."""
        upper = np.triu(self.products)
        P = upper + np.triu(upper, 1).T
        right = P[:, :-2] + np.outer(P[:, -2], self.origin) - P[:, -1:]  # P Tᵀ
        return right[:-2] + np.outer(self.origin, right[-2]) - right[-1:]


@dataclass(frozen=True, eq=False)
class PreparedRows:
    """How rows are read before they are standardised: some columns, as bounded z-scores.

    The z-scores are min((x - mean) * factor, largest).

    Attributes
    ----------
    name : str
        Of the matrix, for errors.
    width : int
        Number of its columns.
    columns : ndarray or None, shape (d,)
        The columns that are used, in order; None for all.
    mean : ndarray, shape (d,)
    factor : ndarray, shape (d,)
        1 / deviation; 0 for a constant feature, whose z-scores are 0.
    largest : float
        Upper bound of the z-scores; may be infinite.
    """

    name: str
    width: int
    columns: np.ndarray | None
    mean: np.ndarray
    factor: np.ndarray
    largest: float = np.inf

    @classmethod
    def of(
        cls, name: str, rows: Block, columns: np.ndarray | None, largest: float | None
    ) -> PreparedRows:
        """Find means and deviations (n - 1) in one pass; without a bound, change nothing."""
        width = rows.shape[1]
        if largest is None:
            n_features = width if columns is None else len(columns)
            return cls(name, width, columns, np.zeros(n_features), np.ones(n_features))
        moments = FeatureMoments.of(rows, columns)
        deviation = np.sqrt(moments.squares / np.maximum(moments.n_rows - 1, 1))
        varies = deviation > np.finfo(float).eps * np.abs(moments.mean)
        factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        return cls(name, width, columns, moments.mean, factor, largest)

    @property
    def origin(self) -> np.ndarray:
        """What 0 becomes, (d,)."""
        return self._scaled(0.0, slice(None))

    def sums_of(self, block: Views, numbers: np.ndarray) -> StandardizedRows:
        """The sum over a block of rows with these numbers."""
        parts = self._standardized(block.blocks["rows"], numbers)
        origin = self.origin
        products = np.zeros((len(origin) + 2, len(origin) + 2))
        if isinstance(parts, np.ndarray):
            products[:-2, :-2] = parts.T @ parts
        else:
            t, *others = parts
            beside = np.column_stack(others)
            products[:-2, -2:] = t.T @ beside
            products[-2:, -2:] = beside.T @ beside
            _add_products(t, products)
        return StandardizedRows(products, origin)

    def project(self, rows: Block, weights: np.ndarray) -> np.ndarray:
        """x̂ᵀ W of each row, (n, k) in float64."""
        scores = np.empty((rows.shape[0], weights.shape[1]))
        row_bytes = rows.row_bytes if rows.is_sparse else 8 * _TABLES * rows.shape[1]
        start = 0
        for block in rows.in_pieces(row_bytes):
            stop = start + block.shape[0]
            parts = self._standardized(block, np.arange(start, stop))
            if isinstance(parts, np.ndarray):
                scores[start:stop] = parts @ weights
            else:
                t, inverse, mean = parts
                o, sums = self.origin @ weights, weights.sum(axis=0)
                scores[start:stop] = t @ weights + np.outer(inverse, o) - np.outer(mean, sums)
            start = stop
        return scores

    def _scaled(self, values: np.ndarray | float, features: Any) -> np.ndarray:
        """z-scores of values of some features."""
        return np.minimum((values - self.mean[features]) * self.factor[features], self.largest)

    def _standardized(self, rows: Block, numbers: np.ndarray) -> Any:
        """x̂ of dense rows; of sparse ones t / s, 1 / s and m / s."""
        plain = rows.plain()
        if plain.is_sparse:
            t = csr_array(plain.canonical().matrix, dtype=np.float64)
            t = t if self.columns is None else t[:, self.columns]
            if t.nnz <= _DENSE * t.shape[0] * t.shape[1]:
                t.sort_indices()
                return self._standardized_sparse(t, numbers)
            plain = as_block(t).dense()
            X = plain.matrix
        else:
            X = np.asarray(plain.matrix, dtype=np.float64)
            X = X if self.columns is None else X[:, self.columns]
        Z = self._scaled(X, slice(None))
        mean = Z.mean(axis=1)
        Z -= mean[:, None]
        squares = np.einsum("ij,ij->i", Z, Z)
        self._check_constant(squares, mean, numbers)
        Z /= np.sqrt(squares)[:, None]
        return Z

    def _standardized_sparse(
        self, X: csr_array, numbers: np.ndarray
    ) -> tuple[csr_array, np.ndarray, np.ndarray]:
        n_features = X.shape[1]
        origin = self.origin
        o, n_stored = origin[X.indices], np.diff(X.indptr)
        z = self._scaled(X.data, X.indices)

        def sums(values: np.ndarray) -> np.ndarray:
            """Of the stored entries of each row."""
            parts = csr_array((values, X.indices, X.indptr), shape=X.shape)
            return parts @ np.ones(n_features)

        mean = (sums(z - o) + origin.sum()) / n_features
        m = np.repeat(mean, n_stored)
        # The entries that are not stored are those of the origin.
        about_own = np.sum((origin - origin.mean()) ** 2)
        of_origin = about_own + n_features * (origin.mean() - mean) ** 2
        missing = np.maximum(of_origin - sums((o - m) ** 2), 0)
        squares = sums((z - m) ** 2) + missing
        self._check_constant(squares, mean, numbers)
        inverse = 1 / np.sqrt(squares)
        t = csr_array(((z - o) * np.repeat(inverse, n_stored), X.indices, X.indptr), shape=X.shape)
        return t, inverse, mean * inverse

    def _check_constant(self, squares: np.ndarray, mean: np.ndarray, numbers: np.ndarray) -> None:
        """Raise if rows have no variance."""
        total = squares + len(self.mean) * mean**2
        constant = numbers[squares <= _CONSTANT * total]
        if len(constant):
            shown = ", ".join(map(str, constant[:5])) + (", ..." if len(constant) > 5 else "")
            raise ValueError(
                f"{self.name}: all features are equal in {len(constant)} of the rows "
                f"{numbers[0]} to {numbers[-1]} (rows {shown}), which have no correlation with "
                "others. Leave them out, for example with X[X.sum(axis=1) > 0]."
            )


def _no_moments(n_features: int) -> FeatureMoments:
    return FeatureMoments(np.zeros(1), np.zeros(n_features), np.zeros(n_features))


def _feature_moments(views: Views) -> FeatureMoments:
    block = views.blocks["rows"]
    mean = block.column_means()
    return FeatureMoments(np.array([float(block.shape[0])]), mean, block.centred_squares(mean))


def _add_products(rows: csr_array, products: np.ndarray) -> None:
    """Add the upper triangle of XᵀX in place, (d, d) of what may be a larger matrix."""
    from mvcca.machine.compiled_loops import add_upper_products

    for start in range(0, rows.shape[0], _KERNEL_ROWS):
        X = rows[start : start + _KERNEL_ROWS]
        by_column = X.tocsc()
        unsigned = X.indices.view(f"u{X.indices.itemsize}")  # signed ones might count from the end
        add_upper_products(
            by_column.indptr, by_column.indices, X.indptr, unsigned, X.data, products
        )
