"""Scaling of views whose squares leave the range of floats, by powers of two, which is exact.

Covariances of columns near 1e-160 are denormal numbers with few digits, and those of columns near
1e155 overflow. Methods that rescaled views do not affect scale them before they learn, and scale
what they learned back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from mvcca.views import Views

Exponents = Mapping[str, np.ndarray]  # of the features of views that are scaled, (n_features,)

_SAFE = 256  # binary exponents up to which views are left alone
_MOST = 1000  # and that scales have at most


def exponents_of(views: Views, by_column: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Binary exponents of views in memory with numbers far from 1, one per view or per column."""
    # Views in files and on devices are left alone: they are read once, and in blocks. So are those
    # of float32, whose squares float64 holds.
    found = {}
    for name, block in views.blocks.items():
        if block.is_lazy or block.on_device or block.dtype == np.float32:
            continue
        sizes = block.sizes() if name in by_column else np.full(block.shape[1], block.size())
        exponents = np.frexp(sizes)[1]
        exponents = np.where(np.abs(exponents) > _SAFE, exponents, 0)
        if exponents.any():
            found[name] = np.clip(exponents, -_MOST, _MOST)
    return found


def scaled(views: Views, exponents: Exponents) -> Views:
    """Views with their columns divided by powers of two."""
    blocks = dict(views.blocks)
    for name in blocks.keys() & exponents.keys():
        blocks[name] = blocks[name].scaled(np.ldexp(1.0, -exponents[name]))
    return views.replace(blocks)


def weights_back(weights: Mapping[str, np.ndarray], exponents: Exponents) -> dict[str, np.ndarray]:
    """Weights of the features that give the scores of weights of scaled ones."""
    found = dict(weights)
    for name in found.keys() & exponents.keys():
        with np.errstate(over="ignore"):
            found[name] = np.ldexp(found[name], -exponents[name][:, None])
        if not np.isfinite(found[name]).all():
            raise ValueError(
                f"View {name!r} has values so small that weights of its features exceed the "
                "largest float. Rescale it."
            )
    return found


def means_back(means: Mapping[str, np.ndarray], exponents: Exponents) -> dict[str, np.ndarray]:
    """Means of the features, from those of scaled ones."""
    found = dict(means)
    for name in found.keys() & exponents.keys():
        found[name] = np.ldexp(found[name], exponents[name])
    return found
