"""The parameter ``scale``: which views are standardized before their ridge is added, and by what.

Deviations are those of all training rows. They are found from the statistic that a fit adds up
anyway where it tells them, as of batches, else by one more pass over the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.base.tuned_fits import setting_by_view
from mvcca.base.unit_checks import takes_scale
from mvcca.machine.memory import WIDE
from mvcca.model_selection import searched
from mvcca.model_selection.spaces import AUTOMATIC, SEARCHED
from mvcca.problem import Rows
from mvcca.problem.shrinkage import SHRINKAGES
from mvcca.problem.units import (
    Asked,
    Standardized,
    units_of_covariances,
    units_of_rows,
    units_told,
)

STANDARDIZED: Mapping[str, Any] = {"scale": AUTOMATIC}  # `automatic` of an estimator that does


def open_units(estimator: Any, rows: Rows, batch: bool) -> Rows:
    """The same rows with the units of their views, or with none if the statistic is to tell them.

    If folds choose which views to standardize, with the units of all of them.
    """
    if not takes_scale(estimator) or estimator.requires.features:
        return rows
    asked = _asked(estimator, rows.views.names)
    if estimator.scale == SEARCHED and estimator.reg != SEARCHED:
        _check_ridge(estimator, asked)
    if not any(asked.values()):
        estimator.scale_ = dict.fromkeys(asked, False)
        return rows
    if batch or _statistic_tells(estimator, rows):
        return rows.read(units=None, asked=asked)
    return with_units(estimator, rows, asked)


def with_units(estimator: Any, rows: Rows, asked: Asked | None = None) -> Rows:
    """The same rows with the units of views to be standardized, found from the rows."""
    asked, units = asked or _asked(estimator, rows.views.names), {}
    is_lazy = any(X.is_lazy for X in rows.views.blocks.values())
    if is_lazy and estimator.requires.labels and sum(rows.views.widths.values()) < WIDE:
        units = _units_by_one_pass(rows, asked)
    elif any(asked.values()):
        pairs = not estimator.requires.labels
        units = units_of_rows(rows, asked, confounds=estimator.confounds, pairs=pairs)
    estimator.scale_ = {name: name in units for name in asked}
    return rows.read(units=units)


def _units_by_one_pass(rows: Rows, asked: Asked) -> dict[str, Standardized]:
    """As `units_of_rows`, of rows that are read from files; covariances of all columns fit."""
    names = [name for name, wanted in asked.items() if wanted is not False]
    known = replace(rows, views=rows.views.select(names)).moments_of_each() if names else {}
    means = {name: own.mean()[name] for name, own in known.items()}
    covariances = {name: own.covariance() for name, own in known.items()}
    counts = {name: own.objects_by_view()[name] for name, own in known.items()}
    return units_of_covariances({n: asked[n] for n in names}, means, covariances, counts)


def column_factors(estimator: Any, rows: Rows) -> dict[str, np.ndarray | None]:
    """By view, what columns are multiplied by before distances are taken; None if by nothing."""
    units = with_units(estimator, rows).reading.units or {}
    return {n: units[n].factors if n in units else None for n in rows.views.names}


def in_told_units(
    estimator: Any,
    rows: Rows,
    means: Mapping[str, np.ndarray],
    within: Mapping[str, np.ndarray],
    counts: Mapping[str, float],
) -> Rows:
    """Rows with the units that means and covariances of so many rows tell, as of a part of them."""
    units = units_told(rows, means, within, counts)
    note_units(estimator, rows, units)
    return rows.read(units=units)


def note_units(estimator: Any, rows: Rows, units: Mapping[str, Standardized]) -> None:
    """Note which views are standardized, if the statistic of the rows was to tell it."""
    if rows.reading.units is not None:
        return
    if units and estimator.reg in SHRINKAGES:
        raise ValueError(
            f'reg="{estimator.reg}" of standardized columns, as of view {next(iter(units))!r}, '
            "looks at all rows twice: use fit with rows in memory, give reg a number, or set "
            "scale=False."
        )
    estimator.scale_ = {name: name in units for name in rows.reading.asked}


def _asked(estimator: Any, names: tuple[str, ...]) -> Asked:
    """By view: True, False or "auto"; True if folds choose."""
    names = tuple(name for name in names if name != estimator.confounds)
    if "scale" in searched(estimator):
        return dict.fromkeys(names, True)
    asked: dict[str, Any] = setting_by_view(estimator, "scale", names)
    for name, own in asked.items():
        if not _matters(estimator, name, own):
            asked[name] = False
    return asked


def _matters(estimator: Any, name: str, scale: Any = AUTOMATIC) -> bool:
    """Whether to standardize a view: not without a ridge, where nothing depends on units, nor by
    "auto" for an absolute ridge, which has the units of the rows."""
    return bool(estimator._depends_on_units(name)) and (
        scale != AUTOMATIC or estimator.reg_unit != "absolute"
    )


def _check_ridge(estimator: Any, asked: Asked) -> None:
    """Refuse a search of scales without a ridge, or with one that is estimated from the rows."""
    if isinstance(estimator.reg, str) or not all(_matters(estimator, name) for name in asked):
        raise ValueError(
            'scale="cv" compares fits with a ridge on columns as they are and standardized, got '
            f'reg={estimator.reg!r}. Set reg="cv", or give positive numbers relative to the mean '
            "variance."
        )


def _statistic_tells(estimator: Any, rows: Rows) -> bool:
    """Whether to wait for the statistic, so that rows are read once."""
    if estimator.missing != "error":
        return True
    if estimator.learns_from_rows:
        return False
    blocks = rows.views.blocks.values()
    of_rows = estimator.takes_products or any(X.is_lazy for X in blocks)  # not of class means, say
    if estimator.reg in SHRINKAGES or not of_rows:
        return False
    is_wide = sum(rows.views.widths.values()) >= WIDE and estimator.takes_products
    return not is_wide and all(X.shape[0] >= X.shape[1] for X in blocks)
