"""Ridges: their kinds, their units, and how they are added to a matrix."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from mvcca.views.by_view import value_by_view

Reg = float | str | Mapping[str, float]


class Absolute(float):
    """A ridge r in the units of the matrix C that it is added to, C + r I.

    A plain number r in its place makes C + r μ I, with μ the mean diagonal of C.
    """


class Shrinkage(float):
    """A share s in [0, 1]: a matrix C with mean diagonal μ becomes (1 - s) C + s μ I.

    A plain number r in its place makes C + r μ I.
    """


def reg_of_names(
    reg: Reg, names: Iterable[str], *, positive: bool = False, unit: str = "relative"
) -> dict[str, float]:
    """Ridge per view, as given; "cv" is for fits that hold all rows.

    Problems in which repeated features have no unique weights without a ridge refuse 0. If the
    `unit` is "absolute", ridges are `Absolute`.
    """
    if isinstance(reg, str):
        raise ValueError(
            f'reg="{reg}" looks at all rows at once: use fit, or give partial_fit a number.'
        )
    by_name = isinstance(reg, Mapping)
    values: dict[str, Any] = (
        value_by_view("reg", reg, names) if by_name else dict.fromkeys(names, reg)
    )
    for name, value in values.items():
        if not (isinstance(value, Real) and 0 <= value <= sys.float_info.max):  # type: ignore[operator]
            what = f"reg of view {name!r}" if by_name else "reg"
            raise ValueError(f"{what} must be a number >= 0, got {str(value)[:40]}.")
        if positive and not value:
            raise ValueError(f"reg of view {name!r} must be positive, got {float(value)!r}.")
    kind = Absolute if unit == "absolute" else float
    return {name: kind(value) for name, value in values.items()}


def ridge_in(reg: float, unit: float) -> float:
    """The ridge that is added to a matrix with mean diagonal `unit`."""
    return float(reg) if isinstance(reg, Absolute) else reg * unit


def ridged(B: np.ndarray, reg: float, unit: float) -> np.ndarray:
    """A matrix B of features, or the diagonal of one, with the ridge `ridge_in` its unit."""
    result = (1 - reg if isinstance(reg, Shrinkage) else 1) * B
    # A constant column stays out of the problem: its weight is 0, not nearly 0.
    diagonal = np.diag(B) if B.ndim == 2 else B
    places = np.diag_indices_from(B) if B.ndim == 2 else ...
    result[places] += ridge_in(reg, unit) * (diagonal > 0)
    return result
