"""Matrices that stay on disk, or in Dask's hands, and are read by blocks of rows.

A `RowSource` has the shape and the rows of a matrix but not its numbers: `read` fetches a range of
rows, indexing selects rows without reading any. There is one small file per container here, each
importing its library when it opens something. What is done with the blocks, and how long they are,
is decided by those who read them.
"""

from mvcca.sources._open import as_source, open_matrix
from mvcca.sources._row_source import RowSource, SourceError

__all__ = ["RowSource", "SourceError", "as_source", "open_matrix"]
