"""The kinds of storage, and the one place that tells them apart.

A new kind is one module with a subclass of `Block`, and one line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scipy.sparse import csr_array, issparse

from mvcca.blocks._block import Block
from mvcca.blocks._dense import DenseBlock
from mvcca.blocks._device import DeviceBlock
from mvcca.blocks._frame import FrameBlock
from mvcca.blocks._lazy import SourceBlock, open_rows
from mvcca.blocks._sparse import SparseBlock
from mvcca.blocks.checks import reject_annotated, reject_masks

__all__ = [
    "KINDS",
    "as_block",
    "is_mapping",
    "kind_of",
    "read_values",
    "stack",
    "to_host",
    "to_plain",
]

# In the order in which they are asked.
KINDS: tuple[type[Block], ...] = (
    SourceBlock,  # memory maps are NumPy arrays, too
    DenseBlock,
    SparseBlock,
    DeviceBlock,
    FrameBlock,
)

_known: dict[type, type[Block]] = {}  # kinds by the type of a matrix


def as_block(matrix: Any) -> Block:
    """The block of a matrix, however its rows are stored."""
    if isinstance(matrix, Block):
        return matrix
    kind = _known.get(type(matrix)) or kind_of(matrix)
    return open_rows(matrix) if kind is SourceBlock else kind(matrix)


def kind_of(matrix: Any) -> type[Block]:
    """The kind of storage of a matrix, which is not opened."""
    if type(matrix) not in _known:
        reject_masks(matrix)  # which raises, so that their type stays unknown
        reject_annotated(matrix)
        _known[type(matrix)] = next(kind for kind in KINDS if kind.holds(matrix))
    return _known[type(matrix)]


# ---- matrices in, matrices out -------------------------------------------------------------------


def to_host(matrix: Any) -> Any:
    """A matrix in host memory if it is on a device; other matrices unchanged."""
    return as_block(matrix).on_host().matrix


def to_plain(matrix: Any) -> Any:
    """A matrix as an array or a `csr_array` in host memory."""
    rows = as_block(matrix).plain()
    return csr_array(rows.matrix) if rows.is_sparse else rows.matrix


def stack(matrices: Iterable[Any], axis: int = 0) -> Any:
    """Rows of several matrices, one after the other, or with ``axis=1`` their columns.

    The result is sparse if one of the matrices is sparse.
    """
    blocks = [as_block(matrix) for matrix in matrices]
    if len(blocks) == 1:
        return blocks[0].in_memory().matrix
    if not all(block.on_device for block in blocks):
        blocks = [block.in_memory().on_host() for block in blocks]
    if any(block.is_sparse for block in blocks):
        return SparseBlock.stacked(blocks, axis).matrix
    if len({type(block) for block in blocks}) > 1:
        blocks = [block.dense() for block in blocks]
    return type(blocks[0]).stacked(blocks, axis).matrix


def read_values(values: Any) -> Any:
    """Values of any number of dimensions, such as labels, read into host memory."""
    if hasattr(values, "dask"):
        return values.compute()
    if getattr(values, "ndim", 0) == 2 or kind_of(values).on_device:
        return as_block(values).in_memory().on_host().matrix
    return values


def is_mapping(value: Any) -> bool:
    """Whether a value maps names to values; matrices that are dictionaries of entries do not."""
    return isinstance(value, Mapping) and not issparse(value)
