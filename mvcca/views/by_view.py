"""Parameters that are given once for all views, or by view name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def value_by_view(parameter: str, value: Any, names: Iterable[str], advice: str = "") -> dict:
    """The value of a parameter for each view, from one value or from a mapping by view name."""
    names = list(names)
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    if set(value) != set(names):
        raise ValueError(f"{parameter} names the views {list(value)}, expected {names}.{advice}")
    return {name: value[name] for name in names}
