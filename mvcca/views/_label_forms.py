"""Encode labels in any accepted form as distinct label vectors and one code per row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array

from mvcca.blocks import as_block, kind_of, own_csr
from mvcca.blocks.checks import (
    are_positions,
    column_labels,
    few,
    is_missing,
    reject_masks,
    repeated,
)

_LIST_AS_TEXT = re.compile(r"""\s*[\[{]\s*['"]|set\(\)|\[\s*\]""")
_SMALLEST_LABEL, _LARGEST_LABEL = 1e-150, 1e150  # of real label vectors

Encoded: TypeAlias = tuple[Any, np.ndarray, np.ndarray | None]  # vectors, codes, vocabulary


def encoded(y: Any) -> Encoded:
    """Distinct label vectors of labels in any form, a code per row, and names of the columns.

    Label vectors are in the order of their first occurrence, those of classes sorted.
    """
    reject_masks(y)
    if kind_of(y).is_sparse:
        matrix = own_csr(y)
        return _encode_matrix(matrix, matrix.data)
    names = None
    if type(y) is not np.ndarray or y.dtype == object:  # other arrays hold no sets, nor names
        names, sets = _names_of_columns(y), _label_sets(y)
        if sets is not None:
            return _encode_sets(sets)
    values = np.asarray(y)
    if values.dtype.kind == "O":
        values = _resolve_objects(values)
    if values.ndim == 2 and values.shape[1] == 1 and not _is_indicator(values):
        values = values[:, 0]  # a column of classes
    if values.ndim == 1:
        return _encode_classes(values)
    if values.ndim == 2:
        if values.dtype.kind not in "biufc":
            raise ValueError(
                f"A two-dimensional y must hold numbers, got {values.dtype}. Pass several names "
                "per row as a list of sets."
            )
        return _encode_matrix(values, values, names)
    raise ValueError(
        "Labels must be a class vector, an indicator matrix, a list of label sets or real label "
        f"vectors; got an array of shape {values.shape}."
    )


def as_set(labels: Any) -> frozenset[Any]:
    """The names of one row's labels."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return frozenset([labels])
    return frozenset(labels)


def _label_sets(y: Any) -> list[frozenset[Any]] | None:
    """The label set of every row if labels are collections, else None."""
    if not isinstance(y, list | tuple):
        y = np.asarray(y)  # a Series, say
        if y.dtype != object or y.ndim != 1:
            return None
    rows = list(y)
    if any(isinstance(row, set | frozenset) for row in rows):
        return [as_set(row) for row in rows]
    if not rows or not all(
        isinstance(row, list | tuple | np.ndarray) and np.ndim(row) == 1 for row in rows
    ):
        return None
    lengths, names = {len(row) for row in rows}, {name for row in rows for name in row}
    if len(lengths) > 1 or any(isinstance(name, str) for name in names):
        return [as_set(row) for row in rows]
    if all(isinstance(name, int | np.integer) for name in names) and not names <= {0, 1}:
        raise ValueError(
            "Lists of integers of equal length are ambiguous: they may be label sets or label "
            "vectors. Pass a list of sets, or a NumPy array."
        )
    return None


def _encode_sets(sets: list[frozenset[Any]]) -> Encoded:
    names = sorted(set().union(*sets), key=by_name)
    column = {name: number for number, name in enumerate(names)}
    indices = [sorted(column[name] for name in labels) for labels in sets]
    lengths = [len(row) for row in indices]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.fromiter((c for row in indices for c in row), dtype=np.int32, count=indptr[-1])
    matrix = csr_array((np.ones(len(flat), np.uint8), flat, indptr), shape=(len(sets), len(names)))
    return *distinct_rows(matrix), as_vocabulary(names)


def as_vocabulary(names: Sequence[Any]) -> np.ndarray:
    """Names in an array of objects, even if they are tuples."""
    vocabulary = np.empty(len(names), dtype=object)
    vocabulary[:] = names
    return vocabulary


def by_name(name: Any) -> tuple[str, Any]:
    """Sort key for names of mixed types."""
    return type(name).__name__, name


def _names_of_columns(y: Any) -> np.ndarray | None:
    """Column names of a DataFrame of labels; None without names or with default names."""
    names = column_labels(y)
    if names is None or are_positions(names):
        return None
    if names == tuple(f"column_{number}" for number in range(len(names))):  # polars by default
        return None
    if len(set(names)) < len(names):
        duplicates = sorted(map(str, repeated(names)))
        raise ValueError(f"Several columns of y have the same name: {few(duplicates)}.")
    return as_vocabulary(names)


def _resolve_objects(values: np.ndarray) -> np.ndarray:
    """Convert an object array to numbers if it contains only numbers, else to strings."""
    for value in values.flat:
        if is_missing(value) and not isinstance(value, float):
            raise ValueError(
                f"Labels contain {value}; give every row a label, or an empty label set."
            )
    if all(isinstance(value, int | float | np.number | np.bool_) for value in values.flat):
        return np.asarray(values.tolist())
    if any(is_missing(value) for value in values.flat):
        raise ValueError("Labels contain NaN; give every row a label, or an empty label set.")
    return values.astype(str)


def _encode_classes(values: np.ndarray) -> Encoded:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported as labels.")
    if values.dtype.kind == "f":
        _require_finite(values)
        if not np.all(values == np.round(values)):  # a continuous target
            values = values[:, None].astype(float)
            return _encode_matrix(values, values)
        if np.all(np.abs(values) < 2**63):  # 1.0 in one view equals class 1 in another
            values = values.astype(np.int64)
    vocabulary, codes = np.unique(values, return_inverse=True)
    if values.dtype.kind == "U" and all(map(_LIST_AS_TEXT.match, vocabulary.tolist())):
        raise ValueError(
            f"Labels are lists written as texts, such as {str(vocabulary[0])!r}. Pass lists: "
            "[ast.literal_eval(text) for text in y]."
        )
    vectors = csr_array(eye_array(len(vocabulary), dtype=np.uint8, format="csr"))
    return vectors, codes.reshape(-1), vocabulary.astype(object)


def _is_indicator(values: np.ndarray) -> bool:
    is_number = values.dtype.kind in "biuf"
    return is_number and bool(((values == 0) | (values == 1)).all())


def _encode_matrix(matrix: Any, values: np.ndarray, names: np.ndarray | None = None) -> Encoded:
    """Encode an array, or a sparse matrix by the `values` that it stores."""
    if names is not None:
        order = sorted(range(len(names)), key=[by_name(name) for name in names].__getitem__)
        matrix, names = matrix[:, order], names[order]
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported as labels.")
    _require_finite(values)
    if _is_indicator(values):
        if matrix is not values:
            return *distinct_rows(own_csr(matrix, dtype=np.uint8)), names
        bits, codes = distinct_rows(np.packbits(values != 0, axis=1))
        return csr_array(np.unpackbits(bits, axis=1, count=values.shape[1])), codes, names
    _require_squares(values)
    return *distinct_rows(as_block(matrix).dense().matrix.astype(float)), names


def _require_finite(values: np.ndarray) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("Labels contain NaN or infinity; every row needs finite labels.")


def _require_squares(values: np.ndarray) -> None:
    """Refuse real label vectors whose squared distances leave the range of floats."""
    largest = float(np.abs(values).max(initial=0))
    if not _SMALLEST_LABEL <= largest <= _LARGEST_LABEL:
        raise ValueError(
            f"Label vectors have values up to {largest:.1e}, whose squares leave the range of "
            f"floats. Rescale them to between {_SMALLEST_LABEL:g} and {_LARGEST_LABEL:g} in size."
        )


def distinct_rows(matrix: Any) -> tuple[Any, np.ndarray]:
    """Distinct rows of an array or of a canonical indicator matrix, and each row's code."""
    if isinstance(matrix, np.ndarray):
        rows = np.ascontiguousarray(matrix + 0)  # -0.0 becomes 0.0
        keys = np.ndarray(len(rows), f"S{rows.itemsize * rows.shape[1]}", rows).tolist()
    else:
        buffer, n_bytes = matrix.indices.tobytes(), matrix.indices.itemsize
        keys = [buffer[start:end] for start, end in pairwise((n_bytes * matrix.indptr).tolist())]
    seen: dict[bytes, int] = {}
    codes = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.intp, len(keys))
    return matrix[np.unique(codes, return_index=True)[1]], codes
