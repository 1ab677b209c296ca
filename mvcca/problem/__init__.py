"""One problem for all linear methods: `Problem(rows, about, ...).solve(n_components) -> Maps`.

A method computes its between- and within-view matrices from a statistic of the `Rows`, of which an
`Estimate` holds what else is known; ridge, bases and precision are handled here. `climb` decides in
which precision. A path solves one problem for many ridges. `Whitened` is a view by its singular
values, for CCA of the same rows with many ridges or in many orders. `mvcca.problem.expected` is
what maps say of new rows, and `mvcca.problem.confounds` regresses views on one of them. Nothing
here knows of estimators.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.problem._bias import SampleBias
from mvcca.problem._centred_rows import CentredRows
from mvcca.problem._cross_covariance import CrossCovariance
from mvcca.problem._dual import in_dual_of_kernels
from mvcca.problem._estimate import Estimate
from mvcca.problem._maps import Maps, warn_of_fewer_components
from mvcca.problem._path import MatrixPath
from mvcca.problem._precision import Exactness, KnownRank, climb, suits_float32
from mvcca.problem._problem import Problem
from mvcca.problem._products import ProductPath
from mvcca.problem._route import (
    by_products,
    bytes_of_matrices,
    components_to_search,
    steps_of_products,
)
from mvcca.problem._rows import Reading, Rows, check_variance, mean_and_variance
from mvcca.problem._shared_rows import SharedRows
from mvcca.problem._shrinkage import SHRINKAGES, Shrunk, correlation_shrinkage, shrinkages
from mvcca.problem.ridge import Absolute, Reg, Shrinkage, reg_of_names
from mvcca.problem.whitened import Whitened, canonical, canonical_of_covariances

__all__ = [
    "SHRINKAGES",
    "Absolute",
    "CentredRows",
    "CrossCovariance",
    "Estimate",
    "Exactness",
    "KnownRank",
    "Maps",
    "MatrixPath",
    "Problem",
    "ProductPath",
    "Reading",
    "Reg",
    "Rows",
    "SampleBias",
    "SharedRows",
    "Shrinkage",
    "Shrunk",
    "Whitened",
    "by_products",
    "bytes_of_matrices",
    "canonical",
    "canonical_of_covariances",
    "check_variance",
    "climb",
    "components_to_search",
    "correlation_shrinkage",
    "in_dual_of_kernels",
    "mean_and_variance",
    "reg_of_names",
    "shrinkages",
    "steps_of_products",
    "suits_float32",
    "warn_of_fewer_components",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
