"""Plots of models, as scikit-learn displays.

A display contains plain arrays: `from_estimator` computes them from a fitted model and rows,
`from_scores` from projected rows, and `plot` draws them, with keywords of matplotlib. Artists are
kept as ``line_``, ``scatter_``, ``im_``, ``text_``, ``ax_`` and ``figure_``. Learning curves,
margins and searches are read from a model without rows. The functions ``plot_*`` compute and draw
a display and return its axes. Values are computed by `mvcca.inspection` and `mvcca.retrieval`;
matplotlib is imported when drawing.
"""

from mvcca.plotting._biplot import BiplotDisplay
from mvcca.plotting._correlations import CorrelationDisplay
from mvcca.plotting._embedding import EmbeddingDisplay
from mvcca.plotting._functions import (
    plot_biplot,
    plot_category_margins,
    plot_correlations,
    plot_embedding,
    plot_grid_search,
    plot_learning_curve,
    plot_loadings,
    plot_recall,
    plot_retrieved,
    plot_scales,
    plot_scree,
    plot_variates,
    plot_view_pairs,
)
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

__all__ = [
    "BiplotDisplay",
    "CategoryMarginsDisplay",
    "CorrelationDisplay",
    "EmbeddingDisplay",
    "GridSearchDisplay",
    "LearningCurveDisplay",
    "LoadingsDisplay",
    "RecallCurveDisplay",
    "RetrievedDisplay",
    "ScalesDisplay",
    "ScreeDisplay",
    "VariatesDisplay",
    "ViewPairsDisplay",
    "plot_biplot",
    "plot_category_margins",
    "plot_correlations",
    "plot_embedding",
    "plot_grid_search",
    "plot_learning_curve",
    "plot_loadings",
    "plot_recall",
    "plot_retrieved",
    "plot_scales",
    "plot_scree",
    "plot_variates",
    "plot_view_pairs",
]
