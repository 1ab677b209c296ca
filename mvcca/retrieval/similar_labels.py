"""Relevance of items by the word vectors of their labels, for views with other vocabularies."""

from __future__ import annotations

import numpy as np

from mvcca.measures.weighted import max_over_sets
from mvcca.retrieval.relevance import Relevance
from mvcca.views import Labels


class SimilarLabels(Relevance):
    """Gains by the most similar labels: max over a of the query, b of the item of cos(w_a, w_b).

    A row without labels has similarity 0 to all others. See `measures.label_set_similarity`.
    """

    def __init__(self, queries: Labels, gallery: Labels) -> None:
        assert queries.words is not None
        assert gallery.words is not None
        self._queries, self._gallery = queries, gallery
        self._cosines = queries.words @ gallery.words.T
        self.shape = (len(queries), len(gallery))

    def gains(self, queries: slice) -> np.ndarray:
        """Similarity to each gallery row."""
        to_sets = max_over_sets(self._gallery.vectors, self._to_labels(queries).T).T
        return _finite(to_sets)[:, self._gallery.codes]

    def gains_of_items(self, queries: slice, items: np.ndarray) -> np.ndarray:
        """Similarity to the items of each query."""
        to_labels, sets = self._to_labels(queries), self._gallery.vectors
        codes = self._gallery.codes[items].ravel()
        sizes = np.diff(sets.indptr)[codes]
        ends = np.cumsum(sizes)
        # Labels of all items, one item after another; each item's are at its place in the table.
        places = np.repeat(sets.indptr[codes] - ends + sizes, sizes) + np.arange(sizes.sum())
        rows = np.repeat(np.arange(len(codes)) // max(items.shape[1], 1), sizes)
        of_labels = to_labels[rows, sets.indices[places]]
        similarities = np.zeros(len(codes))
        labelled = sizes > 0
        if labelled.any():
            starts = (ends - sizes)[labelled]
            similarities[labelled] = np.maximum.reduceat(of_labels, starts)
        return _finite(similarities).reshape(items.shape)

    def _to_labels(self, queries: slice) -> np.ndarray:
        """Similarity of each query's label set to each label of the gallery; -inf if empty."""
        return max_over_sets(self._queries.vectors[self._queries.codes[queries]], self._cosines)


def _finite(similarities: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(similarities), 0.0, similarities)
