"""The order of a ranked list, and rows made comparable by the cosine."""

from __future__ import annotations

import numpy as np


def descending_order(scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Indices that sort each row by falling score, equal scores by index.

    Parameters
    ----------
    scores : ndarray of float, shape (n_queries, n_gallery)
        Larger is better.
    k : int or None, default=None
        Length of the lists; None takes the whole gallery.

    Returns
    -------
    ndarray of int, shape (n_queries, min(k, n_gallery))
        The ranked lists.
    """
    length = scores.shape[1] if k is None else min(k, scores.shape[1])
    order = np.empty((len(scores), length), dtype=np.intp)
    sort = _sort_float32 if scores.dtype == np.float32 else _sort
    for row, out in zip(scores, order, strict=True):
        if length == len(row):
            out[:] = sort(row)
        else:  # what is as good as the k-th best, of which there may be more than k
            candidates = np.flatnonzero(row >= np.partition(row, -length)[-length])
            out[:] = candidates[sort(row[candidates])[:length]]
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
    order = descending_order(scores, k)
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


def _sort(values: np.ndarray) -> np.ndarray:
    """Indices by falling value, equal values by index."""
    return np.argsort(-values, kind="stable")


def _sort_float32(values: np.ndarray) -> np.ndarray:
    """The same by sorting value and index as one integer, which is several times as fast."""
    bits = (values + np.float32(0)).view(np.int32)  # + 0 makes -0.0 equal to 0.0
    rising = bits ^ (bits >> 31 & 0x7FFFFFFF)  # the bits of negative floats fall
    keys = (~rising).astype(np.int64) << 32 | np.arange(len(values))
    keys.sort()
    return keys & 0xFFFFFFFF
