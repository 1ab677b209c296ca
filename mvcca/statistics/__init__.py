"""What `fit` needs to know of the rows, as values that add.

A statistic of all rows is the sum of the statistics of its blocks, so whole arrays, batches and
sparse matrices are one line: ``reduce(add, map(Statistic.of, blocks))``. Nothing here solves
anything; see `mvcca.linalg`.
"""

from mvcca.statistics._checkpoint import checkpoint_of_fit
from mvcca.statistics._label_sums import LabelSums
from mvcca.statistics._label_sums_by_feature import LabelFeatureSums
from mvcca.statistics._moments import Moments, column_slices
from mvcca.statistics._sparse_rows import moved, shift_of, shifted

__all__ = [
    "LabelFeatureSums",
    "LabelSums",
    "Moments",
    "checkpoint_of_fit",
    "column_slices",
    "moved",
    "shift_of",
    "shifted",
]
