"""Row counts and feature sums per distinct label vector, for label-weighted covariances.

Feature sums are an array in host memory, or stay on a device or on the workers of a Dask cluster
(`_sums_on_device`, `_sums_on_cluster`). If label vectors rarely repeat, `LabelFeatureSums` is the
approximation to use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mvcca.blocks import grouping
from mvcca.machine.config import get_config, is_plain
from mvcca.similarity import LabelGram
from mvcca.statistics._rows_by_code import add_rows, deviate
from mvcca.statistics._sums_on_cluster import ClusterSums
from mvcca.statistics._sums_on_device import DeviceSums
from mvcca.statistics.moments import column_slices
from mvcca.statistics.passes import fold
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView


@dataclass(frozen=True, eq=False)
class LabelSums:
    """Number of rows of each view per distinct label vector, and the sum of their features.

    The label similarity g of two rows depends on their label vectors only, so that

        Ψ_pq = 1 / (m_p m_q) Σ_a Σ_b g(z_p^a, z_q^b) x_p^a x_q^bᵀ = S_pᵀ G S_q / (m_p m_q)

    (eq. (4) of [1]_) with G over *distinct* label vectors and S_p the feature sums. This is exact
    and avoids the double sum over pairs of rows.

    Attributes
    ----------
    labels : Labels
        The U distinct label vectors of all views.
    widths : dict of str to int
        Number of features of each view; their sum is D.
    counts : ndarray, shape (U, n_views)
        Number of rows (sum of weights) of each view with a label vector.
    sums : ndarray of float64, shape (U, D)
        Sum of their features, views side by side.
    dtype : numpy.dtype
        Precision of the rows.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """

    labels: Labels
    widths: dict[str, int]
    counts: np.ndarray
    sums: np.ndarray
    dtype: np.dtype

    @classmethod
    def of(
        cls,
        views: Views,
        labels: Labels | LabelsByView,
        weights: np.ndarray | None = None,
    ) -> LabelSums:
        """Compute the label sums of views.

        Parameters
        ----------
        views : Views
            NumPy, CSR or device blocks of float32 or float64, in memory or not.
        labels : Labels or LabelsByView
            Labels of the objects, or of the rows of each view.
        weights : ndarray, shape (n_objects,), optional
            Weight of each object.
        """
        labels = LabelsByView.of(views, labels)
        distinct, codes = labels.distinct, labels.codes
        own = {
            name: np.ones(len(codes[name])) if weights is None else weights[views.objects(name)]
            for name in views.names
        }
        counts = np.column_stack(
            [np.bincount(codes[name], own[name], len(distinct)) for name in views.names]
        )
        dtype = np.result_type(*(block.dtype for block in views.blocks.values()))
        if not is_plain(views) and get_config().checkpoint is None:
            for kind in (DeviceSums, ClusterSums):
                if (stored := kind.of(views, len(distinct), codes, own)) is not None:
                    return StoredLabelSums(distinct, views.widths, counts, dtype, stored)
        sums = np.zeros((len(distinct), views.shape[1]))
        for name, columns in column_slices(views.widths).items():
            one = Views({name: views[name]})
            fold(add_rows, sums[:, columns], one, codes[name], own[name], on_device=True)
        return cls(distinct, views.widths, counts, sums, dtype)

    def __add__(self, other: LabelSums) -> LabelSums:
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        rows = Labels.concatenate([self.labels, other.labels])
        merge = grouping(rows.codes, rows.n_distinct, np.ones(len(rows)))
        return LabelSums(
            rows.distinct,
            self.widths,
            merge @ np.concatenate([self.counts, other.counts]),
            merge @ np.concatenate([self.sums, other.sums]),
            np.promote_types(self.dtype, other.dtype),
        )

    def to_host(self) -> LabelSums:
        """Return the same statistic with its sums in host memory."""
        return self

    def objects_by_view(self) -> dict[str, float]:
        """Number of rows (sum of weights) of each view."""
        return dict(zip(self.widths, self.counts.sum(axis=0).tolist(), strict=True))

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over its rows."""
        totals = self.counts.sum(axis=0)
        return {
            name: self.sums[:, columns].sum(axis=0) / total
            for (name, columns), total in zip(
                column_slices(self.widths).items(), totals, strict=True
            )
        }

    def averaged(self) -> LabelSums:
        """Return label sums with one row per label vector and view: the mean of its rows."""
        present = self.counts > 0
        # Sums of labels without rows are 0, and 0 / 1e-300 is 0.
        counts = np.repeat(np.maximum(self.counts, 1e-300), list(self.widths.values()), axis=1)
        return replace(self, counts=present.astype(float), sums=self.sums / counts)

    def deviations(
        self, mean: Mapping[str, np.ndarray] | None = None, dtype: DTypeLike = np.float64
    ) -> np.ndarray:
        """Feature sums about a mean, divided by each view's number of rows, (U, D)."""
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
        """Label-weighted covariance Ψ of all pairs of views, (D, D).

        Parameters
        ----------
        gram : LabelGram
            Similarity of the label vectors.
        mean : mapping of str to ndarray, optional
            Center of each view; by default the mean of its rows.
        dtype : {float64, float32}, default=float64
            Precision of products; their sums are float64.
        """
        return gram.quadratic(self.deviations(mean, dtype))

    def row_weights(self, gram: LabelGram, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Mean similarity of the rows of each view to each label vector, (U, n_views)."""
        return gram.times((self.counts / self.counts.sum(axis=0)).astype(dtype))


class StoredLabelSums(LabelSums):
    """`LabelSums` whose feature sums stay on a device or a cluster; `sums` copies them to the host.

    A pickle, a copy and a sum with other label sums are plain `LabelSums`.
    """

    stored: DeviceSums | ClusterSums

    def __init__(
        self,
        labels: Labels,
        widths: dict[str, int],
        counts: np.ndarray,
        dtype: np.dtype,
        stored: DeviceSums | ClusterSums,
    ) -> None:
        # The base class is frozen.
        own = {"labels": labels, "widths": widths, "counts": counts, "dtype": dtype}
        self.__dict__.update(own, stored=stored)

    @cached_property
    def sums(self) -> np.ndarray:
        """Feature sums per label vector, (U, D), in host memory."""
        return np.concatenate(self.stored.to_host(), axis=1)

    def to_host(self) -> LabelSums:
        """Return the same statistic with its sums in host memory."""
        return LabelSums(self.labels, self.widths, self.counts, self.sums, self.dtype)

    def __reduce__(self) -> tuple[type[LabelSums], tuple[Any, ...]]:
        return LabelSums, (self.labels, self.widths, self.counts, self.sums, self.dtype)

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over its rows."""
        parts = zip(self.widths, self.stored.totals(), self.counts.sum(axis=0), strict=True)
        return {name: total / count for name, total, count in parts}

    def averaged(self) -> LabelSums:
        """Return label sums with one row per label vector and view: the mean of its rows."""
        if isinstance(self.stored, DeviceSums):
            return self.to_host().averaged()
        present = (self.counts > 0).astype(float)
        averages = self.stored.averaged(self.counts)
        return StoredLabelSums(self.labels, self.widths, present, self.dtype, averages)

    def covariance(
        self,
        gram: LabelGram,
        mean: Mapping[str, np.ndarray] | None = None,
        dtype: DTypeLike = np.float64,
    ) -> np.ndarray:
        """Label-weighted covariance Ψ of all pairs of views, (D, D), as `LabelSums.covariance`."""
        mean = self.mean() if mean is None else mean
        means = [mean[name] for name in self.widths]
        return self.stored.covariance(gram, self.counts, means, np.dtype(dtype))

    def row_weights(self, gram: LabelGram, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Mean similarity of the rows of each view to each label vector, (U, n_views)."""
        shares = (self.counts / self.counts.sum(axis=0)).astype(dtype)
        return gram.times(self.stored.placed(shares))
