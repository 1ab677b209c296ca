"""Inspect fitted models and test correlations: loadings, associations, tests, intervals.

Loadings, associations and correlations only need a model's `transform`, so they also work with
pipelines and searches, on training or held-out rows; or they take scores in place of the model.
Tests take rows. Plots are in `mvcca.plotting`, retrieval measures in `mvcca.measures`.
"""

from typing import TYPE_CHECKING

from mvcca.inspection._associations import associations
from mvcca.inspection._correlations import (
    component_correlations,
    explained_variance,
    loadings,
)
from mvcca.inspection._correlations import projected as projected
from mvcca.inspection._intervals import CorrelationIntervals, correlation_intervals
from mvcca.inspection._parametric import ParametricTest, ParametricTests, parametric_tests
from mvcca.inspection._projection import vip
from mvcca.inspection._rows import views_of as views_of
from mvcca.inspection._selection import (
    SelectionStability,
    selection_stability,
)
from mvcca.inspection._separation import label_auroc
from mvcca.inspection._stability import Stability, stability
from mvcca.inspection._variable_intervals import (
    Subspace,
    VariableIntervals,
    loading_intervals,
    weight_intervals,
)
from mvcca.inspection.permutation import PermutationTest, permutation_test
from mvcca.inspection.study import Study, study
from mvcca.machine.on_access import on_access

__all__ = [
    "CorrelationIntervals",
    "ParametricTest",
    "ParametricTests",
    "PermutationTest",
    "SelectionStability",
    "Stability",
    "Study",
    "Subspace",
    "VariableIntervals",
    "associations",
    "component_correlations",
    "correlation_intervals",
    "explained_variance",
    "label_auroc",
    "loading_intervals",
    "loadings",
    "parametric_tests",
    "permutation_test",
    "selection_stability",
    "stability",
    "study",
    "vip",
    "weight_intervals",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
