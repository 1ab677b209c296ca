"""Rows of one view, however they are stored: arrays, sparse matrices, devices, files, Dask arrays.

`Block` is the protocol, and `as_block` the block of a matrix. This is the only room that tells
kinds of storage apart: other code calls the method that does what it wants.
"""

from typing import TYPE_CHECKING

from mvcca.blocks._block import Block
from mvcca.blocks._device import beside, in_one_place, namespace, sums_by_code
from mvcca.blocks._kinds import (
    KINDS,
    as_block,
    is_mapping,
    kind_of,
    read_values,
    stack,
    to_host,
    to_plain,
)
from mvcca.blocks._sparse import grouping, own_csr
from mvcca.blocks.sources import (
    RowSource,
    SourceError,
    as_source,
    open_matrix,
    read_table,
)
from mvcca.machine.on_access import on_access

__all__ = [
    "KINDS",
    "Block",
    "RowSource",
    "SourceError",
    "as_block",
    "as_source",
    "beside",
    "grouping",
    "in_one_place",
    "is_mapping",
    "kind_of",
    "namespace",
    "open_matrix",
    "own_csr",
    "read_table",
    "read_values",
    "stack",
    "sums_by_code",
    "to_host",
    "to_plain",
]

if not TYPE_CHECKING:  # it would hide misspelt names
    __getattr__ = on_access(__name__)
