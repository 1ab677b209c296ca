"""Numbers of features of sparse methods, chosen by what held-out rows say of the scores.

Training parts of folds are sums of moments, and held-out moments give the correlation of the scores
of any weights: rows are read once, whatever is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from mvcca.model_selection.fold_statistics import InnerFolds, Parts, naming_folds
from mvcca.model_selection.search import Setting, Trials
from mvcca.problem import Rows
from mvcca.problem.rows import check_rows_vary

TAUS = (1.0, 0.5, 0.1)
_COUNTS = (2, 3, 5, 7, 10, 14, 20, 30, 50, 80)  # then each about 1.7 times the one before
_MOST = 1000  # features that are no longer few; all are tried besides
_MOST_BY_ANGLES = 50  # of τ < 1, whose features enter one at a time

Part = tuple[Rows, Any]
T = TypeVar("T")


def choose_counts(
    attempt: Callable[[Sequence[Setting]], Trials],
    widths: Mapping[str, int],
    fixed: Mapping[str, Any],
) -> Trials:
    """Try numbers of features and τ, of which those with the largest mean correlation are best.

    One number for all views is tried first, then one view at a time, twice. Of equally good
    settings, the one with the fewest features is taken.

    Parameters
    ----------
    attempt : callable
        Values of settings of one component on all folds; those of equal τ follow each other.
    widths : mapping of str to int
        Number of features of each view that vary.
    fixed : mapping of str to object
        Settings that are given: ``n_features`` by view, or ``tau``.
    """
    taus = TAUS if "tau" not in fixed else (fixed["tau"],)
    if "n_features" in fixed:
        return attempt([{**fixed, "tau": tau} for tau in sorted(taus)])
    settings = [
        {"n_features": {name: min(count, width) for name, width in widths.items()}, "tau": tau}
        for tau in taus
        for count in counts_to_try(max(widths.values()), tau)
    ]
    trials = attempt(settings).extended([], _order)
    for name in [*widths] * 2 if len(widths) > 1 else ():
        best, tau = trials.chosen["n_features"], trials.chosen["tau"]
        others = [{**best, name: count} for count in counts_to_try(widths[name], tau)]
        new = [{"n_features": counts, "tau": tau} for counts in others]
        if new := [own for own in new if own not in trials.settings]:
            trials = trials.extended([attempt(new)], _order)
    return trials


def counts_to_try(width: int, tau: float) -> list[int]:
    """Those of `counts_up_to`, of which least angles, for τ < 1, take 50 at most."""
    most = width if tau == 1 else _MOST_BY_ANGLES
    return [count for count in counts_up_to(width) if count <= most]


def counts_up_to(width: int) -> list[int]:
    """2, 3, 5, 7, 10, 14, 20, 30, 50, 80, 150, ... up to 1,000, and all."""
    counts, most = [*_COUNTS, 150], min(width, _MOST)
    while counts[-1] < most:
        counts.append(int(round(1.7 * counts[-1], -1)))
    return [count for count in counts if count < most] + [width]


def _order(setting: Setting) -> tuple[float, float]:
    """Place among equally good settings, of which the last wins: fewest features, largest τ."""
    return -float(sum(setting["n_features"].values())), setting["tau"]


def over_folds(
    model: Any, rows: Rows, folds: InnerFolds, learn: Callable[[Part, Part], T]
) -> tuple[list[T], Part]:
    """What is learned from the training part and the held-out part of each fold; and all rows.

    A part is rows and their statistic, which is None if `model.takes_row_products`.
    """
    trains = [folds.without(left_out) for left_out, _ in folds.models()]
    parts = None if model.takes_row_products(rows) else Parts.of(model, rows, trains)
    found = []
    for fold, train in enumerate(trains):
        test, statistic = rows.take(np.flatnonzero(folds.codes == fold)), None
        try:
            if parts is not None:
                statistic = parts.cells[int(np.flatnonzero(~parts.in_part[fold])[0])]
            own = (rows.take(train), None) if parts is None else parts[fold]
            found.append(learn(own, (test, statistic)))
        except ValueError as error:  # a view that varies in one fold only, say
            check_rows_vary(rows.views)
            raise naming_folds(error, folds, (fold,)) from error
    return found, (rows, None) if parts is None else parts.whole()
