"""Find a data file, check it against its declaration, and decode it.

A `Source` declares a file once: its name, the origin of the data, and the arrays it contains. The
declaration decodes the file, validates it, and makes the error message that says how to create the
file. Pickled content is never loaded.
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

from mvcca.blocks.sources._sparse_npz import check_offsets

__all__ = ["DataHome", "Dense", "Packed", "Source", "Sparse", "get_data_home", "per_split", "read"]

Shape = tuple[int | str, ...]  # a string names a free dimension, of one size in the whole file
Sizes = dict[str, int]
DataHome = str | os.PathLike[str] | None

# Raised by np.load and zipfile for files that are truncated, overwritten or of another type; an
# OSError is raised by a seek to an offset in a damaged directory.
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
    """Storage format of one item in a file."""

    def describe(self, key: str) -> str:
        """Describe what the file must contain."""

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> Any:
        """Return the data, or raise a ValueError that says what is wrong."""


@dataclass(frozen=True)
class Dense:
    """An array stored unchanged."""

    dtype: str
    shape: Shape

    def describe(self, key: str) -> str:
        return f"{key}: {self.dtype} {_written(self.shape)}"

    def decode(self, archive: Mapping[str, np.ndarray], key: str, sizes: Sizes) -> np.ndarray:
        array = _take(archive, key)
        is_right = array.dtype.kind == "U" if self.dtype == "str" else array.dtype == self.dtype
        if not is_right or not _fits(array.shape, self.shape, sizes):
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
    """A sparse matrix of counts, stored as the arrays of its CSR form."""

    shape: Shape

    def describe(self, key: str) -> str:
        return (
            f"{key}_data, {key}_indices, {key}_indptr, {key}_shape: the arrays, as integers, of a "
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
        # float64, since products of small integers would overflow.
        parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
        check_offsets(indptr, len(data))
        matrix = csr_array(parts, shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
        return matrix


@dataclass(frozen=True)
class Source:
    """Declaration of one file in the data home.

    Attributes
    ----------
    filename : str
    origin : str
        Content, authors, licence and source of the original data.
    forms : mapping of str to form
        Required content of the file; it may contain more.
    """

    filename: str
    origin: str
    forms: Mapping[str, Form]

    def describe(self) -> str:
        """Instructions for making the file."""
        lines = [f"  {form.describe(key)}" for key, form in self.forms.items()]
        return "\n".join(
            [self.origin, f"Write it with numpy.savez_compressed as {self.filename}:", *lines]
        )


def per_split(sizes: dict[str, int], forms: dict[str, tuple[str, Shape]]) -> dict[str, Form]:
    """Arrays ``<name>_<split>`` with one row per object of the split."""
    return {
        f"{name}_{split}": Dense(dtype, (size, *rest))
        for split, size in sizes.items()
        for name, (dtype, rest) in forms.items()
    }


def get_data_home(data_home: DataHome = None) -> Path:
    """Return the directory that the ``fetch_`` functions read.

    Parameters
    ----------
    data_home : path, optional
        By default the environment variable ``MVCCA_DATA``, or ``~/mvcca_data`` if that is unset.

    Returns
    -------
    Path
        The directory; it need not exist.
    """
    return Path(data_home or os.environ.get("MVCCA_DATA") or "~/mvcca_data").expanduser()


def read(source: Source, data_home: DataHome = None) -> dict[str, Any]:
    """Read and check all that a source declares.

    Raises
    ------
    FileNotFoundError
        If the file is not in the data home.
    OSError
        If the file is damaged or does not match its declaration.
    """
    home = get_data_home(data_home)
    path = home / source.filename
    if not path.is_file():  # a FIFO would be waited for
        raise FileNotFoundError(
            f"No {source.filename} in {home}. Set data_home or the environment variable MVCCA_DATA "
            f"to its directory, or make it from the original.\n{source.describe()}"
        )
    sizes: Sizes = {}
    with path.open("rb") as file:  # np.load leaves a damaged file open
        try:
            # np.load alone skips the checksum if the sizes in the directory are wrong.
            if (damaged := zipfile.ZipFile(file).testzip()) is not None:
                raise ValueError(f"{damaged} fails its checksum")
            file.seek(0)
            archive = np.load(file, allow_pickle=False)
            return {key: form.decode(archive, key, sizes) for key, form in source.forms.items()}
        except DAMAGE as error:
            raise OSError(
                f"{path} is damaged or not in the expected format: {error}. Replace it.\n"
                f"{source.describe()}"
            ) from error


def _take(archive: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    if key not in archive:
        raise ValueError(f"array {key!r} is missing")
    return archive[key]


def _fits(found: Any, shape: Shape, sizes: Sizes) -> bool:
    """Whether a shape matches its declaration; the first array fixes the size of a free name."""
    return len(found) == len(shape) and all(
        have == (sizes.setdefault(want, have) if isinstance(want, str) else want)
        for have, want in zip(found, shape, strict=True)
    )


def _written(shape: Any) -> str:
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
