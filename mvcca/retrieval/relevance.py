"""Relevance of gallery rows to queries: by pairs, by labels, or as a matrix.

It is computed for one block of queries at a time: no matrix of all queries by the whole gallery is
held.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca._containers import few, reject_masks
from mvcca.labels import LabelTable, encode_label_sets, label_names
from mvcca.typing import LabelsLike

RelevanceBy = Literal["pairs", "labels"]

_FEW_LABELS = 256


class Relevance(Protocol):
    """Relevance of gallery rows to queries."""

    shape: tuple[int, int]  # (n_queries, n_gallery)

    def of(self, queries: slice) -> Any:
        """Boolean matrix (n, n_gallery), dense or sparse, for a block of n queries."""

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the items (n, k) of n queries; number of relevant gallery rows (n,)."""


class SameObject:
    """Items of the query's object are relevant; each row shows one object, an int."""

    def __init__(self, query_objects: np.ndarray, gallery_objects: np.ndarray) -> None:
        self._queries, self._gallery = query_objects, gallery_objects
        self.shape = (len(query_objects), len(gallery_objects))
        n_objects = 1 + max(query_objects.max(initial=-1), gallery_objects.max(initial=-1))
        ones = np.ones(len(gallery_objects), dtype=bool)
        columns = np.arange(len(gallery_objects))
        self._shown = csr_array((ones, (gallery_objects, columns)), (n_objects, len(columns)))

    def of(self, queries: slice) -> csr_array:
        """Gallery rows that show each query's object."""
        return csr_array(self._shown[self._queries[queries]])

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of items, and each query's number of relevant gallery rows."""
        objects = self._queries[queries]
        return objects[:, None] == self._gallery[items], np.diff(self._shown.indptr)[objects]

    def is_self_only(self) -> bool:
        """Whether every object has at most one gallery row, which can only be the query itself."""
        return bool((np.diff(self._shown.indptr) <= 1).all())


class SharedLabel:
    """Items that share at least one label with the query are relevant.

    `table` holds the distinct label sets, codes the row of the table for each query and item. An
    empty label set is relevant to nothing.
    """

    def __init__(
        self, table: LabelTable, query_codes: np.ndarray, gallery_codes: np.ndarray
    ) -> None:
        _check_shared(label_names(table, query_codes), label_names(table, gallery_codes))
        vectors = table.vectors
        # BLAS is fastest for few labels; it takes floats, which hold these counts exactly.
        if vectors.shape[1] <= _FEW_LABELS:
            self._vectors = vectors.toarray().astype(np.float32)
        else:
            self._vectors = vectors.astype(np.int32)
        self._queries, self._gallery = query_codes, gallery_codes
        self._copies = np.bincount(gallery_codes, minlength=vectors.shape[0]).astype(np.float64)
        self.shape = (len(query_codes), len(gallery_codes))

    def of(self, queries: slice) -> np.ndarray:
        """Whether each query shares a label with each gallery row."""
        return self._shares(queries)[:, self._gallery]

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of items, and each query's number of relevant gallery rows."""
        shares = self._shares(queries)
        hits = np.take_along_axis(shares, self._gallery[items], axis=1)
        return hits, (shares.astype(np.float64) @ self._copies).astype(np.intp)

    def _shares(self, queries: slice) -> np.ndarray:
        """Whether each query shares a label with each distinct label set."""
        counts = self._vectors[self._queries[queries]] @ self._vectors.T
        return (counts.toarray() if issparse(counts) else counts) > 0


class GivenRelevance:
    """Relevance as a matrix of bool or 0/1, dense or sparse, shape (n_queries, n_gallery)."""

    def __init__(self, matrix: Any) -> None:
        reject_masks(matrix)
        values = csr_array(matrix) if issparse(matrix) else np.asarray(matrix)
        entries = values.data if issparse(values) else values
        if values.ndim != 2 or not np.isin(entries, (0, 1)).all():
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
        """Relevance of items, and each query's number of relevant gallery rows."""
        rows = self.of(queries)
        rows = rows.toarray() if issparse(rows) else rows
        return np.take_along_axis(rows, items, axis=1), rows.sum(axis=1)


def by_pairs(n_queries: int, n_gallery: int) -> SameObject:
    """Relevance of paired rows: gallery row i is relevant to query i alone.

    If n_gallery = g n_queries, rows g i, ..., g i + g - 1 are relevant to query i (five captions of
    an image); if n_queries = h n_gallery, query i belongs to row ⌊i / h⌋.

    Parameters
    ----------
    n_queries, n_gallery : int
        Numbers of rows, one a multiple of the other.

    Returns
    -------
    relevance
        Pass it to `ranks` or `average_precision`.

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


def by_labels(query_labels: LabelsLike, gallery_labels: LabelsLike) -> SharedLabel:
    """Relevance of labelled rows: gallery rows that share at least one label with the query.

    Parameters
    ----------
    query_labels, gallery_labels : class vectors, indicator matrices or lists of label sets
        Labels of both, of the same kind. Rows without labels are relevant to nothing.

    Returns
    -------
    relevance
        Pass it to `ranks` or `average_precision`.

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
