"""Scaling of views whose squares leave the range of floats, by powers of two, which is exact.

Covariances of columns near 1e-160 are denormal numbers with few digits, and those of columns near
1e155 overflow. Methods that rescaled views do not affect scale them before they learn, and scale
what they learned back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from scipy.sparse import issparse

from mvcca.blocks import RowSource
from mvcca.blocks.array_api import is_device_array, to_host
from mvcca.blocks.sparse import own_csr
from mvcca.views import Views

Exponents = Mapping[str, np.ndarray]  # of the features of views that are scaled, (n_features,)

_SAMPLED_ROWS, _MORE_ROWS, _SAMPLED_VALUES = 256, 4096, 2**20  # the last of sparse views
_SAFE = 256  # binary exponents up to which views are left alone
_MOST = 1000  # and that scales have at most


def exponents_of(views: Views, by_column: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Binary exponents of views in memory with numbers far from 1, one per view or per column."""
    # Views in files and on devices are left alone: they are read once, and in blocks. So are those
    # of float32, whose squares float64 holds.
    found = {}
    for name, X in views.items():
        if isinstance(X, RowSource) or is_device_array(X) or X.dtype == np.float32:
            continue
        sizes = _sizes(X)
        if name not in by_column:
            sizes = np.full(len(sizes), sizes.max(initial=0))
        exponents = np.frexp(sizes)[1]
        exponents = np.where(np.abs(exponents) > _SAFE, exponents, 0)
        if exponents.any():
            found[name] = np.clip(exponents, -_MOST, _MOST)
    return found


def scaled(views: Views, exponents: Exponents) -> Views:
    """Views with their columns divided by powers of two."""
    blocks = dict(views.items())
    for name in blocks.keys() & exponents.keys():
        X = blocks[name]
        X = X.read(0, X.shape[0]) if isinstance(X, RowSource) else to_host(X)
        factors = np.ldexp(1.0, -exponents[name]).astype(X.dtype)
        if issparse(X):
            blocks[name] = X = own_csr(X)
            X.data *= factors[X.indices]
        else:
            blocks[name] = X * factors
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


def _sizes(X: np.ndarray) -> np.ndarray:
    """Largest absolute value of each column, within a few powers of two; 0 if it is zero.

    Some rows or values tell enough: what is safe has a margin of hundreds of powers of two.
    """
    if issparse(X):
        values = np.abs(X.data[:: 1 + len(X.data) // _SAMPLED_VALUES])
        values = values[values > 0]
        if not len(values) or np.abs(np.frexp([values.min(), values.max()])[1]).max() <= _SAFE:
            return np.ones(X.shape[1])
        return np.asarray(np.abs(X).max(axis=0).toarray()).reshape(-1)
    sizes = _largest(X[:: 1 + len(X) // _SAMPLED_ROWS])
    if not sizes.all():  # columns that are mostly zero
        sizes = np.maximum(sizes, _largest(X[:: 1 + len(X) // _MORE_ROWS]))
    return sizes


def _largest(X: np.ndarray) -> np.ndarray:
    """Largest absolute value of each column, without a copy of the rows."""
    return np.maximum(X.max(axis=0, initial=0), -X.min(axis=0, initial=0))
