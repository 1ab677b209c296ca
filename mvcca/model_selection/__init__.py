"""Folds, scorers, and settings that held-out rows choose.

`folds` and `groups` split the objects. `search` tries settings on folds, with the models of a
`ModelSource`: those of `sources` are solved from statistics of the folds (`fold_statistics`), by
products, or fitted anew, and `goals` ranks held-out rows under them. `space_search` searches
several parameters (`spaces`), and `tuning` fits with what was chosen. `questions` chooses how to
answer queries of any views about another. `FoldSearchCV` is scikit-learn's interface to such
searches.

The names below are those of users and of authors of methods. Other rooms import the parts of the
search from the modules that define them.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.model_selection._class_disjoint_split import ClassDisjointSplit
from mvcca.model_selection._fold_search import FoldSearchCV
from mvcca.model_selection._sample_size import (
    held_out_sample_size,
    required_correlation,
    sample_size,
    spectrum_decay,
)
from mvcca.model_selection._scoring import RetrievalScorer as RetrievalScorer
from mvcca.model_selection._scoring import retrieval_scorer
from mvcca.model_selection.search import Choice, Trials
from mvcca.model_selection.sources import search_folds
from mvcca.model_selection.spaces import Space, searched

__all__ = [
    "Choice",
    "ClassDisjointSplit",
    "FoldSearchCV",
    "Space",
    "Trials",
    "held_out_sample_size",
    "required_correlation",
    "retrieval_scorer",
    "sample_size",
    "search_folds",
    "searched",
    "spectrum_decay",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
