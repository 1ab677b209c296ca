"""Numbers of features of sparse methods, chosen by what held-out rows say of the scores.

Training parts of folds are sums of moments, and held-out moments give the correlation of the scores
of any weights: rows are read once, whatever is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from mvcca.model_selection.fold_statistics import (
    InnerFolds,
    Models,
    Parts,
    naming_folds,
    one_left_out,
)
from mvcca.model_selection.goals import Goal, Value
from mvcca.model_selection.search import Setting, Trials, search
from mvcca.problem import Rows
from mvcca.problem.ascent import BlockMethod, Limit, NothingShared, Solution
from mvcca.problem.block_covariances import BlockCovariances, Covariances

TAUS = (1.0, 0.5, 0.1)
_COUNTS = (2, 3, 5, 7, 10, 14, 20, 30, 50, 80)  # then each about 1.7 times the one before
_MOST = 1000  # features that are no longer few; all are tried besides
_MOST_BY_ANGLES = 50  # of τ < 1, whose features enter one at a time

LimitsOf = Callable[[Setting], dict[str, Limit]]
Part = tuple[Rows, Any]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LeftOutFold:
    """What a model of one fold learns from, and what it is measured on.

    Attributes
    ----------
    covariances : BlockCovariances
        Of the rows of all other folds, without the components before.
    held_out : Covariances
        Of held-out rows, of the same features in the same units.
    """

    covariances: BlockCovariances
    held_out: Covariances


@dataclass(frozen=True, eq=False)
class FromCovariances:
    """Models of one component for any numbers of features, from covariances of training parts.

    Attributes
    ----------
    parts : sequence of LeftOutFold
        One for each fold that is left out.
    method : BlockMethod
        What the models maximize.
    limits_of : callable
        Constraints of a setting.
    number : int
        Number of the component, from 0.
    """

    parts: Sequence[LeftOutFold]
    method: BlockMethod
    limits_of: LimitsOf
    number: int = 0
    goal: Goal = "correlation"

    def models(self) -> Models:
        """One for each fold."""
        return one_left_out(len(self.parts))

    def solved(
        self, left_out: tuple[int, ...], settings: Sequence[Setting]
    ) -> Iterator[tuple[int, Solution | None]]:
        """The best solution of each setting; None if views have nothing more in common."""
        part = self.parts[left_out[0]]
        for tau in sorted({own["tau"] for own in settings}, reverse=True):
            numbers = [number for number, own in enumerate(settings) if own["tau"] == tau]
            yield from zip(
                numbers, self.solutions(part, [settings[i] for i in numbers]), strict=True
            )
        part.covariances.forget()

    def solutions(self, part: LeftOutFold, settings: Sequence[Setting]) -> list[Solution | None]:
        """Those of settings of one τ, as `BlockMethod.solve` finds them."""
        problems = [self.limits_of(own) for own in settings]
        try:
            found = self.method.solve(part.covariances, problems, self.number)
        except NothingShared:
            return [None] * len(problems)
        return [own[0] if own else None for own in found]

    def values(
        self, model: Solution | None, fold: int
    ) -> Iterator[tuple[str | None, int | None, Value]]:
        """Mean correlation of the scores of linked views on the fold."""
        value = 0.0
        if model is not None:
            part = self.parts[fold]
            rotated = {n: part.covariances.rotated(n, w) for n, w in model.weights.items()}
            R, place = part.held_out.correlations(rotated), list(rotated).index
            pairs = model.covariances.items()  # with the signs that training rows gave them
            signed = [np.copysign(1, c) * R[place(j), place(k)] for (j, k), c in pairs]
            value = float(np.mean(signed))
        yield None, None, Value(value, value)

    def without(self, setting: Setting) -> FromCovariances:
        """Models of the next component, of what one with this setting leaves."""
        parts = []
        for part in self.parts:
            (found,) = self.solutions(part, [setting])
            left = part.covariances
            if found is not None:
                left = self.method.without(left, found)
            parts.append(LeftOutFold(left, part.held_out))
        return replace(self, parts=parts, number=self.number + 1)


def choose_counts(
    source: FromCovariances, widths: Mapping[str, int], fixed: Mapping[str, Any]
) -> Trials:
    """Try numbers of features and τ, of which those with the largest mean correlation are best.

    One number for all views is tried first, then one view at a time, twice. Of equally good
    settings, the one with the fewest features is taken.

    Parameters
    ----------
    source : FromCovariances
        Models of one component.
    widths : mapping of str to int
        Number of features of each view that vary.
    fixed : mapping of str to object
        Settings that are given: ``n_features`` by view, or ``tau``.
    """
    taus = TAUS if "tau" not in fixed else (fixed["tau"],)
    if "n_features" in fixed:
        return search(source, [{**fixed, "tau": tau} for tau in sorted(taus)])
    settings = [
        {"n_features": {name: min(count, width) for name, width in widths.items()}, "tau": tau}
        for tau in taus
        for count in counts_to_try(max(widths.values()), tau)
    ]
    trials = search(source, sorted(settings, key=_order))
    for name in [*widths] * 2 if len(widths) > 1 else ():
        best, tau = trials.chosen["n_features"], trials.chosen["tau"]
        others = [{**best, name: count} for count in counts_to_try(widths[name], tau)]
        new = [{"n_features": counts, "tau": tau} for counts in others]
        new = [own for own in new if own not in trials.settings]
        if new:
            trials = trials.extended([search(source, new)], _order)
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
            raise naming_folds(error, folds, (fold,)) from error
    return found, (rows, None) if parts is None else parts.whole()
