"""Run-time configuration: block size, progress bar, checkpoint and device.

These options affect speed and memory use but never the fitted model, so they are not constructor
parameters.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["Config", "block_slices", "config_context", "get_config", "is_plain", "set_config"]

_BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Config:
    """Run-time configuration.

    Parameters
    ----------
    block_rows : int or None, default=None
        Rows to read, multiply or rank at once. None chooses blocks of about 64 MiB.
    progress : bool, default=False
        Show a progress bar with rows per second and remaining time on standard error.
    checkpoint : path or None, default=None
        Checkpoint directory; an interrupted fit resumes from it. It serves one fit at a time and is
        emptied when the fit ends.
    device : str or None, default=None
        Device on which `fit` computes: "cuda", "cuda:1", "torch:cuda:0", "cupy:0", "torch:cpu",
        "cpu" or "mps". Networks train there; None is the first GPU that torch finds, or else the
        CPU. Linear methods copy dense rows in host memory or in files there, each block while the
        previous one is processed; None, "cpu" and "mps" keep them on the host, and "cuda" is CuPy
        if CuPy finds the GPU, else torch. Rows that are already on a device stay there; `transform`
        processes host rows on the host.

    Raises
    ------
    ValueError
        If `block_rows` is below 1, or `device` is not the name of a device.
    TypeError
        If `block_rows` is neither an integer nor None, `progress` is not a bool, `checkpoint` is
        not a path, or `device` is not a string.
    ImportError
        If the library named by `device` is not installed.
    RuntimeError
        If there is no such GPU.
    """

    block_rows: int | None = None
    progress: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    device: str | None = None
    rows_device: str | None = field(init=False)  # to which rows of linear methods are copied

    def __post_init__(self) -> None:
        if self.block_rows is not None and operator.index(self.block_rows) < 1:
            raise ValueError(
                f"block_rows must be at least 1, got {self.block_rows}. "
                "Use None to choose it from the size of a row."
            )
        if not isinstance(self.progress, bool):
            raise TypeError(f"progress must be True or False, got {self.progress!r}.")
        if self.checkpoint is not None:
            os.fspath(self.checkpoint)
        if self.device is not None:
            from mvcca.machine.devices import check_device

            check_device(self.device)
        on_host = self.device in ("cpu", "mps")  # Apple's GPUs have no float64
        object.__setattr__(self, "rows_device", None if on_host else self.device)


_UNCHANGED: Any = ...  # default of options that keep their value
_global_config = Config()
_context: ContextVar[Config | None] = ContextVar("mvcca_config", default=None)


def get_config() -> Config:
    """Return the configuration of the innermost `config_context`, or else the global one."""
    return _context.get() or _global_config


def set_config(
    *,
    block_rows: int | None = _UNCHANGED,
    progress: bool = _UNCHANGED,
    checkpoint: str | os.PathLike[str] | None = _UNCHANGED,
    device: str | None = _UNCHANGED,
) -> None:
    """Set options for the whole process, in every thread.

    An enclosing `config_context` keeps its own options until it ends.

    Parameters
    ----------
    block_rows, progress, checkpoint, device
        See `Config`. Options that are not given keep their value.
    """
    global _global_config
    options = {
        "block_rows": block_rows,
        "progress": progress,
        "checkpoint": checkpoint,
        "device": device,
    }
    _global_config = _changed(_global_config, options)


@contextmanager
def config_context(
    *,
    block_rows: int | None = _UNCHANGED,
    progress: bool = _UNCHANGED,
    checkpoint: str | os.PathLike[str] | None = _UNCHANGED,
    device: str | None = _UNCHANGED,
) -> Iterator[None]:
    """Set options for the body of a ``with`` statement, in the current thread or task only.

    Parameters
    ----------
    block_rows, progress, checkpoint, device
        See `Config`. Options that are not given keep their value.

    Examples
    --------
    >>> from mvcca import config_context, get_config
    >>> with config_context(block_rows=1000):
    ...     get_config().block_rows
    1000
    """
    options = {
        "block_rows": block_rows,
        "progress": progress,
        "checkpoint": checkpoint,
        "device": device,
    }
    token = _context.set(_changed(get_config(), options))
    try:
        yield
    finally:
        _context.reset(token)


def block_slices(n_rows: int, row_bytes: int, at_least: int = 1) -> Iterator[slice]:
    """Cut `n_rows` rows of `row_bytes` bytes each into consecutive blocks.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    row_bytes : int
        Memory needed per row, results included. A row above 64 MiB is one block.
    at_least : int, default=1
        Minimum number of rows per block, for blocks with a high fixed cost.

    Returns
    -------
    iterator of slice
        Consecutive slices that cover ``range(n_rows)``, of equal length except the last.
    """
    # Computed here rather than in a generator: the caller may iterate after the context has ended.
    size = block_size(row_bytes, at_least)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def block_size(row_bytes: int, at_least: int = 1) -> int:
    """Number of rows in one block of `block_slices`."""
    return get_config().block_rows or max(at_least, _BLOCK_BYTES // max(1, row_bytes), 1)


def is_plain(rows: Any) -> bool:
    """Whether a loop over rows needs no reading ahead, device, checkpoint or progress bar.

    Parameters
    ----------
    rows : Block or Views
    """
    config = get_config()
    return not (
        rows.is_lazy or rows.on_device or config.rows_device or config.checkpoint or config.progress
    )


def _changed(config: Config, options: dict[str, Any]) -> Config:
    return replace(config, **{k: v for k, v in options.items() if v is not _UNCHANGED})
