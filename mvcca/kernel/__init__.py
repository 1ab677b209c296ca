"""Kernel methods: canonical correlation of functions of the views, not of the views themselves.

`KCCA` makes a kernel explicit by a feature map per view, and all else is the linear family's;
`NCCA` smooths over nearest neighbours.
"""

from mvcca.kernel._kcca import KCCA
from mvcca.kernel._ncca import NCCA

__all__ = ["KCCA", "NCCA"]
