"""Fits whose settings are chosen by how held-out rows are found.

Each fold is held out once, its rows are ranked, and the settings with the largest mean over the
folds win.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import StrOptions

from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.model_selection.goals import Goal, goal_of
from mvcca.model_selection.questions import asks_questions, keep_questions
from mvcca.model_selection.search import DIGITS, Choice, Setting, Trials, search
from mvcca.model_selection.sources import FromProducts, FromRefits, FromStatistic
from mvcca.model_selection.space_search import SpaceSearch
from mvcca.model_selection.spaces import FIRST_RIDGES, RIDGES, Scales, Space, searched
from mvcca.problem import Problem, Rows, climb
from mvcca.problem.route import components_to_search
from mvcca.retrieval.bank import bank_of
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views import Views

# ---- ridges and units of fits from statistics ----------------------------------------------------


def tune(estimator: Any, rows: Rows) -> None:
    """Fit with settings that folds choose, from one pass over the rows.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted with ``reg_``, ``scale_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features, with the units of all views that may be standardized.
    """
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    # Objects with equal confounds, such as those of one scanner, are no copies.
    folds = InnerFolds.of(rows.views.without(estimator.confounds), rows.labels)
    sums: dict[Any, FromStatistic] = {}

    def source(rows: Rows) -> FromStatistic:
        if rows.reading.bases:
            return FromStatistic.of(estimator, rows, folds, goal)
        key = rows.reading.products, rows.views.names
        if key not in sums:  # the same in all units
            sums[key] = FromStatistic.of(estimator, rows, folds, goal)
        own = sums[key]
        return replace(own, rows=rows, parts=replace(own.parts, rows=rows))

    def tried(rows: Rows, settings: Sequence[Setting]) -> Trials:
        return climb(rows, lambda own: search(source(own), settings))

    if rows.reading.units is None:
        rows = climb(rows, lambda own: _with_units(estimator, rows, source(own)))
    known: Mapping[str, bool] = {}
    asked = set(rows.reading.units or {}) if "scale" in searched(estimator) else set()
    if len(asked) > 2 and rows.views.is_paired:
        related = asked & climb(rows, lambda own: _related(estimator, source(own)))
        if 1 < len(related) < len(asked):  # noise would decide on the units of other views
            others = _without(rows, asked - related)
            known = _choose_with_units(estimator, others, tried)[0].params["scale"]
    choice, rows = _choose_with_units(estimator, rows, tried, known)

    def learn(rows: Rows) -> None:
        own = source(rows)
        whole, statistic = own.parts.whole()
        whole = _with(choice, whole)
        estimator._learn(whole, statistic)
        _keep(choice, estimator)
        if asks_questions(estimator, whole.widths(), goal):
            keep_questions(estimator, estimator.problem(whole, statistic), own)

    climb(rows, learn)
    _keep(choice, estimator)


def _solve_questions(estimator: Any, choice: Choice, views: Views, y: Any, goal: Goal) -> None:
    """Let folds of the training rows of a fitted estimator choose how it answers questions."""

    def learn(rows: Rows) -> None:
        source = FromStatistic.of(model, rows, folds, goal)
        whole, statistic = source.parts.whole()
        keep_questions(model, model.problem(whole, statistic), source)

    model = clone(estimator)  # to open rows forgets what was fitted
    if choice.n_components is not None:  # of the shared space
        model.set_params(n_components=None)
    rows = _with(choice, model._open_rows(views, y, None))
    model.ranking_ = estimator.ranking_
    folds = InnerFolds.of(rows.views.without(estimator.confounds), rows.labels)
    climb(rows, learn)
    if hasattr(model, "questions_"):
        estimator.questions_ = model.questions_


def tune_by_products(estimator: Any, rows: Rows, learn: Callable[[Rows], bool]) -> bool:
    """Fit CCA of wide views with settings that folds choose, if products with rows take less.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted with ``reg_``, ``scale_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features, with the units of all views that may be standardized.
    learn : callable
        Fits to rows by products, and says whether they suffice.

    Returns
    -------
    bool
        Whether it is fitted. Too small a ridge may need matrices.
    """
    k = components_to_search(rows, len(RIDGES))
    if k is None:
        return False
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    folds = InnerFolds.of(rows.views, rows.labels)

    def tried(rows: Rows, settings: Sequence[Setting]) -> Trials:
        source = FromProducts.of(estimator, rows, folds, goal, most_components=k)
        return search(source, settings)

    units = {  # products would need a copy of rows in files
        name: own
        for name, own in (rows.reading.units or {}).items()
        if not rows.views.blocks[name].is_lazy
    }
    found = _choose_with_units(estimator, rows.read(units=units), tried)
    if found is None:  # all ridges fit the rows almost exactly
        return False
    choice, rows = found
    if not learn(_with(choice, replace(rows, n_components=k))):
        return False
    _keep(choice, estimator)
    return True


def _with_units(estimator: Any, rows: Rows, source: FromStatistic) -> Rows:
    """Rows with the units that the statistic of all of them tells."""
    units = estimator.problem(*source.parts.whole()).units
    estimator.scale_ = {name: name in units for name in rows.reading.asked}
    return rows.read(units=units)


def _related(estimator: Any, source: FromStatistic) -> set[str]:
    """Views beside which folds can tell the units of others."""
    problem: Problem = estimator.problem(*source.parts.whole())
    return problem.related


def _without(rows: Rows, names: Collection[str]) -> Rows:
    """The rows of other views, which show all objects."""
    views = rows.views.select([name for name in rows.views.names if name not in names])
    labels = rows.labels and rows.labels.take(views.rows_of(np.arange(len(views))))
    units = {name: own for name, own in (rows.reading.units or {}).items() if name in views}
    return replace(rows, views=views, labels=labels).read(units=units)


def _choose_with_units(
    estimator: Any,
    rows: Rows,
    tried: Callable[[Rows, Sequence[Setting]], Trials],
    known: Mapping[str, bool] | None = None,
) -> Any:
    """The best ridge, and units of the views, and rows in these units; None if none has a value.

    Ways to scale the columns of views for which that is not `known` are compared with a few ridges,
    and all ridges are tried for the best of them. `tried` returns the trials of settings for rows
    in given units.
    """
    asked = searched(estimator)
    ridges = RIDGES if "reg" in asked else (None,)
    if "scale" not in asked or not rows.reading.units:
        trials = tried(rows, [_setting(None, reg) for reg in ridges])
        return (trials.choose(), rows) if trials.values else None
    units = rows.reading.units
    assert units is not None

    def of(scaling: Scales, ridges: Sequence[float | None]) -> Trials:
        own = rows.read(units={name: unit for name, unit in units.items() if scaling.get(name)})
        settings = [_setting(scaling, reg) for reg in ridges]
        return tried(own, settings)

    first = [reg for reg in ridges if reg is None or reg in FIRST_RIDGES]
    trials, known = Trials(goal_of(estimator), []), known or {}
    names = [name for name in units if name not in known]
    ways = [{**known, **own} for own in Scales.first(names)]
    scalings = [Scales((name, own[name]) for name in units) for own in ways]
    trials = trials.extended([of(scaling, first) for scaling in scalings], _order)
    if not trials.values:
        return None
    if len(names) > 2:  # one other view each, and all that are better so, in any order of the views
        start, reg = trials.chosen["scale"], trials.chosen.get("reg")
        others = {name: of(start.flipped(name), [reg]) for name in names}
        values = {n: round(own.value, DIGITS) for n, own in others.items() if own.values}
        better = [name for name in values if values[name] > round(trials.value, DIGITS)]
        several = [of(start.flipped(*better), [reg])] if len(better) > 1 else []
        trials = trials.extended([*others.values(), *several], _order)
    best = trials.chosen["scale"]
    rest = [reg for reg in ridges if reg not in first]
    if rest:
        trials = trials.extended([of(best, rest)], _order)
    choice = trials.among(lambda setting: setting["scale"] == best).choose()
    rows = rows.read(units={name: unit for name, unit in units.items() if best[name]})
    return replace(choice, cv_results=trials.cv_results()), rows


def _setting(scaling: Scales | None, reg: float | None) -> Setting:
    setting = {} if scaling is None else {"scale": scaling}
    return setting if reg is None else {**setting, "reg": reg}


def _order(setting: Setting) -> Any:
    """Place among equally good settings, of which the last wins: scaled less, larger ridges."""
    return setting["scale"].order, setting.get("reg", 0.0)


def _with(choice: Choice, rows: Rows) -> Rows:
    """Rows for a fit with the settings that were chosen."""
    if "reg" in choice.params:
        rows = replace(rows, reg=dict.fromkeys(rows.views.names, choice.params["reg"]))
    if choice.n_components is None:
        return rows
    return replace(rows, n_components=choice.n_components)


def _keep(choice: Choice, estimator: Any) -> None:
    """Set the attributes of a tuned fit."""
    for name, value in choice.params.items():
        setattr(estimator, f"{name}_", dict(value) if name == "scale" else value)
    estimator.ranking_ = choice.ranking
    estimator.cv_results_ = choice.cv_results


# ---- settings of any fit -------------------------------------------------------------------------


def chosen(estimator: Any, rows: Rows, options: Mapping[str, Any]) -> Choice:
    """Choose the settings of a fit to these rows, by folds of them."""
    rows = replace(rows, views=rows.views.with_ids(np.arange(1, len(rows.views) + 1)))
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    folds = InnerFolds.of(rows.views, rows.labels, Space.offered_by(estimator, rows).n_folds)
    learned = rows if estimator.requires.labels else replace(rows, labels=None)
    source = FromRefits(estimator, learned, folds, goal, rows.labels, options)
    search = SpaceSearch((source,))
    [trials] = search.choices().values()
    search.warn_of_lost_folds()
    return source.space.choice(trials, estimator)


# ---- what was chosen -----------------------------------------------------------------------------


def tunable(estimator: Any, fixed: Collection[str] = ()) -> dict[str, Any] | None:
    """Values of parameters with which a fit searches all that it can, except the fixed ones.

    They are "cv" where that is allowed, and None for the number of components. The result is None
    if nothing would be searched, or if the estimator searches by default for a goal of its own.
    """
    found: dict[str, Any] = {}
    allowed = getattr(estimator, "_parameter_constraints", {})
    if "cv_goal" not in allowed:
        return None
    for name in estimator.get_params(deep=False).keys() - set(fixed):
        options = allowed.get(name, [])
        if name == "scale":  # which "auto" lets folds choose beside any other
            continue
        if any(isinstance(own, StrOptions) and "cv" in own.options for own in options):
            found[name] = "cv"
    if found and "n_components" not in {*found, *fixed} and None in allowed.get("n_components", []):
        found["n_components"] = None
    return found or None


def fit_chosen(estimator: Any, choice: Choice, X: Views, y: Any, goal: Goal | None = None) -> None:
    """Fit with the settings that folds chose for a goal, ranking included."""
    estimator.set_params(**choice.parameters).fit(X, y)
    estimator.ranking_ = choice.ranking
    if choice.ranking.endswith(CORRECTED):
        estimator.bank_ = bank_of(estimator, X)
    widths = X.without(getattr(estimator, "confounds", None)).widths
    if goal is not None and asks_questions(estimator, widths, goal):
        _solve_questions(estimator, choice, X, y, goal)


def check_goal(goal: Goal, estimator: Any, rows: Rows) -> None:
    """Refuse a goal that the rows cannot tell."""
    if len(rows.views.without(estimator.confounds).names) < 2:
        raise ValueError(
            "Folds choose settings by how rows of one view find those of another, and there is "
            'only one view. Give values in place of "cv".'
        )
    has_pairs = (rows.views.seen.sum(axis=1) > 1).any()
    if goal != "class" and not has_pairs:
        raise ValueError(
            f"cv_goal={goal!r} needs objects that are seen in two views; there are none. "
            'Use cv_goal="class".'
        )
    if goal == "class" and not (rows.labels is not None and rows.labels.distinct.are_sets):
        raise ValueError(
            f'cv_goal="class" of {type(estimator).__name__} needs classes or label sets as y: real '
            'label vectors do not say which items are relevant. Use cv_goal="object" for pairs.'
        )
