"""Encode labels as a table of distinct label vectors and one code per row.

Class vectors, indicator matrices, lists of label sets and real label vectors all have this form.
Similarities between label vectors are in `mvcca.similarity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, eye_array, issparse
from scipy.sparse import vstack as sparse_vstack

from mvcca.blocks.containers import are_positions, column_labels, few, reject_masks
from mvcca.blocks.sparse import canonical, own_csr

_SMALLEST_LABEL, _LARGEST_LABEL = 1e-150, 1e150  # of real label vectors

__all__ = ["LabelTable", "encode_labels", "indicator_matrices", "label_vectors"]


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Distinct label vectors.

    Attributes
    ----------
    vectors : csr_array of 0/1 or ndarray of float, shape (n_distinct, n_labels)
        One row per distinct label vector; sparse for classes, sets and indicators.
    vocabulary : ndarray or None, shape (n_labels,)
        Sorted names of the columns, if labels are classes, sets, or a DataFrame with column
        names.
    """

    vectors: Any
    vocabulary: np.ndarray | None = None

    def __len__(self) -> int:
        return self.vectors.shape[0]

    @property
    def is_binary(self) -> bool:
        """Whether the vectors are indicators rather than real vectors."""
        return issparse(self.vectors)

    def dense(self) -> np.ndarray:
        """The label vectors as a dense float64 array."""
        return self.vectors.toarray().astype(float) if self.is_binary else self.vectors

    def merge(self, other: LabelTable) -> tuple[LabelTable, np.ndarray]:
        """Merge two tables; also return the code of each row of self, then of other."""
        a, b, vocabulary = _common_columns(self, other)
        stacked = csr_array(sparse_vstack([a, b])) if issparse(a) else np.concatenate([a, b])
        vectors, codes = _distinct_rows(stacked)
        return LabelTable(vectors, vocabulary), codes


def encode_labels(y: Any) -> tuple[LabelTable, np.ndarray]:
    """Encode labels in any accepted form.

    Parameters
    ----------
    y : array-like, sparse matrix or list of label sets
        A class vector (n,), an indicator matrix (n, n_labels), real label vectors (n, n_dims), or
        n collections of label names. One real number per row is a label vector of length one.
        Columns of a DataFrame are identified by name, those of an array by position.

    Returns
    -------
    table : LabelTable
        The distinct label vectors, in the order of their first occurrence.
    codes : ndarray of int, shape (n,)
        For every row of `y`, its row in the table.

    Raises
    ------
    ValueError
        If labels contain NaN or infinity, are masked, are neither one- nor two-dimensional, are
        lists of numbers that could be label sets or label vectors, or have duplicate column
        names.
    """
    reject_masks(y)
    if issparse(y):
        return _encode_matrix(csr_array(y))
    names = _names_of_columns(y)
    sets = _label_sets(y)
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
        return _encode_matrix(values, names)
    raise ValueError(
        "Labels must be a class vector, an indicator matrix, a list of label sets or real label "
        f"vectors; got an array of shape {values.shape}."
    )


def indicator_matrices(*labels: Any) -> list[csr_array]:
    """Encode several containers of labels as 0/1 matrices with the same columns.

    Parameters
    ----------
    *labels : class vectors, indicator matrices or lists of label sets
        All of the same kind.

    Returns
    -------
    list of csr_array, each of shape (n_rows, n_labels)
        Indicator matrices.

    Raises
    ------
    ValueError
        If labels are real-valued vectors.
    """
    table, codes = encode_label_sets(*labels)
    return [csr_array(table.vectors[lines]) for lines in codes]


def encode_label_sets(*labels: Any) -> tuple[LabelTable, list[np.ndarray]]:
    """Common table of distinct label sets of several containers, and the codes of each."""
    table, codes = in_one_table([encode_labels(y) for y in labels])
    if not table.is_binary:
        raise ValueError(
            "Relevance needs classes, label sets or an indicator matrix; got real-valued label "
            "vectors. Threshold them, or pass label sets and the word vectors of the labels: "
            "evaluate_retrieval(..., label_vectors=..., measures='wmap@50')."
        )
    return table, codes


def label_names(table: LabelTable, codes: np.ndarray) -> list[Any]:
    """Names of the labels that occur in the coded rows; positions if labels have no names."""
    present = np.zeros(len(table), dtype=bool)
    present[codes] = True
    columns = np.unique(table.vectors[present].indices).tolist()
    if table.vocabulary is None:
        return [f"column {column}" for column in columns]
    return [table.vocabulary[column] for column in columns]


def rows_by_code(codes: np.ndarray, order: np.ndarray | None = None) -> dict[int, np.ndarray]:
    """Positions of the rows of every code that occurs, as they come or by a given order."""
    rows = np.lexsort((codes,) if order is None else (order, codes))
    present, starts = np.unique(codes[rows], return_index=True)
    return dict(zip(present.tolist(), np.split(rows, starts[1:]), strict=False))


def in_one_table(
    encoded: Sequence[tuple[LabelTable, np.ndarray]],
) -> tuple[LabelTable, list[np.ndarray]]:
    """Merge encoded labels into one table, and return the codes of each in it."""
    (table, first), *rest = encoded
    codes = [first]
    for other, other_codes in rest:
        size = len(table)
        table, lines = table.merge(other)
        codes = [lines[:size][code] for code in codes] + [lines[size:][other_codes]]
    return table, codes


def label_vectors(labels: Iterable[Any], vectors: Mapping[Any, ArrayLike]) -> np.ndarray:
    """Encode label sets as the sums of their labels' word vectors.

    Word vectors make views with different vocabularies comparable ("tabby" in one, "cat" in the
    other): a row's label vector is z = Σ v(label) over its labels [1]_.

    Parameters
    ----------
    labels : iterable of label sets, or of single labels
        Names of the labels of each row.
    vectors : mapping of name to array-like, shape (n_dims,)
        The word vector of every name, such as GloVe vectors.

    Returns
    -------
    ndarray, shape (n_rows, n_dims)
        Real label vectors to pass as ``y``; zero for rows without labels.

    Raises
    ------
    KeyError
        If a label has no vector; the message lists all such labels.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022, section 3 and eq. (5).
    """
    reject_masks(labels)
    sets = [_as_set(label) for label in labels]
    missing = sorted({str(name) for names in sets for name in names if name not in vectors})
    if missing:
        raise KeyError(f"no word vector for the labels {missing}; add them to `vectors`")
    if not vectors:
        raise ValueError("vectors is empty: expected the word vector of at least one label.")
    n_dims = len(np.asarray(next(iter(vectors.values()))))
    total = np.zeros((len(sets), n_dims))
    for row, names in zip(total, sets, strict=True):
        for name in sorted(names, key=str):  # a fixed order makes sums reproducible
            row += np.asarray(vectors[name], dtype=float)
    return total


def _as_set(labels: Any) -> frozenset[Any]:
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
        return [_as_set(row) for row in rows]
    if not rows or not all(
        isinstance(row, list | tuple | np.ndarray) and np.ndim(row) == 1 for row in rows
    ):
        return None
    lengths, names = {len(row) for row in rows}, {name for row in rows for name in row}
    if len(lengths) > 1 or any(isinstance(name, str) for name in names):
        return [_as_set(row) for row in rows]
    if all(isinstance(name, int | np.integer) for name in names) and not names <= {0, 1}:
        raise ValueError(
            "Lists of integers of equal length are ambiguous: they may be label sets or label "
            "vectors. Pass a list of sets, or a NumPy array."
        )
    return None


def _encode_sets(sets: list[frozenset[Any]]) -> tuple[LabelTable, np.ndarray]:
    names = sorted(set().union(*sets), key=_by_name)
    column = {name: number for number, name in enumerate(names)}
    indices = [sorted(column[name] for name in labels) for labels in sets]
    lengths = [len(row) for row in indices]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    flat = np.fromiter((c for row in indices for c in row), dtype=np.int32, count=indptr[-1])
    matrix = csr_array((np.ones(len(flat), np.uint8), flat, indptr), shape=(len(sets), len(names)))
    vectors, codes = _distinct_rows(matrix)
    return LabelTable(vectors, _as_vocabulary(names)), codes


def _as_vocabulary(names: Sequence[Any]) -> np.ndarray:
    vocabulary = np.empty(len(names), dtype=object)
    vocabulary[:] = names
    return vocabulary


def _by_name(name: Any) -> tuple[str, Any]:
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
        duplicates = sorted({str(name) for name in names if names.count(name) > 1})
        raise ValueError(f"Several columns of y have the same name: {few(duplicates)}.")
    return _as_vocabulary(names)


def _resolve_objects(values: np.ndarray) -> np.ndarray:
    """Convert an object array to numbers if it contains only numbers, else to strings."""
    for value in values.flat:
        if _is_missing(value) and not isinstance(value, float):
            raise ValueError(
                f"Labels contain {value}; give every row a label, or an empty label set."
            )
    if all(isinstance(value, int | float | np.number | np.bool_) for value in values.flat):
        return np.asarray(values.tolist())
    if any(_is_missing(value) for value in values.flat):
        raise ValueError("Labels contain NaN; give every row a label, or an empty label set.")
    return values.astype(str)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or pandas' NA."""
    return value is None or type(value).__name__ == "NAType" or value != value


def _encode_classes(values: np.ndarray) -> tuple[LabelTable, np.ndarray]:
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported as labels.")
    if values.dtype.kind == "f":
        _require_finite(values)
        if not np.all(values == np.round(values)):  # a continuous target
            return _encode_matrix(values[:, None].astype(float))
        if np.all(np.abs(values) < 2**63):  # 1.0 in one view equals class 1 in another
            values = values.astype(np.int64)
    vocabulary, codes = np.unique(values, return_inverse=True)
    vectors = csr_array(eye_array(len(vocabulary), dtype=np.uint8, format="csr"))
    return LabelTable(vectors, vocabulary.astype(object)), codes.reshape(-1)


def _is_indicator(values: np.ndarray) -> bool:
    return values.dtype.kind == "b" or bool(np.isin(values, (0, 1)).all())


def _encode_matrix(values: Any, names: np.ndarray | None = None) -> tuple[LabelTable, np.ndarray]:
    if names is not None:
        order = sorted(range(len(names)), key=[_by_name(name) for name in names].__getitem__)
        values, names = values[:, order], names[order]
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported as labels.")
    values = canonical(values)
    stored = values.data if issparse(values) else values
    _require_finite(stored)
    if _is_indicator(stored):
        vectors, codes = _distinct_rows(own_csr(values, dtype=np.uint8))
    else:
        _require_squares(stored)
        dense = values.toarray() if issparse(values) else values
        vectors, codes = _distinct_rows(np.ascontiguousarray(dense, dtype=float))
    return LabelTable(vectors, names), codes


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


def _distinct_rows(matrix: Any) -> tuple[Any, np.ndarray]:
    """Distinct rows of a canonical CSR indicator or a dense array, and each row's code."""
    if issparse(matrix):
        ends, item_bytes = matrix.indptr, matrix.indices.itemsize
        buffer = matrix.indices.tobytes()
        keys = [buffer[start * item_bytes : end * item_bytes] for start, end in pairwise(ends)]
    else:
        keys = [row.tobytes() for row in matrix + 0.0]  # + 0.0 makes -0.0 equal to 0.0
    seen: dict[bytes, int] = {}
    codes = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.intp, len(keys))
    first = np.full(len(seen), len(keys), dtype=np.intp)
    np.minimum.at(first, codes, np.arange(len(keys)))
    return matrix[first], codes


def _common_columns(a: LabelTable, b: LabelTable) -> tuple[Any, Any, np.ndarray | None]:
    """The vectors of two tables with the same columns."""
    if (a.vocabulary is None) != (b.vocabulary is None):
        named = a.vocabulary if b.vocabulary is None else b.vocabulary
        assert named is not None
        raise ValueError(
            "All labels must be of the same kind: classes or label sets, indicator matrices, or "
            "real label vectors, and all or none with column names. Got labels with names "
            f"({few(named)}) and columns without names."
        )
    if a.vocabulary is None or b.vocabulary is None:
        if a.vectors.shape[1] != b.vectors.shape[1]:
            raise ValueError(
                f"All label vectors must have the same length, got {a.vectors.shape[1]} and "
                f"{b.vectors.shape[1]}. If vocabularies differ between views, pass word vectors "
                "(mvcca.views.labels.label_vectors)."
            )
        if a.is_binary and b.is_binary:
            return a.vectors, b.vectors, None
        return a.dense(), b.dense(), None  # real label vectors may consist of 0 and 1
    if not (a.is_binary and b.is_binary):
        if not np.array_equal(a.vocabulary, b.vocabulary):
            different = sorted({*a.vocabulary} ^ {*b.vocabulary}, key=_by_name)
            raise ValueError(
                "All real label vectors must have the same columns; columns on one side only: "
                f"{few(different)}."
            )
        return a.dense(), b.dense(), a.vocabulary
    names = sorted({*a.vocabulary, *b.vocabulary}, key=_by_name)
    column = {name: number for number, name in enumerate(names)}
    return _spread(a, column), _spread(b, column), _as_vocabulary(names)


def _spread(table: LabelTable, column: dict[Any, int]) -> csr_array:
    assert table.vocabulary is not None
    move = np.array([column[name] for name in table.vocabulary], dtype=np.int32)
    old = table.vectors
    shape = (old.shape[0], len(column))
    moved = csr_array((old.data.copy(), move[old.indices], old.indptr.copy()), shape=shape)
    moved.sort_indices()
    return moved
