"""Linear methods: one affine map per view.

`CCA`, `MVCCA`, `GCCA`, `PLS`, `CFA`, `RGCCA` and `SparseCCA` learn from pairs, `MLCCA` and
`MVMLCCA` from labels alone. `Procrustes` and `AffineMap` align embeddings, and predict one view
from another. `LGCFL`, `JRL` and `CMOLRS` are supervised baselines that retrieval is compared with
in the literature. `cell_cca` integrates two data sets of single cells.
"""

from typing import TYPE_CHECKING

from mvcca.linear._affine_map import AffineMap
from mvcca.linear._cca import CCA, MVCCA, with_labels_as_view
from mvcca.linear._cell_cca import CellCCA, cell_cca
from mvcca.linear._cmolrs import CMOLRS
from mvcca.linear._gcca import GCCA
from mvcca.linear._jrl import JRL
from mvcca.linear._lgcfl import LGCFL
from mvcca.linear._mlcca import MLCCA
from mvcca.linear._mvmlcca import MVMLCCA
from mvcca.linear._pls import CFA, PLS
from mvcca.linear._procrustes import Procrustes
from mvcca.linear._rgcca import RGCCA
from mvcca.linear._sparse_cca import SparseCCA
from mvcca.linear._sparse_discriminant import SparseDiscriminant
from mvcca.machine.on_access import on_access

__all__ = [
    "CCA",
    "CFA",
    "CMOLRS",
    "GCCA",
    "JRL",
    "LGCFL",
    "MLCCA",
    "MVCCA",
    "MVMLCCA",
    "PLS",
    "RGCCA",
    "AffineMap",
    "CellCCA",
    "Procrustes",
    "SparseCCA",
    "SparseDiscriminant",
    "cell_cca",
    "with_labels_as_view",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
