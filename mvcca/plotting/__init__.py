"""Pictures of a model, as scikit-learn displays.

A display holds what is drawn as plain arrays: `from_estimator` computes it from a fitted model and
rows, `from_scores` from projected rows, and `plot` draws it, on axes of yours if you pass some.
(A learning curve needs no rows: it is drawn of a model's history.) The functions ``plot_*`` do both
at once and return the axes. What is computed comes from `mvcca.inspection` and `mvcca.retrieval`;
matplotlib is imported when something is drawn.
"""

from mvcca.plotting._correlations import CorrelationDisplay, plot_correlations
from mvcca.plotting._embedding import EmbeddingDisplay, plot_embedding
from mvcca.plotting._learning_curve import LearningCurveDisplay, plot_learning_curve
from mvcca.plotting._loadings import LoadingsDisplay, plot_loadings
from mvcca.plotting._recall import RecallCurveDisplay, plot_recall

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
