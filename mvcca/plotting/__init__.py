"""Plots of models, as scikit-learn displays.

A display contains plain arrays: `from_estimator` computes them from a fitted model and rows,
`from_scores` from projected rows, and `plot` draws them. A learning curve is drawn from a model's
history. The functions ``plot_*`` compute and draw a display and return its axes. Values are
computed by `mvcca.inspection` and `mvcca.retrieval`; matplotlib is imported when drawing.
"""

from mvcca.plotting._correlations import CorrelationDisplay
from mvcca.plotting._embedding import EmbeddingDisplay
from mvcca.plotting._functions import (
    plot_correlations,
    plot_embedding,
    plot_learning_curve,
    plot_loadings,
    plot_recall,
)
from mvcca.plotting._learning_curve import LearningCurveDisplay
from mvcca.plotting._loadings import LoadingsDisplay
from mvcca.plotting._recall import RecallCurveDisplay

__all__ = [
    "CorrelationDisplay",
    "EmbeddingDisplay",
    "LearningCurveDisplay",
    "LoadingsDisplay",
    "RecallCurveDisplay",
    "plot_correlations",
    "plot_embedding",
    "plot_learning_curve",
    "plot_loadings",
    "plot_recall",
]
