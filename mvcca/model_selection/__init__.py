"""Splitters and scorers for scikit-learn's searches and cross-validation."""

from mvcca.model_selection._class_disjoint_split import ClassDisjointSplit
from mvcca.model_selection._scoring import RetrievalScorer, retrieval_scorer

__all__ = ["ClassDisjointSplit", "RetrievalScorer", "retrieval_scorer"]
