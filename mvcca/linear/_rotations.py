"""Views in another basis, where statistics of their rows are smaller or keep more digits.

The bases themselves are `mvcca.linalg.Rotation`; which views take one, and the way back, are here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import to_host
from mvcca.linalg import Rotation
from mvcca.linear._rows import check_variance, own_weights
from mvcca.views import Views

FindBasis = Callable[[np.ndarray, np.ndarray | None], tuple[Rotation, np.ndarray]]


def in_row_space(
    views: Views, weights: np.ndarray | None, reg: Mapping[str, float]
) -> tuple[Views, dict[str, Rotation]]:
    """Views, those with more features than rows in a basis of their rows; and the bases.

    Weights outside the span of the rows are worth nothing, with a ridge or without, and n x n
    statistics of n rows are smaller than d x d ones.
    """
    wide = {
        name: partial(Rotation.to_row_space, equilibrate=not reg[name], ridge=reg[name])
        for name, block in views.items()
        if 1 < block.shape[0] < block.shape[1]
    }
    return rotate(views, weights, wide)


def rotate(
    views: Views, weights: np.ndarray | None, find: Mapping[str, FindBasis]
) -> tuple[Views, dict[str, Rotation]]:
    """Views, those named by `find` in the basis it finds and in float64; and the bases."""
    blocks, rotations = dict(views.items()), {}
    for name, basis_of in find.items():
        block = to_host(blocks[name])
        if issparse(block):  # n x d is smaller than the d x d statistic would be
            block = block.toarray()
        block = block.astype(np.float64, copy=False)
        rotations[name], blocks[name] = basis_of(block, own_weights(views, name, weights))
        if not blocks[name].shape[1]:
            check_variance(name, np.zeros(1))
    return views.replace(blocks), rotations


def weights_of_features(
    weights: Mapping[str, np.ndarray], rotations: Mapping[str, Rotation]
) -> dict[str, np.ndarray]:
    """Weights on the features as they came, of weights on rotated views."""
    return {n: rotations[n].lift(w) if n in rotations else w for n, w in weights.items()}


def means_of_features(
    means: Mapping[str, np.ndarray], rotations: Mapping[str, Rotation]
) -> dict[str, np.ndarray]:
    """Means of the features as they came: a rotated view has moved its mean to zero."""
    return {n: rotations[n].back(m) if n in rotations else m for n, m in means.items()}
