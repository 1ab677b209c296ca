"""The regression of views on confounds, which are removed from views instead of correlated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.statistics.pair_covariance import PairCovariance


@dataclass(frozen=True, eq=False)
class Regression:
    """Least-squares predictions m_x + B_xᵀ (z - m_z) of rows of views from their confounds z.

    Attributes
    ----------
    name : str
        The view of the confounds.
    mean : ndarray, shape (d_z,)
        m_z.
    coefficients : dict of str to ndarray, shape (d_z, n_features)
        B_x = S_zz⁺ S_zx, by view.
    rank : int
        Rank of S_zz: the degrees of freedom that residuals lack.
    """

    name: str
    mean: np.ndarray
    coefficients: dict[str, np.ndarray]
    rank: int

    def residual(self, pairs: Iterable[PairCovariance]) -> list[PairCovariance]:
        """Covariances of residuals of rows that need not be those of the regression.

        Parameters
        ----------
        pairs : iterable of PairCovariance
            Of each two views, the confounds included, over the same rows.
        """
        pairs, with_confounds, within = list(pairs), {}, np.zeros((0, 0))
        for (p, q), between, (first, last), _ in pairs:
            if q == self.name:
                with_confounds[p], within = between, last
            elif p == self.name:
                with_confounds[q], within = between.T, first

        def less(p: str, q: str, covariance: np.ndarray) -> np.ndarray:
            B_p, B_q = self.coefficients[p], self.coefficients[q]
            of_p, of_q = with_confounds[p], with_confounds[q]
            return covariance - of_p @ B_q - B_p.T @ of_q.T + B_p.T @ within @ B_q

        found = []
        for (p, q), between, (first, last), count in pairs:
            if self.name not in (p, q):
                residual = less(p, p, first), less(q, q, last)
                found.append(PairCovariance((p, q), less(p, q, between), residual, count))
        return found

    def scaled(self, factors: Mapping[str, np.ndarray]) -> Regression:
        """The same regression of features that are multiplied by `factors`."""
        coefficients = {n: B * factors.get(n, 1.0) for n, B in self.coefficients.items()}
        return replace(self, coefficients=coefficients)

    def lifted(self, bases: Mapping[str, Any]) -> Regression:
        """The same regression of the features, from coordinates in `bases`."""
        mean, coefficients = self.mean, dict(self.coefficients)
        for name, basis in bases.items():
            if name in coefficients:
                coefficients[name] = basis.back(coefficients[name])
        if self.name in bases:
            basis = bases[self.name]
            mean = basis.mean + basis.back(mean[None])[0]
            coefficients = {name: basis.lift(B) for name, B in coefficients.items()}
        return replace(self, mean=mean, coefficients=coefficients)
