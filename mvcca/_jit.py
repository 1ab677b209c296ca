"""How kernels are compiled: serial, releasing the GIL, cached on disk where that is possible.

Modules of kernels import this one and numba with it, and are themselves imported inside functions,
so that `import mvcca` loads no compiler. No fast maths: NaN must stay NaN where input is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["jit"]


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` on its first call, for use from several Python threads at once."""
    try:
        return njit(nogil=True, cache=True)(function)
    except (
        RuntimeError
    ):  # numba finds neither the package's folder nor a home to write its cache to
        return njit(nogil=True)(function)
