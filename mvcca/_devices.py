"""Devices by name, and how rows in host memory get there.

Torch and CuPy are reached through array-api-compat and only where a device of theirs is named. What
is computed on a device is no business of this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from mvcca._backend import writable

Mover = Callable[[np.ndarray], Any]

_NAMES = re.compile(r"(?:(?P<library>cuda|cupy|torch:cuda)(?::(?P<number>\d+))?|torch:cpu)")
_EXTRAS = {"CuPy": "gpu", "torch": "deep"}


def check_device(name: str) -> None:
    """Refuse a name that is none, and a device that is not there.

    Raises
    ------
    TypeError, ValueError
        If it is no string, or not one of those known.
    ImportError
        If the library that is named is not installed.
    RuntimeError
        If there is no such GPU.
    """
    if not isinstance(name, str):
        raise TypeError(f"device must be a string or None, got {name!r}.")
    if not _NAMES.fullmatch(name):
        raise ValueError(
            "Expected device to be None, 'cuda', 'cuda:1' (the first library that finds the GPU), "
            f"'cupy:0', 'torch:cuda:0' or 'torch:cpu', got {name!r}."
        )
    _find(name)


def mover(name: str) -> Mover:
    """What copies rows in host memory to a device, for a thread that runs beside the work there.

    To be made by the thread that does that work.
    """
    library, xp, number = _find(name)
    if name == "torch:cpu":
        return lambda rows: xp.asarray(writable(rows))
    return _to_cupy(xp, number) if library == "CuPy" else _to_torch(xp, number)


def _to_torch(xp: Any, number: int) -> Mover:
    device = xp.device("cuda", number)
    # On a stream of its own a copy does not wait for the products of the block before.
    copying, working = xp.cuda.Stream(device), xp.cuda.current_stream(device)

    def move(rows: np.ndarray) -> Any:
        with xp.cuda.stream(copying):
            moved = xp.asarray(writable(rows)).to(device)  # returns when all is there
        moved.record_stream(working)  # its memory is not given away before that work is done
        return moved

    return move


def _to_cupy(xp: Any, number: int) -> Mover:
    with xp.cuda.Device(number):
        copying = xp.cuda.Stream(non_blocking=True)

    def move(rows: np.ndarray) -> Any:
        with xp.cuda.Device(number), copying:
            moved = xp.asarray(rows)
            copying.synchronize()
        return moved

    return move


# ---- which library has the device ----------------------------------------------------------------


class _Missing(Exception):
    """Why a library has no such device."""


@cache
def _find(name: str) -> tuple[str, Any, int]:
    """The library, its namespace and the number of the GPU."""
    if name == "torch:cpu":
        return "torch", _imported("torch"), 0
    match = _NAMES.fullmatch(name)
    assert match is not None
    number = int(match["number"] or 0)
    if match["library"] != "cuda":
        library = "CuPy" if match["library"] == "cupy" else "torch"
        try:
            return library, _with_gpu(library, _imported(library), number), number
        except _Missing as missing:
            raise RuntimeError(f"device={name!r} needs an NVIDIA GPU: {missing}.") from None
    reasons = []
    for library in ("CuPy", "torch"):
        try:
            return library, _with_gpu(library, _imported(library), number), number
        except ImportError as error:
            reasons.append(f"{library} cannot be imported ({error.__cause__})")
        except _Missing as missing:
            reasons.append(str(missing))
    raise RuntimeError(
        f"device={name!r} needs an NVIDIA GPU and a library that finds it: {'; '.join(reasons)}. "
        "With a GPU, pip install 'mvcca[gpu]' installs CuPy; without one, leave device=None."
    )


def _imported(library: str) -> Any:
    try:
        return import_module(f"array_api_compat.{library.lower()}")
    except ImportError as error:
        raise ImportError(
            f"{library} cannot be imported ({error}). pip install 'mvcca[{_EXTRAS[library]}]'"
        ) from error


def _with_gpu(library: str, xp: Any, number: int) -> Any:
    """The namespace again, if the library finds that GPU."""
    try:
        if library == "CuPy":
            count = xp.cuda.runtime.getDeviceCount()
        else:
            count = xp.cuda.device_count()
    except Exception as error:  # CUDARuntimeError, or a library of CUDA that is missing
        raise _Missing(f"{library} finds no GPU ({error})") from error
    if number >= count:
        found = f"{count} GPU(s), numbered from 0" if count else "no GPU"
        raise _Missing(f"{library} finds {found}")
    return xp
