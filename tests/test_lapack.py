"""Long LAPACK calls give SciPy's results, and Ctrl-C does not wait for them (row 28)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import linalg

from mvcca import CCA
from mvcca.machine import lapack

N = lapack._LONG + 20


@pytest.fixture(scope="module")
def symmetric():
    A = np.random.default_rng(0).standard_normal((N, N))
    return A + A.T


@pytest.mark.parametrize("k", [1, 7, N, N + 5])
def test_top_eigenpairs_are_those_of_scipy(symmetric, k):
    values, vectors = lapack.top_eigenpairs(symmetric, k)
    expected, directions = linalg.eigh(symmetric, subset_by_index=[max(0, N - k), N - 1])
    np.testing.assert_allclose(values, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(np.abs((vectors * directions).sum(axis=0)), 1, atol=1e-10)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (30, 4), (N, 7)])
def test_all_values_come_with_the_eigenvectors_of_the_largest(symmetric, n, k):
    A = symmetric[:n, :n]
    values, vectors = lapack.top_eigenpairs_and_values(A, k)
    expected, directions = linalg.eigh(A)
    np.testing.assert_allclose(values, expected, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(np.abs((vectors * directions[:, -k:]).sum(axis=0)), 1, atol=1e-10)
    few, own = lapack.top_eigenpairs_and_values(A, k, with_others=False)
    np.testing.assert_allclose(few, values[[0, *range(n - k, n)]], atol=1e-12 * np.abs(few).max())
    np.testing.assert_allclose(np.abs((own * vectors).sum(axis=0)), 1, atol=1e-10)


@pytest.mark.parametrize("n", [5, 128, 130])  # columns of 128 numbers are padded in a copy
def test_eigenpairs_of_a_matrix_that_is_overwritten_are_those_of_its_lower_half(symmetric, n):
    A = symmetric[:n, :n]
    lower = np.asfortranarray(np.tril(A) + np.triu(np.ones((n, n)), 1))
    for own, expected in zip(
        lapack.top_eigenpairs_and_values(lower, 3),
        lapack.top_eigenpairs_and_values(A.copy(), 3),
        strict=True,
    ):
        np.testing.assert_allclose(np.abs(own), np.abs(expected), atol=1e-12 * n)


def test_a_leading_block_is_in_the_memory_of_the_matrix(symmetric):
    A = np.asfortranarray(symmetric[:7, :7])
    expected = np.tril(A[:5, :5])
    block = lapack.leading_block(A, 5)
    np.testing.assert_array_equal(np.tril(block), expected)
    assert np.shares_memory(block, A)
    assert block.flags.f_contiguous


@pytest.mark.parametrize("name", ["identity", "two equal blocks", "rank 2"])
def test_eigenvectors_of_equal_values_are_orthonormal(symmetric, name):
    A, B = np.eye(40), symmetric[:20, :20]
    if name == "two equal blocks":
        A = linalg.block_diag(B, B)
    if name == "rank 2":
        A = symmetric[:40, :2] @ symmetric[:40, :2].T
    values, vectors = lapack.top_eigenpairs_and_values(A, 9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-12)
    size = np.abs(values).max()
    np.testing.assert_allclose(A @ vectors, vectors * values[-9:], atol=1e-12 * size)


@pytest.mark.parametrize("n", [1, 2, 30, N])
def test_a_tridiagonal_form_is_that_of_the_matrix(symmetric, n):
    A = symmetric[:n, :n]
    Q, diagonal, beside = lapack.tridiagonal(A)
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    np.testing.assert_allclose(Q.T @ Q, np.eye(n), atol=1e-12)
    np.testing.assert_allclose(Q @ T @ Q.T, A, atol=1e-10)


@pytest.mark.parametrize("shape", [(N, N), (N + 30, N), (N, N + 30)])
def test_decompositions_of_large_matrices_multiply_to_the_matrix(shape):
    A = np.random.default_rng(1).standard_normal(shape)
    U, s, Vt = lapack.svd(A)
    assert U.shape[1] == len(s) == len(Vt) == min(shape)
    np.testing.assert_allclose(U * s @ Vt, A, atol=1e-11)
    Q, R = lapack.qr(A)
    assert Q.shape[1] == len(R) == min(shape)
    np.testing.assert_allclose(Q @ R, A, atol=1e-11)


def test_a_matrix_with_nan_is_refused(symmetric):
    A = symmetric.copy()
    A[3, 4] = np.nan
    with pytest.raises(ValueError, match="infs or NaNs"):
        lapack.top_eigenpairs(A, 2)


def test_errors_of_a_call_are_raised_where_it_was_asked_for():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        lapack.interruptible(np.linalg.cholesky, -np.eye(3))


def test_other_threads_call_directly():
    found = []
    thread = threading.Thread(
        target=lambda: found.append(lapack.interruptible(threading.current_thread))
    )
    thread.start()
    thread.join()
    assert found == [thread]


def test_the_gil_is_free_during_a_call(symmetric, monkeypatch):
    """Other threads go on: Python code runs between the beginning and the end of the routine."""
    A = np.kron(np.eye(3), symmetric)
    n_turns, ended = 0, threading.Event()

    def turn():
        nonlocal n_turns
        while not ended.is_set():
            n_turns += 1
            time.sleep(0.001)

    call = lapack._routine("dsyevr")
    inside = []

    def counted(*arguments):
        before = n_turns
        call(*arguments)
        inside.append(n_turns - before)

    monkeypatch.setattr(lapack, "_routine", lambda _: counted)
    thread = threading.Thread(target=turn)
    thread.start()
    try:
        lapack.top_eigenpairs(A, 3)
    finally:
        ended.set()
        thread.join()
    assert inside[-1] > 5


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from mvcca import MVCCA
from mvcca import CCA
from mvcca.machine import lapack

solve = lapack._syevr

def slowly(A, first):  # the signal comes in the middle of the call
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    started.append(time.monotonic())
    found = solve(A, first)
    time.sleep(max(0, started[0] + 4 - time.monotonic()))
    return found

started = []
lapack._syevr = slowly
rng = np.random.default_rng(0)
shared = rng.standard_normal((900, 5))
X = [shared @ rng.standard_normal((5, 400)) + rng.standard_normal((900, 400)) for _ in range(3)]
model = MVCCA(2, reg=0.1)
before = dict(vars(model))
try:
    model.fit(X)
except KeyboardInterrupt:
    print(time.monotonic() - started[0] - 0.3, vars(model) == before)
"""


@pytest.mark.slow  # starts a process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_a_fit_in_the_middle_of_a_decomposition():
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=True
    )
    seconds, unchanged = found.stdout.split()
    assert float(seconds) < 2
    assert unchanged == "True"


@pytest.fixture
def gesdd_gives_up(monkeypatch):
    """The divide-and-conquer routine fails, as it does on rare matrices without any fault."""
    plain = linalg.svd

    def svd(A, *args, lapack_driver="gesdd", **options):
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return plain(A, *args, lapack_driver=lapack_driver, **options)

    def gives_up(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(linalg, "svd", svd)
    monkeypatch.setattr(linalg, "svdvals", gives_up)
    monkeypatch.setattr(np.linalg, "svd", gives_up)


@pytest.mark.usefixtures("gesdd_gives_up")
@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (N, N)])
def test_singular_values_are_found_where_the_fast_routine_gives_up(shape):
    A = np.random.default_rng(0).standard_normal(shape)
    left, values, right = lapack.svd(A)
    np.testing.assert_allclose(left * values @ right, A, atol=1e-10)
    np.testing.assert_allclose(lapack.singular_values(A), values, atol=1e-10)


@pytest.mark.usefixtures("gesdd_gives_up")
def test_methods_are_fitted_where_the_fast_routine_gives_up():
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((60, 5)), rng.standard_normal((60, 4))]
    assert np.isfinite(CCA(2, reg=0.1).fit(views).canonical_correlations_).all()


def test_all_singular_value_decompositions_fall_back():
    """Every call in the package is that of `machine.lapack`; torch has its own routines."""
    folder = Path(lapack.__file__).parents[1]
    found = [
        f"{path.relative_to(folder)}: {line.strip()}"
        for path in folder.rglob("*.py")
        if path != Path(lapack.__file__)
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"(?<!torch\.)linalg\.svd", line)
    ]
    assert found == []
