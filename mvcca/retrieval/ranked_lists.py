"""Ranked lists of a gallery, measured block by block without holding a matrix of all scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.machine.threads import each
from mvcca.measures.lists import Ties, relevant_ranks
from mvcca.retrieval.relevance import Relevance
from mvcca.retrieval.search import (
    Gallery,
    best_by_rows,
    check_own_rows,
    row_blocks,
    search,
    tile_rows,
)

_CELLS = 2**22  # of a block of queries by the gallery


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries of a direction, and the relevance of the gallery's rows to them."""

    rows: np.ndarray  # (n_queries, n_components), to query with
    objects: np.ndarray  # (n_queries,), the object of each query; for class means, its number
    places: np.ndarray  # (n_queries,), the row of each query in its view
    relevance: Relevance
    exclude_self: bool = False  # queries are the rows of the gallery, and none finds itself
    are_empty: np.ndarray | None = None  # (n_queries,), queries that find nothing

    # ---- what measures expect of lists in random order ------------------------------------------

    @property
    def n_items(self) -> int:
        """Number of items in each list."""
        return self.relevance.shape[1] - self.exclude_self

    @property
    def n_searches(self) -> int:
        """Number of lists that can hold an item: its own query does not find it."""
        return len(self.objects) - self.exclude_self

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant items in each query's list."""
        parts = []
        for rows, own in self._blocks():
            hits, n_relevant = self.relevance.of_items(rows, own)
            parts.append(n_relevant - hits.sum(axis=1))
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def by_gains(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Values of all queries, from the gains of blocks; 0 for an item that is left out."""
        parts = []
        for rows, own in self._blocks():
            gains = np.array(self.relevance.gains(rows))
            np.put_along_axis(gains, own, 0.0, axis=1)
            parts.append(function(gains))
        return np.concatenate([np.empty(0), *parts])

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries, and the items (n, 1) or (n, 0) left out of their lists."""
        n_queries, step = len(self.objects), max(1, _CELLS // max(1, self.relevance.shape[1]))
        for start in range(0, n_queries, step):
            rows = slice(start, min(start + step, n_queries))
            yield rows, _positions(rows)[:, : self.exclude_self]


@dataclass(eq=False)
class Lists:
    """Ranked lists of consecutive queries, and the relevance of their items.

    Items of empty queries count as not relevant.
    """

    judged: Judged
    items: np.ndarray  # (n, length)
    first: int = 0  # of the queries
    found: tuple[np.ndarray, np.ndarray] | None = None  # hits of all items, once they are known

    def hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the first k items (n, k), and each query's number of relevant items."""
        if self.found is None:
            parts = each(self._hits, tile_rows(len(self.items)) or [slice(0, 0)])
            hits, n_relevant = (np.concatenate(own) for own in zip(*parts, strict=True))
            if self.judged.are_empty is not None:
                hits[self._empty] = False
            self.found = hits, n_relevant.astype(np.intp, copy=False)
        hits, n_relevant = self.found
        return hits[:, :k], n_relevant

    def _hits(self, own: slice) -> tuple[np.ndarray, np.ndarray]:
        items, rows = self.items[own], slice(self.first + own.start, self.first + own.stop)
        if not self.judged.exclude_self:
            return self.judged.relevance.of_items(rows, items)
        items = np.hstack([items, _positions(rows)])
        hits, n_relevant = self.judged.relevance.of_items(rows, items)
        return hits[:, :-1], n_relevant - hits[:, -1]

    def gains(self, k: int) -> np.ndarray:
        """Gains of the first k items, (n, k)."""
        parts = each(partial(self._gains, k), tile_rows(len(self.items)) or [slice(0, 0)])
        gains = np.concatenate(parts)
        if self.judged.are_empty is not None:
            gains[self._empty] = 0
        return gains

    def _gains(self, k: int, own: slice) -> np.ndarray:
        rows = slice(self.first + own.start, self.first + own.stop)
        return self.judged.relevance.gains_of_items(rows, self.items[own, :k])

    def best_gains(self, k: int) -> np.ndarray:
        """The k largest gains in the gallery, descending."""
        parts = each(partial(self._best_gains, k), tile_rows(len(self.items)) or [slice(0, 0)])
        return np.concatenate(parts)

    def _best_gains(self, k: int, own: slice) -> np.ndarray:
        rows = slice(self.first + own.start, self.first + own.stop)
        relevance = self.judged.relevance
        length = self.items[:, :k].shape[1] + self.judged.exclude_self
        best = relevance.best_gains(rows, length)
        if not self.judged.exclude_self:
            return best
        return _without_one(best, relevance.gains_of_items(rows, _positions(rows)))

    @property
    def _empty(self) -> np.ndarray:
        """Which of the queries are empty."""
        assert self.judged.are_empty is not None
        return self.judged.are_empty[self.first : self.first + len(self.items)]


class RankedLists:
    """The gallery ranked for every query, with the relevance of its rows.

    Empty queries find nothing. Ranks and lists are kept for other measures that need them.
    """

    def __init__(self, judged: Judged, gallery: Gallery) -> None:
        self.judged = judged
        self._gallery = gallery
        self._queries = gallery.queries(judged.rows)
        if judged.exclude_self:
            check_own_rows(gallery, self._queries)
        self._n_ranked = gallery.n_ranked - judged.exclude_self
        self._ranks: dict[Ties, np.ndarray] = {}
        self._best: tuple[np.ndarray, Lists] | None = None  # scores, items

    def ranks(self, ties: Ties) -> np.ndarray:
        """Rank of each query's best relevant row."""
        if ties not in self._ranks:
            blocks = row_blocks(self._gallery, self._queries, 3)
            parts = each(partial(self._ranks_of, ties), blocks)
            ranks = np.concatenate([np.empty(0), *parts])
            if self.judged.are_empty is not None:
                ranks[self.judged.are_empty] = np.inf
            self._ranks[ties] = ranks
        return self._ranks[ties]

    def _ranks_of(self, ties: Ties, rows: slice) -> np.ndarray:
        scores: Any = self._gallery.products(self._queries[rows])
        relevant = self.judged.relevance.of(rows)
        if self.judged.exclude_self:
            scores, relevant = _without_self(scores, rows), _without_self(relevant, rows)
        return relevant_ranks(scores, relevant, ties)

    def measured(self, formula: Callable[[Lists, int], np.ndarray], k: int | None) -> np.ndarray:
        """A formula of the first k items of all lists, or of blocks of whole lists."""
        if k is not None:
            self.best(k)
            assert self._best is not None
            return formula(self._best[1], k)
        blocks = row_blocks(self._gallery, self._queries, 8)
        return np.concatenate([np.empty(0), *each(partial(self._of_whole_lists, formula), blocks)])

    def _of_whole_lists(
        self, formula: Callable[[Lists, int], np.ndarray], rows: slice
    ) -> np.ndarray:
        n, exclude_self = self._n_ranked, self.judged.exclude_self
        _, items = best_by_rows(self._gallery, self._queries, n, exclude_self, rows)
        return formula(Lists(self.judged, items, rows.start), n)

    def best(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of each query's list, of length k or shorter if there are fewer."""
        length = min(k, self._n_ranked)
        if self._best is None or self._best[0].shape[1] < length:
            exclude_self = self.judged.exclude_self
            scores, items = search(self._gallery, self._queries, length, exclude_self)
            self._best = scores, Lists(self.judged, items)
        scores, lists = self._best
        return scores[:, :length], lists.items[:, :length]

    def occurrences(self, k: int) -> np.ndarray:
        """Number of queries that have each gallery row among their first k items, (n_gallery,)."""
        _, items = self.best(k)
        if self.judged.are_empty is not None:
            items = items[~self.judged.are_empty]
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
            relevant = self.judged.relevance.of_items(rows, items)[0]
            if self.judged.are_empty is not None:
                asked = ~self.judged.are_empty[rows]
                scores, relevant = scores[asked], relevant[asked]
            if len(scores):
                yield scores, relevant


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
