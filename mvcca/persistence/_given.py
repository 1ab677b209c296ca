"""Code of the user in models: files hold its name, and `load` is given it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mvcca.machine.archive import ModelFileError

GIVEN = {  # parameters of estimators that may hold code, and what to pass for them
    "encoders": "networks of the same layers",
    "objective": "the same loss",
}


@dataclass(frozen=True)
class Code:
    """Place of a parameter whose value is code of the user, and a text that describes it."""

    parameter: str
    text: str

    @classmethod
    def of(cls, parameter: str, value: Any) -> Code:
        """The place of a value, described by its classes."""
        return cls(parameter, _described(value))


class Given:
    """Encoders and objective given to `mvcca.load` for a model fitted with code of the user."""

    def __init__(self, **values: Any) -> None:
        self._values, self._taken = values, set[str]()

    def take(self, parts: dict[str, Any]) -> Any:
        """The value of a parameter, whose place in a file is held by a `Code`."""
        code = Code(**parts)
        value = self._values[code.parameter]
        if value is None:
            raise ModelFileError(
                f"the {code.parameter} of the model are your own ({code.text}), and files hold no "
                f"code. Pass {GIVEN[code.parameter]}: load(path, {code.parameter}=...)"
            )
        self._taken.add(code.parameter)
        return value

    def refuse_unused(self, path: str) -> None:
        """Raise ValueError if something was given that the file does not need."""
        for name, value in self._values.items():
            if value is not None and name not in self._taken:
                raise ValueError(f"{path} holds no {name} of your own. Leave out {name}.")


def _described(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_described(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_described, value))
    kind = value if hasattr(value, "__qualname__") else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
