"""Run-time choices: who sees which, and how rows are cut into blocks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from mvcca.machine.config import block_slices, config_context, get_config, set_config
from mvcca.machine.processes import processes


@pytest.fixture(autouse=True)
def _restore_process_choices():
    before = get_config().block_rows
    yield
    set_config(block_rows=before)


def covered(slices, n_rows):
    return [row for block in slices for row in range(n_rows)[block]]


@pytest.mark.parametrize("block_rows", [None, 1, 3, 7, 10, 100])
@pytest.mark.parametrize("n_rows", [0, 1, 9, 10])
def test_blocks_cover_every_row_once_and_in_order(n_rows, block_rows):
    with config_context(block_rows=block_rows):
        assert covered(block_slices(n_rows, row_bytes=8), n_rows) == list(range(n_rows))


def test_block_rows_is_the_length_of_every_block_but_the_last():
    with config_context(block_rows=4):
        lengths = [block.stop - block.start for block in block_slices(10, row_bytes=8)]
    assert lengths == [4, 4, 2]


def test_blocks_chosen_by_size_fill_64_mib():
    row_bytes = 8 * 1000
    first, *_ = block_slices(10**6, row_bytes)
    rows = first.stop - first.start
    assert rows * row_bytes <= 64 * 2**20 < (rows + 1) * row_bytes


def test_a_row_larger_than_a_block_is_a_block_of_its_own():
    assert list(block_slices(2, row_bytes=2**30)) == [slice(0, 1), slice(1, 2)]


def test_rows_without_columns_are_one_block():
    assert list(block_slices(5, row_bytes=0)) == [slice(0, 5)]


def test_blocks_keep_the_choice_that_held_when_they_were_asked_for():
    with config_context(block_rows=2):
        blocks = block_slices(4, row_bytes=8)
    assert list(blocks) == [slice(0, 2), slice(2, 4)]


def test_a_context_ends_with_its_body_also_when_the_body_fails():
    with pytest.raises(KeyError), config_context(block_rows=5):
        raise KeyError
    assert get_config().block_rows is None


def test_the_innermost_context_wins():
    with config_context(block_rows=5):
        with config_context(block_rows=None):
            assert get_config().block_rows is None
        assert get_config().block_rows == 5


def test_set_config_shows_once_the_context_ends():
    with config_context(block_rows=5):
        set_config(block_rows=9)
        assert get_config().block_rows == 5
    assert get_config().block_rows == 9


def test_set_config_reaches_every_thread():
    set_config(block_rows=9)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(get_config).result().block_rows == 9


def test_threads_do_not_see_each_others_contexts():
    both_inside = Barrier(2, timeout=240)

    def seen(block_rows):
        with config_context(block_rows=block_rows):
            both_inside.wait()
            return get_config().block_rows

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(seen, [3, 4])) == [3, 4]


@pytest.mark.parametrize("block_rows", [0, -1, np.int64(-5)])
def test_a_block_without_rows_is_refused(block_rows):
    with pytest.raises(ValueError, match="block_rows must be at least 1, got"):
        set_config(block_rows=block_rows)


@pytest.mark.parametrize("block_rows", [2.5, "10"])
def test_a_block_of_part_of_a_row_is_refused(block_rows):
    with pytest.raises(TypeError, match="integer"):
        set_config(block_rows=block_rows)


def test_an_unknown_choice_is_refused_by_name():
    with (
        pytest.raises(TypeError, match=r"unexpected keyword argument .block_size"),
        config_context(block_size=10),
    ):
        pass


@pytest.mark.parametrize("device", ["cpu", None])
def test_rows_of_linear_methods_stay_on_the_host_without_a_gpu(device):
    with config_context(device=device):
        assert get_config().rows_device is None


def test_processes_compute_on_the_configured_device():
    pytest.importorskip("torch")
    with config_context(device="torch:cpu"), processes(2, None) as submit:
        assert submit(_device).result() == "torch:cpu"


def _device(_):
    return get_config().device
