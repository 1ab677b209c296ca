"""Variables of all views, with their names and loadings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mvcca.blocks.checks import to_array
from mvcca.inspection import projected
from mvcca.retrieval.ranking import fitted_steps
from mvcca.views import Views, as_views, holds_views

Names = Mapping[str, Sequence[str]]


def variable_names(widths: Mapping[str, int], given: Names | None) -> tuple[list[str], list[str]]:
    """Views and names of the variables of all views, one after another.

    Raises ValueError if names are given of an unknown view, or not of all features of a view.
    """
    given = given or {}
    for name, names in given.items():
        if name not in widths:
            raise ValueError(
                f"Unknown view {name!r} in feature_names; the views are {list(widths)}."
            )
        if len(names) != widths[name]:
            raise ValueError(
                f"feature_names must name all {widths[name]} features of view {name!r}, got "
                f"{len(names)} names."
            )
    views = [name for name, width in widths.items() for _ in range(width)]
    named = [
        str(given[name][j]) if name in given else f"{name} {j}"
        for name, width in widths.items()
        for j in range(width)
    ]
    return views, named


class Variables:
    """Variables of all views, one after another, with their names and loadings."""

    def __init__(self, loadings: Mapping[str, np.ndarray], given: Names | None) -> None:
        widths = {name: len(values) for name, values in loadings.items()}
        self.views, self.names = variable_names(widths, given)
        self.loadings = np.concatenate(list(loadings.values()))  # (n_variables, n_components)

    def of_view(self, name: str) -> np.ndarray:
        """Mask of the variables of a view."""
        return np.array(self.views) == name


def largest(loadings: np.ndarray, n_top: int) -> np.ndarray:
    """Positions of the variables with the largest loadings (n_variables, n_components)."""
    return np.argsort(-np.linalg.norm(loadings, axis=1), kind="stable")[:n_top]


def column_names(X: Any, names: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Column names of the views that have them, such as DataFrames."""
    columns = {name: getattr(block, "columns", None) for name, block in as_views(X, names).items()}
    return {name: [*map(str, of)] for name, of in columns.items() if of is not None}


def rows_with_names(
    estimator: Any, X: Any, y: Any, feature_names: Names | None
) -> tuple[Views, Views, Names]:
    """Scores, rows in memory and names of their columns; without names, of selected features."""
    views, scores = projected(estimator, X, y)
    if feature_names is not None:
        return scores, views, feature_names
    # Rows of files lose their column names when they are read.
    names = column_names(X, views.names) if holds_views(X) else column_names(views)
    return scores, *_only_selected(estimator, views, names)


def _only_selected(
    estimator: Any, views: Views, names: dict[str, list[str]]
) -> tuple[Views, dict[str, list[str]]]:
    """Rows and names of the features with weights in any component of a model.

    All features, if the model does not select any, or not among these.
    """
    step = fitted_steps(estimator)[-1]
    if not hasattr(step, "selected_"):
        return views, names
    blocks, names = dict(views.items()), dict(names)
    _, every = variable_names(views.widths, names)
    for (name, width), stop in zip(
        views.widths.items(), np.cumsum([*views.widths.values()]), strict=True
    ):
        W = step.sparse_weights_.get(name, np.empty((0, 0)))
        if len(W) == width and not W.any(axis=1).all():  # else of features that a step made
            kept = np.flatnonzero(W.any(axis=1))
            blocks[name] = to_array(blocks[name])[:, kept]
            names[name] = [every[stop - width + i] for i in kept]
    return views.replace(blocks), names
