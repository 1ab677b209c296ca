"""Arrays in `.npz` archives, checked against the archive before memory is taken for them."""

from __future__ import annotations

import os
import weakref
import zipfile
from math import prod
from typing import Any

import numpy as np

from mvcca.blocks.sources._npy import read_header

__all__ = ["Member", "names_of_members"]

_PIECE_BYTES = 2**20
_MOST_DEFLATED = 1032  # bytes per compressed byte that deflate can reach


def names_of_members(path: str | os.PathLike[str]) -> list[str]:
    """Names of the arrays in an archive."""
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


class Member:
    """An array in an archive; `zipfile` keeps the position and can seek back."""

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        file = open(path, "rb")  # noqa: SIM115
        weakref.finalize(self, file.close)  # open as long as this object lives
        with zipfile.ZipFile(file) as archive:
            info = archive.getinfo(f"{name}.npy")
            self._file: Any = archive.open(info)
        self.shape, self._is_fortran, self._stored = read_header(self._file)
        if self._stored.hasobject:
            raise ValueError(f"{name!r} holds pickled objects, which are never loaded")
        self.size, self.dtype = prod(self.shape), self._stored.newbyteorder("=")
        self._begin = self._file.tell()
        end = self._begin + self.size * self._stored.itemsize
        ratio = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: _MOST_DEFLATED}
        room = min(
            info.file_size, info.compress_size * ratio.get(info.compress_type, info.file_size)
        )
        if min(self.shape, default=0) < 0 or end > room:
            raise ValueError(
                f"{name!r} claims {self._stored} {self.shape}, more than the archive holds"
            )

    def array(self) -> np.ndarray:
        """The whole array."""
        order = "F" if self._is_fortran else "C"
        return self.read(0, self.size).reshape(self.shape, order=order)  # type: ignore[call-overload]

    def read(self, start: int, stop: int) -> np.ndarray:
        """A range of the numbers, read in pieces, since `zipfile` buffers each read."""
        numbers = np.empty(stop - start, dtype=self._stored)
        if not numbers.nbytes:
            return numbers.astype(self.dtype, copy=False)
        self._file.seek(self._begin + start * self._stored.itemsize)
        rest = numbers.view(np.uint8).data
        while rest.nbytes:
            n_bytes = self._file.readinto(rest[:_PIECE_BYTES])
            if not n_bytes:
                raise EOFError("it ends before its last row")
            rest = rest[n_bytes:]
        return numbers.astype(self.dtype, copy=False)
