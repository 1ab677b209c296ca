"""Take estimators apart into parameters and attributes, and make them again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator

from mvcca.machine.warnings import warn
from mvcca.persistence._trial import tried
from mvcca.persistence._values import ClassOf, NotStorable

# Parameters that estimators had in earlier versions, with the values that they stand for now.
_GONE: dict[str, tuple[Any, ...]] = {
    "device": (),  # any: where a model computes is no part of it
    "final_reg": (None,),
    "gate_reduction": ("mean",),
    "reduction": ("mean",),
    "sdl_reduction": ("sum",),
}


def stored_estimator(cls: type[BaseEstimator]) -> ClassOf:
    """Row of the table for an estimator."""
    return ClassOf(cls, parts_of_estimator, partial(make_estimator, cls))


def parts_of_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    """Parameters and attributes by name, without those that every constructor call sets."""
    params = estimator.get_params(deep=False)
    constructed = vars(type(estimator)(**params))
    constructed["_sklearn_version"] = None  # of scikit-learn's own, which a file states once
    state = estimator.__getstate__()  # solves for batches that have been added
    attributes = {name: value for name, value in state.items() if name not in constructed}
    for name in attributes:
        if not _may_be_set(type(estimator), name):
            raise NotStorable(
                f"{type(estimator).__name__}.{name} is neither a parameter nor a learned attribute "
                "(those end with an underscore), and a file does not store it. Delete it before "
                "saving."
            )
    return {**params, **attributes}


def make_estimator(
    cls: type[BaseEstimator],
    parts: dict[str, Any],
    complete: Callable[[Any], None] = lambda _: None,
) -> BaseEstimator:
    """Construct an estimator, set its attributes, complete it and try it on one row."""
    known = cls._get_param_names()
    params = {name: value for name, value in parts.items() if name in known}
    if "scale" in known and "scale" not in params:  # a file of a version that standardized nothing
        params["scale"] = cls.scale
    gone = {name: value for name, value in parts.items() if name in _GONE.keys() - known}
    for name, value in gone.items():
        if _GONE[name] and value not in _GONE[name]:
            warn(
                f"{cls.__name__} has no parameter {name!r} any more, which was {value!r}. The "
                "model projects as before, but trains on without it; the changelog names what "
                "replaces it."
            )
    attributes = {n: value for n, value in parts.items() if n not in gone.keys() | known}
    for name in attributes:
        if not _may_be_set(cls, name):
            raise ValueError(f"{cls.__name__} has no parameter or attribute {name!r}")
    estimator = cls(**params)
    vars(estimator).update(attributes)
    complete(estimator)
    return tried(estimator)


def _may_be_set(cls: type, name: str) -> bool:
    """Whether a file may set an attribute: a learned or private one that hides nothing of cls."""
    proper = name.isidentifier() and not name.startswith("__")
    return proper and "_" in (name[0], name[-1]) and getattr(cls, name, None) is None
