"""Adding up rows by a code of each: NumPy, sparse and device rows, into sums by label vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca._backend import beside, is_device_array, namespace, to_host
from mvcca.views import Views


def add_rows(sums: np.ndarray, views: Views, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """sums[code] += weight x over the rows of a view, in float64 and in place."""
    from mvcca._compiled_loops import add_rows_by_code

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
    """The codes there are, in order, and the weighted sum of the rows of each, in float64.

    Of device rows, with no more than the array API standard has. Rows of a code are added pairwise,
    so that the sums are the same every time, and the work is that of two passes over the rows.
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
