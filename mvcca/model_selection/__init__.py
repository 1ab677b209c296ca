"""Folds, scorers, and settings that held-out rows choose.

`folds` and `groups` split the objects. `search` tries settings on folds, with the models of a
`ModelSource`: those of `_sources` are solved from statistics of the folds (`_fold_statistics`), by
products, or fitted anew, and `_goals` ranks held-out rows under them. `_space_search` searches
several parameters (`_spaces`), and `_tuning` fits with what was chosen. `questions` chooses how to
answer queries of any views about another. `FoldSearchCV` is scikit-learn's interface to such
searches. `_sample_size` plans studies.
"""

from mvcca.model_selection._class_disjoint_split import ClassDisjointSplit
from mvcca.model_selection._fold_search import FoldSearchCV
from mvcca.model_selection._fold_statistics import InnerFolds
from mvcca.model_selection._goals import (
    GOALS,
    MEASURES,
    Asked,
    Goal,
    RankedSample,
    Value,
    drawn,
    goal_of,
    values_by_ranking,
)
from mvcca.model_selection._sample_size import (
    decay_of_variances,
    held_out_sample_size,
    required_correlation,
    sample_size,
    spectrum_decay,
)
from mvcca.model_selection._scoring import RetrievalScorer, retrieval_scorer
from mvcca.model_selection._search import Choice, Trials, Variant
from mvcca.model_selection._sources import numbers_of_components, search_folds
from mvcca.model_selection._space_search import SpaceSearch
from mvcca.model_selection._spaces import (
    AUTOMATIC,
    LEAST_RIDGE,
    RIDGES,
    SEARCHED,
    Space,
    plain_value,
    searched,
    space_of,
)
from mvcca.model_selection._tuning import (
    choice_of,
    choice_with_components,
    chosen,
    fit_chosen,
    held_out_source,
    tunable,
    tune,
    tune_by_products,
)

__all__ = [
    "AUTOMATIC",
    "GOALS",
    "LEAST_RIDGE",
    "MEASURES",
    "RIDGES",
    "SEARCHED",
    "Asked",
    "Choice",
    "ClassDisjointSplit",
    "FoldSearchCV",
    "Goal",
    "InnerFolds",
    "RankedSample",
    "RetrievalScorer",
    "Space",
    "SpaceSearch",
    "Trials",
    "Value",
    "Variant",
    "choice_of",
    "choice_with_components",
    "chosen",
    "decay_of_variances",
    "drawn",
    "fit_chosen",
    "goal_of",
    "held_out_sample_size",
    "held_out_source",
    "numbers_of_components",
    "plain_value",
    "required_correlation",
    "retrieval_scorer",
    "sample_size",
    "search_folds",
    "searched",
    "space_of",
    "spectrum_decay",
    "tunable",
    "tune",
    "tune_by_products",
    "values_by_ranking",
]
