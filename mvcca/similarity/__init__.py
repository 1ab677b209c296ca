"""Label similarity: how alike two label vectors are, and what is asked of all pairs at once.

The formulas are plain functions of two stacks of label vectors. `LabelGram` is the similarity
matrix G over a table of distinct label vectors; label features Φ with G ≈ ΦΦᵀ take the place of
pairs where label vectors are too many. Features of the views and their sums are
`mvcca.statistics`' business.
"""

from mvcca.similarity._features import FourierLabelFeatures, LabelFeatures, LandmarkLabelFeatures
from mvcca.similarity._formulas import (
    Similarity,
    cosine,
    equal,
    exponential,
    similarity_function,
    squared_distances,
    squared_exponential,
)
from mvcca.similarity._gram import LabelGram

__all__ = [
    "FourierLabelFeatures",
    "LabelFeatures",
    "LabelGram",
    "LandmarkLabelFeatures",
    "Similarity",
    "cosine",
    "equal",
    "exponential",
    "similarity_function",
    "squared_distances",
    "squared_exponential",
]
