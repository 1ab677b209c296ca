"""The maps themselves, from sums of products of the pairs: ridge regressions and rotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import eigh

from mvcca.machine.threads import each
from mvcca.statistics import Moments, column_slices

OLD, NEW = "old", "new"
_TILE_ROWS = 512  # stay in cache between centring, product and check
_PART_ROWS = 4 * _TILE_ROWS  # of one thread

Map = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Ridges:
    """Ridge regressions with any ridge, from one eigendecomposition of the covariance of x.

    With the left-out pair i, the residual e_i and the entries h_ji of the hat matrix

        h_ji = 1/n + x̄_jᵀ (X̄ᵀX̄ + λI)⁻¹ x̄_i,

    the map without pair i sends x_j to f(x_j) - h_ji / (1 - h_ii) e_i, where λ is kept.
    """

    means: Mapping[str, np.ndarray]
    n_pairs: int
    values: np.ndarray  # (k,), eigenvalues of the covariance of x
    axes: np.ndarray  # (n_features, k), its eigenvectors
    cross: np.ndarray  # (k, n_features of y), covariance of y with the coordinates of x

    @classmethod
    def of(cls, sums: Iterable[Moments]) -> Ridges:
        """The regressions on the pairs of all parts of the sample."""
        n_pairs, covariance, between, means = _covariances(sums)
        values, axes = eigh(covariance, driver="evd", check_finite=True)
        return cls(means, n_pairs, values, axes, axes.T @ between)

    def fit(self, reg: float, rank: int | None = None) -> Map:
        """The map with a ridge in units of the mean variance."""
        B = self._inverse(reg)[:, None] * self.cross
        if rank is not None and rank < min(B.shape):
            top = eigh(self.cross.T @ B, subset_by_index=(B.shape[1] - rank, B.shape[1] - 1))[1]
            B = B @ top @ top.T
        return _mapping(self.axes @ B, self.means)

    def coordinates(self, old: np.ndarray) -> np.ndarray:
        """Centred old rows in the axes, (n_rows, k)."""
        return (old - self.means[OLD]) @ self.axes

    def residuals(self, reg: float, coordinates: np.ndarray, new: np.ndarray) -> np.ndarray:
        """New rows minus their predictions, (n_rows, n_features of y)."""
        return new - self.means[NEW] - coordinates * self._inverse(reg) @ self.cross

    def leverages(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """h_ii of rows among the pairs, (n_rows,)."""
        return 1 / self.n_pairs + coordinates**2 @ self._inverse(reg) / (self.n_pairs - 1)

    def duals(self, reg: float, coordinates: np.ndarray) -> np.ndarray:
        """Vectors whose inner products with centred old rows are h_ji - 1/n, (n_rows, k)."""
        return coordinates * (self._inverse(reg) / (self.n_pairs - 1)) @ self.axes.T

    def _inverse(self, reg: float) -> np.ndarray:
        damped = self.values + reg * self.values.mean()
        least = self.values[-1] * len(self.values) * np.finfo(float).eps
        return np.divide(1, damped, where=self.values > least, out=np.zeros_like(damped))


def rotation(sums: Iterable[Moments], rank: int | None) -> Map:
    """The scaled rotation that maps the old vectors closest to the new ones."""
    _, covariance, between, means = _covariances(sums)
    left, values, right = np.linalg.svd(between, full_matrices=False)
    left, right = left[:, :rank], right[:rank]
    variance = np.einsum("ik,ik->", left, covariance @ left)
    scale = values[:rank].sum() / variance if variance > 0 else 0.0
    return _mapping(scale * left @ right, means)


def _covariances(
    sums: Iterable[Moments],
) -> tuple[int, np.ndarray, np.ndarray, Mapping[str, np.ndarray]]:
    """Number of pairs, covariance of the old vectors, that of old with new ones, and the means."""
    moments = reduce(add, sums)
    columns, covariance = column_slices(moments.widths), moments.covariance()
    old, n_pairs = columns[OLD], round(moments.counts[0, 0])
    return n_pairs, covariance[old, old], covariance[old, columns[NEW]], moments.mean()


def _mapping(weights: np.ndarray, means: Mapping[str, np.ndarray]) -> Map:
    """The affine map with these weights of centred rows, in the precision of the rows."""
    in_precision = {
        np.dtype(kind): tuple(part.astype(kind) for part in (weights, means[OLD], means[NEW]))
        for kind in (np.float32, np.float64)
    }

    def predict(rows: np.ndarray) -> np.ndarray:
        dtype = np.dtype(np.float32 if rows.dtype == np.float32 else np.float64)
        W, before, after = in_precision[dtype]
        mapped = np.empty((len(rows), W.shape[1]), dtype=dtype)

        def fill(part: slice) -> None:
            centred = np.empty((_TILE_ROWS, len(W)), dtype=dtype)
            for start in range(part.start, part.stop, _TILE_ROWS):
                tile = mapped[start : start + _TILE_ROWS]
                np.subtract(rows[start : start + _TILE_ROWS], before, out=centred[: len(tile)])
                np.matmul(centred[: len(tile)], W, out=tile)
                tile += after
                with np.errstate(over="ignore", invalid="ignore"):
                    length = np.vdot(tile, tile)  # the fastest look at all numbers
                if not (np.isfinite(length) or np.isfinite(tile).all()):  # it may overflow
                    raise ValueError("View 'old' contains NaN, infinity or numbers that overflow.")

        each(
            fill,
            (slice(a, min(a + _PART_ROWS, len(rows))) for a in range(0, len(rows), _PART_ROWS)),
        )
        return mapped

    return predict
