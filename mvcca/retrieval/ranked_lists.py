"""Ranked lists of a gallery, measured block by block without holding a matrix of all scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from mvcca import measures
from mvcca.blocks import as_block
from mvcca.machine.threads import each
from mvcca.measures import Ties
from mvcca.retrieval.relevance import GivenRelevance, Relevance, SameObject, by_pairs
from mvcca.retrieval.search import (
    Gallery,
    best_by_rows,
    check_own_rows,
    row_blocks,
    search,
    tile_rows,
)

Arrays = TypeVar("Arrays", np.ndarray, tuple[np.ndarray, np.ndarray])


class Lists:
    """Ranked lists of some queries and the relevance of their items, which measures summarize.

    Items of empty queries count as not relevant.
    """

    def __init__(
        self,
        items: np.ndarray,
        relevance: Relevance,
        first: int = 0,
        exclude_self: bool = False,
        are_empty: np.ndarray | None = None,
    ) -> None:
        self._items, self._relevance, self._first = items, relevance, first
        self._exclude_self, self._are_empty = exclude_self, are_empty

    def hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the first k items (n, k), and each query's number of relevant items."""
        hits, n_relevant = self._judged
        return hits[:, :k], n_relevant

    def gains(self, k: int) -> np.ndarray:
        """Gains of the first k items, (n, k)."""
        gains = self._by_block(
            lambda rows, own: self._relevance.gains_of_items(rows, self._items[own, :k])
        )
        if self._are_empty is not None:
            gains[self._are_empty] = 0
        return gains

    def best_gains(self, k: int) -> np.ndarray:
        """The k largest gains in the gallery, descending."""
        length = self._items[:, :k].shape[1] + self._exclude_self

        def of_block(rows: slice, _: slice) -> np.ndarray:
            best = self._relevance.best_gains(rows, length)
            if not self._exclude_self:
                return best
            return _without_one(best, self._relevance.gains_of_items(rows, _positions(rows)))

        return self._by_block(of_block)

    @cached_property
    def _judged(self) -> tuple[np.ndarray, np.ndarray]:
        def of_block(rows: slice, own: slice) -> tuple[np.ndarray, np.ndarray]:
            items = self._items[own]
            if not self._exclude_self:
                return self._relevance.of_items(rows, items)
            hits, n_relevant = self._relevance.of_items(rows, np.hstack([items, _positions(rows)]))
            return hits[:, :-1], n_relevant - hits[:, -1]

        hits, n_relevant = self._by_block(of_block)
        if self._are_empty is not None:
            hits[self._are_empty] = False
        return hits, n_relevant.astype(np.intp, copy=False)

    def _by_block(self, function: Callable[[slice, slice], Arrays]) -> Arrays:
        """Arrays of all queries from those of blocks, given by their places there and here."""

        def of_block(own: slice) -> Arrays:
            return function(slice(self._first + own.start, self._first + own.stop), own)

        parts = each(of_block, tile_rows(len(self._items)) or [slice(0, 0)])
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(own) for own in zip(*parts, strict=True))  # type: ignore[return-value]
        return np.concatenate(parts)


class RankedLists:
    """The gallery ranked for every query, with the relevance of its rows.

    Relevance is by pairs by default. With `exclude_self` queries are the gallery's rows, and each
    query is excluded from its results. Empty queries find nothing. Ranks and lists are kept for
    other measures that need them.
    """

    def __init__(
        self,
        queries: np.ndarray,
        gallery: Gallery,
        relevance: Any = None,
        exclude_self: bool = False,
        are_empty: np.ndarray | None = None,
    ) -> None:
        self._gallery, self._queries = gallery, gallery.queries(queries, exclude_self)
        self._relevance = _checked_relevance(
            relevance, (len(self._queries), len(gallery)), exclude_self
        )
        self._exclude_self, self._are_empty = exclude_self, are_empty
        if exclude_self:
            check_own_rows(gallery, self._queries)
        self._n_ranked = gallery.n_ranked - exclude_self
        self._ranks: dict[Ties, np.ndarray] = {}
        self._best: tuple[np.ndarray, np.ndarray] | None = None
        self._lists: Lists | None = None

    def ranks(self, ties: Ties) -> np.ndarray:
        """Rank of each query's best relevant row."""

        def of_block(rows: slice) -> np.ndarray:
            scores = self._gallery.products(self._queries[rows])
            relevant = self._relevance.of(rows)
            if self._exclude_self:
                scores, relevant = _without_self(scores, rows), _without_self(relevant, rows)
            return measures.relevant_ranks(scores, relevant, ties)

        if ties not in self._ranks:
            blocks = row_blocks(self._gallery, self._queries, 3)
            ranks = np.concatenate([np.empty(0), *each(of_block, blocks)])
            if self._are_empty is not None:
                ranks[self._are_empty] = np.inf
            self._ranks[ties] = ranks
        return self._ranks[ties]

    def measured(self, formula: Callable[[Lists, int], np.ndarray], k: int | None) -> np.ndarray:
        """A formula of the first k items of all lists, or of blocks of whole lists."""
        if k is not None:
            return formula(self._first(k), k)

        def of_block(rows: slice) -> np.ndarray:
            _, items = best_by_rows(
                self._gallery, self._queries, self._n_ranked, self._exclude_self, rows
            )
            empty = None if self._are_empty is None else self._are_empty[rows]
            lists = Lists(items, self._relevance, rows.start, self._exclude_self, empty)
            return formula(lists, self._n_ranked)

        blocks = row_blocks(self._gallery, self._queries, 8)
        return np.concatenate([np.empty(0), *each(of_block, blocks)])

    def best(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of each query's list, of length k or shorter if there are fewer."""
        length = min(k, self._n_ranked)
        if self._best is None or self._best[0].shape[1] < length:
            self._best = search(self._gallery, self._queries, length, self._exclude_self)
            self._lists = None
        scores, items = self._best
        return scores[:, :length], items[:, :length]

    def _first(self, k: int) -> Lists:
        """Lists of at least k items, or of all."""
        self.best(k)
        if self._lists is None:
            assert self._best is not None
            items, empty = self._best[1], self._are_empty
            self._lists = Lists(items, self._relevance, 0, self._exclude_self, empty)
        return self._lists

    def occurrences(self, k: int) -> np.ndarray:
        """Number of queries that have each gallery row among their first k items, (n_gallery,)."""
        _, items = self.best(k)
        if self._are_empty is not None:
            items = items[~self._are_empty]
        return np.bincount(items.ravel(), minlength=len(self._gallery))

    def scored_pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Scores of blocks of queries and all rows, in any order, and whether they are relevant.

        Empty queries are left out.
        """
        for rows in row_blocks(self._gallery, self._queries, 8):
            queries = self._queries[rows]
            everything = np.arange(len(self._gallery))
            items = np.broadcast_to(everything, (len(queries), len(everything)))
            scores, items = self._gallery.scored(queries, self._gallery.products(queries), items)
            relevant = self._relevance.of_items(rows, items)[0]
            if self._are_empty is not None:
                asked = ~self._are_empty[rows]
                scores, relevant = scores[asked], relevant[asked]
            if len(scores):
                yield scores, relevant


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


def _positions(rows: slice) -> np.ndarray:
    """The queries' own items, a column."""
    return np.arange(rows.start, rows.stop)[:, None]


def _without_one(best: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Descending gains without one that equals `own`, or without the smallest."""
    dropped = np.minimum((best > own).sum(axis=1), best.shape[1] - 1)
    return best[np.arange(best.shape[1]) != dropped[:, None]].reshape(len(best), -1)


def _without_self(matrix: Any, rows: slice) -> np.ndarray:
    """Rows of a query-by-gallery matrix without each query's own column."""
    matrix = as_block(matrix).dense().matrix
    return matrix[_positions(rows) != np.arange(matrix.shape[1])].reshape(len(matrix), -1)
