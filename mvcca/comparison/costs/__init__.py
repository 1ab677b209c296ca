"""CPU time and memory of fits and rankings, estimated from shapes before anything is fitted.

`fit_work` and `ranking_work` count the operations of an estimator's dominating steps by kind, as
`Work`. Counts add up: ten fits and thirty rankings are ``10 * fit_work(...) + 30 *
ranking_work(...)``. `costs_of` converts them to seconds by the speed of this machine, which it
measures once per process, in about 0.2 s, if it matters. Numbers of iterations are typical ones, so
that most estimates are right within a factor of two. Names are imported on first access, since
estimators come with scikit-learn, which takes a second.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from mvcca.comparison.costs._budget import parse_budget
    from mvcca.comparison.costs._estimates import (
        fit_work,
        ranking_work,
        search_work,
        without_search,
    )
    from mvcca.comparison.costs._shapes import Shapes, ViewShape, shape_of
    from mvcca.comparison.costs._tools import (
        alignment_work,
        hits_work,
        migration_work,
        projection_work,
        similarity_work,
        study_work,
    )
    from mvcca.comparison.costs._work import Cost, Rates, Work, costs_of, measured_rates

__all__ = [
    "Cost",
    "Rates",
    "Shapes",
    "ViewShape",
    "Work",
    "alignment_work",
    "costs_of",
    "fit_work",
    "hits_work",
    "measured_rates",
    "migration_work",
    "parse_budget",
    "projection_work",
    "ranking_work",
    "search_work",
    "shape_of",
    "similarity_work",
    "study_work",
    "without_search",
]

__getattr__ = on_access(
    __name__,
    {
        "_budget": ("parse_budget",),
        "_estimates": ("fit_work", "ranking_work", "search_work", "without_search"),
        "_shapes": ("Shapes", "ViewShape", "shape_of"),
        "_tools": (
            "alignment_work",
            "hits_work",
            "migration_work",
            "projection_work",
            "similarity_work",
            "study_work",
        ),
        "_work": ("Cost", "Rates", "Work", "costs_of", "measured_rates"),
    },
)
