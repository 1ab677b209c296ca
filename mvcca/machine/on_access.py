"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_access(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562) whose names import their module on access.

    `names` lists those of each module of the package.

    Commands and models in files need few of these modules, and scikit-learn, which others import,
    takes a second. The package lists the names for type checkers as well.
    """
    module_of = {name: module for module, of_module in names.items() for name in of_module}

    def imported(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # later accesses skip this function
        return value

    return imported
