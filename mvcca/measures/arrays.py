"""Operations that measures share: checks of their input, the order of ranked lists, unit rows."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray, spmatrix

from mvcca.blocks import as_block
from mvcca.blocks.checks import to_array

RelevanceLike: TypeAlias = ArrayLike | sparray | spmatrix

_DOUBLE = 8  # bytes of a float64
_SHORT = 2**14  # bytes of a row; shorter rows are sorted faster together than one by one

# ---- checks -------------------------------------------------------------------------------------


def checked_matrix(scores: ArrayLike, name: str = "scores") -> np.ndarray:
    """Array of two dimensions with finite floats; float32 is kept."""
    values = to_array(scores)
    if values.dtype != np.float32:
        values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"Expected {name} to be a matrix that is not empty, got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"Expected {name} to be finite, got NaN or infinity.")
    return values


def checked_relevance(relevance: Any, shape: tuple[int, ...]) -> Any:
    """Relevance as a boolean csr_array or ndarray of the shape of the scores."""
    relevant = as_block(relevance).plain()
    if relevant.dtype.kind not in "biuf":
        raise ValueError(f"Expected relevance to be boolean, got {relevant.dtype}.")
    same_shape(relevant.shape, shape, "relevance")
    return relevant.booleans()


def same_shape(shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    """Raise ValueError unless the shapes are equal."""
    if shape != expected:
        raise ValueError(f"Expected {name} of shape {expected}, got {shape}.")


def positive(k: int, name: str = "k") -> int:
    """Raise ValueError unless the cut-off is an integer of at least 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"Expected {name} to be an integer of at least 1, got {k!r}.")
    return int(k)


def one_of(value: str, options: Any, name: str) -> str:
    """Raise ValueError for an unknown option."""
    if value not in options:
        raise ValueError(f"Expected {name} to be one of {list(options)}, got {value!r}.")
    return value


def count_true(mask: np.ndarray) -> np.ndarray:
    """Number of True in each row; counting row by row is several times as fast as along an axis."""
    return np.array([np.count_nonzero(row) for row in mask], dtype=np.intp)


def dense(relevant: Any) -> np.ndarray:
    """Relevance as an ndarray."""
    return as_block(relevant).dense().matrix


# ---- order and lengths --------------------------------------------------------------------------


def descending_order(scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Indices that sort each row by descending score, equal scores by index.

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
    scores = to_array(scores)
    if scores.dtype.kind in "bu":
        scores = scores.astype(np.float64)  # they have no negative
    length = scores.shape[1] if k is None else min(k, scores.shape[1])
    order = np.empty((len(scores), length), dtype=np.intp)
    sort = _sort_float32 if scores.dtype == np.float32 else _sort
    rest = np.arange(len(scores))
    if 0 < length < scores.shape[1] and scores.itemsize * scores.shape[1] <= _SHORT:
        reach = scores >= np.partition(scores, -length, axis=1)[:, -length, None]
        exact = count_true(reach) == length  # others have ties at the end of the list
        items = np.flatnonzero(reach[exact]).reshape(-1, length) % scores.shape[1]
        best = scores[np.flatnonzero(exact)[:, None], items]
        best_first = np.argsort(-best, axis=1, kind="stable")
        order[exact] = np.take_along_axis(items, best_first, axis=1)
        rest = np.flatnonzero(~exact)
    for query in rest:
        row, out = scores[query], order[query]
        if length == len(row):
            out[:] = sort(row)
        else:  # all that equal or exceed the k-th best: possibly more than k
            candidates = np.flatnonzero(row >= np.partition(row, -length)[-length])
            out[:] = candidates[sort(row[candidates])[:length]]
    return order


def ranked(values: np.ndarray, scores: np.ndarray, k: int | None = None) -> np.ndarray:
    """Sort values of each query's items by descending score.

    Parameters
    ----------
    values : ndarray, shape (n_queries, n_gallery)
        Values of the items, such as their relevance.
    scores : ndarray of float, shape (n_queries, n_gallery)
        Larger is better.
    k : int or None, default=None
        Length of the lists; None takes the whole gallery.

    Returns
    -------
    ndarray, shape (n_queries, min(k, n_gallery))
        The values of the first k items.
    """
    values, order = to_array(values), descending_order(scores, k)
    return np.stack([row[items] for row, items in zip(values, order, strict=True)])


def unit_rows(X: ArrayLike) -> np.ndarray:
    """Rows scaled to length 1, so that inner products are cosines; zero rows stay zero.

    Parameters
    ----------
    X : array-like, shape (n_rows, n_columns)
        Finite rows of any magnitude: no square overflows or underflows.

    Returns
    -------
    ndarray, shape (n_rows, n_columns)
        Unit rows in the precision of X; in float64 if X holds no floats, or wider ones.
    """
    X = to_array(X)
    if X.dtype.kind != "f" or X.dtype.itemsize > _DOUBLE:
        X = X.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))[:, None]
    most = float(np.finfo(X.dtype).max) ** 0.4  # squares neither overflow nor underflow
    is_safe = (norms > 1 / most) & (norms < most)
    if is_safe.all():
        return X / norms.astype(X.dtype)
    if not is_safe.any():
        largest = np.abs(X).max(axis=1, keepdims=True)
        X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
        return np.where(largest > 0, unit_rows(np.where(largest > 0, X, 1)), X)
    unit, is_safe = np.empty_like(X), is_safe[:, 0]  # a row does not depend on others
    unit[is_safe], unit[~is_safe] = unit_rows(X[is_safe]), unit_rows(X[~is_safe])
    return unit


def _sort(values: np.ndarray) -> np.ndarray:
    """Indices by descending value, equal values by index."""
    return np.argsort(-values, kind="stable")


def _sort_float32(values: np.ndarray) -> np.ndarray:
    """The same by sorting value and index as one integer, which is several times as fast."""
    bits = (values + np.float32(0)).view(np.int32)  # + 0 makes -0.0 equal to 0.0
    rising = bits ^ (bits >> 31 & 0x7FFFFFFF)  # the bits of negative floats fall
    keys = (~rising).astype(np.int64) << 32 | np.arange(len(values))
    keys.sort()
    return keys & 0xFFFFFFFF
