"""Read an array from a file in any supported format, or open it for reading in blocks.

Pickled content is never loaded, and every error names the file. `inputs` and `labels` validate the
arrays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.errors import CommandError
from mvcca.cli.text_tables import read_table
from mvcca.sources import SourceError, open_matrix
from mvcca.sources._file import optional
from mvcca.sources._sparse_npz import read_sparse

FORMATS = ".npy, .npz, .h5, .zarr, .mat, .parquet, .csv or .tsv"

_TEXT = (".csv", ".tsv")
_KEYED = (".npz", ".h5", ".hdf5", ".zarr", ".mat")
_BY_ROWS = (".npy", ".h5", ".hdf5", ".zarr", ".mat", ".parquet")
_INDEX = re.compile(r"__index_level_\d+__")
_SPARSE_KEYS = {"format", "shape", "data"}  # of scipy.sparse.save_npz, in any sparse format


def read_array(name: str, formats: str = FORMATS, n_rows: int | None = None) -> Any:
    """Read one array, dense or sparse.

    Parameters
    ----------
    name : str
        Path ending in one of `FORMATS`; ``file.npz:key`` names one array of several.
    formats : str
        Supported file extensions, for the error message.
    n_rows : int, optional
        Expected number of rows, which decides whether an ambiguous first line of a text file is a
        header.

    Returns
    -------
    ndarray or csr_array
        Text columns are strings; a numeric table with a header is a `NamedColumns`.
    """
    path, key = _path_and_key(name)
    suffix = path.suffix.lower()
    if suffix not in _TEXT and suffix not in _READERS:
        raise CommandError(f"{path}: expected a file ending in {formats}")
    with _reading(path):
        array = read_table(path, n_rows) if suffix in _TEXT else _READERS[suffix](path, key)
    if not issparse(array) and array.dtype.kind not in "biufUS":
        raise CommandError(f"{path}: expected real numbers or text, got {array.dtype}")
    return array


def open_array(name: str) -> Any:
    """Open a matrix for reading in blocks if its format allows, else read it as `read_array`."""
    path, key = _path_and_key(name)
    if path.suffix.lower() not in _BY_ROWS and (key is not None or not _is_csr(path)):
        return read_array(name)
    with _reading(path):
        return open_matrix(path, key)


def path_of(name: str) -> Path:
    """The path of an array's file, without the key of the array."""
    return _path_and_key(name)[0]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Convert all errors of reading a file to a `CommandError` that names the file."""
    if not path.exists():
        raise CommandError(f"{path}: no such file")
    if not path.is_file() and path.suffix.lower() != ".zarr":
        raise CommandError(f"{path}: not a file")
    try:
        yield
    except CommandError:
        raise
    except Exception as error:  # readers raise exceptions of any type for damaged files
        text = " ".join(str(error).split())
        if not isinstance(error, SourceError | ImportError):
            reason = text or type(error).__name__
            text = f"{path}: cannot be read as {path.suffix}: {reason}"
        raise CommandError(text) from error


def _path_and_key(name: str) -> tuple[Path, str | None]:
    file, separator, key = name.rpartition(":")
    if separator and key and file.lower().endswith(_KEYED):
        return Path(file), key
    return Path(name), None


def _is_csr(path: Path) -> bool:
    """Whether a file was written by `scipy.sparse.save_npz` in CSR format."""
    with suppress(Exception), path.open("rb") as file:  # `read_array` reports what is wrong
        if path.suffix.lower() != ".npz":
            return False
        archive = np.load(file, allow_pickle=False)
        keys = set(getattr(archive, "files", ()))
        return keys >= _SPARSE_KEYS and archive["format"].item() in (b"csr", "csr")
    return False


def _read_npy(path: Path, _: None) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path, key: str | None) -> Any:
    with path.open("rb") as file:  # np.load does not close a damaged file
        archive = np.load(file, allow_pickle=False)
        if not hasattr(archive, "files"):
            raise ValueError("it contains a single array; rename it to .npy")
        keys = list(archive.files)
        if key is None and _SPARSE_KEYS.issubset(keys):
            file.seek(0)
            return read_sparse(file)
        if key is None and len(keys) != 1:
            raise ValueError(f"it contains the arrays {keys}; name one, as in {path.name}:KEY")
        key = keys[0] if key is None else key
        if key not in keys:
            raise ValueError(f"it has no array {key!r}; it contains {keys}")
        return archive[key]


def _read_parquet(path: Path, _: None) -> np.ndarray:
    table = optional("pyarrow.parquet", ".parquet").read_table(path)
    names = [n for n in table.column_names if not _INDEX.fullmatch(n)]  # pandas' row labels
    columns = {name: table.column(name) for name in names}
    missing = [name for name, column in columns.items() if column.null_count]
    if missing:
        raise ValueError(f"values are missing in the columns {missing}")
    arrays = {name: column.to_numpy() for name, column in columns.items()}
    words = [name for name, values in arrays.items() if values.dtype.kind not in "biuf"]
    if not words:
        return np.column_stack(list(arrays.values()))
    if len(arrays) > 1:
        raise ValueError(f"expected numeric columns, got other types in {words}")
    return arrays[words[0]].astype(str)[:, None]


def _read_rows(path: Path, key: str | None) -> Any:
    source = open_matrix(path, key)
    return source.read(0, len(source))


_READERS: dict[str, Callable[[Path, Any], Any]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".parquet": _read_parquet,
    ".h5": _read_rows,
    ".hdf5": _read_rows,
    ".zarr": _read_rows,
    ".mat": _read_rows,
}
