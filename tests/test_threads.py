"""One process never works on more threads than it may use, and their number changes no digit."""

from __future__ import annotations

import pydoc
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mvcca import CCA, LGCFL, PLS, Labels, Views
from mvcca.datasets import make_multilabel_views
from mvcca.machine.threads import _blas, each, one_blas_thread_per_block, stop_if_abandoned
from mvcca.similarity import LabelGram
from mvcca.statistics import LabelSums, Moments

BLOCKS = [slice(i, i + 1) for i in range(40)]


def blas_threads():
    """Threads of the BLAS of NumPy and SciPy; other packages that tests load bring their own."""
    return max(library["num_threads"] for library in _blas().info())


class Busy:
    """Counts those who are at work at once, and the threads that BLAS may use meanwhile."""

    def __init__(self):
        self.now, self.most, self.blas = 0, 0, 0
        self.lock = threading.Lock()

    def __call__(self, block):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.blas = max(self.blas, blas_threads())
        time.sleep(0.002)
        with self.lock:
            self.now -= 1
        return block.start


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_work_and_blas_together_use_the_threads_that_blas_may_use(threads):
    busy = Busy()
    with threadpool_limits(threads, user_api="blas"):
        allowed = blas_threads()
        assert each(busy, BLOCKS) == list(range(40))
        assert busy.most <= allowed
        assert busy.most * busy.blas <= max(allowed, busy.most)
        assert blas_threads() == allowed


def test_work_within_work_takes_no_more_threads():
    inner, outer = Busy(), Busy()

    def nested(block):
        each(inner, BLOCKS[:4])
        return outer(block)

    with threadpool_limits(2, user_api="blas"):
        each(nested, BLOCKS[:6])
        assert inner.most <= blas_threads()


def test_two_fits_at_once_share_the_threads():
    busy = Busy()
    with threadpool_limits(2, user_api="blas"):
        callers = [threading.Thread(target=each, args=(busy, BLOCKS)) for _ in range(2)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert busy.most <= blas_threads() + 1  # the second caller works in its own thread
        assert busy.blas <= 2


def test_an_error_in_a_block_is_raised_and_blas_gets_its_threads_back():
    def fail(block):
        if block.start == 7:
            raise ValueError("block 7")

    with threadpool_limits(2, user_api="blas"):
        allowed = blas_threads()
        with pytest.raises(ValueError, match="block 7"):
            each(fail, BLOCKS)
        assert blas_threads() == allowed


def test_an_error_in_a_block_stops_long_loops_in_the_others():
    finished = []

    def work(block):
        if block.start == 0:
            raise ValueError("the first block")
        for _ in range(2000):  # of 10 ms
            stop_if_abandoned()
            time.sleep(0.01)
        finished.append(block)

    with threadpool_limits(2, user_api="blas"), pytest.raises(ValueError, match="the first block"):
        each(work, BLOCKS[:3])
    assert not finished


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit_of_a_statistic(dtype):
    data = make_multilabel_views(
        6000, n_features=(120, 90), n_classes=12, paired=1.0, random_state=0
    )
    views = Views({name: block.astype(dtype) for name, block in data.views.items()})
    labels = Labels.of(data.labels)
    results = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            sums = LabelSums.of(views, labels)
            results.append((Moments.of(views).scatter, sums.covariance(LabelGram(labels))))
    single = dtype == np.float32
    for scatter, psi in results[1:]:
        if np.__version__ < "2":  # whose OpenBLAS rounds by where memory lies
            atol = (1e-5 if single else 1e-13) * np.abs(scatter).max()
            np.testing.assert_allclose(scatter, results[0][0], rtol=0, atol=atol)
        else:
            np.testing.assert_array_equal(scatter, results[0][0])
        atol = (1e-6 if single else 1e-12) * np.abs(psi).max()
        np.testing.assert_allclose(psi, results[0][1], rtol=0, atol=atol)


@pytest.mark.parametrize("n_rows", [300, 3000])
def test_a_lone_block_that_blas_splits_among_its_threads_differs_by_rounding_only(n_rows):
    views = Views({"a": np.random.default_rng(0).normal(size=(n_rows, 600))})
    scatters = []
    for threads in (1, 2, 4):
        with threadpool_limits(threads, user_api="blas"):
            scatters.append(Moments.of(views).scatter)
    for scatter in scatters[1:]:
        np.testing.assert_allclose(scatter, scatters[0], rtol=0, atol=1e-14 * scatter.max())


@pytest.mark.parametrize(
    ("model", "solver"),
    [
        (CCA(2, reg=0.1), "mvcca.problem._problem.canonical_directions"),
        (PLS(2), "mvcca.linear._pls.canonical_directions"),
        (LGCFL(), "mvcca.linear.group_sparse.linalg.solve"),
        (CCA(2, reg=0.1), "mvcca.problem._bases.extreme_eigenvalues"),
    ],
)
def test_small_matrices_are_factorised_with_one_blas_thread(monkeypatch, model, solver):
    original, seen = pydoc.locate(solver), []

    def recorded(*args, **options):
        seen.append(blas_threads())
        return original(*args, **options)

    monkeypatch.setattr(solver, recorded)
    X = np.random.default_rng(0).normal(size=(20, 30))
    with threadpool_limits(2, user_api="blas"):
        allowed = blas_threads()
        model.fit({"a": X, "b": X[:, :25]}, np.arange(20) % 3)
        assert set(seen) == {1}
        assert blas_threads() == allowed


def test_blocks_within_a_factorisation_use_the_threads_that_blas_may_use():
    busy = Busy()
    with (
        threadpool_limits(2, user_api="blas"),
        one_blas_thread_per_block(),
        one_blas_thread_per_block(),
    ):
        each(busy, BLOCKS)
    assert busy.most > 1
