"""Parameters that a mapping may give view by view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils._param_validation import make_constraint


def by_view(estimator: Any, parameter: str, names: tuple[str, ...]) -> dict[str, Any]:
    """The value of a parameter for every view, each in the range that a single one has."""
    given = getattr(estimator, parameter)
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    if set(given) != set(names):
        raise ValueError(f"{parameter} names the views {list(given)}, expected {list(names)}.")
    allowed = [c for c in estimator._parameter_constraints[parameter] if c is not Mapping]
    constraints = [make_constraint(c) for c in allowed]
    for name, value in given.items():
        if not any(constraint.is_satisfied_by(value) for constraint in constraints):
            expected = ", or ".join(map(str, constraints))
            raise ValueError(f"{parameter} of view {name!r} must be {expected}, got {value!r}.")
    return dict(given)
