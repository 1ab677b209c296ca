"""Base classes of all estimators: input checks, projection, and how a linear method is fitted.

Containers are checked view by view, and results are returned in the same kind of container. The
statistic of each method and the problem it solves are defined in `mvcca.linear`.
"""

from typing import TYPE_CHECKING

from mvcca.base.requirements import Requirements
from mvcca.machine.on_access import on_access

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from mvcca.base.estimator import MultiViewEstimator, all_or_nothing
    from mvcca.base.ranked_by_correlation import RankedByCorrelation
    from mvcca.base.statistic_estimator import StatisticEstimator
else:  # what projects rows does without scikit-learn
    __getattr__ = on_access(
        __name__,
        {
            "estimator": ("MultiViewEstimator", "all_or_nothing"),
            "ranked_by_correlation": ("RankedByCorrelation",),
            "statistic_estimator": ("StatisticEstimator",),
        },
    )

__all__ = [
    "MultiViewEstimator",
    "RankedByCorrelation",
    "Requirements",
    "StatisticEstimator",
    "all_or_nothing",
]
