"""The result in one sentence: the best method for the same object, and for the same class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mvcca.comparison.measurements import Measurements
from mvcca.comparison.wording import listed, pretty, with_error, written
from mvcca.machine.printable import in_one_line


class Answer(NamedTuple):
    """The best method for one kind of right items."""

    what: str  # description of the right items
    method: str
    value: str  # of the measure that it is best by
    chance: str  # the same of random scores
    others: str  # what the test says of the other methods; empty without others

    def __str__(self) -> str:
        others = f", {self.others}" if self.others else ""
        return f"{self.what}: {self.method}, {self.value} (random scores: {self.chance}){others}"


def answers(result: Measurements) -> list[Answer]:
    """The best method for each kind of right items; none if no method could be fitted."""
    return [
        Answer(
            in_one_line(what),
            in_one_line(best),
            _value(result, best, measure),
            written(measure, result.chance_level(measure)),
            in_one_line(_others(result, best, measure)),
        )
        for what, (measure, best) in result.questions.items()
    ]


def verdict(result: Measurements) -> str:
    """The best method for each kind of right items, and those that the test cannot separate."""
    parts = list(map(str, answers(result)))
    return f"Best for {'; best for '.join(parts)}." if parts else "No method could be fitted."


def _value(result: Measurements, best: str, measure: str) -> str:
    value = with_error(measure, result.mean(best, measure), result.standard_error(best, measure))
    return f"{pretty(measure)} {value}"


def _others(result: Measurements, best: str, measure: str) -> str:
    """What the test says of the other methods."""
    compared = {n: found for n, found in result.against_best(measure).items() if n != best}
    if not compared:
        return ""
    if all(np.isnan(found.p_value) for found in compared.values()):
        return "differences cannot be tested"
    equal = [name for name, found in compared.items() if found.decision == "best"]
    undecided = [name for name, found in compared.items() if found.decision == "undecided"]
    parts = [f"equal to {listed(equal)}"] if equal else []
    if len(undecided) == len(compared) > 1:
        parts.append("undecided against all others")
    elif undecided:
        parts.append(f"undecided against {listed(undecided)}")
    elif len(equal) < len(compared):
        parts.append("significantly better than all others")
    return ", ".join(parts)
