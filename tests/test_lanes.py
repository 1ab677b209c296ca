"""Blocks whose statistics are added up where they are made, before their sum goes home."""

from __future__ import annotations

import numpy as np
import pytest

from mvcca import MVCCA, Views, config_context, open_matrix
from mvcca.statistics import Moments
from mvcca.statistics.passes import _accumulate
from mvcca.statistics.passes._blocks import lanes_of
from mvcca.statistics.passes._cluster import Cluster
from mvcca.statistics.passes._tasks import sent_as_arrays

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
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )


@pytest.fixture
def tasks(monkeypatch):
    """How many blocks each task was of."""
    heights = []

    def counted(cluster, of, kind, tasks, lanes, load):
        heights.extend(map(len, lanes))
        yield from original(cluster, of, kind, tasks, lanes, load)

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


@pytest.mark.parametrize("n_together", [1, 3, 16])
@pytest.mark.parametrize("n_blocks", [1, 2, 7, 37, 400])
def test_lanes_are_all_blocks_in_order_and_the_last_are_short(n_blocks, n_together):
    blocks = [slice(i, i + 1) for i in range(n_blocks)]
    lanes = list(lanes_of(blocks, n_together))
    assert [block for lane in lanes for block in lane] == blocks
    heights = [len(lane) for lane in lanes]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == 1
    assert heights[0] == min(n_together, -(-n_blocks // 4))


def test_statistics_travel_as_they_lie_in_memory_and_arrive_the_same(views):
    from distributed.protocol import deserialize, serialize

    moments = Moments.of(views)
    sent_as_arrays(Moments)
    header, frames = serialize(moments, context={"pickle-protocol": 4})
    assert any(np.shares_memory(np.asarray(frame), moments.scatter) for frame in frames)
    arrived = deserialize(header, frames)
    assert arrived.widths == moments.widths
    for name in ("counts", "means", "scatter"):
        np.testing.assert_array_equal(getattr(arrived, name), getattr(moments, name))


def test_the_graph_of_an_array_is_looked_through_once_not_once_for_each_block(
    views, tasks, monkeypatch
):
    lazy = arrays(views, (BLOCK_ROWS, BLOCK_ROWS))
    looked_at = []

    def counted(collection):
        looked_at.append(collection)
        return original(collection)

    original = distributed.futures_of
    monkeypatch.setattr(distributed, "futures_of", counted)
    with new_client():
        Moments.of(lazy)
    assert sum(tasks) == N_ROWS // BLOCK_ROWS
    assert len(looked_at) == len(WIDTHS)


def test_the_larger_a_result_the_more_blocks_make_a_lane_but_never_more_than_16(monkeypatch, files):
    lanes = []

    def counted(add, of, start, views, along, slices, terms):
        lanes.append([rows.stop - rows.start for rows in slices])
        return original(add, of, start, views, along, slices, terms)

    original = _accumulate._pass
    monkeypatch.setattr(_accumulate, "_pass", counted)
    for worth in (1e-9, 1, 1e9):
        monkeypatch.setattr(_accumulate, "_BYTES_READ", worth)
        with config_context(block_rows=10):
            Moments.of(files)
    one_by_one, middle, long = lanes
    assert one_by_one == [10] * (N_ROWS // 10)
    assert len(one_by_one) > len(middle) > len(long)
    assert long == [10 * n for n in (16, 16, 16, 13, 10, 8, 6, 4, 3, 2, 2, 1, 1, 1, 1)]
