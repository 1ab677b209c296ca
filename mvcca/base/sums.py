"""Fits from sums over rows: of the batches so far, or of rows that were summed up elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mvcca.base.fitted_views import check_names_of_confounds
from mvcca.base.inputs import NOTES, check_number_of_views, forget, note_views
from mvcca.base.standardizing import open_units
from mvcca.machine.warnings import warn
from mvcca.model_selection import SEARCHED
from mvcca.problem import SHRINKAGES, Reading, Rows, Shrunk
from mvcca.statistics import OF_HOLES, CellMoments, Moments, PairMoments
from mvcca.views import Views

# ---- batches -------------------------------------------------------------------------------------


def is_first_batch(estimator: Any) -> bool:
    """Whether this batch is the first; `fit` keeps no statistic to which batches could add."""
    if getattr(estimator, "_statistic", None) is not None:
        return False
    if hasattr(estimator, "weights_"):
        warn(
            "partial_fit starts over: fit keeps no statistic of its rows. Give all batches to "
            "partial_fit."
        )
    return True


def solve_batches(estimator: Any, rows: Rows, statistic: Any) -> None:
    """Fit to all batches; if they do not suffice yet, say so where components are asked for.

    What is wrong with a batch is found before. A view that does not vary, confounds that
    explain all rows or labels of a single class may be right in the next one.
    """
    known = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    try:
        if isinstance(statistic, Shrunk):
            if estimator.reg in SHRINKAGES:
                options = estimator.reg, estimator.center, estimator.confounds
                rows = replace(rows, reg=statistic.shrinkages(*options))
            statistic = statistic.inner
        elif estimator.reg in SHRINKAGES and not estimator.learns_from_rows:
            raise ValueError(
                f'reg="{estimator.reg}" takes sums of all batches, which those before did not '
                "keep. Start over with a new estimator."
            )
        estimator._fit_batches(rows, statistic)
        estimator.__dict__.pop("_unsolved", None)
    except ValueError as error:
        if "n_components_" in known:
            raise
        forget(estimator)
        estimator.__dict__.update(known)
        estimator._unsolved = str(error)


# ---- moments from elsewhere ----------------------------------------------------------------------


def open_moments(estimator: Any, moments: Any, *, suffice: bool) -> Rows:
    """Check moments, note their views as those of the fit, and make rows that stand for theirs.

    `suffice` says whether the method needs no more than moments. Problems use only the number of
    rows here, so that each view has one row of zeros, whose weight is that number.
    """
    _refuse_what_reads_rows(estimator, suffice)
    _check_kind(estimator, moments)
    widths = dict(moments.widths)
    forget(estimator, *NOTES)
    note_views(estimator, widths, dict.fromkeys(widths))
    if estimator.confounds is not None:
        check_names_of_confounds(estimator, tuple(widths))
        estimator._coding = {}
    check_number_of_views(estimator, tuple(widths))
    counts = _objects_by_view(moments)
    for name, count in counts.items():
        if not count > 1:
            raise ValueError(
                f"{type(estimator).__name__} learns from at least two objects, but the moments of "
                f"view {name!r} are of {count:g}. Add those of more rows."
            )
    zeros = {name: np.zeros((1, width)) for name, width in widths.items()}
    views = estimator._accepted(Views(zeros), True)
    reg = estimator._ridges(views, None, True)
    views = Views.of(views.blocks, np.eye(len(widths), dtype=bool))
    rows = Rows(
        views,
        np.array(list(counts.values())),
        reg=reg,
        n_components=estimator.n_components,
        needs_many=estimator.requires.many_rows,
        reading=Reading(center=estimator.center),
    )
    return open_units(estimator, rows, batch=True)


def _refuse_what_reads_rows(estimator: Any, suffice: bool) -> None:
    """Refuse methods and parameters for which moments do not suffice."""
    name, takes_batches = type(estimator).__name__, hasattr(estimator, "partial_fit")
    if not suffice or estimator.requires.labels:
        what = "labels" if estimator.requires.labels else "the rows themselves"
        raise ValueError(
            f"{name} learns from {what}, which moments do not hold: use fit"
            f"{', or partial_fit batch by batch' if takes_batches else ''}."
        )
    for parameter, value in estimator.get_params(deep=False).items():
        if isinstance(value, str) and (value == SEARCHED or parameter in ("reg", "tau")):
            raise ValueError(
                f'{parameter}="{value}" looks at single rows, which moments do not hold: use '
                f"fit, or give {parameter} a value."
            )


def _check_kind(estimator: Any, moments: Any) -> None:
    """Refuse another kind of statistic than `fit` computes, and moments of incomplete rows."""
    kinds: tuple[type, ...] = (Moments, PairMoments)
    asked = ""
    if estimator.missing != "error":
        kinds, asked = (OF_HOLES[estimator.missing],), f"missing={estimator.missing!r}"
    elif estimator.confounds is not None:
        kinds, asked = (Moments,), f"confounds={estimator.confounds!r}"
    if not isinstance(moments, kinds):
        words = " or ".join(f"mvcca.statistics.{kind.__name__}" for kind in kinds)
        found = type(moments).__name__
        name = f"{type(estimator).__name__}({asked})"
        raise TypeError(f"{name}.fit_statistic takes {words}, got {found}.")
    given = [moments] if isinstance(moments, Moments) else getattr(moments, "pairs", {}).values()
    if any(np.isnan(own.means).any() for own in given):
        raise ValueError(
            "The moments are NaN, since cells were missing in some rows. Leave these rows out, or "
            'fit MVCCA(missing="pairwise") to mvcca.statistics.CellMoments.'
        )
    if isinstance(moments, Moments) and len(np.unique(moments.counts)) > 1:
        raise ValueError(
            "Views share different numbers of objects. Moments of partly paired views are "
            "PairMoments.of(views), whose parts add."
        )


def _objects_by_view(moments: Any) -> dict[str, float]:
    """Number of objects of each view; of pairs of views, the most that it shares with another."""
    names = list(moments.widths)
    if isinstance(moments, Moments):
        return dict(zip(names, np.diag(moments.counts).tolist(), strict=True))
    if isinstance(moments, PairMoments):
        found = dict.fromkeys(names, 0.0)
        for pair, own in moments.pairs.items():
            for name in pair:
                found[name] = max(found[name], float(own.counts[0, 1]))
        return found
    is_by_cell = isinstance(moments, CellMoments)
    return dict.fromkeys(names, float(moments.counts.max() if is_by_cell else moments.counts.sum()))
