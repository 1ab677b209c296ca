"""Finding a data file, checking it against its declared form, and decoding it.

A `Source` declares a file once: its name, where the original comes from, and the arrays it holds.
The same declaration decodes the file, finds what is wrong with it, and tells the reader of an error
message how to make it. Pickled content is never loaded. The declarations are with the data sets.
"""

from __future__ import annotations

import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

__all__ = ["DataHome", "Dense", "Packed", "Source", "Sparse", "get_data_home", "per_split", "read"]

Shape = tuple[int | str, ...]  # a name stands for a size that is free, and the same everywhere
Sizes = dict[str, int]
DataHome = str | os.PathLike[str] | None

# What np.load and zipfile raise for a file that is cut short, overwritten or of another kind; an
# OSError comes from seeking to where a damaged directory points.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    ValueError,
)


class Form(Protocol):
    """How one piece of data is stored in a file."""

    def describe(self, key: str) -> str:
        """What to put into the file."""

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> Any:
        """The data, or a ValueError that says what is wrong with it."""


@dataclass(frozen=True)
class Dense:
    """An array stored as it is."""

    dtype: str
    shape: Shape

    def describe(self, key: str) -> str:
        return f"{key}: {self.dtype} {_written(self.shape)}"

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> np.ndarray:
        array = _take(archive, key)
        right = array.dtype.kind == "U" if self.dtype == "str" else array.dtype == self.dtype
        if not right or not _fits(array.shape, self.shape, sizes):
            raise ValueError(
                f"expected {self.describe(key)}, got {array.dtype} {_written(array.shape)}"
            )
        return array


@dataclass(frozen=True)
class Packed:
    """A 0/1 matrix stored as bits, eight columns to a byte."""

    shape: tuple[int | str, int]

    def describe(self, key: str) -> str:
        return f"{key}: numpy.packbits(Z, axis=1) of a 0/1 matrix Z {_written(self.shape)}"

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> np.ndarray:
        height, width = self.shape
        bits = Dense("uint8", (height, -(-width // 8))).decode(archive, key, sizes)
        return np.unpackbits(bits, axis=1, count=width)


@dataclass(frozen=True)
class Sparse:
    """A sparse matrix of counts stored as the parts of its compressed rows."""

    shape: Shape

    def describe(self, key: str) -> str:
        return (
            f"{key}_data, {key}_indices, {key}_indptr, {key}_shape: the parts, as integers, of a "
            f"scipy.sparse.csr_array {_written(self.shape)}"
        )

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> csr_array:
        data, indices, indptr, shape = (
            _take(archive, f"{key}_{part}") for part in ("data", "indices", "indptr", "shape")
        )
        if any(part.dtype.kind not in "iu" for part in (data, indices, indptr, shape)) or not _fits(
            shape.tolist(), self.shape, sizes
        ):
            dtypes = ", ".join(str(part.dtype) for part in (data, indices, indptr))
            raise ValueError(f"expected {self.describe(key)}, got {dtypes}, {shape.tolist()}")
        # Counts become float64: products of small integers would wrap around.
        parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
        matrix = csr_array(parts, shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
        return matrix


@dataclass(frozen=True)
class Source:
    """One file of the data home.

    Attributes
    ----------
    filename : str
    origin : str
        What the data are, whose they are and where the original is to be had.
    forms : mapping of str to form
        What the file must hold; it may hold more.
    """

    filename: str
    origin: str
    forms: Mapping[str, Form]

    def describe(self) -> str:
        """How to make the file."""
        lines = [f"  {form.describe(key)}" for key, form in self.forms.items()]
        return "\n".join(
            [self.origin, f"Write it with numpy.savez_compressed as {self.filename}:", *lines]
        )


def per_split(sizes: dict[str, int], forms: dict[str, tuple[str, Shape]]) -> dict[str, Form]:
    """Arrays ``<name>_<split>`` whose first axis is the split's number of objects."""
    return {
        f"{name}_{split}": Dense(dtype, (size, *rest))
        for split, size in sizes.items()
        for name, (dtype, rest) in forms.items()
    }


def get_data_home(data_home: DataHome = None) -> Path:
    """The folder that the ``fetch_`` functions read.

    Parameters
    ----------
    data_home : path, optional
        Without it the environment variable ``MVCCA_DATA``, and without that ``~/mvcca_data``.

    Returns
    -------
    Path
        Not necessarily a folder that exists.
    """
    return Path(data_home or os.environ.get("MVCCA_DATA") or "~/mvcca_data").expanduser()


def read(source: Source, data_home: DataHome = None) -> dict[str, Any]:
    """Decode all that a source declares.

    Raises
    ------
    FileNotFoundError
        If the data home has no such file.
    OSError
        If the file is damaged or does not have the declared form.
    """
    home = get_data_home(data_home)
    path = home / source.filename
    if not path.exists():
        raise FileNotFoundError(
            f"No {source.filename} in {home}. Name the folder that holds it with data_home or the "
            f"environment variable MVCCA_DATA, or make it from the original.\n{source.describe()}"
        )
    sizes: Sizes = {}
    with path.open("rb") as file:  # np.load leaves a damaged file open
        try:
            # np.load alone stops before the checksum where the directory's sizes are wrong.
            if (spoilt := zipfile.ZipFile(file).testzip()) is not None:
                raise ValueError(f"{spoilt} fails its checksum")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            return {key: form.decode(archive, key, sizes) for key, form in source.forms.items()}
        except DAMAGE as error:
            raise OSError(
                f"{path} is damaged or of another form: {error}. Get it anew.\n{source.describe()}"
            ) from error


def _take(archive: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    if key not in archive:
        raise ValueError(f"it has no array {key!r}")
    return archive[key]


def _fits(found: Any, shape: Shape, sizes: Sizes) -> bool:
    """Whether sizes found are those declared; free ones are remembered at first sight."""
    return len(found) == len(shape) and all(
        have == (sizes.setdefault(want, have) if isinstance(want, str) else want)
        for have, want in zip(found, shape, strict=True)
    )


def _written(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
