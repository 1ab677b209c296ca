"""The parameter `reg`: one number per view, of what a user may give for all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from mvcca.linear._rows import own_weights
from mvcca.linear._shrinkage import ledoit_wolf_shrinkage
from mvcca.views import Views

Reg = float | str | Mapping[str, float]


def reg_of_rows(reg: Reg, views: Views, weights: np.ndarray | None = None) -> dict[str, float]:
    """Ridge per view, or with "auto" the `Shrinkage` estimated from all rows."""
    if reg != "auto":
        return reg_of_names(reg, views.names)
    return {
        name: ledoit_wolf_shrinkage(block, own_weights(views, name, weights))
        for name, block in views.items()
    }


def reg_of_names(reg: Reg, names: Iterable[str]) -> dict[str, float]:
    """Of every view where no more is known than their names, as in batches."""
    if reg == "auto":
        raise ValueError(
            'reg="auto" (Ledoit-Wolf) looks at all rows at once: use fit, or give partial_fit a '
            "number."
        )
    names = list(names)
    if not isinstance(reg, Mapping):
        return dict.fromkeys(names, _finite("reg", reg))
    if set(reg) != set(names):
        raise ValueError(f"reg names the views {list(reg)}, expected {names}.")
    return {name: _finite(f"reg of view {name!r}", reg[name]) for name in names}


def _finite(what: str, value: Any) -> float:
    """A ridge as a float."""
    if not (isinstance(value, Real) and 0 <= value <= sys.float_info.max):  # type: ignore[operator]
        raise ValueError(f"{what} must be a number >= 0, got {str(value)[:40]}.")
    return float(value)


def positive_reg(reg: Mapping[str, float]) -> Mapping[str, float]:
    """Reg by view; without any, weights of constant and of repeated features are not defined."""
    for name, value in reg.items():
        if not value:
            raise ValueError(f"reg of view {name!r} must be positive, got {value!r}.")
    return reg
