"""The maps themselves, from sums of products of the pairs: ridge regressions and rotations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import add

import numpy as np

from mvcca.linear.ridges import Ridges
from mvcca.machine.threads import each
from mvcca.statistics import Moments, column_slices

OLD, NEW = "old", "new"
_TILE_ROWS = 512  # stay in cache between centring, product and check
_PART_ROWS = 4 * _TILE_ROWS  # of one thread

Map = Callable[[np.ndarray], np.ndarray]


def ridges_of(sums: Iterable[Moments]) -> Ridges:
    """The regressions on the pairs of all parts of the sample."""
    return Ridges.of(reduce(add, sums), OLD, NEW)


def ridge_map(ridges: Ridges, reg: float, rank: int | None = None) -> Map:
    """The map with a ridge in units of the mean variance."""
    return _mapping(ridges.weights(reg, rank), ridges.means)


def rotation(sums: Iterable[Moments], rank: int | None) -> Map:
    """The scaled rotation that maps the old vectors closest to the new ones."""
    moments = reduce(add, sums)
    columns, whole, means = column_slices(moments.widths), moments.covariance(), moments.mean()
    covariance, between = whole[columns[OLD], columns[OLD]], whole[columns[OLD], columns[NEW]]
    left, values, right = np.linalg.svd(between, full_matrices=False)
    left, right = left[:, :rank], right[:rank]
    variance = np.einsum("ik,ik->", left, covariance @ left)
    scale = values[:rank].sum() / variance if variance > 0 else 0.0
    return _mapping(scale * left @ right, means)


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
