"""One problem for all linear methods: `Problem(rows, about, ...).solve(n_components) -> Maps`.

A method computes its between- and within-view matrices from a statistic of the `Rows`, of which an
`Estimate` holds what else is known; ridge, bases and precision are handled here. `climb` decides in
which precision. A path solves one problem for many ridges. `Whitened` is a view by its singular
values, for CCA of the same rows with many ridges or in many orders. `mvcca.problem.expected` is
what maps say of new rows, and `mvcca.problem.confounds` regresses views on one of them. Nothing
here knows of estimators.

The names below are those of authors of methods. Other rooms import the rest from the modules that
define them.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.problem._estimate import Estimate
from mvcca.problem._path import MatrixPath
from mvcca.problem._problem import Problem
from mvcca.problem._products import ProductPath
from mvcca.problem.maps import Maps
from mvcca.problem.precision import climb
from mvcca.problem.rows import Reading, Rows
from mvcca.problem.whitened import Whitened

__all__ = [
    "Estimate",
    "Maps",
    "MatrixPath",
    "Problem",
    "ProductPath",
    "Reading",
    "Rows",
    "Whitened",
    "climb",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
