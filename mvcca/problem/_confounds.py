"""Moments given confounds: what is left of views after their regression on one of them.

The residuals of paired rows on confounds z have the scatter

    S_ab·z = S_ab - S_az S_zz⁺ S_zb,

a Schur complement of the moments, so that confounds cost no pass over the rows, and sparse rows
stay sparse.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.problem._rows import Exactness, Rows
from mvcca.problem.linalg import AnyWhitener, Scaling, Whitener, rounding_of
from mvcca.statistics import Moments, Regression, column_slices

_ULPS = 32  # share of a column's scatter that counts as explained, in units of the last place


def given(moments: Moments, name: str, rows: Rows | None = None) -> Moments:
    """Moments of the residuals of all other views on one of them, with their `Regression`.

    Constant and collinear confounds are left out. Columns that confounds explain but for rounding
    get no variance.

    Parameters
    ----------
    moments : Moments
        Of paired rows.
    name : str
        The view of the confounds.
    rows : Rows, optional
        The rows, to be asked whether they can be read more precisely.

    Returns
    -------
    Moments
        Of the other views.

    Raises
    ------
    DigitsLost
        If the confounds are ill-conditioned and `rows` can do better.
    ValueError
        If the confounds explain all rows, or a view completely.
    """
    rest, between, within = moments.split(name)
    n_objects, mean = moments.counts[0, 0], moments.mean()[name]
    W: AnyWhitener = Scaling.of(np.diag(within))  # if no confound varies
    if W.rank:
        W = Whitener.of(within, np.sqrt(n_objects) * rounding_of(mean))
        if rows is not None and (name in rows.improvable or np.isfinite(W.condition)):
            rows.check({name: W})
    if W.rank >= n_objects - 1:
        raise ValueError(
            f"Confounds {name!r} have {W.rank} independent columns for {n_objects:g} rows, which "
            "they explain completely. Give more rows, or fewer confounds."
        )
    explained, before = W.project(between), np.diag(rest.scatter)
    B, scatter = W.lift(explained), rest.scatter - explained.T @ explained
    lost = np.diag(scatter) <= _rounding(within) * before
    scatter[lost] = scatter[:, lost] = 0
    columns = column_slices(rest.widths)
    for other, own in columns.items():
        if lost[own].all() and before[own].any():
            raise ValueError(
                f"Confounds {name!r} explain view {other!r} completely, so that nothing of it is "
                "left to correlate. Check that the view does not repeat them."
            )
    coefficients = {other: B[:, own] for other, own in columns.items()}
    return replace(rest, scatter=scatter, regression=Regression(name, mean, coefficients, W.rank))


def exactness_given(moments: Moments, name: str) -> Exactness:
    """How exactly the covariances of residuals are known, from the moments before."""
    variances = np.diag(moments.scatter) / max(moments.counts[0, 0] - 1, 1)
    columns, means = column_slices(moments.widths), moments.mean()
    share = _rounding(moments.scatter[columns[name], columns[name]])
    rounding = {
        other: np.maximum(np.sqrt(share * variances[own]), rounding_of(means[other]))
        for other, own in columns.items()
        if other != name
    }
    return Exactness(of_features=True, rounding=rounding)


def _rounding(within: np.ndarray) -> Any:
    """Share of a variance that rounding may leave of what so many confounds explain."""
    return _ULPS * (1 + len(within)) * np.finfo(float).eps
