"""Ranked lists of one direction of an evaluation, for each kind of relevance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.measures import NoRelevant
from mvcca.retrieval.hubs import BankOfViews, HubCorrection, corrected
from mvcca.retrieval.measure import JudgedBy, Measure
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.ranking import Ranking, Weighting
from mvcca.retrieval.runs import Run
from mvcca.retrieval.search import Gallery
from mvcca.retrieval.similarity import Similarity, similarity_of
from mvcca.retrieval.table import Direction
from mvcca.retrieval.task import Judged, Task


@dataclass(frozen=True, eq=False)
class Asked:
    """The ranking that a user asks for, and the bank of its correction for hubs."""

    ranking: Ranking
    bank: BankOfViews | None = None

    @classmethod
    def of(
        cls,
        scores: Any,
        estimator: Any = None,
        similarity: Similarity | None = None,
        weighting: Weighting | None = "auto",
        hubness: str | HubCorrection | None = None,
        bank: Any = None,
    ) -> Asked:
        """The ranking of an estimator, or of scores; the estimator may be a `Ranking`."""
        if bank is not None and bank is scores and hubness is not None:
            raise ValueError("The bank is the rows to evaluate; pass training rows instead.")
        if isinstance(estimator, Ranking):
            ranking = estimator
        elif estimator is not None:
            ranking = Ranking.of(estimator, similarity, weighting)
        else:
            ranking = Ranking(similarity=similarity_of(similarity or "cosine"))
            if weighting not in ("auto", None):
                raise ValueError(
                    f"weighting={weighting!r} needs the correlations of an estimator: pass "
                    "estimator= and the views to project."
                )
        if hubness is None and bank is None:
            return cls(ranking)
        return cls(ranking, BankOfViews.of(hubness, bank, ranking))

    def __str__(self) -> str:
        if self.bank is None:
            return str(self.ranking)
        return f"{self.ranking}, {self.bank.correction}"


class RankedTask:
    """Ranked lists of a task."""

    def __init__(self, task: Task, asked: Asked, exclude_self: bool) -> None:
        ranking, self._task = asked.ranking, task
        self._exclude_self = exclude_self
        self._rows = task.queries.as_queries(ranking, task.target)
        self._gallery = Gallery.of(ranking.items(task.items.rows), ranking.similarity)
        if asked.bank is not None:
            bank = asked.bank.between(task.query, task.target, ranking)
            self._gallery = corrected(self._gallery, bank)
        self._lists: dict[JudgedBy, tuple[Judged, RankedLists]] = {}

    def lists(self, by: JudgedBy) -> RankedLists:
        """Ranked lists with this relevance."""
        return self._judged_lists(by)[1]

    def _judged_lists(self, by: JudgedBy) -> tuple[Judged, RankedLists]:
        if by not in self._lists:
            judged = self._task.judged(by, self._rows)
            exclude_self = self._exclude_self and self._task.leaves_out_self(by)
            lists = RankedLists(
                judged.rows, self._gallery, judged.relevance, exclude_self, judged.are_empty
            )
            self._lists[by] = judged, lists
        return self._lists[by]

    def as_row(
        self, by: Mapping[Measure, JudgedBy], no_relevant: NoRelevant, keep_run: int | None
    ) -> Direction:
        """Row of the table, with the first `keep_run` items of each list."""
        values, per_query, objects = {}, {}, {}
        for measure in sorted(by, key=lambda own: -(own.k or 0)):  # shorter lists are cut
            judged, lists = self._judged_lists(by[measure])
            if measure.is_of_gallery:
                values[measure.name] = measure.of_gallery(lists)
                continue
            own = measure.per_query(lists, "nan" if no_relevant == "skip" else no_relevant)
            kept = ~np.isnan(own) if no_relevant == "skip" else slice(None)
            per_query[measure.name], objects[measure.name] = own[kept], judged.objects[kept]
            values[measure.name] = measure.reduce(own[kept])
        names = [measure.name for measure in by]
        return self._task.as_row(
            {name: values[name] for name in names},
            per_query={name: per_query[name] for name in names if name in per_query},
            query_objects={name: objects[name] for name in names if name in objects},
            runs={}
            if keep_run is None
            else {kind: self._run(kind, keep_run) for kind in self._lists},
        )

    def _run(self, by: JudgedBy, k: int) -> Run:
        judged, lists = self._judged_lists(by)
        exclude_self = self._exclude_self and self._task.leaves_out_self(by)
        best = lists.best(k)
        return Run(judged.places, *best, judged.relevance, exclude_self, judged.are_empty)
