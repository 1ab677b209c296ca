"""What a statistic says of rows: where they lie, how they vary together, how well it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mvcca.blocks import as_block, to_host
from mvcca.problem.confounds import given, rounding_given
from mvcca.problem.precision import OF_COVARIANCES, Exactness
from mvcca.problem.rows import Rows
from mvcca.problem.shared_rows import SharedRows
from mvcca.statistics import CellMoments, Moments, PairMoments, PatternMoments, Regression
from mvcca.statistics.holes import Recovered
from mvcca.statistics.pair_covariance import PairCovariance
from mvcca.views import Views

Blocks = dict[tuple[str, str], Any]


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is known of the rows of all views.

    Attributes
    ----------
    means : mapping of str to ndarray, shape (n_features,)
        Mean of each view.
    covariance : (between, within), or None
        Covariances between views and within them, in the forms of `Problem`; None if a problem of
        other matrices needs none.
    pairs : Moments, PairMoments, SharedRows or sequence of PairCovariance
        What tells the covariances of each two views, from which follows what to expect of new
        rows.
    recovered : Recovered, optional
        How rows with holes were estimated, by which holes of new rows are filled.
    exactness : Exactness
        How exactly the matrices of the problem are known; by default as covariances of the rows.
    regression : Regression, optional
        The regression on confounds, of whose residuals this is said.
    features_of : callable, optional
        Makes of rows the features of which this is said, as of kernels.
    """

    means: Mapping[str, np.ndarray]
    covariance: tuple[np.ndarray | Blocks, np.ndarray | Mapping[str, Any]] | None = None
    pairs: Moments | PairMoments | SharedRows | Sequence[PairCovariance] = ()
    recovered: Recovered | None = None
    exactness: Exactness = OF_COVARIANCES
    regression: Regression | None = None
    features_of: Callable[[Views], Views] | None = None

    @classmethod
    def of(
        cls,
        statistic: Moments | PairMoments | CellMoments | PatternMoments | Recovered,
        rows: Rows | None = None,
        *,
        center: bool = True,
        confounds: str | None = None,
        columns: Mapping[str, Sequence[Any] | None] | None = None,
    ) -> Self:
        """What a sum over rows says, as the parameters of an estimator ask.

        Parameters
        ----------
        statistic : Moments, PairMoments, CellMoments, PatternMoments or Recovered
            The latter three of rows with holes; the last as `center` asks.
        rows : Rows, optional
            These rows, or some of them, to be asked whether they can be read more precisely.
        center : bool, default=True
            Whether covariances are about the mean; else about zero.
        confounds : str, optional
            The view of which all others become residuals.
        columns : mapping of str to sequence or None, optional
            Names of the columns of each view, for messages about holes.

        Raises
        ------
        DigitsLost
            If the confounds are ill-conditioned and `rows` can do better.
        ValueError
            If the confounds explain all rows, or a view completely, or if a feature is seen in
            fewer than two rows.
        """
        recovered, exactness = None, OF_COVARIANCES
        if isinstance(statistic, CellMoments | PatternMoments):
            statistic = statistic.recovered(columns or {})
            if not center:
                statistic = replace(statistic, moments=statistic.moments.about_zero())
        if isinstance(statistic, Recovered):
            recovered, exactness = statistic, Exactness(of_holes=True)
            statistic = recovered.moments
        elif not center:
            statistic = statistic.about_zero()
        if confounds is not None:
            assert isinstance(statistic, Moments)
            rounding = rounding_given(statistic, confounds)
            exactness = replace(exactness, of_features=True, rounding=rounding)
            statistic = given(statistic, confounds, rows)
        Sigma = statistic.covariance()
        z = statistic.regression if isinstance(statistic, Moments) else None
        return cls(statistic.mean(), (Sigma, Sigma), statistic, recovered, exactness, z)

    def scaled(self, factors: Mapping[str, np.ndarray]) -> Self:
        """The same of features that are multiplied by `factors`, of the views that have some.

        How rows with holes were estimated stays in the units of the rows.
        """
        means = {name: mean * factors.get(name, 1.0) for name, mean in self.means.items()}
        rounding = {n: own * factors.get(n, 1.0) for n, own in self.exactness.rounding.items()}
        about = replace(
            self,
            means=means,
            exactness=replace(self.exactness, rounding=rounding),
            regression=self.regression and self.regression.scaled(factors),
        )
        if not isinstance(self.pairs, Moments | PairMoments | SharedRows):
            return replace(about, pairs=[pair.scaled(factors) for pair in self.pairs])
        pairs = self.pairs.scaled(factors)
        if self.covariance is None or isinstance(pairs, SharedRows):
            return replace(about, pairs=pairs)
        Sigma = pairs.covariance()
        return replace(about, pairs=pairs, covariance=(Sigma, Sigma))

    def by_pair(self) -> list[PairCovariance]:
        """Covariances of the rows of each two views that share objects, if they are known."""
        if isinstance(self.pairs, Moments | PairMoments):
            Sigma = self.covariance[0] if self.covariance is not None else None
            assert not isinstance(Sigma, dict)
            return list(self.pairs.by_pair(Sigma))
        return list(self.pairs.by_pair() if isinstance(self.pairs, SharedRows) else self.pairs)


def rows_in(
    views: Views,
    vectors: Mapping[str, np.ndarray],
    means: Mapping[str, np.ndarray],
    recovered: Recovered | None = None,
    regression: Regression | None = None,
) -> dict[str, np.ndarray]:
    """Coordinates (x - mean) V of the rows of each view, less what their confounds explain.

    Holes of rows are filled as in those that were `recovered`.
    """
    found, z = {}, regression
    for name, block in views.blocks.items():
        if z is not None and name == z.name:
            continue
        V = vectors[name]
        if recovered is not None:
            block = as_block(recovered.filled(name, block))
        found[name] = to_host(block.project(means[name], V))
        if z is not None:
            confounds = views.rows_beside(z.name, name)
            found[name] -= to_host(confounds.project(z.mean, z.coefficients[name] @ V))
    return found


def counted(pairs: Iterable[PairCovariance], views: Views, rank: float = 0) -> list[PairCovariance]:
    """The same pairs, whose objects count for fewer where the rows of the views are residuals.

    The objects of the pairs lack already what another regression took, of this rank.
    """
    return [
        pair._replace(n_objects=pair.n_objects - n_lost(views, pair.names, pair.n_objects + rank))
        for pair in pairs
    ]


def n_lost(views: Views, names: Iterable[str], n_objects: float) -> float:
    """Degrees of freedom that so many objects, seen in all these views, lack as residuals."""
    lost = (views.removed[name] for name in names if name in views.removed)
    return max((rank * n_objects / n_rows for rank, n_rows in lost), default=0.0)
