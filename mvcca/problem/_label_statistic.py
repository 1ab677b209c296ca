"""What MVMLCCA and LGCFL add up of labelled rows: label sums, and moments of each view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from mvcca.statistics import LabelFeatureSums, LabelSums, Moments

Sums = TypeVar("Sums", LabelSums, LabelFeatureSums)


@dataclass(frozen=True, eq=False)
class LabelStatistic(Generic[Sums]):
    """Label sums of all views and the moments of each, where the method needs them."""

    sums: Sums
    moments: Mapping[str, Moments]

    def __add__(self, other: LabelStatistic[Sums]) -> LabelStatistic[Sums]:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        return LabelStatistic(self.sums + other.sums, moments)

    def to_host(self) -> LabelStatistic[Sums]:
        """The same in host memory: a cluster may be gone when the next batch is added."""
        return LabelStatistic(self.sums.to_host(), self.moments)
