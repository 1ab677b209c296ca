"""Relevance of gallery rows to queries: by pairs, by labels, or as a matrix.

It is computed for one block of queries at a time: no matrix of all queries by the whole gallery is
held.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks import as_block, to_plain
from mvcca.blocks.checks import few, reject_masks
from mvcca.measures.arrays import same_shape
from mvcca.measures.gain import checked_gains
from mvcca.views import Labels
from mvcca.views.typing import LabelsLike

RelevanceBy = Literal["pairs", "labels", "gains"]

_FEW_LABELS = 256


class Relevance:
    """Relevance of gallery rows to queries: by default from a matrix of gains, block by block."""

    shape: tuple[int, int]  # (n_queries, n_gallery)

    def gains(self, queries: slice) -> np.ndarray:
        """Gain of each gallery row (n, n_gallery) for a block of n queries, 0 if not relevant."""
        raise NotImplementedError

    def of(self, queries: slice) -> Any:
        """Which gallery rows are relevant (n, n_gallery), a dense or sparse matrix of bool."""
        return self.gains(queries) > 0

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the items (n, k) of n queries; number of relevant gallery rows (n,)."""
        relevant = self.of(queries)
        return np.take_along_axis(relevant, items, axis=1), relevant.sum(axis=1)

    def gains_of_items(self, queries: slice, items: np.ndarray) -> np.ndarray:
        """Gain of the items (n, k) of n queries."""
        return np.take_along_axis(self.gains(queries), items, axis=1)

    def best_gains(self, queries: slice, k: int) -> np.ndarray:
        """The k largest gains in the gallery (n, min(k, n_gallery)), in descending order."""
        losses = -self.gains(queries)
        if k < losses.shape[1]:
            losses = np.partition(losses, k, axis=1)[:, :k]
        return -np.sort(losses, axis=1)


class SameObject(Relevance):
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

    def gains(self, queries: slice) -> np.ndarray:
        """1 for a gallery row of the query's object, else 0."""
        return self.of(queries).toarray().astype(np.float64)

    def gains_of_items(self, queries: slice, items: np.ndarray) -> np.ndarray:
        """1 for an item of the query's object, else 0."""
        return self.of_items(queries, items)[0].astype(np.float64)

    def best_gains(self, queries: slice, k: int) -> np.ndarray:
        """As many 1 as there are gallery rows of the query's object."""
        n_shown = np.diff(self._shown.indptr)[self._queries[queries]]
        return (np.arange(min(k, self.shape[1])) < n_shown[:, None]).astype(np.float64)

    def is_self_only(self) -> bool:
        """Whether every object has at most one gallery row, which can only be the query itself."""
        return bool((np.diff(self._shown.indptr) <= 1).all())


class SharedLabel(Relevance):
    """Items that share at least one label with the query are relevant.

    Labels of both are over the same distinct label sets. An empty label set is relevant to nothing.
    """

    def __init__(self, queries: Labels, gallery: Labels) -> None:
        of_queries, of_gallery = queries.present(), gallery.present()
        if of_queries and of_gallery and set(of_gallery).isdisjoint(of_queries):
            raise ValueError(
                f"The labels of the queries ({few(of_queries)}) have nothing in common with those "
                f"of the gallery ({few(of_gallery)}), so nothing is relevant. Use the same names "
                "on both sides, or compare labels by word vectors: evaluate_retrieval(..., "
                "label_vectors=..., measures='wmap@50')."
            )
        vectors = queries.vectors
        # BLAS is fastest for few labels; it takes floats, which hold these counts exactly.
        if vectors.shape[1] <= _FEW_LABELS:
            self._vectors = vectors.toarray().astype(np.float32)
        else:
            self._vectors = vectors.astype(np.int32)
        self._queries, self._gallery = queries.codes, gallery.codes
        self._copies = np.bincount(gallery.codes, minlength=vectors.shape[0]).astype(np.float64)
        self.shape = (len(queries), len(gallery))

    def of(self, queries: slice) -> np.ndarray:
        """Whether each query shares a label with each gallery row."""
        return (self._n_shared(queries) > 0)[:, self._gallery]

    def of_items(self, queries: slice, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of items, and each query's number of relevant gallery rows."""
        shares = self._n_shared(queries) > 0
        hits = np.take_along_axis(shares, self._gallery[items], axis=1)
        return hits, (shares.astype(np.float64) @ self._copies).astype(np.intp)

    def gains(self, queries: slice) -> np.ndarray:
        """Number of labels that each query shares with each gallery row."""
        return self._n_shared(queries)[:, self._gallery].astype(np.float64)

    def gains_of_items(self, queries: slice, items: np.ndarray) -> np.ndarray:
        """Number of labels that each query shares with its items."""
        n_shared = np.take_along_axis(self._n_shared(queries), self._gallery[items], axis=1)
        return n_shared.astype(np.float64)

    def best_gains(self, queries: slice, k: int) -> np.ndarray:
        """The k largest numbers of labels that a gallery row shares with each query."""
        n_shared = self._n_shared(queries).astype(np.intp)
        places, n_grades = np.arange(min(k, self.shape[1])), 1 + int(n_shared.max(initial=0))
        cells = (n_grades * np.arange(len(n_shared))[:, None] + n_shared).ravel()
        copies = np.broadcast_to(self._copies, n_shared.shape).ravel()
        n_rows = np.bincount(cells, copies, n_grades * len(n_shared)).reshape(-1, n_grades)
        at_least = np.cumsum(n_rows[:, ::-1], axis=1)[:, ::-1]  # gallery rows by least gain
        best = np.zeros((len(n_shared), len(places)))
        for grade in range(1, n_grades):
            best += places < at_least[:, [grade]]
        return best

    def _n_shared(self, queries: slice) -> np.ndarray:
        """Number of labels that each query shares with each distinct label set."""
        counts = self._vectors[self._queries[queries]] @ self._vectors.T
        return as_block(counts).dense().matrix


class GivenRelevance(Relevance):
    """Relevance as a matrix of bool or 0/1, dense or sparse, shape (n_queries, n_gallery)."""

    def __init__(self, matrix: Any) -> None:
        reject_masks(matrix)
        values = to_plain(matrix)
        if values.ndim != 2 or not np.isin(as_block(values).numbers(), (0, 1)).all():
            raise ValueError(
                "Expected relevance from by_pairs or by_labels, or a boolean matrix of shape "
                f"(n_queries, n_gallery), got {values.dtype} of shape {values.shape}."
            )
        self._matrix = values.astype(bool)
        self.shape = (int(values.shape[0]), int(values.shape[1]))

    def of(self, queries: slice) -> Any:
        """Rows of the matrix."""
        return as_block(self._matrix[queries]).dense().matrix

    def gains(self, queries: slice) -> np.ndarray:
        """1 for relevant gallery rows, else 0."""
        return self.of(queries).astype(np.float64)


class GivenGains(Relevance):
    """Relevance by the gain of each object for each other object.

    `gains` is a matrix (n_objects, n_objects), dense or sparse, or a function of the objects of
    queries and those of the gallery, ndarrays of int, to a matrix.
    """

    def __init__(self, gains: Any, queries: np.ndarray, gallery: np.ndarray) -> None:
        self._gains: Any = gains
        self._queries, self._gallery = queries, gallery
        self.shape = (len(queries), len(gallery))
        if not callable(gains):
            reject_masks(gains)
            self._gains = to_plain(gains)
            n_objects = 1 + max(queries.max(initial=-1), gallery.max(initial=-1))
            if self._gains.ndim != 2 or min(self._gains.shape) < n_objects:
                raise ValueError(
                    f"Expected gains of shape ({n_objects}, {n_objects}), one row and one column "
                    f"per object, got {self._gains.shape}."
                )

    def gains(self, queries: slice) -> np.ndarray:
        """Rows of the matrix, or values of the function."""
        objects = self._queries[queries]
        if callable(self._gains):
            values: Any = self._gains(objects, self._gallery)
            same_shape(np.shape(values), (len(objects), len(self._gallery)), "gains")
        else:
            values = self._gains[objects][:, self._gallery]
        return checked_gains(as_block(values).dense().matrix)


def checked_relevance(relevance: Any, shape: tuple[int, int], exclude_self: bool) -> Relevance:
    """Relevance of queries and gallery rows as users pass it; by pairs if it is None."""
    if relevance is None:
        relevance = by_pairs(*shape)
    elif not isinstance(relevance, Relevance):
        relevance = GivenRelevance(relevance)
    if relevance.shape != shape:
        raise ValueError(
            f"Relevance is of {relevance.shape[0]} queries and {relevance.shape[1]} gallery rows, "
            f"got {shape[0]} and {shape[1]}."
        )
    if exclude_self and isinstance(relevance, SameObject) and relevance.is_self_only():
        raise ValueError(
            "With exclude_self=True nothing is relevant by pairs: the only row paired with a query "
            "is the query itself. Pass relevance=by_labels(y, y), or a boolean matrix."
        )
    return relevance


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
        Pass it to `ranks` or `per_query`.

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
    query_labels, gallery_labels : class vectors, indicator matrices, lists of label sets or Labels
        Labels of both, of the same kind. Rows without labels are relevant to nothing.

    Returns
    -------
    relevance
        Pass it to `ranks` or `per_query`.

    Raises
    ------
    ValueError
        If labels are real-valued vectors, of two kinds, or have nothing in common.
    """
    queries, gallery = Labels.in_common([query_labels, gallery_labels])
    return SharedLabel(queries.require_sets(), gallery)
