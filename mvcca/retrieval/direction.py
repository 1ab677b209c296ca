"""One direction of an evaluation: queries of some views, and the views whose rows they rank."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mvcca.measures import NoRelevant
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.hubs import BankOfViews, corrected
from mvcca.retrieval.judgements import Judged, Judgements
from mvcca.retrieval.measure_names import JudgedBy, Measure
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.ranking import Ranking
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.runs import Run
from mvcca.retrieval.search import Gallery
from mvcca.retrieval.table import Direction


class RankedDirection:
    """Ranked lists of one direction, for each kind of relevance.

    Queries and items are rows of one view, or of several views that are added.
    """

    def __init__(
        self,
        collection: Collection,
        query: tuple[str, ...],
        target: tuple[str, ...],
        ranking: Ranking,
        exclude_self: bool,
        bank: BankOfViews | None = None,
    ) -> None:
        self.query, self.target = "+".join(query), "+".join(target)
        self.title = f"{self.query} -> {self.target}"
        queries, items = collection.joint(query), collection.joint(target)
        is_within = set(query) == set(target)
        self._exclude_self = exclude_self and is_within
        self._judgements = Judgements(self.title, queries, items, is_within, collection.gains)
        self._rows = queries.as_queries(ranking, target)
        self._gallery = Gallery.of(ranking.items(items.rows), ranking.similarity)
        if bank is not None:
            self._gallery = corrected(self._gallery, bank.between(query, target, ranking))
        self._lists: dict[JudgedBy, tuple[Judged, RankedLists]] = {}
        self._measured: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # values, objects of queries
        self._values: dict[str, float] = {}

    @property
    def n_empty(self) -> int:
        """Number of queries that are empty, and find nothing."""
        empty = self._judgements.queries.are_empty
        return 0 if empty is None else int(empty.sum())

    def judged_by(self, measure: Measure, relevance: RelevanceBy | None) -> JudgedBy:
        """The kind of relevance that a measure uses; `relevance` is the user's choice."""
        return self._judgements.choose(measure, relevance)

    def lists(self, by: JudgedBy) -> RankedLists:
        """Ranked lists with this relevance."""
        return self._judged_lists(by)[1]

    def _judged_lists(self, by: JudgedBy) -> tuple[Judged, RankedLists]:
        if by not in self._lists:
            judged = self._judgements.of(by, self._rows)
            exclude_self = self._exclude_self and by != "classes"
            lists = RankedLists(
                judged.rows, self._gallery, judged.relevance, exclude_self, judged.are_empty
            )
            self._lists[by] = judged, lists
        return self._lists[by]

    def measure(self, measure: Measure, by: JudgedBy, no_relevant: NoRelevant) -> None:
        """Measure every query; `as_row` reports the values."""
        judged, lists = self._judged_lists(by)
        if measure.is_of_gallery:
            self._values[measure.name] = measure.of_gallery(lists)
            return
        values = measure.per_query(lists, "nan" if no_relevant == "skip" else no_relevant)
        objects = judged.objects
        if no_relevant == "skip":
            objects, values = objects[~np.isnan(values)], values[~np.isnan(values)]
        self._measured[measure.name] = values, objects
        self._values[measure.name] = measure.reduce(values)

    def as_row(self, measures: Sequence[Measure], keep_run: int | None) -> Direction:
        """Row of the table, with the first `keep_run` items of each list."""
        queries, items = self._judgements.queries, self._judgements.items
        n_paired = 0 if self._judgements.is_within else int(self._judgements.is_paired.sum())
        names = [measure.name for measure in measures]
        of_queries = {name: self._measured[name] for name in names if name in self._measured}
        return Direction(
            self.query,
            self.target,
            len(queries),
            n_paired,
            len(items),
            values={name: self._values[name] for name in names},
            per_query={name: values for name, (values, _) in of_queries.items()},
            query_objects={name: objects for name, (_, objects) in of_queries.items()},
            runs={} if keep_run is None else {by: self._run(by, keep_run) for by in self._lists},
        )

    def _run(self, by: JudgedBy, k: int) -> Run:
        judged, lists = self._judged_lists(by)
        exclude_self = self._exclude_self and by != "classes"
        best = lists.best(k)
        return Run(judged.places, *best, judged.relevance, exclude_self, judged.are_empty)
