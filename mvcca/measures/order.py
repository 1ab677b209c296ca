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
    if scores.dtype != np.float32:
        return np.argsort(-scores, axis=1, kind="stable")
    # Score and index in one integer: an unstable sort of keys is a stable sort of scores, and
    # sorting integers is several times as fast.
    order = np.empty(scores.shape, dtype=np.intp)
    columns = np.arange(scores.shape[1])
    for row, out in zip(scores, order, strict=True):
        keys = _falling_integers(row) << 32 | columns
        keys.sort()
        np.bitwise_and(keys, 0xFFFFFFFF, out=out)
    return order


def ranked(values: np.ndarray, scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Put the values of each query's items in the order of their scores.

    Parameters
    ----------
    values : ndarray, shape (n_queries, n_gallery)
        What is known of the items, such as their relevance.
    scores : ndarray of float, shape (n_queries, n_gallery)
        Larger is better.
    k : int or None, default=None
        Length of the lists; None takes the whole gallery.

    Returns
    -------
    ndarray, shape (n_queries, min(k, n_gallery))
        The values of the first k items.
    """
    order = descending_order(scores)[:, :k]
    return np.stack([row[items] for row, items in zip(values, order, strict=True)])


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
    """float32 to 32-bit integers in the opposite order, as int64."""
    bits = (values + np.float32(0)).view(np.int32)  # + 0 makes -0.0 equal to 0.0
    rising = bits ^ (bits >> 31 & 0x7FFFFFFF)  # the bits of negative floats fall
    return (~rising).astype(np.int64)
