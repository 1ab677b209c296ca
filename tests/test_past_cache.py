"""Files too large for the page cache are read past it, and nothing else is different."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mvcca.sources import SourceError, _binary, as_source, open_matrix
from mvcca.sources._past_cache import open_past_cache, read_past_cache

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def all_files_are_too_large(monkeypatch, tmp_path):
    monkeypatch.setattr(_binary, "fits_in_cache", lambda _: False)
    (tmp_path / "probe").write_bytes(b"0")
    descriptor = open_past_cache(str(tmp_path / "probe"))
    if descriptor is None:
        pytest.skip(f"the file system of {tmp_path} has no reads past the cache; set TMPDIR")
    os.close(descriptor)


@pytest.fixture
def past_cache(monkeypatch):
    """How often something was read past the cache."""
    calls = []

    def counted(*args):
        calls.append(args)
        return read_past_cache(*args)

    monkeypatch.setattr(_binary, "read_past_cache", counted)
    return calls


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f8", "<i2"])
@pytest.mark.parametrize("shape", [(1, 1), (3000, 7), (17, 2049)])
def test_any_rows_are_those_of_the_array(tmp_path, past_cache, dtype, shape):
    X = (100 * RNG.standard_normal(shape)).astype(dtype)
    np.save(tmp_path / "X.npy", X)
    source = open_matrix(tmp_path / "X.npy")
    for start, stop in [(0, shape[0]), (0, 1), (shape[0] - 1, shape[0]), (shape[0] // 3, shape[0])]:
        block = source.read(start, stop)
        np.testing.assert_array_equal(block, X[start:stop])
        assert block.dtype == X.dtype.newbyteorder("=")
        assert all(block.flags[flag] for flag in ("C_CONTIGUOUS", "ALIGNED", "WRITEABLE"))
    assert past_cache


@pytest.mark.parametrize("offset", [12, 13])
def test_a_memory_map_is_read_alike_where_its_numbers_are_aligned(tmp_path, past_cache, offset):
    X = RNG.standard_normal((500, 3)).astype("<f4")
    (tmp_path / "X.raw").write_bytes(b"#" * offset + X.tobytes())
    mapped = np.memmap(tmp_path / "X.raw", dtype="<f4", mode="r", offset=offset, shape=X.shape)
    block = as_source(mapped).read(100, 400)
    np.testing.assert_array_equal(block, X[100:400])
    assert block.flags.aligned
    assert bool(past_cache) == (offset == 12)


def test_a_file_in_fortran_order_is_picked_through_the_cache(tmp_path, past_cache):
    X = np.asfortranarray(RNG.standard_normal((50, 3)))
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(open_matrix(tmp_path / "X.npy").read(10, 40), X[10:40])
    assert not past_cache


def test_a_file_system_without_such_reads_is_read_through_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(_binary, "open_past_cache", lambda _: None)
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
