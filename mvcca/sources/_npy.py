"""Headers of `.npy` files: shape, dtype and layout of the array, and where its numbers begin."""

from __future__ import annotations

import os
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from mvcca.sources._binary import BinaryFile
from mvcca.sources._row_source import SourceError

__all__ = ["open_npy", "read_header"]


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


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and dtype; leaves the file where the numbers begin."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(file)
    if version == (2, 0):
        return npy_format.read_array_header_2_0(file)
    raise ValueError(f"format {version} is written only for records, which are not a matrix")
