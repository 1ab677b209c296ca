"""What methods that learn from labels add up: label sums and moments, or labelled rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mvcca.problem import Rows
from mvcca.statistics import LabelFeatureSums, LabelSums, Moments, PairMoments
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

Sums = TypeVar("Sums", LabelSums, LabelFeatureSums)


@dataclass(frozen=True, eq=False)
class LabelStatistic(Generic[Sums]):
    """Label sums of all views, and the moments of each where the method needs them."""

    sums: Sums
    moments: Mapping[str, Moments]
    pairs: Moments | PairMoments | None = None  # of the objects that views share, if they do

    def __add__(self, other: LabelStatistic[Sums]) -> LabelStatistic[Sums]:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        pairs = other.pairs if self.pairs is None else self.pairs
        if self.pairs is not None and other.pairs is not None:
            pairs = self.pairs + other.pairs
        return LabelStatistic(self.sums + other.sums, moments, pairs)

    def to_host(self) -> LabelStatistic[Sums]:
        """The same in host memory: a cluster may be gone when the next batch is added."""
        return LabelStatistic(self.sums.to_host(), self.moments, self.pairs)


def moments_of_pairs(rows: Rows) -> Moments | PairMoments | None:
    """Moments of the objects that views share; None if they share none."""
    return rows.moments() if (rows.views.seen.sum(axis=1) > 1).any() else None


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """All rows of the batches so far, with their labels. They add, but are as large as the data."""

    views: Views
    labels: LabelsByView
    sample_weight: np.ndarray | None

    def __add__(self, other: LabelledRows) -> LabelledRows:
        weights = None
        if self.sample_weight is not None or other.sample_weight is not None:
            weights = np.concatenate(
                [
                    np.ones(len(rows.views)) if rows.sample_weight is None else rows.sample_weight
                    for rows in (self, other)
                ]
            )
        views = Views.concatenate([self.views, other.views])
        return LabelledRows(views, LabelsByView.concatenate(self.labels, other.labels), weights)
