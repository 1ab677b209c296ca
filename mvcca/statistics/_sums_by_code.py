"""Rows of a device block added up by code, with no more than the array API standard has."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca._backend import beside, namespace


def sums_by_code(X: Any, codes: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, Any]:
    """The codes there are, in order, and the weighted sum of the rows of each, in float64.

    Rows of a code are added pairwise, so that the sums are the same every time, and the work is
    that of two passes over the rows.
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
