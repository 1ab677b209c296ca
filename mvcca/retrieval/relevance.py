"""What is relevant to what: items of the same object, or items that share a label.

A relevance answers for a block of queries at a time, so that no matrix of all queries by the whole
gallery is held.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca._containers import few, reject_masks
from mvcca.labels import LabelTable, encode_label_sets, label_names

RelevanceBy = Literal["pairs", "labels"]

_FEW_LABELS = 256


class Relevance(Protocol):
    """Which gallery rows are relevant to a query."""

    shape: tuple[int, int]  # (n_queries, n_gallery)

    def of(self, queries: slice) -> Any:
        """Boolean matrix (n, n_gallery), dense or sparse, for a block of n queries."""

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of items (n, k) of each of n queries, and how many are relevant in all (n,)."""


class SameObject:
    """Items of the query's object are relevant.

    Parameters
    ----------
    query_objects, gallery_objects : array of int, shapes (n_queries,) and (n_gallery,)
        The object that each row shows.
    """

    def __init__(self, query_objects: np.ndarray, gallery_objects: np.ndarray) -> None:
        self._queries, self._gallery = query_objects, gallery_objects
        self.shape = (len(query_objects), len(gallery_objects))
        n_objects = 1 + max(query_objects.max(initial=-1), gallery_objects.max(initial=-1))
        ones = np.ones(len(gallery_objects), dtype=bool)
        columns = np.arange(len(gallery_objects))
        self._shown = csr_array((ones, (gallery_objects, columns)), (n_objects, len(columns)))

    def of(self, queries: slice) -> csr_array:
        """Rows of the object that each query shows."""
        return csr_array(self._shown[self._queries[queries]])

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether items show the query's object, and how many gallery rows do."""
        objects = self._queries[queries]
        return objects[:, None] == self._gallery[items], np.diff(self._shown.indptr)[objects]

    def is_self_only(self) -> bool:
        """Whether no object has several gallery rows, so that nothing is left without the query."""
        return bool((np.diff(self._shown.indptr) <= 1).all())


class SharedLabel:
    """Items that share at least one label with the query are relevant.

    Parameters
    ----------
    table : LabelTable
        Distinct label sets; an empty one is relevant to nothing.
    query_codes, gallery_codes : array of int, shapes (n_queries,) and (n_gallery,)
        The label set of each row.

    Raises
    ------
    ValueError
        If queries and gallery have labels, but none in common.
    """

    def __init__(
        self, table: LabelTable, query_codes: np.ndarray, gallery_codes: np.ndarray
    ) -> None:
        _check_shared(label_names(table, query_codes), label_names(table, gallery_codes))
        vectors = table.vectors
        # BLAS is fastest for few labels; it takes floats, which hold these counts exactly.
        few = vectors.shape[1] <= _FEW_LABELS
        self._vectors = vectors.toarray().astype(np.float32) if few else vectors.astype(np.int32)
        self._queries, self._gallery = query_codes, gallery_codes
        self._copies = np.bincount(gallery_codes, minlength=vectors.shape[0]).astype(np.float64)
        self.shape = (len(query_codes), len(gallery_codes))

    def of(self, queries: slice) -> np.ndarray:
        """Whether query and item share a label, for the whole gallery."""
        return self._shares(queries)[:, self._gallery]

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether items share a label with the query, and how many gallery rows do."""
        shares = self._shares(queries)
        hits = np.take_along_axis(shares, self._gallery[items], axis=1)
        return hits, (shares.astype(np.float64) @ self._copies).astype(np.intp)

    def _shares(self, queries: slice) -> np.ndarray:
        """Whether each query shares a label with each distinct label set."""
        counts = self._vectors[self._queries[queries]] @ self._vectors.T
        return (counts.toarray() if issparse(counts) else counts) > 0


class GivenRelevance:
    """Relevance as a matrix.

    Parameters
    ----------
    matrix : array-like or sparse matrix of bool or 0/1, shape (n_queries, n_gallery)
        Whether a gallery row is relevant to a query.

    Raises
    ------
    ValueError
        If the matrix is masked, is not two-dimensional, or holds anything but 0 and 1.
    """

    def __init__(self, matrix: Any) -> None:
        reject_masks(matrix)
        values = csr_array(matrix) if issparse(matrix) else np.asarray(matrix)
        if (
            values.ndim != 2
            or not np.isin(values.data if issparse(values) else values, (0, 1)).all()
        ):
            raise ValueError(
                "Expected relevance from by_pairs or by_labels, or a boolean matrix of shape "
                f"(n_queries, n_gallery), got {values.dtype} of shape {values.shape}."
            )
        self._matrix = values.astype(bool)
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def of(self, queries: slice) -> Any:
        """Rows of the matrix."""
        return self._matrix[queries]

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of items of each query, and how many gallery rows are relevant to it."""
        rows = self.of(queries)
        rows = rows.toarray() if issparse(rows) else rows
        return np.take_along_axis(rows, items, axis=1), rows.sum(axis=1)


def by_pairs(n_queries: int, n_gallery: int) -> SameObject:
    """Relevance of paired rows: gallery row i to query i, and to nothing else.

    If n_gallery = g n_queries, rows g i, ..., g i + g - 1 are relevant to query i (five captions of
    an image); if n_queries = h n_gallery, query i belongs to row ⌊i / h⌋.

    Parameters
    ----------
    n_queries, n_gallery : int
        One a multiple of the other.

    Returns
    -------
    relevance
        For `ranks` and `average_precision`.

    Raises
    ------
    ValueError
        If neither number is a multiple of the other.
    """
    n_objects = min(n_queries, n_gallery)
    if n_objects < 1 or n_queries % n_objects or n_gallery % n_objects:
        raise ValueError(
            "Paired rows need as many queries as gallery rows, or a multiple of them; got "
            f"{n_queries} and {n_gallery}. Use by_labels for rows that are not paired."
        )
    return SameObject(
        np.arange(n_queries) // (n_queries // n_objects),
        np.arange(n_gallery) // (n_gallery // n_objects),
    )


def by_labels(query_labels: Any, gallery_labels: Any) -> SharedLabel:
    """Relevance of labelled rows: those that share at least one label with the query.

    Parameters
    ----------
    query_labels, gallery_labels : class vectors, indicator matrices or lists of label sets
        Both of the same kind. Rows with an empty label set are relevant to nothing.

    Returns
    -------
    relevance
        For `ranks` and `average_precision`.

    Raises
    ------
    ValueError
        If labels are real-valued vectors, of two kinds, or have nothing in common.
    """
    table, (queries, gallery) = encode_label_sets(query_labels, gallery_labels)
    return SharedLabel(table, queries, gallery)


def _check_shared(queries: list[Any], gallery: list[Any]) -> None:
    if queries and gallery and set(gallery).isdisjoint(queries):
        raise ValueError(
            f"The labels of the queries ({few(queries)}) have nothing in common with those of the "
            f"gallery ({few(gallery)}), so nothing is relevant. Use the same names on both sides."
        )
