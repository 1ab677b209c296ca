"""Ranked lists of a gallery, measured block by block without holding a matrix of all scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse

from mvcca import measures
from mvcca.machine.threads import each
from mvcca.measures import NoRelevant, Normalizer, Ties
from mvcca.retrieval.relevance import GivenRelevance, Relevance, SameObject, by_pairs
from mvcca.retrieval.search import Gallery, n_ranked, row_blocks, search, tile_rows


class RankedLists:
    """The gallery ranked for every query, with the relevance of its rows.

    Relevance is by pairs by default. With `exclude_self` queries are the gallery's rows, and each
    query is excluded from its results. Empty queries find nothing. Ranks and hits are kept for
    other measures that need them.
    """

    def __init__(
        self,
        queries: Any,
        gallery: Gallery,
        relevance: Any = None,
        exclude_self: bool = False,
        are_empty: np.ndarray | None = None,
    ) -> None:
        self._gallery, self._queries = gallery, gallery.queries(queries, exclude_self)
        self._relevance = _checked_relevance(
            relevance, (len(self._queries), len(gallery)), exclude_self
        )
        self._exclude_self = exclude_self
        self._empty = slice(0, 0) if are_empty is None else are_empty
        self._n_ranked = n_ranked(gallery, self._queries, exclude_self)
        self._ranks: dict[Ties, np.ndarray] = {}
        self._hits: tuple[np.ndarray, np.ndarray] | None = None
        self._best: tuple[np.ndarray, np.ndarray] | None = None

    def ranks(self, ties: Ties) -> np.ndarray:
        """Rank of each query's best relevant row."""
        if ties not in self._ranks:
            ranks = self._measured(
                lambda scores, relevant: measures.relevant_ranks(scores, relevant, ties), 3
            )
            ranks[self._empty] = np.inf
            self._ranks[ties] = ranks
        return self._ranks[ties]

    def average_precision(
        self, k: int | None, normalizer: Normalizer, no_relevant: NoRelevant
    ) -> np.ndarray:
        """Average precision of each query."""
        if k is not None:
            hits, n_relevant = self.hits(k)
            return measures.average_precision_of_lists(hits, n_relevant, k, normalizer, no_relevant)
        values = self._measured(
            lambda scores, relevant: measures.average_precision(
                scores, relevant, None, normalizer, no_relevant
            ),
            8,
        )
        return self._without_gain(values)

    def hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of each query's first k items, and its number of relevant rows in all."""
        length = min(k, self._n_ranked)
        if self._hits is None or self._hits[0].shape[1] < length:
            self._hits = self._found_hits(length)
        hits, n_relevant = self._hits
        return hits[:, :length], n_relevant

    def ndcg(
        self, k: int | None, gain: Callable[[np.ndarray], np.ndarray], no_relevant: NoRelevant
    ) -> np.ndarray:
        """Normalized gain of each query; `gain` transforms the gains of the relevance."""
        if k is None:
            values = self._measured(
                lambda scores, gains: measures.ndcg(scores, gain(gains), None, no_relevant),
                8,
                self._relevance.gains,
            )
            return self._without_gain(values)
        _, items = self.best(k)

        def measure_block(rows: slice) -> np.ndarray:
            found = self._relevance.gains_of_items(rows, items[rows])
            best = self._relevance.best_gains(rows, items.shape[1] + self._exclude_self)
            if self._exclude_self:
                own = np.arange(rows.start, rows.stop)[:, None]
                best = _without_one(best, self._relevance.gains_of_items(rows, own))
            return measures.ndcg_of_lists(gain(found), gain(best), no_relevant)

        values = np.concatenate([np.empty(0), *each(measure_block, tile_rows(len(items)))])
        return self._without_gain(values)

    def weighted_average_precision(
        self, k: int | None, precision: Literal["binary", "weighted"]
    ) -> np.ndarray:
        """Weighted average precision of each query, with gains as label similarities."""
        if k is None:
            values = self._measured(
                lambda scores, h: measures.weighted_average_precision(scores, h, None, precision),
                8,
                self._relevance.gains,
            )
            return self._without_gain(values)
        _, items = self.best(k)

        def measure_block(rows: slice) -> np.ndarray:
            h = self._relevance.gains_of_items(rows, items[rows])
            return measures.weighted_average_precision_of_lists(h, precision)

        values = np.concatenate([np.empty(0), *each(measure_block, tile_rows(len(items)))])
        return self._without_gain(values)

    def best(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of each query's list, of length k or shorter if there are fewer."""
        length = min(k, self._n_ranked)
        if self._best is None or self._best[0].shape[1] < length:
            self._best = search(self._gallery, self._queries, length, self._exclude_self)
        scores, items = self._best
        return scores[:, :length], items[:, :length]

    def occurrences(self, k: int) -> np.ndarray:
        """Number of queries that have each gallery row among their first k items, (n_gallery,)."""
        _, items = self.best(k)
        items = np.delete(items, self._empty, axis=0)
        return np.bincount(items.ravel(), minlength=len(self._gallery))

    def scored_pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Scores of blocks of queries and all rows, in any order, and whether they are relevant.

        Empty queries are left out.
        """
        are_asked = np.ones(len(self._queries), dtype=bool)
        are_asked[self._empty] = False
        for rows in row_blocks(self._gallery, self._queries, 8):
            queries = self._queries[rows]
            everything = np.arange(len(self._gallery))
            items = np.broadcast_to(everything, (len(queries), len(everything)))
            scores, items = self._gallery.scored(queries, self._gallery.products(queries), items)
            asked = are_asked[rows]
            if asked.any():
                yield scores[asked], self._relevance.of_items(rows, items)[0][asked]

    def _found_hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        _, items = self.best(k)

        def judge(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            if not self._exclude_self:
                return self._relevance.of_items(rows, items[rows])
            own = np.arange(rows.start, rows.stop)[:, None]
            hits, n_relevant = self._relevance.of_items(rows, np.hstack([items[rows], own]))
            return hits[:, :-1], n_relevant - hits[:, -1]

        judged = each(judge, tile_rows(len(items)))
        if not judged:
            return np.empty(items.shape, dtype=bool), np.empty(0, dtype=np.intp)
        hits, n_relevant = (np.concatenate(parts) for parts in zip(*judged, strict=True))
        hits[self._empty] = False
        return hits, n_relevant.astype(np.intp, copy=False)

    def _without_gain(self, values: np.ndarray) -> np.ndarray:
        """Values in which those of empty queries are 0, unless they have none at all."""
        own = values[self._empty]
        values[self._empty] = np.where(np.isnan(own), own, 0)
        return values

    def _measured(
        self,
        measure: Callable[[np.ndarray, Any], np.ndarray],
        n_copies: int,
        relevance: Callable[[slice], Any] | None = None,
    ) -> np.ndarray:
        """Measure whole rows of scores; see `row_blocks` for `n_copies`."""
        relevance = relevance or self._relevance.of

        def measure_block(rows: slice) -> np.ndarray:
            scores = self._gallery.products(self._queries[rows])
            relevant = relevance(rows)
            if self._exclude_self:
                scores, relevant = _without_self(scores, rows), _without_self(relevant, rows)
            return measure(scores, relevant)

        blocks = row_blocks(self._gallery, self._queries, n_copies)
        return np.concatenate([np.empty(0), *each(measure_block, blocks)])


def _checked_relevance(relevance: Any, shape: tuple[int, int], exclude_self: bool) -> Relevance:
    if relevance is None:
        relevance = by_pairs(*shape)
    elif not hasattr(relevance, "gains_of_items"):
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


def _without_one(best: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Descending gains without one that equals `own`, or without the smallest."""
    dropped = np.minimum((best > own).sum(axis=1), best.shape[1] - 1)
    return best[np.arange(best.shape[1]) != dropped[:, None]].reshape(len(best), -1)


def _without_self(matrix: Any, rows: slice) -> np.ndarray:
    """Rows of a query-by-gallery matrix without each query's own column."""
    matrix = matrix.toarray() if issparse(matrix) else matrix
    others = np.arange(rows.start, rows.stop)[:, None] != np.arange(matrix.shape[1])
    return matrix[others].reshape(len(matrix), -1)
