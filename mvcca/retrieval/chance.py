"""Chance: measures that are expected if every query ranks its gallery in a random order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mvcca.measures import chance
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.evaluate import Directions, _directions, _notes
from mvcca.retrieval.judgements import Judged, Judgements
from mvcca.retrieval.measure_names import GAINS, JudgedBy, Measure
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.table import Direction, RetrievalTable
from mvcca.views import Views

_CELLS = 2**22  # of a block of queries by the gallery


def expected_at_random(
    views: Views,
    labels: Any = None,
    *,
    measures: Sequence[str],
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    label_vectors: Any = None,
) -> RetrievalTable:
    """Compute the exact expectation of measures under random rankings.

    Parameters
    ----------
    views : Views
        Their values are not used, only which objects are seen in which views.
    labels, measures, relevance, directions, label_vectors
        As in `mvcca.retrieval.evaluate_retrieval`. A query without relevant items counts 0. If the
        query view is also the target, each query is excluded from its own list.

    Returns
    -------
    RetrievalTable
        One row per direction. Formulas are in `mvcca.measures.chance`; ``hubness@K`` is the
        skewness of the distribution of counts.
    """
    wanted = [Measure.parse(name) for name in measures]
    nothing = {name: np.zeros((block.shape[0], 1)) for name, block in views.items()}
    collection = Collection.of(views.replace(nothing), labels, label_vectors)
    rows, used = [], {}
    for query, target in _directions(collection, directions):
        direction = _RandomDirection(collection, query, target)
        by = {measure: direction.judgements.choose(measure, relevance) for measure in wanted}
        rows.append(direction.as_row({m.name: direction.expected(m, by[m]) for m in wanted}))
        used[direction.judgements.title] = by
    return RetrievalTable(tuple(rows), tuple(_notes(used, "random order")))


class _RandomDirection:
    """Queries and items of one direction, whose lists are in random order."""

    def __init__(
        self, collection: Collection, query: tuple[str, ...], target: tuple[str, ...]
    ) -> None:
        self._query, self._target = "+".join(query), "+".join(target)
        self._queries, self._items = collection.joint(query), collection.joint(target)
        self._is_within = set(query) == set(target)
        title = f"{self._query} -> {self._target}"
        self.judgements = Judgements(title, self._queries, self._items, self._is_within, None)
        self._judged: dict[JudgedBy, Judged] = {}
        self._n_relevant: dict[JudgedBy, np.ndarray] = {}

    def as_row(self, values: dict[str, float]) -> Direction:
        """Row of the table."""
        n_paired = 0 if self._is_within else int(self.judgements.is_paired.sum())
        sizes = len(self._queries), n_paired, len(self._items)
        return Direction(self._query, self._target, *sizes, values)

    def expected(self, measure: Measure, by: JudgedBy) -> float:
        """Expectation of the value of the direction."""
        if measure.kind == "hubness":
            assert measure.k is not None
            n_queries = len(self._of(by).objects) - self._leaves_out_self(by)
            return chance.expected_hubness(self._n_ranked(by), n_queries, measure.k)
        if measure.kind == "mr":
            return chance.expected_median_rank(self._n_ranked(by), self._relevant(by))
        values = self._per_query(measure, by)
        return float(np.mean(values)) if len(values) else float("nan")

    def _per_query(self, measure: Measure, by: JudgedBy) -> np.ndarray:
        """Expected value of each query."""
        if measure.kind in ("ndcg", "wmap"):
            of_block = self._gain if measure.kind == "ndcg" else self._weighted_precision
            parts = [of_block(measure, by, gains) for gains in self._gains(by)]
            return np.concatenate([np.empty(0), *parts])
        n_items, n_relevant, k = self._n_ranked(by), self._relevant(by), measure.k
        if measure.kind == "map":
            return chance.expected_average_precision(n_items, n_relevant, k, measure.variant)
        if measure.kind == "mrr":
            return chance.expected_reciprocal_rank(n_items, n_relevant)
        if measure.kind == "mean_rank":
            return chance.expected_rank(n_items, n_relevant)
        assert k is not None
        if measure.kind == "r":
            return chance.hit_probability(n_items, n_relevant, k)
        hits = chance.expected_hits(n_items, n_relevant, k)
        return hits / (k if measure.kind == "p" else np.maximum(n_relevant, 1))

    def _gain(self, measure: Measure, by: JudgedBy, gains: np.ndarray) -> np.ndarray:
        """Expected normalized gain: each position holds the mean gain of the gallery."""
        gains = GAINS[measure.variant](gains)
        n_items = self._n_ranked(by)
        length = n_items if measure.k is None else min(measure.k, n_items)
        discount = 1 / np.log2(np.arange(2, length + 2))
        ideal = -np.sort(-gains, axis=1)[:, :length] @ discount
        total = gains.sum(axis=1) / n_items * discount.sum()
        return np.divide(total, ideal, out=np.zeros(len(gains)), where=ideal > 0)

    def _weighted_precision(
        self, measure: Measure, by: JudgedBy, similarity: np.ndarray
    ) -> np.ndarray:
        """Expected weighted average precision, from the sums of similarities and their squares."""
        n_items = self._n_ranked(by)
        total, squares = similarity.sum(axis=1), (similarity**2).sum(axis=1)
        if measure.variant == "binary":
            return total / n_items
        length = n_items if measure.k is None else min(measure.k, n_items)
        harmonic = float(np.sum(1 / np.arange(1, length + 1)))
        of_two = (total**2 - squares) / (n_items * max(n_items - 1, 1))
        return (harmonic * squares / n_items + (length - harmonic) * of_two) / length

    def _leaves_out_self(self, by: JudgedBy) -> bool:
        return self._is_within and by != "classes"

    def _n_ranked(self, by: JudgedBy) -> int:
        return len(self._items) - self._leaves_out_self(by)

    def _of(self, by: JudgedBy) -> Judged:
        if by not in self._judged:
            self._judged[by] = self.judgements.of(by, np.zeros((len(self._queries), 1)))
        return self._judged[by]

    def _blocks(self, by: JudgedBy) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries, and the items (n, 1) or (n, 0) left out of their lists."""
        n_queries, step = len(self._of(by).objects), max(1, _CELLS // max(1, len(self._items)))
        for start in range(0, n_queries, step):
            own = np.arange(start, min(start + step, n_queries))[:, None]
            yield slice(start, start + len(own)), own[:, : self._leaves_out_self(by)]

    def _relevant(self, by: JudgedBy) -> np.ndarray:
        """Number of relevant items in each query's list."""
        if by not in self._n_relevant:
            parts = []
            for rows, own in self._blocks(by):
                hits, n_relevant = self._of(by).relevance.of_items(rows, own)
                parts.append(n_relevant - hits.sum(axis=1))
            self._n_relevant[by] = np.concatenate([np.empty(0, dtype=int), *parts])
        return self._n_relevant[by]

    def _gains(self, by: JudgedBy) -> Iterator[np.ndarray]:
        """Gains of the gallery for blocks of queries, 0 for an item that is left out."""
        for rows, own in self._blocks(by):
            gains = np.array(self._of(by).relevance.gains(rows))
            np.put_along_axis(gains, own, 0.0, axis=1)
            yield gains
