"""Counts, means and centred scatter of the rows: the statistic of CCA and related methods.

Dense rows are cut into pieces. Each piece is centred by a shift s near its mean m, and multiplied;
with r = m - s,

    Σ w (a - mean_a)(b - mean_b)ᵀ = Σ_pieces [Σ w (a - s_a)(b - s_b)ᵀ - w r_a r_bᵀ
                                              + w (m_a - mean_a)(m_b - mean_b)ᵀ].

Products are in the precision of the rows, and sums over pieces in float64. Sparse rows are centred
by algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate as accumulated
from itertools import combinations, combinations_with_replacement, pairwise
from math import ceil
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import blas

from mvcca.blocks import Block, as_block, in_one_place, namespace, stack, to_host
from mvcca.machine.config import block_size, get_config, is_plain
from mvcca.machine.lapack import mirror_lower
from mvcca.machine.threads import one_by_one
from mvcca.statistics._regression import Regression
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.statistics.passes import accumulate, row_bytes_of
from mvcca.views import Views

_ULPS = 32  # a deviation of so many units in the last place is rounding
ROUNDING = _ULPS * np.finfo(np.float64).eps

_FEATURES_PER_ROW = 4  # adding a (D, D) scatter costs as much as multiplying D / 4 rows
_DEVICE_BLOCKS = 32  # times as many rows: a GPU waits for Python between blocks
_DEVICE_BYTES = 2**27  # of a block in memory, at least
_MEMORY_BLOCKS = 128  # times as many rows: they are cut into pieces later

_SAMPLE_STEP = 16  # every 16th row of a piece estimates its mean
_FAR = 0.5  # share of the sum of squares due to the shift, above which the exact mean is used

_CACHE_BYTES = 8 * 2**20  # of rows, centred and multiplied by one thread while they are in cache
_PIECE_ROWS = 2**14  # at most, since their sums are in the precision of the rows
_FLOAT32 = np.finfo(np.float32)
_LEAST_SQUARES = _FLOAT32.tiny / _FLOAT32.eps**2  # terms below `tiny` do not count against these
_STACKED_ROWS = 4096  # of a piece on a device: few enough for float32 sums, enough to occupy it

_STRIP_BYTES = 2**16  # temporaries of a product of few rows; small ones need no system call
_STRIP_ROWS = 16  # at least


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
    residues : ndarray, shape (n_views, D)
        What rounding took from the means. Where means are far above deviations, differences of
        means would otherwise pass for directions of the rows.
    scatter : ndarray, shape (D, D)
        Centred scatter, block by block.
    regression : Regression or None
        The regression on confounds of which these are the moments of the residuals.

    References
    ----------
    .. [1] Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing
       Sample Variances", 1979.
    """

    widths: dict[str, int]
    counts: np.ndarray
    means: np.ndarray
    residues: np.ndarray
    scatter: np.ndarray
    regression: Regression | None = None

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
        if is_plain(views) and len(views) <= block_size(8 * views.shape[1]):
            return moments_of_block(views, weights, dtype)
        least = views.shape[1] // _FEATURES_PER_ROW
        if views.on_device or get_config().rows_device:
            least *= _DEVICE_BLOCKS
            if not views.is_lazy:
                least = max(least, _DEVICE_BYTES // max(1, row_bytes_of(views)))
        elif views.is_paired and not (views.is_lazy or views.is_sparse):
            least *= _MEMORY_BLOCKS
        of_block = partial(_block_function(), dtype=np.dtype(dtype))
        start = cls.of_nothing(views.widths)
        total = accumulate(of_block, start, views, weights, at_least=least, on_device=True)
        return total.to_host()

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
        n_features = sum(widths.values())
        total = accumulate(
            partial(_moments_of_features, features, _block_function(), dtype=np.dtype(dtype)),
            cls.of_nothing(widths),
            views,
            weights,
            at_least=n_features // _FEATURES_PER_ROW,
            row_bytes=8 * n_features,
            on_device=on_device,
        )
        return total.to_host()

    @classmethod
    def of_nothing(cls, widths: dict[str, int]) -> Moments:
        """Return the moments of zero rows."""
        n_views, n_features = len(widths), sum(widths.values())
        return cls(
            dict(widths),
            np.zeros((n_views, n_views)),
            np.zeros((n_views, n_features)),
            np.zeros((n_views, n_features)),
            np.zeros((n_features, n_features)),
        )

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        if not self.counts.any():
            return other
        counts = self.counts + other.counts
        with np.errstate(invalid="ignore"):  # views that share no object: 0 / 0
            share = np.nan_to_num(other.counts / counts)
        columns = list(column_slices(self.widths).values())
        shift = (other.means - self.means) + (other.residues - self.residues)
        moved = shift * np.repeat(share, list(self.widths.values()), axis=1)
        means, residues = _exact_sum(self.means, moved + self.residues)
        scatter = self.scatter + other.scatter
        if all((own == own[0]).all() for own in (self.counts, counts, shift)):  # paired views
            columns = [slice(None)]
        for p, in_p in enumerate(columns):
            for q, in_q in enumerate(columns):
                weight = self.counts[p, q] * share[p, q]
                if weight:
                    _add_product(scatter[in_p, in_q], weight * shift[[q], in_p], shift[[p], in_q])
        return _without_rounding(Moments(self.widths, counts, means, residues, scatter))

    def __sub__(self, other: Moments) -> Moments:
        """The moments of the other objects, if `other` are those of some of these."""
        with np.errstate(under="ignore"):
            rest = self + replace(other, counts=-other.counts, scatter=-other.scatter)
            rounding = np.diag(rest.scatter) <= 1e-12 * np.diag(self.scatter)
        rest.scatter[rounding] = rest.scatter[:, rounding] = 0
        return rest

    def to_host(self) -> Moments:
        """Return the same moments with their scatter in host memory."""
        return self

    def select(self, names: Sequence[str]) -> Moments:
        """The moments of some of the views."""
        columns, order = column_slices(self.widths), list(self.widths)
        views = np.array([order.index(name) for name in names])
        kept = np.concatenate([np.arange(columns[n].start, columns[n].stop) for n in names])
        return Moments(
            {name: self.widths[name] for name in names},
            self.counts[np.ix_(views, views)],
            self.means[np.ix_(views, kept)],
            self.residues[np.ix_(views, kept)],
            np.block([[self.scatter[columns[p], columns[q]] for q in names] for p in names]),
        )

    def split(self, name: str) -> tuple[Moments, np.ndarray, np.ndarray]:
        """Moments of all other views, and the scatter of a view with them and within it."""
        own = column_slices(self.widths)[name]
        between = np.delete(self.scatter[own], np.arange(own.start, own.stop), axis=1)
        rest = self.select([other for other in self.widths if other != name])
        return rest, between, self.scatter[own, own]

    def objects_by_view(self) -> dict[str, float]:
        """Number of objects (sum of weights) seen in each view."""
        return dict(zip(self.widths, np.diag(self.counts).tolist(), strict=True))

    def mean(self) -> dict[str, np.ndarray]:
        """Mean of each view over all objects seen in it."""
        return {
            name: self.means[p, columns]
            for p, (name, columns) in enumerate(column_slices(self.widths).items())
        }

    def covariance(self) -> np.ndarray:
        """Covariances Σ_pq = scatter_pq / (n_pq - 1), (D, D); zero if no object is shared."""
        divisors = np.maximum(self.counts - 1, 1e-300)
        columns = list(column_slices(self.widths).values())
        scatter = np.empty_like(self.scatter)
        own = np.concatenate(list(self.mean().values()))
        left = np.concatenate([self.residues[p, c] for p, c in enumerate(columns)])
        shifts = (self.means - own) + (self.residues - left)
        for p, in_p in enumerate(columns):
            for q, in_q in enumerate(columns):
                block = scatter[in_p, in_q]
                np.divide(self.scatter[in_p, in_q], divisors[p, q], out=block)
                shift_p, shift_q = shifts[q, in_p], shifts[p, in_q]
                if p != q and (np.any(shift_p) or np.any(shift_q)):
                    share = self.counts[p, q] / divisors[p, q]
                    _add_product(block, share * shift_p[None], shift_q[None])
        return scatter

    def about_zero(self) -> Moments:
        """The moments about zero, whose covariances are means of products, 1/n Σ x_p x_qᵀ."""
        scatter, means = self.scatter.copy(), self.means + self.residues
        columns = list(column_slices(self.widths).values())
        for p, in_p in enumerate(columns):
            for q, in_q in enumerate(columns):
                count, block = self.counts[p, q], scatter[in_p, in_q]
                _add_product(block, count * means[[q], in_p], means[[p], in_q])
                block *= max(count - 1, 0) / max(count, 1e-300)  # means are known, not estimated
        zeros = np.zeros_like(self.means)
        return Moments(self.widths, self.counts, zeros, zeros, scatter)

    def scaled(self, factors: Mapping[str, np.ndarray]) -> Moments:
        """The moments of features that are multiplied by `factors`, of the views that have some."""
        f = np.concatenate([factors.get(n, np.ones(width)) for n, width in self.widths.items()])
        scatter = f[:, None] * self.scatter
        scatter *= f
        regression = self.regression and self.regression.scaled(factors)
        return Moments(
            self.widths, self.counts, f * self.means, f * self.residues, scatter, regression
        )

    def by_pair(self, Sigma: np.ndarray | None = None) -> Iterator[PairCovariance]:
        """Yield the covariances of each pair of paired views, if there is more than one object.

        They are blocks of `Sigma`, the covariance of all views if it has been computed. Residuals
        count for fewer objects, by the rank of their confounds.
        """
        n_objects = float(self.counts[0, 0])
        if self.regression is not None:
            n_objects -= self.regression.rank
        if n_objects <= 1:
            return
        Sigma = self.covariance() if Sigma is None else Sigma
        for (p, x), (q, y) in combinations(column_slices(self.widths).items(), 2):
            within = (Sigma[x, x], Sigma[y, y])
            yield PairCovariance((p, q), Sigma[x, y], within, n_objects)


class DeviceMoments(Moments):
    """`Moments` of paired views during a pass, whose scatter stays on a device."""

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, DeviceMoments):
            return self.to_host() + other
        if not self.counts.any():
            return other
        counts, count = self.counts + other.counts, float(self.counts[0, 0])
        share = float(other.counts[0, 0]) / (float(counts[0, 0]) or 1.0)
        shift = (other.means - self.means) + (other.residues - self.residues)
        means, residues = _exact_sum(self.means, shift * share + self.residues)
        across = as_block(self.scatter).placed(shift[:1])
        scatter = self.scatter + other.scatter
        scatter = scatter + count * share * across * namespace(across).matrix_transpose(across)
        return DeviceMoments(self.widths, counts, means, residues, scatter)

    def __radd__(self, other: Moments) -> Moments:
        return other + self.to_host() if other.counts.any() else self

    def to_host(self) -> Moments:
        """The moments in host memory, where constant columns have no scatter."""
        moments = Moments(
            self.widths, self.counts, self.means, self.residues, to_host(self.scatter)
        )
        return _without_rounding(moments)


def column_slices(widths: dict[str, int]) -> dict[str, slice]:
    """The columns of each view in a matrix of all views side by side."""
    edges = pairwise(accumulated(widths.values(), initial=0))
    return {name: slice(*edge) for name, edge in zip(widths, edges, strict=True)}


def _moments_of_features(
    features: Callable[[Views], Views],
    of_block: Callable[..., Moments],
    views: Views,
    weights: np.ndarray | None,
    dtype: np.dtype,
) -> Moments:
    return of_block(features(views.promoted(dtype)), weights, dtype)


def _block_function() -> Callable[..., Moments]:
    """What computes the moments of a block; a checkpoint holds arrays in host memory only."""
    return _moments_where_rows_are if get_config().checkpoint is None else moments_of_block


def _moments_where_rows_are(views: Views, weights: np.ndarray | None, dtype: DTypeLike) -> Moments:
    """The same as `moments_of_block`, on the device of the rows if they are paired and dense."""
    if not views.on_device or views.is_sparse or not views.is_paired:
        return moments_of_block(views, weights, dtype)
    blocks = list(views.blocks.values())
    total = float(len(views)) if weights is None else float(weights.sum())
    counts = np.full((len(blocks), len(blocks)), total)
    with np.errstate(under="ignore"):
        mean, _, scatter = _scatter_on_device(blocks, blocks, weights, np.dtype(dtype))
    means, residues = np.repeat(mean[:, None], len(blocks), axis=1)
    return DeviceMoments(views.widths, counts, means, residues, scatter)


def moments_of_block(views: Views, weights: np.ndarray | None, dtype: DTypeLike) -> Moments:
    """Moments of rows in memory; the arguments are those of `Moments.of`."""
    seen = views.seen.astype(float)
    counts = seen.T @ (seen if weights is None else weights[:, None] * seen)
    # Of views in range only rounding underflows, and squares that `_leaves_range` tells of.
    with np.errstate(under="ignore"):
        if views.is_paired and not views.is_sparse:
            blocks = list(views.blocks.values())
            mean, _, scatter = _scatter(blocks, blocks, weights, np.dtype(dtype))
            means, residues = np.repeat(mean[:, None], len(blocks), axis=1)
        else:
            means, residues, scatter = _scatter_by_pair(views, weights, np.dtype(dtype))
    return _without_rounding(Moments(views.widths, counts, means, residues, scatter))


def _without_rounding(moments: Moments) -> Moments:
    """The same moments; the scatter of constant columns, which is rounding, is set to zero."""
    widths = list(moments.widths.values())
    mean = moments.means[np.repeat(np.arange(len(widths)), widths), np.arange(sum(widths))]
    counts = np.repeat(np.diag(moments.counts), widths)
    with np.errstate(under="ignore"):
        constant = np.diag(moments.scatter) <= ROUNDING**2 * counts * mean**2
    if constant.any():
        moments.scatter[constant] = 0
        moments.scatter[:, constant] = 0
    return moments


# ---- scatter of a block --------------------------------------------------------------------------


def _scatter_by_pair(
    views: Views, weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and residues (V, D), and scatter (D, D), each over the objects that two views share."""
    columns, blocks, shifts = list(column_slices(views.widths).values()), [], []
    for block in views.blocks.values():
        # Sparse rows are centred by algebra, which must not lose digits.
        shifts.append(block.origin() if block.is_sparse else np.zeros(block.shape[1]))
        blocks.append(block.about(shifts[-1]) if block.is_sparse else block)
    seen, n_features = views.seen, views.shape[1]
    centers = np.zeros((2, len(blocks), n_features))
    scatter = np.zeros((n_features, n_features))
    for p, q in combinations_with_replacement(range(len(blocks)), 2):
        if blocks[q].is_sparse:
            p, q = q, p  # the sparse one first
        both = seen[:, p] & seen[:, q]
        if not both.any():
            continue
        A, B = (
            X if both.sum() == X.shape[0] else X.take(np.flatnonzero(both[seen[:, v]]))
            for v, X in ((p, blocks[p]), (q, blocks[q]))
        )
        w, in_p, in_q = None if weights is None else weights[both], columns[p], columns[q]
        if A.is_sparse:  # centring would fill in the zeros
            mean_p, mean_q, left, part = A.scatter_with(B, w)
            mean_p, mean_q = _exact_sum(mean_p, 0.0), _exact_sum(mean_q, left)
        else:
            alone, precision = [A], dtype if views.on_device else np.dtype(np.float64)
            mean_p, mean_q, part = _scatter(alone, alone if A is B else [B], w, precision)
        centers[:, q, in_p], centers[:, p, in_q] = mean_p, mean_q
        scatter[in_p, in_q], scatter[in_q, in_p] = part, part.T
    means, left = _exact_sum(np.concatenate(shifts), centers[0])
    return means, left + centers[1], scatter


def _scatter(
    left: list[Block], right: list[Block], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (2, d), as `_exact_sum`, and scatter of dense blocks side by side and other ones.

    `right` may be `left` itself.
    """
    blocks = left if right is left else [*left, *right]
    if any(block.on_device for block in blocks):
        means, other_means, on_device = _scatter_on_device(left, right, weights, dtype)
        return means, other_means, to_host(on_device)
    matrices = [block.matrix for block in blocks]
    dtype, height = np.result_type(dtype, *matrices), len(matrices[0])
    width = sum(matrix.shape[1] for matrix in matrices)
    split = None if right is left else sum(block.shape[1] for block in left)
    # A product of fewer rows costs less than adding it to the sum of all.
    n_rows = max(min(_CACHE_BYTES // (width * dtype.itemsize), _PIECE_ROWS), 2 * width)
    n_pieces = max(1, ceil(height / n_rows - 0.1))  # a remainder of a tenth joins other pieces
    edges = [height * number // n_pieces for number in range(n_pieces + 1)]
    pieces = [slice(start, stop) for start, stop in pairwise(edges)]
    w = np.ones(height, dtype=dtype) if weights is None else weights.astype(dtype)
    of_piece = partial(_scatter_of_piece, matrices, split, w, weights is not None, local())
    scatter, centers = None, []
    for product, *center in one_by_one(of_piece, pieces):
        if scatter is None:
            scatter = product.astype(np.float64, copy=False)
        else:
            scatter += product
        centers.append(center)
    assert scatter is not None
    if split is None:
        mirror_lower(scatter)
        scatter = scatter.T  # its rows are contiguous
    totals = np.array([w[rows].sum(dtype=np.float64) for rows in pieces])
    shifts, residues = np.array(centers, dtype=np.float64).swapaxes(0, 1)
    a = _Centers(shifts[:, :split], residues[:, :split])
    b = a if split is None else _Centers(shifts[:, split:], residues[:, split:])
    return *_merge(scatter, totals, a, b, np.finfo(dtype).eps), scatter


def _scatter_of_piece(
    matrices: list[np.ndarray],
    split: int | None,
    w: np.ndarray,
    is_weighted: bool,
    buffers: local,
    rows: slice,
    shifts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scatter of a few rows about shifts near their mean, the shifts, and what these leave of it.

    The scatter is that of the first `split` columns and the others, or the lower half of that of
    all columns.
    """
    again = partial(_scatter_of_piece, matrices, split, is_weighted=is_weighted, buffers=buffers)
    given, d = shifts, sum(matrix.shape[1] for matrix in matrices)
    buffer = getattr(buffers, "buffer", None)  # one per thread, for as many rows as the cache holds
    if buffer is None or buffer.dtype != w.dtype:
        n_rows = rows.stop - rows.start + 1  # another piece may have one more
        n_parts = ceil(n_rows / max(1, _CACHE_BYTES // (w.itemsize * d)))  # of equal heights
        buffer = buffers.buffer = np.empty((ceil(n_rows / n_parts), d + 1), w.dtype)
    sums, squares = np.zeros(d + 1, w.dtype), np.zeros(d, w.dtype)
    shape = (d + 1, d + 1) if split is None else (split, d - split)
    product = np.zeros(shape, w.dtype, order="F")
    add_square = blas.get_blas_funcs("syrk", (product,))
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):  # in each thread
        if shifts is None:
            # In any order of rows, its mean is within √_SAMPLE_STEP deviations of that of all.
            some = slice(rows.start, rows.stop, _SAMPLE_STEP)
            share = w[some] / (w[some].sum() or 1)
            shifts = np.concatenate([share @ matrix[some] for matrix in matrices])
        for start in range(rows.start, rows.stop, len(buffer)):
            part, end = slice(start, min(start + len(buffer), rows.stop)), 0
            centred = buffer[: part.stop - start]
            for matrix in matrices:
                begin, end = end, end + matrix.shape[1]
                np.subtract(matrix[part], shifts[begin:end], out=centred[:, begin:end])
            centred[:, -1] = 1
            if is_weighted:
                centred *= np.sqrt(w[part])[:, None]
            if split is None:
                product = add_square(1.0, centred.T, 1.0, product, lower=1, overwrite_c=1)
            else:
                product += centred[:, :split].T @ centred[:, split:-1]
                sums += centred[:, -1] @ centred
                squares += np.einsum("ij,ij->j", centred, centred)[:-1]
        if split is None:
            sums, squares, product = product[-1], np.diag(product)[:-1], product[:-1, :-1]
        if w.dtype == np.float32 and _leaves_range(
            squares, lambda small: np.hstack([X[rows] for X in matrices])[:, small] - shifts[small]
        ):
            return again(w=w.astype(np.float64), rows=rows, shifts=given)
        residues = sums[:-1] / (sums[-1] or 1)  # mean of the shifted rows
        shifted = w[rows].sum() * residues**2
        varies = squares - shifted > _ULPS * np.finfo(w.dtype).eps * shifted
        if given is None and np.any(varies & (shifted > _FAR * squares)):
            return again(w=w, rows=rows, shifts=shifts + residues)
        return product, shifts, residues


class _Centers(NamedTuple):
    """Shift of each piece, (P, d), and the mean that it left, (P, d)."""

    shifts: np.ndarray
    residues: np.ndarray


def _merge(
    scatter: np.ndarray, totals: np.ndarray, a: _Centers, b: _Centers, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Turn the sum of scatters about shifts into scatter about the means, in place; the means."""
    (mean_a, deviations_a), (mean_b, deviations_b) = (_joint_mean(totals, c) for c in (a, b))
    if len(totals) > 1:
        _add_product(scatter, totals[:, None] * deviations_a, deviations_b)
    left = totals @ a.residues**2
    if a is not b or np.any(left > eps * np.diag(scatter)):
        _add_product(scatter, -totals[:, None] * a.residues, b.residues)
    if a is b:  # scatter as small as the rounding of the mean is that of a constant column
        constant = np.diag(scatter) <= _ULPS * eps * left
        scatter[constant] = scatter[:, constant] = 0
    return _exact_sum(*mean_a), _exact_sum(*mean_b)


def _joint_mean(
    totals: np.ndarray, centers: _Centers
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Two terms of the mean of all pieces, (d,), and what each deviates from it, (P, d)."""
    shifts, residues = centers
    origin = shifts[0]  # differences of means that are close to each other are exact
    moved = (shifts - origin) + residues
    center = totals / (totals.sum() or 1) @ moved
    return (origin, center), moved - center


def _leaves_range(squares: np.ndarray, columns: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether float32 squares of centred rows overflow, or lose digits to underflow.

    `squares` are their sums by column, and `columns` returns some columns of the rows.
    """
    if not np.isfinite(squares).all():
        return True
    small = np.flatnonzero(squares < _LEAST_SQUARES)  # constant columns are exactly zero
    return bool(len(small)) and bool(np.any(columns(small)))


def _exact_sum(a: Any, b: Any) -> np.ndarray:
    """Stack a + b and what rounding took from it, by Knuth's two-sum."""
    total = a + b
    of_b = total - a
    return np.stack([total, (a - (total - of_b)) + (b - of_b)])


def _add_product(scatter: np.ndarray, A: np.ndarray, B: np.ndarray) -> None:
    """Add Aᵀ B of a few rows to scatter in place, in strips, to keep temporaries small."""
    height = max(_STRIP_ROWS, _STRIP_BYTES // (8 * scatter.shape[1]))
    for start in range(0, len(scatter), height):
        rows = slice(start, start + height)
        scatter[rows] += A[:, rows].T.dot(B)  # faster than @ for a single row


# ---- on a device: operators of the array API -----------------------------------------------------


def _scatter_on_device(
    left: list[Block], right: list[Block], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Means (2, d) of blocks side by side, and their scatter with `right`, which may be `left`.

    The scatter stays on the device, in float64, and the host waits for the device once.
    """
    blocks = in_one_place(left if right is left else [*left, *right]) or []
    blocks = [block.promoted(dtype) for block in blocks]
    A = stack(blocks[: len(left)], axis=1)
    sides = [A] if right is left else [A, stack(blocks[len(left) :], axis=1)]
    xp, n_rows, dtype_of_A = namespace(A), A.shape[0], as_block(A).dtype
    height = max(_STACKED_ROWS, *(X.shape[1] for X in sides))
    whole = n_rows // height * height
    scatter = xp.zeros((A.shape[1], sides[-1].shape[1]), dtype=xp.float64, device=A.device)
    totals: list[np.ndarray] = []
    facts: list[list[Any]] = [[] for _ in sides]
    for start, stop, size in ((0, whole, height), (whole, n_rows, n_rows - whole)):
        if start == stop:
            continue
        w = None if weights is None else weights[start:stop].reshape(-1, size)
        pieces = [_centred(X[start:stop, :], w, size) for X in sides]
        for of_side, piece in zip(facts, pieces, strict=True):
            of_side.append(_facts(*piece))
        centred_a, centred_b = pieces[0][2], pieces[-1][2]
        if w is not None:
            centred_b = centred_b * as_block(A).placed(w)[..., None]
        products = xp.matmul(xp.matrix_transpose(centred_a), centred_b)
        scatter = scatter + xp.sum(products, axis=0, dtype=xp.float64)
        totals.append(np.full((stop - start) // size, float(size)) if w is None else w.sum(axis=1))
    if not totals:
        return np.zeros((2, A.shape[1])), np.zeros((2, sides[-1].shape[1])), scatter
    found = _in_one_copy([fact for of_side in facts for fact in of_side])
    if dtype_of_A == np.float32 and any(
        _leaves_range(own[-2], own[-1].__getitem__) for own in found
    ):
        return _scatter_on_device(left, right, weights, np.dtype(np.float64))
    a = b = _centers_of(found[: len(totals)])
    if len(sides) > 1:
        b = _centers_of(found[len(totals) :])
    return _merge_on_device(scatter, np.concatenate(totals), a, b, np.finfo(dtype_of_A).eps)


def _centred(X: Any, w: np.ndarray | None, size: int) -> tuple[Any, Any, Any]:
    """Shift of each piece of `size` rows, what it left of the mean, (P, d); the centred pieces."""
    xp = namespace(X)
    pieces = xp.reshape(X, (X.shape[0] // size, size, X.shape[1]))
    shifts = xp.astype(xp.sum(pieces, axis=1, keepdims=True, dtype=xp.float64) / size, X.dtype)
    if w is None:
        centred = pieces - shifts
        return shifts[:, 0, :], xp.mean(centred, axis=1), centred
    totals = w.sum(axis=1, keepdims=True)
    share = as_block(X).placed(w / np.where(totals > 0, totals, 1))[:, None, :]
    shifts = shifts + xp.matmul(share, pieces - shifts)
    centred = pieces - shifts
    return shifts[:, 0, :], xp.matmul(share, centred)[:, 0, :], centred


def _facts(shifts: Any, residues: Any, centred: Any) -> Any:
    """Shifts and residues of P pieces, and squares and sizes of columns, (2 P + 2, d)."""
    xp = namespace(centred)
    squares = xp.sum(centred * centred, axis=(0, 1))
    sizes = xp.max(xp.abs(centred), axis=(0, 1))
    return xp.concat([shifts, residues, squares[None, :], sizes[None, :]], axis=0)


def _centers_of(facts: list[np.ndarray]) -> _Centers:
    """Shifts and residues of all pieces, from the facts of a few at a time."""
    halves = [np.split(own[:-2], 2) for own in facts]
    return _Centers(*map(np.concatenate, zip(*halves, strict=True)))


def _merge_on_device(
    scatter: Any, totals: np.ndarray, a: _Centers, b: _Centers, eps: float
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Means, and the sum of scatters about shifts turned into scatter about them, as `_merge`."""
    (mean_a, deviations_a), (mean_b, deviations_b) = (_joint_mean(totals, c) for c in (a, b))
    U = np.concatenate([totals[:, None] * deviations_a, -totals[:, None] * a.residues])
    V = np.concatenate([deviations_b, b.residues])
    xp, placed = namespace(scatter), as_block(scatter).placed
    scatter = scatter + xp.matrix_transpose(placed(U)) @ placed(V)
    if a is b:
        limit = _ULPS * eps * (totals @ a.residues**2)
        varies = xp.astype(xp.linalg.diagonal(scatter) > placed(limit), xp.float64)
        scatter = scatter * varies[:, None] * varies
    return _exact_sum(*mean_a), _exact_sum(*mean_b), scatter


def _in_one_copy(arrays: list[Any]) -> list[np.ndarray]:
    """Arrays of a device in host memory, as float64."""
    xp = namespace(arrays[0])
    flat = to_host(xp.concat([xp.reshape(xp.astype(own, xp.float64), (-1,)) for own in arrays]))
    ends = np.cumsum([np.prod(own.shape, dtype=int) for own in arrays])
    parts = np.split(flat, ends[:-1])
    return [part.reshape(own.shape) for part, own in zip(parts, arrays, strict=True)]
