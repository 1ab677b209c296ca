"""A view as U D Aᵀ, in which CCA with any ridge, and of any order of the rows, takes a small SVD.

Eigenvectors cost three times as much as a Cholesky factor, which `Problem.solve` takes for its one
ridge. Views come here where their lengths along the axes are needed as such, or where CCA is
repeated hundreds of times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import linalg

from mvcca.machine import lapack
from mvcca.problem._centring import centred_rows, reciprocal, rounding_of_rows
from mvcca.problem.ridge import ridge_in
from mvcca.problem.whitener import above_rounding

_EPS = np.finfo(float).eps
_EXPLAINED = 1e-10  # share of the largest length, up to which what a map leaves is rounding


@dataclass(frozen=True, eq=False)
class Whitened:
    """Centred rows X = U D Aᵀ of a view, with orthonormal columns U = X W.

    Directions that are only rounding are left out. Of a covariance, rows are those divided by
    √(n - 1), and U is unknown.

    Attributes
    ----------
    values : ndarray, shape (r,)
        Diagonal of D, decreasing.
    axes : ndarray, shape (d, r)
        A; orthonormal unless columns were scaled to tell directions from rounding.
    weights : ndarray, shape (d, r)
        W.
    n_features : int
        Number of columns whose mean squared length is the unit of ridges.
    basis : ndarray, shape (n_rows, r), or None
        U.
    """

    values: np.ndarray
    axes: np.ndarray
    weights: np.ndarray
    n_features: int
    basis: Any = None

    @classmethod
    def of_covariance(
        cls, B: np.ndarray, *, n_features: int | None = None, least: float | None = None
    ) -> Self:
        """Decompose a covariance of shape (d, d).

        `n_features` counts the features if its columns are coordinates in a basis of them. Up to
        the share `least` of the largest eigenvalue, by default d eps, others are rounding.
        """
        squares, axes = linalg.eigh(B)
        least = len(B) * _EPS if least is None else least
        kept = np.flatnonzero(squares > least * squares[-1])[::-1]
        values, axes = np.sqrt(squares[kept]), axes[:, kept]
        return cls(values, axes, axes / values, n_features or len(B))

    @classmethod
    def of_rows(cls, X: Any, *, equilibrate: bool = True, center: bool = True) -> Self:
        """Decompose rows of shape (n_rows, d).

        If `equilibrate`, columns are scaled to unit length first, so that a column in small units
        counts as much as any other; D has the lengths of the scaled columns along the axes.
        """
        mean, rows, lengths = centred_rows(X, None, center)
        return cls.of_centred(rows, lengths, rounding_of_rows(mean, len(rows)), equilibrate)

    @classmethod
    def of_centred(
        cls, rows: np.ndarray, lengths: np.ndarray, rounding: np.ndarray, equilibrate: bool
    ) -> Self:
        """Decompose centred rows, which are overwritten, with columns of these lengths.

        Directions up to max(n, d) eps of the largest, or to what the rounding of each column can
        give them, are left out.
        """
        scale = reciprocal(lengths) if equilibrate else (lengths > 0).astype(float)
        rows *= scale
        left, sizes, right = lapack.svd(rows)
        real = sizes > max(rows.shape) * _EPS * sizes[0]
        real &= above_rounding(sizes, right.T, rounding * scale)
        values, right = sizes[real], right[real]
        weights = scale[:, None] * right.T / values
        return cls(values, (right * reciprocal(scale)).T, weights, len(lengths), left[:, real])

    @property
    def rank(self) -> int:
        """Number of independent columns."""
        return len(self.values)

    @cached_property
    def unit(self) -> float:
        """Mean squared length of the features, of which a ridge is a multiple."""
        return float(np.sum(self.values**2) / self.n_features)

    def unit_lengths(self) -> Self:
        """The same directions, each of which counts as much as any other: D = I."""
        return replace(self, values=np.ones(self.rank), axes=self.axes * self.values)

    def leading(self, k: int) -> Self:
        """The first k axes."""
        basis = None if self.basis is None else self.basis[:, :k]
        own = self.values[:k], self.axes[:, :k], self.weights[:, :k]
        return replace(self, values=own[0], axes=own[1], weights=own[2], basis=basis)

    def in_units(self, units: np.ndarray) -> Self:
        """The view with columns in these units, (d,); 0 leaves a column out.

        An SVD of the axes keeps digits that the covariance of columns in unlike units loses.
        """
        axes, values, right = lapack.svd(units[:, None] * self.axes * self.values)
        weights = self.weights * reciprocal(units)[:, None] @ right.T
        return replace(self, values=values, axes=axes, weights=weights)

    def factors(self, reg: float) -> np.ndarray:
        """F = D / √(D² + r), (r,), by which a ridge r shrinks U; `reg` is in the unit."""
        if not reg:
            return np.ones(self.rank)
        squares = self.values**2
        return np.asarray(np.sqrt(squares / (squares + ridge_in(reg, self.unit))))

    def inverse(self, reg: float) -> np.ndarray:
        """(AD²Aᵀ + r I)⁻¹ within the axes, (d, d): W F² Wᵀ."""
        return np.asarray((self.weights * self.factors(reg) ** 2) @ self.weights.T)

    def after(self, linear: Callable[[np.ndarray], np.ndarray]) -> Self:
        """What a linear map of the rows, such as the removal of confounds, leaves of the view."""
        left, sizes, right = lapack.svd(linear(self.basis * self.values))
        kept = sizes > _EXPLAINED * self.values.max(initial=0)
        values, turn = sizes[kept], right[kept].T
        weights = (self.weights * self.values) @ turn / values
        return replace(
            self, values=values, axes=self.axes @ turn, weights=weights, basis=left[:, kept]
        )


def canonical(
    cross: np.ndarray,
    a: Whitened,
    b: Whitened,
    reg: tuple[float, float] = (0.0, 0.0),
    *,
    full: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical correlations of two views with ridges, and coordinates of the variates.

    Parameters
    ----------
    cross : ndarray, shape (r_a, r_b)
        U_aᵀU_b: of rows in any order, or W_aᵀ C W_b for the covariance C of both views.
    a, b : Whitened
        The views.
    reg : pair of float
        Ridges, in units of the mean variance of each view.
    full : bool, default=False
        Whether to complete the variates to bases of both views.

    Returns
    -------
    correlations : ndarray, shape (k,)
        Singular values of K = F_a U_aᵀU_b F_b.
    left, right : ndarray, shape (r_a, k) and (r_b, k)
        Singular vectors times F: variates are U_a left and U_b right, weights W_a left and
        W_b right. Without ridges, variates have length 1.
    """
    factors = a.factors(reg[0])[:, None], b.factors(reg[1])[:, None]
    left, correlations, right = lapack.svd(factors[0] * cross * factors[1].T, full_matrices=full)
    return np.minimum(correlations, 1), factors[0] * left, factors[1] * right.T


def canonical_of_covariances(
    within: tuple[np.ndarray, np.ndarray], between: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical correlations (..., k) and weights (..., d, k) of many pairs of covariances.

    Their Cholesky factors take a third of the time of `Whitened.of_covariance`, and need full rank.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a covariance lacks rank.
    """
    roots = [np.linalg.inv(np.linalg.cholesky(B)) for B in within]
    left, correlations, right = lapack.svd(roots[0] @ between @ roots[1].swapaxes(-1, -2))
    weights = [root.swapaxes(-1, -2) for root in roots]
    return (
        np.minimum(correlations, 1),
        weights[0] @ left,
        weights[1] @ right.swapaxes(-1, -2),
    )
