"""Import of optional libraries, with a hint what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, purpose: str, requirement: str) -> Any:
    """Import a module, or raise ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {library}: pip install {requirement}") from error
