"""Rows of one view, however they are stored: arrays, sparse matrices, devices, files, Dask arrays.

This is the only room that tells kinds of storage apart.
"""

from mvcca.blocks.sources import (
    RowSource,
    SourceError,
    as_source,
    open_matrix,
    open_or_read,
    path_and_key,
    read_array,
    read_texts,
)

__all__ = [
    "RowSource",
    "SourceError",
    "as_source",
    "open_matrix",
    "open_or_read",
    "path_and_key",
    "read_array",
    "read_texts",
]
