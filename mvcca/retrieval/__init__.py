"""Cross-modal retrieval: exact ranking, evaluation between views, and a search index.

Functions take projected rows from any source and work on blocks that fit in cache or memory: no
matrix of all scores is ever held. The formulas of the measures are in `mvcca.measures`.

`search` finds the k best rows of a gallery, `hubs` corrects scores for hubs, and `index` keeps a
gallery per view. `neighbors` finds mutual neighbours and transfers labels. The modules beside them
declare rankings and evaluate directions between views.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.retrieval.evaluate import evaluate_retrieval
from mvcca.retrieval.hubs import CSLS
from mvcca.retrieval.index import RetrievalIndex
from mvcca.retrieval.matches import MatchCalibration, calibrate_matches
from mvcca.retrieval.neighbors import mutual_neighbors, transfer_labels
from mvcca.retrieval.projected_rows import per_query, ranks, score_blocks, top_k
from mvcca.retrieval.relevance import by_labels, by_pairs
from mvcca.retrieval.table import Direction, RetrievalTable
from mvcca.retrieval.vectors import retrieval_vectors

__all__ = [
    "CSLS",
    "Direction",
    "MatchCalibration",
    "RetrievalIndex",
    "RetrievalTable",
    "by_labels",
    "by_pairs",
    "calibrate_matches",
    "evaluate_retrieval",
    "mutual_neighbors",
    "per_query",
    "ranks",
    "retrieval_vectors",
    "score_blocks",
    "top_k",
    "transfer_labels",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
