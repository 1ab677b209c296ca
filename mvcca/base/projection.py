"""From fitted attributes to maps, from rows to scores, and how well these agree."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.measures import column_correlations
from mvcca.problem import Expected, Maps
from mvcca.views import Views


def maps_of(model: Any) -> Maps:
    """The maps of an estimator, from its fitted attributes and its parameter `power`, if any."""
    rho, expected = getattr(model, "expected_correlations_", None), None
    if rho is not None:
        of_pairs = model.expected_correlations_by_pair_
        expected = Expected(rho, of_pairs, model.expected_deviations_)
    return Maps(
        model.weights_,
        model.means_,
        eigenvalues=getattr(model, "eigenvalues_", None),
        power=getattr(model, "power", 0.0),
        expected=expected,
    )


def projected(
    block: Any, project: Callable[[Any], Any], n_components: int, dense: bool = False
) -> Any:
    """Scores of rows in memory or in a file; a lazy Dask array for rows of one."""
    row_bytes = 8 * block.shape[1] if dense else 0
    return as_block(block).mapped(project, n_components, row_bytes)


def mean_correlation(scores: Views) -> float | None:
    """Mean over components and pairs of views that share objects; None if no two views do."""
    correlations = []
    for pair in combinations(scores.names, 2):
        both = scores.select(pair)
        both = both[both.seen.all(axis=1)]
        if len(both) > 1:
            correlations.append(column_correlations(*(block for _, block in both.items())))
    return float(np.mean(correlations)) if correlations else None
