"""Items that are not rows of numbers, such as texts, in any container of one column."""

from __future__ import annotations

from typing import Any

import numpy as np


def items_of(X: Any, taker: str) -> list[Any]:
    """The items of a sequence or of a single column; `taker` is the class that takes them."""
    if isinstance(X, str | bytes):
        raise ValueError(f"{taker} takes a sequence of items, got a single {type(X).__name__}.")
    shape: tuple[int, ...] = getattr(X, "shape", (len(X),))
    if len(shape) == 1:
        return list(X)
    if len(shape) != 2 or shape[1] != 1:
        raise ValueError(f"{taker} takes a sequence of items or one column of them, got {shape}.")
    return list(np.asarray(X)[:, 0])
