"""Resolve parameters that are given once for all views, or by view name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def value_by_view(parameter: str, value: Any, names: Iterable[str], advice: str = "") -> dict:
    """The value of a parameter for each view, from one value or from a mapping by view name."""
    names = list(names)
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    if set(value) != set(names):
        raise ValueError(f"{parameter} names the views {list(value)}, expected {names}.{advice}")
    return {name: value[name] for name in names}


def by_view(estimator: Any, parameter: str, names: Iterable[str]) -> dict[str, Any]:
    """The value of an estimator's parameter for each view, validated as a single value is."""
    from sklearn.utils._param_validation import make_constraint

    given = getattr(estimator, parameter)
    values = value_by_view(parameter, given, names)
    if isinstance(given, Mapping):
        allowed = [c for c in estimator._parameter_constraints[parameter] if c is not Mapping]
        constraints = [make_constraint(c) for c in allowed]
        for name, value in values.items():
            if not any(constraint.is_satisfied_by(value) for constraint in constraints):
                expected = ", or ".join(map(str, constraints))
                raise ValueError(f"{parameter} of view {name!r} must be {expected}, got {value!r}.")
    return values
