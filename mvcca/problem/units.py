"""Units of columns: which views are to be standardized, and the deviations of their columns.

A ridge, a distance and a covariance see little more than the columns of large deviations. Columns
in unlike units, such as those of a clinical table, are therefore standardized; scores of a PCA or
SVD are not, whose deviations differ, too, but are meant. What tells them apart is that these are
uncorrelated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial, reduce
from operator import add

import numpy as np

from mvcca.blocks import as_block, to_host
from mvcca.machine.config import block_slices
from mvcca.problem._bases import Standardized as Standardized
from mvcca.problem.confounds import regression_on
from mvcca.problem.rows import Rows, check_variance
from mvcca.statistics import Moments
from mvcca.views import Views
from mvcca.views.powers_of_two import exponents_of, scaled

_LARGE = 10.0  # largest deviation in units of the median one
_CORRELATED = 3.0  # n r², averaged over pairs of columns; about 1 if these are independent
_COLUMNS = 300  # of wide views that are correlated
_EPS = np.finfo(float).eps
Asked = Mapping[str, bool | str]  # by view: whether to standardize it; "auto" decides


def are_unlike(
    deviations: np.ndarray, n_rows: float, correlations_of: Callable[[np.ndarray], np.ndarray]
) -> bool:
    """Whether columns are in unlike units.

    They are if the largest deviation exceeds ten times the median one, and the mean squared
    correlation of distinct columns exceeds 3 / n.

    Parameters
    ----------
    deviations : ndarray, shape (d,)
        Standard deviations of the columns; 0 of constant ones.
    n_rows : float
        n.
    correlations_of : callable
        Takes positions of columns and returns their correlation matrix.
    """
    varying = np.flatnonzero(deviations > 0)
    if len(varying) < 3 or not deviations.max() > _LARGE * np.median(deviations[varying]):
        return False  # of two columns, none is far above the median
    chosen = varying[:: 1 + len(varying) // _COLUMNS]
    squares, d = np.sum(correlations_of(chosen) ** 2), len(chosen)
    return bool(n_rows * (squares - d) / (d * (d - 1)) > _CORRELATED)


def correlations_in(covariance: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Correlations of some columns, of their covariance matrix."""
    roots = np.sqrt(covariance[chosen, chosen])
    return np.asarray(covariance[np.ix_(chosen, chosen)] / roots / roots[:, None])


# ---- of rows -------------------------------------------------------------------------------------


def units_of_rows(
    rows: Rows, asked: Asked, *, confounds: str | None = None, pairs: bool = True
) -> dict[str, Standardized]:
    """Units of the views that are to be standardized, from one more pass over their rows.

    Parameters
    ----------
    rows : Rows
        The rows as features.
    asked : mapping of str to bool or "auto"
        What to do with each view.
    confounds : str, optional
        The view of which all others become residuals, whose deviations count.
    pairs : bool, default=True
        Whether only objects that are seen in two views count, once for each other view.
    """
    names, units = [name for name, wanted in asked.items() if wanted is not False], {}
    # Squares are floats of columns divided by powers of two; confounds are regressed on as given.
    exponents = exponents_of(rows.views.select(names), names) if names and not confounds else {}
    rows = replace(rows, views=scaled(rows.views, exponents)) if exponents else rows
    for name in names:
        parts = [_moments_of_columns(rows, name, confounds, o) for o in _shared(rows, name, pairs)]
        mean, variance = np.mean(parts, axis=0)
        power = exponents.get(name, 0)
        mean, deviations = np.ldexp(mean, power), np.ldexp(np.sqrt(variance), power)
        n_rows = rows.sample_weight_of(name).sum()
        correlations = partial(_correlations, rows, name)
        if asked[name] is True or are_unlike(deviations, n_rows, correlations):
            units[name] = Standardized.of(mean, deviations)
            if confounds is None:  # which explain a view where they are regressed on
                check_variance(name, units[name].factors)
    return units


def _shared(rows: Rows, name: str, pairs: bool) -> list[np.ndarray | None]:
    """Objects of a view that are seen in each other view, as rows of it; None for all of them."""
    if not pairs or rows.views.is_paired:
        return [None]
    seen, p = rows.views.seen, rows.views.names.index(name)
    own = seen[seen[:, p]]
    shared = [np.flatnonzero(own[:, q]) for q in range(seen.shape[1]) if q != p]
    return [objects for objects in shared if len(objects) > 1] or [None]


def _moments_of_columns(
    rows: Rows, name: str, confounds: str | None, chosen: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of the columns of a view; a variance that is only rounding is 0."""
    block, weights = rows.views.blocks[name], None
    if rows.sample_weight is not None:
        weights = rows.sample_weight_of(name)
    if chosen is not None:
        block, weights = block.take(chosen), None if weights is None else weights[chosen]
    count = float(block.shape[0] if weights is None else weights.sum())
    mean = to_host(block.column_means(weights))
    if confounds is not None:
        squares = _squares_of_residuals(rows.views, name, confounds, rows.sample_weight)
    else:
        about = mean if rows.reading.center else np.zeros(len(mean))
        squares = to_host(block.centred_squares(about, weights))
    variance = squares / (max(count - 1, 1) if rows.reading.center else count)
    with np.errstate(over="ignore", invalid="ignore"):
        rounding = block.shape[0] * _EPS * np.abs(mean)
        variance = np.where(variance <= rounding**2, 0, variance)
    return mean, variance


def _squares_of_residuals(
    views: Views, name: str, confounds: str, weights: np.ndarray | None
) -> np.ndarray:
    regression, means, _ = regression_on(views.select((name, confounds)), confounds, weights)
    block, Z, squares = views.blocks[name], views.blocks[confounds], 0.0
    for own in block_slices(block.shape[0], 8 * (block.shape[1] + Z.shape[1])):
        X = to_host(block.take(own).dense().matrix).astype(np.float64) - means[name]
        z = to_host(Z.take(own).dense().matrix).astype(np.float64) - regression.mean
        X -= z @ regression.coefficients[name]
        w = np.ones(len(X)) if weights is None else weights[own]
        squares = squares + w @ X**2
    return np.asarray(squares)


def _correlations(rows: Rows, name: str, chosen: np.ndarray) -> np.ndarray:
    block, weights, found = rows.views.blocks[name], None, []
    if rows.sample_weight is not None:
        weights = rows.sample_weight_of(name)
    for own in block_slices(block.shape[0], 8 * block.shape[1]):
        part = block if own == slice(0, block.shape[0]) else block.take(own)
        part = part.in_memory().on_host()
        columns = as_block(part.by_columns()[:, chosen]).promoted(np.dtype(np.float64))
        own_weights = None if weights is None else weights[own]
        found.append(Moments.of(Views({name: columns.matrix}), own_weights))
    return correlations_in(reduce(add, found).covariance(), np.arange(len(chosen)))


# ---- of a statistic ------------------------------------------------------------------------------


def units_told(
    rows: Rows,
    means: Mapping[str, np.ndarray],
    within: Mapping[str, np.ndarray],
    counts: Mapping[str, float],
) -> dict[str, Standardized]:
    """Units of rows by means and covariances of so many rows, as of a part of them.

    Which views are standardized is decided here only if it is not known yet. Views in a basis keep
    their units.
    """
    known, narrow = rows.reading.units, [n for n in within if n not in rows.reading.bases]
    asked: Asked
    if known is None:
        asked = {name: rows.reading.asked.get(name, False) for name in narrow}
    else:
        asked = {name: True for name in narrow if name in known}
    return {**(known or {}), **units_of_covariances(asked, means, within, counts)}


def units_of_covariances(
    asked: Asked,
    means: Mapping[str, np.ndarray],
    within: Mapping[str, np.ndarray],
    counts: Mapping[str, float],
) -> dict[str, Standardized]:
    """Units of the views that are to be standardized, by covariances of their columns.

    Parameters
    ----------
    asked : mapping of str to bool or "auto"
        What to do with each view.
    means, within : mapping of str to ndarray
        Mean and covariance, or variances, of the columns of each view.
    counts : mapping of str to float
        Number of rows of each view.
    """
    units = {}
    for name, wanted in asked.items():
        if wanted is False:
            continue
        B = within[name] if within[name].ndim == 2 else np.diag(within[name])
        deviations, correlations = np.sqrt(np.diag(B)), partial(correlations_in, B)
        if wanted is True or are_unlike(deviations, counts[name], correlations):
            units[name] = Standardized.of(means[name], deviations)
    return units
