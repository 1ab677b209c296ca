"""Which estimator does which work, to fit and to rank."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone

from mvcca.comparison.costs import _deep as deep
from mvcca.comparison.costs import _kernel as kernel
from mvcca.comparison.costs import _linear as linear
from mvcca.comparison.costs._shapes import Shapes, ViewShape
from mvcca.comparison.costs._steps import class_among, components, in_row_space, moments, product
from mvcca.comparison.costs._tuning import models_of, rankings, ridge_search
from mvcca.comparison.costs._work import Work
from mvcca.model_selection import HELD_OUT, RIDGES, Goal, goal_of, plain_value, searched
from mvcca.retrieval.bank import BANK_ROWS

_FITS: dict[str, Callable[[Any, Shapes], Work]] = {
    "CCA": linear.cca,
    "ThreeViewCCA": linear.three_view_cca,
    "GCCA": linear.gcca,
    "MVCCA": linear.cca,
    "AffineMap": linear.affine_map,
    "PLS": linear.pls,
    "Procrustes": linear.pls,
    "MLCCA": linear.mlcca,
    "MVMLCCA": linear.mvmlcca,
    "LGCFL": linear.lgcfl,
    "JRL": linear.jrl,
    "CMOLRS": linear.cmolrs,
    "KCCA": kernel.kcca,
    "NCCA": kernel.ncca,
    "DeepEstimator": deep.networks,
}
# What every model of a search by fold statistics computes beside sums of those of the folds.
_STATISTICS: dict[str, Callable[[Any, tuple[ViewShape, ...], Shapes], Work] | None] = {
    "CCA": None,
    "KCCA": None,
    "GCCA": None,
    "MVCCA": None,
    "ThreeViewCCA": None,
    "MLCCA": linear.mlcca_statistic,
    "MVMLCCA": linear.mvmlcca_statistic,
}
# Numbers of values of parameters that folds choose one after another; ridges that are all solved
# from one statistic are not among them.
_VALUES = {
    "KCCA": {"gamma": 4},
    "NCCA": {"n_neighbors": 5, "bandwidth": 3},
    "LGCFL": {"reg": 6},
    "JRL": {"n_neighbors": 4, "reg": 5},
    "CMOLRS": {"learning_rate": 4, "n_components": 3},
}
_RIDGES_OF_KERNELS = 6
_FEW_FOLDS = 3  # of a bare fit whose models are fitted one by one
_RANK = 30  # of a similarity, in the middle of those that a search tries
_PROJECTIONS: dict[str, Callable[[Any, Shapes, int, int], Work]] = {
    "KCCA": kernel.project_by_kernel,
    "NCCA": kernel.project_by_neighbours,
    "JRL": linear.project_by_labels,
    "DeepEstimator": deep.project_by_networks,
}


def fit_work(estimator: Any, shapes: Shapes) -> Work | None:
    """Work of one fit; None for estimators that are not of this package.

    Parameters
    ----------
    estimator : estimator
        Its parameters count; the search for those that are "cv" is included. It is not fitted.
    shapes : Shapes
        Of the training rows.
    """
    kind = class_among(estimator, _FITS)
    if kind is None:
        return None
    work = Work(calls=500) + _FITS[kind](without_search(estimator), shapes)
    if searched(estimator):
        n_folds = _FEW_FOLDS if kind in ("NCCA", "LGCFL", "JRL", "CMOLRS") else 5
        work += search_work(estimator, shapes, goal_of(estimator), n_folds=n_folds) or Work()
    return work


def search_work(
    estimator: Any,
    shapes: Shapes,
    goal: Goal,
    *,
    n_settings: int | None = None,
    n_folds: int = 5,
    n_ridges: int | None = None,
    nested: bool = False,
    with_numbers: bool = False,
) -> Work | None:
    """Work of choosing settings by folds, without the last fit; None as in `fit_work`.

    Parameters
    ----------
    estimator : estimator
        Its parameters count, and the number of components is searched if it is None.
    shapes : Shapes
        Of the rows of all folds.
    goal : {"object", "class", "correlation"}
        What is maximized.
    n_settings, n_ridges : int, optional
        Number of settings that models are made for, and of ridges that are all solved from one
        statistic; by default as many as a full search tries.
    n_folds : int, default=5
        Number of folds.
    nested : bool, default=False
        Whether each fold is the held-out part of an outer cross-validation, whose settings the
        others choose.
    with_numbers : bool, default=False
        Whether numbers of components are searched, too, though the estimator has one.
    """
    kind = class_among(estimator, _FITS)
    if kind is None:
        return None
    names, estimator = searched(estimator), without_search(estimator)
    if n_settings is None:
        n_values = _VALUES.get(kind, {})
        n_settings = 1 + sum(n_values[name] - 1 for name in names if name in n_values)
    with_numbers |= estimator.get_params(deep=False).get("n_components", 0) is None
    if kind not in _STATISTICS:
        n_models, n_held_out = models_of(shapes.n_rows, n_folds, nested)
        n_rows = min(HELD_OUT, max(1, shapes.n_rows // n_folds))
        k = _n_components(kind, estimator, shapes)
        n_projected = n_rows + (HELD_OUT if goal == "object" else 0)  # these correct rankings
        ranking = _PROJECTIONS.get(kind, linear.project)(estimator, shapes, n_projected, k)
        ranking += shapes.n_directions * rankings(goal, k, n_rows, with_numbers)
        return n_settings * n_models * (_FITS[kind](estimator, shapes) + n_held_out * ranking)
    if n_ridges is None:
        most = _RIDGES_OF_KERNELS if kind == "KCCA" else len(RIDGES)
        n_ridges = most if "reg" in names else 1
    n_directions = shapes.n_directions
    if kind == "ThreeViewCCA":
        shapes = linear.with_labels_as_view(shapes)
    if kind == "KCCA":
        views, work = kernel.features(estimator, shapes)
    else:
        views, work = in_row_space(shapes.views)
    statistic, k = _STATISTICS[kind], components(estimator.n_components, views)
    if kind in ("MLCCA", "MVMLCCA") and getattr(estimator, "n_neighbors", None) is None:
        k = min(k, shapes.n_label_sets)
    search = partial(
        ridge_search,
        views,
        Work() if statistic is None else statistic(estimator, views, shapes),
        k,
        goal,
        n_folds=n_folds,
        n_weightings=3 if getattr(estimator, "power", 0) else 2,
        nested=nested,
        with_numbers=with_numbers and goal == "class",  # weights do it for objects
        n_directions=n_directions,
    )
    work += moments(views) if statistic is None else Work()
    # Other settings are tried with the best ridge of the first one.
    return n_settings * work + search(n_ridges=n_ridges) + (n_settings - 1) * search(n_ridges=1)


def without_search(estimator: Any) -> Any:
    """The estimator with typical values of parameters that folds choose, or that are "auto"."""
    defaults = inspect.signature(type(estimator)).parameters
    plain = {name: defaults[name].default for name in searched(estimator)}
    given = {name: getattr(estimator, name) for name in getattr(estimator, "automatic", {})}
    plain = {name: plain_value(estimator, name, own) for name, own in {**given, **plain}.items()}
    if "n_components" in plain:
        plain["n_components"] = _RANK if class_among(estimator, _VALUES) == "CMOLRS" else None
    return clone(estimator).set_params(**plain) if plain else estimator


def ranking_work(estimator: Any, shapes: Shapes, n_rows: int) -> Work | None:
    """Work of projecting `n_rows` held-out rows and ranking all of them for each, between views.

    None for estimators that are not of this package.

    Parameters
    ----------
    estimator : estimator
        Its parameters count. It need not be fitted.
    shapes : Shapes
        Of the training rows.
    n_rows : int
        Number of held-out rows of every view.
    """
    kind = class_among(estimator, _FITS)
    if kind is None:
        return None
    corrects = bool(searched(estimator)) and goal_of(estimator) == "object"
    estimator = without_search(estimator)
    project = _PROJECTIONS.get(kind, linear.project)
    k = _n_components(kind, estimator, shapes)
    pairs = n_rows**2
    sorts = (1.0 if shapes.n_labels else 0.2) * pairs  # without labels only ranks of pairs
    lists = product(n_rows, k, n_rows)
    lists += Work(sorts=sorts, passes=60 * n_rows, calls=2500, n_bytes=8 * min(pairs, 2**24))
    if corrects:  # hubs, by training rows
        n_bank = min(shapes.n_rows, BANK_ROWS)
        lists += product(n_bank, k, n_rows) + Work(sorts=n_bank * n_rows)
    return project(estimator, shapes, n_rows, k) + shapes.n_directions * lists


def _n_components(kind: str, estimator: Any, shapes: Shapes) -> int:
    """Dimension of the space in which rows are ranked."""
    if kind in ("JRL", "LGCFL"):
        return shapes.n_labels
    wanted = getattr(estimator, "n_components", None)
    if kind == "NCCA":
        most = kernel.MOST_FUNCTIONS
    elif kind == "KCCA":
        most = min(kernel.n_features(estimator, view) for view in shapes.views)
    else:
        most = components(None, shapes.views)
    if kind in ("MLCCA", "MVMLCCA") and getattr(estimator, "n_neighbors", None) is None:
        most = min(most, shapes.n_label_sets)
    return most if wanted is None else min(wanted, most)
