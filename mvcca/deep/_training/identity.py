"""Text that identifies parameters across processes, compared by checkpoints and saved states.

`repr` does not serve: a function's contains an address, a module's omits plain attributes, and a
large array's omits values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, NoneType
from typing import Any

import numpy as np
from torch import Tensor, nn

__all__ = ["identity"]

_PLAIN = (bool, int, float, complex, str, bytes, NoneType)
_MODULE_ATTRIBUTES = vars(nn.Module()).keys()  # hooks, parameters, layers and mode of any module


def identity(value: Any, outer: tuple[int, ...] = ()) -> str:
    """Text that is equal for parameters with equal content.

    Functions are identified by name, code, defaults, enclosed values, and the plain module-level
    values that they use; torch modules by class, attributes, layers and tensor shapes, but not by
    their weights, which checkpoints hold; other objects by class and attributes.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in outer:
        return "..."  # an object that contains itself
    inner = partial(identity, outer=(*outer, id(value)))
    if isinstance(value, list | tuple):
        parts = ", ".join(map(inner, value)) + ("," if len(value) == 1 else "")
        return f"[{parts}]" if isinstance(value, list) else f"({parts})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{inner(k)}: {inner(v)}' for k, v in value.items()))}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(inner, value)))}}}"
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"array({value.dtype}, {value.shape}, {_digest(value.tobytes())})"
    if isinstance(value, type | BuiltinFunctionType | np.ufunc):
        return _name(value)
    if isinstance(value, CodeType):
        return _digest(value.co_code, inner(value.co_consts), inner(value.co_names))
    if isinstance(value, FunctionType):
        return f"{_name(value)}({inner(_behaviour(value))})"
    if isinstance(value, MethodType):
        return f"{inner(value.__func__)} of {inner(value.__self__)}"
    if isinstance(value, partial):
        return f"partial({inner((value.func, value.args, value.keywords))})"
    if isinstance(value, nn.Module):
        return f"{_name(type(value))}({inner(_structure(value))})"
    if hasattr(value, "__dict__"):
        return f"{_name(type(value))}({inner(vars(value))})"
    shown = "" if type(value).__repr__ is object.__repr__ else repr(value)  # contains an address
    return f"{_name(type(value))}({shown})"


def _behaviour(function: FunctionType) -> list[Any]:
    code = function.__code__
    known = function.__globals__
    named = {name: known[name] for name in _global_names(code) if name in known}
    return [
        code,
        function.__defaults__,
        function.__kwdefaults__,
        [_content(cell) for cell in function.__closure__ or ()],
        {name: value for name, value in named.items() if isinstance(value, _PLAIN)},
    ]


def _global_names(code: CodeType) -> set[str]:
    """Global names used by a function and by the functions defined in it."""
    inside = (part for part in code.co_consts if isinstance(part, CodeType))
    return {*code.co_names}.union(*map(_global_names, inside))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _structure(module: nn.Module) -> dict[str, Any]:
    tensors = {**module._parameters, **module._buffers}
    return {
        "attributes": {n: v for n, v in vars(module).items() if n not in _MODULE_ATTRIBUTES},
        "tensors": {
            n: None if t is None else (tuple(t.shape), str(t.dtype), t.requires_grad)
            for n, t in tensors.items()
        },
        "layers": list(module._modules.items()),
    }


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', None)}.{getattr(thing, '__qualname__', repr(thing))}"


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part if isinstance(part, bytes) else part.encode())
    return digest.hexdigest()[:16]
