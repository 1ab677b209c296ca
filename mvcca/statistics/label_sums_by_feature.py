"""Sums of rows times features of their labels: approximate, without pairs of label vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from mvcca.blocks import as_block
from mvcca.machine.config import block_slices
from mvcca.statistics.moments import column_slices
from mvcca.statistics.passes import accumulate, row_bytes_of
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView

_LEAST_ROWS = 256  # of a block: adding (m, D) sums costs as much as the products of many rows


class LabelFeatures(Protocol):
    """A map of label vectors to features whose inner products approximate their similarity."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    def __call__(self, vectors: np.ndarray, /) -> np.ndarray:
        """Φ of dense label vectors (n, n_labels): float64, (n, n_features)."""


@dataclass(frozen=True, eq=False)
class LabelFeatureSums:
    """Sums of the centred rows of each view, times features Φ of their label vectors.

    With Φ(z)ᵀΦ(z') ≈ g(z, z'), the double sum over pairs of rows factorises,

        Ψ_pq ≈ S_pᵀ S_q / (m_p m_q)   with   S_p = Σ_a Φ(z_p^a) (x_p^a - mean_p)ᵀ,

    so that memory depends on the number of features, not of distinct label vectors. Rows are
    centred within each block, and blocks are merged as in `Moments`. Products are in the precision
    of the data, and their sums in float64.

    Attributes
    ----------
    widths : dict of str to int
        Number of features of each view; their sum is D.
    counts : ndarray, shape (n_views,)
        Number of rows (sum of weights) of each view.
    means : ndarray, shape (D,)
        Mean of each view over its rows, views side by side.
    feature_sums : ndarray, shape (m, n_views)
        Σ_a Φ(z_p^a) of each view p.
    sums : ndarray, shape (m, D)
        S_p, views side by side.

    See Also
    --------
    LabelSums : Exact sums per distinct label vector.
    """

    widths: dict[str, int]
    counts: np.ndarray
    means: np.ndarray
    feature_sums: np.ndarray
    sums: np.ndarray

    @classmethod
    def of(
        cls,
        views: Views,
        labels: Labels | LabelsByView,
        features: LabelFeatures,
        weights: np.ndarray | None = None,
        dtype: DTypeLike = np.float64,
    ) -> LabelFeatureSums:
        """Compute the sums over views; label features of one block of rows at a time are in memory.

        Parameters
        ----------
        views : Views
            NumPy or CSR blocks of float32 or float64, in memory or not.
        labels : Labels or LabelsByView
            Labels of the objects or of the rows of each view, in the columns of `features`.
        features : LabelFeatures
            Φ. Statistics with the same Φ add.
        weights : ndarray, shape (n_objects,), optional
            Weight of each object.
        dtype : {float64, float32}, default=float64
            Precision of products.
        """
        labels = LabelsByView.of(views, labels)
        lines = np.full(views.seen.shape, -1, dtype=np.intp)
        for v, name in enumerate(views.names):
            lines[views.seen[:, v], v] = labels.codes[name]

        m, n_views = features.n_features, len(views.names)
        row_bytes = row_bytes_of(views)
        row_bytes += 8 * n_views * (m + labels.distinct.n_labels)
        start = cls.of_nothing(views.widths, m)
        return accumulate(
            partial(_sums_of_block, labels.distinct.vectors, features, np.dtype(dtype)),
            start,
            views,
            lines,
            weights,
            at_least=_LEAST_ROWS,
            row_bytes=row_bytes,
        )

    @classmethod
    def of_nothing(cls, widths: dict[str, int], n_label_features: int) -> LabelFeatureSums:
        """Return the sums over zero rows."""
        n_views, n_features = len(widths), sum(widths.values())
        return cls(
            dict(widths),
            np.zeros(n_views),
            np.zeros(n_features),
            np.zeros((n_label_features, n_views)),
            np.zeros((n_label_features, n_features)),
        )

    def __add__(self, other: LabelFeatureSums) -> LabelFeatureSums:
        if self.widths != other.widths or len(self.sums) != len(other.sums):
            raise ValueError(
                f"Expected {len(self.sums)} label features and views of widths {self.widths}, got "
                f"{len(other.sums)} and {other.widths}."
            )
        if not self.counts.any():
            return other
        counts = self.counts + other.counts
        with np.errstate(invalid="ignore"):  # 0 / 0 for a view without rows
            share = np.nan_to_num(other.counts / counts)
        means = self.means.copy()
        sums = self.sums + other.sums
        for p, columns in enumerate(column_slices(self.widths).values()):
            # Each part is about its own mean; the sum is about the common one.
            shift = other.means[columns] - self.means[columns]
            means[columns] += share[p] * shift
            moved = (1 - share[p]) * other.feature_sums[:, p] - share[p] * self.feature_sums[:, p]
            sums[:, columns] += np.outer(moved, shift)
        feature_sums = self.feature_sums + other.feature_sums
        return LabelFeatureSums(self.widths, counts, means, feature_sums, sums)

    def to_host(self) -> LabelFeatureSums:
        """Return the statistic itself, which is in host memory."""
        return self

    def objects_by_view(self) -> dict[str, float]:
        """Number of rows (sum of weights) of each view."""
        return dict(zip(self.widths, self.counts.tolist(), strict=True))

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over its rows."""
        return {name: self.means[columns] for name, columns in column_slices(self.widths).items()}

    def covariance(self) -> np.ndarray:
        """Label-weighted covariance Ψ of all pairs of views, (D, D)."""
        deviations = self.sums / np.repeat(self.counts, list(self.widths.values()))
        return deviations.T @ deviations

    def row_weights(self, labels: Labels, features: LabelFeatures) -> np.ndarray:
        """Mean similarity of the rows of each view to each label vector, (U, n_views)."""
        means = self.feature_sums / self.counts
        weights = np.empty((labels.n_distinct, len(self.counts)))
        row_bytes = 8 * (features.n_features + labels.n_labels)
        for lines in block_slices(labels.n_distinct, row_bytes):
            weights[lines] = features(_floats(labels.vectors[lines])) @ means
        return weights


def _sums_of_block(
    vectors: Any,
    features: LabelFeatures,
    dtype: np.dtype,
    views: Views,
    lines: np.ndarray,
    weights: np.ndarray | None,
) -> LabelFeatureSums:
    """Sums over rows in memory; vectors[lines[a, p]] labels object a in view p."""
    views = views.promoted(dtype)
    distinct = np.unique(lines[views.seen])
    of_distinct = features(_floats(vectors[distinct]))
    result = LabelFeatureSums.of_nothing(views.widths, features.n_features)
    for p, (name, columns) in enumerate(column_slices(views.widths).items()):
        rows, seen = views.blocks[name], views.seen[:, p]
        if not seen.any():
            continue
        w = np.ones(rows.shape[0]) if weights is None else weights[seen]
        low, high = rows.extremes()
        # The computed mean of equal numbers may be off by a rounding.
        never_varies = low == high
        mean = np.where(never_varies, low, rows.column_means(w))
        F = of_distinct[np.searchsorted(distinct, lines[seen, p])]
        F *= w[:, None]
        result.counts[p] = w.sum()
        result.means[columns] = mean
        result.feature_sums[:, p] = F.sum(axis=0)
        result.sums[:, columns] = rows.centred_cross(F, mean).T
        result.sums[:, columns][:, never_varies] = 0
    return result


def _floats(vectors: Any) -> np.ndarray:
    return as_block(vectors).dense().matrix.astype(float, copy=False)
