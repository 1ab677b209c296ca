"""The header of a `.npy` file: what array it holds, how it lies and where it begins."""

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
    except Exception as error:  # a damaged header raises whatever Python's parser thinks of
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SourceError(f"{path}: cannot be opened as .npy: {reason}") from error
    order = shape if fortran else shape[::-1]  # from the axis whose entries are neighbours
    steps = tuple(accumulate(order[:-1], mul, initial=dtype.itemsize))  # a header may say 10**20
    return BinaryFile(path, shape, dtype, offset, steps if fortran else steps[::-1])


def read_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether in Fortran order, and dtype; the file then stands where the numbers begin."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        return npy_format.read_array_header_1_0(file)
    if version == (2, 0):
        return npy_format.read_array_header_2_0(file)
    raise ValueError(f"format {version} is written for records only, which are no matrix")
