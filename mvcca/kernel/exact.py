"""Exact kernel CCA of two views by their kernel matrices alone.

Features of the kernel, and moments of as many features as rows, are left out: they take several
times the operations and the memory of the dual problem, whose maps are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from mvcca.kernel.held_out import expected_of_scores, fold_of, keys_of
from mvcca.kernel.kernels import is_symmetric
from mvcca.linear.features import FeatureMap, LandmarkFeatures, sizes_in_any_order
from mvcca.problem import Maps, Rows
from mvcca.problem.dual import in_dual_of_kernels
from mvcca.views import Views


def exact_maps(maps: Mapping[str, FeatureMap], rows: Rows) -> Maps | None:
    """Maps of the kernel values, and what held-out objects tell of their scores.

    None where the dual problem is another, or has too few digits: for more views, weights, no
    ridge, or rows of which some are left out as landmarks.
    """
    views = rows.views
    if len(views.names) != 2 or rows.sample_weight is not None or not all(rows.reg.values()):
        return None  # before kernels are computed
    if any(maps[name].n_features < block.shape[0] for name, block in views.items()):
        return None

    def solved(rest: np.ndarray) -> Maps | None:
        return in_dual_of_kernels(
            replace(rows, views=views[rest]), partial(kernel, rest, rest), len(views)
        )

    def kernel(own: np.ndarray, rest: np.ndarray, name: str) -> np.ndarray | None:
        features = maps[name]
        assert isinstance(features, LandmarkFeatures)
        K = replace(features, landmarks=features.landmarks[rest]).basis(views[own][name])
        return K if len(own) < len(views) or is_symmetric(K) else None

    found = solved(np.arange(len(views)))
    if found is None or found.variances is None:
        return None
    folds = fold_of(keys_of(views), len(views))
    scores = []
    for fold in np.unique(folds[folds >= 0]):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        of_rest = solved(rest)
        if of_rest is None:
            return None
        projected = {name: of_rest.project(name, kernel(own, rest, name)) for name in views.names}
        scores.append(Views(projected))
    expected = expected_of_scores(scores, [np.ones(len(held)) for held in scores])
    if expected is None:
        return None
    sizes = {n: sizes_in_any_order(own[0], len(own)) for n, own in found.variances.items()}
    return replace(found, expected=expected, variances=sizes)
