"""Encode plain values and arrays as a JSON tree with arrays beside it, and decode them.

Numbers, strings and lists stand for themselves; everything else is an object {"is": kind, ...}.
Kinds beyond arrays and containers are in a table that the caller passes, which says how an object
is taken apart into named values; a kind that is not in the table is neither written nor read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csc_matrix, csr_array, csr_matrix

from mvcca.blocks import is_mapping

_DEPTH = 200  # of trees; those of models have a depth of about ten
_NUMBERS = "biuf"  # kinds of dtypes that are stored as they are
_STRING_BYTES = 64 * 2**20  # of an array of strings, which are all padded to the longest
_SPARSE = {cls.__name__: cls for cls in (csr_array, csr_matrix, csc_array, csc_matrix)}
_SETS = {"set": set, "frozenset": frozenset}
_BUILTIN_TYPES = {"float": float, "int": int, "object": object, "str": str}


class NotStorable(TypeError):
    """Only pickle could store something that a model holds."""


@dataclass(frozen=True)
class ClassOf:
    """How objects of a class are taken apart into named values, and made again from them."""

    type: type
    parts: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


class Writer:
    """Encode values; their arrays are collected in `arrays`, named by their place in the model.

    An object that is reached twice is stored once. `kinds` collects the names of classes.
    """

    def __init__(self, classes: Any, skipped: Collection[str] = ()) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.kinds: set[str] = set()
        self._classes = classes
        self._skipped = skipped
        self._names: dict[int, str] = {}
        self._numbers: dict[int, tuple[int, Any]] = {}  # holds the objects: no id is reused
        self._depth = 0

    def encode(self, value: Any, where: str) -> Any:
        """Return the tree of a value; `where` is its place, for errors and names of arrays."""
        if self._depth == _DEPTH:
            raise NotStorable(f"{where[:60]}... is nested more than {_DEPTH} deep, or holds itself")
        self._depth += 1
        try:
            return self._encoded(value, where)
        finally:
            self._depth -= 1

    def _encoded(self, value: Any, where: str) -> Any:
        if value is None or type(value) in (bool, int, str, np.str_):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"is": "float", "value": str(value)}
        if type(value) is list:
            return self._items(value, where)
        if type(value) is tuple:
            return {"is": "tuple", "items": self._items(value, where)}
        if type(value) in _SETS.values():
            items = self._items(sorted(value, key=repr), where)
            return {"is": type(value).__name__, "items": items}
        if isinstance(value, slice):
            return {"is": "slice", "of": self._items([value.start, value.stop, value.step], where)}
        if isinstance(value, np.dtype) and value.kind in _NUMBERS:
            return {"is": "dtype", "name": value.name}
        if isinstance(value, type) and (name := _name_of_type(value)):
            return {"is": "type", "name": name}
        if name := self._classes.function_names.get(id(value)):
            return {"is": "function", "name": name}
        if id(value) in self._numbers:
            return {"is": "again", "object": self._numbers[id(value)][0]}
        if kind := self._classes.name_of(type(value)):
            return self._object(kind, value, where)
        if type(value) in _SPARSE.values():
            parts = {name: getattr(value, name) for name in ("data", "indices", "indptr")}
            names = {name: self._add(array, f"{where}.{name}") for name, array in parts.items()}
            return {"is": type(value).__name__, "shape": list(value.shape), "arrays": names}
        if is_mapping(value):
            return self._mapping(value, where)
        if isinstance(value, np.ndarray | np.generic) and not np.ma.isMaskedArray(value):
            return self._array(value, where)
        raise NotStorable(f"{where} is {_described(value)}")

    def _object(self, kind: str, value: Any, where: str) -> dict[str, Any]:
        try:
            parts = self._classes[kind].parts(value)
        except NotStorable:
            raise
        except TypeError as error:
            raise NotStorable(f"{where} cannot be stored: {error}.") from error
        kept = {name: part for name, part in parts.items() if name not in self._skipped}
        named = {name: self.encode(part, f"{where}.{name}") for name, part in kept.items()}
        self.kinds.add(kind)
        self._numbers[id(value)] = len(self._numbers), value  # in the order they are made again
        return {"is": kind, "parts": named}

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _mapping(self, values: Mapping[Any, Any], where: str) -> dict[str, Any]:
        encoded = {key: self.encode(value, f"{where}[{key!r}]") for key, value in values.items()}
        if all(isinstance(key, str) for key in encoded):
            return {"is": "dict", "items": encoded}
        pairs = [[self.encode(key, f"{where} (key)"), part] for key, part in encoded.items()]
        return {"is": "dict", "pairs": pairs}

    def _array(self, value: Any, where: str) -> Any:
        array = np.asarray(value)
        if array.dtype.kind in _NUMBERS and array.dtype != np.longdouble:
            kind = "scalar" if isinstance(value, np.generic) else "array"
            return {"is": kind, "array": self._add(array, where)}
        if array.dtype.kind in "UO":
            if array.dtype.kind == "U" and array.nbytes > _STRING_BYTES:
                raise NotStorable(
                    f"{where} is an array of {array.size:,} strings that are all padded to the "
                    f"longest, {array.nbytes:,} bytes in all; files hold at most {_STRING_BYTES:,}."
                    " Give shorter names, or an array of dtype object."
                )
            dtype = "object" if array.dtype.kind == "O" else "str"
            items = self._items(array.ravel().tolist(), where)
            return {"is": "names", "dtype": dtype, "shape": list(array.shape), "of": items}
        raise NotStorable(
            f"{where} is an array of {array.dtype}; files hold arrays of numbers, truth values, "
            "strings and objects. Convert it."
        )

    def _add(self, array: np.ndarray, name: str) -> str:
        known = self._names.setdefault(id(array), name)  # two attributes may be the same array
        if known == name:
            self.arrays[name] = array
        return known


class Reader:
    """Decode trees whose classes are in the table."""

    def __init__(self, classes: Any, arrays: Mapping[str, np.ndarray]) -> None:
        self._classes = classes
        self._arrays = arrays
        self._made: list[Any] = []
        self._depth = 0

    def decode(self, node: Any) -> Any:
        """Return the value of a tree."""
        if self._depth == _DEPTH:  # Python's own limit differs by version
            raise ValueError(f"its parts are nested more than {_DEPTH} deep")
        self._depth += 1
        try:
            return self._decoded(node)
        finally:
            self._depth -= 1

    def _decoded(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        kind = node["is"]
        match kind:
            case "float":
                return float(node["value"])
            case "tuple":
                return tuple(self.decode(node["items"]))
            case "set" | "frozenset":
                return _SETS[kind](self.decode(node["items"]))
            case "dict" if "pairs" in node:
                return dict(self.decode(node["pairs"]))
            case "dict":
                return {name: self.decode(item) for name, item in node["items"].items()}
            case "slice":
                return slice(*self.decode(node["of"]))
            case "dtype":
                return _number_type(node["name"])
            case "type":
                return _BUILTIN_TYPES.get(node["name"]) or _number_type(node["name"]).type
            case "function":
                return self._classes.functions[node["name"]]
            case "array":
                return self._arrays[node["array"]]
            case "scalar":
                return self._arrays[node["array"]][()]
            case "names":
                return self._names(node)
            case "again":
                return self._made[node["object"]]
            case _ if kind in _SPARSE:
                parts = {part: self._arrays[name] for part, name in node["arrays"].items()}
                return sparse_of(parts, tuple(node["shape"]), _SPARSE[kind])
        known = self._classes[kind]
        made = known.make({name: self.decode(part) for name, part in node["parts"].items()})
        self._made.append(made)
        return made

    def _names(self, node: dict[str, Any]) -> np.ndarray:
        """An array of strings or objects."""
        names = np.empty(len(node["of"]), dtype=object)
        for i, item in enumerate(node["of"]):  # a slice would look into items that are sequences
            names[i] = self.decode(item)
        if node["dtype"] == "str":
            n_bytes = 4 * len(names) * max(map(len, names), default=0)
            if n_bytes > _STRING_BYTES:
                raise ValueError(
                    f"{len(names):,} strings padded to the longest would take {n_bytes:,} bytes"
                )
            names = names.astype(str)
        return names.reshape(node["shape"])


def sparse_of(parts: Mapping[str, np.ndarray], shape: tuple[int, int], cls: Any) -> Any:
    """Make a sparse matrix from its arrays; ValueError if an index points outside it."""
    matrix = cls((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    matrix.check_format(full_check=True)  # compiled loops follow the indices
    return matrix


def _name_of_type(cls: type) -> str | None:
    if issubclass(cls, np.generic):
        dtype = np.dtype(cls)
        return dtype.name if dtype.kind in _NUMBERS else None
    return cls.__name__ if cls in _BUILTIN_TYPES.values() else None


def _number_type(name: Any) -> np.dtype:
    dtype = np.dtype(str(name))
    if dtype.kind not in _NUMBERS:
        raise ValueError(f"{name!r} is no type of numbers")
    return dtype


_ADVICE = {  # by the name of a base class: torch need not be installed
    "sklearn.base.BaseEstimator": "and files hold only estimators of mvcca, and the transformers, "
    "searches and linear models of scikit-learn. Save it on its own with its library's tools",
    "torch.nn.modules.module.Module": "and files hold no code: only the encoders and the objective "
    "of deep estimators can be given to load again",
    "mvcca.deep.trainer.Callback": "and files hold no code. Save without it: "
    "model.set_params(callbacks=())",
}


def _described(value: Any) -> str:
    """What a value is, why it is not stored, and what to do."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    for cls in type(value).__mro__:
        if advice := _ADVICE.get(f"{cls.__module__}.{cls.__qualname__}"):
            return f"a {kind}, {advice}."
    if callable(value):
        return (
            f"a function ({getattr(value, '__qualname__', kind)}), and files hold no code. Choose "
            "one that mvcca knows by name, or save the data and fit again."
        )
    return f"a {kind}; files hold numbers, strings, arrays, and containers of these."
