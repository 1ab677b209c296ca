"""Parameters of constructors: a line gives name, type, default and what is valid.

What is valid is said as scikit-learn validates it, in `fit`; a subclass that only changes a default
inherits it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from functools import reduce
from inspect import signature
from numbers import Integral, Real
from operator import or_
from typing import Any, TypeVar

from sklearn.utils._param_validation import Interval, StrOptions

C = TypeVar("C", bound=Any)

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
BETWEEN_0_AND_1 = Interval(Real, 0, 1, closed="neither")
BELOW_1 = Interval(Real, 0, 1, closed="left")  # and not negative


def at_least(n: int) -> Interval:
    """Whole numbers from n on."""
    return Interval(Integral, n, None, closed="left")


def one_of(*names: str) -> StrOptions:
    """These strings."""
    return StrOptions(set(names))


def parameter(default: Any, *valid: Any) -> Any:
    """A parameter of the constructor, by keyword; a value is valid if one constraint holds."""
    return field(default=default, metadata=constraints(*valid))


def constraints(*valid: Any) -> dict[str, Any]:
    """Metadata of a `dataclasses.field` that says what is valid."""
    return {"valid": list(valid)}


def with_constructor(cls: C) -> C:
    """Make annotated attributes parameters of the constructor, which stores them.

    The constructor has the new parameters first, then those that are inherited, in their order. A
    class that defines one keeps it.
    """
    if "__init__" in vars(cls):
        return cls
    dataclass(eq=False, repr=False, kw_only=True)(cls)
    bases: list[Any] = [base for base in cls.__bases__ if is_dataclass(base)]
    inherited = [name for base in bases for name in signature(base).parameters]
    own = signature(cls.__init__)
    parameters = sorted(
        own.parameters.values(),
        key=lambda p: (p.kind, inherited.index(p.name) if p.name in inherited else -1),
    )
    cls.__init__.__signature__ = own.replace(parameters=parameters)
    own_fields = [f for f in fields(cls) if f.name in vars(cls).get("__annotations__", {})]
    known = [vars(base).get("_parameter_constraints", {}) for base in reversed(cls.__mro__)]
    known.append({f.name: f.metadata["valid"] for f in own_fields if "valid" in f.metadata})
    names = own.parameters.keys()
    cls._parameter_constraints = {n: valid for n, valid in reduce(or_, known).items() if n in names}
    return cls
