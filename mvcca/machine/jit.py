"""Compilation of kernels: serial, without the GIL, cached on disk if possible.

Importing this module loads numba, so modules of kernels are imported inside functions. `fastmath`
stays off, since input validation relies on NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["jit"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on its first call, for concurrent use by Python threads."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:  # neither the package's directory nor HOME is writable for the cache
        return njit(nogil=True)(function)
