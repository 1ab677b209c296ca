"""The maps themselves, from sums of products of the pairs.

A direction maps the stored rows (*items*), the new queries (*queries*) or both into a space that
they share. What is not mapped stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from mvcca.interop.row_maps import CentredMap, RowMap
from mvcca.linear.ridges import Ridges
from mvcca.machine import lapack
from mvcca.measures import unit_rows
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


def total(sums: Iterable[Moments]) -> Moments:
    """Moments of the pairs of all parts of the sample."""
    return reduce(add, sums)


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
    left, values, right = lapack.svd(between)
    if direction == "queries":
        return RowMaps(None, CentredMap(means[NEW], right.T @ left.T, np.zeros(len(left))))
    variance = np.einsum("ik,ik->", left, covariance @ left)
    scale = values.sum() / variance if variance > 0 else 0.0
    return RowMaps(CentredMap(means[OLD], scale * left @ right, means[NEW]), None)


class Canonical:
    """Regularised CCA of both models, for any ridge, from two eigendecompositions."""

    def __init__(self, moments: Moments) -> None:
        columns, whole = column_slices(moments.widths), moments.covariance()
        self.means, self.n_pairs = moments.mean(), float(moments.counts[0, 0])
        self._parts = {
            name: eigh(whole[columns[name], columns[name]], driver="evd") for name in (OLD, NEW)
        }
        self.between = whole[columns[OLD], columns[NEW]]

    def inverse(self, name: str, reg: float, power: float = 1.0) -> np.ndarray:
        """A power of the inverse of the covariance with a ridge in units of the mean variance."""
        values, axes = self._parts[name]
        damped = np.maximum(values, 0) + reg * values.mean()
        factors = np.divide(1, damped, where=damped > 0, out=np.zeros_like(damped)) ** power
        return np.asarray(axes * factors @ axes.T)

    def bilinear(self, reg: float) -> RowMaps:
        """The query adapter A diag(ρ) Bᵀ (y - ȳ), whose inner products with old rows rank."""
        weights = self.inverse(NEW, reg) @ self.between.T @ self.inverse(OLD, reg)
        return RowMaps(None, CentredMap(self.means[NEW], weights, np.zeros(weights.shape[1])))

    def shared(self, reg: float) -> RowMaps:
        """Canonical variates of both models, times the root of their correlation."""
        roots = {name: self.inverse(name, reg, 0.5) for name in (OLD, NEW)}
        left, rho, right = lapack.svd(roots[OLD] @ self.between @ roots[NEW])
        weights = (roots[OLD] @ left * np.sqrt(rho), roots[NEW] @ right.T * np.sqrt(rho))
        zeros = np.zeros(len(rho))
        return RowMaps(
            *(CentredMap(self.means[n], W, zeros) for n, W in zip((OLD, NEW), weights, strict=True))
        )
