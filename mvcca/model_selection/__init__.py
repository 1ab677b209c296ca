"""Splitters and scorers for scikit-learn's searches and cross-validation."""

from mvcca.model_selection._class_disjoint_split import ClassDisjointSplit
from mvcca.model_selection._goals import GOALS, Goal
from mvcca.model_selection._scoring import RetrievalScorer, retrieval_scorer
from mvcca.model_selection._tuning import (
    LEAST_RIDGE,
    Choice,
    choices,
    fit_chosen,
    tunable,
    tuned,
)

__all__ = [
    "GOALS",
    "LEAST_RIDGE",
    "Choice",
    "ClassDisjointSplit",
    "Goal",
    "RetrievalScorer",
    "choices",
    "fit_chosen",
    "retrieval_scorer",
    "tunable",
    "tuned",
]
