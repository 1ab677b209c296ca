"""Kernel methods: functions of the views in place of the views themselves.

`KCCA` makes a kernel explicit by a feature map per view, and all else is the linear family's;
`NCCA` smooths over nearest neighbours; `SemanticMatching` and `LabelRegression`
predict the labels of the rows of every view.
"""

from mvcca.kernel._kcca import KCCA
from mvcca.kernel._label_regression import LabelRegression
from mvcca.kernel._ncca import NCCA
from mvcca.kernel._semantic_matching import SemanticMatching

__all__ = ["KCCA", "NCCA", "LabelRegression", "SemanticMatching"]
