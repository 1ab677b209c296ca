"""Statistics of the parts of a training set, from which models of any union of parts are solved.

Statistics add, so that one pass over the rows gives the model of every training part of a
cross-validation: rows are read once, however many folds and settings there are.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from mvcca.model_selection._goals import Sample
from mvcca.model_selection._inner_folds import InnerFolds
from mvcca.problem import RidgePath, Rows
from mvcca.views.labels_by_view import LabelsByView


@dataclass(frozen=True, eq=False)
class FoldStatistics:
    """What an estimator needs to know of each fold of its training rows.

    Attributes
    ----------
    estimator : StatisticEstimator
        Whose problem is solved.
    rows : Rows
        All training rows.
    folds : InnerFolds
        Folds of the objects.
    statistics : dict
        Statistics by the folds that are left out together; empty if the method learns from rows
        themselves.
    samples : sequence of Sample
        Rows of each fold, no more than it takes to choose settings.
    """

    estimator: Any
    rows: Rows
    folds: InnerFolds
    statistics: Mapping[tuple[int, ...], Any]
    samples: Sequence[Sample]

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: Rows,
        folds: InnerFolds,
        labels: LabelsByView | None = None,
        ranked: tuple[str, ...] | None = None,
    ) -> FoldStatistics:
        """Sum up every fold; `labels` define relevant items among the rows of `ranked` views."""
        labels = rows.labels if labels is None else labels
        statistics = {}
        if not (estimator.learns_from_rows or estimator.draws_from_rows):
            statistics = {own: estimator.statistic_of(rows.take(p)) for own, p in folds.parts()}
        return cls(estimator, rows, folds, statistics, folds.samples(rows.views, labels, ranked))

    def without(self, left_out: Collection[int]) -> tuple[Rows, Any]:
        """Statistic of the rows of all other folds, and the rows that its problem asks for."""
        if self.statistics:
            others = (own for f, own in self.statistics.items() if not {*f} & {*left_out})
            return self.rows, reduce(operator.add, others)
        rows = self.rows.take(self.folds.without(left_out)) if left_out else self.rows
        self.estimator.draw(rows)
        return rows, self.estimator.statistic_of(rows)

    def path(self, left_out: Collection[int]) -> RidgePath:
        """The problem of all other folds, to be solved for any ridge."""
        return RidgePath.of(self.estimator.posed(*self.without(left_out)))
