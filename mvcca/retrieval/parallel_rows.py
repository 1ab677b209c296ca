"""Rows of length 1 that are parallel up to rounding, whose cosines are to be ties."""

from __future__ import annotations

import numpy as np

_PARALLEL_ULPS = 8  # between entries of parallel rows: two roundings, and those of a projection


def merge_parallel(U: np.ndarray) -> np.ndarray:
    """Make rows of length 1 that are equal up to rounding equal to the last bit.

    Rows that are multiples of each other differ in the last bits once they are scaled to length 1,
    and so do their cosines, which then are not ties. Rows whose entries all lie within such a
    distance become copies of the first of them; all other rows are unchanged.

    Parameters
    ----------
    U : ndarray of float32 or float64, shape (n_rows, n_columns)
        Result of `mvcca.measures.unit_rows`.

    Returns
    -------
    ndarray, shape (n_rows, n_columns)
        U itself if there are no such rows.
    """
    width = _PARALLEL_ULPS * np.finfo(U.dtype).eps
    # Rows far from their neighbours when sorted by a column have no parallel. Of many rows or equal
    # entries two columns leave some, which are sorted by a combination of columns, and the few that
    # are left by one column after another.
    mixed = np.cos(np.arange(1.0, U.shape[1] + 1))
    keys: list[int | None] = [*range(U.shape[1])]
    keys.insert(2, None)
    rows, group = np.arange(len(U)), np.zeros(len(U), dtype=np.intp)
    for column in keys:
        key = U[rows] @ mixed if column is None else U[rows, column]
        order = np.lexsort((key, group))
        rows, group, key = rows[order], group[order], key[order]
        gap = width * U.shape[1] if column is None else width
        is_new = (np.diff(group) > 0) | (np.diff(key) > gap)
        group = np.concatenate([[0], np.cumsum(is_new)])
        shared = np.bincount(group)[group] > 1
        rows, group = rows[shared], group[shared]
        if not len(rows):
            return U
    order = np.lexsort((rows, group))
    rows, group = rows[order], group[order]
    _, starts, member = np.unique(group, return_index=True, return_inverse=True)
    models = U[rows[starts[member]]]
    close = np.abs(models - U[rows]).max(axis=1) <= width  # and not at the end of a long chain
    merged = U.copy()
    merged[rows[close]] = models[close]
    return merged
