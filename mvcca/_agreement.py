"""Correlation of projected views, which `score` measures if views share objects."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mvcca.measures import column_correlations
from mvcca.views import Views


def mean_correlation(scores: Views) -> float | None:
    """Mean over components and pairs of views that share objects; None if no two views do."""
    correlations = []
    for pair in combinations(scores.names, 2):
        both = scores.select(pair)
        both = both[both.seen.all(axis=1)]
        if len(both) > 1:
            correlations.append(column_correlations(*(block for _, block in both.items())))
    return float(np.mean(correlations)) if correlations else None
