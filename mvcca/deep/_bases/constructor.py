"""Constructors of deep estimators: dataclasses with keyword-only fields."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, is_dataclass
from functools import reduce
from operator import or_
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[T]) -> type[T]:
    """Make the annotated attributes of a class parameters of its constructor, which stores them.

    As with `dataclasses.dataclass`, classes inherit parameters and may change their defaults. In
    the signature a class's own parameters come first: they are what the method is about. The
    constraints of own parameters join those of inherited ones.
    """
    cls = dataclass(eq=False, repr=False, kw_only=True)(cls)
    bases = filter(is_dataclass, cls.__bases__)
    inherited = [name for base in bases for name in inspect.signature(base).parameters]
    signature = inspect.signature(cls.__init__)
    parameters = sorted(
        signature.parameters.values(),
        key=lambda p: (p.kind, inherited.index(p.name) if p.name in inherited else -1),
    )
    cls.__init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    constraints = [vars(base).get("_parameter_constraints", {}) for base in reversed(cls.__mro__)]
    cls._parameter_constraints = reduce(or_, constraints)  # type: ignore[attr-defined]
    return cls
