"""Folds, scorers, and settings that held-out rows choose.

`folds` and `groups` split the objects. `_goals` ranks held-out rows; `_tuning` solves every ridge
from statistics of the folds (`_fold_statistics`), and `_refits` searches the parameters (`_spaces`)
of any other method. `_sample_size` plans studies.
`FoldSearchCV` is scikit-learn's interface to such searches.
"""

from mvcca.model_selection._class_disjoint_split import ClassDisjointSplit
from mvcca.model_selection._fold_search import FoldSearchCV
from mvcca.model_selection._fold_statistics import InnerFolds
from mvcca.model_selection._goals import GOALS, MEASURES, Goal, goal_of
from mvcca.model_selection._sample_size import (
    decay_of_variances,
    held_out_sample_size,
    required_correlation,
    sample_size,
    spectrum_decay,
)
from mvcca.model_selection._scoring import RetrievalScorer, retrieval_scorer
from mvcca.model_selection._search import Choice
from mvcca.model_selection._sources import numbers_of_components
from mvcca.model_selection._spaces import (
    AUTOMATIC,
    LEAST_RIDGE,
    OF_RIDGES,
    RIDGES,
    SEARCHED,
    Space,
    plain_value,
    searched,
    space_of,
)
from mvcca.model_selection._tuning import (
    choice_of,
    choices,
    chosen,
    fit_chosen,
    tunable,
    tune_by_products,
    tuned,
)

__all__ = [
    "AUTOMATIC",
    "GOALS",
    "LEAST_RIDGE",
    "MEASURES",
    "OF_RIDGES",
    "RIDGES",
    "SEARCHED",
    "Choice",
    "ClassDisjointSplit",
    "FoldSearchCV",
    "Goal",
    "InnerFolds",
    "RetrievalScorer",
    "Space",
    "choice_of",
    "choices",
    "chosen",
    "decay_of_variances",
    "fit_chosen",
    "goal_of",
    "held_out_sample_size",
    "numbers_of_components",
    "plain_value",
    "required_correlation",
    "retrieval_scorer",
    "sample_size",
    "searched",
    "space_of",
    "spectrum_decay",
    "tunable",
    "tune_by_products",
    "tuned",
]
