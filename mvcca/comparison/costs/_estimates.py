"""Which estimator does which work, to fit and to rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mvcca.comparison.costs import _deep as deep
from mvcca.comparison.costs import _kernel as kernel
from mvcca.comparison.costs import _linear as linear
from mvcca.comparison.costs._shapes import Shapes, ViewShape
from mvcca.comparison.costs._steps import class_among, components, in_row_space, moments, product
from mvcca.comparison.costs._tuning import ridge_search
from mvcca.comparison.costs._work import Work
from mvcca.model_selection import Goal

_FITS: dict[str, Callable[[Any, Shapes], Work]] = {
    "CCA": linear.cca,
    "ThreeViewCCA": linear.three_view_cca,
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
    "MVCCA": None,
    "ThreeViewCCA": None,
    "MLCCA": linear.mlcca_statistic,
    "MVMLCCA": linear.mvmlcca_statistic,
}
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
        Its parameters count. It is not fitted.
    shapes : Shapes
        Of the training rows.
    """
    kind = class_among(estimator, _FITS)
    if kind is None:
        return None
    work = Work(calls=500) + _FITS[kind](estimator, shapes)
    if getattr(estimator, "reg", None) == "cv":
        learns_labels = estimator.requires.labels
        goal: Goal = estimator.cv_goal or ("class" if learns_labels else "object")
        work += ridge_search_work(estimator, shapes, goal) or Work()
    return work


def ridge_search_work(
    estimator: Any,
    shapes: Shapes,
    goal: Goal,
    *,
    n_folds: int = 5,
    n_ridges: int = 9,
    nested: bool = False,
) -> Work | None:
    """Work of choosing ridge, ranking and components by fold statistics, without the last fit.

    None for estimators whose folds are fitted one after the other: their search is fits and
    rankings.

    Parameters
    ----------
    estimator : estimator
        Its parameters count, and the number of components is searched if it is None.
    shapes : Shapes
        Of the rows of all folds.
    goal : {"object", "class", "correlation"}
        What is maximized.
    n_folds, n_ridges : int
        Number of folds and of ridges.
    nested : bool, default=False
        Whether each fold is the held-out part of an outer cross-validation, whose settings the
        others choose.
    """
    kind = class_among(estimator, _STATISTICS)
    if kind is None:
        return None
    if kind == "ThreeViewCCA":
        shapes = linear.with_labels_as_view(shapes)
    views, work = in_row_space(shapes.views)
    statistic = _STATISTICS[kind]
    once = moments(views) if statistic is None else Work()
    k = components(estimator.n_components, views)
    if statistic is not None and getattr(estimator, "n_neighbors", None) is None:
        k = min(k, shapes.n_label_sets)
    search = ridge_search(
        views,
        Work() if statistic is None else statistic(estimator, views, shapes),
        k,
        goal,
        n_folds=n_folds,
        n_ridges=n_ridges,
        n_weightings=3 if getattr(estimator, "power", 0) else 2,
        nested=nested,
        with_numbers=estimator.n_components is None,
    )
    return work + once + search


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
    project = _PROJECTIONS.get(kind, linear.project)
    k = _n_components(kind, estimator, shapes)
    pairs = n_rows**2
    sorts = (1.0 if shapes.n_labels else 0.2) * pairs  # without labels only ranks of pairs
    lists = product(n_rows, k, n_rows)
    lists += Work(sorts=sorts, passes=60 * n_rows, calls=2500, n_bytes=8 * min(pairs, 2**24))
    return project(estimator, shapes, n_rows, k) + shapes.n_directions * lists


def _n_components(kind: str, estimator: Any, shapes: Shapes) -> int:
    """Dimension of the space in which rows are ranked."""
    if kind in ("JRL", "LGCFL"):
        return shapes.n_labels
    wanted = getattr(estimator, "n_components", None)
    if kind == "KCCA":
        most = min(kernel.n_features(estimator, view) for view in shapes.views)
    else:
        most = components(None, shapes.views)
    if kind in ("MLCCA", "MVMLCCA") and getattr(estimator, "n_neighbors", None) is None:
        most = min(most, shapes.n_label_sets)
    return most if wanted is None else min(wanted, most)
