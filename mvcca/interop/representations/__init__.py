"""How alike are two representations of the same objects, such as layers of networks?

Rows, or sums of batches, become cross-products of pairs of layers (`_sources`); measures are
functions of these (`_measures`), and a table holds them beside what unrelated layers would have.
"""

from mvcca.interop.representations._measures import MEASURES
from mvcca.interop.representations._sources import LayerSums
from mvcca.interop.representations._table import SimilarityTable, compare_representations

__all__ = ["MEASURES", "LayerSums", "SimilarityTable", "compare_representations"]
