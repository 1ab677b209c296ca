"""Reading an array from a file of any of the accepted formats, or opening it to be read by rows.

An array comes back as the file has it, dense or sparse; what it may be used for is checked by
`mvcca.cli.inputs` for views and by `mvcca.cli.labels` for labels. Pickled content is never loaded,
and every error names the file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from mvcca.cli.errors import CommandError
from mvcca.cli.tables import read_table
from mvcca.sources import SourceError, open_matrix
from mvcca.sources._sparse_npz import read_sparse

__all__ = ["FORMATS", "open_array", "path_of", "read_array"]

FORMATS = ".npy, .npz, .h5, .zarr, .mat, .parquet, .csv or .tsv"

_TEXT = (".csv", ".tsv")
_KEYED = (".npz", ".h5", ".hdf5", ".zarr", ".mat")
_BY_ROWS = (".npy", ".h5", ".hdf5", ".zarr", ".mat", ".parquet")
_SPARSE_KEYS = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes, whatever the format


def read_array(name: str, formats: str = FORMATS, n_rows: int | None = None) -> Any:
    """Read one array.

    Parameters
    ----------
    name : str
        A path ending in one of `FORMATS`; ``file.npz:key`` names one array of several.
    formats : str
        The endings that an error message offers.
    n_rows : int, optional
        The number of rows to expect. It decides whether the first line of a text file that could
        be either is a row or names the columns.

    Returns
    -------
    ndarray or csr_array
        Text columns of a table come back as strings. Numbers below a line of names are
        `NamedColumns`.

    Raises
    ------
    CommandError
        If the file is missing or damaged, or holds something else.
    """
    path, key = _path_and_key(name)
    suffix = path.suffix.lower()
    if suffix not in _TEXT and suffix not in _READERS:
        raise CommandError(f"{path}: expected a file ending in {formats}")
    _check_exists(path)
    try:
        array = read_table(path, n_rows) if suffix in _TEXT else _READERS[suffix](path, key)
    except SourceError as error:
        raise CommandError(_line(error)) from error
    except CommandError:
        raise
    except Exception as error:  # damaged files raise whatever their readers think of
        raise _unreadable(path, error) from error
    if not issparse(array) and array.dtype.kind not in "biufUS":
        raise CommandError(f"{path}: expected real numbers or text, got {array.dtype}")
    return array


def open_array(name: str) -> Any:
    """Open one matrix where it can be read by rows, read it where it cannot.

    Parameters
    ----------
    name : str
        As for `read_array`.

    Returns
    -------
    RowSource, ndarray or csr_array

    Raises
    ------
    CommandError
        As `read_array`.
    """
    path, key = _path_and_key(name)
    if path.suffix.lower() not in _BY_ROWS and (key is not None or not _is_csr(path)):
        return read_array(name)
    _check_exists(path)
    try:
        return open_matrix(path, key)
    except (SourceError, ImportError) as error:
        raise CommandError(_line(error)) from error
    except CommandError:
        raise
    except Exception as error:  # damaged files raise whatever their readers think of
        raise _unreadable(path, error) from error


def path_of(name: str) -> Path:
    """The file of an array, which may be one of several in there."""
    return _path_and_key(name)[0]


def _path_and_key(name: str) -> tuple[Path, str | None]:
    file, separator, key = name.rpartition(":")
    if separator and key and file.lower().endswith(_KEYED):
        return Path(file), key
    return Path(name), None


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise CommandError(f"{path}: no such file")
    if not path.is_file() and path.suffix.lower() != ".zarr":
        raise CommandError(f"{path}: not a file")


def _is_csr(path: Path) -> bool:
    """Whether a file is one of `scipy.sparse.save_npz` with rows one after the other."""
    with suppress(Exception), path.open("rb") as file:  # others will say what is wrong
        if path.suffix.lower() != ".npz":
            return False
        archive = np.load(file, allow_pickle=False)
        keys = set(getattr(archive, "files", ()))
        return keys >= _SPARSE_KEYS and archive["format"].item() in (b"csr", "csr")
    return False


def _unreadable(path: Path, error: Exception) -> CommandError:
    return CommandError(
        f"{path}: cannot be read as {path.suffix}: {_line(error) or type(error).__name__}"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _read_npy(path: Path, _: None) -> np.ndarray:
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path, key: str | None) -> Any:
    with path.open("rb") as file:  # np.load leaves a damaged file open
        archive = np.load(file, allow_pickle=False)
        if not hasattr(archive, "files"):
            raise ValueError("it holds a single array; name it .npy")
        keys = list(archive.files)
        if key is None and _SPARSE_KEYS.issubset(keys):
            file.seek(0)
            return read_sparse(file)
        if key is None and len(keys) != 1:
            raise ValueError(f"it holds the arrays {keys}; name one, as in {path.name}:KEY")
        key = keys[0] if key is None else key
        if key not in keys:
            raise ValueError(f"it has no array {key!r}; it holds {keys}")
        return archive[key]


def _read_parquet(path: Path, _: None) -> np.ndarray:
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
    except ImportError as error:
        raise CommandError(
            f"{path}: reading .parquet needs pandas and pyarrow: pip install pandas pyarrow"
        ) from error
    missing = [str(name) for name in frame.columns[frame.isna().any()]]
    if missing:
        raise ValueError(f"values are missing in the columns {missing}")
    words = [str(name) for name, kind in frame.dtypes.items() if kind.kind not in "biuf"]
    if not words:
        return frame.to_numpy()
    if frame.shape[1] > 1:
        raise ValueError(f"expected columns of numbers, got other things in {words}")
    return frame.to_numpy(dtype=str)


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
