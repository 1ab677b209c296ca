"""Label sums, at home: counts and sums of rows per distinct label vector, and what comes of them.

A label-weighted covariance asks for no more. Sums that stay on a device or on a cluster have a file
each, as have sums by features of label vectors, where these hardly repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from mvcca._backend import precision
from mvcca._threads import each
from mvcca.config import get_config
from mvcca.labels import LabelTable
from mvcca.similarity import LabelGram
from mvcca.statistics._accumulate import fold
from mvcca.statistics._cluster import Cluster
from mvcca.statistics._moments import column_slices
from mvcca.statistics._rows_by_code import add_rows, grouping
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
        Precision of the rows.

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
            NumPy, CSR or device blocks of float32 or float64, in memory or not.
        table : LabelTable
            Distinct label vectors.
        codes : mapping of str to ndarray of int
            For every row of each view, the line of its label vector in the table.
        weights : ndarray, shape (n_objects,), optional
            How often each object counts.
        """
        own = {
            name: np.ones(len(codes[name])) if weights is None else weights[views.objects(name)]
            for name in views.names
        }
        counts = np.column_stack(
            [np.bincount(codes[name], own[name], len(table)) for name in views.names]
        )
        dtype = np.result_type(*(precision(block) for _, block in views.items()))
        from mvcca.statistics._label_sums_on_device import DeviceLabelSums, fits_on_device

        if get_config().checkpoint is None and fits_on_device(views):
            return DeviceLabelSums.on(views, table, codes, own, counts, dtype)
        if get_config().checkpoint is None and (cluster := Cluster.for_rows_of(views)) is not None:
            from mvcca.statistics._label_sums_on_cluster import ClusterLabelSums

            return ClusterLabelSums.on(cluster, views, table, codes, own, counts, dtype)
        sums = np.zeros((len(table), views.shape[1]))
        for name, columns in column_slices(views.widths).items():
            one = Views({name: views[name]})
            fold(add_rows, sums[:, columns], one, codes[name], own[name], on_device=True)
        return cls(table, views.widths, counts, sums, dtype)

    def __add__(self, other: LabelSums) -> LabelSums:
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        table, lines = self.table.merge(other.table)
        merge = grouping(lines, len(table), np.ones(len(lines)))
        return LabelSums(
            table,
            self.widths,
            merge @ np.concatenate([self.counts, other.counts]),
            merge @ np.concatenate([self.sums, other.sums]),
            np.promote_types(self.dtype, other.dtype),
        )

    def to_host(self) -> LabelSums:
        """The same with sums in this process."""
        return self

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

    def deviations(
        self, mean: Mapping[str, np.ndarray] | None = None, dtype: DTypeLike = np.float64
    ) -> np.ndarray:
        """Feature sums about a mean (the plain one), over each view's number of rows; (U, D)."""
        mean = self.mean() if mean is None else mean
        deviations = np.empty(self.sums.shape, dtype=dtype)
        for p, (name, columns) in enumerate(column_slices(self.widths).items()):
            deviate(self.sums[:, columns], self.counts[:, p], mean[name], deviations[:, columns])
        return deviations

    def covariance(
        self,
        gram: LabelGram,
        mean: Mapping[str, np.ndarray] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> np.ndarray:
        """The label-weighted covariance Ψ about a mean (the plain one), all blocks, (D, D).

        Products of sums are taken in `dtype`, float64 or float32, and added up in float64.
        """
        return gram.quadratic(self.deviations(mean, dtype))

    def row_weights(self, gram: LabelGram, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Mean over the rows of each view of their similarity to a label vector, (U, n_views)."""
        return gram.times((self.counts / self.counts.sum(axis=0)).astype(dtype))


def deviate(sums: np.ndarray, counts: np.ndarray, mean: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Out = (sums - counts meanᵀ) / Σ counts, a few rows at a time while they are cached."""
    total = counts.sum()

    def block(rows: slice) -> np.ndarray:
        values = counts[rows, None] * mean
        np.subtract(sums[rows], values, out=values)
        values /= total
        out[rows] = values
        return np.maximum(values.max(axis=0), -values.min(axis=0))

    starts = range(0, len(sums), _CACHED_ROWS)
    largest = np.max(each(block, [slice(start, start + _CACHED_ROWS) for start in starts]), axis=0)
    # What adding up many times the same number leaves is rounding, not variation.
    rounding = np.finfo(np.float64).eps * counts.max() * np.abs(mean)
    out[:, largest <= rounding] = 0
    return out
