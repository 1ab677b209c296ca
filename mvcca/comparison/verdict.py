"""The result in one sentence: the best method for the same object, and for the same class."""

from __future__ import annotations

import numpy as np

from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import listed, pretty, with_error, written
from mvcca.machine.printable import in_one_line


def verdict(result: Measurements) -> str:
    """The best method for each kind of right items, and those that the test cannot separate."""
    questions = result.questions
    if not questions:
        return "No method could be fitted."
    parts = [
        f"{what}: {best}, {_score(result, best, measure)}{_others(result, best, measure)}"
        for what, (measure, best) in questions.items()
    ]
    return in_one_line(f"Best for {'; best for '.join(parts)}.")


def _score(result: Measurements, best: str, measure: str) -> str:
    value = with_error(measure, result.mean(best, measure), result.standard_error(best, measure))
    chance = written(measure, result.chance_level(measure))
    return f"{pretty(measure)} {value} (random scores: {chance})"


def _others(result: Measurements, best: str, measure: str) -> str:
    """What the test says of the other methods."""
    compared = {n: found for n, found in result.against_best(measure).items() if n != best}
    if not compared:
        return ""
    if all(np.isnan(found.p_value) for found in compared.values()):
        return ", differences cannot be tested"
    equal = [name for name, found in compared.items() if found.decision == "best"]
    undecided = [name for name, found in compared.items() if found.decision == "undecided"]
    same = f", equal to {listed(equal)}" if equal else ""
    if len(undecided) == len(compared) > 1:
        return f"{same}, undecided against all others"
    if undecided:
        return f"{same}, undecided against {listed(undecided)}"
    return same if len(equal) == len(compared) else f"{same}, significantly better than all others"
