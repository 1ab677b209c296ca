"""Counts, means and centred scatter of the rows: the statistic of CCA and related methods.

Dense rows are cut into pieces. Each piece is centred by a shift s near its mean m, and multiplied;
with r = m - s,

    Σ w (a - mean_a)(b - mean_b)ᵀ = Σ_pieces [Σ w (a - s_a)(b - s_b)ᵀ - w r_a r_bᵀ
                                              + w (m_a - mean_a)(m_b - mean_b)ᵀ].

Products are in the precision of the rows, and sums over pieces in float64. Sparse rows are centred
by algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate as accumulated
from itertools import combinations, pairwise
from math import ceil
from threading import local
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from mvcca.blocks import (
    Block,
    as_block,
    in_one_place,
    join,
    namespace,
    placed,
    precision,
    to_host,
)
from mvcca.machine.config import block_size, is_plain
from mvcca.machine.threads import one_by_one
from mvcca.statistics.passes import accumulate, in_precision, uses_device
from mvcca.views import Views

_ULPS = 32  # a deviation of so many units in the last place is rounding
ROUNDING = _ULPS * np.finfo(np.float64).eps

_DEVICE_BLOCKS = 32  # times as many rows: scatter is copied to the host for every block
_MEMORY_BLOCKS = 32  # times as many rows: they are cut into pieces later

_STACKED_ROWS = 4096  # of a piece: few enough for float32 sums, enough to occupy a device

_SAMPLE_STEP = 16  # every 16th row of a piece estimates its mean
_FAR = 0.5  # share of the sum of squares due to the shift, above which the exact mean is used

_PIECE_BYTES = 8 * 2**20  # of rows, centred and multiplied by one thread while they are in cache
_PIECE_ROWS = 2**14  # at most, since their sums are in the precision of the rows
_FLOAT32 = np.finfo(np.float32)
_LEAST_SQUARES = _FLOAT32.tiny / _FLOAT32.eps**2  # terms below `tiny` do not count against these

_STRIP_BYTES = 2**16  # temporaries of a product of few rows; small ones need no system call
_STRIP_ROWS = 16  # at least


class PairCovariance(NamedTuple):
    """Covariances of two views, all three over the same objects."""

    names: tuple[str, str]
    between: np.ndarray  # (D_p, D_q)
    within: tuple[np.ndarray, np.ndarray]  # (D_p, D_p), (D_q, D_q)
    n_objects: float


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
        start, least = cls.of_nothing(views.widths), _least_rows(views.widths)
        if uses_device(views):
            least *= _DEVICE_BLOCKS
        elif not views.is_lazy and _are_dense_pairs(views):
            least *= _MEMORY_BLOCKS
        of_block = partial(moments_of_block, dtype=np.dtype(dtype))
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
        for p, in_p in enumerate(columns):
            for q, in_q in enumerate(columns):
                weight = self.counts[p, q] * share[p, q]
                if weight:
                    _add_product(scatter[in_p, in_q], weight * shift[[q], in_p], shift[[p], in_q])
        return Moments(self.widths, counts, means, residues, scatter)

    def __sub__(self, other: Moments) -> Moments:
        """The moments of the other objects, if `other` are those of some of these."""
        rest = self + replace(other, counts=-other.counts, scatter=-other.scatter)
        rounding = np.diag(rest.scatter) <= 1e-12 * np.diag(self.scatter)
        rest.scatter[rounding] = rest.scatter[:, rounding] = 0
        return rest

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
            self.scatter[np.ix_(kept, kept)],
        )

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
        counts = np.diag(self.counts / divisors)
        _clear_rounding(scatter, own, np.repeat(counts, list(self.widths.values())))
        return scatter

    def by_pair(self, Sigma: np.ndarray | None = None) -> Iterator[PairCovariance]:
        """Yield the covariances of each pair of paired views, if there is more than one object.

        They are blocks of `Sigma`, the covariance of all views if it has been computed.
        """
        if self.counts[0, 0] <= 1:
            return
        Sigma = self.covariance() if Sigma is None else Sigma
        for (p, x), (q, y) in combinations(column_slices(self.widths).items(), 2):
            within = (Sigma[x, x], Sigma[y, y])
            yield PairCovariance((p, q), Sigma[x, y], within, float(self.counts[0, 0]))


def column_slices(widths: dict[str, int]) -> dict[str, slice]:
    """The columns of each view in a matrix of all views side by side."""
    edges = pairwise(accumulated(widths.values(), initial=0))
    return {name: slice(*edge) for name, edge in zip(widths, edges, strict=True)}


def _least_rows(widths: dict[str, int]) -> int:
    """Minimum rows of a block: adding its (D, D) scatter costs as much as multiplying many rows."""
    return sum(widths.values()) // 4


def _moments_of_features(
    features: Callable[[Views], Views], views: Views, weights: np.ndarray | None, dtype: np.dtype
) -> Moments:
    return moments_of_block(features(in_precision(views, dtype)), weights, dtype)


def moments_of_block(views: Views, weights: np.ndarray | None, dtype: DTypeLike) -> Moments:
    dtype, columns = np.dtype(dtype), column_slices(views.widths)
    n_features = views.shape[1]
    seen = views.seen.astype(float)
    counts = seen.T @ (seen if weights is None else weights[:, None] * seen)
    centers, shift = np.zeros((2, len(columns), n_features)), np.zeros(n_features)
    if _are_dense_pairs(views):
        mean, scatter = _paired_scatter(list(views.blocks.values()), weights, dtype)
        centers[:] = mean[:, None]
    else:
        scatter = np.zeros((n_features, n_features))
        views, shift = _shifted(in_precision(views, dtype))
        for p, q, A, B, w in _shared_rows(views, weights):
            in_p, in_q = list(columns.values())[p], list(columns.values())[q]
            mean_p, mean_q, scatter[in_p, in_q] = _pair_scatter(A, B, w)
            centers[:, q, in_p], centers[:, p, in_q] = mean_p, mean_q
            scatter[in_q, in_p] = scatter[in_p, in_q].T
    means, left = _exact_sum(shift, centers[0])
    widths = list(views.widths.values())
    own = np.concatenate([means[p, c] for p, c in enumerate(columns.values())])
    _clear_rounding(scatter, own, np.repeat(np.diag(counts), widths))
    return Moments(views.widths, counts, means, left + centers[1], scatter)


def _are_dense_pairs(views: Views) -> bool:
    return views.is_paired and not views.is_sparse


def _shifted(views: Views) -> tuple[Views, np.ndarray]:
    """Views with sparse blocks that can be centred by algebra, and what was subtracted, (D,)."""
    shifted = {name: block.shifted() for name, block in views.blocks.items() if block.is_sparse}
    nothing = {name: (block, np.zeros(block.shape[1])) for name, block in views.blocks.items()}
    both = nothing | shifted
    moved = views.replace({name: rows for name, (rows, _) in both.items()})
    return moved, np.concatenate([shift for _, shift in both.values()])


def _shared_rows(
    views: Views, weights: np.ndarray | None
) -> Iterator[tuple[int, int, Block, Block, np.ndarray | None]]:
    """Rows and weights of the shared objects of every pair of views."""
    names, seen = views.names, views.seen
    for p, name in enumerate(names):
        for q in range(p, len(names)):
            both = seen[:, p] & seen[:, q]
            if not both.any():
                continue
            A, B = views.blocks[name], views.blocks[names[q]]
            yield (
                p,
                q,
                A if both.sum() == A.shape[0] else A.take(np.flatnonzero(both[seen[:, p]])),
                B if both.sum() == B.shape[0] else B.take(np.flatnonzero(both[seen[:, q]])),
                None if weights is None else weights[both],
            )


def _clear_rounding(scatter: np.ndarray, mean: np.ndarray, counts: np.ndarray) -> None:
    """Set the scatter of constant columns, which is rounding, to zero in place."""
    constant = np.diag(scatter) <= ROUNDING**2 * counts * mean**2
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0


# ---- scatter of a block --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Centers:
    """Shift of each piece, (P, d), and the mean that it left, (P, d)."""

    shifts: np.ndarray
    residues: np.ndarray


def _paired_scatter(
    blocks: Sequence[Block], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Mean (2, D), as `_exact_sum`, and scatter (D, D) of dense blocks of the same objects."""
    on_device = in_one_place(blocks) if any(X.on_device for X in blocks) else None
    if on_device is None:
        matrices = [block.matrix for block in blocks]
        return _scatter_of_pieces(matrices, weights, np.result_type(dtype, *matrices))
    X = join(block.promoted(dtype) for block in on_device)
    mean, _, scatter = _stacked_scatter(X, X, weights)
    return mean, scatter


def _pair_scatter(
    A: Block, B: Block, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means (2, d_a) and (2, d_b), and scatter (d_a, d_b), of the same rows of two blocks."""
    if A.is_sparse:  # centring would fill in the zeros
        mean_a, mean_b, left, scatter = A.scatter_with(B, weights)
        return _exact_sum(mean_a, 0.0), _exact_sum(mean_b, left), scatter
    if B.is_sparse:
        mean_b, mean_a, scatter = _pair_scatter(B, A, weights)
        return mean_a, mean_b, scatter.T
    wide = np.dtype(np.float64)
    X, Y = in_one_place([A, B]) or (A.promoted(wide), B.promoted(wide))
    return _stacked_scatter(X.matrix, X.matrix if A is B else Y.matrix, weights)


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


# ---- any two dense matrices, pieces stacked: operators of the array API --------------------------


def _stacked_scatter(
    A: Any, B: Any, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_pair_scatter`, of dense matrices on the same device or on the host."""
    n_rows, height = A.shape[0], max(_STACKED_ROWS, A.shape[1], B.shape[1])
    whole = n_rows // height * height
    scatter = np.zeros((A.shape[1], B.shape[1]))
    totals, left, right = [], [], []
    for start, stop, size in ((0, whole, height), (whole, n_rows, n_rows - whole)):
        if start == stop:
            continue
        w = None if weights is None else weights[start:stop].reshape(-1, size)
        a, centred_a = _centred(A[start:stop, :], w, size)
        b, centred_b = (a, centred_a) if A is B else _centred(B[start:stop, :], w, size)
        if w is not None:
            centred_b = centred_b * placed(w, A)[..., None]
        if precision(A) == np.float32 and (_leaves_range(centred_a) or _leaves_range(centred_b)):
            wide = np.dtype(np.float64)
            X = as_block(A).promoted(wide).matrix
            Y = X if A is B else as_block(B).promoted(wide).matrix
            return _stacked_scatter(X, Y, weights)
        xp = namespace(A)
        products = xp.matmul(xp.matrix_transpose(centred_a), centred_b)
        scatter += to_host(xp.sum(products, axis=0, dtype=xp.float64))
        totals.append(np.full((stop - start) // size, float(size)) if w is None else w.sum(axis=1))
        left.append(a)
        right.append(b)
    if not totals:
        return np.zeros((2, A.shape[1])), np.zeros((2, B.shape[1])), scatter
    a, b = _joined(left), _joined(right)
    eps = np.finfo(precision(A)).eps
    means = _merge(scatter, np.concatenate(totals), a, a if A is B else b, eps)
    return *means, scatter


def _centred(X: Any, w: np.ndarray | None, size: int) -> tuple[_Centers, Any]:
    """Pieces of `size` rows less their (weighted) mean, (P, size, d), and what was subtracted."""
    xp = namespace(X)
    pieces = xp.reshape(X, (X.shape[0] // size, size, X.shape[1]))
    shifts = xp.astype(xp.sum(pieces, axis=1, keepdims=True, dtype=xp.float64) / size, X.dtype)
    if w is None:
        centred = pieces - shifts
        residues = xp.mean(centred, axis=1)
    else:
        totals = w.sum(axis=1, keepdims=True)
        share = placed(w / np.where(totals > 0, totals, 1), X)[:, None, :]
        shifts = shifts + xp.matmul(share, pieces - shifts)
        centred = pieces - shifts
        residues = xp.matmul(share, centred)[:, 0, :]
    centers = (to_host(part).astype(np.float64) for part in (shifts[:, 0, :], residues))
    return _Centers(*centers), centred


def _joined(parts: list[_Centers]) -> _Centers:
    return _Centers(
        np.concatenate([part.shifts for part in parts]),
        np.concatenate([part.residues for part in parts]),
    )


def _merge(
    scatter: np.ndarray, totals: np.ndarray, a: _Centers, b: _Centers, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Turn the sum of scatters about shifts into scatter about the means, in place; the means."""
    share = _share(totals)
    means, deviations = [], []
    for centers in (a, b):
        origin = centers.shifts[0]  # differences of means that are close to each other are exact
        moved = (centers.shifts - origin) + centers.residues
        center = share @ moved
        means.append(_exact_sum(origin, center))
        deviations.append(moved - center)
    if len(totals) > 1:
        _add_product(scatter, totals[:, None] * deviations[0], deviations[1])
    left = totals @ a.residues**2
    if a is not b or np.any(left > eps * np.diag(scatter)):
        _add_product(scatter, -totals[:, None] * a.residues, b.residues)
    if a is b:  # scatter as small as the rounding of the mean is that of a constant column
        constant = np.diag(scatter) <= _ULPS * eps * left
        scatter[constant] = scatter[:, constant] = 0
    return means[0], means[1]


# ---- paired views on the host, pieces by several threads -----------------------------------------


def _scatter_of_pieces(
    blocks: Sequence[np.ndarray], weights: np.ndarray | None, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray]:
    """As `_paired_scatter`, of pieces that stay in the cache of the thread that multiplies them."""
    height, width = blocks[0].shape[0], sum(block.shape[1] for block in blocks)
    # A product of fewer rows costs less than adding it to the sum of all.
    n_rows = max(min(_PIECE_BYTES // (width * dtype.itemsize), _PIECE_ROWS), 2 * width)
    n_pieces = max(1, ceil(height / n_rows - 0.1))  # a remainder of a tenth joins other pieces
    edges = [height * number // n_pieces for number in range(n_pieces + 1)]
    pieces = [slice(start, stop) for start, stop in pairwise(edges)]
    w = np.ones(height, dtype=dtype) if weights is None else weights.astype(dtype)
    buffers = local()  # one per thread, reused for all of its pieces

    def multiplied(rows: slice, shifts: np.ndarray) -> tuple[np.ndarray, ...]:
        for kind in (dtype, np.dtype(np.float64)):
            if not hasattr(buffers, "piece") or buffers.piece.dtype != kind:
                buffers.piece = np.empty((-(-height // n_pieces), width + 1), kind)
            centred = buffers.piece[: rows.stop - rows.start]
            end = 0
            for block in blocks:
                start, end = end, end + block.shape[1]
                np.subtract(block[rows], shifts[start:end], out=centred[:, start:end])
            centred[:, -1] = 1
            if weights is not None:
                centred *= np.sqrt(w[rows])[:, None]
            with np.errstate(over="ignore", invalid="ignore"):
                product = centred.T @ centred
            if kind == np.float64 or not _leaves_range(centred, np.diag(product)[:-1]):
                break  # else float64 holds the squares
        residue = product[-1, :-1] / (product[-1, -1] or 1)  # mean of the shifted rows
        return shifts, residue, product[:-1, :-1]

    def piece(rows: slice) -> tuple[np.ndarray, ...]:
        # In any order of rows, the sample's mean is within √_SAMPLE_STEP deviations of the mean.
        some = slice(rows.start, rows.stop, _SAMPLE_STEP)
        share = _share(w[some])
        result = multiplied(rows, np.concatenate([share @ block[some] for block in blocks]))
        shifts, residue, product = result
        shifted, squares = w[rows].sum() * residue**2, np.diag(product)
        varies = squares - shifted > _ULPS * np.finfo(dtype).eps * shifted
        if np.any(varies & (shifted > _FAR * squares)):
            return multiplied(rows, shifts + residue)
        return result

    scatter, shifts, residues = np.zeros((width, width)), [], []
    for shift, residue, product in one_by_one(piece, pieces):
        shifts.append(shift)
        residues.append(residue)
        scatter += product
    totals = np.array([w[rows].sum(dtype=np.float64) for rows in pieces])
    centers = _Centers(np.array(shifts, dtype=np.float64), np.array(residues, dtype=np.float64))
    mean, _ = _merge(scatter, totals, centers, centers, np.finfo(dtype).eps)
    return mean, scatter


def _leaves_range(rows: Any, squares: np.ndarray | None = None) -> bool:
    """Whether float32 squares of centred rows overflow, or lose digits to underflow.

    `squares` are their sums over rows, one per column, if these are known.
    """
    if squares is None:  # pieces on a device
        xp = namespace(rows)
        squares = to_host(xp.sum(rows * rows, axis=(0, 1)))
    if not np.isfinite(squares).all():
        return True
    small = np.flatnonzero(squares < _LEAST_SQUARES)  # constant columns are exactly zero
    return bool(len(small)) and bool(np.any(to_host(rows[..., small])))


def _share(weights: np.ndarray) -> np.ndarray:
    """Weights that sum to one, or to zero if all are zero."""
    total = weights.sum(dtype=np.float64)
    return weights / weights.dtype.type(total) if total else weights
