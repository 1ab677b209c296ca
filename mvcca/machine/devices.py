"""Devices by name, and copies of rows from host memory to a device.

Torch and CuPy are imported only if one of their devices is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from itertools import pairwise
from threading import local
from typing import Any

import numpy as np

from mvcca.machine.threads import n_threads_of_blocks

Mover = Callable[[np.ndarray], Any]
_Buffer = tuple[np.ndarray, Any]  # bytes of pinned memory, and the event after the last copy

_NAMES = re.compile(r"(?:(?P<library>cuda|cupy|torch:cuda)(?::(?P<number>\d+))?|torch:cpu|cpu|mps)")
_PIECE_BYTES = 16 * 2**20  # of rows in a pinned buffer
_EXTRAS = {"CuPy": "gpu", "torch": "deep"}


def check_device(name: str) -> None:
    """Raise an error if a device name is invalid or the device is not available."""
    if not isinstance(name, str):
        raise TypeError(f"device must be a string or None, got {name!r}.")
    if not _NAMES.fullmatch(name):
        raise ValueError(
            "Expected device to be None, 'cuda', 'cuda:1' (the first library that finds the GPU), "
            f"'cupy:0', 'torch:cuda:0', 'torch:cpu', 'cpu' or 'mps', got {name!r}."
        )
    if name == "mps" and not _imported("torch").backends.mps.is_available():
        raise RuntimeError("device='mps' needs an Apple GPU that torch finds.")
    if name not in ("cpu", "mps"):
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
    values = np.require(values, requirements=["C", "W"])
    # A reversed axis of length 1 passes for contiguous.
    return values if min(values.strides, default=0) >= 0 else values.copy()


# ---- copies through pinned memory ----------------------------------------------------------------


def _to_torch(module: Any, number: int) -> Mover:
    device = module.device("cuda", number)
    # In a separate stream, a copy does not wait for products of the previous block.
    copying, working = module.cuda.Stream(device), module.cuda.current_stream(device)

    def buffer(n_bytes: int) -> _Buffer:
        pinned = module.empty(n_bytes, dtype=module.uint8, pin_memory=True)
        return pinned.numpy(), module.cuda.Event()

    def move(rows: np.ndarray) -> Any:
        with module.cuda.stream(copying):
            moved = module.empty(rows.shape, dtype=_of_torch(module, rows.dtype), device=device)

            def send(part: slice, staged: np.ndarray, event: Any) -> None:
                moved[part].copy_(module.from_numpy(staged), non_blocking=True)
                event.record(copying)

            staging.copy(rows, send)
        moved.record_stream(working)  # its memory is not reused before that work is done
        return moved

    staging = _Staging(buffer)
    return move


def _of_torch(module: Any, dtype: np.dtype) -> Any:
    return module.from_numpy(np.empty(0, dtype)).dtype


def _to_cupy(module: Any, number: int) -> Mover:
    with module.cuda.Device(number):
        copying = module.cuda.Stream(non_blocking=True)

    def buffer(n_bytes: int) -> _Buffer:
        pinned = module.cuda.alloc_pinned_memory(n_bytes)
        return np.frombuffer(pinned, np.uint8, n_bytes), module.cuda.Event()

    def move(rows: np.ndarray) -> Any:
        with module.cuda.Device(number), copying:
            moved = module.empty(rows.shape, rows.dtype)

            def send(part: slice, staged: np.ndarray, event: Any) -> None:
                moved[part].set(staged, stream=copying)
                event.record(copying)

            staging.copy(rows, send)
        return moved

    staging = _Staging(buffer)
    return move


class _Staging:
    """Two reused buffers for each thread that copies: one is filled while the other is copied.

    From memory that is not pinned, the driver copies by itself, and kernels wait until it is done.
    """

    def __init__(self, buffer: Callable[[int], _Buffer]) -> None:
        self._buffer, self._own = buffer, local()
        n_threads = n_threads_of_blocks()
        self._pool = ThreadPoolExecutor(n_threads, "mvcca-fill") if n_threads > 1 else None
        self._n_threads = n_threads

    def copy(self, rows: np.ndarray, send: Callable[[slice, np.ndarray, Any], None]) -> None:
        """Send pieces of the rows from pinned memory, and wait until they have arrived."""
        if not rows.size:
            return
        row_bytes = rows.nbytes // len(rows)
        height = min(len(rows), max(1, _PIECE_BYTES // row_bytes))
        buffers = self._buffers(height * row_bytes)
        for number, start in enumerate(range(0, len(rows), height)):
            part = rows[start : start + height]
            memory, event = buffers[number % 2]
            event.synchronize()
            staged = memory[: part.nbytes].view(part.dtype).reshape(part.shape)
            self._fill(staged, part)
            send(slice(start, start + len(part)), staged, event)
        for _, event in buffers:
            event.synchronize()

    def _buffers(self, n_bytes: int) -> list[_Buffer]:
        """Those of this thread, of at least this size."""
        found = getattr(self._own, "buffers", None)
        if found is None or len(found[0][0]) < n_bytes:
            found = self._own.buffers = [self._buffer(n_bytes) for _ in range(2)]
        return found

    def _fill(self, staged: np.ndarray, part: np.ndarray) -> None:
        if self._pool is None or len(part) < self._n_threads:
            np.copyto(staged, part)
            return
        edges = np.linspace(0, len(part), self._n_threads + 1).astype(int)
        slices = [slice(*edge) for edge in pairwise(edges.tolist())]
        list(self._pool.map(lambda own: np.copyto(staged[own], part[own]), slices))


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
