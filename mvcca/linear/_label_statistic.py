"""What MVMLCCA and LGCFL add up of labelled rows. How it is weighted, and solved, is theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mvcca.labels import LabelTable
from mvcca.linear._label_weighted import DrawnLabelFeatures, LabelledViews
from mvcca.linear._rows import own_weights
from mvcca.statistics import LabelFeatureSums, LabelSums, Moments
from mvcca.views import Views

Sums = TypeVar("Sums", LabelSums, LabelFeatureSums)


@dataclass(frozen=True, eq=False)
class LabelStatistic(Generic[Sums]):
    """Label sums of all views and, for the ordinary constraint, the moments of each."""

    sums: Sums
    moments: Mapping[str, Moments]

    @classmethod
    def of(
        cls,
        views: Views,
        table: LabelTable,
        codes: Mapping[str, np.ndarray],
        weights: np.ndarray | None,
        with_moments: bool,
    ) -> LabelStatistic[LabelSums]:
        moments = _own_moments(views, weights) if with_moments else {}
        return LabelStatistic(LabelSums.of(views, table, codes, weights), moments)

    @classmethod
    def by_features(
        cls, drawn: DrawnLabelFeatures, rows: LabelledViews, with_moments: bool
    ) -> LabelStatistic[LabelFeatureSums]:
        moments = _own_moments(rows.views, rows.weights) if with_moments else {}
        return LabelStatistic(drawn.sums(rows), moments)

    def __add__(self, other: LabelStatistic[Sums]) -> LabelStatistic[Sums]:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        return LabelStatistic(self.sums + other.sums, moments)

    def at_home(self) -> LabelStatistic[Sums]:
        """The same to be kept: a cluster may be gone when the next batch comes."""
        return LabelStatistic(self.sums.at_home(), self.moments)


def _own_moments(views: Views, weights: np.ndarray | None) -> dict[str, Moments]:
    """Moments of every view by itself, over all the objects seen in it."""
    return {
        name: Moments.of(Views({name: block}), own_weights(views, name, weights))
        for name, block in views.items()
    }
