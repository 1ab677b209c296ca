"""Counts, means and centred scatter of the rows: all that CCA and its kin ask of the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from threading import local
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse import issparse

from mvcca._backend import in_one_place, is_device_array, namespace, promoted, to_host
from mvcca._threads import one_by_one
from mvcca.config import block_size, get_config
from mvcca.statistics._accumulate import accumulate
from mvcca.statistics._blocks import in_precision
from mvcca.statistics._device_scatter import device_scatter
from mvcca.statistics._read_ahead import uses_device
from mvcca.statistics._sparse_rows import shifted
from mvcca.views import Views, take_rows

# A centred column this small against its mean is rounding, not variation.
_ROUNDING = 32 * np.finfo(np.float64).eps

_STEP = 16  # every so many rows of a piece tell about where its mean is
_SHIFTED = 0.5  # share of the squares about that place above which the true mean is taken instead

_DEVICE_BLOCKS = 32  # of the least size, together
_MEMORY_BLOCKS = 32

_PIECE_BYTES = 8 * 2**20  # of rows, centred and multiplied by one thread while they are in cache
_STRIP_BYTES = 2**16  # of a product of few rows: so little is had without asking the system,
_STRIP_ROWS = 16  # but no fewer than these
_PIECE_ROWS = 2**14  # added up in float32 before float64 takes over


@dataclass(frozen=True, eq=False)
class Moments:
    """Counts, means and scatter of views, over the objects that each pair of views shares.

    For views p and q, over the objects seen in both (n_pq of them, or the sum of their weights),

        scatter_pq = Σ_a w_a (x_p^a - m_p|q) (x_q^a - m_q|p)ᵀ,

    with m_p|q the mean of view p over the objects that q shows too. Scatter is centred within each
    block of rows and blocks are merged by the pairwise update of Chan et al. [1]_, never through
    E[xxᵀ] - mmᵀ. Products are added up in float64, whatever precision they are taken in.

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
        """Moments of views, taken in row blocks of bounded size.

        Parameters
        ----------
        views : Views
            NumPy, CSR or device blocks of float32 or float64, in memory or not.
        weights : ndarray, shape (n_objects,), optional
            How often each object counts.
        dtype : {float64, float32}, default=float64
            Precision of products. float32 halves the time of dense float32 rows, and suffices for
            well-conditioned views; sums of products are float64 in any case.
        """
        if _is_one_block(views):
            return _moments_of_block(views, weights, dtype)
        start, least = cls.of_nothing(views.widths), _least_rows(views.widths)
        if uses_device(views):  # from where (D, D) scatter has a long way home
            least *= _DEVICE_BLOCKS
        elif not views.is_lazy and _are_dense_pairs(views):  # which are cut into pieces anyway
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
        """Moments of what `features` makes of views, of which a block at a time is in memory.

        Parameters
        ----------
        features : callable
            Takes a block of rows, as `Views` in memory, and gives as many rows of `widths`.
        views, weights
            As in `of`.
        widths : dict of str to int
            Number of features of each view.
        on_device : bool, default=False
            Whether `features` takes and returns device blocks; if not, they are copied to the host.
        dtype : {float64, float32}, default=float64
            Precision of products, and of float32 rows before `features` takes them.
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
        """Moments of no rows at all: what others are added to."""
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
                    _add_product(scatter[in_p, in_q], weight * shift[[q], in_p], shift[[p], in_q])
        return Moments(self.widths, counts, means, scatter)

    @property
    def _columns(self) -> list[slice]:
        return list(column_slices(self.widths).values())

    def mean(self) -> dict[str, np.ndarray]:
        """The mean of every view over all objects seen in it."""
        return {
            name: self.means[p, columns]
            for p, (name, columns) in enumerate(column_slices(self.widths).items())
        }

    def scatter_about_means(self) -> np.ndarray:
        """Scatter about the mean of each view over *all* its objects, shape (D, D)."""
        scatter = self.scatter.copy()
        own = np.concatenate(list(self.mean().values()))
        for p, in_p in enumerate(self._columns):
            for q, in_q in enumerate(self._columns):
                shift_p, shift_q = self.means[q, in_p] - own[in_p], self.means[p, in_q] - own[in_q]
                if p != q and (np.any(shift_p) or np.any(shift_q)):
                    _add_product(
                        scatter[in_p, in_q], self.counts[p, q] * shift_p[None], shift_q[None]
                    )
        counts = np.repeat(np.diag(self.counts), list(self.widths.values()))
        _clear_rounding(scatter, own, counts)
        return scatter

    def covariance(self) -> np.ndarray:
        """Covariances Σ_pq = scatter_pq / (n_pq - 1), (D, D); zero where nothing is shared."""
        freedom = np.maximum(self.counts - 1, 1e-300)
        covariance = self.scatter_about_means()
        for p, in_p in enumerate(self._columns):
            for q, in_q in enumerate(self._columns):
                covariance[in_p, in_q] /= freedom[p, q]
        return covariance


def column_slices(widths: dict[str, int]) -> dict[str, slice]:
    """Where each view's columns stand when all views stand side by side."""
    ends = np.cumsum([0, *widths.values()])
    return {
        name: slice(int(start), int(end))
        for name, start, end in zip(widths, ends[:-1], ends[1:], strict=True)
    }


def _is_one_block(views: Views) -> bool:
    """Whether views are a single block of arrays in host memory, with nothing to report or save."""
    config = get_config()
    return (
        not (views.is_lazy or config.device or config.checkpoint or config.progress)
        and len(views) <= block_size(8 * views.shape[1])
        and not any(is_device_array(block) for _, block in views.items())
    )


def _least_rows(widths: dict[str, int]) -> int:
    """Of a block: each adds (D, D) scatter, which costs as much as the product of many rows."""
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
        means[:], scatter = _paired_scatter(views, weights, dtype)
    else:
        scatter = np.zeros((n_features, n_features))
        views, shift = _shifted(in_precision(views, dtype))
        for p, q, A, B, w in _shared_rows(views, weights):
            in_p, in_q = list(columns.values())[p], list(columns.values())[q]
            means[q, in_p], means[p, in_q], scatter[in_p, in_q] = _pair_scatter(A, B, w)
            scatter[in_q, in_p] = scatter[in_p, in_q].T
        means += shift
    widths = list(views.widths.values())
    own = np.concatenate([means[p, c] for p, c in enumerate(columns.values())])
    _clear_rounding(scatter, own, np.repeat(np.diag(counts), widths))
    return Moments(views.widths, counts, means, scatter)


def _are_dense_pairs(views: Views) -> bool:
    return views.is_paired and not any(issparse(block) for _, block in views.items())


def _paired_scatter(
    views: Views, weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and scatter (D, D) of paired dense views, where they are."""
    blocks = in_one_place([block for _, block in views.items()])
    if blocks is None:
        return _dense_scatter(views, weights, dtype)
    blocks = [promoted(block, dtype) for block in blocks]
    X = blocks[0] if len(blocks) == 1 else namespace(blocks[0]).concat(blocks, axis=1)
    mean, _, scatter = device_scatter(X, X, weights)
    return mean, scatter


def _dense_scatter(
    views: Views, weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and scatter (D, D) of paired dense views, from pieces that stay in cache."""
    blocks = list(dict(views.items()).values())
    dtype = np.result_type(dtype, *blocks)
    width = views.shape[1]
    # Of few rows the product itself costs less than what is added to the sum of all.
    n_rows = max(min(_PIECE_BYTES // (width * dtype.itemsize), _PIECE_ROWS), 2 * width)
    n_pieces = max(1, ceil(len(views) / n_rows - 0.1))  # a tenth is no piece of its own
    edges = [len(views) * number // n_pieces for number in range(n_pieces + 1)]
    pieces = [slice(start, stop) for start, stop in pairwise(edges)]
    w = np.ones(len(views), dtype=dtype) if weights is None else weights.astype(dtype)
    totals = np.array([w[rows].sum(dtype=np.float64) for rows in pieces])
    buffers = local()  # one of each thread, for all its pieces

    def multiplied(rows: slice, shifts: np.ndarray) -> tuple[np.ndarray, ...]:
        if not hasattr(buffers, "piece"):
            buffers.piece = np.empty((-(-len(views) // n_pieces), width + 1), dtype)
        centred = buffers.piece[: rows.stop - rows.start]
        end = 0
        for block in blocks:
            start, end = end, end + block.shape[1]
            np.subtract(block[rows], shifts[start:end], out=centred[:, start:end])
        centred[:, -1] = 1
        if weights is not None:
            centred *= np.sqrt(w[rows])[:, None]
        product = centred.T @ centred
        # The mean of centred rows: what the sample, and the precision of the data, told wrongly.
        residue = product[-1, :-1] / (product[-1, -1] or 1)
        return shifts, residue, product[:-1, :-1]

    def piece(rows: slice) -> tuple[np.ndarray, ...]:
        # However rows are ordered, a sample's mean is within √_STEP deviations of that of all.
        some = slice(rows.start, rows.stop, _STEP)
        share = _share(w[some])
        result = multiplied(rows, np.concatenate([share @ block[some] for block in blocks]))
        shifts, residue, product = result
        shifted, squares = w[rows].sum() * residue**2, np.diag(product)
        varies = squares - shifted > 32 * np.finfo(dtype).eps * shifted
        if np.any(varies & (shifted > _SHIFTED * squares)):
            return multiplied(rows, shifts + residue)
        return result

    scatter, shifts, residues = np.zeros((width, width)), [], []
    for shift, left, product in one_by_one(piece, pieces):
        shifts.append(shift)
        residues.append(left)
        scatter += product
    residue = np.array(residues, dtype=np.float64)
    means = np.array(shifts, dtype=np.float64) + residue
    mean = _share(totals) @ means
    apart = means - mean
    if len(pieces) > 1:
        _add_product(scatter, totals[:, None] * apart, apart)
    subtracted = totals @ residue**2
    if np.any(subtracted > np.finfo(dtype).eps * np.diag(scatter)):
        _add_product(scatter, -totals[:, None] * residue, residue)
        constant = np.diag(scatter) <= 32 * np.finfo(dtype).eps * subtracted
        scatter[constant] = scatter[:, constant] = 0
    return mean, scatter


def _shifted(views: Views) -> tuple[Views, np.ndarray]:
    """Views whose sparse blocks can be centred by algebra, and what was subtracted, (D,)."""
    blocks, shifts = {}, []
    for name, block in views.items():
        blocks[name], shift = shifted(block)
        shifts.append(shift)
    return views.replace(blocks), np.concatenate(shifts)


def _shared_rows(
    views: Views, weights: np.ndarray | None
) -> Iterator[tuple[int, int, Any, Any, np.ndarray | None]]:
    """For every pair of views that share objects: their rows and weights over those objects."""
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


def _pair_scatter(A: Any, B: Any, weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Means of A and of B and their centred scatter; sparse blocks are centred by algebra."""
    if issparse(A) or issparse(B):  # which stay at home
        A, B = to_host(A), to_host(B)
    elif (blocks := in_one_place([A, B])) is not None:
        return device_scatter(blocks[0], blocks[1], weights)
    mean_a, mean_b = _mean(A, weights), _mean(B, weights)
    total = A.shape[0] if weights is None else weights.sum()
    if issparse(A) and issparse(B):
        weighted = A if weights is None else A.multiply(weights[:, None]).tocsr()
        scatter = np.asarray((weighted.T @ B).toarray())
        return mean_a, mean_b, scatter - np.outer(total * mean_a, mean_b)
    if issparse(B):
        mean_b, mean_a, scatter = _pair_scatter(B, A, weights)
        return mean_a, mean_b, scatter.T
    centred_b = B - mean_b
    if weights is not None:
        centred_b = centred_b * weights[:, None]
    if issparse(A):  # Σ (a - m) bᵀ = Σ a bᵀ, since b is centred
        return mean_a, mean_b, np.asarray(A.T @ centred_b)
    return mean_a, mean_b, (A - mean_a).T @ centred_b


def _add_product(scatter: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """In place, scatter + Aᵀ B of a few rows; by strips, for which memory need not be found."""
    height = max(_STRIP_ROWS, _STRIP_BYTES // (8 * scatter.shape[1]))
    for start in range(0, len(scatter), height):
        rows = slice(start, start + height)
        scatter[rows] += A[:, rows].T.dot(B)  # of one row, faster than @


def _clear_rounding(scatter: np.ndarray, mean: np.ndarray, counts: np.ndarray) -> None:
    """In place, no scatter for columns whose scatter is what rounding left of a constant."""
    constant = np.diag(scatter) <= _ROUNDING**2 * counts * mean**2
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0


def _mean(X: Any, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:  # SciPy's mean of a sparse matrix divides before it adds
        return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1) / X.shape[0]
    return np.asarray(X.T @ _share(weights)).reshape(-1)


def _share(weights: np.ndarray) -> np.ndarray:
    """Weights that add up to one, or to zero where all are zero."""
    total = weights.sum(dtype=np.float64)
    return weights / weights.dtype.type(total) if total else weights
