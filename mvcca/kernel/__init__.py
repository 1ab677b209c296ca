"""Kernel methods: canonical correlation of functions of the views, not of the views themselves.

A feature map per view makes a kernel explicit; all else is the linear family's.
"""

from mvcca.kernel._kcca import KCCA
from mvcca.kernel._ncca import NCCA

__all__ = ["KCCA", "NCCA"]
