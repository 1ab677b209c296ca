"""Label similarity: similarity functions of label vectors, and products with their Gram matrix.

The similarity functions take two stacks of label vectors. `LabelGram` multiplies with the Gram
matrix G of distinct label vectors without storing it, and by the label subsets that sets share
without computing it. Sums of the views' features by label are in `mvcca.statistics`.
"""

from typing import TYPE_CHECKING

from mvcca.machine.on_access import on_access
from mvcca.similarity._formulas import (
    LabelKernel,
    Similarity,
    cosine,
    equal,
    exponential,
    squared_distances,
    squared_exponential,
)
from mvcca.similarity._gram import LabelGram

__all__ = [
    "LabelGram",
    "LabelKernel",
    "Similarity",
    "cosine",
    "equal",
    "exponential",
    "squared_distances",
    "squared_exponential",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
