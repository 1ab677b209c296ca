"""The order of a ranked list, and rows made comparable by the cosine."""

from __future__ import annotations

import numpy as np


def descending_order(scores: np.ndarray) -> np.ndarray:
    """Indices that sort each row by falling score, equal scores by index.

    Parameters
    ----------
    scores : ndarray of float, shape (n_queries, n_gallery)
        Larger is better.

    Returns
    -------
    ndarray of int, shape (n_queries, n_gallery)
        The ranked lists.
    """
    if scores.dtype != np.float32 or scores.shape[1] >= 2**32:
        return np.argsort(-scores, axis=1, kind="stable")
    # Score and index in one integer: an unstable sort of keys is a stable sort of scores, and
    # sorting integers is several times as fast.
    order = np.empty(scores.shape, dtype=np.intp)
    columns = np.arange(scores.shape[1], dtype=np.uint64)
    for row, out in zip(scores, order, strict=True):
        keys = _falling_integers(row) << np.uint64(32) | columns
        keys.sort()
        np.bitwise_and(keys, np.uint64(0xFFFFFFFF), out=out, casting="unsafe")
    return order


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1, so that inner products are cosines; zero rows stay zero.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_columns)
        Finite, of any size: no square overflows or underflows.

    Returns
    -------
    ndarray, shape (n_rows, n_columns)
        In the precision of X.
    """
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))[:, None]
    return np.divide(X, norms.astype(X.dtype), out=X, where=norms > 0)


def _falling_integers(values: np.ndarray) -> np.ndarray:
    """float32 to integers below 2³² that are in the opposite order."""
    bits = (values + np.float32(0)).view(np.uint32)  # + 0 makes -0.0 equal to 0.0
    negative = bits >= np.uint32(0x80000000)
    return np.where(negative, bits, ~bits & np.uint32(0x7FFFFFFF)).astype(np.uint64)
