"""The score of an estimator: mean correlation of paired rows, or retrieval by labels."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mvcca.base.inputs import open_again, repeated_rows
from mvcca.base.projecting import scores_of
from mvcca.blocks import to_host
from mvcca.measures import column_correlations
from mvcca.model_selection import retrieval_scorer
from mvcca.views import Views, holds_views
from mvcca.views.labels_by_view import LabelsByView, is_per_view
from mvcca.views.validation import checked_sample_weight


def score_of(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """What `MultiViewEstimator.score` returns."""
    check_is_fitted(estimator)
    views, weights = open_again(estimator, X, y), None
    if sample_weight is not None:
        weights = checked_sample_weight(sample_weight, views, reset=False)
    if (views.without(estimator.confounds).seen.sum(axis=1) > 1).any():
        scores = views.replace(scores_of(estimator, views, estimator.maps_)).in_memory()
        return _mean_correlation(scores, weights)
    if y is None or (estimator.requires.pairs and not estimator.requires.labels):
        raise ValueError(
            f"{type(estimator).__name__}.score needs objects that are seen in two views, or labels "
            "y and a label-supervised estimator. Use mvcca.retrieval_scorer."
        )
    if weights is not None:
        labels = LabelsByView.of(views, y, is_per_view(X, y) if holds_views(X) else False)
        reason = "a gallery holds whole items (set_score_request(sample_weight=False))"
        X, repeated, _ = repeated_rows(views, labels, weights, reason)
        assert repeated is not None
        y = {name: repeated[name] for name in X.names}
    return retrieval_scorer("map")(estimator, X, y)


def _mean_correlation(scores: Views, weights: np.ndarray | None) -> float:
    """Mean over components and pairs of views that share objects."""
    correlations = []
    for pair in combinations(scores.names, 2):
        both = scores.select(pair)
        counts = both.seen.all(axis=1) if weights is None else weights * both.seen.all(axis=1)
        kept = counts > 0
        if kept.sum() > 1:
            first, second = (to_host(X) for _, X in both[kept].items())
            own = None if weights is None else weights[kept]
            correlations.append(column_correlations(first, second, own))
    if not correlations:
        raise ValueError(
            "The score is a correlation, which one object does not have: expected at least two "
            "objects (of positive weight) that are seen in two views. Leave out several objects at "
            "a time, as cv=5 does, and not one, as LeaveOneOut does. Errors of predictions, such "
            'as scoring="neg_mean_squared_error", are defined on one object; retrieval measures '
            "(mvcca.retrieval_scorer) need no pairs, but several items."
        )
    return float(np.mean(correlations))
