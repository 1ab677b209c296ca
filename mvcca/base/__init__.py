"""Base classes of all estimators: input checks, projection, and how a linear method is fitted.

Containers are checked view by view, and results are returned in the same kind of container. The
statistic of each method and the problem it solves are defined in `mvcca.linear`.
"""

from typing import TYPE_CHECKING

from mvcca.base.estimator import LinearEstimator, MultiViewEstimator, all_or_nothing
from mvcca.base.ranked_by_correlation import RankedByCorrelation
from mvcca.base.requirements import Requirements
from mvcca.base.statistic_estimator import StatisticEstimator
from mvcca.machine.on_access import on_access

__all__ = [
    "LinearEstimator",
    "MultiViewEstimator",
    "RankedByCorrelation",
    "Requirements",
    "StatisticEstimator",
    "all_or_nothing",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
