"""Label similarity: similarity functions of label vectors, and products with their Gram matrix.

The similarity functions take two stacks of label vectors. `LabelGram` multiplies with the Gram
matrix G of distinct label vectors without storing it; label features Φ with G ≈ ΦΦᵀ replace it if
there are too many pairs. Sums of the views' features by label are in `mvcca.statistics`.
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
