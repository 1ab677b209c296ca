"""The result in one sentence."""

from __future__ import annotations

import numpy as np

from mvcca.comparison.measurements import Measurements
from mvcca.comparison.summary import pretty, with_error, written


def verdict(result: Measurements) -> str:
    """The best method by the first measure, and those that are not significantly worse."""
    if not result.successes:
        return "No method could be fitted."
    best, measure = result.best, result.measures[0]
    value = with_error(measure, result.mean(best, measure), result.standard_error(best, measure))
    chance = written(measure, result.chance_level(measure))
    score = f"{pretty(measure)} {value} (random scores: {chance})"
    if len(result.successes) == 1:
        return f"{best} reaches {score}."
    return f"{best} is best, with {score}; {_others(result, best, measure)}."


def _others(result: Measurements, best: str, measure: str) -> str:
    p_values = result.p_values(measure)
    others = [name for name in result.successes if name != best]
    if all(np.isnan(p_values[name]) for name in others):
        return "differences between methods cannot be tested"
    close = [name for name in others if name in result.not_worse(measure)]
    if not close:
        return "all other methods are significantly worse"
    if len(close) == len(others) > 1:
        return "no other method is significantly worse"
    *first, last = close
    names = f"{', '.join(first)} and {last}" if first else last
    return f"{names} {'are' if first else 'is'} not significantly worse"
