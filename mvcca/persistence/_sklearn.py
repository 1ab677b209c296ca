"""Which classes and functions of scikit-learn a file may name, and how each is stored.

Threat model: the author of a file chooses every name and value in it, and wants code to run, a file
to be opened, or memory to be misread or exhausted, when it is loaded or the model is used. Names
are therefore looked up, never imported: a class must be public in one of `_MODULES`, a function one
of `FUNCTIONS`, which are arithmetic. Constructors of these classes only store their arguments, and
a file sets no attribute that the class defines, so that no method is replaced. A string that would
open pickles (`memory`) is dropped; what joblib would evaluate (`pre_dispatch`) and numbers of
threads are checked. Most transformers are formulas over NumPy arrays, which raise an error where
shapes do not match. Classes whose compiled code follows attributes unchecked are left out (libsvm,
classification by neighbors, SGD, trees), fitted again from their rows (nearest neighbors), or
checked in `_trial`. Vectorizers that would open the files that texts name are refused.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from functools import partial
from importlib import import_module
from inspect import isabstract, isclass, signature
from typing import Any

import numpy as np
from scipy.interpolate import BSpline
from sklearn import feature_selection
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch

from mvcca.persistence._estimators import make_estimator, parts_of_estimator
from mvcca.persistence._values import ClassOf, NotStorable

_OF_TRANSFORMERS = (
    "cluster compose cross_decomposition decomposition discriminant_analysis ensemble "
    "feature_selection impute kernel_approximation manifold neural_network preprocessing "
    "random_projection"
)
_MODULES = {  # and a pattern of the classes in them that are stored; None: all transformers
    **dict.fromkeys(f"sklearn.{module}" for module in _OF_TRANSFORMERS.split()),
    "sklearn.feature_extraction.text": "(Count|Tfidf)Vectorizer|TfidfTransformer",
    "sklearn.linear_model": r"(?!SGD|Perceptron|PassiveAggressive)\w+",
    "sklearn.model_selection": r"(Grid|Randomized)SearchCV|\w*(Fold|Split|Out)",
    "sklearn.neighbors": r"Nearest\w+s|Neighborhood\w+|\w+NeighborsTransformer",
    "sklearn.pipeline": "Pipeline|FeatureUnion",
    "sklearn.svm": r"Linear\w+",
}
_REDUCTIONS = "(nan)?(max|mean|median|min|prod|std|sum|var)"
FUNCTIONS: Mapping[str, Any] = {
    **{f"numpy.{name}": f for name, f in vars(np).items()
       if isinstance(f, np.ufunc) or re.fullmatch(_REDUCTIONS, name)},
    **{f"sklearn.feature_selection.{name}": f for name, f in vars(feature_selection).items()
       if re.fullmatch(r"chi2|[fr]_\w+|mutual_info_\w+", name)},
}  # fmt: skip
_MOST_THREADS = 1024


class Classes:
    """The classes that a file may name, those of a table and of scikit-learn; and functions."""

    functions, function_names = FUNCTIONS, {id(f): name for name, f in FUNCTIONS.items()}

    def __init__(self, table: Mapping[str, ClassOf]) -> None:
        self._table = table
        self._names = {known.type: name for name, known in table.items()}

    def name_of(self, cls: type) -> str | None:
        """Name of a class in files; None if it is not stored."""
        return self._names.get(cls) or (_public_name(cls) if _is_stored(cls) else None)

    def __getitem__(self, name: str) -> ClassOf:
        if name in self._table:
            return self._table[name]
        cls = _public(name)
        if not isclass(cls) or not _is_stored(cls):
            raise ValueError(f"no class {name!r} is known")
        if hasattr(cls, "kneighbors") or hasattr(cls, "radius_neighbors"):
            return ClassOf(cls, _parts_of_neighbors, partial(_make_neighbors, cls))
        if issubclass(cls, BaseEstimator):
            return ClassOf(cls, _parts_of_estimator, partial(_make_estimator, cls))
        return ClassOf(cls, arguments_of, lambda parts: cls(**parts))  # of a splitter


def _public_name(cls: type) -> str:
    return f"{cls.__module__.split('._')[0]}.{cls.__name__}"


def _public(name: str) -> Any:
    """What one of the public modules holds under a name; None if nothing."""
    module, _, attribute = name.rpartition(".")
    return vars(import_module(module)).get(attribute) if module in _MODULES else None


def _is_stored(cls: type) -> bool:
    module, _, name = _public_name(cls).rpartition(".")
    if module not in _MODULES or name.startswith("_") or isabstract(cls):
        return False
    pattern = _MODULES[module]
    listed = re.fullmatch(pattern, name) if pattern else issubclass(cls, TransformerMixin)
    return bool(listed) and _public(f"{module}.{name}") is cls


# ---- estimators and splitters --------------------------------------------------------------------


def _parts_of_estimator(estimator: BaseEstimator) -> dict[str, Any]:
    parts = parts_of_estimator(estimator)
    parts.pop("scorer_", None)  # made again from `scoring`
    parts.pop("_stop_words_id", None)  # an address in memory
    _check_parts(parts)
    return parts | ({"memory": None} if "memory" in parts else {})


def _make_estimator(cls: type[BaseEstimator], parts: dict[str, Any]) -> BaseEstimator:
    _check_parts(parts)
    if "memory" in parts:  # a cache is pickles, and a file may name any folder of them
        parts = parts | {"memory": None}
    estimator = make_estimator(cls, parts)
    if hasattr(estimator, "multimetric_"):  # a search
        scorer = check_scoring(estimator.estimator, scoring=estimator.scoring)
        estimator.scorer_ = getattr(scorer, "_scorers", scorer)
    return estimator


def stored_search(cls: type[BaseEstimator]) -> ClassOf:
    """Row of the table for a search with the attributes of those of scikit-learn."""
    return ClassOf(cls, _parts_of_estimator, partial(_make_estimator, cls))


def _check_parts(parts: dict[str, Any]) -> None:
    """Refuse parameters that compiled code or joblib would trust."""
    if parts.get("warm_start"):
        raise TypeError("it has warm_start=True, and would fit from attributes that are unchecked")
    for name in ("n_jobs", "_n_threads"):
        number = parts.get(name)
        if number is not None and not -_MOST_THREADS <= number <= _MOST_THREADS:
            raise TypeError(f"it has {name}={number!r}, at most {_MOST_THREADS:,} are possible")
    if parts.get("input", "content") != "content":
        raise TypeError(
            f"it has input={parts['input']!r}, and would open files; 'content' is stored"
        )
    ahead = str(parts.get("pre_dispatch", "all"))
    if not re.fullmatch(r"all|\d{1,9}|(\d{1,4}(\.\d)? ?\* ?)?n_jobs", ahead):
        raise TypeError(f"it has pre_dispatch={ahead!r}; 'all', a number, or '2*n_jobs' is stored")


def arguments_of(splitter: Any) -> dict[str, Any]:
    """Constructor arguments of a splitter."""
    names = signature(type(splitter)).parameters
    if not all(hasattr(splitter, name) for name in names):
        raise TypeError(f"{splitter!r} does not keep its arguments {list(names)}")
    return {name: getattr(splitter, name) for name in names}


def _parts_of_neighbors(search: Any) -> dict[str, Any]:
    return {**search.get_params(deep=False), "rows": getattr(search, "_fit_X", None)}


def _make_neighbors(cls: type, parts: dict[str, Any]) -> Any:
    """The tree, if there is one, is built again from the rows."""
    rows = parts.pop("rows")
    _check_parts(parts)
    return cls(**parts) if rows is None else cls(**parts).fit(rows)


# ---- other objects in attributes -----------------------------------------------------------------


def _parts_of_random(source: Any) -> dict[str, Any]:
    legacy = isinstance(source, np.random.RandomState)
    state = source.get_state(legacy=False) if legacy else source.bit_generator.state
    if state["bit_generator"] not in ("MT19937", "PCG64"):
        raise NotStorable(f"The state of {source!r} is not stored. Give an integer random_state.")
    return {"state": state}


def _make_random_state(parts: dict[str, Any]) -> np.random.RandomState:
    made = np.random.RandomState(np.random.MT19937(0))
    if not 0 <= operator.index(parts["state"]["state"]["pos"]) <= 624:  # NumPy reads there
        raise ValueError("a RandomState has no such position")
    made.set_state(parts["state"])
    return made


def _make_generator(parts: dict[str, Any]) -> np.random.Generator:
    made = np.random.Generator(np.random.PCG64(0))
    made.bit_generator.state = parts["state"]
    return made


def _parts_of_masked(array: np.ma.MaskedArray) -> dict[str, Any]:
    data, fill_value = np.asarray(array.data), array.fill_value
    if fill_value == np.ma.default_fill_value(data):
        fill_value = None
    return {"data": data, "mask": np.ma.getmaskarray(array), "fill_value": fill_value}


HELD: Mapping[str, ClassOf] = {
    "BSpline": ClassOf(
        BSpline,
        lambda spline: {n: getattr(spline, n) for n in ("t", "c", "k", "extrapolate", "axis")},
        lambda parts: BSpline(**parts),
    ),
    "Bunch": ClassOf(Bunch, dict, lambda parts: Bunch(**parts)),
    "MaskedArray": ClassOf(
        np.ma.MaskedArray, _parts_of_masked, lambda parts: np.ma.MaskedArray(**parts)
    ),
    "RandomState": ClassOf(np.random.RandomState, _parts_of_random, _make_random_state),
    "Generator": ClassOf(np.random.Generator, _parts_of_random, _make_generator),
}
