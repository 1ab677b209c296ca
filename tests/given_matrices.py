"""An estimator whose matrices are given by functions, as the contributor's guide shows."""

from __future__ import annotations

from mvcca.base import Requirements, StatisticEstimator
from mvcca.problem import Estimate, Problem
from mvcca.statistics import Moments


class GivenMatrices(StatisticEstimator):
    """CCA with matrices between and within views that functions compute from moments."""

    def __init__(
        self,
        n_components=2,
        *,
        between=Moments.covariance,
        within=Moments.covariance,
        reg=1e-4,
        reg_unit="relative",
    ):
        self.n_components = n_components
        self.between = between
        self.within = within
        self.reg = reg
        self.reg_unit = reg_unit

    @property
    def requires(self):
        return Requirements(many_rows=self.within is Moments.covariance)

    def problem(self, rows, statistic):
        A, B = (  # of pairs of rows, too, if the views are partly paired
            statistic.covariance() if function is Moments.covariance else function(statistic)
            for function in (self.between, self.within)
        )
        is_joint = self.between is self.within is Moments.covariance
        about = Estimate(statistic.mean())
        return Problem(rows, about, between=A, within=B, is_joint=is_joint)
