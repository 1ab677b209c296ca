"""Label similarity: similarity functions of label vectors, and products with their Gram matrix.

The similarity functions take two stacks of label vectors. `LabelGram` multiplies with the Gram
matrix G of distinct label vectors without storing it, and by `SharedSubsets` without computing it.
Sums of the views' features by label are in `mvcca.statistics`.
"""

from mvcca.similarity._formulas import (
    Similarity,
    cosine,
    equal,
    exponential,
    similarities_within,
    similarity_function,
    squared_distances,
    squared_exponential,
)
from mvcca.similarity._gram import LabelGram
from mvcca.similarity._shared_subsets import SharedSubsets

__all__ = [
    "LabelGram",
    "SharedSubsets",
    "Similarity",
    "cosine",
    "equal",
    "exponential",
    "similarities_within",
    "similarity_function",
    "squared_distances",
    "squared_exponential",
]
