"""Names of a package that are imported when they are first used, or that are gone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from mvcca.machine.gone_names import missing


def on_access(
    package: str, names: Mapping[str, Sequence[str]] | None = None
) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562) whose names import their module on access.

    `names` lists those of each module of the package. A name that is gone raises an error that says
    what to use instead.

    Commands and models in files need few of these modules, and scikit-learn, which others import,
    takes a second. The package lists the names for type checkers as well.
    """
    module_of = {name: module for module, of_module in (names or {}).items() for name in of_module}

    def imported(name: str) -> Any:
        if name not in module_of:
            raise missing(package, name)
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # later accesses skip this function
        return value

    return imported
