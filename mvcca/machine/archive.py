"""Arrays and a JSON document in one file, written whole or not at all and verified when read.

The file is a safetensors file: a header in JSON and the bytes of the arrays, nothing that could be
executed. `mvcca.persistence` (models) and the checkpoints of `mvcca.statistics` and `mvcca.deep`
decide what the arrays mean.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError, safe_open

from mvcca.machine.replacing import replacing

FORMAT = 1  # of the header below

_KEY = "mvcca"  # of the document among the metadata of the file
_HEADER_BYTES = 100_000_000  # at most, as in safetensors itself
_HEADER_VALUES = 800_000  # at most: each takes some 80 bytes of memory, a list or mapping more
_DTYPES = {  # of arrays, and their names in safetensors
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8",
    "uint16": "U16", "uint32": "U32", "uint64": "U64", "float16": "F16", "float32": "F32",
    "float64": "F64",
}  # fmt: skip
_TYPES = {name: np.dtype(dtype) for dtype, name in _DTYPES.items()}


class ModelFileError(ValueError):
    """A file that is damaged, was not written by mvcca, or was written by a later version."""

    __module__ = "mvcca.persistence"  # where it is public


def write_archive(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray], content: Mapping[str, Any]
) -> None:
    """Write arrays and a document of what `json` can write; after a failure `path` is unchanged.

    Arrays in C or Fortran order are not copied. A symbolic link stays one, and its target is
    replaced. Raises OSError if the file cannot be written, TypeError or ValueError if the arrays
    or the document hold what a file cannot.
    """
    stored, tensors = {}, {}
    for name, array in arrays.items():
        if array.dtype.name not in _DTYPES:
            raise TypeError(
                f"Array {name!r} is of {array.dtype}; a file holds arrays of {', '.join(_DTYPES)}."
            )
        rows, order = _in_c_order(array)
        stored[name] = rows
        tensors[name] = {"order": order, "sha256": _digest_of_array(rows)}
    document = {
        "format": FORMAT,
        "sha256": _digest_of_text(tensors, content),
        "tensors": tensors,
        "content": content,
    }
    text = json.dumps(document, allow_nan=False)
    most = _HEADER_BYTES // 4  # quotes are escaped, and arrays have their own lines
    _check_size(f"is {len(text):,} bytes long", len(text), most)
    # The layout is that of safetensors, whose own writer leaves nameless files behind if killed.
    header, ordered = _header_and_order(stored, text)
    n_values = _n_values(header)
    _check_size(f"would hold {n_values:,} values", n_values, _HEADER_VALUES)
    with replacing(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for array in ordered:
            file.write(array.data)


def read_archive(
    path: str | os.PathLike[str],
    mapped: Callable[[str], bool] | None = None,
    verify: bool = True,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what `write_archive` wrote: writable arrays in C or Fortran order, and the document.

    Arrays whose names are `mapped` stay in the file, as read-only `numpy.memmap`. Without `verify`,
    arrays are not compared with their checksums, so that those are not read.

    Raises ModelFileError if the file is damaged, was not written by mvcca or is of a later version,
    and OSError if it cannot be opened.
    """
    _check_outside(path)
    try:
        with safe_open(path, framework="numpy") as file:
            document = _document(path, file.metadata())
            in_place = None if mapped is None else _in_place(path)

            def tensor(name: str) -> np.ndarray:
                if in_place is None or mapped is None or not mapped(name):
                    return file.get_tensor(name)
                return in_place(name)

            arrays = dict(_checked_arrays(path, file, document["tensors"], tensor, verify))
    except SafetensorError as error:
        _damaged(path, str(error).removeprefix("Error while deserializing header: "), error)
    return arrays, document["content"]


def kind_of(path: str | os.PathLike[str]) -> Any:
    """What the document of a file says it holds, without its arrays; raises as `read_archive`."""
    return read_archive(path, lambda _: True, verify=False)[1].get("kind")


def _damaged(path: Any, finding: str, cause: Exception | None = None) -> NoReturn:
    """Refuse a damaged file."""
    raise ModelFileError(
        f"{os.fspath(path)} is damaged: {finding}. Expected the file as mvcca wrote it: use "
        "another copy, or fit and save again."
    ) from cause


def not_ours(path: Any, finding: str) -> NoReturn:
    """Refuse a file that mvcca did not write, or not for this purpose."""
    raise ModelFileError(
        f"{os.fspath(path)} {finding}. Expected a file written by mvcca.save; pickles, .npz and "
        "other formats are not read."
    )


# ---- writing -------------------------------------------------------------------------------------


def _check_size(finding: str, number: int, most: int) -> None:
    if number > most:
        raise ValueError(
            f"The part of the file that is not arrays {finding}, at most {most:,} are possible. "
            "Store long lists as arrays."
        )


def _header_and_order(
    stored: Mapping[str, np.ndarray], text: str
) -> tuple[bytes, list[np.ndarray]]:
    """The header of a safetensors file, and the arrays in the order of its names."""
    header: dict[str, Any] = {"__metadata__": {_KEY: text}}
    end = 0
    names = sorted(stored, key=lambda name: (-stored[name].itemsize, name))  # aligns all numbers
    for name in names:
        array, start = stored[name], end
        end += array.nbytes
        header[name] = {
            "dtype": _DTYPES[array.dtype.name],
            "shape": array.shape,
            "data_offsets": (start, end),
        }
    encoded = json.dumps(header, separators=(",", ":")).encode()
    return encoded.ljust(-(-len(encoded) // 8) * 8), [stored[name] for name in names]


def _in_c_order(array: np.ndarray) -> tuple[np.ndarray, str]:
    """The array or its transpose, whichever is contiguous, and the order of the array."""
    array = np.asarray(array)
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        array = array.copy(order="F" if abs(array.strides[0]) < abs(array.strides[-1]) else "C")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return (array, "C") if array.flags.c_contiguous else (array.T, "F")


def _digest_of_array(array: np.ndarray) -> str:
    digest = hashlib.sha256(f"{array.dtype.name} {array.shape} ".encode())
    digest.update(array.data)
    return digest.hexdigest()


def _digest_of_text(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, allow_nan=False).encode()).hexdigest()


# ---- reading -------------------------------------------------------------------------------------


def _check_outside(path: str | os.PathLike[str]) -> None:
    """Check a file's kind, length and size of header before parsing it."""
    if not Path(path).is_file():  # a pipe would be waited for, a device never ends
        os.stat(path)
        not_ours(path, "is not a regular file")
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        room = os.fstat(file.fileno()).st_size - 8
        if room < 2 or file.read(1) != b"{":
            not_ours(path, "does not begin as a safetensors file does")
        if length > min(room, _HEADER_BYTES):
            _damaged(path, f"it announces a header of {length:,} bytes in a file of {room + 8:,}")
        if (n_values := _n_values(b"{" + file.read(max(0, length - 1)))) > _HEADER_VALUES:
            _damaged(path, f"it describes {n_values:,} values, more than mvcca writes")


def _n_values(header: bytes) -> int:
    """Upper bound of the values in a header, without parsing it; a container weighs three."""
    n_containers = header.count(b"[") + header.count(b"{")
    return header.count(b",") + header.count(b":") + 3 * n_containers


def _document(path: Any, metadata: Mapping[str, str] | None) -> dict[str, Any]:
    """The JSON document of the header, after comparing its checksum."""
    if not metadata or _KEY not in metadata:
        not_ours(path, "is a safetensors file, but not of mvcca")
    try:
        document = json.loads(metadata[_KEY])
        version = document["format"]
        later = type(version) is int and version > FORMAT
        intact = later or document["sha256"] == _digest_of_text(
            document["tensors"], document["content"]
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        _damaged(path, "its description is not what mvcca writes", error)
    if later:
        raise ModelFileError(
            f"{os.fspath(path)} has format {version}, and this version of mvcca reads formats up "
            f"to {FORMAT}. Update mvcca."
        )
    if not intact or version != FORMAT or not isinstance(document["content"], dict):
        _damaged(path, "its description does not match its checksum")
    return document


def _in_place(path: str | os.PathLike[str]) -> Callable[[str], np.ndarray]:
    """What returns an array, by its name, that is read from the file where it is used.

    safetensors has compared the header of the file with its size.
    """
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    begin = 8 + int.from_bytes(whole[:8].tobytes(), "little")
    header = json.loads(whole[8:begin].tobytes())

    def tensor(name: str) -> np.ndarray:
        described = header[name]
        start, end = described["data_offsets"]
        rows = whole[begin + start : begin + end]
        return rows.view(_TYPES[described["dtype"]]).reshape(described["shape"])

    return tensor


def _checked_arrays(
    path: Any, file: Any, tensors: Any, tensor: Callable[[str], np.ndarray], verify: bool
) -> Iterator[tuple[str, np.ndarray]]:
    """Every array, after comparing its checksum; safetensors has compared sizes with the file."""
    if not isinstance(tensors, dict) or set(tensors) != set(file.keys()):
        _damaged(path, "it does not hold the arrays that it describes")
    for name, described in tensors.items():
        if file.get_slice(name).get_dtype() not in _DTYPES.values():
            _damaged(path, f"array {name!r} is of a type that mvcca does not write")
        try:
            array = tensor(name)
            intact = not verify or described["sha256"] == _digest_of_array(array)
            order = described["order"]
        except (KeyError, TypeError, ValueError) as error:
            _damaged(path, f"array {name!r} cannot be read", error)
        if not intact:
            _damaged(path, f"array {name!r} does not match its checksum")
        yield name, array.T if order == "F" else array
