"""Matrices on disk or in Dask arrays, read by blocks of rows.

A `RowSource` has the shape of a matrix but holds none of its numbers: `read` fetches a range of
rows, and indexing selects rows without reading them. Each file format has one small module, which
imports its library when a file is opened. Callers choose the height of the blocks. `read_array`
reads a whole file, of text, too.
"""

from mvcca.blocks.sources._dialect import (
    begins_with_index,
    is_missing,
    is_number,
    reject_tables,
    table_in,
)
from mvcca.blocks.sources._open import as_source, is_source, open_matrix
from mvcca.blocks.sources._read import (
    FORMATS,
    Identified,
    cells_of_text,
    columns_of_texts,
    lines_of_text,
    open_or_read,
    path_and_key,
    read_array,
    read_identified,
    read_names,
    read_texts,
)
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._text import MISSING, UNNAMED, ZERO, NamedColumns, bad_cell, name_among

__all__ = [
    "FORMATS",
    "MISSING",
    "UNNAMED",
    "ZERO",
    "Identified",
    "NamedColumns",
    "RowSource",
    "SourceError",
    "as_source",
    "bad_cell",
    "begins_with_index",
    "cells_of_text",
    "columns_of_texts",
    "is_missing",
    "is_number",
    "is_source",
    "lines_of_text",
    "name_among",
    "open_matrix",
    "open_or_read",
    "path_and_key",
    "read_array",
    "read_identified",
    "read_names",
    "read_texts",
    "reject_tables",
    "table_in",
]
