"""Counts and feature sums per distinct label vector: all a label-weighted covariance asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca._threads import each
from mvcca.config import block_slices
from mvcca.labels import LabelTable
from mvcca.similarity import LabelGram
from mvcca.statistics._moments import column_slices
from mvcca.views import Views

_CACHED_ROWS = 128  # of sums, worked on by one thread while they are in its cache


@dataclass(frozen=True, eq=False)
class LabelSums:
    """How many rows of each view carry a label vector, and the sum of their features.

    The label similarity g of two rows depends on their label vectors only, so that

        Ψ_pq = 1 / (m_p m_q) Σ_a Σ_b g(z_p^a, z_q^b) x_p^a x_q^bᵀ = S_pᵀ G S_q / (m_p m_q)

    (eq. (4) of [1]_) with G over *distinct* label vectors and S_p the feature sums: exact, and the
    double sum over pairs of rows is gone.

    Attributes
    ----------
    table : LabelTable
        The U distinct label vectors of all views.
    widths : dict of str to int
        Number of features of each view; their sum is D.
    counts : ndarray, shape (U, n_views)
        Rows (sum of weights) of each view that carry a label vector.
    sums : ndarray of float64, shape (U, D)
        Sum of their features, view beside view.
    dtype : numpy.dtype
        Precision of the rows, in which products of sums are taken.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """

    table: LabelTable
    widths: dict[str, int]
    counts: np.ndarray
    sums: np.ndarray
    dtype: np.dtype

    @classmethod
    def of(
        cls,
        views: Views,
        table: LabelTable,
        codes: Mapping[str, np.ndarray],
        weights: np.ndarray | None = None,
    ) -> LabelSums:
        """Label sums of views.

        Parameters
        ----------
        views : Views
            NumPy or CSR blocks of float32 or float64.
        table : LabelTable
            Distinct label vectors.
        codes : mapping of str to ndarray of int
            For every row of each view, the line of its label vector in the table.
        weights : ndarray, shape (n_objects,), optional
            How often each object counts.
        """
        counts = np.zeros((len(table), len(views.names)))
        sums = np.zeros((len(table), views.shape[1]))
        for p, (name, columns) in enumerate(column_slices(views.widths).items()):
            w = np.ones(len(codes[name])) if weights is None else weights[views.objects(name)]
            counts[:, p] = np.bincount(codes[name], weights=w, minlength=len(table))
            _add_rows(views[name], codes[name], w, sums[:, columns])
        return cls(
            table, views.widths, counts, sums, np.result_type(*(b for _, b in views.items()))
        )

    def __add__(self, other: LabelSums) -> LabelSums:
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        table, lines = self.table.merge(other.table)
        merge = _grouping(lines, len(table), np.ones(len(lines)))
        return LabelSums(
            table,
            self.widths,
            merge @ np.concatenate([self.counts, other.counts]),
            merge @ np.concatenate([self.sums, other.sums]),
            np.promote_types(self.dtype, other.dtype),
        )

    def mean(self) -> dict[str, np.ndarray]:
        """The plain mean of every view's rows."""
        totals = self.counts.sum(axis=0)
        return {
            name: self.sums[:, columns].sum(axis=0) / total
            for (name, columns), total in zip(
                column_slices(self.widths).items(), totals, strict=True
            )
        }

    def averaged(self) -> LabelSums:
        """The same with one row per label vector and view, the mean of its rows."""
        present = self.counts > 0
        counts = np.repeat(np.maximum(self.counts, 1e-300), list(self.widths.values()), axis=1)
        return replace(self, counts=present.astype(float), sums=self.sums / counts)

    def deviations(self, mean: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """Feature sums about a mean (the plain one), over each view's number of rows; (U, D)."""
        mean = self.mean() if mean is None else mean
        totals = self.counts.sum(axis=0)
        deviations = np.empty(self.sums.shape, dtype=self.dtype)
        for p, (name, columns) in enumerate(column_slices(self.widths).items()):
            largest = _deviate(
                self.sums[:, columns],
                self.counts[:, p],
                mean[name],
                totals[p],
                deviations[:, columns],
            )
            # What adding up many times the same number leaves is rounding, not variation.
            rounding = np.finfo(np.float64).eps * self.counts[:, p].max() * np.abs(mean[name])
            deviations[:, columns.start + np.flatnonzero(largest <= rounding)] = 0
        return deviations

    def covariance(
        self, gram: LabelGram, mean: Mapping[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """The label-weighted covariance Ψ about a mean (the plain one), all blocks, (D, D)."""
        return gram.quadratic(self.deviations(mean))

    def row_weights(self, gram: LabelGram) -> np.ndarray:
        """Mean over the rows of each view of their similarity to a label vector, (U, n_views)."""
        return gram.times((self.counts / self.counts.sum(axis=0)).astype(self.dtype))


def _deviate(
    sums: np.ndarray, counts: np.ndarray, mean: np.ndarray, total: float, out: np.ndarray
) -> np.ndarray:
    """Out = (sums - counts meanᵀ) / total, rows while they are cached; each column's largest."""

    def block(rows: slice) -> np.ndarray:
        values = counts[rows, None] * mean
        np.subtract(sums[rows], values, out=values)
        values /= total
        out[rows] = values
        return np.maximum(values.max(axis=0), -values.min(axis=0))

    starts = range(0, len(sums), _CACHED_ROWS)
    return np.max(each(block, [slice(start, start + _CACHED_ROWS) for start in starts]), axis=0)


def _add_rows(X: Any, codes: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
    """sums[code] += weight x over the rows, in float64, block by block."""
    from mvcca._kernels import add_rows_by_code

    for rows in block_slices(X.shape[0], 8 * X.shape[1]):
        block, w = X[rows], weights[rows]
        if issparse(block):
            sums += (_grouping(codes[rows], len(sums), w) @ block).toarray()
        else:
            block = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("="))
            add_rows_by_code(block, codes[rows], w, sums)


def _grouping(codes: np.ndarray, n_groups: int, weights: np.ndarray) -> csr_array:
    """The (n_groups, n_rows) matrix that adds up the weighted rows of each group."""
    n = len(codes)
    return csr_array((weights, (codes, np.arange(n))), shape=(n_groups, n))
