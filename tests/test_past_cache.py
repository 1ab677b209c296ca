"""Files too large for the page cache are dropped from it, and nothing else is different."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mvcca.blocks import SourceError, as_source, open_matrix
from mvcca.blocks.sources import _numpy

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def all_files_are_too_large(monkeypatch):
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system has no posix_fadvise")
    monkeypatch.setattr(_numpy, "_CACHED_SHARE", 0)


@pytest.fixture
def dropped(monkeypatch):
    """Ranges of bytes that were dropped from the page cache."""
    calls, advise = [], os.posix_fadvise

    def counted(file, offset, length, advice):
        assert advice == os.POSIX_FADV_DONTNEED
        calls.append((offset, offset + length))
        advise(file, offset, length, advice)

    monkeypatch.setattr(os, "posix_fadvise", counted)
    return calls


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f8", "<i2"])
@pytest.mark.parametrize("shape", [(1, 1), (3000, 7), (17, 2049)])
def test_any_rows_are_those_of_the_array(tmp_path, dropped, dtype, shape):
    X = (100 * RNG.standard_normal(shape)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    source = open_matrix(tmp_path / "X.npy")
    for start, stop in [(0, shape[0]), (0, 1), (shape[0] - 1, shape[0]), (shape[0] // 3, shape[0])]:
        block = source.read(start, stop)
        np.testing.assert_array_equal(block, X[start:stop])
        assert block.dtype == X.dtype.newbyteorder("=")
        assert all(block.flags[flag] for flag in ("C_CONTIGUOUS", "ALIGNED", "WRITEABLE"))
        row_bytes = X.dtype.itemsize * shape[1]
        assert dropped[-1] == (128 + start * row_bytes, 128 + stop * row_bytes)


@pytest.mark.parametrize("offset", [12, 13])
def test_a_memory_map_is_read_alike_wherever_its_numbers_begin(tmp_path, dropped, offset):
    X = RNG.standard_normal((500, 3)).astype("<f4")
    (tmp_path / "X.raw").write_bytes(b"#" * offset + X.tobytes())
    mapped = np.memmap(tmp_path / "X.raw", dtype="<f4", mode="r", offset=offset, shape=X.shape)
    block = as_source(mapped).read(100, 400)
    np.testing.assert_array_equal(block, X[100:400])
    assert block.flags.aligned
    assert dropped


def test_a_file_in_fortran_order_stays_in_the_cache_for_the_next_rows(tmp_path, dropped):
    X = np.asfortranarray(RNG.standard_normal((50, 3)))
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(open_matrix(tmp_path / "X.npy").read(10, 40), X[10:40])
    assert not dropped


def test_a_file_that_fits_into_the_cache_stays_there(tmp_path, dropped, monkeypatch):
    monkeypatch.setattr(_numpy, "_CACHED_SHARE", 1)
    X = RNG.standard_normal((50, 3))
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(open_matrix(tmp_path / "X.npy").read(10, 40), X[10:40])
    assert not dropped


def test_a_system_without_such_advice_reads_the_same(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fadvise")
    X = RNG.standard_normal((50, 3))
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(open_matrix(tmp_path / "X.npy").read(10, 40), X[10:40])


def test_a_file_cut_short_meanwhile_is_an_error_that_names_it(tmp_path):
    X = RNG.standard_normal((5000, 3))
    np.save(tmp_path / "X.npy", X)
    source = open_matrix(tmp_path / "X.npy")
    os.truncate(tmp_path / "X.npy", 10_000)
    with pytest.raises(SourceError, match=r"X\.npy has changed since"):
        source.read(0, 5000)
