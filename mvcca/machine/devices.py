"""Devices by name, and copies of rows from host memory to a device.

Torch and CuPy are imported only if one of their devices is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

Mover = Callable[[np.ndarray], Any]

_NAMES = re.compile(r"(?:(?P<library>cuda|cupy|torch:cuda)(?::(?P<number>\d+))?|torch:cpu)")
_EXTRAS = {"CuPy": "gpu", "torch": "deep"}


def check_device(name: str) -> None:
    """Raise an error if a device name is invalid or the device is not available."""
    if not isinstance(name, str):
        raise TypeError(f"device must be a string or None, got {name!r}.")
    if not _NAMES.fullmatch(name):
        raise ValueError(
            "Expected device to be None, 'cuda', 'cuda:1' (the first library that finds the GPU), "
            f"'cupy:0', 'torch:cuda:0' or 'torch:cpu', got {name!r}."
        )
    _find(name)


def mover(name: str) -> Mover:
    """Return a function that copies rows to a device, for a thread that reads ahead.

    Call this in the thread that computes on the device.
    """
    library, module, number = _find(name)
    if name == "torch:cpu":
        return lambda rows: module.asarray(writable(rows))
    return _to_cupy(module, number) if library == "CuPy" else _to_torch(module, number)


def working_on(name: str | None) -> AbstractContextManager[Any]:
    """Context for work on a named device; CuPy uses the current GPU."""
    if name is None or _find(name)[0] != "CuPy":
        return nullcontext()
    _, module, number = _find(name)
    return module.cuda.Device(number)


def writable(values: np.ndarray) -> np.ndarray:
    """Values that torch accepts; read-only and reversed rows are copied."""
    return np.require(values, requirements=["C", "W"])


def _to_torch(module: Any, number: int) -> Mover:
    device = module.device("cuda", number)
    # In a separate stream, a copy does not wait for products of the previous block.
    copying, working = module.cuda.Stream(device), module.cuda.current_stream(device)

    def move(rows: np.ndarray) -> Any:
        with module.cuda.stream(copying):
            moved = module.asarray(writable(rows)).to(device)  # returns when the copy is complete
        moved.record_stream(working)  # its memory is not reused before that work is done
        return moved

    return move


def _to_cupy(module: Any, number: int) -> Mover:
    with module.cuda.Device(number):
        copying = module.cuda.Stream(non_blocking=True)

    def move(rows: np.ndarray) -> Any:
        with module.cuda.Device(number), copying:
            moved = module.asarray(rows)
            copying.synchronize()
        return moved

    return move


# ---- libraries -----------------------------------------------------------------------------------


@cache
def _find(name: str) -> tuple[str, Any, int]:
    """Name of the library, the library, and the number of the GPU."""
    if name == "torch:cpu":
        return "torch", _imported("torch"), 0
    match = _NAMES.fullmatch(name)
    assert match is not None
    number = int(match["number"] or 0)
    if match["library"] != "cuda":
        library = "CuPy" if match["library"] == "cupy" else "torch"
        try:
            return library, _with_gpu(library, _imported(library), number), number
        except RuntimeError as missing:
            raise RuntimeError(f"device={name!r} needs an NVIDIA GPU: {missing}.") from None
    reasons = []
    for library in ("CuPy", "torch"):
        try:
            return library, _with_gpu(library, _imported(library), number), number
        except ImportError as error:
            reasons.append(f"{library} cannot be imported ({error.__cause__})")
        except RuntimeError as missing:
            reasons.append(str(missing))
    raise RuntimeError(
        f"device={name!r} needs an NVIDIA GPU and a library that finds it: {'; '.join(reasons)}. "
        "With a GPU, pip install 'mvcca[gpu]' installs CuPy; without one, leave device=None."
    )


def _imported(library: str) -> Any:
    try:
        return import_module(library.lower())
    except ImportError as error:
        raise ImportError(
            f"{library} cannot be imported ({error}). pip install 'mvcca[{_EXTRAS[library]}]'"
        ) from error


def _with_gpu(library: str, module: Any, number: int) -> Any:
    """The library, after checking that it finds the GPU."""
    try:
        cuda = module.cuda
        count = cuda.runtime.getDeviceCount() if library == "CuPy" else cuda.device_count()
    except Exception as error:  # CUDARuntimeError, or a missing CUDA library
        raise RuntimeError(f"{library} finds no GPU ({error})") from error
    if library == "torch" and not count and module.version.cuda is None:
        raise RuntimeError("torch is installed without CUDA")
    if number >= count:
        found = f"{count} GPU(s), numbered from 0" if count else "no GPU"
        raise RuntimeError(f"{library} finds {found}")
    return module
