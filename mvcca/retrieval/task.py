"""One direction of an evaluation: queries, items, their relevance, and the ranked lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from mvcca import measures
from mvcca.measures.lists import NoRelevant
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.measure import JudgedBy, Measure
from mvcca.retrieval.ranked_lists import Judged, RankedLists
from mvcca.retrieval.ranking import Ranking, Weighting
from mvcca.retrieval.relevance import GivenGains, RelevanceBy, SameObject, SharedLabel
from mvcca.retrieval.runs import Run
from mvcca.retrieval.similar_labels import SimilarLabels
from mvcca.retrieval.similarity import Similarity
from mvcca.retrieval.table import Direction
from mvcca.views import Labels

_BY_CHOICE = ("pairs", "labels", "gains")


class Task:
    """Queries and items of one direction, each of one view, or of several that are added."""

    def __init__(
        self,
        collection: Collection,
        query: tuple[str, ...],
        target: tuple[str, ...],
        exclude_self: bool = True,
    ) -> None:
        self.query, self.target = query, target
        self.title = f"{'+'.join(query)} -> {'+'.join(target)}"
        self.queries, self.items = collection.joint(query), collection.joint(target)
        self.is_within = set(query) == set(target)  # rows of the same views
        # Which queries show an object of the gallery.
        self.is_paired = np.isin(self.queries.objects, self.items.objects)
        self._gains, self._exclude_self = collection.gains, exclude_self

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
        """Queries and relevance of one kind; `rows` are those of all queries, to query with."""
        queries, items = self.queries, self.items
        objects, empty, every = queries.objects, queries.are_empty, np.arange(len(rows))
        excluded = self._exclude_self and self.is_within
        relevance: Any
        if by == "pairs":
            every = np.flatnonzero(self.is_paired)
            rows, objects = rows[every], objects[every]
            empty = None if empty is None else empty[every]
            relevance = SameObject(objects, items.objects)
        elif by == "gains":
            relevance = GivenGains(self._gains, objects, items.objects)
        elif by == "words":
            assert queries.labels is not None
            assert items.labels is not None
            relevance = SimilarLabels(queries.labels, items.labels)
        elif by == "labels":
            relevance = self._shared_label(queries.labels, items.labels)
        else:
            return self._class_means(rows)
        return Judged(rows, objects, every, relevance, excluded, empty)

    def in_random_order(self, by: JudgedBy) -> Judged:
        """Queries with relevance of one kind, and no rows to rank by."""
        return self.judged(by, np.zeros((len(self.queries.objects), 1)))

    def ranked(self, ranking: Ranking) -> Callable[[JudgedBy], RankedLists]:
        """A function from a kind of relevance to the ranked lists, which it makes once."""
        queries = self.queries
        rows, places = queries.not_empty() if queries.empty else (queries.rows, None)
        asked = ranking.queries(rows, self.target, places, len(queries.objects))
        gallery = ranking.gallery(self.items.rows, self.query, self.target)
        return cache(lambda by: RankedLists(self.judged(by, asked), gallery))

    def as_row(
        self,
        by: Mapping[Measure, JudgedBy],
        ranking: Ranking,
        no_relevant: NoRelevant,
        keep_run: int | None,
    ) -> Direction:
        """Row of the table, with the first `keep_run` items of each list."""
        values, per_query, objects, lists_of = {}, {}, {}, self.ranked(ranking)
        for measure in sorted(by, key=lambda own: -(own.k or 0)):  # shorter lists are cut
            lists = lists_of(by[measure])
            if measure.is_of_gallery:
                values[measure.name] = measure.of_gallery(lists)
                continue
            own = measure.per_query(lists, "nan" if no_relevant == "skip" else no_relevant)
            kept = ~np.isnan(own) if no_relevant == "skip" else slice(None)
            per_query[measure.name], objects[measure.name] = own[kept], lists.judged.objects[kept]
            values[measure.name] = measure.reduce(own[kept])
        names, runs = [measure.name for measure in by], {}
        if keep_run is not None:
            runs = {own: _run(lists_of(own), keep_run) for own in dict.fromkeys(by.values())}
        return self.direction(
            {name: values[name] for name in names},
            per_query={name: per_query[name] for name in names if name in per_query},
            query_objects={name: objects[name] for name in names if name in objects},
            runs=runs,
        )

    def _class_means(self, rows: np.ndarray) -> Judged:
        """The mean row of each class as a query."""
        labels, empty = self.queries.labels, self.queries.are_empty
        assert labels is not None
        known = np.ones(len(rows), dtype=bool) if empty is None else ~empty
        means, classes = measures.class_means(rows[known], self._classes(labels)[known])
        numbers = np.arange(len(classes))
        named = replace(labels, codes=classes, ids=None)
        return Judged(means, numbers, numbers, self._shared_label(named, self.items.labels))

    def direction(self, values: dict[str, float], **kept: Any) -> Direction:
        """Row of a table."""
        n_paired = 0 if self.is_within else int(self.is_paired.sum())
        n_queries, n_items = len(self.queries.objects), len(self.items.objects)
        names = "+".join(self.query), "+".join(self.target)
        return Direction(*names, n_queries, n_paired, n_items, values, **kept)

    def _missing(self, by: JudgedBy) -> str | None:
        """What relevance of this kind needs and does not have, or None."""
        if by == "gains":
            return None if self._gains is not None else "gains; there are none"
        if by == "pairs":  # a view is not paired with itself
            has_pairs = not self.is_within and self.is_paired.any()
            return None if has_pairs else "objects seen in both views; there are none"
        if self.queries.labels is None:
            return "labels; there are none"
        if by == "words" and self.queries.labels.words is None:
            return "label_vectors, a word vector for every label"
        return None

    def _shared_label(self, queries: Labels | None, items: Labels | None) -> SharedLabel:
        assert queries is not None
        assert items is not None
        without_names = queries.vocabulary is None and items.vocabulary is None
        if (
            queries.vectors is not items.vectors
            and without_names  # word vectors tell whether columns are the same labels
            and queries.words is not None
            and items.words is not None
            and not np.array_equal(queries.words, items.words)
        ):
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


def asked_ranking(
    scores: Any,
    estimator: Any = None,
    similarity: Similarity | None = None,
    weighting: Weighting | None = "auto",
    hubness: str | CSLS | None = None,
    bank: Any = None,
) -> Ranking:
    """The ranking that a user asks for scores, or for rows that an estimator projects."""
    if bank is not None and bank is scores and hubness is not None:
        raise ValueError("The bank is the rows to evaluate; pass training rows instead.")
    return Ranking.of(estimator, similarity, weighting, hubness, bank)


def _run(lists: RankedLists, k: int) -> Run:
    """The first k items of every list, and what is relevant."""
    judged, (scores, items) = lists.judged, lists.best(k)
    return Run(
        judged.places, scores, items, judged.relevance, judged.exclude_self, judged.are_empty
    )
