"""NumPy memory maps, and parts of them, as sources of the mapped file."""

from __future__ import annotations

import mmap
import os

import numpy as np

from mvcca.blocks.sources._binary import BinaryFile

__all__ = ["from_memmap"]


def from_memmap(block: np.memmap) -> BinaryFile | None:
    """The part of a file that a memory map shows, or None if the file does not hold its numbers.

    That is the case for results computed from a map, copy-on-write maps (mode "c"), and files
    without a name.
    """
    base = getattr(block, "_mmap", None)
    path = block.filename
    if base is None or path is None or block.ndim != 2 or block.mode == "c":
        return None
    if not os.path.exists(path):  # deleted since it was mapped
        return None
    if block.mode != "r":
        block.flush()  # so that the file and its modification time are up to date
    # A slice keeps the offset of the map it was cut from; only its address is its own.
    start_of_map = np.frombuffer(base, dtype=np.uint8).__array_interface__["data"][0]
    offset_of_map = block.offset - block.offset % mmap.ALLOCATIONGRANULARITY
    offset = offset_of_map + block.__array_interface__["data"][0] - start_of_map
    return BinaryFile(path, block.shape, block.dtype, offset, block.strides)
