"""Data sets for learning and testing, all returned as a Bunch with `views` and `labels`.

`load_*` functions use data that ship with scikit-learn or with this package, and `make_*` functions
sample from a model with a known solution; nothing is downloaded. Labels are a class vector, a list
of label sets, or a 0/1 matrix.
"""

from mvcca.datasets._cells import make_cells
from mvcca.datasets._digits import load_digits_views
from mvcca.datasets._multilabel import make_multilabel_views
from mvcca.datasets._planted import make_gaussian_views, make_nonlinear_views, make_sparse_views
from mvcca.datasets._spoken import load_spoken_digits

__all__ = [
    "load_digits_views",
    "load_spoken_digits",
    "make_cells",
    "make_gaussian_views",
    "make_multilabel_views",
    "make_nonlinear_views",
    "make_sparse_views",
]
