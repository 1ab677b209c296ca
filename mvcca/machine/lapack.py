"""Long LAPACK calls that Ctrl-C can interrupt.

Python runs signal handlers in the main thread, between two bytecode instructions, and SciPy's
wrappers of LAPACK hold the GIL. Here a long call runs in another thread without the GIL while the
main thread waits. An interrupted call runs to its end in its thread, and the process does not exit
before: BLAS must not be unloaded while it is in use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextvars import copy_context
from functools import cache
from threading import Event, Thread, current_thread, main_thread
from typing import Any, TypeVar

import numpy as np
from scipy import linalg
from scipy.linalg import cython_lapack

T = TypeVar("T")

_LONG = 500  # rows and columns; smaller problems take less than 0.1 s


def interruptible(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Call a function that releases the GIL, so that Ctrl-C is answered while it runs."""
    if current_thread() is not main_thread():  # where no signal is handled
        return function(*args, **options)
    outcome: list[Any] = []
    ended = Event()

    def call() -> None:
        try:
            outcome.extend((True, function(*args, **options)))
        except BaseException as error:
            outcome.extend((False, error))
        finally:
            ended.set()

    Thread(target=copy_context().run, args=(call,), name="mvcca-lapack", daemon=False).start()
    while not ended.wait(0.5):  # Windows answers Ctrl-C between two waits
        pass
    succeeded, value = outcome
    if not succeeded:
        raise value
    return value


def top_eigenpairs(A: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k largest eigenvalues of a symmetric A, increasing, and their eigenvectors."""
    n = len(A)
    first = max(0, n - k)
    if n < _LONG or _routine() is None:
        return linalg.eigh(A, subset_by_index=[first, n - 1])
    A = np.asarray_chkfinite(A)
    overwritten = np.array(A.T if A.flags.c_contiguous else A, float, order="F")
    return interruptible(_syevr, overwritten, first)


def qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thin QR decomposition."""
    if min(A.shape) < _LONG:
        return linalg.qr(A, mode="economic", check_finite=False)
    return interruptible(linalg.qr, A, mode="economic", check_finite=False)  # without the GIL


def svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thin singular value decomposition A = U diag(s) Vᵀ."""
    if min(A.shape) < _LONG:
        return linalg.svd(A, full_matrices=False, check_finite=False)
    return interruptible(np.linalg.svd, A, full_matrices=False)  # NumPy releases the GIL


def _syevr(A: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs from position `first` on, by the routine that `scipy.linalg.eigh` calls, too."""
    n, routine = len(A), _routine()
    assert routine is not None
    k = n - first
    values, vectors = np.empty(n), np.empty((n, k), order="F")
    support = np.empty(2 * n, dtype=np.intc)

    def call(work: np.ndarray, lwork: int, iwork: np.ndarray, liwork: int) -> int:
        info = ctypes.c_int()
        arguments: tuple[Any, ...] = (
            b"V", b"I", b"L", n, A, n, 0.0, 0.0, first + 1, n, 0.0, 0, values, vectors, n, support,
            work, lwork, iwork, liwork,
        )  # fmt: skip
        routine(*map(_pointer, arguments), ctypes.byref(info))
        return info.value

    sizes, isizes = np.empty(1), np.empty(1, dtype=np.intc)
    call(sizes, -1, isizes, -1)
    lwork, liwork = int(sizes[0]), int(isizes[0])
    if failed := call(np.empty(lwork), lwork, np.empty(liwork, dtype=np.intc), liwork):
        raise np.linalg.LinAlgError(f"Eigenvalues did not converge (dsyevr returned {failed}).")
    return values[:k], vectors


def _pointer(value: Any) -> Any:
    """How Fortran takes an argument: by reference."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    kind: Any = {bytes: ctypes.c_char, int: ctypes.c_int, float: ctypes.c_double}[type(value)]
    return ctypes.byref(kind(value))


@cache
def _routine() -> Callable[..., None] | None:
    """The routine dsyevr of SciPy's LAPACK; calls through ctypes release the GIL.

    None if LAPACK's integers are not C's, as they are in all wheels of SciPy.
    """
    capsule = cython_lapack.__pyx_capi__["dsyevr"]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    if signature.count(b" int *") != 11:
        return None
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = address_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None)(address)
