"""One direction of an evaluation: queries of some views, and the view whose rows they rank."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mvcca.retrieval.collection import Collection
from mvcca.retrieval.gallery import Gallery
from mvcca.retrieval.measure_names import Measure
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.relevance import Relevance, RelevanceBy, SameObject, SharedLabel
from mvcca.retrieval.similarity import Similarity
from mvcca.retrieval.table import Direction


class RankedDirection:
    """Ranked lists of one direction, for either kind of relevance."""

    def __init__(
        self,
        collection: Collection,
        query: tuple[str, ...],
        target: str,
        similarity: Similarity,
        exclude_self: bool,
    ) -> None:
        self._collection, self._target = collection, target
        self._is_within = query == (target,)
        self._exclude_self = exclude_self and self._is_within
        self.query = "+".join(query)
        self.title = f"{self.query} -> {target}"
        self._rows, self._objects, self._codes = collection.joint(query)
        self._gallery = Gallery.of(collection.rows[target], similarity)
        self._lists: dict[RelevanceBy, RankedLists] = {}

    @cached_property
    def _is_paired(self) -> np.ndarray:
        """Which queries show an object of the gallery."""
        return np.isin(self._objects, self._collection.objects[self._target])

    def _has(self, by: RelevanceBy) -> bool:
        """Whether there are pairs, or labels; a view is not paired with itself."""
        if by == "labels":
            return self._codes is not None
        return not self._is_within and bool(self._is_paired.any())

    def relevance_for(self, measure: Measure) -> RelevanceBy:
        """Relevance that a measure uses by default."""
        for by in measure.preferred_relevance:
            if self._has(by):
                return by
        raise ValueError(
            f"{self.title}: the views share no objects and there are no labels, so nothing is "
            "relevant. Pass labels."
        )

    def lists(self, by: RelevanceBy) -> RankedLists:
        """Ranked lists with this relevance."""
        if by not in ("pairs", "labels"):
            raise ValueError(f"Expected relevance to be 'pairs', 'labels' or None, got {by!r}.")
        if not self._has(by):
            missing = "labels" if by == "labels" else "objects seen in both views"
            raise ValueError(f"{self.title}: relevance by {by} needs {missing}; there are none.")
        if by not in self._lists:
            rows, collection = self._rows, self._collection
            relevance: Relevance
            if by == "pairs":
                rows = rows[self._is_paired]
                objects = self._objects[self._is_paired]
                relevance = SameObject(objects, collection.objects[self._target])
            else:
                assert collection.label_sets is not None
                assert self._codes is not None
                gallery_codes = collection.codes[self._target]
                relevance = SharedLabel(collection.label_sets, self._codes, gallery_codes)
            self._lists[by] = RankedLists(rows, self._gallery, relevance, self._exclude_self)
        return self._lists[by]

    def as_row(self, values: dict[str, float]) -> Direction:
        """Row of the table."""
        n_paired = 0 if self._is_within else int(self._is_paired.sum())
        n_queries, n_gallery = len(self._rows), len(self._gallery)
        return Direction(self.query, self._target, n_queries, n_paired, n_gallery, values)
