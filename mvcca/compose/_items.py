"""What a step takes that knows of no views: one matrix, or items such as texts in one column."""

from __future__ import annotations

from typing import Any

import numpy as np

from mvcca.blocks import is_mapping
from mvcca.views import Views, holds_views


def check_no_views(X: Any, taker: str) -> None:
    """Refuse views; `taker` is the class that takes one matrix."""
    if holds_views(X):
        raise ValueError(
            f"{taker} takes one matrix, got a {type(X).__name__} of views. Use PerView({taker}()) "
            "to apply it to each view."
        )


def items_of(X: Any, taker: str) -> list[Any]:
    """The items of a sequence or of a single column; `taker` is the class that takes them."""
    if isinstance(X, Views) or is_mapping(X):  # a list of matrices may be one of images
        check_no_views(X, taker)
    if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
        raise ValueError(f"{taker} takes a sequence of items, got a single {type(X).__name__}.")
    shape: tuple[int, ...] = getattr(X, "shape", (len(X),))
    if len(shape) == 1:
        return list(X)
    if len(shape) != 2 or shape[1] != 1:
        raise ValueError(f"{taker} takes a sequence of items or one column of them, got {shape}.")
    return list(np.asarray(X)[:, 0])
