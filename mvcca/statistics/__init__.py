"""Statistics of the rows that `fit` needs, as values that add.

The statistic of all rows is the sum of the statistics of their blocks, so whole arrays, batches and
files are one line: ``reduce(add, map(Statistic.of, blocks))``. `mvcca.statistics.passes` goes over
the blocks, and `mvcca.problem` solves for the weights.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.statistics._cell_moments import CellMoments
from mvcca.statistics._label_sums import LabelSums
from mvcca.statistics._pair_moments import PairMoments
from mvcca.statistics._patterns import PatternMoments
from mvcca.statistics._regression import Regression
from mvcca.statistics.moments import Moments, column_slices

# Of rows with holes, by the parameter `missing` of estimators.
OF_HOLES: dict[str, type[CellMoments | PatternMoments]] = {
    "pairwise": CellMoments,
    "em": PatternMoments,
}

__all__ = [
    "OF_HOLES",
    "CellMoments",
    "LabelSums",
    "Moments",
    "PairMoments",
    "PatternMoments",
    "Regression",
    "column_slices",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
