"""Choices about how a computation runs, not about what it computes.

They change speed and memory, never the model, and so they stand here and not in a constructor.
Nothing here knows of views, statistics or estimators.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any

__all__ = ["Config", "block_slices", "config_context", "get_config", "set_config"]

_BLOCK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Config:
    """The run-time choices.

    Parameters
    ----------
    block_rows : int or None, default=None
        Rows that are read, multiplied or ranked at once. None takes as many as fill about 64 MiB.
    progress : bool, default=False
        Show a bar on standard error while rows are gone over: rows per second and time left.
    checkpoint : path or None, default=None
        A folder in which a fit keeps what it has added up so far, and from which the same fit goes
        on after an interruption. One fit at a time; it is empty again when the fit is done.
    device : {None, "cuda", "cuda:1", "torch:cuda:0", "cupy:0", "torch:cpu", ...}, default=None
        Where a fit computes with dense rows in host memory or in files: blocks are copied there
        one by one, each while the one before is worked on. "cuda" takes CuPy if it finds the GPU,
        else torch. Rows that are on a device already are computed with where they are, and
        `transform` leaves host rows at home.

    Raises
    ------
    ValueError
        If `block_rows` is below 1, or `device` is no device's name.
    TypeError
        If `block_rows` is neither an integer nor None, `progress` no bool, `checkpoint` no path, or
        `device` no string.
    ImportError
        If the library that `device` names is not installed.
    RuntimeError
        If there is no such GPU.
    """

    block_rows: int | None = None
    progress: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    device: str | None = None

    def __post_init__(self) -> None:
        if self.block_rows is not None and operator.index(self.block_rows) < 1:
            raise ValueError(
                f"block_rows must be at least 1, got {self.block_rows}. "
                "Use None to have it chosen from the size of a row."
            )
        if not isinstance(self.progress, bool):
            raise TypeError(f"progress must be True or False, got {self.progress!r}.")
        if self.checkpoint is not None:
            os.fspath(self.checkpoint)
        if self.device is not None:
            from mvcca._devices import check_device

            check_device(self.device)


_process = Config()
_context: ContextVar[Config | None] = ContextVar("mvcca_config", default=None)


def get_config() -> Config:
    """Return the choices in force: the innermost `config_context`'s, else the process's."""
    return _context.get() or _process


def set_config(**choices: Any) -> None:
    """Change the choices of the whole process, in every thread.

    Inside a `config_context` the context's own choices stay in force until it ends.

    Parameters
    ----------
    **choices
        Fields of `Config`; those not named keep their value.

    Raises
    ------
    TypeError
        If a name is no field of `Config`.
    """
    global _process
    _process = _changed(_process, choices)


@contextmanager
def config_context(**choices: Any) -> Iterator[None]:
    """Change the choices for the body of a ``with`` statement, in this thread or task alone.

    Parameters
    ----------
    **choices
        Fields of `Config`; those not named keep their value.

    Raises
    ------
    TypeError
        If a name is no field of `Config`.

    Examples
    --------
    >>> from mvcca import config_context, get_config
    >>> with config_context(block_rows=1000):
    ...     get_config().block_rows
    1000
    """
    token = _context.set(_changed(get_config(), choices))
    try:
        yield
    finally:
        _context.reset(token)


def block_slices(n_rows: int, row_bytes: int, at_least: int = 1) -> Iterator[slice]:
    """Cut `n_rows` rows of `row_bytes` bytes each into consecutive blocks.

    Parameters
    ----------
    n_rows : int
        Rows to cover.
    row_bytes : int
        What one row needs in memory, results included. A row above 64 MiB is a block of its own.
    at_least : int, default=1
        Rows that a block has even so, where each block costs more than its rows do.

    Returns
    -------
    iterator of slice
        Disjoint, in order, together ``range(n_rows)``; all of the same length but the last.
    """
    # Decided here, not in a generator's body: the caller may iterate after its context has ended.
    size = block_size(row_bytes, at_least)
    return (slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def block_size(row_bytes: int, at_least: int = 1) -> int:
    """Rows of one block, as `block_slices` cuts them."""
    return get_config().block_rows or max(at_least, _BLOCK_BYTES // max(1, row_bytes), 1)


def _changed(config: Config, choices: dict[str, Any]) -> Config:
    known = [field.name for field in fields(Config)]
    unknown = sorted(choices.keys() - set(known))
    if unknown:
        raise TypeError(f"Unknown choice {', '.join(unknown)}. Known are: {', '.join(known)}.")
    return replace(config, **choices)
