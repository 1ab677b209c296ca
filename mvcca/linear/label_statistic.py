"""What methods that learn from labels add up: label sums and moments, or labelled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from mvcca.problem import Rows
from mvcca.problem.shared_rows import SharedRows
from mvcca.statistics import LabelSums, Moments, PairMoments
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

Sums = TypeVar("Sums", LabelSums, LabelFeatureSums)


@dataclass(frozen=True, eq=False)
class LabelStatistic(Generic[Sums]):
    """Label sums of all views, and the moments of each where the method needs them."""

    sums: Sums
    moments: Mapping[str, Moments]
    pairs: SharedRows | Moments | PairMoments | None = None  # of the objects that views share

    def __add__(self, other: LabelStatistic[Sums]) -> LabelStatistic[Sums]:
        moments = {name: own + other.moments[name] for name, own in self.moments.items()}
        own, more = self._moments_of_pairs(), other._moments_of_pairs()
        pairs = own if more is None else more if own is None else own + more
        return LabelStatistic(self.sums + other.sums, moments, pairs)

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view."""
        return self.sums.widths

    def objects_by_view(self) -> dict[str, float]:
        """Number of rows (sum of weights) of each view."""
        return self.sums.objects_by_view()

    def to_host(self) -> LabelStatistic[Sums]:
        """The same in host memory and without rows: a cluster may be gone with the next batch."""
        return LabelStatistic(self.sums.to_host(), self.moments, self._moments_of_pairs())

    def _moments_of_pairs(self) -> Moments | PairMoments | None:
        return self.pairs.moments if isinstance(self.pairs, SharedRows) else self.pairs


def shared_rows(rows: Rows) -> SharedRows | Moments | PairMoments | None:
    """What tells how scores correlate: rows that views share or, if cheaper, their moments."""
    if not (rows.views.seen.sum(axis=1) > 1).any():
        return None
    shared = SharedRows(rows)
    return shared if shared.is_cheaper() else shared.moments


def pairs_of(
    shared: SharedRows | Moments | PairMoments | None,
) -> SharedRows | Sequence[PairCovariance]:
    """The same as `Problem` takes it."""
    if shared is None or isinstance(shared, SharedRows):
        return shared or ()
    return list(shared.by_pair())


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """All rows of the batches so far, with their labels. They add, but are as large as the data."""

    views: Views
    labels: LabelsByView
    sample_weight: np.ndarray | None

    @property
    def widths(self) -> dict[str, int]:
        """Number of features of each view."""
        return self.views.widths

    def objects_by_view(self) -> dict[str, float]:
        """Number of rows (sum of weights) of each view."""
        w = np.ones(len(self.views)) if self.sample_weight is None else self.sample_weight
        return dict(zip(self.views.names, (w @ self.views.seen).tolist(), strict=True))

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
