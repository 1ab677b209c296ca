"""Exact kernel CCA of two views by their kernel matrices alone.

Features of the kernel, and moments of as many features as rows, are left out: they take several
times the operations and the memory of the dual problem, whose maps are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mvcca.kernel.held_out import expected_of_scores, fold_of, keys_of
from mvcca.kernel.kernels import is_symmetric
from mvcca.linear.features import FeatureMap, sizes_in_any_order
from mvcca.problem import Maps, Rows, in_dual_of_kernels
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
    kernels = {name: maps[name].basis(block) for name, block in views.items()}
    if not all(is_symmetric(K) for K in kernels.values()):
        return None  # landmarks in another order than the rows
    folds = fold_of(keys_of(views), len(views))
    scores = []
    for fold in np.unique(folds[folds >= 0]):
        rest, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        of_rest = in_dual_of_kernels(rows, kernels, rest)
        if of_rest is None:
            return None
        projected = {
            name: of_rest.project(name, K[np.ix_(own, rest)]) for name, K in kernels.items()
        }
        scores.append(Views(projected))
    expected = expected_of_scores(scores, [np.ones(len(held)) for held in scores])
    found = in_dual_of_kernels(rows, kernels)
    if found is None or found.variances is None or expected is None:
        return None
    sizes = {n: sizes_in_any_order(own[0], len(own)) for n, own in found.variances.items()}
    return replace(found, expected=expected, variances=sizes)
