"""What is compared: the user's estimators or methods selected by name, and common settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from mvcca.base import Requirements
from mvcca.comparison.data import Data
from mvcca.comparison.registry import METHODS, LearnsFrom, Method, did_you_mean, selected
from mvcca.machine.deadline import seconds_of
from mvcca.model_selection import Goal, tunable
from mvcca.retrieval import Measure
from mvcca.retrieval.evaluate import Directions
from mvcca.retrieval.relevance import RelevanceBy

# Parameters of methods selected by name that are not tuned; networks keep their own ridge.
DEFAULTS = {"n_components": 10, "reg": 0.1}
Tune = bool | Literal["all"]
# Classes by their seconds in a comparison of five folds on 1,797 digits, with tuning.
_CHEAPEST_FIRST = (
    "CFA",
    "Procrustes",
    "AffineMap",
    "PLS",
    "LGCFL",
    "LabelRegression",
    "CCA",
    "MLCCA",
    "MVCCA",
    "GCCA",
    "MVMLCCA",
    "NCCA",
    "SemanticMatching",
    "JRL",
    "KCCA",
    "CMOLRS",
)


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

    def goal(self, data: Data) -> Goal | None:
        """What tuning maximizes, by the first measure; None if nothing is relevant."""
        by = data.relevance_by(self.measures[0], self.relevance)
        if by == "words" and any(data.strangers()):  # whose word vectors are compared
            return None
        return "object" if by == "pairs" else "class"

    def check(self) -> None:
        """Raise ValueError or TypeError for values that fit no data."""
        if not isinstance(self.random_state, Integral) or self.random_state < 0:
            raise ValueError(
                f"Expected random_state to be a seed of at least 0, got {self.random_state!r}."
            )
        if self.budget is not None:
            seconds_of(self.budget)
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
    is_tuned: bool = False  # whether folds choose parameters, which are "cv" in `estimator`
    default: Any = None  # of a tuned method: the estimator at default settings
    out_of_time: bool = False  # whether it is at default settings for want of time

    @property
    def is_deep(self) -> bool:
        """Whether it trains networks."""
        return hasattr(self.estimator, "callbacks")

    def at_default_settings(self) -> Candidate:
        """The same method where there is no time to choose its settings."""
        return replace(self, estimator=self.default, is_tuned=False, out_of_time=True)

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
        found = [_named(method, data, settings) for method in _chosen(methods, data)]
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


def cheapest_first(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates in a fixed order: networks last, then tuned methods, and each by its class."""
    return sorted(candidates, key=lambda one: (one.is_deep, one.is_tuned, _rank(one.estimator)))


def _rank(estimator: Any) -> int:
    """Place of an estimator's class, or of the one it is derived from; unknown ones are last."""
    names = [kind.__name__ for kind in type(_last_step(estimator)).__mro__]
    known = [_CHEAPEST_FIRST.index(name) for name in names if name in _CHEAPEST_FIRST]
    return known[0] if known else len(_CHEAPEST_FIRST)


def _hint(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known) or "."


def _chosen(methods: Any, data: Data) -> list[Method]:
    """Methods by name; of the default group, those that apply to the data."""
    names = [methods] if isinstance(methods, str | BaseEstimator) else list(methods)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(
            "Expected names of methods (see mvcca.methods()), or a mapping of names to "
            f"estimators such as {{'CCA': CCA(2)}}, got {methods!r}."
        )
    chosen = [METHODS[name] for name in selected(names)]
    if "default" in names:
        chosen = [m for m in chosen if m.name in names or _is_worthwhile(m, data)]
    return chosen


def _is_worthwhile(method: Method, data: Data) -> bool:
    """Whether a method of the default group applies to the data and duplicates no other."""
    if method.name in ("cca", "ncca"):  # of two views
        return len(data.views.names) == 2 and data.has_pairs
    if method.name == "mvcca":  # on two views it is CCA
        return len(data.views.names) > 2 and data.has_pairs
    return data.has_pairs if method.learns_from == "pairs" else data.fit_labels is not None


def _named(method: Method, data: Data, settings: Settings) -> Candidate:
    given: dict[str, Any] = {"random_state": settings.random_state}
    searched = settings.params.keys() | settings.search.keys()
    tuned = tunable(method.build(given), searched) if _tunes(data, settings) else None
    if data.texts and method.reads_words:
        given["tokens"] = data.texts
    defaults = {} if method.is_deep else DEFAULTS
    estimator = method.build({**given, **defaults, **settings.params})
    default = Candidate(method.title, estimator, method.learns_from, method)
    if tuned is None:
        return default
    return _searched(default, method.build({**given, **settings.params}), tuned, data, settings)


def _given(name: str, estimator: Any, data: Data, settings: Settings) -> Candidate:
    default, tuned = Candidate(name, estimator, _learns_from(estimator, data)), None
    if settings.tune == "all" and _tunes(data, settings):
        tuned = tunable(estimator, settings.search.keys())
    return default if tuned is None else _searched(default, estimator, tuned, data, settings)


def _searched(
    default: Candidate, estimator: Any, tuned: Mapping[str, Any], data: Data, settings: Settings
) -> Candidate:
    """A candidate some of whose parameters folds choose."""
    estimator = clone(estimator).set_params(**tuned, **_goal_of(estimator, data, settings))
    # A search of other parameters fits estimators that tune themselves.
    is_tuned = not settings.search.keys() & estimator.get_params().keys()
    return replace(default, estimator=estimator, is_tuned=is_tuned, default=default.estimator)


def _tunes(data: Data, settings: Settings) -> bool:
    return settings.tune is not False and settings.goal(data) is not None


def _goal_of(estimator: Any, data: Data, settings: Settings) -> dict[str, Any]:
    has_goal = "cv_goal" in estimator.get_params(deep=False)
    return {"cv_goal": settings.goal(data)} if has_goal else {}


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
