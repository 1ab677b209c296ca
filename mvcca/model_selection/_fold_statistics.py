"""Statistics of the parts of a training set, from which models of any union of parts are solved.

Statistics add, so that one pass over the rows gives the model of every training part of a
cross-validation: rows are read once, however many folds and settings there are.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mvcca.model_selection._goals import Sample
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
    codes : ndarray of int, shape (n_objects,)
        Fold of each object.
    statistics : sequence
        Statistic of each fold; empty if the method learns from rows themselves.
    samples : sequence of Sample
        Rows of each fold, no more than it takes to choose settings.
    """

    estimator: Any
    rows: Rows
    codes: np.ndarray
    statistics: Sequence[Any]
    samples: Sequence[Sample]

    @classmethod
    def of(
        cls,
        estimator: Any,
        rows: Rows,
        codes: np.ndarray,
        labels: LabelsByView | None = None,
        ranked: tuple[str, ...] | None = None,
    ) -> FoldStatistics:
        """Sum up every fold; `labels` define relevant items among the rows of `ranked` views."""
        labels = rows.labels if labels is None else labels
        parts = [np.flatnonzero(codes == fold) for fold in range(codes.max() + 1)]
        statistics = []
        if not (estimator.learns_from_rows or estimator.draws_from_rows):
            statistics = [estimator.statistic_of(rows.take(part)) for part in parts]
        samples = [Sample.of(rows.views, labels, part, ranked) for part in parts]
        return cls(estimator, rows, codes, statistics, samples)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.samples)

    def without(self, left_out: Collection[int]) -> tuple[Rows, Any]:
        """Statistic of the rows of all other folds, and the rows that its problem asks for."""
        if self.statistics:
            rest = (own for fold, own in enumerate(self.statistics) if fold not in left_out)
            return self.rows, reduce(operator.add, rest)
        rows = self.rows
        if left_out:
            rows = rows.take(np.flatnonzero(~np.isin(self.codes, list(left_out))))
        self.estimator.draw(rows)
        return rows, self.estimator.statistic_of(rows)

    def path(self, left_out: Collection[int]) -> RidgePath:
        """The problem of all other folds, to be solved for any ridge."""
        return RidgePath.of(self.estimator.posed(*self.without(left_out)))
