"""Find a data file and decode its arrays. Pickled content is never loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array


def data_home() -> Path:
    """The directory of the files: MVCCA_DATA, or ~/mvcca_data if that is unset."""
    return Path(os.environ.get("MVCCA_DATA") or "~/mvcca_data").expanduser()


def read(filename: str) -> dict[str, np.ndarray]:
    """All arrays of a file."""
    path = data_home() / filename
    if not path.is_file():
        raise FileNotFoundError(f"No {filename} in {path.parent}: set MVCCA_DATA to its directory.")
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def unpacked(bits: np.ndarray, n_columns: int) -> np.ndarray:
    """The 0/1 matrix that was stored with `numpy.packbits`."""
    return np.unpackbits(bits, axis=1, count=n_columns)


def counts(arrays: Mapping[str, np.ndarray], name: str) -> csr_array:
    """A sparse matrix of counts, stored as the four arrays of its CSR form."""
    data, indices, indptr, shape = (
        arrays[f"{name}_{part}"] for part in ("data", "indices", "indptr", "shape")
    )
    # float64, since products of small integers would overflow
    parts = (data.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
    return csr_array(parts, shape=tuple(shape.tolist()))
