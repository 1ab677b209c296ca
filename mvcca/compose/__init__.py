"""Steps that lead into, through and out of several views in a scikit-learn pipeline.

`SplitViews` makes views of the columns of one matrix, `PerView` applies transformers view by view,
and `JoinViews` makes one matrix of several, for whatever comes next. They arrange matrices; what
the numbers mean is the business of the transformers and estimators in between.
"""

from mvcca.compose._join_views import JoinViews
from mvcca.compose._per_view import PerView
from mvcca.compose._split_views import SplitViews

__all__ = ["JoinViews", "PerView", "SplitViews"]
