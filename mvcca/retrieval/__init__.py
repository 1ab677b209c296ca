"""Cross-modal retrieval: ranking, its measures over all pairs of views, and an index to search.

Everything here works on projected rows, whatever projected them, in blocks that fit the cache or
the memory: no similarity matrix is ever held. The measures themselves are `mvcca.measures`.
"""

from mvcca.retrieval.collection import joint_scores
from mvcca.retrieval.evaluate import evaluate_retrieval, recall_curve
from mvcca.retrieval.index import RetrievalIndex
from mvcca.retrieval.measure_names import Measure
from mvcca.retrieval.ranking import average_precision, ranks, score_blocks, top_k
from mvcca.retrieval.relevance import by_labels, by_pairs
from mvcca.retrieval.table import Direction, RetrievalTable

__all__ = [
    "Direction",
    "Measure",
    "RetrievalIndex",
    "RetrievalTable",
    "average_precision",
    "by_labels",
    "by_pairs",
    "evaluate_retrieval",
    "joint_scores",
    "ranks",
    "recall_curve",
    "score_blocks",
    "top_k",
]
