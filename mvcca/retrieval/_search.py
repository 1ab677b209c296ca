"""One direction of an evaluation: its queries, its gallery, and the ranked lists once computed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mvcca import measures
from mvcca.measures import NoRelevant
from mvcca.retrieval._blockwise import average_precision_in, hits_in, ranks_in
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.relevance import Relevance, RelevanceBy, SameObject, SharedLabel
from mvcca.retrieval.similarity import Gallery, Similarity
from mvcca.retrieval.table import Direction


class Search:
    """One direction of a collection: its queries, its gallery and what is relevant."""

    def __init__(
        self,
        collection: Collection,
        query: tuple[str, ...],
        target: str,
        similarity: Similarity,
        exclude_self: bool,
        no_relevant: NoRelevant = "zero",
        longest: int = 1,
    ) -> None:
        self._collection, self._query, self._target = collection, query, target
        self._within = query == (target,)
        self._exclude_self = exclude_self and self._within
        self._no_relevant, self._longest = no_relevant, longest
        self.title = f"{'+'.join(query)} -> {target}"
        self._rows, self._objects, self._codes = collection.joint(query)
        self._gallery = Gallery(collection.rows[target], similarity)
        self._lists: dict[str, Lists] = {}

    @cached_property
    def _paired(self) -> np.ndarray:
        """Which queries show an object of the gallery."""
        return np.isin(self._objects, self._collection.objects[self._target])

    def has(self, by: RelevanceBy) -> bool:
        """Whether the direction has pairs, or labels; a view is not paired with itself."""
        if by == "labels":
            return self._codes is not None
        return not self._within and bool(self._paired.any())

    def lists(self, by: RelevanceBy) -> Lists:
        """The ranked lists, with the relevance of their items."""
        if by not in ("pairs", "labels"):
            raise ValueError(f"Expected relevance to be 'pairs', 'labels' or None, got {by!r}.")
        if not self.has(by):
            missing = "labels" if by == "labels" else "objects seen in both views"
            raise ValueError(f"{self.title}: relevance by {by} needs {missing}; there are none.")
        if by not in self._lists:
            relevance: Relevance
            if by == "pairs":
                rows = self._rows[self._paired]
                objects = self._collection.objects[self._target]
                relevance = SameObject(self._objects[self._paired], objects)
            else:
                rows = self._rows
                codes, label_sets = self._codes, self._collection.label_sets
                assert codes is not None
                assert label_sets is not None
                relevance = SharedLabel(label_sets, codes, self._collection.codes[self._target])
            self._lists[by] = Lists(
                self._gallery,
                self._gallery.queries(rows),
                relevance,
                self._exclude_self,
                self._no_relevant,
                self._longest,
            )
        return self._lists[by]

    def as_row(self, values: dict[str, float]) -> Direction:
        """The direction's line of the table."""
        n_paired = 0 if self._within else int(self._paired.sum())
        name = "+".join(self._query)
        n_queries, n_gallery = len(self._rows), len(self._gallery)
        return Direction(name, self._target, n_queries, n_paired, n_gallery, values)


class Lists:
    """Ranked lists of one direction; what several measures need is computed once."""

    def __init__(
        self,
        gallery: Gallery,
        queries: np.ndarray,
        relevance: Relevance,
        exclude_self: bool,
        no_relevant: NoRelevant,
        longest: int,
    ) -> None:
        self._ranked = gallery, queries, relevance
        self._exclude_self = exclude_self
        self._no_relevant = no_relevant
        self._longest = longest
        self._ranks: dict[str, np.ndarray] = {}

    def ranks(self, ties: Any) -> np.ndarray:
        if ties not in self._ranks:
            self._ranks[ties] = ranks_in(*self._ranked, ties, self._exclude_self)
        return self._ranks[ties]

    @cached_property
    def _hits(self) -> tuple[np.ndarray, np.ndarray]:
        return hits_in(*self._ranked, self._longest, self._exclude_self)

    def hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the first k items, and the number of relevant items in the gallery."""
        hits, n_relevant = self._hits
        return hits[:, :k], n_relevant

    def average_precision(self, k: int | None, normalizer: Any) -> np.ndarray:
        if k is not None:
            return measures.average_precision_of_lists(
                *self.hits(k), k, normalizer, self._no_relevant
            )
        return average_precision_in(
            *self._ranked, normalizer, self._no_relevant, self._exclude_self
        )
