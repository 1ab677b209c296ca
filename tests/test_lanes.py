"""Blocks whose statistics are added up where they are made, before their sum goes home."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca import MVCCA, Views, config_context, open_matrix
from mvcca.statistics import Moments, _accumulate
from mvcca.statistics._cluster import Cluster

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

WIDTHS = {"image": 7, "text": 5}
N_ROWS, BLOCK_ROWS = 1000, 40


@pytest.fixture(autouse=True)
def large_results(monkeypatch):
    """Statistics of a few columns are treated as if they were large."""
    monkeypatch.setattr(_accumulate, "_SMALL", 0)
    with config_context(block_rows=BLOCK_ROWS):
        yield


def new_client():
    return distributed.Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    )


@pytest.fixture
def tasks(monkeypatch):
    """How many blocks each task was of."""
    heights = []

    def counted(cluster, of, views, along, lanes, load):
        heights.extend(map(len, lanes))
        yield from original(cluster, of, views, along, lanes, load)

    original = Cluster.map
    monkeypatch.setattr(Cluster, "map", counted)
    return heights


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    common = rng.standard_normal((N_ROWS, 3))

    def view(width):
        return 5 + common @ rng.standard_normal((3, width)) + rng.standard_normal((N_ROWS, width))

    return Views({name: view(width) for name, width in WIDTHS.items()})


@pytest.fixture
def files(views, tmp_path):
    for name, X in views.items():
        np.save(tmp_path / f"{name}.npy", X)
    return Views({name: open_matrix(tmp_path / f"{name}.npy") for name in views.names})


def arrays(views, heights):
    return Views(
        {
            name: da.from_array(X, chunks=(height, -1))
            for (name, X), height in zip(views.items(), heights, strict=True)
        }
    )


def test_a_lane_has_the_same_bits_here_and_on_workers(files, tasks):
    with new_client():
        there = Moments.of(files)
    assert sum(tasks) == N_ROWS // BLOCK_ROWS
    assert max(tasks) > 1
    here = Moments.of(files)
    np.testing.assert_array_equal(there.scatter, here.scatter)
    np.testing.assert_array_equal(there.means, here.means)


def test_lanes_do_not_change_the_model(files, views):
    expected = MVCCA(3).fit(views)
    model = MVCCA(3).fit(files)
    for name, weights in expected.weights_.items():
        np.testing.assert_allclose(model.weights_[name], weights, rtol=1e-9)


def test_whole_chunks_of_dask_arrays_are_lanes_and_shared_ones_are_not(views, tasks):
    with new_client():
        aligned = Moments.of(arrays(views, (BLOCK_ROWS, BLOCK_ROWS)))
        assert max(tasks) > 1
        tasks.clear()
        shared = Moments.of(arrays(views, (BLOCK_ROWS, 3 * BLOCK_ROWS)))
        assert set(tasks) == {1}
    np.testing.assert_allclose(aligned.scatter, shared.scatter, rtol=1e-10)


def test_the_larger_a_result_the_more_blocks_make_a_lane_but_never_more_than_16(monkeypatch, files):
    n_lanes = []

    def counted(add, of, start, views, along, slices, terms):
        n_lanes.append(len(slices))
        return original(add, of, start, views, along, slices, terms)

    original = _accumulate._gone_over
    monkeypatch.setattr(_accumulate, "_gone_over", counted)
    for worth in (1e-9, 10, 1e9):
        monkeypatch.setattr(_accumulate, "_WORTH", worth)
        Moments.of(files)
    most, middle, least = n_lanes
    assert most == N_ROWS // BLOCK_ROWS
    assert most > middle > least
    assert least == -(-most // 16)
