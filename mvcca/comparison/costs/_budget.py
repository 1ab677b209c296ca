"""Budgets of time as users write them."""

from __future__ import annotations

import re
from math import isnan
from numbers import Real

_UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def parse_budget(budget: str | float) -> float:
    """Return seconds from a number of seconds or a text such as "30s", "10min" or "2h".

    Raises
    ------
    ValueError
        If the text has another form, or the time is not positive.
    TypeError
        If `budget` is neither a number nor a text.
    """
    expected = 'Expected budget to be seconds or a time such as "30s", "10min" or "2h"'
    if isinstance(budget, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(s|min|h)\s*", budget)
        if found is None:
            raise ValueError(f"{expected}, got {budget!r}.")
        seconds = float(found[1]) * _UNITS[found[2]]
    elif isinstance(budget, Real) and not isinstance(budget, bool):
        seconds = float(budget)
    else:
        raise TypeError(f"{expected}, got {budget!r}.")
    if isnan(seconds) or seconds <= 0:
        raise ValueError(f"{expected}, more than 0, got {budget!r}.")
    return seconds
