"""Kernels by name, as scikit-learn computes them; their width, landmarks and Nyström features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.metrics.pairwise import euclidean_distances, pairwise_kernels
from sklearn.utils import check_random_state

from mvcca.blocks import as_block
from mvcca.linear.features import ROUNDING, LandmarkFeatures
from mvcca.machine.config import block_size

NAMES = ("rbf", "linear", "poly", "cosine", "precomputed")

_OF_DIFFERENCES = ("rbf", "linear")  # moving all rows leaves the centred kernel as it is

_SMALL = 40  # binary exponents up to which the length of a row passes for its size
_MOST = 1000  # and that scales have at most
_LEAST_SQUARE = 1e-303  # of a distance, with digits to spare for rounding errors
_COMPARED = 64  # rows of a block that stays in a cache
_MEDIAN_ROWS = 1000  # half a million distances give the median to about one percent


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel and its parameters: ``kernel(X, Y)`` is the matrix of k(x, y), in float64.

    Rows X of a "precomputed" kernel are kernel values with all training rows; Y are positions among
    these.
    """

    name: str | Callable[[Any, Any], float]
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    factors: np.ndarray | None = None  # (width,), by which columns are multiplied first

    def __call__(self, X: Any, Y: Any) -> np.ndarray:
        """k(x, y) of all pairs of rows, (n_x, n_y)."""
        if self.factors is not None:
            X, Y = (as_block(rows).in_units(self.factors).matrix for rows in (X, Y))
        if callable(self.name):
            return pairwise_kernels(X, Y, metric=self.name)
        if self.name == "precomputed":
            K = X[:, Y]
            return as_block(K).dense().matrix.astype(np.float64)
        if self.name == "cosine":
            X, Y = _near_one(X), _near_one(Y)
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        K = pairwise_kernels(X, Y, metric=self.name, filter_params=True, **parameters)
        return as_block(K).dense().matrix

    def diagonal(self, X: Any) -> np.ndarray:
        """k(x, x) of every row."""
        if self.name == "rbf":
            return np.ones(X.shape[0])
        if self.name == "precomputed":
            return np.asarray(X.diagonal(), dtype=np.float64)
        rows = (X[i : i + 64] for i in range(0, X.shape[0], 64))  # 64 times the work, in few calls
        return np.concatenate([np.diag(self(block, block)) for block in rows])


def _near_one(X: Any) -> Any:
    """Rows scaled by powers of two if some are so small that scikit-learn takes them for zeros."""
    sizes = as_block(X).row_sizes()
    exponents = np.frexp(sizes)[1]
    if (np.abs(exponents) < _SMALL).all():
        return X
    of_columns = as_block(X.T).promoted(np.dtype(np.float64))
    return of_columns.scaled(np.ldexp(1.0, -np.clip(exponents, -_MOST, _MOST))).matrix.T


def seed_of_views(random_state: Any) -> int:
    """A seed from which each view draws its rows or frequencies, whatever the other views are."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def median_gamma(X: Any, rng: np.random.RandomState, factors: np.ndarray | None = None) -> float:
    """γ = 1 / median ‖x - x'‖², over the pairs of at most 1000 rows drawn, repeated rows once."""
    if X.shape[0] > _MEDIAN_ROWS:
        X = as_block(X).take(np.sort(rng.choice(X.shape[0], _MEDIAN_ROWS, replace=False))).matrix
    rows = as_block(X).in_units(factors).plain().about(None)
    X = rows.about(rows.origin()).matrix  # keeps distances, and their digits
    squares = euclidean_distances(X, squared=True)
    largest = squares.max()  # NaN if any is
    if not np.isfinite(largest):
        raise ValueError("Distances between rows exceed the largest float. Rescale the view.")
    if largest < _LEAST_SQUARE and np.any(np.diff(as_block(X).dense().matrix, axis=0)):
        raise ValueError("Squares of distances between rows underflow. Rescale the view.")
    with np.errstate(under="ignore"):
        same = squares <= 1e-12 * largest  # but for rounding
    first = np.arange(len(same))
    if np.count_nonzero(same) > len(same):  # more than each row and itself
        first = np.flatnonzero(~np.tril(same, -1).any(axis=1))
        squares = squares[np.ix_(first, first)]
    if len(first) < 2:
        return 1.0  # arbitrary: `Problem` refuses a view that never varies
    return float(1 / np.median(squareform(squares, checks=False)))


def features_at(kernel: Kernel, X: Any, rows: np.ndarray) -> LandmarkFeatures:
    """Features with some rows of X as landmarks, whose k must be positive semi-definite."""
    features = landmarks_at(kernel, X, rows)
    chosen = X[rows] if kernel.name == "precomputed" else features.landmarks
    return _of_independent(features, kernel(chosen, features.landmarks))


def landmarks_at(kernel: Kernel, X: Any, rows: np.ndarray) -> LandmarkFeatures:
    """The same before L is known, and which landmarks are independent."""
    origin = origin_for(kernel, X)
    chosen = rows
    if kernel.name != "precomputed":
        chosen = as_block(X[rows]).in_memory().about(origin).matrix
    return LandmarkFeatures(kernel, chosen, None, origin, X.shape[1])


def factored(features: LandmarkFeatures) -> LandmarkFeatures:
    """The same features with L, of the landmarks that are independent."""
    if features.factor is not None:
        return features
    return _of_independent(features, features.kernel(features.landmarks, features.landmarks))


def _of_independent(features: LandmarkFeatures, K: np.ndarray) -> LandmarkFeatures:
    if not np.isfinite(K).all():
        raise ValueError("The kernel is not finite on the training rows. Rescale them.")
    if not is_symmetric(K):
        raise ValueError("Expected a symmetric kernel, k(x, y) = k(y, x), got another.")
    return LandmarkFeatures.at(
        features.landmarks, features.kernel, K, features.width, features.origin
    )


def is_symmetric(K: np.ndarray) -> bool:
    """Whether a matrix is symmetric but for rounding; a block at a time is compared."""
    slices = [slice(start, start + _COMPARED) for start in range(0, len(K), _COMPARED)]
    unlike = max(np.abs(K[some] - K[:, some].T).max() for some in slices)
    return bool(unlike <= 1e-6 * max(np.abs(K[some]).max() for some in slices))


def greedy_landmarks(kernel: Kernel, X: Any, n_landmarks: int) -> np.ndarray:
    """Rows that an incomplete Cholesky decomposition of k(X, X) takes as pivots, in its order."""
    # Each is the row that those before it explain least (Bach and Jordan, "Kernel Independent
    # Component Analysis", JMLR 2002, section 4). Takes n_rows x n_landmarks numbers of memory and
    # as many values of the kernel.
    X = as_block(X).in_memory().matrix
    if kernel.name != "precomputed":
        X = as_block(X).about(origin_for(kernel, X)).matrix
    residual = kernel.diagonal(X)
    least = ROUNDING * len(residual) * residual.max()
    factor = np.empty((X.shape[0], n_landmarks), order="F")
    pivots: list[int] = []
    for j in range(n_landmarks):
        pivot = int(residual.argmax())
        if residual[pivot] <= least:
            break
        column = kernel(X, [pivot] if kernel.name == "precomputed" else X[pivot : pivot + 1])
        column = column[:, 0] - factor[:, :j] @ factor[pivot, :j]
        factor[:, j] = column / np.sqrt(residual[pivot])
        residual = residual - factor[:, j] ** 2
        residual[pivot] = 0  # never twice, whatever rounding leaves
        pivots.append(pivot)
    return np.array(pivots, dtype=np.intp)


def origin_for(kernel: Kernel, X: Any) -> np.ndarray | None:
    """A shift of the rows that improves precision: about the mean of dense rows.

    Sparse rows are shifted in nearly full columns only, to keep their zeros.
    """
    if kernel.name not in _OF_DIFFERENCES:
        return None
    rows = as_block(X)
    if rows.is_lazy or rows.on_device:  # some of them will do
        rows = rows.take(slice(block_size(8 * X.shape[1])))
    origin = rows.origin()
    return origin if origin.any() else None
