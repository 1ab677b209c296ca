"""Dask arrays, computed block by block by the active Dask scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from mvcca.blocks.checks import reject_masks
from mvcca.blocks.sources._row_source import (
    Positions,
    RowSource,
    SourceError,
    as_index,
    as_positions,
)
from mvcca.machine.warnings import warn

_EMBEDDED_BYTES = 100 * 10**6


class DaskRows(RowSource):
    """The rows of a Dask array with NumPy or SciPy sparse chunks."""

    def __init__(self, array: Any) -> None:
        self.array, self.name = array, f"Dask array {array.name!r}"
        if any(np.isnan(length) for length in array.shape):
            raise SourceError(
                f"The number of rows of a Dask array of shape {array.shape} is unknown. Call "
                "array.compute_chunk_sizes() first."
            )
        reject_masks(array._meta)
        self.is_sparse = issparse(array._meta)
        if not self.is_sparse and not isinstance(array._meta, np.ndarray):
            raise SourceError(
                "Expected a Dask array with NumPy or SciPy sparse chunks, got chunks of "
                f"{type(array._meta).__module__}.{type(array._meta).__name__}."
            )
        edges = {0, *np.cumsum(array.chunks[0], dtype=np.intp).tolist()} if array.ndim else {0}
        self.boundaries = tuple(sorted(edges))
        self.describe(array.shape, array.dtype)

    def blocks(self, ranges: Sequence[tuple[int, int]]) -> Iterator[np.ndarray | csr_array]:
        for start, stop in ranges:
            block = _as_block(self.array[start:stop].compute(), start, self.dtype)
            yield block if self.is_sparse else np.array(block)  # the user may hold it

    def deferred(self) -> tuple[Any, Callable[[Any, int], Any]]:
        return self.array, partial(_as_block, dtype=self.dtype)

    def __getitem__(self, rows: Any) -> DaskRows:
        """Rows selected by Dask, so that the selection is a Dask array too."""
        return DaskRows(self.array[as_index(as_positions(rows, len(self)))])

    def _read_positions(self, rows: Positions) -> np.ndarray | csr_array:
        return self[as_index(rows)].read(0, len(rows))

    def identity(self) -> tuple[Any, ...]:
        return (self.array.name,)


def _as_block(chunk: Any, _: int, dtype: np.dtype) -> np.ndarray | csr_array:
    """A computed chunk, which the caller must not change."""
    reject_masks(chunk)
    if issparse(chunk):
        return csr_array(chunk, dtype=dtype)
    return np.asarray(chunk, dtype=dtype, order="C")


def from_dask(array: Any) -> DaskRows:
    """The source of a Dask array, with a warning if its graph carries the data."""
    embedded = _embedded_bytes(array)
    if embedded > _EMBEDDED_BYTES:
        warn(
            f"The graph of this Dask array carries {embedded / 1e6:.0f} MB of data, which every "
            "worker is sent. Let the chunks read a file (dask.array.from_zarr), or pass the file "
            "itself: mvcca.open_matrix(path)."
        )
    return DaskRows(array)


def _embedded_bytes(array: Any) -> int:
    """Bytes of arrays in the materialized layers of a graph; other layers are not expanded."""
    total = 0
    for layer in array.__dask_graph__().layers.values():
        if layer.is_materialized():
            values = layer.values()
        else:
            values = [value for value, axes in getattr(layer, "indices", ()) if axes is None]
        # A task holds an array as its `value`. Zarr and HDF5 arrays are read by the workers.
        held = (getattr(value, "value", value) for value in values)
        total += sum(array.nbytes for array in held if isinstance(array, np.ndarray))
    return total
