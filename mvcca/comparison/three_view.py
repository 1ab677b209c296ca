"""Three-view CCA as one estimator: MVCCA with the labels as an additional view."""

from __future__ import annotations

from typing import Any

from mvcca.base import Requirements
from mvcca.base.label_checks import check_labels
from mvcca.linear import MVCCA, with_labels_as_view
from mvcca.model_selection import OF_RIDGES, Space
from mvcca.problem import Rows
from mvcca.views import Views, as_views
from mvcca.views.labels_by_view import LabelsByView

_NAME = "(labels)"


class ThreeViewCCA(MVCCA):
    """`MVCCA` that adds the labels as a view named ``(labels)`` when it is fitted.

    Folds choose by the rows of the other views.
    """

    requires = Requirements(labels=True, many_rows=True)

    def search_space(self, views: Views, labels: Any = None) -> Space:
        """Ridges, and numbers of components."""
        return OF_RIDGES

    def open_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, batch: bool = False
    ) -> Rows:
        """Checked rows with their weights, labels and ridge."""
        if y is None:
            raise ValueError("Three-view CCA needs labels.")
        views = as_views(X)
        by_view = LabelsByView.of(views, y, per_view=False)
        check_labels(by_view)
        labels = by_view.per_object(views)
        views = with_labels_as_view(views, labels, name=_NAME)
        return super().open_rows(views, labels, sample_weight, reset=reset, batch=batch)

    def as_mvcca(self) -> MVCCA:
        """The same fitted model without the labels' part of `fit`, which can be saved."""
        model = MVCCA(**self.get_params())
        model.__dict__.update(self.__dict__)
        return model
