"""Fits from sums over rows: of the batches so far, or of rows that were summed up elsewhere."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from threading import RLock
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from mvcca.base.fitted_views import check_names_of_confounds
from mvcca.base.inputs import NOTES, check_number_of_views, forget, note_views
from mvcca.base.standardizing import open_units
from mvcca.machine.warnings import warn
from mvcca.model_selection.spaces import SEARCHED
from mvcca.problem import Reading, Rows
from mvcca.problem.shrinkage import SHRINKAGES, Shrunk
from mvcca.statistics import OF_HOLES, Moments, PairMoments
from mvcca.views import Views

# ---- batches -------------------------------------------------------------------------------------


_ONE_AT_A_TIME = RLock()  # of solutions for batches: threads may ask for the same one


def is_first_batch(estimator: Any) -> bool:
    """Whether this batch is the first; `fit` keeps no statistic to which batches could add."""
    if estimator._statistic is not None:
        return False
    if hasattr(estimator, "weights_"):
        warn(
            "partial_fit starts over: fit keeps no statistic of its rows. Give all batches to "
            "partial_fit."
        )
    return True


def leave_unsolved(estimator: Any, rows: Rows) -> None:
    """Forget the solution for earlier batches; `solve` finds the next one when it is asked for.

    `rows` are those of the last batch, which the sum of all batches replaces.
    """
    statistic = estimator._statistic
    if _shrinks(estimator) and not isinstance(statistic, Shrunk):
        raise ValueError(
            f'reg="{estimator.reg}" takes sums of all batches, which those before did not keep. '
            "Start over with a new estimator."
        )
    if hasattr(statistic, "objects_by_view"):
        counts = statistic.objects_by_view()
    else:
        counts = {name: rows.sample_weight_of(name).sum() for name in rows.views.names}
    known = vars(estimator)
    is_of_old_file = "n_components_" in known and "_solved" not in known
    for name in (*known.get("_solved", ()), "_unsolved"):
        known.pop(name, None)
    estimator._pending = rows.standing_for(counts), estimator.get_params(deep=False)
    if is_of_old_file:  # which does not tell what else there is to forget
        solve(estimator)


def solve(estimator: Any) -> None:
    """Solve for the batches so far, if no result of them has been asked for yet.

    What is wrong with a single batch was found when it came. Here, a view may not vary yet,
    confounds may explain all rows, or labels be of a single class, and more batches may help.

    Raises
    ------
    NotFittedError
        If the batches do not suffice.
    """
    known = vars(estimator)
    with _ONE_AT_A_TIME if "_pending" in known else nullcontext():
        if "_pending" in known:
            rows, parameters = known["_pending"]
            try:
                known |= solution_of(estimator, rows, parameters)
            except ValueError as error:
                known["_unsolved"] = str(error)
            known.pop("_pending", None)
    if "_unsolved" in known:
        raise NotFittedError(
            f"{type(estimator).__name__} has no components after the batches so far: "
            f"{known['_unsolved']}"
        )


def solution_of(estimator: Any, rows: Rows, parameters: dict[str, Any]) -> dict[str, Any]:
    """What the sum of all batches makes of an estimator: its attributes that change.

    The estimator itself stays as it is, since several threads may ask it.
    """
    model = type(estimator)(**parameters)
    before = {n: value for n, value in vars(estimator).items() if n != "_pending"} | parameters
    vars(model).update(before)
    statistic = estimator._statistic
    if isinstance(statistic, Shrunk):
        if _shrinks(model):
            options = model.reg, model.center, model.confounds
            rows = replace(rows, reg=statistic.shrinkages(*options))
        statistic = statistic.inner
    model._learn(rows, statistic)
    found = {n: v for n, v in vars(model).items() if n not in before or v is not before[n]}
    return found | {"_solved": tuple(found)}


def _shrinks(estimator: Any) -> bool:
    """Whether a sum over all batches is to estimate ridges."""
    return estimator.reg in SHRINKAGES and not estimator.learns_from_rows


# ---- sums from elsewhere -------------------------------------------------------------------------


def open_statistic(estimator: Any, statistic: Any) -> Rows:
    """Check a sum over rows, note its views as those of the fit, and make rows that stand for them.

    Problems use only the number of rows here.
    """
    _refuse_what_reads_rows(estimator, statistic)
    inner = statistic.inner if isinstance(statistic, Shrunk) else statistic
    _check_kind(estimator, inner)
    widths = dict(inner.widths)
    forget(estimator, *NOTES)
    note_views(estimator, widths, dict.fromkeys(widths))
    if estimator.confounds is not None:
        check_names_of_confounds(estimator, tuple(widths))
        estimator._coding = {}
    check_number_of_views(estimator, tuple(widths))
    for name, count in inner.objects_by_view().items():
        if not count > 1:
            raise ValueError(
                f"{type(estimator).__name__} learns from at least two objects, but the moments of "
                f"view {name!r} are of {count:g}. Add those of more rows."
            )
    zeros = {name: np.zeros((1, width)) for name, width in widths.items()}
    views = estimator._accepted(Views(zeros), True)
    rows = Rows(
        views,
        n_components=estimator.n_components,
        needs_many=estimator.requires.many_rows,
        reading=Reading(center=estimator.center),
    )
    rows = replace(rows, reg=estimator._ridges(rows, True))
    return open_units(estimator, rows, batch=True)


def _refuse_what_reads_rows(estimator: Any, statistic: Any) -> None:
    """Refuse methods and parameters for which sums do not suffice."""
    own = type(estimator)
    by, kinds = (next(c for c in own.__mro__ if n in vars(c)) for n in ("statistic_of", "sums"))
    if not estimator.sums or not issubclass(kinds, by):
        instead = ", or partial_fit batch by batch" if hasattr(estimator, "partial_fit") else ""
        raise ValueError(
            f"{own.__name__} learns from the rows themselves, which sums do not hold: use fit"
            f"{instead}."
        )
    known = isinstance(statistic, Shrunk) or estimator.learns_from_rows
    of_rows = {"tau", "label_features"} | (set() if known else {"reg"})
    for parameter, value in estimator.get_params(deep=False).items():
        if isinstance(value, str) and (value == SEARCHED or parameter in of_rows):
            instead = "leave it out" if parameter == "label_features" else "give it a value"
            raise ValueError(
                f'{parameter}="{value}" looks at single rows, which sums do not hold: use fit, or '
                f"{instead}."
            )


def _check_kind(estimator: Any, statistic: Any) -> None:
    """Refuse another kind of statistic than `fit` computes, and moments of incomplete rows."""
    kinds, asked = estimator.sums, ""
    if estimator.missing != "error":
        kinds, asked = (OF_HOLES[estimator.missing],), f"missing={estimator.missing!r}"
    elif estimator.confounds is not None:
        kinds, asked = (Moments,), f"confounds={estimator.confounds!r}"
    if not isinstance(statistic, kinds):
        words = " or ".join(_words_for(kind) for kind in kinds)
        name = f"{type(estimator).__name__}({asked})"
        found = type(statistic).__name__
        raise TypeError(f"{name}.fit_statistic takes {words}, got {found}.")
    is_by_pair = isinstance(statistic, PairMoments)
    given = statistic.pairs.values() if is_by_pair else [statistic]
    given = [own for own in given if isinstance(own, Moments)]
    if any(np.isnan(own.means).any() for own in given):
        raise ValueError(
            "The moments are NaN, since cells were missing in some rows. Leave these rows out, or "
            'fit MVCCA(missing="pairwise") to mvcca.statistics.CellMoments.'
        )
    if isinstance(statistic, Moments) and len(np.unique(statistic.counts)) > 1:
        raise ValueError(
            "Views share different numbers of objects. Moments of partly paired views are "
            "PairMoments.of(views), whose parts add."
        )


def _words_for(kind: type) -> str:
    """Where a kind of statistic comes from."""
    if kind.__module__.startswith("mvcca.statistics"):
        return f"mvcca.statistics.{kind.__name__}"
    return f"the {kind.__name__} that `statistic_` is after partial_fit"
