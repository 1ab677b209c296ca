"""Columns of a view that are copies of others, which leave its covariance singular."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from mvcca.machine.config import block_slices
from mvcca.problem._bases import Explicit

_SAMPLED = (64, 1024)  # rows, evenly spread, in which copies are equal, too


def first_copies(X: np.ndarray) -> np.ndarray | None:
    """The first column that equals each column, (d,); None if no column that varies has a copy.

    Of most rows, a few tell columns apart. Candidates that are left are told by digests of all
    rows, and compared number by number.
    """
    columns = np.arange(X.shape[1])
    for n_rows in _SAMPLED:
        columns = _repeated(columns, _bytes(X[:: 1 + len(X) // n_rows], columns))
        if not len(columns):
            return None
    digests = [0] * len(columns)
    for rows in block_slices(len(X), X.itemsize * len(columns)):
        digests = [hash(key) for key in zip(digests, _bytes(X[rows], columns), strict=True)]
    first, found = np.arange(X.shape[1]), dict[int, int]()
    for column, digest in zip(columns.tolist(), digests, strict=True):
        own = found.setdefault(digest, column)
        if own != column and np.array_equal(X[:, own], X[:, column]):
            first[column] = own
    for own in np.unique(first[first != np.arange(len(first))]):
        if (X[:, own] == X[0, own]).all():  # a constant column is no direction
            same = np.flatnonzero(first == own)
            first[same] = same
    return None if (first == np.arange(len(first))).all() else first


def distinct_columns(
    first: np.ndarray, X: np.ndarray, _weights: Any = None, *, orthonormal: bool = False
) -> tuple[Explicit, np.ndarray]:
    """A basis in which equal columns are one, whose weight they share alike, and the rows in it.

    An orthonormal one makes a ridge on the features the same ridge in it; rows are float64 then.
    """
    kept, place, counts = np.unique(first, return_inverse=True, return_counts=True)
    inverse, rows = np.zeros((len(kept), len(first))), X[:, kept]
    inverse[place, np.arange(len(first))] = 1.0
    matrix = (inverse / counts[:, None]).T
    if orthonormal:
        lengths = np.sqrt(counts)
        inverse, matrix, rows = inverse / lengths[:, None], matrix * lengths, rows * lengths
    return Explicit(np.zeros(len(first)), matrix, inverse), rows


def _bytes(X: np.ndarray, columns: np.ndarray) -> list[bytes]:
    """Some columns as bytes, zeros without a sign."""
    return [column.tobytes() for column in X[:, columns].T + X.dtype.type(0)]


def _repeated(columns: np.ndarray, keys: list[bytes]) -> np.ndarray:
    """Columns whose key occurs more than once."""
    counts = Counter(keys)
    return columns[[counts[key] > 1 for key in keys]]
