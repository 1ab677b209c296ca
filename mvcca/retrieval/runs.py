"""Ranked lists and relevance as nested mappings: the form that evaluation tools share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.retrieval.search import tile_rows

RunDict = dict[str, dict[str, float]]  # score by item, by query
QrelsDict = dict[str, dict[str, int]]  # grade by item, by query


@dataclass(frozen=True, eq=False)
class Run:
    """The first items of every ranked list of a direction, and what is relevant.

    Queries and items are named by their rows in their views, from "0".
    """

    queries: np.ndarray  # (n_queries,), rows of the query view
    scores: np.ndarray  # (n_queries, k)
    items: np.ndarray  # (n_queries, k), rows of the target view
    relevance: Any  # with `gains`
    exclude_self: bool
    are_empty: np.ndarray | None = None  # (n_queries,), queries that find nothing

    def to_run(self) -> RunDict:
        """Scores of the listed items by query."""
        names = self.queries.astype(str).tolist()
        items = self.items.astype(str).tolist()
        scores = strictly_descending(self.scores).tolist()
        run = {
            name: dict(zip(listed, own, strict=True))
            for name, listed, own in zip(names, items, scores, strict=True)
        }
        if self.are_empty is not None:
            run |= {name: {} for name in self.queries[self.are_empty].astype(str).tolist()}
        return run

    def to_qrels(self) -> QrelsDict:
        """Grades of the relevant items of the whole gallery by query."""
        return {
            name: grades
            for rows in tile_rows(len(self.queries))
            for name, grades in self._grades(rows)
        }

    def _grades(self, rows: slice) -> Iterator[tuple[str, dict[str, int]]]:
        gains = self.relevance.gains(rows)
        grades = gains.astype(np.int64)
        if (grades != gains).any() or (grades < 0).any():
            raise ValueError(
                "Relevance judgements are integers of at least 0; these gains are not. Round or "
                "rescale them."
            )
        own = self.queries[rows]
        if self.exclude_self:
            grades[np.arange(len(own)), own] = 0
        for query, first, of_items in zip(own, self.items[rows, 0], grades, strict=True):
            relevant = np.flatnonzero(of_items)
            # A query without relevant items is judged by an item of grade 0: tools leave out
            # queries that are not judged.
            listed = relevant if len(relevant) else np.array([first])
            yield (
                str(query),
                dict(zip(listed.astype(str).tolist(), of_items[listed].tolist(), strict=True)),
            )


def strictly_descending(scores: np.ndarray) -> np.ndarray:
    """Descending scores in float32, each lowered where it does not differ from the one before.

    Tools sort runs by score, trec_eval in float32 and equal scores by name; so they keep the order.
    """
    values = scores.astype(np.float32)
    lowest = values[:, 0]
    for column in values.T[1:]:
        lowest = np.minimum(column, np.nextafter(lowest, np.float32(-np.inf)))
        column[:] = lowest
    return values
