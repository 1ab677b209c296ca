"""Counts, means and centred scatter of the rows: the statistic of CCA and related methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate as accumulated
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from mvcca._backend import is_device_array
from mvcca.config import block_size, get_config
from mvcca.passes import accumulate, in_precision, uses_device
from mvcca.statistics._scatter import add_product, pair_scatter, paired_scatter
from mvcca.statistics._sparse_rows import shifted
from mvcca.views import Views, take_rows

ROUNDING = 32 * np.finfo(np.float64).eps  # a deviation this small against its mean is rounding

_DEVICE_BLOCKS = 32  # times as many rows: scatter is copied to the host for every block
_MEMORY_BLOCKS = 32  # times as many rows: they are cut into pieces later


@dataclass(frozen=True, eq=False)
class Moments:
    """Counts, means and scatter of views, over the objects that each pair of views shares.

    For views p and q, over the objects seen in both (n_pq of them, or the sum of their weights),

        scatter_pq = Σ_a w_a (x_p^a - m_p|q) (x_q^a - m_q|p)ᵀ,

    with m_p|q the mean of view p over the objects that are seen in view q as well. Scatter is
    centred within each block of rows, and blocks are merged by the pairwise update of Chan et al.
    [1]_; the cancellation of E[xxᵀ] - mmᵀ is avoided. Sums of products are float64 in any precision
    of the products.

    Attributes
    ----------
    widths : dict of str to int
        Number of features D_p of each view; their sum is D.
    counts : ndarray, shape (n_views, n_views)
        Number of objects (sum of weights) that a pair of views shares.
    means : ndarray, shape (n_views, D)
        Row q holds the mean of each view over the objects seen in that view and in view q.
    scatter : ndarray, shape (D, D)
        Centred scatter, block by block.

    References
    ----------
    .. [1] Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
       Sample Variances", 1979.
    """

    widths: dict[str, int]
    counts: np.ndarray
    means: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(
        cls, views: Views, weights: np.ndarray | None = None, dtype: DTypeLike = np.float64
    ) -> Moments:
        """Compute the moments of views, in blocks of rows of bounded size.

        Parameters
        ----------
        views : Views
            NumPy, CSR or device blocks of float32 or float64, in memory or not.
        weights : ndarray, shape (n_objects,), optional
            Weight of each object.
        dtype : {float64, float32}, default=float64
            Precision of products. float32 halves the time for dense float32 rows, and suffices for
            well-conditioned views.
        """
        if _is_one_block(views):
            return _moments_of_block(views, weights, dtype)
        start, least = cls.of_nothing(views.widths), _least_rows(views.widths)
        if uses_device(views):
            least *= _DEVICE_BLOCKS
        elif not views.is_lazy and _are_dense_pairs(views):
            least *= _MEMORY_BLOCKS
        of_block = partial(_moments_of_block, dtype=np.dtype(dtype))
        return accumulate(of_block, start, views, weights, at_least=least, on_device=True)

    @classmethod
    def of_features(
        cls,
        features: Callable[[Views], Views],
        views: Views,
        widths: dict[str, int],
        weights: np.ndarray | None = None,
        on_device: bool = False,
        dtype: DTypeLike = np.float64,
    ) -> Moments:
        """Compute the moments of features of views, of which one block at a time is in memory.

        Parameters
        ----------
        features : callable
            Takes a block of rows as `Views` in memory, and returns as many rows of `widths`.
        views, weights
            As in `of`.
        widths : dict of str to int
            Number of features of each view.
        on_device : bool, default=False
            Whether `features` takes and returns device blocks; if not, they are copied to the host.
        dtype : {float64, float32}, default=float64
            Precision of products, and of float32 rows that are passed to `features`.
        """
        return accumulate(
            partial(_moments_of_features, features, dtype=np.dtype(dtype)),
            cls.of_nothing(widths),
            views,
            weights,
            at_least=_least_rows(widths),
            row_bytes=8 * sum(widths.values()),
            on_device=on_device,
        )

    @classmethod
    def of_nothing(cls, widths: dict[str, int]) -> Moments:
        """Return the moments of zero rows."""
        n_views, n_features = len(widths), sum(widths.values())
        return cls(
            dict(widths),
            np.zeros((n_views, n_views)),
            np.zeros((n_views, n_features)),
            np.zeros((n_features, n_features)),
        )

    def __add__(self, other: Moments) -> Moments:
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        if not self.counts.any():
            return other
        counts = self.counts + other.counts
        with np.errstate(invalid="ignore"):  # views that share no object: 0 / 0
            share = np.nan_to_num(other.counts / counts)
        columns = self._columns
        shift = other.means - self.means
        means = self.means + shift * np.repeat(share, list(self.widths.values()), axis=1)
        scatter = self.scatter + other.scatter
        for p, in_p in enumerate(columns):
            for q, in_q in enumerate(columns):
                weight = self.counts[p, q] * share[p, q]
                if weight:
                    add_product(scatter[in_p, in_q], weight * shift[[q], in_p], shift[[p], in_q])
        return Moments(self.widths, counts, means, scatter)

    @property
    def _columns(self) -> list[slice]:
        return list(column_slices(self.widths).values())

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over all objects seen in it."""
        return {
            name: self.means[p, columns]
            for p, (name, columns) in enumerate(column_slices(self.widths).items())
        }

    def scatter_about_means(self) -> np.ndarray:
        """Scatter about the mean of each view over *all* its objects, (D, D)."""
        scatter = self.scatter.copy()
        own = np.concatenate(list(self.mean().values()))
        for p, in_p in enumerate(self._columns):
            for q, in_q in enumerate(self._columns):
                shift_p, shift_q = self.means[q, in_p] - own[in_p], self.means[p, in_q] - own[in_q]
                if p != q and (np.any(shift_p) or np.any(shift_q)):
                    add_product(
                        scatter[in_p, in_q], self.counts[p, q] * shift_p[None], shift_q[None]
                    )
        counts = np.repeat(np.diag(self.counts), list(self.widths.values()))
        _clear_rounding(scatter, own, counts)
        return scatter

    def covariance(self) -> np.ndarray:
        """Covariances Σ_pq = scatter_pq / (n_pq - 1), (D, D); zero if no object is shared."""
        freedom = np.maximum(self.counts - 1, 1e-300)
        covariance = self.scatter_about_means()
        for p, in_p in enumerate(self._columns):
            for q, in_q in enumerate(self._columns):
                covariance[in_p, in_q] /= freedom[p, q]
        return covariance


def column_slices(widths: dict[str, int]) -> dict[str, slice]:
    """The columns of each view in a matrix of all views side by side."""
    edges = pairwise(accumulated(widths.values(), initial=0))
    return {name: slice(*edge) for name, edge in zip(widths, edges, strict=True)}


def _is_one_block(views: Views) -> bool:
    """Whether views are one block of arrays in host memory, without checkpoint or progress bar."""
    config = get_config()
    return (
        not (views.is_lazy or config.device or config.checkpoint or config.progress)
        and len(views) <= block_size(8 * views.shape[1])
        and not any(is_device_array(block) for _, block in views.items())
    )


def _least_rows(widths: dict[str, int]) -> int:
    """Minimum rows of a block: adding its (D, D) scatter costs as much as multiplying many rows."""
    return sum(widths.values()) // 4


def _moments_of_features(
    features: Callable[[Views], Views], views: Views, weights: np.ndarray | None, dtype: np.dtype
) -> Moments:
    return _moments_of_block(features(in_precision(views, dtype)), weights, dtype)


def _moments_of_block(
    views: Views, weights: np.ndarray | None, dtype: DTypeLike = np.float64
) -> Moments:
    dtype, columns = np.dtype(dtype), column_slices(views.widths)
    n_features = views.shape[1]
    seen = views.seen.astype(float)
    counts = seen.T @ (seen if weights is None else weights[:, None] * seen)
    means = np.zeros((len(columns), n_features))
    if _are_dense_pairs(views):
        blocks = [block for _, block in views.items()]
        means[:], scatter = paired_scatter(blocks, weights, dtype)
    else:
        scatter = np.zeros((n_features, n_features))
        views, shift = _shifted(in_precision(views, dtype))
        for p, q, A, B, w in _shared_rows(views, weights):
            in_p, in_q = list(columns.values())[p], list(columns.values())[q]
            means[q, in_p], means[p, in_q], scatter[in_p, in_q] = pair_scatter(A, B, w)
            scatter[in_q, in_p] = scatter[in_p, in_q].T
        means += shift
    widths = list(views.widths.values())
    own = np.concatenate([means[p, c] for p, c in enumerate(columns.values())])
    _clear_rounding(scatter, own, np.repeat(np.diag(counts), widths))
    return Moments(views.widths, counts, means, scatter)


def _are_dense_pairs(views: Views) -> bool:
    return views.is_paired and not any(issparse(block) for _, block in views.items())


def _shifted(views: Views) -> tuple[Views, np.ndarray]:
    """Views with sparse blocks that can be centred by algebra, and what was subtracted, (D,)."""
    blocks, shifts = {}, []
    for name, block in views.items():
        blocks[name], shift = shifted(block)
        shifts.append(shift)
    return views.replace(blocks), np.concatenate(shifts)


def _shared_rows(
    views: Views, weights: np.ndarray | None
) -> Iterator[tuple[int, int, Any, Any, np.ndarray | None]]:
    """Rows and weights of the shared objects of every pair of views."""
    names, seen = views.names, views.seen
    for p, name in enumerate(names):
        for q in range(p, len(names)):
            both = seen[:, p] & seen[:, q]
            if not both.any():
                continue
            A, B = views[name], views[names[q]]
            yield (
                p,
                q,
                A if both.sum() == A.shape[0] else take_rows(A, np.flatnonzero(both[seen[:, p]])),
                B if both.sum() == B.shape[0] else take_rows(B, np.flatnonzero(both[seen[:, q]])),
                None if weights is None else weights[both],
            )


def _clear_rounding(scatter: np.ndarray, mean: np.ndarray, counts: np.ndarray) -> None:
    """Set the scatter of constant columns, which is rounding, to zero in place."""
    constant = np.diag(scatter) <= ROUNDING**2 * counts * mean**2
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0
