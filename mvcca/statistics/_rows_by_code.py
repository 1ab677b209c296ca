"""Sums of rows with the same code, that of their label vector."""

from __future__ import annotations

import numpy as np

from mvcca.machine.threads import each
from mvcca.statistics.digits_lost import DigitsLost
from mvcca.views import Views

_CACHED_ROWS = 128  # of sums that one thread processes while they are in its cache
_FLOAT32_SIZES = (1e-12, 1e12)  # whose squares, and sums of many, keep the digits of float32


def add_rows(sums: np.ndarray, views: Views, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sums[code] += weight x over the rows of a view, in float64 and in place."""
    ((_, block),) = views.blocks.items()
    return block.add_by_code(sums, codes, weights)


def deviate(sums: np.ndarray, counts: np.ndarray, mean: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Write (sums - counts meanᵀ) / Σ counts to `out`, a few rows at a time."""
    total = counts.sum()

    def block(rows: slice) -> np.ndarray:
        values = counts[rows, None] * mean
        np.subtract(sums[rows], values, out=values)
        values /= total
        out[rows] = values
        return np.maximum(values.max(axis=0), -values.min(axis=0))

    starts = range(0, len(sums), _CACHED_ROWS)
    largest = np.max(each(block, [slice(start, start + _CACHED_ROWS) for start in starts]), axis=0)
    # Sums of a constant column deviate by rounding only.
    rounding = np.finfo(np.float64).eps * counts.max() * np.abs(mean)
    varies = largest > rounding
    out[:, ~varies] = 0
    check_range(largest[varies], out.dtype)
    return out


def check_range(sizes: np.ndarray, dtype: np.dtype) -> None:
    """Raise `DigitsLost` if squares of numbers of these sizes leave the range of float32."""
    smallest, largest = _FLOAT32_SIZES
    if dtype == np.float32 and not ((sizes > smallest) & (sizes < largest)).all():
        raise DigitsLost((), "Squares leave the range of float32")
