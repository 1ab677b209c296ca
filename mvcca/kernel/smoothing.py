"""Weights of nearest training rows, and their doubly stochastic product, for nonparametric CCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, aslinearoperator, cg
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from mvcca.blocks import as_block
from mvcca.blocks.checks import of_view
from mvcca.machine import lapack
from mvcca.problem.rows import mean_and_variance
from mvcca.views import Views
from mvcca.views.powers_of_two import exponents_of

# Sinkhorn iterations before Newton's, which have to start close to the solution.
_PLAIN_ITERATIONS = 15


@dataclass(frozen=True, eq=False)
class Smoother:
    """Rows to Gaussian weights of their nearest training rows, which add up to 1."""

    reducer: Any  # fitted transformer or None
    origin: np.ndarray | None  # (n_features,), subtracted from rows so that distances keep digits
    unit: float  # √ of the mean squared distance of the training rows from their mean
    search: NearestNeighbors  # among the training rows, in that unit
    bandwidth: float
    factors: np.ndarray | None = None  # (n_features,), by which columns are multiplied first

    @classmethod
    def fit(
        cls,
        name: str,
        X: Any,
        reducer: Any,
        n_neighbors: int,
        bandwidth: float,
        factors: np.ndarray | None = None,
    ) -> Smoother:
        """Keep the rows of a view, reduced, for search; all are neighbours if there are too few."""
        X = as_block(X).in_units(factors).matrix
        if reducer is not None:
            try:
                reducer = clone(reducer).fit(X)
                X = reducer.transform(X)
            except ValueError as refused:
                raise of_view(name, refused) from refused
        rows = as_block(X).promoted(np.dtype(np.float64))
        power = 0  # of two, by which rows are divided if their squares leave the range of floats
        if exponents := exponents_of(Views({name: rows})):
            power = int(exponents[name][0])
            rows = rows.scaled(np.full(X.shape[1], np.ldexp(1.0, -power)))
        X = rows.matrix
        mean, variance = mean_and_variance(name, X)
        squared = variance.sum()
        origin = None
        if not rows.is_sparse or squared < mean @ mean:  # far from zero, sparse rows gain nothing
            X = as_block(X).dense().matrix - mean
            origin = np.ldexp(mean, power)
        unit = np.sqrt(squared)
        search = NearestNeighbors(n_neighbors=min(n_neighbors, X.shape[0])).fit(X / unit)
        return cls(reducer, origin, float(np.ldexp(unit, power)), search, bandwidth, factors)

    def __call__(self, X: Any, fitted: bool = False) -> csr_array:
        """The weights, shape (n_rows, n_training_rows), n_neighbors of them in every row.

        If X are the training rows (`fitted`), every row is among its neighbours, even if the
        search had to choose among equal rows.
        """
        shape = (X.shape[0], self.search.n_samples_fit_)
        if not X.shape[0]:  # no object is seen in this view
            return csr_array(shape)
        X = as_block(X).in_units(self.factors).matrix
        if self.reducer is not None:
            X = self.reducer.transform(X)
        X = X.astype(np.float64)
        if self.origin is not None:
            X = as_block(X).dense().matrix - self.origin
        distances, neighbours = self.search.kneighbors(X / self.unit)
        if fitted:
            own = np.arange(len(neighbours))
            crowded_out = (neighbours != own[:, None]).all(axis=1)
            neighbours[crowded_out, -1], distances[crowded_out, -1] = own[crowded_out], 0
        # The nearest one has weight 1 before scaling: far rows underflow together, not to 0 / 0.
        with np.errstate(over="ignore"):  # of tiny bandwidths; no square of a large one is taken
            exponents = (distances - distances[:, :1]) / self.bandwidth
            sums = (distances + distances[:, :1]) / self.bandwidth
            np.multiply(exponents, sums / 2, where=exponents > 0, out=exponents)
        weights = np.exp(-exponents)
        weights /= weights.sum(axis=1, keepdims=True)
        starts = np.arange(0, neighbours.size + 1, neighbours.shape[1])
        return csr_array((weights.ravel(), neighbours.ravel(), starts), shape=shape)


def sinkhorn(
    D_x: csr_array, D_y: csr_array, n_iter: int, tol: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Scale D_x D_yᵀ to a doubly stochastic matrix.

    Returns vectors a and b, and how far a column of diag(a) D_x D_yᵀ diag(b) is from adding up to
    1 at most; its rows do so exactly.
    """
    a = np.ones(D_x.shape[0])
    columns = D_y @ (D_x.T @ a)
    for iteration in range(n_iter):
        b = 1 / columns
        if iteration >= _PLAIN_ITERATIONS:
            b *= np.exp(_newton_step(D_x, D_y, a, b))
        a = 1 / (D_x @ (D_y.T @ b))
        columns = D_y @ (D_x.T @ a)
        error = float(np.abs(b * columns - 1).max())
        if error <= tol:
            break
    return a, b, error


def _newton_step(D_x: csr_array, D_y: csr_array, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Logarithm of the factor on b that makes columns add up to 1, to first order.

    With M = diag(a) D_x D_yᵀ diag(b), whose columns add up to 1 and rows to r, both stay if b is
    multiplied by 1 + v and rows are scaled back: (I - Mᵀ diag(1/r) M) v = Mᵀ(r - 1) / r. Plain
    Sinkhorn steps shrink errors only by σ_1², which is close to 1 if views correlate.
    """

    A, B = diags_array(a) @ D_x, diags_array(b) @ D_y  # M = A Bᵀ
    M = aslinearoperator(A) @ aslinearoperator(B.T)
    rows = M @ np.ones(len(b))
    system = LinearOperator((len(b),) * 2, matvec=lambda v: v - M.T @ ((M @ v) / rows), dtype=float)
    v, _ = cg(system, M.T @ (1 - 1 / rows), rtol=1e-3, maxiter=500)
    return np.clip(v, -1, 1)


def top_triplets(
    A: csr_array, B: csr_array, k: int, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leading singular triplets of A Bᵀ, from products with A and B unless it is small itself."""
    n = A.shape[0]
    if n <= 10 * k:  # smaller than the basis that Lanczos would work in
        U, sigma, V = lapack.top_singular((A @ B.T).toarray(), k)
        return U[:, :k], sigma[:k], V[:, :k]
    start = check_random_state(random_state or 0).standard_normal(n)
    product = aslinearoperator(A) @ aslinearoperator(B.T)
    try:
        return lapack.top_singular(product, k, start)
    except ArpackNoConvergence as error:
        raise ValueError(
            "The Lanczos iteration does not converge, because too many correlations are 1: the "
            "graph of neighbours falls apart. Raise n_neighbors or bandwidth."
        ) from error
