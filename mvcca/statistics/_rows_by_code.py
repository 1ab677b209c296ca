"""Sums of rows with the same code (that of their label vector): NumPy, sparse and device rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca.blocks.array_api import beside, is_device_array, namespace, to_host
from mvcca.machine.threads import each
from mvcca.statistics._digits_lost import DigitsLost
from mvcca.views import Views

_CACHED_ROWS = 128  # of sums that one thread processes while they are in its cache
_FLOAT32_SIZES = (1e-12, 1e12)  # whose squares, and sums of many, keep the digits of float32


def add_rows(sums: np.ndarray, views: Views, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sums[code] += weight x over the rows of a view, in float64 and in place."""
    from mvcca.machine.compiled_loops import add_rows_by_code

    ((_, block),) = views.items()
    if is_device_array(block):
        lines, added = sums_by_code(block, codes, weights)
        sums[lines] += to_host(added)
    elif issparse(block):
        sums += (grouping(codes, len(sums), weights) @ block).toarray()
    else:
        block = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("="))
        add_rows_by_code(block, codes, weights, sums)
    return sums


def sums_by_code(X: Any, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Any]:
    """Sorted codes of device rows, and the weighted sum of the rows of each, in float64.

    Rows of a code are added pairwise, since the array API standard has no grouped sum. The result
    is deterministic, and costs as much as two passes over the rows.
    """
    xp = namespace(X)
    order = np.argsort(codes, kind="stable")
    codes = codes[order].astype(np.int64)
    rows = xp.astype(xp.take(X, beside(order.astype(np.int64), X), axis=0), xp.float64)
    rows = rows * beside(weights[order].astype(np.float64), X)[:, None]
    while (repeated := codes[1:] == codes[:-1]).any():
        starts = np.flatnonzero(np.concatenate([[True], ~repeated]))
        lengths = np.diff(np.append(starts, len(codes)))
        place = np.arange(len(codes)) - np.repeat(starts, lengths)
        left = np.flatnonzero(place % 2 == 0)
        has_partner = np.append(repeated, False)[left]
        partners = xp.take(rows, beside(left + has_partner, X), axis=0)
        partners = partners * beside(has_partner.astype(np.float64), X)[:, None]
        rows = xp.take(rows, beside(left, X), axis=0) + partners
        codes = codes[left]
    return codes, rows


def grouping(codes: np.ndarray, n_groups: int, weights: np.ndarray) -> csr_array:
    """The (n_groups, n_rows) matrix that adds up the weighted rows of each group."""
    n = len(codes)
    return csr_array((weights, (codes, np.arange(n))), shape=(n_groups, n))


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
