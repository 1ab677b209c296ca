"""Matrices on disk or in Dask arrays, read by blocks of rows.

A `RowSource` has the shape of a matrix but holds none of its numbers: `read` fetches a range of
rows, and indexing selects rows without reading them. Each file format has one small module, which
imports its library when a file is opened. Callers choose the height of the blocks. `read_array`
reads a whole file, of text, too.
"""

from mvcca.blocks.sources._header import is_missing, is_number
from mvcca.blocks.sources._open import as_source, is_source, open_matrix
from mvcca.blocks.sources._read import (
    FORMATS,
    cells_of_text,
    lines_of_text,
    open_or_read,
    path_and_key,
    read_array,
    read_names,
    read_texts,
)
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._text import NamedColumns

__all__ = [
    "FORMATS",
    "NamedColumns",
    "RowSource",
    "SourceError",
    "as_source",
    "cells_of_text",
    "is_missing",
    "is_number",
    "is_source",
    "lines_of_text",
    "open_matrix",
    "open_or_read",
    "path_and_key",
    "read_array",
    "read_names",
    "read_texts",
]
