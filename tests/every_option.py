"""Every option of every public estimator, read from the constraints of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, Options

MODULES = ("linear", "kernel", "compose", *(("deep",) if find_spec("torch") else ()))
_NUMBERS = (0, 1, 2, 20, 0.5)


def estimators() -> dict[str, type]:
    """Public estimator classes by name."""
    found = {}
    for module in (import_module(f"mvcca.{name}") for name in MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, BaseEstimator):
                found[name] = value
    return found


def names_of_values(cls: type) -> Iterator[tuple[str, Any]]:
    """Parameters and their values that are names, booleans or None."""
    for parameter, allowed in getattr(cls, "_parameter_constraints", {}).items():
        for constraint in allowed:
            if isinstance(constraint, Options):
                yield from ((parameter, value) for value in sorted(constraint.options))
            elif constraint == "boolean":
                yield from ((parameter, value) for value in (True, False))
            elif constraint is None:
                yield parameter, None


def options(cls: type, by_view: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Any]:
    """Parameters and values of every kind: names, two numbers, a mapping, the name of a view."""
    yield from names_of_values(cls)
    for parameter, allowed in getattr(cls, "_parameter_constraints", {}).items():
        for constraint in allowed:
            if isinstance(constraint, Interval):
                numbers = [own for own in _NUMBERS if constraint.is_satisfied_by(own)]
                yield from ((parameter, value) for value in {numbers[0], numbers[-1]})
            elif constraint is Mapping and parameter in by_view:
                yield parameter, by_view[parameter]
            elif constraint is str and parameter in names:
                yield parameter, names[parameter]
