"""NumPy's memory maps, and parts of them, as sources of the file that they map."""

from __future__ import annotations

import mmap
import os

import numpy as np

from mvcca.sources._binary import BinaryFile

__all__ = ["from_memmap"]


def from_memmap(block: np.memmap) -> BinaryFile | None:
    """The part of its file that a map shows, or None where the file does not hold it.

    That is so for what was computed from a map, for a map that writes to memory alone (mode "c"),
    and for a file without a name.
    """
    base = getattr(block, "_mmap", None)
    path = block.filename
    if base is None or path is None or block.ndim != 2 or block.mode == "c":
        return None
    if not os.path.exists(path):  # deleted since; the map still has it
        return None
    if block.mode != "r":
        block.flush()  # so that the file has what was written through the map, and its time
    # A slice keeps the offset of the map it was cut from: only its address tells where it begins.
    start_of_map = np.frombuffer(base, dtype=np.uint8).__array_interface__["data"][0]
    offset_of_map = block.offset - block.offset % mmap.ALLOCATIONGRANULARITY
    offset = offset_of_map + block.__array_interface__["data"][0] - start_of_map
    return BinaryFile(path, block.shape, block.dtype, offset, block.strides)
