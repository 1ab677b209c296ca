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
from scipy.sparse.linalg import LinearOperator, svds

T = TypeVar("T")

_LONG = 500  # rows and columns; smaller problems take less than 0.1 s
_PADDING = 8  # rows below a matrix in memory
_CONFLICTING = 64  # columns of a multiple of so many numbers share few lines of the cache
_BLOCK = 64  # rows and columns of a matrix that stay in a cache


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
    if n < _LONG or _routine("dsyevr") is None:
        values, vectors = linalg.eigh(A, subset_by_index=[first, n - 1])
    else:
        A = np.asarray_chkfinite(A)
        overwritten = np.array(A.T if A.flags.c_contiguous else A, float, order="F")
        values, vectors = interruptible(_syevr, overwritten, first)
    if np.isfinite(vectors).all():
        return values, vectors
    values, vectors = linalg.eigh(A, driver="evd")  # MRRR fails on blocks 1e100 apart in size
    return values[first:], vectors[:, first:]


def top_eigenpairs_and_values(
    A: np.ndarray, k: int, *, with_others: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues of a symmetric A, increasing, and eigenvectors of the k largest.

    Of an A in Fortran's order, which is overwritten, the lower half counts. Without `with_others`,
    of the other eigenvalues the smallest suffices: bisection finds few values in less time.
    Values of a tridiagonal matrix cost little, and by inverse iteration so do vectors.
    """
    n = len(A)
    if n < 3 or _routine("dsytrd") is None:
        values, vectors = linalg.eigh(A)
        return values, vectors[:, -k:]
    reflectors = A if A.flags.f_contiguous and n % _CONFLICTING else _padded(A)
    diagonal, beside, tau = _tridiagonal(reflectors)
    if with_others or k >= n:
        values = linalg.eigvalsh_tridiagonal(diagonal, beside, lapack_driver="sterf")
    else:
        ends = [
            linalg.eigvalsh_tridiagonal(diagonal, beside, "i", select_range=some)
            for some in ((0, 0), (n - k, n - 1))
        ]
        values = np.concatenate(ends)
    one_block = np.ones(n, np.intc), np.full(n, n, np.intc)
    vectors, n_failed = linalg.lapack.dstein(diagonal, beside, values[-k:], *one_block)
    if n_failed:
        last = (n - k, n - 1)
        _, vectors = linalg.eigh_tridiagonal(diagonal, beside, select="i", select_range=last)
        vectors = np.asfortranarray(vectors)
    k = vectors.shape[1]
    _call(
        "dormtr", n, b"L", b"L", b"N", n, k, reflectors, _column_length(reflectors), tau, vectors, n
    )
    return values, vectors


def cholesky(A: np.ndarray) -> np.ndarray | None:
    """The lower Cholesky factor of A, in its memory; None if A is not positive definite.

    The lower half of A, which is in Fortran's order, counts. SciPy clears the other half against
    the order of memory, which takes a quarter of the time for 2,048 columns.
    """
    factor, failed = linalg.lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    if failed:
        return None
    for start in range(0, len(factor), _BLOCK):
        stop = start + _BLOCK
        factor[:start, start:stop] = 0
        factor[start:stop, start:stop] = np.tril(factor[start:stop, start:stop])
    return factor


def mirror_lower(A: np.ndarray) -> None:
    """Make a matrix symmetric in place, by its lower half."""
    for start in range(0, len(A), _BLOCK):
        stop = start + _BLOCK
        A[start:stop, stop:] = A[stop:, start:stop].T
        own = A[start:stop, start:stop]
        own[...] = np.tril(own) + np.tril(own, -1).T


def leading_block(A: np.ndarray, n: int) -> np.ndarray:
    """The lower half of the first n rows and columns of an A in Fortran's order, in its memory."""
    numbers = A.ravel(order="K")
    for i in range(1, n):
        numbers[i * n + i : (i + 1) * n] = A[i:n, i]
    return numbers[: n * n].reshape(n, n, order="F")


def tridiagonal(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Q, and the diagonal of T and what is beside it, of a symmetric A = Q T Qᵀ."""
    n = len(A)
    if n < 3 or _routine("dsytrd") is None:
        T, Q = linalg.hessenberg(A, calc_q=True)
        return Q, np.diag(T), np.diag(T, -1)
    Q = _padded(A)
    diagonal, beside, tau = _tridiagonal(Q)
    _call("dorgtr", n, b"L", n, Q, _column_length(Q), tau)
    return Q, diagonal, beside


def _tridiagonal(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The diagonal of QᵀAQ and what is beside it; the reflectors of Q are written to A."""
    n = len(A)
    np.asarray_chkfinite(A)
    diagonal, beside, tau = np.empty(n), np.empty(n - 1), np.empty(n - 1)
    _call("dsytrd", n, b"L", n, A, _column_length(A), diagonal, beside, tau)
    return diagonal, beside, tau


def _padded(A: np.ndarray) -> np.ndarray:
    """A copy of a symmetric matrix whose columns do not share few lines of the cache."""
    n = len(A)
    copy = np.empty((n + _PADDING, n), order="F")[:n]
    copy[...] = A.T if A.flags.c_contiguous else A
    return copy


def _column_length(A: np.ndarray) -> int:
    """Numbers between the starts of two columns."""
    return A.strides[1] // A.itemsize


def _call(name: str, n: int, *arguments: Any) -> None:
    """Call a routine for a matrix of n rows, so that Ctrl-C is answered if that takes long."""
    if n < _LONG:
        _called(name, *arguments)
    else:
        interruptible(_called, name, *arguments)


def qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thin QR decomposition."""
    if min(A.shape) < _LONG:
        return linalg.qr(A, mode="economic", check_finite=False)
    return interruptible(linalg.qr, A, mode="economic", check_finite=False)  # without the GIL


def svd(A: np.ndarray, full_matrices: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Singular value decomposition A = U diag(s) Vᵀ; thin unless `full_matrices`.

    All decompositions of the package come here. The routine that NumPy and SciPy call, gesdd,
    gives up on rare matrices without any fault; the slower gesvd does not.
    """
    try:
        if min(A.shape) < _LONG:
            return linalg.svd(A, full_matrices=full_matrices, check_finite=False)
        # NumPy releases the GIL.
        return interruptible(np.linalg.svd, A, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        return linalg.svd(A, full_matrices=full_matrices, lapack_driver="gesvd")


def top_singular(
    A: Any, k: int, start: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leading singular triplets; through the smaller Gram matrix when few of many are wanted.

    Of the others, it then gives the values, with half the digits. The iteration for a linear
    operator begins with `start`.
    """
    if isinstance(A, LinearOperator):
        # ARPACK finds all singular values but one; a fixed start makes fits reproducible, and a
        # random one is orthogonal to no singular vector.
        k = min(k, min(A.shape) - 1)
        if start is None:
            start = np.random.RandomState(0).standard_normal(min(A.shape))
        left, values, right = svds(A, k, v0=start)
        return left[:, ::-1], values[::-1], right[::-1].T
    if min(A.shape) > 128 and 4 * k < min(A.shape):
        tall = A.shape[0] >= A.shape[1]
        gram = A.T @ A if tall else A @ A.T
        squares, vectors = top_eigenpairs_and_values(gram.T, k)  # in Fortran's order
        values, vectors = np.sqrt(np.maximum(squares[::-1], 0)), vectors[:, ::-1]
        if values[k - 1] > 1e-3 * values[0]:  # squaring keeps the digits of these
            other = (A @ vectors if tall else A.T @ vectors) / values[:k]
            return (other, values, vectors) if tall else (vectors, values, other)
    left, values, right = svd(A)
    return left, values, right.T


def orthogonal_factor(A: np.ndarray) -> np.ndarray:
    """The matrix U Vᵀ with orthonormal columns, or rows, that is closest to A = U diag(s) Vᵀ."""
    left, _, right = svd(A)
    return np.asarray(left @ right)


def singular_values(A: np.ndarray) -> np.ndarray:
    """Singular values of A, decreasing."""
    try:
        return linalg.svdvals(A, check_finite=False)
    except np.linalg.LinAlgError:
        return linalg.svd(A, compute_uv=False, lapack_driver="gesvd")


def _syevr(A: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs from position `first` on, by the routine that `scipy.linalg.eigh` calls, too."""
    n = len(A)
    k = n - first
    values, vectors = np.empty(n), np.empty((n, k), order="F")
    support = np.empty(2 * n, dtype=np.intc)
    arguments = (
        b"V", b"I", b"L", n, A, n, 0.0, 0.0, first + 1, n, 0.0, 0, values, vectors, n, support
    )  # fmt: skip
    _called("dsyevr", *arguments, n_integers=1)
    return values[:k], vectors


def _called(name: str, *arguments: Any, n_integers: int = 0) -> None:
    """Call a routine with as much workspace as it asks for, of floats and perhaps of integers."""
    routine, info = _routine(name), ctypes.c_int()
    assert routine is not None
    kinds = [float] + [np.intc] * n_integers
    work = [np.empty(1, dtype=kind) for kind in kinds]
    for is_query in (True, False):
        sizes = [-1 if is_query else len(own) for own in work]
        workspace = [each for pair in zip(work, sizes, strict=True) for each in pair]
        routine(*map(_pointer, (*arguments, *workspace)), ctypes.byref(info))
        if is_query:
            work = [np.empty(int(own[0]), dtype=own.dtype) for own in work]
    if info.value:
        raise np.linalg.LinAlgError(f"LAPACK did not converge ({name} returned {info.value}).")


def _pointer(value: Any) -> Any:
    """How Fortran takes an argument: by reference."""
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    kind: Any = {bytes: ctypes.c_char, int: ctypes.c_int, float: ctypes.c_double}[type(value)]
    return ctypes.byref(kind(value))


@cache
def _routine(name: str) -> Callable[..., None] | None:
    """A routine of SciPy's LAPACK; calls through ctypes release the GIL.

    None if LAPACK's integers are not C's, as they are in all wheels of SciPy.
    """
    capsule = cython_lapack.__pyx_capi__[name]
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    if b" int *" not in signature:
        return None
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = address_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None)(address)
