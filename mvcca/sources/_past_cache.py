"""Reading a part of a file past the system's page cache, for files that would not fit into it.

A row that is read once, of a file larger than memory, is of no use there; copying it through costs
a third of a second of CPU time per gigabyte and drives out what others have there.
"""

from __future__ import annotations

import os

import numpy as np

__all__ = ["fits_in_cache", "open_past_cache", "read_past_cache"]

_SHARE = 8  # part of the memory that a file may fill
_PAGE = 4096  # what such reads begin and end at, in the file and in memory


def fits_in_cache(n_bytes: int) -> bool:
    """Whether a file may still be in the cache when it is read again."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not a system that tells
        return True
    return n_bytes <= memory // _SHARE


def open_past_cache(path: str) -> int | None:
    """A descriptor for reads past the cache; None where system or file system has no such thing."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECT)
    except (AttributeError, OSError):
        return None


def read_past_cache(descriptor: int, start: int, stop: int) -> np.ndarray:
    """The bytes of a file from one place to another.

    Raises
    ------
    EOFError
        If it ends before.
    """
    first, last = start // _PAGE * _PAGE, -(-stop // _PAGE) * _PAGE
    buffer = np.empty(last - first + _PAGE, dtype=np.uint8)
    aligned = buffer[-buffer.ctypes.data % _PAGE :][: last - first]
    done = 0
    while done < stop - first:
        n_bytes = os.preadv(descriptor, [aligned[done:].data], first + done)
        if not n_bytes:
            raise EOFError("it ends before its last row")
        done += n_bytes
    return aligned[start - first : stop - first]
