"""One problem for all linear methods: `Rows`, and `Problem(...).solve(n_components) -> Maps`.

A method computes its between- and within-view matrices from a statistic of the rows; ridge, bases
and precision are handled here. Nothing here knows of estimators.
"""

from mvcca.problem._bases import Basis, Explicit, Span, principal_components, row_space
from mvcca.problem._expected import (
    LARGEST_CORRELATION,
    Expected,
    component_weights,
    expected_correlation,
    expected_moments,
    held_out_moments,
    profile_vectors,
)
from mvcca.problem._maps import Maps
from mvcca.problem._problem import Problem
from mvcca.problem._ridge import reg_of_rows, shrinkages
from mvcca.problem._rows import (
    Exactness,
    Identity,
    Reg,
    Rows,
    Shrinkage,
    check_variance,
    positive_reg,
    reg_of_names,
    takes_float32_products,
)

__all__ = [
    "LARGEST_CORRELATION",
    "Basis",
    "Exactness",
    "Expected",
    "Explicit",
    "Identity",
    "Maps",
    "Problem",
    "Reg",
    "Rows",
    "Shrinkage",
    "Span",
    "check_variance",
    "component_weights",
    "expected_correlation",
    "expected_moments",
    "held_out_moments",
    "positive_reg",
    "principal_components",
    "profile_vectors",
    "reg_of_names",
    "reg_of_rows",
    "row_space",
    "shrinkages",
    "takes_float32_products",
]
