"""What the rows that views share tell of the scores of new rows.

Covariances of all features are known to methods that solve for them. For the others it is cheaper
to project the rows once a few maps are found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mvcca.problem.centred_rows import CentredRows
from mvcca.problem.rows import Rows
from mvcca.statistics import Moments, PairMoments
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.statistics.passes import not_kept


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows of views that share objects; they do not add, but their moments do.

    Covariances are those of features that are multiplied by `factors`, of the views that have some.
    """

    rows: Rows
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)

    def is_cheaper(self) -> bool:
        """Whether scores of as many components as are wanted take less than moments of features."""
        views, k = self.rows.views, self.rows.n_components
        if k is None or any(X.is_lazy or X.on_device for X in views.blocks.values()):
            return False  # rows that are not in memory are read once
        n_features, n_scores = sum(views.widths.values()), k * len(views.names)
        return 2 * k * n_features + n_scores**2 < n_features**2

    @cached_property
    def moments(self) -> Moments | PairMoments:
        """Moments of the features."""
        return self.rows.moments()

    def by_pair(self) -> Iterator[PairCovariance]:
        """Covariances of the features of each two views that share objects."""
        return (pair.scaled(self.factors) for pair in self.moments.by_pair())

    def scaled(self, factors: Mapping[str, np.ndarray]) -> SharedRows:
        """The same rows, with covariances of features that are multiplied by `factors`."""
        return replace(self, factors=factors)

    def scores_by_pair(
        self, weights: Mapping[str, np.ndarray], means: Mapping[str, np.ndarray]
    ) -> Iterator[PairCovariance]:
        """Covariances of the scores by maps of each two views that share objects."""
        scores = {
            name: CentredRows.about(block, means[name]).forward(weights[name])
            for name, block in self.rows.views.blocks.items()
        }
        rows = replace(self.rows, views=self.rows.views.replace(scores))
        with not_kept():  # these rows are computed faster than they are hashed for a checkpoint
            moments = rows.read(bases={}, products=np.dtype(np.float64)).moments()
        return moments.by_pair()
