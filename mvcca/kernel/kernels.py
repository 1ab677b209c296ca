"""Kernels by name, as scikit-learn computes them, and the median heuristic for their width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels

from mvcca.blocks import as_block, take_rows, to_dense

NAMES = ("rbf", "linear", "poly", "cosine", "precomputed")

_MEDIAN_ROWS = 1000  # half a million distances give the median to about one percent


@dataclass(frozen=True)
class Kernel:
    """A kernel and its parameters: ``kernel(X, Y)`` is the matrix of k(x, y), in float64.

    Rows X of a "precomputed" kernel are kernel values with all training rows; Y are positions among
    these.
    """

    name: str | Callable[[Any, Any], float]
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1

    def __call__(self, X: Any, Y: Any) -> np.ndarray:
        """k(x, y) of all pairs of rows, (n_x, n_y)."""
        if callable(self.name):
            return pairwise_kernels(X, Y, metric=self.name)
        if self.is_precomputed:
            K = X[:, Y]
            return to_dense(K).astype(np.float64)
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        K = pairwise_kernels(X, Y, metric=self.name, filter_params=True, **parameters)
        return to_dense(K)

    @property
    def is_precomputed(self) -> bool:
        """Whether rows are kernel values already."""
        return self.name == "precomputed"

    @property
    def sees_only_differences(self) -> bool:
        """Whether moving all rows leaves the kernel, or at least the centred one, as it is."""
        return self.name in ("rbf", "linear")

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of every row."""
        if self.name == "rbf":
            return np.ones(X.shape[0])
        if self.is_precomputed:
            return np.asarray(X.diagonal(), dtype=np.float64)
        rows = (X[i : i + 64] for i in range(0, X.shape[0], 64))  # 64 times the work, in few calls
        return np.concatenate([np.diag(self(block, block)) for block in rows])


def median_gamma(X: Any, rng: np.random.RandomState) -> float:
    """γ = 1 / median ‖x - x'‖², over the pairs of at most 1000 rows drawn, repeated rows once."""
    if X.shape[0] > _MEDIAN_ROWS:
        X = take_rows(X, np.sort(rng.choice(X.shape[0], _MEDIAN_ROWS, replace=False)))
    rows = as_block(X).plain().about(None)
    X = rows.about(rows.origin()).matrix  # keeps distances, and their digits
    squares = euclidean_distances(X, squared=True)
    if not np.isfinite(squares).all():
        raise ValueError("Distances between rows exceed the largest float. Rescale the view.")
    same = squares <= 1e-12 * squares.max()  # but for rounding
    first = np.flatnonzero(~np.tril(same, -1).any(axis=1))
    if len(first) < 2:
        return 1.0  # arbitrary: `Problem` refuses a view that never varies
    if len(first) < len(squares):
        squares = squares[np.ix_(first, first)]
    return float(1 / np.median(squareform(squares, checks=False)))
