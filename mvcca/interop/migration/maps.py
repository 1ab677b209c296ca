"""The maps themselves, from sums of products of the pairs.

A direction maps the stored rows (*items*), the new queries (*queries*) or both into a space that
they share. What is not mapped stays as it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mvcca.interop.row_maps import CentredMap, RowMap
from mvcca.linear.ridges import Ridges
from mvcca.machine import lapack
from mvcca.measures import unit_rows
from mvcca.problem import Whitened
from mvcca.problem.whitened import canonical
from mvcca.statistics import Moments, column_slices

OLD, NEW = "old", "new"


class RowMaps(NamedTuple):
    """Maps of old rows and of new queries; None leaves rows as they are."""

    items: RowMap | None
    queries: RowMap | None

    def items_of(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the index, of length 1."""
        own = self.items
        return unit_rows(rows) if own is None else own.apply(rows, OLD, to_unit=True)

    def queries_of(self, rows: np.ndarray) -> np.ndarray:
        """Queries of the index, of length 1."""
        own = self.queries
        return unit_rows(rows) if own is None else own.apply(rows, NEW, to_unit=True)


def ridges_of(moments: Moments) -> Ridges:
    """The regressions of new rows on old ones."""
    return Ridges.of(moments, OLD, NEW)


def ridge_map(ridges: Ridges, reg: float) -> CentredMap:
    """The map of old rows with a ridge in units of the mean variance."""
    return CentredMap(ridges.means[OLD], ridges.weights(reg), ridges.means[NEW])


def rotation(moments: Moments, direction: str) -> RowMaps:
    """The rotation between the centred rows of both models.

    Mapped items get the scale and the mean of the new rows. Queries get neither: the cosine does
    not see the scale, and a mean would rank rows by their own inner product with it.
    """
    columns, whole, means = column_slices(moments.widths), moments.covariance(), moments.mean()
    covariance, between = whole[columns[OLD], columns[OLD]], whole[columns[OLD], columns[NEW]]
    turn = lapack.orthogonal_factor(between)
    if direction == "queries":
        return RowMaps(None, CentredMap(means[NEW], turn.T, np.zeros(len(turn))))
    variance = np.einsum("ik,ik->", turn, covariance @ turn)
    scale = np.einsum("ik,ik->", turn, between) / variance if variance > 0 else 0.0
    return RowMaps(CentredMap(means[OLD], scale * turn, means[NEW]), None)


class Canonical:
    """Regularised CCA of both models, for any ridge, from two eigendecompositions."""

    def __init__(self, moments: Moments) -> None:
        columns, whole = column_slices(moments.widths), moments.covariance()
        self.means, self.n_pairs = moments.mean(), float(moments.counts[0, 0])
        self.of_old, self.of_new = (
            Whitened.of_covariance(whole[own, own]) for own in (columns[OLD], columns[NEW])
        )
        self.between = whole[columns[OLD], columns[NEW]]

    def bilinear(self, reg: float) -> RowMaps:
        """The query adapter A diag(ρ) Bᵀ (y - ȳ), whose inner products with old rows rank."""
        weights = self.of_new.inverse(reg) @ self.between.T @ self.of_old.inverse(reg)
        return RowMaps(None, CentredMap(self.means[NEW], weights, np.zeros(weights.shape[1])))

    def shared(self, reg: float) -> RowMaps:
        """Canonical variates of both models, times the root of their correlation."""
        x, y = self.of_old, self.of_new
        rho, left, right = canonical(x.weights.T @ self.between @ y.weights, x, y, (reg, reg))
        weights = {OLD: x.weights @ (left * np.sqrt(rho)), NEW: y.weights @ (right * np.sqrt(rho))}
        zeros = np.zeros(len(rho))
        return RowMaps(*(CentredMap(self.means[n], W, zeros) for n, W in weights.items()))
