"""Counts, means and centred scatter of the rows: all that CCA and its kin ask of the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.config import block_slices
from mvcca.views import Views

# A centred column this small against its mean is rounding, not variation.
_ROUNDING = 32 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Moments:
    """Counts, means and scatter of views, over the objects that each pair of views shares.

    For views p and q, over the objects seen in both (n_pq of them, or the sum of their weights),

        scatter_pq = Σ_a w_a (x_p^a - m_p|q) (x_q^a - m_q|p)ᵀ,

    with m_p|q the mean of view p over the objects that q shows too. Scatter is centred within each
    block of rows and blocks are merged by the pairwise update of Chan et al. [1]_, never through
    E[xxᵀ] - mmᵀ. Products are in the precision of the data and added up in float64.

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
    def of(cls, views: Views, weights: np.ndarray | None = None) -> Moments:
        """Moments of views, taken in row blocks of bounded size.

        Parameters
        ----------
        views : Views
            NumPy or CSR blocks of float32 or float64.
        weights : ndarray, shape (n_objects,), optional
            How often each object counts.
        """
        blocks = (
            _moments_of_block(views[rows], None if weights is None else weights[rows])
            for rows in _blocks(views)
        )
        return reduce(add, blocks)

    def __add__(self, other: Moments) -> Moments:
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
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
                    scatter[in_p, in_q] += np.outer(weight * shift[q, in_p], shift[p, in_q])
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
                    scatter[in_p, in_q] += self.counts[p, q] * np.outer(shift_p, shift_q)
        counts = np.repeat(np.diag(self.counts), list(self.widths.values()))
        _clear_rounding(scatter, own, counts, np.full(len(own), _ROUNDING**2))
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


def _blocks(views: Views) -> Iterator[slice]:
    if not len(views):  # of a view that none of a batch's objects is seen in
        return iter([slice(0, 0)])
    row_bytes = sum(block.dtype.itemsize * block.shape[1] for _, block in views.items())
    # Each block adds (D, D) scatter, which costs as much as the product of many rows.
    return block_slices(len(views), row_bytes, at_least=views.shape[1] // 4)


def _moments_of_block(views: Views, weights: np.ndarray | None) -> Moments:
    columns = column_slices(views.widths)
    n_features = views.shape[1]
    seen = views.seen.astype(float)
    counts = seen.T @ (seen if weights is None else weights[:, None] * seen)
    means = np.zeros((len(columns), n_features))
    scatter = np.zeros((n_features, n_features))
    if views.is_paired and not any(issparse(block) for _, block in views.items()):
        means[:], scatter = _dense_scatter(views, weights)
    else:
        for p, q, A, B, w in _shared_rows(views, weights):
            in_p, in_q = list(columns.values())[p], list(columns.values())[q]
            means[q, in_p], means[p, in_q], scatter[in_p, in_q] = _pair_scatter(A, B, w)
            scatter[in_q, in_p] = scatter[in_p, in_q].T
    widths = list(views.widths.values())
    own = np.concatenate([means[p, c] for p, c in enumerate(columns.values())])
    # Centring a column leaves less than subtracting its squared mean from its squares does.
    relative = [_ROUNDING if issparse(block) else _ROUNDING**2 for _, block in views.items()]
    _clear_rounding(scatter, own, np.repeat(np.diag(counts), widths), np.repeat(relative, widths))
    return Moments(views.widths, counts, means, scatter)


def _dense_scatter(views: Views, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean (D,) and scatter (D, D) of paired dense views: side by side, one symmetric product."""
    blocks = dict(views.items())
    dtype = np.result_type(*blocks.values())
    centred = np.empty(views.shape, dtype=dtype)
    w = np.ones(len(views), dtype=dtype) if weights is None else weights.astype(dtype)
    total = float(len(views) if weights is None else weights.sum())
    shift = np.zeros(views.shape[1], dtype=dtype)
    for name, columns in column_slices(views.widths).items():
        shift[columns] = _share(w, total) @ blocks[name]
        np.subtract(blocks[name], shift[columns], out=centred[:, columns])
    # The mean of centred rows is what the precision of the data could not hold of the mean.
    residue = (_share(w, total) @ centred).astype(np.float64)
    if weights is not None:
        centred *= np.sqrt(w)[:, None]
    scatter = (centred.T @ centred).astype(np.float64, copy=False)
    subtracted = total * residue**2
    if np.any(subtracted > np.finfo(dtype).eps * np.diag(scatter)):
        scatter -= np.outer(total * residue, residue)
        constant = np.diag(scatter) <= 32 * np.finfo(dtype).eps * subtracted
        scatter[constant] = scatter[:, constant] = 0
    return shift + residue, scatter


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
                A if both.sum() == A.shape[0] else A[both[seen[:, p]]],
                B if both.sum() == B.shape[0] else B[both[seen[:, q]]],
                None if weights is None else weights[both],
            )


def _pair_scatter(A: Any, B: Any, weights: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """Means of A and of B and their centred scatter; sparse blocks are centred by algebra."""
    mean_a, mean_b = _mean(A, weights), _mean(B, weights)
    total = A.shape[0] if weights is None else weights.sum()
    if issparse(A) and issparse(B):
        A, B = A.astype(np.float64), B.astype(np.float64)  # it subtracts what it added
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


def _clear_rounding(
    scatter: np.ndarray, mean: np.ndarray, counts: np.ndarray, relative: np.ndarray
) -> None:
    """In place, no scatter for columns whose scatter is what rounding left of a constant."""
    constant = np.diag(scatter) <= relative * counts * mean**2
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0


def _mean(X: Any, weights: np.ndarray | None) -> np.ndarray:
    if weights is None:  # SciPy's mean of a sparse matrix divides before it adds
        return np.asarray(X.sum(axis=0, dtype=np.float64)).reshape(-1) / X.shape[0]
    return np.asarray(X.T @ _share(weights, weights.sum())).reshape(-1)


def _share(weights: np.ndarray, total: float) -> np.ndarray:
    """Weights that add up to one, or to zero where all are zero."""
    return weights / weights.dtype.type(total) if total else weights
