"""What is compared: the user's estimators or methods selected by name, and common settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mvcca.base import Requirements
from mvcca.comparison.data import Data
from mvcca.comparison.registry import METHODS, LearnsFrom, Method, did_you_mean, selected
from mvcca.machine.deadline import seconds_of
from mvcca.model_selection.goals import Asked, Goal
from mvcca.model_selection.tuning import tunable
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.measure import Measure
from mvcca.retrieval.relevance import RelevanceBy

# Parameters of methods selected by name that are not tuned; networks keep their own ridge.
DEFAULTS = {"n_components": 10, "reg": 0.1}
Tune = bool | Literal["all"]


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings common to all methods."""

    measures: tuple[str, ...]  # the first one determines the best method and parameters
    relevance: RelevanceBy | None
    search: Mapping[str, Sequence[Any]]  # values of hyper-parameters
    params: Mapping[str, Any]  # the user's, for methods selected by name that have them
    random_state: int
    directions: Directions = "cross"
    label_vectors: np.ndarray | None = None  # of the labels that define relevance
    tune: Tune = True  # methods selected by name, or "all" estimators
    budget: str | float | None = None  # time for all methods
    gallery_size: int | None = None  # that the user will search; None for the number of objects
    are_default: bool = True  # whether `measures` are

    def goals(self, data: Data) -> tuple[Goal, ...]:
        """What is measured, and settings are chosen for: the same object, and the same class."""
        if self.by_measure(data):
            return (self.goal_of(self.measures[0], data),)
        names = [name for name in self.measures if not Measure.parse(name).is_of_gallery]
        found = {self.goal_of(name, data) for name in names or self.measures}
        return tuple(goal for goal in ("object", "class") if goal in found)

    def goal_of(self, measure: str, data: Data) -> Goal:
        """The goal whose settings a measure is taken of."""
        if self._is_within(data) and data.labels is not None:
            return "class"  # any row finds itself
        by_pairs = data.relevance_by(measure, self.relevance) == "pairs"
        return "object" if by_pairs else "class"

    def by_measure(self, data: Data) -> bool:
        """Whether the first measure decides in place of a goal, so that nothing is searched.

        Goals need labels with common names, and directions from one view to one other.
        """
        if self.pairs_of_views(data.views.names) is None:
            return True
        if self._is_within(data) and data.labels is None:
            return True
        first = data.relevance_by(self.measures[0], self.relevance)
        return first == "words" and any(data.strangers())

    def _is_within(self, data: Data) -> bool:
        """Whether all queries search their own view."""
        pairs = self.pairs_of_views(data.views.names)
        return bool(pairs) and all(p == q for p, q in pairs or ())

    def pairs_of_views(self, names: Sequence[str]) -> tuple[tuple[str, str], ...] | None:
        """Views of queries and of items; none for all different ones, None for joined views."""
        within = tuple((name, name) for name in names)
        if self.directions == "cross":
            return ()
        if self.directions == "within":
            return within
        if self.directions == "all":
            return (*permutations(names, 2), *within)
        found = []
        for pair in self.directions:
            single = [(own,) if isinstance(own, str) else tuple(own) for own in pair]
            if any(len(own) > 1 for own in single):
                return None
            found.append((single[0][0], single[1][0]))
        return tuple(found)

    def asked(self, data: Data) -> Asked:
        """What is asked of held-out rows."""
        pairs = self.pairs_of_views(data.views.names)
        size, n_views = self.gallery_size or len(data.views), len(data.views.names)
        return Asked(self.goals(data), size, pairs or None, n_views)

    def check(self) -> None:
        """Raise ValueError or TypeError for values that fit no data."""
        if not isinstance(self.random_state, Integral) or self.random_state < 0:
            raise ValueError(
                f"Expected random_state to be a seed of at least 0, got {self.random_state!r}."
            )
        if self.budget is not None:
            seconds_of(self.budget)
        size = self.gallery_size
        if size is not None and (not isinstance(size, Integral) or size < 1):
            raise ValueError(f"Expected gallery_size to be a number of items, got {size!r}.")
        if self.tune not in (True, False, "all"):
            raise ValueError(f"Expected tune to be True, False or 'all', got {self.tune!r}.")
        if not isinstance(self.search, Mapping):
            raise TypeError(
                "Expected search to map parameters to their values, such as {'reg': [0.01, 1]}, "
                f"got {self.search!r}."
            )
        for name, values in self.search.items():
            if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
                raise ValueError(
                    f"search: expected a sequence of values of {name}, got {values!r}."
                )
        if not self.measures:
            raise ValueError("Expected at least one measure, got none.")
        for name in self.measures:
            Measure.parse(name)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A method to compare."""

    name: str
    estimator: Any  # it is cloned before it is fitted
    learns_from: LearnsFrom
    method: Method | None = None  # entry of the registry, if it was selected by name
    goals: tuple[Goal, ...] = ()  # that it is measured for
    is_tuned: bool = False  # whether folds choose parameters, which are "cv" in `estimator`
    may_be_dropped: bool = False  # if it cannot be the best: not if the user names it

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks."""
        return hasattr(self.estimator, "callbacks")

    def grid(self, settings: Settings) -> list[dict[str, Any]]:
        """Combinations of the values that the user gives for its parameters."""
        known = self.estimator.get_params()
        return [*ParameterGrid({k: list(v) for k, v in settings.search.items() if k in known})]

    def lacks(self, data: Data) -> str | None:
        """What the data lack to fit the method to any part of them; None if it can be fitted."""
        if self.learns_from == "labels":
            return "needs labels" if data.fit_labels is None else None
        return None if data.has_pairs else "needs objects seen in two views; these are unpaired"

    def labels_of(self, data: Data, objects: np.ndarray) -> Any:
        """The labels of some objects to learn from; a user's estimator may not know `Labels`."""
        if self.method is not None:
            return None if data.fit_labels is None else data.fit_labels[objects]
        if isinstance(data.y, list):
            return [data.y[i] for i in objects]
        return None if data.y is None else data.y[objects]


def candidates_of(
    methods: Any, data: Data, settings: Settings, others: Sequence[Candidate] = ()
) -> list[Candidate]:
    """Candidates that a user names or gives, beside `others` that were compared before."""
    if isinstance(methods, Mapping):
        found = [_given(str(name), own, data, settings) for name, own in methods.items()]
    else:
        found = _chosen(methods, data, settings)
    if not found:
        raise ValueError("Expected at least one method to compare, got none.")
    together = [*others, *found]
    names = [one.name for one in together]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"There is a method {name!r} already; give the new one another name.")
    by_name = [one.method for one in together if one.method is not None]
    known: set[str] = set().union(*(method.takes() for method in by_name))
    if by_name:
        for name in settings.params.keys() - known:
            titles = ", ".join(method.name for method in by_name)
            raise ValueError(f"{name!r} is not a parameter of {titles}{_hint(name, known)}")
    known = set().union(*(one.estimator.get_params() for one in together))
    for name in settings.search.keys() - known:
        raise ValueError(
            f"search: {name!r} is not a parameter of any of the methods{_hint(name, known)}"
        )
    return found


def _hint(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known) or "."


def _chosen(methods: Any, data: Data, settings: Settings) -> list[Candidate]:
    """Methods by name; of the default group, those that apply to the data."""
    names = [methods] if isinstance(methods, str | BaseEstimator) else list(methods)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            "Expected names of methods (see mvcca.methods()), or a mapping of names to "
            f"estimators such as {{'CCA': CCA(2)}}, got {methods!r}."
        )
    found = []
    for method in (METHODS[name] for name in selected(names)):
        is_default = method.name not in names and names == ["default"]
        if method.name not in names and "default" in names and not _is_worthwhile(method, data):
            continue
        found.append(_named(method, data, settings, is_default, method.name not in names))
    return found


def _is_worthwhile(method: Method, data: Data) -> bool:
    """Whether a method of the default group applies to the data and duplicates no other."""
    if method.name == "cca":  # of two views
        return len(data.views.names) == 2 and data.has_pairs
    if method.name == "mvcca":  # on two views it is CCA
        return len(data.views.names) > 2 and data.has_pairs
    return data.has_pairs if method.learns_from == "pairs" else data.fit_labels is not None


def _named(
    method: Method, data: Data, settings: Settings, is_default: bool, in_group: bool
) -> Candidate:
    given: dict[str, Any] = {"random_state": settings.random_state}
    searched = settings.params.keys() | settings.search.keys()
    tuned = tunable(method.build(given), searched) if _tunes(data, settings) else None
    if data.texts and method.reads_words:
        given["tokens"] = data.texts
    defaults = {} if method.is_deep or tuned is not None else DEFAULTS
    estimator = method.build({**given, **defaults, **settings.params})
    goals = settings.goals(data)
    if is_default and method.learns_from == "labels" and "class" in goals:
        goals = ("class",)  # whether rows show the same object is not in the labels
    found = Candidate(
        method.title, estimator, method.learns_from, method, goals, may_be_dropped=in_group
    )
    return found if tuned is None else _searched(found, tuned, data, settings)


def _given(name: str, estimator: Any, data: Data, settings: Settings) -> Candidate:
    goals = settings.goals(data)
    found, tuned = Candidate(name, estimator, _learns_from(estimator, data), goals=goals), None
    if settings.tune == "all" and _tunes(data, settings):
        tuned = tunable(estimator, settings.search.keys())
    return found if tuned is None else _searched(found, tuned, data, settings)


def _searched(
    candidate: Candidate, tuned: Mapping[str, Any], data: Data, settings: Settings
) -> Candidate:
    """A candidate some of whose parameters folds choose."""
    estimator = clone(candidate.estimator)
    goal = {"cv_goal": settings.goals(data)[0]} if "cv_goal" in estimator.get_params() else {}
    # A grid of other parameters fits estimators that tune themselves.
    is_tuned = not settings.search.keys() & estimator.get_params().keys()
    return replace(candidate, estimator=estimator.set_params(**tuned, **goal), is_tuned=is_tuned)


def _tunes(data: Data, settings: Settings) -> bool:
    return settings.tune is not False and not settings.by_measure(data)


def _learns_from(estimator: Any, data: Data) -> LearnsFrom:
    for name in ("fit", "transform"):
        if not hasattr(estimator, name):
            raise TypeError(f"Expected estimators with {name}, got {estimator!r}.")
    last = _last_step(estimator)
    required = get_tags(last).target_tags.required  # by ours too, as the second of two matrices
    requires = getattr(last, "requires", Requirements(labels=required))
    if requires.labels:
        return "labels"
    # without pairs, some that do not require labels learn from them
    return "pairs" if data.has_pairs or requires.pairs else "labels"


def _last_step(estimator: Any) -> Any:
    """The last step of a pipeline, or what a search fits."""
    while isinstance(estimator, Pipeline) or hasattr(estimator, "estimator"):
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.estimator
    return estimator
