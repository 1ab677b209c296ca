"""Values as a JSON tree with arrays beside it, and back.

Numbers, strings, lists stand for themselves; anything else is an object {"is": its kind, ...}. What
kinds of objects there are beyond arrays and containers, and what they are made of, is a table that
the caller brings: a kind that is not in it is neither written nor read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse

from mvcca._archive import csr_of, csr_parts

_DEPTH = 200  # of trees; those of models are some ten deep
_NUMBERS = "biuf"  # kinds of dtypes that are stored as they are
_NAMES_BYTES = 64 * 2**20  # of an array of strings, which are all padded to the longest
_CSR = {"csr_array": csr_array, "csr_matrix": csr_matrix}


class NotStorable(TypeError):
    """Something in a model can be stored only by pickle."""


@dataclass(frozen=True)
class ClassOf:
    """How objects of a class are taken apart into named values, and made of them again."""

    type: type
    parts: Callable[[Any], dict[str, Any]]
    make: Callable[[dict[str, Any]], Any]


class Writer:
    """Makes trees; `arrays` fills with what they refer to, under the names of where it stands.

    An object that is there twice is stored once and stays one; `kinds` are those that are there.
    """

    def __init__(self, classes: Mapping[str, ClassOf], skipped: Collection[str] = ()) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.kinds: set[str] = set()
        self._names: dict[int, str] = {}
        self._numbers: dict[int, tuple[int, Any]] = {}  # objects are held: their ids stay theirs
        self._table = {known.type: (name, known.parts) for name, known in classes.items()}
        self._skipped = skipped

    def encode(self, value: Any, where: str) -> Any:
        """The tree of a value; `where` it stands, for errors and names of arrays."""
        if value is None or type(value) in (bool, int, str, np.str_):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"is": "float", "value": str(value)}
        if type(value) is list:
            return self._items(value, where)
        if type(value) is tuple:
            return {"is": "tuple", "items": self._items(value, where)}
        if isinstance(value, Mapping) and not issparse(value):
            return {"is": "dict", "items": self._named(value, where)}
        if isinstance(value, slice):
            return {"is": "slice", "of": self._items([value.start, value.stop, value.step], where)}
        if isinstance(value, np.dtype) and value.kind in _NUMBERS:
            return {"is": "dtype", "name": value.name}
        if isinstance(value, np.ndarray | np.generic) and not np.ma.isMaskedArray(value):
            return self._array(value, where)
        if issparse(value) and type(value).__name__ in _CSR:
            names = {n: self._add(a, f"{where}.{n}") for n, a in csr_parts(value).items()}
            return {"is": type(value).__name__, "shape": list(value.shape), "arrays": names}
        if id(value) in self._numbers:
            return {"is": "again", "object": self._numbers[id(value)][0]}
        if type(value) in self._table:
            return self._object(value, where)
        raise NotStorable(f"{where} is {_described(value)}")

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        kind, parts_of = self._table[type(value)]
        try:
            parts = parts_of(value)
        except NotStorable:
            raise
        except TypeError as error:
            raise NotStorable(f"{where} has no place in a file: {error}.") from error
        kept = {name: part for name, part in parts.items() if name not in self._skipped}
        named = {name: self.encode(part, f"{where}.{name}") for name, part in kept.items()}
        self.kinds.add(kind)
        self._numbers[id(value)] = len(self._numbers), value  # in the order they are made again
        return {"is": kind, "parts": named}

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _named(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        for name in values:
            if not isinstance(name, str):
                raise NotStorable(f"{where} has the key {name!r}; names in files are strings.")
        return {name: self.encode(value, f"{where}[{name!r}]") for name, value in values.items()}

    def _array(self, value: Any, where: str) -> Any:
        array = np.asarray(value)
        if array.dtype.kind in _NUMBERS and array.dtype != np.longdouble:
            kind = "scalar" if isinstance(value, np.generic) else "array"
            return {"is": kind, "array": self._add(array, where)}
        if array.dtype.kind in "UO":  # names
            if array.dtype.kind == "U" and array.nbytes > _NAMES_BYTES:
                raise NotStorable(
                    f"{where} is an array of {array.size:,} strings that are all padded to the "
                    f"longest, {array.nbytes:,} bytes in all; files hold at most {_NAMES_BYTES:,}. "
                    "Give shorter names, or an array of dtype object."
                )
            dtype = "object" if array.dtype.kind == "O" else "str"
            items = self._items(array.ravel().tolist(), where)
            return {"is": "names", "dtype": dtype, "shape": list(array.shape), "of": items}
        raise NotStorable(
            f"{where} is an array of {array.dtype}; files hold arrays of numbers, truth values and "
            "strings. Convert it."
        )

    def _add(self, array: np.ndarray, name: str) -> str:
        known = self._names.setdefault(id(array), name)  # two attributes may be the same array
        if known == name:
            self.arrays[name] = array
        return known


class Reader:
    """Makes values of trees, of kinds that the table holds."""

    def __init__(self, classes: Mapping[str, ClassOf], arrays: Mapping[str, np.ndarray]) -> None:
        self._classes = classes
        self._arrays = arrays
        self._made: list[Any] = []
        self._depth = 0

    def decode(self, node: Any) -> Any:
        """The value of a tree."""
        if self._depth == _DEPTH:  # Python's own limit differs by version
            raise ValueError(f"its parts are nested more than {_DEPTH} deep")
        self._depth += 1
        try:
            return self._decode(node)
        finally:
            self._depth -= 1

    def _decode(self, node: Any) -> Any:
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
            case "dict":
                return {name: self.decode(item) for name, item in node["items"].items()}
            case "slice":
                return slice(*self.decode(node["of"]))
            case "dtype":
                return _number_type(node["name"])
            case "array":
                return self._arrays[node["array"]]
            case "scalar":
                return self._arrays[node["array"]][()]
            case "names":
                names = np.empty(len(node["of"]), dtype=object)
                names[:] = self.decode(node["of"])
                if node["dtype"] == "str":
                    names = _padded(names)
                return names.reshape(node["shape"])
            case "csr_array" | "csr_matrix":
                parts = {part: self._arrays[name] for part, name in node["arrays"].items()}
                return csr_of(parts, tuple(node["shape"]), _CSR[kind])
            case "again":
                return self._made[node["object"]]
        if kind not in self._classes:
            raise ValueError(f"no class {kind!r} is known")
        parts = {name: self.decode(part) for name, part in node["parts"].items()}
        self._made.append(self._classes[kind].make(parts))
        return self._made[-1]


def _padded(names: np.ndarray) -> np.ndarray:
    """Strings as an array of strings of one length, which a file may declare to be huge."""
    n_bytes = 4 * len(names) * max(map(len, names), default=0)
    if n_bytes > _NAMES_BYTES:
        raise ValueError(
            f"{len(names):,} strings padded to the longest would take {n_bytes:,} bytes"
        )
    return names.astype(str)


def _number_type(name: Any) -> np.dtype:
    dtype = np.dtype(str(name))
    if dtype.kind not in _NUMBERS:
        raise ValueError(f"{name!r} is no type of numbers")
    return dtype


_INTEGER = "whose state a file does not hold. Give an integer: model.set_params(random_state=0)"
_ADVICE = {  # by a class that it is of, by name: torch need not be there
    "numpy.random.mtrand.RandomState": _INTEGER,
    "numpy.random._generator.Generator": _INTEGER,
    "sklearn.base.BaseEstimator": "and files hold only estimators that are arrays and plain "
    "parameters: those of mvcca, and PCA, TruncatedSVD, TfidfTransformer, Normalizer and the "
    "scalers. Save its part on its own, by the means of its library",
    "torch.nn.modules.module.Module": "and files hold no code: networks are stored if they are "
    "torch.nn.Sequential of the usual layers of torch.nn and of those of mvcca.deep. Build it of "
    "these, or keep model.encoders_[name].state_dict() by the means of torch",
    "mvcca.deep.callbacks.Callback": "and files hold no code. Save without it: "
    "model.set_params(callbacks=())",
}


def _described(value: Any) -> str:
    """What a value is, why that is not stored, and what to do."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    for cls in type(value).__mro__:
        if advice := _ADVICE.get(f"{cls.__module__}.{cls.__qualname__}"):
            return f"a {kind}, {advice}."
    if callable(value):
        return (
            f"a function ({getattr(value, '__qualname__', kind)}), and files hold no code. Choose "
            "one that mvcca knows by name, or save the data and fit again."
        )
    return f"a {kind}; files hold numbers, strings, arrays, and lists and mappings of these."
