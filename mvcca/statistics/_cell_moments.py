"""Moments of rows with holes, pair of features by pair of features.

With the mask s of a row (1 where a cell is seen) and cells x that are 0 where they are not, sums
over the rows that have both of two features are products,

    N = Σ w s sᵀ,    T = Σ w x sᵀ,    P = Σ w x xᵀ,

of which T_ij / N_ij is the mean of feature i where j is seen, and P_ij - T_ij T_ji / N_ij the
centred product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.statistics.holes import Recovered, check_seen, naming, notes_of_pairs, table_of
from mvcca.statistics.moments import ROUNDING
from mvcca.statistics.passes import accumulate
from mvcca.views import Views

_TABLES = 5  # of a block of rows in float64: the cells, the mask and products of both with weights
_FEATURES_PER_ROW = 4  # adding (D, D) matrices costs as much as multiplying D / 4 rows
_LEAST_EIGENVALUE = 1e-3  # of a correlation matrix that had negative ones


@dataclass(frozen=True, eq=False)
class CellMoments:
    """Counts, means and scatter of each pair of features, over the rows in which both are seen.

    For features i and j of any views, over the N_ij rows (or the sum of their weights) that have
    both,

        scatter_ij = Σ_a w_a (x_i^a - m_i|j) (x_j^a - m_j|i),

    with m_i|j the mean of feature i over these rows.

    Attributes
    ----------
    widths : dict of str to int
        Number of features of each view; their sum is D.
    counts : ndarray, shape (D, D)
        N_ij.
    means : ndarray, shape (D, D)
        m_i|j in row i and column j.
    scatter : ndarray, shape (D, D)
        Centred sums of products.
    """

    widths: dict[str, int]
    counts: np.ndarray
    means: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, views: Views, weights: np.ndarray | None = None) -> CellMoments:
        """Compute the moments of views with holes, in blocks of rows of bounded size.

        Parameters
        ----------
        views : Views
            Blocks of float32 or float64, in memory or not, in which missing cells are NaN. All
            cells of a view in which an object is not seen are missing.
        weights : ndarray, shape (n_objects,), optional
            Weight of each object.
        """
        n_features = views.shape[1]
        return accumulate(
            _moments_of_block,
            cls.of_nothing(views.widths),
            views,
            weights,
            at_least=n_features // _FEATURES_PER_ROW,
            row_bytes=8 * _TABLES * n_features,
        )

    @classmethod
    def of_nothing(cls, widths: Mapping[str, int]) -> CellMoments:
        """Return the moments of zero rows."""
        n = sum(widths.values())
        return cls(dict(widths), *np.zeros((3, n, n)))

    def __add__(self, other: CellMoments) -> CellMoments:
        if not isinstance(other, CellMoments):
            return NotImplemented
        if self.widths != other.widths:
            raise ValueError(f"Expected views of widths {self.widths}, got {other.widths}.")
        counts = self.counts + other.counts
        share = _ratio(other.counts, counts)
        shift = other.means - self.means
        scatter = self.scatter + other.scatter + self.counts * share * shift * shift.T
        return CellMoments(self.widths, counts, self.means + share * shift, scatter)

    def objects_by_view(self) -> dict[str, float]:
        """The most rows (sum of weights) that any feature has, for each view."""
        return dict.fromkeys(self.widths, float(self.counts.max(initial=0)))

    def recovered(self, columns: Mapping[str, Sequence[Any] | None]) -> Recovered:
        """Mean and covariance of the features, the latter positive semi-definite.

        The covariance of two features is that of the rows that have both, scatter_ij / (N_ij - 1).
        If the correlation matrix of all features has negative eigenvalues, those below 1e-3 are
        raised to that, and its diagonal is scaled back to 1, so that no correlation is above 1.

        Parameters
        ----------
        columns : mapping of str to sequence or None
            Names of the columns of each view, for messages.

        Returns
        -------
        Recovered

        Raises
        ------
        ValueError
            If a feature is seen in fewer than two rows.
        """
        name_of = naming(self.widths, columns)
        check_seen(self.counts, name_of)
        notes = notes_of_pairs(self.counts, name_of, "their covariance is taken to be 0.")
        mean = np.diag(self.means)
        Sigma = _ratio(self.scatter, np.where(self.counts > 1, self.counts - 1, 0))
        constant = np.diag(self.scatter) <= ROUNDING**2 * np.diag(self.counts) * mean**2
        Sigma[constant] = Sigma[:, constant] = 0
        if self.counts.min() < self.counts.max():  # else a covariance of complete rows
            Sigma, clipped = _positive(Sigma)
            if clipped:
                notes.append(
                    f"The correlations of pairs of features contradict each other: {clipped:.2%} "
                    "of the trace of their matrix had to be added to make it positive definite. "
                    "Without a ridge, components may be far from those of complete rows (.99 in "
                    'training rows where new ones had .16, and .67 with reg="cv"): use reg="cv".'
                )
        return Recovered.of(self.widths, mean, Sigma, self.counts, notes)


def _moments_of_block(views: Views, weights: np.ndarray | None) -> CellMoments:
    """Moments of rows in memory."""
    cells = table_of(views)
    seen = ~np.isnan(cells)
    mask = seen.astype(np.float64)
    cells[~seen] = 0
    origin = cells.sum(axis=0) / np.maximum(mask.sum(axis=0), 1)  # products cancel less about it
    cells -= origin
    cells[~seen] = 0
    weighted, weighted_mask = cells, mask
    if weights is not None:
        weighted, weighted_mask = weights[:, None] * cells, weights[:, None] * mask
    counts, sums = mask.T @ weighted_mask, weighted.T @ mask
    means = _ratio(sums, counts)
    scatter = cells.T @ weighted - sums * means.T
    means += np.where(counts > 0, origin[:, None], 0)
    return CellMoments(views.widths, counts, means, scatter)


def _positive(Sigma: np.ndarray) -> tuple[np.ndarray, float]:
    """A covariance without negative eigenvalues, and the share of the trace that was added."""
    scale = np.sqrt(np.diag(Sigma))
    varies = np.flatnonzero(scale > 0)
    if not len(varies):  # nor where squares overflow: the solver names the view
        return Sigma, 0.0
    units = np.outer(scale[varies], scale[varies])
    values, vectors = np.linalg.eigh(Sigma[np.ix_(varies, varies)] / units)
    if values[0] >= -ROUNDING * len(values) * values[-1]:
        return Sigma, 0.0
    raised = np.maximum(values, _LEAST_EIGENVALUE)
    correlation = (vectors * raised) @ vectors.T
    diagonal = np.sqrt(np.diag(correlation))
    positive = np.zeros_like(Sigma)
    positive[np.ix_(varies, varies)] = correlation / np.outer(diagonal, diagonal) * units
    return positive, float((raised - values).sum() / len(values))


def _ratio(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Divide a by b, with 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
