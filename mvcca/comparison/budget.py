"""What a comparison can afford: each method searched in full, coarsely, not at all, or left out.

Costs are estimated from shapes before anything is fitted. Where they exceed the budget, the method
whose search costs most is searched more coarsely first; what is not run in full is said by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from joblib import effective_n_jobs
from sklearn.base import clone

from mvcca.comparison.candidates import DEFAULTS, Candidate, Settings
from mvcca.comparison.costs import (
    Cost,
    Shapes,
    Work,
    costs_of,
    fit_work,
    parse_budget,
    ranking_work,
    search_work,
    without_search,
)
from mvcca.comparison.data import Data
from mvcca.comparison.progress import time_in_words
from mvcca.comparison.tuning import INNER_FOLDS, is_nested
from mvcca.machine.memory import available_bytes
from mvcca.model_selection import Effort, searched, space_of
from mvcca.model_selection.folds import Fold
from mvcca.views.labels_by_view import LabelsByView

SHARE_OF_MEMORY = 0.8  # of what is available
_EFFORTS: tuple[Effort, ...] = ("full", "coarse")


def affordable(
    candidates: Sequence[Candidate],
    data: Data,
    folds: Sequence[Fold],
    settings: Settings,
    n_jobs: int | None = None,
) -> list[Candidate]:
    """Candidates with the effort that the budget allows them, and their estimated cost."""
    plans = {one.name: _plans(one) for one in candidates}
    works = {
        f"{name} {number}": work
        for name, own in plans.items()
        for number, plan in enumerate(own)
        if (work := _work(plan, data, folds, settings)) is not None
    }
    costs = costs_of(works)
    ways = {
        name: [replace(plan, cost=costs.get(f"{name} {n}")) for n, plan in enumerate(own)]
        for name, own in plans.items()
    }
    if settings.budget is None:
        return [own[0] for own in ways.values()]
    seconds = parse_budget(settings.budget) * effective_n_jobs(n_jobs)
    chosen = dict.fromkeys(ways, 0)
    for step in range(len(_EFFORTS)):  # every search is coarse before one is left out
        savings = {
            name: _seconds(own[step]) - _seconds(own[step + 1])
            for name, own in ways.items()
            if step + 1 < len(own)
        }
        for name in sorted(savings, key=lambda name: -savings[name]):
            if sum(_seconds(own[chosen[other]]) for other, own in ways.items()) > seconds:
                chosen[name] = step + 1
    kept = [own[chosen[name]] for name, own in ways.items()]
    return _within(kept, seconds, settings.budget)


def _within(kept: list[Candidate], seconds: float, budget: Any) -> list[Candidate]:
    """Leave out the most expensive methods until the others are within the budget and memory."""
    memory = SHARE_OF_MEMORY * available_bytes()
    total = sum(map(_seconds, kept))
    for one in sorted(kept, key=_seconds, reverse=True):
        too_long = total > seconds
        if one.cost is None or not (too_long or one.cost.n_bytes > memory):
            continue
        total -= _seconds(one)
        limit = f"budget={budget!r}" if too_long else f"{memory / 1e9:.1f} GB of memory"
        reason = (
            f"left out: estimated at {in_words(one.cost)}, beyond {limit}. Pass a larger budget, "
            "or budget=None, to include it"
        )
        kept = [replace(own, reason=reason) if own is one else own for own in kept]
    return kept


def in_words(cost: Cost) -> str:
    """Time and memory, as in "3 min and 1.2 GB"."""
    return f"{time_in_words(cost.seconds)} and {cost.n_bytes / 1e9:.1f} GB"


def _seconds(candidate: Candidate) -> float:
    return 0.0 if candidate.cost is None else candidate.cost.seconds


def _plans(candidate: Candidate) -> list[Candidate]:
    """A candidate with all efforts, from the full search to default settings."""
    if not candidate.is_tuned:
        return [candidate]
    plans = [replace(candidate, effort=effort) for effort in _EFFORTS]
    if candidate.method is None:  # a user asked for it
        return plans
    own = candidate.estimator.get_params(deep=False)
    names = searched(candidate.estimator)
    fixed = {name: value for name, value in own.items() if name not in names}
    if fixed.get("n_components", 0) is None:
        del fixed["n_components"]
    default = candidate.method.build({**DEFAULTS, **fixed})
    return [*plans, replace(candidate, estimator=default, is_tuned=False, effort=None)]


def _work(
    candidate: Candidate, data: Data, folds: Sequence[Fold], settings: Settings
) -> Work | None:
    """Work of choosing settings for all folds, of the fits and of the rankings."""
    if candidate.lacks(data) is not None:
        return None
    n_train, n_test = (
        round(sum(map(len, parts)) / len(folds))
        for parts in ([fold.train for fold in folds], [fold.test for fold in folds])
    )
    shapes = Shapes.of(data, n_train)
    plain = without_search(candidate.estimator)
    fit, ranking = fit_work(plain, shapes), ranking_work(plain, shapes, n_test)
    if fit is None or ranking is None:
        return None
    work = len(folds) * (fit + ranking)
    goal = settings.goal(data)
    if not candidate.is_tuned or goal is None:
        return work
    assert candidate.effort is not None
    labels = None if data.fit_labels is None else LabelsByView.of(data.views, data.fit_labels)
    space = space_of(candidate.estimator, data.views, labels)
    space = space.of(candidate.estimator, candidate.effort)
    nested = is_nested(data, folds, candidate)
    estimator = clone(candidate.estimator)
    if space.most_components is not None:
        estimator.set_params(n_components=space.most_components)
    search = search_work(
        estimator,
        Shapes.of(data, len(data.views)) if nested else shapes,
        goal,
        n_settings=space.n_settings,
        n_folds=len(folds) if nested else INNER_FOLDS,
        n_ridges=max(1, len(space.ridges)),
        nested=nested,
        with_numbers=space.has_prefixes,
    )
    assert search is not None
    return work + (1 if nested else len(folds)) * search
