"""Dask arrays, and files on the workers of a Dask cluster: the model of NumPy arrays, from afar."""

from __future__ import annotations

import os
import pickle
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from uuid import uuid4

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

import mvcca
from mvcca import (
    CCA,
    GCCA,
    KCCA,
    MLCCA,
    MVCCA,
    MVMLCCA,
    PLS,
    RowSource,
    Views,
    config_context,
    open_matrix,
)
from mvcca.machine.threads import _n_blas_threads, one_blas_thread
from mvcca.similarity import LabelGram
from mvcca.statistics import LabelSums, Moments
from mvcca.statistics.passes import _checkpoint
from mvcca.statistics.passes._cluster import Cluster
from mvcca.views import Labels

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N_ROWS, BLOCK_ROWS = 480, 160
PATIENCE = 240  # seconds that a busy machine may need for anything; no test measures time


# Imported once, for all workers that tests kill.
PRELOADED = ["dask.array", "distributed", "mvcca.kernel", "mvcca.linear", "pytest"]


@pytest.fixture(scope="module")
def cluster():
    options = {
        "distributed.deploy.lost-worker-timeout": f"{PATIENCE}s",
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with dask.config.set(options):
        distributed.utils.get_mp_context().set_forkserver_preload(PRELOADED)
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
        ) as cluster:
            yield cluster
            wait_for_workers(cluster)


@pytest.fixture
def client(cluster):
    wait_for_workers(cluster)
    with distributed.Client(cluster) as client:
        yield client


def wait_for_workers(cluster):
    """Until both are there: tests begin and end so, whatever was killed.

    A nanny now and then starts its worker anew before the scheduler has forgotten the name of
    the one that was killed, is refused and gives up. Its place is filled.
    """

    def are_there():
        if all(_pid(cluster, which) for which in range(2)):
            return True
        for which, nanny in list(cluster.workers.items()):
            if nanny.status in (distributed.Status.closed, distributed.Status.failed):
                cluster.workers.pop(which, None)
        cluster.scale(2)
        return False

    until(are_there, "a worker did not come back", seconds=0.1)


def until(is_so, otherwise, seconds=0.01):
    """What a condition returns once it holds; it is asked every so many seconds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := is_so()):
        assert time.monotonic() < deadline, otherwise
        time.sleep(seconds)
    return found


def _pid(cluster, which):
    """Of a worker that is running, or None."""
    process = getattr(cluster.workers.get(which), "process", None)
    return process.pid if process and process.status == distributed.Status.running else None


@pytest.fixture(autouse=True)
def small_blocks():
    with config_context(block_rows=BLOCK_ROWS):
        yield


def planted(dtype=np.float64):
    """Three views of common sources, far from the origin."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(N_ROWS, 4)) * [3, 2, 1.5, 1]
    views = [
        common @ rng.normal(size=(4, width)) + rng.normal(size=(N_ROWS, width)) + 10
        for width in (9, 7, 5)
    ]
    return {name: view.astype(dtype) for name, view in zip("abc", views, strict=True)}


def label_sets():
    rng = np.random.default_rng(1)
    labels = (rng.random((N_ROWS, 6)) < 0.4).astype(int)
    labels[:, 0] = 1
    return labels


def as_dask(views):
    """Chunks that differ between views, in rows and in columns."""
    chunks = [(50, 4), (73, 7), (N_ROWS, 2)]
    return {
        name: da.from_array(view, chunks=chunk)
        for (name, view), chunk in zip(views.items(), chunks, strict=False)
    }


def as_files(views, folder):
    for name, view in views.items():
        np.save(folder / f"{name}.npy", view)
    return {name: open_matrix(folder / f"{name}.npy") for name in views}


def same_model(model, expected, tolerance):
    assert model.weights_.keys() == expected.weights_.keys()
    for name, weights in expected.weights_.items():
        scale = np.abs(weights).max()
        assert np.abs(model.weights_[name] - weights).max() <= tolerance * scale
        largest = np.abs(expected.means_[name]).max()
        assert_allclose(
            model.means_[name], expected.means_[name], rtol=tolerance, atol=tolerance * largest
        )


def same_bits(model, expected):
    for name, weights in expected.weights_.items():
        assert_array_equal(model.weights_[name], weights)


ESTIMATORS = {
    "CCA": partial(CCA, 2),
    "MVCCA": partial(MVCCA, 3),
    "GCCA": partial(GCCA, 3, reg=0.1),
    "PLS": partial(PLS, 2),
    "MLCCA": partial(MLCCA, 3),
    "MVMLCCA": partial(MVMLCCA, 3, reg=0.1, within="label"),
    "MVMLCCA cosine": partial(MVMLCCA, 3, reg=0.1, label_similarity="cosine", within="sample"),
    "MVMLCCA by features": partial(
        MVMLCCA,
        3,
        reg=0.1,
        within="label",
        label_features="fourier",
        n_label_features=64,
        random_state=0,
    ),
    "KCCA nystroem": partial(
        KCCA, 2, kernel="rbf", gamma=0.01, approximation="nystroem", n_landmarks=20,
        random_state=0, reg=0.1,
    ),
    "KCCA fourier": partial(
        KCCA, 2, kernel="rbf", gamma=0.01, approximation="fourier", n_landmarks=20,
        random_state=0, reg=0.1,
    ),
}  # fmt: skip


# In float32 one estimator of moments, of label sums, and of features; the others are long.
IN_FLOAT32 = ("MVCCA", "MVMLCCA", "KCCA nystroem")


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        *((name, np.float64, 1e-9) for name in ESTIMATORS),
        *((name, np.float32, 1e-5) for name in IN_FLOAT32),
        *(
            pytest.param(name, np.float32, 1e-5, marks=pytest.mark.long)
            for name in ESTIMATORS
            if name not in IN_FLOAT32
        ),
    ],
)
@pytest.mark.usefixtures("client")
def test_a_cluster_finds_the_model_of_arrays_in_memory(tmp_path, name, dtype, tolerance):
    views = planted(dtype)
    if name in ("CCA", "PLS"):
        views.pop("c")
    estimator, y = ESTIMATORS[name], label_sets() if "ML" in name else None
    expected = estimator().fit(views, y)
    same_model(estimator().fit(as_dask(views), y), expected, tolerance)
    same_model(estimator().fit(as_files(views, tmp_path), y), expected, tolerance)


@pytest.mark.usefixtures("client")
def test_a_cluster_gives_moments_bit_for_bit_as_this_process_does(tmp_path):
    views = as_files(planted(), tmp_path)
    on_workers = Moments.of(Views(views))
    with one_blas_thread():
        to_host = Moments.of(Views({name: np.asarray(view) for name, view in views.items()}))
    assert_array_equal(on_workers.scatter, to_host.scatter)
    assert_array_equal(on_workers.means, to_host.means)


@pytest.mark.usefixtures("client")
def test_label_sums_made_on_workers_are_those_of_a_loop_over_rows(tmp_path):
    views, labels = planted(), label_sets()
    vectors, codes = np.unique(labels, axis=0, return_inverse=True)
    expected = np.zeros((len(vectors), 21))
    for code, *rows in zip(codes, *views.values(), strict=True):
        expected[code] += np.concatenate(rows)
    table = Labels(csr_array(vectors, dtype=np.uint8), codes=codes)
    for lazy in as_dask(views), as_files(views, tmp_path):
        sums = LabelSums.of(Views(lazy), table)
        assert_allclose(sums.sums, expected, rtol=1e-12)
        assert_allclose(pickle.loads(pickle.dumps(sums)).sums, expected, rtol=1e-12)
        assert_allclose(sums.averaged().sums, expected / sums.counts[:, [0]], rtol=1e-12)
        assert_allclose((sums + sums).sums, 2 * expected, rtol=1e-12)


@pytest.mark.usefixtures("client")
def test_batches_on_a_cluster_go_on_without_it_and_from_a_file(tmp_path):
    views, labels = planted(), label_sets()
    expected = MVMLCCA(3, reg=0.1, within="label").fit(views, labels)
    lazy = as_dask(views)
    model = MVMLCCA(3, reg=0.1, within="label").partial_fit(
        {n: x[:350] for n, x in lazy.items()}, labels[:350]
    )
    mvcca.save(model, tmp_path / "model.mvcca")
    model = mvcca.load(tmp_path / "model.mvcca")
    same_model(
        model.partial_fit({n: x[350:] for n, x in views.items()}, labels[350:]), expected, 1e-9
    )


@pytest.mark.usefixtures("client")
def test_weights_of_objects_go_with_their_rows(tmp_path):
    views, weights = planted(), np.arange(N_ROWS) % 3
    repeated = {name: np.repeat(view, weights, axis=0) for name, view in views.items()}
    model = MVCCA(3).fit(as_files(views, tmp_path), sample_weight=weights)
    same_model(model, MVCCA(3).fit(repeated), 1e-9)


@pytest.mark.usefixtures("client")
def test_partly_paired_views_are_fitted_on_a_cluster(tmp_path):
    index = np.repeat(np.arange(N_ROWS)[:, None], 3, axis=1)
    index[::5, 0] = index[1::4, 1] = index[300:, 2] = -1
    expected = MVCCA(3, reg=0.1).fit(Views(planted(), index))
    for lazy in as_dask(planted()), as_files(planted(), tmp_path):
        same_model(MVCCA(3, reg=0.1).fit(Views(lazy, index)), expected, 1e-9)


@pytest.mark.usefixtures("client")
def test_unpaired_views_are_fitted_on_a_cluster(tmp_path):
    labels, views = label_sets(), planted()
    some = {"a": views["a"], "b": views["b"][:300], "c": views["c"][100:]}
    y = {"a": labels, "b": labels[:300], "c": labels[100:]}
    expected = MVMLCCA(3, reg=0.1, within="label").fit(some, y)
    for lazy in as_dask(some), as_files(some, tmp_path):
        same_model(MVMLCCA(3, reg=0.1, within="label").fit(lazy, y), expected, 1e-9)


@pytest.mark.usefixtures("client")
def test_sparse_chunks_stay_sparse():
    rng = np.random.default_rng(2)
    sparse = csr_array(rng.random((N_ROWS, 12)) * (rng.random((N_ROWS, 12)) < 0.3))
    dense = sparse[:, :6].toarray() + rng.normal(size=(N_ROWS, 6))
    chunked = da.from_array(sparse.toarray(), chunks=(70, 7)).map_blocks(csr_array)
    assert Views({"a": chunked})["a"].is_sparse
    expected = CCA(2).fit({"a": sparse, "b": dense})
    same_model(CCA(2).fit({"a": chunked, "b": da.from_array(dense, chunks=50)}), expected, 1e-9)


@pytest.mark.parametrize("estimator", [MLCCA, MVMLCCA])
@pytest.mark.usefixtures("client")
def test_labels_may_be_dask_arrays(estimator):
    views, labels = planted(), label_sets()
    expected = estimator(3, reg=0.1).fit(views, labels)
    model = estimator(3, reg=0.1).fit(as_dask(views), da.from_array(labels, chunks=(111, 2)))
    same_model(model, expected, 1e-9)


@pytest.mark.usefixtures("client")
def test_views_in_memory_are_not_sent_to_the_cluster(tmp_path):
    assert Cluster.for_rows_of(Views(planted())) is None
    assert Cluster.for_rows_of(Views(as_files(planted(), tmp_path))) is not None


@pytest.mark.usefixtures("client")
def test_a_view_in_memory_travels_with_the_rows_of_others(tmp_path):
    views = planted()
    mixed = {**as_files(views, tmp_path), "a": views["a"]}
    same_bits(MVCCA(2).fit(mixed), MVCCA(2).fit(as_files(views, tmp_path)))


def test_a_fit_within_a_task_waits_for_no_other_task(client, tmp_path):
    views = as_files(planted(), tmp_path)
    fits = [client.submit(_fit_there, views, reg) for reg in (0.1, 0.2, 0.3)]
    for fit, reg in zip(fits, (0.1, 0.2, 0.3), strict=True):
        same_bits(fit.result(timeout=PATIENCE), MVCCA(2, reg=reg).fit(views))


def _fit_there(views, reg):
    with config_context(block_rows=BLOCK_ROWS):
        return MVCCA(2, reg=reg).fit(views)


def test_blas_has_one_thread_until_the_last_who_asked_is_done():
    before = _n_blas_threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert _n_blas_threads() == 1
    second.__exit__(None, None, None)
    assert _n_blas_threads() == before


# ---- what is refused, and how errors read ----------------------------------------------------


@pytest.mark.usefixtures("client")
def test_moments_too_large_for_a_worker_are_refused_with_bytes():
    views = {"a": da.zeros((20_000, 5000), chunks=1000), "b": da.zeros((20_000, 4000), chunks=1000)}
    needed = 4 * 8 * (9000**2 + 2 * 2 * 9000 + 2**2)
    with pytest.raises(MemoryError, match=r"1,000,000,000 bytes .*(?s:.*)block_rows") as refused:
        Moments.of(Views(views))
    assert f"{needed:,} bytes" in str(refused.value)


@pytest.mark.usefixtures("client")
def test_label_sums_too_large_for_a_worker_are_refused_with_bytes():
    views = Views({"a": da.zeros((60_000, 1000), chunks=1000)})
    table = Labels(np.arange(60_000.0)[:, None])
    with pytest.raises(MemoryError, match=f"{3 * 8 * 60_000 * 1000:,} bytes"):
        LabelSums.of(views, table)


def test_a_worker_without_room_for_any_rows_is_refused_before_it_pauses_for_ever():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit="230MB", dashboard_address=":0"
        ) as small,
        distributed.Client(small),
        pytest.raises(MemoryError, match=r"230,000,000 bytes .*before it is given any rows"),
    ):
        Moments.of(Views({"a": da.zeros((100, 5), chunks=50), "b": da.zeros((100, 4), chunks=50)}))


def test_a_client_that_is_closed_during_a_fit_is_named(cluster):
    client = distributed.Client(cluster)
    closing = threading.Timer(1, client.close)
    views = {"a": da.ones((N_ROWS, 3), chunks=(10, 3)).map_blocks(slowly, dtype=float)}
    views["b"] = da.ones((N_ROWS, 2), chunks=(10, 2))
    closing.start()
    with config_context(block_rows=10), pytest.raises(RuntimeError, match="client was closed"):
        Moments.of(Views(views))
    closing.join()


def slowly(rows):
    time.sleep(0.2)
    return rows


@pytest.mark.parametrize("with_client", [True, False])
@pytest.mark.parametrize("estimator", [MVCCA, MVMLCCA])
def test_a_bad_number_in_one_chunk_names_its_view_and_rows(request, estimator, with_client):
    if with_client:
        request.getfixturevalue("client")
    views = planted()
    views["b"][301, 3] = np.nan
    with pytest.raises(ValueError, match=r"View 'b', rows .*: Input contains NaN") as failed:
        estimator(2).fit(as_dask(views), label_sets())
    start, stop = map(int, re.search(r"rows (\d+) to (\d+)", str(failed.value)).groups())
    assert start <= 301 < stop <= start + BLOCK_ROWS


@pytest.mark.usefixtures("client")
def test_an_error_of_a_worker_names_the_rows(tmp_path):
    views = as_files(planted(), tmp_path)
    (tmp_path / "b.npy").unlink()
    with pytest.raises(ValueError, match=r"b.npy: no such file(?s:.*)worker, over rows 0 to 160"):
        MVCCA(2).fit(views)


@pytest.mark.usefixtures("client")
def test_an_array_that_does_not_know_its_rows_says_what_to_call():
    views = as_dask(planted())
    views["a"] = views["a"][views["a"][:, 0] > 10]
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        MVCCA(2).fit(views)


# ---- transform -------------------------------------------------------------------------------


@pytest.fixture
def computes():
    """How often Dask was asked for numbers."""
    calls = []

    def count(graph, keys, **options):
        calls.append(keys)
        return dask.get(graph, keys, **options)

    with dask.config.set(scheduler=count):
        yield calls


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_of_dask_arrays_computes_nothing(computes, dtype):
    views = planted(dtype)
    model, lazy = MVCCA(2).fit(views), as_dask(views)
    expected = model.transform(views)
    outcomes = {
        "mapping": model.transform(lazy),
        "list": dict(zip("abc", model.transform(list(lazy.values())), strict=True)),
        "some views": model.transform({"b": lazy["b"]}),
        "Views": {name: rows.array for name, rows in model.transform(Views(lazy)).items()},
    }
    assert not computes
    for outcome in outcomes.values():
        for name, scores in outcome.items():
            assert isinstance(scores, da.Array)
            assert scores.dtype == dtype
            assert scores.chunks == (lazy[name].chunks[0], (2,))
            assert_allclose(scores.compute(), expected[name], rtol=1e-5)
    assert len(computes) == 10


# A parameter or two of each, so that little is fitted.
FEW = {"n_landmarks": 20, "random_state": 0}
NETWORKS = {"hidden_layer_sizes": (4,), "batch_size": 120, "max_epochs": 1, "random_state": 0}
PROJECTING = {
    "mvcca": {
        "CCA": {}, "MLCCA": {}, "MVMLCCA": {"power": 1}, "PLS": {}, "CFA": {},
        "Procrustes": {}, "AffineMap": {}, "LGCFL": {}, "JRL": {}, "CMOLRS": {}, "NCCA": {},
        "KCCA": {"gamma": 0.01},
        "KCCA nystroem": {"approximation": "nystroem", **FEW},
        "KCCA fourier": {"approximation": "fourier", **FEW},
    },
    "mvcca.deep": {
        "DCCA": NETWORKS, "DSDCCA": NETWORKS, "DCCAE": NETWORKS, "SoftCCA": NETWORKS,
        "SoftHGR": NETWORKS, "L0CCA": NETWORKS, "CorrNet": {"max_epochs": 1, "random_state": 0},
    },
}  # fmt: skip


SHARING = list(PROJECTING["mvcca.deep"])[2:]  # networks project as the first ones do


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("home", "name"),
    [
        pytest.param(home, name, marks=pytest.mark.long if name in SHARING else ())
        for home, names in PROJECTING.items()
        for name in names
    ],
)
def test_no_method_computes_scores_of_dask_arrays_before_they_are_asked_for(computes, home, name):
    if home == "mvcca.deep":
        pytest.importorskip("torch")
    estimator = getattr(import_module(home), name.split()[0])
    views = {view: X - X.mean(axis=0) for view, X in planted(np.float32).items()}
    del views["c"]
    model = estimator(2, **PROJECTING[home][name])
    model.fit(views, np.arange(N_ROWS) % 3 if model.requires.labels else None)
    lazy = model.transform(as_dask(views))
    assert not computes
    for view, expected in model.transform(views).items():
        assert isinstance(lazy[view], da.Array)
        assert lazy[view].dtype == np.float32
        assert lazy[view].shape == expected.shape
        scores = lazy[view].compute()
        assert_allclose(scores, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    assert len(computes) == 2


def test_transform_of_two_lone_dask_arrays_computes_nothing(computes):
    a, b, _ = planted().values()
    model = CCA(2).fit(a, b)
    lazy = model.transform(da.from_array(a, chunks=(50, 4)), da.from_array(b, chunks=60))
    assert not computes
    for scores, expected in zip(lazy, model.transform(a, b), strict=True):
        assert_allclose(scores.compute(), expected, rtol=1e-9)


def test_scores_of_a_bad_chunk_name_its_rows_when_computed():
    views = planted()
    model = MVCCA(2).fit(views)
    views["a"][301, 3] = np.nan
    scores = model.transform({"a": da.from_array(views["a"], chunks=(50, 4))})["a"]
    with pytest.raises(ValueError, match=r"View 'a', rows 300 to 350: Input.*NaN"):
        scores.compute()


# ---- accidents -------------------------------------------------------------------------------


class Rows(RowSource):
    """Rows that take a while to read, leave a mark for every block, and may have an accident."""

    def __init__(self, rows, folder, seconds=0.05, accident=None):
        self.rows, self.folder, self.seconds, self.accident = rows, folder, seconds, accident
        self.name = "rows"
        self.describe(rows.shape, rows.dtype)

    def blocks(self, ranges):
        for start, stop in ranges:
            (self.folder / uuid4().hex).touch()
            time.sleep(self.seconds)
            if self.accident is not None:
                self.accident(self.rows[start, 0])
            yield self.rows[start:stop].copy()

    def identity(self):
        return ()


def _at_row(first, accident, file, value):
    """An accident at the row that begins with a value, or at every row."""
    if first is None or value == first:
        accident(file)


def n_marks(folder):
    return len(list(folder.iterdir()))


def kill(cluster, which):
    """A real kill -9 of one of the workers, which its nanny will start anew."""
    pid = until(lambda: _pid(cluster, which), "a worker did not start")
    os.kill(pid, signal.SIGKILL)
    until(lambda: _pid(cluster, which) != pid, "a worker did not die")


def wait_for(file):
    """Until there is such a file; who waits leaves a mark beside it."""
    waiting(file, os.getpid()).touch()
    until(file.exists, f"{file} did not appear")


def waiting(file, pid):
    return file.with_name(f"{file.name} awaited by {pid}")


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_workers_killed_one_after_the_other_change_no_bit(cluster, tmp_path):
    views, folder, over = planted(), tmp_path / "marks", tmp_path / "over"
    folder.mkdir()
    with config_context(block_rows=96):
        expected = MVCCA(3).fit(as_files(views, tmp_path))
    moments = np.random.default_rng(3).uniform(0.1, 0.6, size=2)

    def kill_at_moments():
        while not n_marks(folder):
            time.sleep(0.01)
        time.sleep(moments[0])
        kill(cluster, 0)
        while not (busy := [w for w in range(2) if waiting(over, _pid(cluster, w)).exists()]):
            time.sleep(0.01)
        time.sleep(moments[1])
        kill(cluster, busy[0])
        over.touch()

    slow = {name: Rows(view, folder) for name, view in views.items()}
    slow["c"].accident = partial(_at_row, views["c"][4 * 96, 0], wait_for, over)
    killer = threading.Thread(target=kill_at_moments, daemon=True)
    killer.start()  # the last block waits for the last kill, which is of the worker that reads it
    with config_context(block_rows=96):
        model = MVCCA(3).fit(slow)
    killer.join()
    same_bits(model, expected)
    assert n_marks(folder) > 3 * N_ROWS / 96  # something had to be read again


@pytest.fixture
def new_client():
    """Of workers that no test before has killed: Dask may forget tasks of those that are new."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(processes=False, **options) as own:
        yield own


@pytest.mark.usefixtures("new_client")
def test_sums_of_tasks_of_your_own_are_a_map_and_a_reduce(tmp_path):
    """As the user guide has it: tasks open files themselves, and their sums are added."""
    views, labels = Views(as_files(planted(), tmp_path)), label_sets()
    parts = [slice(start, start + BLOCK_ROWS) for start in range(0, N_ROWS, BLOCK_ROWS)]

    def total_of(summed):
        sums = [dask.delayed(summed)(views[rows], labels[rows]) for rows in parts]
        return dask.delayed(sum)(sums[1:], sums[0]).compute()

    model = MVCCA(3).fit_statistic(total_of(lambda own, _: Moments.of(own)))
    same_model(model, MVCCA(3).fit(views), 1e-9)
    labelled = MVMLCCA(3, reg=0.1)
    total = total_of(lambda own, y: clone(labelled).partial_fit(own, y).statistic_)
    same_model(clone(labelled).fit_statistic(total), clone(labelled).fit(views, labels), 1e-9)


# What is gone over, and from which part of the calls on is the moment drawn.
KILLED = {
    "label sums": (MVMLCCA(3, reg=0.1, within="label"), 0),
    "tile products": (MVMLCCA(3, reg=0.1, within="label"), 0),
    "weighted second pass": (MLCCA(3), 0.5),
    "kernel features": (
        KCCA(2, kernel="rbf", gamma=0.01, approximation="fourier", n_landmarks=20,
             random_state=0, reg=0.1), 0
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(work, marks=() if first or work == "tile products" else pytest.mark.long)
        for work, (_, first) in KILLED.items()
    ],
)
@pytest.mark.usefixtures("client")
def test_a_worker_killed_at_a_random_moment_changes_no_bit(work, tmp_path, monkeypatch):
    views, labels, (estimator, first) = planted(), label_sets(), KILLED[work]
    monkeypatch.setattr("mvcca.linear._mvmlcca.LabelGram", partial(LabelGram, tile_rows=4))

    def fitted(marks, at):
        marks.mkdir()
        accident = partial(_die_once, marks, os.getpid(), at)
        model = clone(estimator)
        if work == "tile products":
            rows = as_files(views, tmp_path)
            model.set_params(label_similarity=partial(_alike, marks, accident))
        else:
            rows = {name: Rows(view, marks, 0, accident) for name, view in views.items()}
        with config_context(block_rows=48):
            return model.fit(rows, labels if model.requires.labels else None)

    undisturbed = fitted(tmp_path / "undisturbed", np.inf)
    n_calls = n_marks(tmp_path / "undisturbed")
    at = np.random.default_rng(4).integers(first * n_calls, n_calls)
    same_bits(fitted(tmp_path / "disturbed", at), undisturbed)
    assert (tmp_path / "disturbed.died").exists()


def _die_once(marks, home, at, *_):
    """A real kill -9, of the worker that makes one of many calls, when it is made first."""
    if n_marks(marks) <= at or os.getpid() == home:
        return
    try:
        marks.with_suffix(".died").touch(exist_ok=False)
    except FileExistsError:
        return
    _die(None)


def _alike(marks, accident, A, B):
    """The squared exponential, of tiles that leave a mark and may have an accident."""
    (marks / uuid4().hex).touch()
    accident()
    return np.exp(-np.square(A[:, None] - B[None]).sum(axis=2) / 2)


@pytest.mark.slow
@pytest.mark.parametrize("route", ["tiles", pytest.param("subsets", marks=pytest.mark.long)])
@pytest.mark.usefixtures("client")
def test_label_sums_that_died_with_their_workers_are_made_again(
    route, cluster, tmp_path, monkeypatch
):
    monkeypatch.setattr("mvcca.similarity._gram._STRIPE_COLUMNS", 4)
    views, labels = Views(as_files(planted(), tmp_path)), label_sets()
    if route == "subsets":  # hardly any of which sets share
        labels = np.eye(300, dtype=int)[np.random.default_rng(2).integers(300, size=(480, 2))].max(
            1
        )
    vectors, codes = np.unique(labels, axis=0, return_inverse=True)
    table = Labels(csr_array(vectors, dtype=np.uint8), codes=codes)
    gram = LabelGram(table, tile_rows=10)
    n_stripes = 6 if route == "subsets" else -(-table.n_distinct // 10)
    assert len(gram.stripes(21)) == n_stripes
    sums = LabelSums.of(views, table)
    expected = sums.covariance(gram)
    for which in range(2):
        kill(cluster, which)
    wait_for_workers(cluster)  # fails, rather than waiting for ever, if a nanny gives up
    assert_array_equal(sums.covariance(gram), expected)
    dense = LabelGram(table).times(np.eye(table.n_distinct))
    assert_allclose(expected, sums.deviations().T @ dense @ sums.deviations(), atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("client")
def test_rows_that_kill_every_worker_are_named_with_their_bytes(cluster, tmp_path):
    views = Views({"a": Rows(planted()["a"], tmp_path, accident=_die)})
    cluster.scheduler.allowed_failures = 0
    try:
        with pytest.raises(RuntimeError, match=r"Workers died over rows 0 to 160.*23,040 bytes"):
            Moments.of(views)
    finally:
        cluster.scheduler.allowed_failures = 3


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.usefixtures("client")
def test_an_interrupted_fit_leaves_no_tasks_behind(cluster, tmp_path):
    folder, over = tmp_path / "marks", tmp_path / "over"
    folder.mkdir()
    accident = partial(_at_row, None, wait_for, over)
    views = Views({"a": Rows(planted()["a"], folder, accident=accident)})

    def interrupt():
        while not n_marks(folder):
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    threading.Thread(target=interrupt).start()
    try:
        with config_context(block_rows=12), pytest.raises(KeyboardInterrupt):
            Moments.of(views)  # no block is read before the interrupt
    finally:
        signal.signal(signal.SIGINT, before)
        over.touch()
    deadline = time.monotonic() + PATIENCE
    while cluster.scheduler.tasks and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not cluster.scheduler.tasks
    assert n_marks(folder) < 10  # of 40


@pytest.mark.usefixtures("client")
def test_a_fit_resumes_from_the_checkpoint_of_one_that_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    views, folder, trigger = planted(), tmp_path / "marks", tmp_path / "trigger"
    folder.mkdir(), trigger.touch()
    lazy = {name: Rows(view, folder, 0) for name, view in views.items()}
    lazy["a"].accident = partial(_at_row, views["a"][240, 0], _fail_while, trigger)
    with config_context(block_rows=48, checkpoint=tmp_path / "checkpoint"):
        with pytest.raises(OSError, match="no rows today"):
            MVCCA(2).fit(lazy)
        again = tmp_path / "again"  # workers may still be reading for the fit that failed
        again.mkdir()
        model = MVCCA(2).fit({name: Rows(view, again, 0) for name, view in views.items()})
    assert n_marks(again) == 3 * 5  # of ten blocks, five were in the checkpoint
    same_model(model, MVCCA(2).fit(views), 1e-9)


def _fail_while(trigger):
    if trigger.exists():
        raise OSError("no rows today")


@pytest.mark.slow
def test_fits_at_once_in_threads_have_checkpoints_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    views, labels, reads = planted(), label_sets(), {}
    fits = {"one pass": (MVCCA(2), None, 6), "three passes": (MLCCA(2), labels, 16)}
    meeting = threading.Barrier(len(fits))

    def fit(name, fails=False):
        estimator, y, read = fits[name]
        reads[name] = []

        def meet_or_fail(value):
            reads[name].append(value)
            if len(reads[name]) <= 4:
                meeting.wait(timeout=PATIENCE)
            if fails and len(reads[name]) > read:
                raise OSError("no rows today")

        (tmp_path / f"{name} marks").mkdir(exist_ok=True)
        rows = {"a": Rows(views["a"], tmp_path / f"{name} marks", 0, meet_or_fail), "b": views["b"]}
        with config_context(block_rows=48, checkpoint=tmp_path / name):
            return clone(estimator).fit(rows, y)

    with ThreadPoolExecutor(len(fits)) as threads:
        for failed in [threads.submit(fit, name, fails=True) for name in fits]:
            with pytest.raises(OSError, match="no rows today"):
                failed.result()
        models = dict(zip(fits, threads.map(fit, fits), strict=True))
    for name, (estimator, y, _) in fits.items():
        # Of ten blocks, six were in the checkpoint; passes before and after find the units of
        # columns, and weigh rows by their labels.
        assert len(reads[name]) == (4 if y is None else 24)
        assert not list((tmp_path / name).iterdir())
        rows = {"a": Rows(views["a"], tmp_path, 0), "b": views["b"]}
        with config_context(block_rows=48):
            same_bits(models[name], clone(estimator).fit(rows, y))


@pytest.mark.slow  # it fits once per tile of label similarities
def test_a_fit_within_a_fit_neither_takes_nor_drops_its_checkpoint(tmp_path):
    views, folder, trigger = planted(), tmp_path / "marks", tmp_path / "trigger"
    folder.mkdir(), trigger.touch()

    def fits_another(A, B):
        MVCCA(2).fit({name: Rows(view, tmp_path, 0) for name, view in views.items()})
        _fail_while(trigger)
        return np.exp(-np.square(A[:, None] - B[None]).sum(axis=2) / 2)

    estimator = MVMLCCA(2, label_similarity=fits_another, reg=0.1, within="label")
    lazy = {name: Rows(view, folder, 0) for name, view in views.items()}
    with config_context(checkpoint=tmp_path / "checkpoint"):
        with pytest.raises(OSError, match="no rows today"):
            estimator.fit(lazy, label_sets())
        before = n_marks(folder)
        trigger.unlink()
        model = estimator.fit(lazy, label_sets())
    assert n_marks(folder) == before  # every row was in the checkpoint
    assert not list((tmp_path / "checkpoint").iterdir())
    same_model(model, MVMLCCA(2, reg=0.1, within="label").fit(views, label_sets()), 1e-9)
