"""Names of the variables of all views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mvcca.views import holds_views


def column_names(X: Any, y: Any, names: Sequence[str]) -> dict[str, list[str]]:
    """Column names of the views that are DataFrames; `names` are those of all views."""
    if not holds_views(X):
        X = {"X": X, "y": y}
    blocks = X if isinstance(X, list | tuple) else [X[name] for name in names]
    return {
        name: [str(column) for column in block.columns]
        for name, block in zip(names, blocks, strict=True)
        if hasattr(block, "columns")
    }


def variable_names(
    values: Mapping[str, np.ndarray], given: Mapping[str, Sequence[str]] | None
) -> list[str]:
    """Name of each variable of all views; without a given one that of the view and a number.

    Raises
    ------
    ValueError
        If names are given of an unknown view, or not of all features of a view.
    """
    given = given or {}
    for name, names in given.items():
        if name not in values:
            raise ValueError(
                f"Unknown view {name!r} in feature_names; the views are {list(values)}."
            )
        if len(names) != len(values[name]):
            raise ValueError(
                f"feature_names must name all {len(values[name])} features of view {name!r}, got "
                f"{len(names)} names."
            )
    return [
        str(given[name][j]) if name in given else f"{name} {j}"
        for name, of_view in values.items()
        for j in range(len(of_view))
    ]


def view_numbers(values: Mapping[str, np.ndarray]) -> np.ndarray:
    """Number of the view of each variable."""
    return np.repeat(np.arange(len(values)), [len(of_view) for of_view in values.values()])
