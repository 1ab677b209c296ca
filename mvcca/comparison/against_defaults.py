"""What tuning gains: tuned methods and the same at default settings, on the same folds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from mvcca.comparison.candidates import candidates_of
from mvcca.comparison.fits import Conditions
from mvcca.comparison.measurements import Measurements
from mvcca.comparison.schedule import outcomes_of
from mvcca.model_selection import tunable

_CHEAP = 10.0  # seconds of fits and rankings of a method that are repeated
_TECHNICAL = {
    "cv_goal",
    "label_features",
    "max_iter",
    "n_iter",
    "random_state",
    "reg_unit",
    "tokens",
    "tol",
}


class Gain(NamedTuple):
    """First measure of a method as it was tuned and at default settings; None if not measured."""

    method: str
    tuned: float
    default: float | None


def gains(result: Measurements) -> list[Gain]:
    """Tuned methods selected by name, against default settings where that takes few seconds."""
    measure = result.measures[0]
    tuned = {
        own.name: own.method.name
        for own in result.candidates
        if own.is_tuned and own.method is not None and own.name in result.successes
    }
    cheap = [method for name, method in tuned.items() if _seconds(result, name) < _CHEAP]
    default: dict[str, float] = {}
    if cheap and result.is_complete:
        settings = replace(result.settings, tune=False, search={})
        candidates = candidates_of(cheap, result.data, settings)
        _, found = outcomes_of(candidates, Conditions(result.data, result.folds, settings))
        again = Measurements(candidates, result.data, settings, result.folds, found, result.chance)
        default = {name: again.mean(name, measure) for name in again.successes}
    return [Gain(name, result.mean(name, measure), default.get(name)) for name in tuned]


def _seconds(result: Measurements, method: str) -> float:
    return sum(found.fit_seconds + found.query_seconds for found in result.fits(method))


def not_searched(result: Measurements) -> Iterator[str]:
    """Lines of text about parameters and methods that were not tuned."""
    for candidate in result.candidates:
        name = candidate.name
        if name not in result.successes:
            continue
        if not candidate.is_tuned:
            yield f"{name}: not tuned"
            continue
        searched = {*(tunable(candidate.estimator) or {}), "n_components"}
        others = candidate.estimator.get_params(deep=False).keys() - searched - _TECHNICAL
        if others:
            yield f"{name}: {', '.join(sorted(others))}"
