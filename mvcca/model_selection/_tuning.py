"""Fits whose settings are chosen by how held-out rows are found.

Each fold is held out once, its rows are ranked, and the settings with the largest mean over the
folds win.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from mvcca.model_selection._fold_statistics import NO_FOLD, InnerFolds
from mvcca.model_selection._goals import Asked, Goal, goal_of
from mvcca.model_selection._search import Choice, Trials, at_edge, search
from mvcca.model_selection._sources import FromProducts, FromRefits, FromStatistic
from mvcca.model_selection._space_search import SpaceSearch
from mvcca.model_selection._spaces import RIDGES, Space, searched, space_of
from mvcca.problem import Rows, components_to_search
from mvcca.retrieval.bank import bank_of
from mvcca.retrieval.ranking import CORRECTED
from mvcca.views import Labels, Views
from mvcca.views.labels_by_view import LabelsByView

_OF_VARIANTS = ("n_components", "ranking")  # which every search chooses beside its parameters


# ---- ridges of fits from statistics --------------------------------------------------------------


def tuned(estimator: Any, rows: Rows) -> Callable[[Rows], None]:
    """The function that fits to the same rows in any basis, with settings that folds choose.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted by the function, with ``reg_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features.
    """
    goal = goal_of(estimator)
    check_goal(goal, estimator, rows)
    # Objects with equal confounds, such as those of one scanner, are no copies.
    folds = InnerFolds.of(rows.views.without(estimator.confounds), rows.labels)

    def learn(rows: Rows) -> None:
        source = FromStatistic.of(estimator, rows, folds, goal)
        choice = search(source, _settings()).choose()
        whole, statistic = source.parts.whole()
        estimator.learn(_with(choice, whole), statistic)
        _keep(choice, estimator)

    return learn


def tune_by_products(estimator: Any, rows: Rows, learn: Callable[[Rows], bool]) -> bool:
    """Fit CCA of wide views with settings that folds choose, if products with rows take less.

    Parameters
    ----------
    estimator : StatisticEstimator
        Fitted with ``reg_``, ``ranking_`` and ``cv_results_``.
    rows : Rows
        Training rows as features.
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
    source = FromProducts.of(estimator, rows, folds, goal, most_components=k)
    trials = search(source, _settings())
    if not trials.values:  # all ridges fit the rows almost exactly
        return False
    choice = trials.choose()
    whole = _with(choice, replace(rows, n_components=k))
    if not learn(whole):
        return False
    _keep(choice, estimator)
    return True


def _settings() -> list[dict[str, Any]]:
    """Ridges, the same for all views."""
    return [{"reg": reg} for reg in RIDGES]


def _with(choice: Choice, rows: Rows) -> Rows:
    """Rows for a fit with the settings that were chosen."""
    rows = replace(rows, reg=dict.fromkeys(rows.views.names, choice.params["reg"]))
    if choice.n_components is None:
        return rows
    return replace(rows, n_components=choice.n_components)


def _keep(choice: Choice, estimator: Any) -> None:
    """Set the attributes of a tuned fit."""
    estimator.reg_ = choice.params["reg"]
    estimator.ranking_ = choice.ranking
    estimator.cv_results_ = choice.cv_results


# ---- settings of any fit -------------------------------------------------------------------------


def held_out_source(
    estimator: Any,
    views: Views,
    y: Any,
    train: np.ndarray,
    test: np.ndarray,
    asked: Asked,
    labels: Labels | None = None,
    space: Space | None = None,
) -> FromRefits:
    """Models of an estimator that learn from one part of the objects and are asked of another.

    Parameters
    ----------
    estimator : estimator
        It is not fitted. Parameters that are "cv" are searched, and the number of components if it
        is None.
    views : Views
        All rows, in memory.
    y : labels or None
        Labels of all objects to learn from.
    train, test : ndarray of int
        Positions of the objects to learn from, and of those to rank.
    asked : Asked
        What is measured.
    labels : Labels, optional
        Labels of all objects that define relevant items, for the goal "class".
    space : Space, optional
        What is searched; by default, what suits the training part.

    Returns
    -------
    FromRefits
    """
    objects = np.sort(np.concatenate([train, test]))
    codes = np.where(np.isin(objects, test), 0, NO_FOLD)
    learned = LabelsByView.of(views, y) if estimator.requires.labels else None
    judged = None if labels is None else LabelsByView.of(views, labels)
    if len(objects) < len(views):
        rows = views.rows_of(objects)
        learned, judged = (None if own is None else own.take(rows) for own in (learned, judged))
        views = views[objects]
    views = views.with_ids(np.arange(1, len(views) + 1))
    folds, goal = InnerFolds(codes, asked), asked.goals[0]
    return FromRefits(estimator, views, folds, goal, learned, judged, shared_space=space)


def chosen(
    estimator: Any,
    views: Views,
    labels: LabelsByView | None,
    sample_weight: np.ndarray | None,
    options: Mapping[str, Any],
) -> Choice:
    """Choose the settings of a fit to these rows, by folds of them."""
    views = views.with_ids(np.arange(1, len(views) + 1))
    goal = goal_of(estimator)
    check_goal(goal, estimator, Rows(views, labels=labels))
    folds = InnerFolds.of(views, labels, space_of(estimator, views, labels).n_folds)
    learned = labels if estimator.requires.labels else None
    source = FromRefits(estimator, views, folds, goal, learned, labels, sample_weight, options)
    search = SpaceSearch([source])
    [trials] = search.choices().values()
    search.warn_of_lost_folds()
    return choice_with_components(trials, estimator, source.space)


def choice_with_components(trials: Trials, estimator: Any, space: Space) -> Choice:
    """The best settings, the number of components among them if it is "cv" without a space."""
    choice = trials.choose()
    if "n_components" not in {*searched(estimator)} - space.values.keys():
        return choice
    return replace(choice, params={**choice.params, "n_components": choice.n_components})


# ---- what was chosen -----------------------------------------------------------------------------


def tunable(estimator: Any, fixed: Collection[str] = ()) -> dict[str, Any] | None:
    """Values of parameters with which a fit searches all that it can, except the fixed ones.

    They are "cv" where that is allowed, and None for the number of components. The result is None
    if nothing would be searched.
    """
    found: dict[str, Any] = {}
    allowed = getattr(estimator, "_parameter_constraints", {})
    for name in estimator.get_params(deep=False).keys() - set(fixed):
        options = allowed.get(name, [])
        if any(isinstance(own, StrOptions) and "cv" in own.options for own in options):
            found[name] = "cv"
    if found and "n_components" not in {*found, *fixed} and None in allowed.get("n_components", []):
        found["n_components"] = None
    return found or None


def choice_of(estimator: Any) -> Choice | None:
    """The settings that a tuned estimator chose; None if it was not tuned.

    Parameters
    ----------
    estimator : fitted estimator

    Returns
    -------
    Choice or None
        With the number of components as it was fitted.
    """
    results = getattr(estimator, "cv_results_", None)
    if results is None or not hasattr(estimator, "ranking_"):  # of a search of scikit-learn
        return None
    names = [name.removeprefix("param_") for name in results if name.startswith("param_")]
    params = {name: getattr(estimator, f"{name}_") for name in names if name not in _OF_VARIANTS}
    chosen = params | {"ranking": estimator.ranking_, "n_components": estimator.n_components_}
    found = [i for i, own in enumerate(results["params"]) if _is_chosen(own, chosen)]
    if not found:
        return None
    best = max(found, key=lambda i: results["mean_test_score"][i])
    return Choice(
        params,
        estimator.ranking_,
        estimator.n_components_,
        float(results["mean_test_score"][best]),
        results,
        tuple(name for name, value in params.items() if at_edge(value, results[f"param_{name}"])),
    )


def _is_chosen(tried: Mapping[str, Any], chosen: Mapping[str, Any]) -> bool:
    """Whether a variant is the chosen one, whose number of components may be that of all."""
    return tried in (chosen, {**chosen, "n_components": None})


def fit_chosen(estimator: Any, choice: Choice, X: Views, y: Any) -> None:
    """Fit with the settings that folds chose, ranking included."""
    estimator.set_params(**choice.parameters).fit(X, y)
    estimator.ranking_ = choice.ranking
    if choice.ranking.endswith(CORRECTED):
        estimator.bank_ = bank_of(estimator, X)


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
