"""One direction of an evaluation: queries, items, and the relevance of items to queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mvcca import measures
from mvcca.retrieval.collection import Collection, JointRows
from mvcca.retrieval.measure import JudgedBy, Measure
from mvcca.retrieval.relevance import GivenGains, Relevance, RelevanceBy, SameObject, SharedLabel
from mvcca.retrieval.similar_labels import SimilarLabels
from mvcca.retrieval.table import Direction
from mvcca.views import Labels

_BY_CHOICE = ("pairs", "labels", "gains")


@dataclass(frozen=True, eq=False)
class Judged:
    """Queries and the relevance of the gallery's rows to them."""

    rows: np.ndarray  # (n_queries, n_components), to query with
    objects: np.ndarray  # (n_queries,), the object of each query; for class means, its number
    places: np.ndarray  # (n_queries,), the row of each query in its view
    relevance: Relevance
    are_empty: np.ndarray | None = None  # (n_queries,), queries that find nothing


@dataclass(frozen=True, eq=False)
class Task:
    """Queries and items of one direction, each of one view, or of several that are added."""

    query: tuple[str, ...]
    target: tuple[str, ...]
    queries: JointRows
    items: JointRows
    gains: Any  # as in `GivenGains`, or None

    @classmethod
    def of(cls, collection: Collection, query: tuple[str, ...], target: tuple[str, ...]) -> Task:
        """The direction between views of a collection."""
        queries, items = collection.joint(query), collection.joint(target)
        return cls(query, target, queries, items, collection.gains)

    @property
    def title(self) -> str:
        """The direction in words."""
        return f"{'+'.join(self.query)} -> {'+'.join(self.target)}"

    @property
    def is_within(self) -> bool:
        """Whether queries and items are rows of the same views."""
        return set(self.query) == set(self.target)

    @cached_property
    def is_paired(self) -> np.ndarray:
        """Which queries show an object of the gallery."""
        return np.isin(self.queries.objects, self.items.objects)

    def leaves_out_self(self, by: JudgedBy) -> bool:
        """Whether queries are gallery items, which ranked lists can leave out."""
        return self.is_within and by != "classes"

    def choose(self, measure: Measure, relevance: RelevanceBy | None) -> JudgedBy:
        """The kind of relevance that a measure uses, `relevance` if it is given and applies."""
        if relevance not in (None, *_BY_CHOICE):
            raise ValueError(
                f"Expected relevance to be one of {list(_BY_CHOICE)} or None, got {relevance!r}."
            )
        possible = measure.judged_by
        if relevance is not None and possible[0] in _BY_CHOICE:
            possible = (relevance,)
        for by in possible:
            if self._missing(by) is None:
                return by
        if len(possible) > 1:
            raise ValueError(
                f"{self.title}: the views share no objects and there are no labels, so nothing is "
                "relevant. Pass labels."
            )
        asked = measure.name if relevance is None else f"relevance by {relevance}"
        raise ValueError(f"{self.title}: {asked} needs {self._missing(possible[0])}.")

    def judged(self, by: JudgedBy, rows: np.ndarray) -> Judged:
        """Relevance of one kind; `rows` are those of all queries, to query with."""
        objects, empty, every = self.queries.objects, self.queries.are_empty, np.arange(len(rows))
        if by == "pairs":
            paired = np.flatnonzero(self.is_paired)
            same = SameObject(objects[paired], self.items.objects)
            own = None if empty is None else empty[paired]
            return Judged(rows[paired], objects[paired], paired, same, own)
        if by == "gains":
            given = GivenGains(self.gains, objects, self.items.objects)
            return Judged(rows, objects, every, given, empty)
        labels, of_items = self.queries.labels, self.items.labels
        assert labels is not None
        assert of_items is not None
        if by == "words":
            return Judged(rows, objects, every, SimilarLabels(labels, of_items), empty)
        if by == "labels":
            return Judged(rows, objects, every, self._shared_label(labels, of_items), empty)
        known = np.ones(len(rows), dtype=bool) if empty is None else ~empty
        means, classes = measures.class_means(rows[known], self._classes(labels)[known])
        named = replace(labels, codes=classes, ids=None)
        numbers = np.arange(len(classes))
        return Judged(means, numbers, numbers, self._shared_label(named, of_items))

    def as_row(self, values: dict[str, float], **kept: Any) -> Direction:
        """Row of a table."""
        return Direction(
            "+".join(self.query),
            "+".join(self.target),
            len(self.queries),
            0 if self.is_within else int(self.is_paired.sum()),
            len(self.items),
            values,
            **kept,
        )

    def _missing(self, by: JudgedBy) -> str | None:
        """What relevance of this kind needs and does not have, or None."""
        if by == "gains":
            return None if self.gains is not None else "gains; there are none"
        if by == "pairs":  # a view is not paired with itself
            has_pairs = not self.is_within and self.is_paired.any()
            return None if has_pairs else "objects seen in both views; there are none"
        if self.queries.labels is None:
            return "labels; there are none"
        if by == "words" and self.queries.labels.words is None:
            return "label_vectors, a word vector for every label"
        return None

    def _shared_label(self, queries: Labels, items: Labels) -> SharedLabel:
        if _have_other_columns(queries, items):
            raise ValueError(
                f"{self.title}: the two views have other label vectors, so that column i of one "
                "view's labels is another label than column i of the other's, and shared labels "
                "are not defined. Measure wmap@50, or pass labels with names."
            )
        return SharedLabel(*Labels.in_common([queries, items]))

    def _classes(self, labels: Labels) -> np.ndarray:
        sizes = labels.set_sizes
        if (sizes != 1).any():
            raise ValueError(
                f"{self.title}: class means need exactly one class per query, got rows with "
                f"{sizes.min()} to {sizes.max()} labels."
            )
        return labels.codes


def _have_other_columns(a: Labels, b: Labels) -> bool:
    """Whether word vectors tell that columns without names are other labels on the other side."""
    return (
        a.vectors is not b.vectors
        and a.words is not None
        and b.words is not None
        and a.vocabulary is None
        and b.vocabulary is None
        and not np.array_equal(a.words, b.words)
    )
