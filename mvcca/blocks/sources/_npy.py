"""Headers of `.npy` files: shape, dtype and layout of the array, and where its numbers begin."""

from __future__ import annotations

import os
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from mvcca.blocks.sources._binary import BinaryFile
from mvcca.blocks.sources._row_source import SourceError

__all__ = ["open_npy", "read_header", "read_npy"]


def open_npy(path: str | os.PathLike[str]) -> BinaryFile:
    """The matrix of a `.npy` file, in C or in Fortran order."""
    try:
        with open(path, "rb") as file:
            shape, fortran, dtype = read_header(file)
            offset = file.tell()
        if any(size < 0 for size in shape):
            raise ValueError(f"its shape is {shape}")
    except Exception as error:  # a damaged header raises any exception of Python's parser
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{path}: cannot be opened as .npy: {reason}") from error
    order = shape if fortran else shape[::-1]  # fastest axis first
    steps = tuple(accumulate(order[:-1], mul, initial=dtype.itemsize))  # may exceed 64 bits
    return BinaryFile(path, shape, dtype, offset, steps if fortran else steps[::-1])


def read_npy(path: str | os.PathLike[str]) -> np.ndarray:
    """Any array of numbers or text in a `.npy` file, whole."""
    with open(path, "rb") as file:
        shape, _, dtype = read_header(file)
        n_bytes, room = prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
    if dtype.hasobject:
        raise ValueError("it holds pickled objects, which are never loaded")
    if min(shape, default=0) < 0 or n_bytes > room:
        raise ValueError(f"it claims {dtype} {shape}, {n_bytes:,} bytes, and has {room:,}")
    return np.load(path, allow_pickle=False)


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and dtype; leaves the file where the numbers begin."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(file)
    if version in ((2, 0), (3, 0)):  # these differ only in the encoding of names of fields
        return npy_format.read_array_header_2_0(file)
    raise ValueError(f"format {version} is unknown; write it again by numpy.save")
