"""Choose the ridge of CCA of wide views, whose models are found by products with the rows.

Matrices over features or rows, of which `_fold_statistics` makes all models, would take more.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.model_selection._fold_statistics import InnerFolds
from mvcca.model_selection._goals import FoldScores, Goal, RankedSample, Scores, bank_of_others
from mvcca.problem import Maps, ProductPath, Rows
from mvcca.views import Views


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Rows of each fold, to be solved for every ridge anew.

    Attributes
    ----------
    estimator : StatisticEstimator
        CCA or MVCCA.
    rows : Rows
        All training rows.
    folds : InnerFolds
        Folds of the objects.
    samples : sequence of RankedSample
        Rows of each fold, no more than it takes to choose settings.
    """

    estimator: Any
    rows: Rows
    folds: InnerFolds
    samples: list[RankedSample]

    @classmethod
    def of(cls, estimator: Any, rows: Rows, folds: InnerFolds) -> FoldRows:
        """Draw the rows to score."""
        return cls(estimator, rows, folds, folds.samples(rows.views, rows.labels))

    def path(self, left_out: Collection[int]) -> ProductPath:
        """The problem of all other folds."""
        return ProductPath(self.rows.take(self.folds.without(left_out)), refuses=True)

    def held_out(
        self, path: Any, left_out: Collection[int], scored: Collection[int], goal: Goal
    ) -> HeldOutRows:
        """Rows to score models of a path on."""
        return HeldOutRows(self.samples, left_out, scored, goal == "object")


@dataclass(frozen=True)
class HeldOutRows:
    """Rows of samples, projected anew by every model."""

    samples: list[RankedSample]
    left_out: Collection[int]
    scored: Collection[int]
    corrects: bool  # for hubs, with a bank of rows

    def projected(self, maps: Maps, power: float) -> dict[int, FoldScores]:
        """Scores of each fold, and of the bank, under a model."""

        def scores(views: Views) -> Scores:
            return {
                name: np.asarray(block.project(maps.means[name], maps.weights[name]))
                for name, block in views.blocks.items()
            }

        bank = bank_of_others(self.samples, self.left_out, scores) if self.corrects else {}
        return {
            fold: FoldScores.of(scores(self.samples[fold].views), bank, maps, power)
            for fold in self.scored
        }
