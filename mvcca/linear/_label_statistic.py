"""What MVMLCCA and LGCFL add up of labelled rows. How it is weighted, and solved, is theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike

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
        dtype: DTypeLike = np.float64,
    ) -> LabelStatistic[LabelSums]:
        """Label sums, and moments with products in `dtype`."""
        moments = _own_moments(views, weights, dtype) if with_moments else {}
        return LabelStatistic(LabelSums.of(views, table, codes, weights), moments)

    @classmethod
    def by_features(
        cls,
        drawn: DrawnLabelFeatures,
        rows: LabelledViews,
        with_moments: bool,
        dtype: DTypeLike = np.float64,
    ) -> LabelStatistic[LabelFeatureSums]:
        """Sums by label features, and moments, with products in `dtype`."""
        moments = _own_moments(rows.views, rows.weights, dtype) if with_moments else {}
        return LabelStatistic(drawn.sums(rows, dtype), moments)

    def __add__(self, other: LabelStatistic[Sums]) -> LabelStatistic[Sums]:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        return LabelStatistic(self.sums + other.sums, moments)

    def to_host(self) -> LabelStatistic[Sums]:
        """The same to be kept: a cluster may be gone when the next batch comes."""
        return LabelStatistic(self.sums.to_host(), self.moments)


def _own_moments(views: Views, weights: np.ndarray | None, dtype: DTypeLike) -> dict[str, Moments]:
    """Moments of every view by itself, over all the objects seen in it."""
    return {
        name: Moments.of(Views({name: block}), own_weights(views, name, weights), dtype)
        for name, block in views.items()
    }
