"""Measures of retrieval and of correlation: pure functions from scores to a value per query.

Scores are matrices (n_queries, n_gallery), larger is better; relevance is a boolean matrix of the
same shape, dense or sparse. Variants that the literature reports under the same name have different
names here. The formulas of lists that are sorted already are in `mvcca.measures.lists`, and the
expectations of lists in random order in `mvcca.measures.chance`: `mvcca.retrieval` calls them on
blocks of queries, for scores that do not fit in memory.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.measures.arrays import descending_order, unit_rows
from mvcca.measures.binary import (
    average_precision,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    precision_at_k,
    precision_recall_curve,
    recall_at_k,
    relevant_ranks,
)
from mvcca.measures.correlation import column_correlations, total_correlation
from mvcca.measures.gain import ndcg
from mvcca.measures.hubs import hubness
from mvcca.measures.weighted import label_set_similarity, weighted_average_precision
from mvcca.measures.zero_shot import class_means

__all__ = [
    "average_precision",
    "class_means",
    "column_correlations",
    "descending_order",
    "hubness",
    "label_set_similarity",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "ndcg",
    "precision_at_k",
    "precision_recall_curve",
    "recall_at_k",
    "relevant_ranks",
    "total_correlation",
    "unit_rows",
    "weighted_average_precision",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
