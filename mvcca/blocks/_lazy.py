"""Rows that are not in memory: of files, and of Dask arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mvcca.blocks._block import Block
from mvcca.blocks._checked_rows import CheckedRows
from mvcca.blocks._dense import DenseBlock
from mvcca.blocks._sparse import host_block
from mvcca.blocks.sources import as_source, is_source
from mvcca.machine.config import block_slices

__all__ = ["SourceBlock", "open_rows"]


class SourceBlock(Block):
    """Rows of a `RowSource`, which are read when they are needed."""

    is_lazy = True

    @classmethod
    def holds(cls, matrix: Any) -> bool:
        return is_source(matrix)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_sparse = self.matrix.is_sparse  # another kind of storage is always sparse, or never

    @property
    def row_bytes(self) -> int:
        """Average memory of a row once read, in bytes."""
        return self.matrix.row_bytes

    @property
    def boundaries(self) -> tuple[int, ...] | None:
        """Rows from 0 to n_rows between which reading is best split; None if any row will do."""
        return self.matrix.boundaries

    @property
    def starts(self) -> tuple[int, ...] | None:
        """Rows that are read without decoding others; None if any row will do."""
        return self.matrix.starts

    @property
    def storage(self) -> str:
        return "file" if self.deferred() is None else "Dask array"

    def digest(self) -> bytes:
        return self.matrix.fingerprint().encode()

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]] | None:
        return self.matrix.deferred()

    # ---- the same rows in another form -----------------------------------------------------------

    def take(self, rows: slice | np.ndarray) -> Block:
        return SourceBlock(self.matrix[rows])

    def in_memory(self) -> Block:
        return self.plain()

    def kept(self) -> Block:
        rows = self.plain()
        if isinstance(self.matrix, CheckedRows):
            self.matrix.keep(rows.matrix)
        return rows

    def plain(self) -> Block:
        if self.shape[0]:
            return host_block(self.matrix.read(0, self.shape[0])).canonical().plain()
        nothing = np.empty(self.shape, self.dtype)  # Dask would compute a chunk
        return host_block(csr_array(nothing) if self.is_sparse else nothing)

    def as_dask(self) -> Any:
        deferred = self.deferred()
        return super().as_dask() if deferred is None else deferred[0]

    # ---- products and sums -----------------------------------------------------------------------

    def empty_rows(self) -> np.ndarray | None:
        """Which sparse rows hold zeros only; None for those of Dask arrays, which stay lazy."""
        if not self.is_sparse or self.deferred() is not None:
            return None
        parts = (block.empty_rows() for block in self.row_blocks())
        return np.concatenate([np.empty(0, dtype=bool), *(p for p in parts if p is not None)])

    def mapped(self, function: Callable[[Any], Any], width: int, row_bytes: int = 0) -> Any:
        deferred = self.deferred()
        if deferred is not None:
            array, read = deferred
            return array.rechunk({1: -1}).map_blocks(
                _mapped, read, function, chunks=(array.chunks[0], (width,)),
                dtype=self.dtype, meta=np.empty((0, width), self.dtype),
            )  # fmt: skip
        result = np.empty((self.shape[0], width), dtype=self.dtype)
        row_bytes = max(self.row_bytes, row_bytes, self.dtype.itemsize * width)
        for rows in block_slices(self.shape[0], row_bytes):
            result[rows] = function(self.matrix.read(rows.start, rows.stop))
        return result

    def checked(
        self, estimator: Any, name: str, ids: np.ndarray | None = None, **options: Any
    ) -> Block:
        """Rows whose numbers are checked as they are read."""
        return SourceBlock(CheckedRows(self.matrix, name, type(estimator).__name__, ids, **options))


def open_rows(matrix: Any) -> Block:
    """The block of a source; of an array, if a memory map shows numbers that no file holds."""
    source = as_source(matrix)
    return DenseBlock(np.asarray(matrix)) if source is None else SourceBlock(source)


def _mapped(
    chunk: Any,
    read: Callable[[Any, int], Any],
    function: Callable[[Any], np.ndarray],
    block_info: Any = None,
) -> np.ndarray:
    start = block_info[0]["array-location"][0][0] if block_info else 0
    return function(read(chunk, start))
