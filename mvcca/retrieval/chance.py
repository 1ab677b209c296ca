"""Chance: measures that are expected if every query ranks its gallery in a random order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mvcca.retrieval.collection import Collection
from mvcca.retrieval.evaluate import Directions, notes_on, parsed, tasks_of
from mvcca.retrieval.measure import JudgedBy
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.table import RetrievalTable
from mvcca.retrieval.task import Task
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
    """Exact expectation of measures under random rankings, with options of `evaluate_retrieval`."""
    # A query without relevant items counts 0. If the query view is also the target, each query is
    # excluded from its own list. Formulas are in `mvcca.measures.chance`; hubness@K is the skewness
    # of the distribution of counts.
    nothing = {name: np.zeros((block.shape[0], 1)) for name, block in views.items()}
    collection = Collection.of(views.replace(nothing), None, labels, label_vectors)
    wanted, tasks, rows = parsed(measures), tasks_of(collection, directions), []
    used = {task.title: {own: task.choose(own, relevance) for own in wanted} for task in tasks}
    for task in tasks:
        by = used[task.title]
        lists = {kind: RandomLists(task, kind) for kind in set(by.values())}
        expected = {measure.name: measure.expected(lists[kind]) for measure, kind in by.items()}
        rows.append(
            task.direction(
                {
                    name: float(np.mean(values)) if np.size(values) else float("nan")
                    for name, values in expected.items()
                }
            )
        )
    return RetrievalTable(tuple(rows), tuple(notes_on(used, "random order")))


class RandomLists:
    """Lists in random order, of which measures have expectations."""

    def __init__(self, task: Task, by: JudgedBy) -> None:
        self._judged = task.judged(by, np.zeros((len(task.queries.objects), 1)))
        self._leaves_out_self = self._judged.exclude_self
        self._n_gallery = len(task.items.objects)
        self.n_items: int = self._n_gallery - self._leaves_out_self
        # An item is found by all queries but its own.
        self.n_queries: int = len(self._judged.objects) - self._leaves_out_self

    @cached_property
    def n_relevant(self) -> np.ndarray:
        """Number of relevant items in each query's list."""
        parts = []
        for rows, own in self._blocks():
            hits, n_relevant = self._judged.relevance.of_items(rows, own)
            parts.append(n_relevant - hits.sum(axis=1))
        return np.concatenate([np.empty(0, dtype=int), *parts])

    def by_gains(self, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Values of all queries, from the gains of blocks; 0 for an item that is left out."""
        parts = []
        for rows, own in self._blocks():
            gains = np.array(self._judged.relevance.gains(rows))
            np.put_along_axis(gains, own, 0.0, axis=1)
            parts.append(function(gains))
        return np.concatenate([np.empty(0), *parts])

    def _blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries, and the items (n, 1) or (n, 0) left out of their lists."""
        n_queries, step = len(self._judged.objects), max(1, _CELLS // max(1, self._n_gallery))
        for start in range(0, n_queries, step):
            own = np.arange(start, min(start + step, n_queries))[:, None]
            yield slice(start, start + len(own)), own[:, : self._leaves_out_self]
