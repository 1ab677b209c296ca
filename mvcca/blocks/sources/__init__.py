"""Matrices on disk or in Dask arrays, read by blocks of rows.

A `RowSource` has the shape of a matrix but holds none of its numbers: `read` fetches a range of
rows, and indexing selects rows without reading them. Each library that reads files has one module,
which imports it when a file is opened. Callers choose the height of the blocks. `read_table` opens
the rows of any file, with their ids.
"""

from mvcca.blocks.sources._dialect import ReadOptions, is_missing, is_number, table_in
from mvcca.blocks.sources._file_rows import FileRows, NamedColumns
from mvcca.blocks.sources._row_source import RowSource, SourceError
from mvcca.blocks.sources._table import (
    as_source,
    is_source,
    open_matrix,
    path_and_key,
    read_cells,
    read_table,
    read_whole,
)

__all__ = [
    "FileRows",
    "NamedColumns",
    "ReadOptions",
    "RowSource",
    "SourceError",
    "as_source",
    "is_missing",
    "is_number",
    "is_source",
    "open_matrix",
    "path_and_key",
    "read_cells",
    "read_table",
    "read_whole",
    "table_in",
]
