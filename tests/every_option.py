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
_DRAWN = (*_NUMBERS, 3, 6, 1e-4, 0.1, 1.0, 50.0)


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


def drawn(cls: type, rng: Any, share: float = 0.4) -> dict[str, Any]:
    """Values of about this share of the parameters, each of any kind that its constraints allow."""
    found: dict[str, Any] = {}
    for parameter, allowed in getattr(cls, "_parameter_constraints", {}).items():
        values = [value for name, value in names_of_values(cls) if name == parameter]
        for constraint in allowed:
            if isinstance(constraint, Interval):
                values += [own for own in _DRAWN if constraint.is_satisfied_by(own)]
        if values and rng.random() < share:
            found[parameter] = values[rng.integers(len(values))]
    return found
