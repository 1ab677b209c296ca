"""Linear methods: one affine map per view, found from a statistic of the rows.

`CCA`, `MVCCA`, `PLS` and `CFA` learn from pairs, `MLCCA` and `MVMLCCA` from labels alone.
"""

from mvcca.linear._cca import CCA
from mvcca.linear._mlcca import MLCCA
from mvcca.linear._mvcca import MVCCA, with_labels_as_view
from mvcca.linear._mvmlcca import MVMLCCA
from mvcca.linear._pls import CFA, PLS

__all__ = ["CCA", "CFA", "MLCCA", "MVCCA", "MVMLCCA", "PLS", "with_labels_as_view"]
