"""The parameter ``scale``: which views are standardized before their ridge is added, and by what.

Deviations are those of all training rows. They are found from the rows where these are in memory,
else from the statistic that a fit adds up anyway, as of batches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mvcca.base.tuned_fits import setting_by_view
from mvcca.model_selection import AUTOMATIC, SEARCHED, searched
from mvcca.problem import SHRINKAGES, WIDE, Problem, Rows
from mvcca.problem.units import Asked, units_of_problem, units_of_rows

STANDARDIZED: Mapping[str, Any] = {"scale": AUTOMATIC}  # `automatic` of an estimator that does


def takes_scale(estimator: Any) -> bool:
    """Whether an estimator has the parameter."""
    return "scale" in estimator.automatic


def standardizes(estimator: Any, name: str) -> bool:
    """Whether a view is standardized where its columns are in unlike units."""
    if not takes_scale(estimator):
        return False
    scale = estimator.scale
    scale = scale.get(name, False) if isinstance(scale, Mapping) else scale
    is_automatic = isinstance(scale, str) and scale == AUTOMATIC
    return bool(scale) and not (is_automatic and estimator.reg_unit == "absolute")


def open_units(estimator: Any, rows: Rows, batch: bool) -> Rows:
    """The same rows with the units of their views, or with none if the statistic is to tell them.

    If folds choose which views to standardize, with the units of all of them.
    """
    if not takes_scale(estimator):
        return rows
    asked = _asked(estimator, rows.views.names)
    _check(estimator, asked)
    _note(estimator, asked, ())
    if not any(asked.values()):
        return rows
    if batch or _statistic_tells(estimator, rows):
        return rows.read(units=None)
    pairs = not estimator.requires.labels
    units = units_of_rows(rows, asked, confounds=estimator.confounds, pairs=pairs)
    _note(estimator, asked, units)
    return rows.read(units=units)


def in_units(estimator: Any, problem: Problem) -> Problem:
    """The same problem in units, by the deviations that it tells itself, as of a part of the rows.

    Which views are standardized is decided here only if it is not known yet.
    """
    known = problem.rows.reading.units
    if known is not None:
        if not known or problem.about.covariance is None:
            return problem
        own = units_of_problem(problem, {n: True for n in known if n in problem.about.means})
        return replace(problem, rows=problem.rows.read(units={**known, **own}))
    asked = _asked(estimator, tuple(problem.about.means))
    units = units_of_problem(problem, asked)
    if units and estimator.reg in SHRINKAGES:
        raise ValueError(
            f'reg="{estimator.reg}" of standardized columns, as of view {next(iter(units))!r}, '
            "looks at all rows twice: use fit with rows in memory, give reg a number, or set "
            "scale=False."
        )
    _note(estimator, asked, units)
    return replace(problem, rows=problem.rows.read(units=units))


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
    reg = estimator.reg
    reg = reg.get(name) if isinstance(reg, Mapping) else reg
    return bool(reg != 0) and (scale != AUTOMATIC or estimator.reg_unit != "absolute")


def _check(estimator: Any, asked: Asked) -> None:
    """Refuse a search of scales without a ridge, or with one that is estimated from the rows."""
    if estimator.scale != SEARCHED or estimator.reg == SEARCHED:
        return
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
    blocks = rows.views.blocks.values()
    if estimator.reg in SHRINKAGES or not any(X.is_lazy for X in blocks):
        return False
    is_wide = sum(rows.views.widths.values()) >= WIDE and estimator.takes_products
    return not is_wide and all(X.shape[0] >= X.shape[1] for X in blocks)


def _note(estimator: Any, asked: Asked, units: Collection[str]) -> None:
    estimator.scale_ = {name: name in units for name in asked}
