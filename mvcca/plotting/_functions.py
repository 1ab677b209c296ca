"""The functions ``plot_*``: each computes and draws a display, and returns its axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import getdoc, signature
from typing import Any, ParamSpec

from mvcca.plotting._biplot import BiplotDisplay
from mvcca.plotting._correlations import CorrelationDisplay
from mvcca.plotting._embedding import EmbeddingDisplay
from mvcca.plotting._grid_search import GridSearchDisplay
from mvcca.plotting._learning_curve import LearningCurveDisplay
from mvcca.plotting._loadings import LoadingsDisplay
from mvcca.plotting._margins import CategoryMarginsDisplay
from mvcca.plotting._recall import RecallCurveDisplay
from mvcca.plotting._retrieved import RetrievedDisplay
from mvcca.plotting._scales import ScalesDisplay
from mvcca.plotting._scree import ScreeDisplay
from mvcca.plotting._variates import VariatesDisplay
from mvcca.plotting._view_pairs import ViewPairsDisplay

P = ParamSpec("P")


def _function(name: str, draw: Callable[P, Any]) -> Callable[P, Any]:
    """A function with the signature and documentation of `draw` that returns the axes."""

    @wraps(draw)
    def plot(*args: P.args, **kwargs: P.kwargs) -> Any:
        display = draw(*args, **kwargs)
        return display.axes_ if hasattr(display, "axes_") else display.ax_

    plot.__name__ = plot.__qualname__ = name
    plot.__module__ = __name__
    plot.__signature__ = signature(draw).replace(return_annotation="Axes")  # type: ignore[attr-defined]
    summary, _, _ = (getdoc(draw) or "").partition("\nReturns\n")
    plot.__doc__ = f"{summary}\nReturns\n-------\nmatplotlib Axes, or dict of them by panel\n"
    return plot


plot_biplot = _function("plot_biplot", BiplotDisplay.from_estimator)
plot_category_margins = _function("plot_category_margins", CategoryMarginsDisplay.from_estimator)
plot_correlations = _function("plot_correlations", CorrelationDisplay.from_estimator)
plot_embedding = _function("plot_embedding", EmbeddingDisplay.from_estimator)
plot_grid_search = _function("plot_grid_search", GridSearchDisplay.from_estimator)
plot_learning_curve = _function("plot_learning_curve", LearningCurveDisplay.from_estimator)
plot_loadings = _function("plot_loadings", LoadingsDisplay.from_estimator)
plot_recall = _function("plot_recall", RecallCurveDisplay.from_estimator)
plot_retrieved = _function("plot_retrieved", RetrievedDisplay.from_estimator)
plot_scales = _function("plot_scales", ScalesDisplay.from_estimator)
plot_scree = _function("plot_scree", ScreeDisplay.from_estimator)
plot_variates = _function("plot_variates", VariatesDisplay.from_estimator)
plot_view_pairs = _function("plot_view_pairs", ViewPairsDisplay.from_estimator)
