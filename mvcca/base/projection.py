"""From rows in any container to scores in the same container, by the methods of an estimator."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from mvcca.base.fitted_views import as_fitted_views, checked_views
from mvcca.base.inputs import open_matrices
from mvcca.base.projecting import scores_by_view
from mvcca.views import Views, holds_views, in_same_container


def projected(estimator: Any, X: Any, y: Any, method: str) -> Any:
    """What a public method of this name returns, in the container of X."""
    check_is_fitted(estimator)
    if y is not None and (estimator.requires.labels or holds_views(X)):
        raise ValueError(
            f"{type(estimator).__name__}.transform takes y only as the second view of a lone "
            "matrix X, where it was fitted on two; labels are for fit and score."
        )
    columns = estimator.get_feature_names_out()
    if not holds_views(X):
        frames = {"X": X} if y is None else {"X": X, "y": y}
        opened = open_matrices(estimator, frames, reset=False, unpaired=True)
        scores = scores_by_view(estimator, opened, method)
        out = tuple(estimator._frame(scores[n], columns, own) for n, own in frames.items())
        return out[0] if y is None else out
    views = as_fitted_views(estimator, X, unpaired=True)
    opened = checked_views(estimator, views, allow_empty=isinstance(X, Views))
    scores = scores_by_view(estimator, opened, method)
    framed = {n: estimator._frame(block, columns, views[n]) for n, block in scores.items()}
    return in_same_container(X, views, framed)
