"""Measures of retrieval and of correlation: pure functions from scores to a value per query.

Scores are matrices (n_queries, n_gallery), larger is better; relevance is a boolean matrix of the
same shape, dense or sparse. Variants that the literature reports under the same name have different
names here. `mvcca.retrieval` calls these functions on blocks of queries, for scores that do not fit
in memory.
"""

from mvcca.measures.arrays import descending_order, in_order, merge_parallel, ranked, unit_rows
from mvcca.measures.binary import (
    NoRelevant,
    Normalizer,
    Ties,
    average_precision,
    average_precision_of_lists,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    precision_at_k,
    precision_recall_curve,
    recall_at_k,
    relevant_ranks,
    relevant_ranks_of_lists,
)
from mvcca.measures.correlation import column_correlations, total_correlation
from mvcca.measures.gain import ndcg, ndcg_of_lists
from mvcca.measures.hubs import hubness
from mvcca.measures.weighted import (
    label_set_similarity,
    weighted_average_precision,
    weighted_average_precision_of_lists,
)
from mvcca.measures.zero_shot import class_means

__all__ = [
    "NoRelevant",
    "Normalizer",
    "Ties",
    "average_precision",
    "average_precision_of_lists",
    "class_means",
    "column_correlations",
    "descending_order",
    "hubness",
    "in_order",
    "label_set_similarity",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "merge_parallel",
    "ndcg",
    "ndcg_of_lists",
    "precision_at_k",
    "precision_recall_curve",
    "ranked",
    "recall_at_k",
    "relevant_ranks",
    "relevant_ranks_of_lists",
    "total_correlation",
    "unit_rows",
    "weighted_average_precision",
    "weighted_average_precision_of_lists",
]
