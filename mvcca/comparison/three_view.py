"""Three-view CCA as one estimator: MVCCA with the labels as an additional view."""

from __future__ import annotations

from typing import Any, Self

from mvcca.base.label_checks import check_labels
from mvcca.linear import MVCCA, with_labels_as_view
from mvcca.views import as_views
from mvcca.views.labels_by_view import LabelsByView


class ThreeViewCCA(MVCCA):
    """`MVCCA` that adds the labels as a view named ``(labels)`` when it is fitted."""

    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Fit to the views and the labels."""
        if y is None:
            raise ValueError("Three-view CCA needs labels.")
        views = as_views(X)
        check_labels(LabelsByView.of(views, y, per_view=False))
        return super().fit(with_labels_as_view(views, y, name="(labels)"), y)

    def as_mvcca(self) -> MVCCA:
        """The same fitted model without the labels' part of `fit`, which can be saved."""
        model = MVCCA(**self.get_params())
        model.__dict__.update(self.__dict__)
        return model
