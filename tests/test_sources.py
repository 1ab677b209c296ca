"""Matrices read by blocks of rows, judged against NumPy's own indexing of the same matrix."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import csc_array, csr_array, issparse, save_npz

from mvcca import MVCCA, RowSource, open_matrix
from mvcca.blocks import SourceError, as_source, read_table
from mvcca.blocks._checked_rows import CheckedRows
from mvcca.blocks.sources import read_whole
from mvcca.views.files import open_tables, read_ids, read_label_vectors, read_labels

N_ROWS, N_COLUMNS = 53, 7
DTYPES = ["float64", "float32", "float16", "int64", "int16", "uint8", "bool"]
NEEDS = {"hdf5": "h5py", "zarr": "zarr", "parquet": "pyarrow"}


def matrix(dtype="float64", shape=(N_ROWS, N_COLUMNS), seed=0):
    """About half of the entries are zero."""
    numbers = np.random.default_rng(seed).integers(-100, 100, shape)
    return np.where(numbers > 0, numbers, 0).astype(dtype)


# Each writes a matrix into a folder and opens it; the name says where and how the rows lie.


def npy(folder, X):
    np.save(folder / "x.npy", X)
    return open_matrix(folder / "x.npy")


def npy_fortran(folder, X):
    return npy(folder, np.asfortranarray(X))


def npy_big_endian(folder, X):
    return npy(folder, X.astype(X.dtype.newbyteorder(">")))


def npy_fortran_big_endian(folder, X):
    return npy_fortran(folder, X.astype(X.dtype.newbyteorder(">")))


def memmap(folder, X):
    np.save(folder / "x.npy", X)
    return as_source(np.load(folder / "x.npy", mmap_mode="r"))


def memmap_part(folder, X):
    """Rows from the middle, columns too, of a raw file with a header that is no page long."""
    padded = np.zeros((len(X) + 9, X.shape[1] + 5), dtype=X.dtype)
    padded[4:-5, 2:-3] = X
    (folder / "x.raw").write_bytes(b"header of 24 bytes......" + padded.tobytes())
    whole = np.memmap(folder / "x.raw", X.dtype, "r", offset=24, shape=padded.shape)
    return as_source(whole[4:][:-5, 2:-3])


def memmap_backwards(folder, X):
    """Every other row, from the last to the first."""
    spread = np.repeat(X[::-1], 2, axis=0)
    np.save(folder / "x.npy", spread)
    return as_source(np.load(folder / "x.npy", mmap_mode="r")[::-2])


def memmap_written(folder, X):
    writable = np.lib.format.open_memmap(folder / "x.npy", "w+", X.dtype, X.shape)
    writable[:] = X
    return as_source(writable)


def hdf5(folder, X):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "x.h5", "w") as file:
        file["a/x"] = X
    return open_matrix(folder / "x.h5")


def hdf5_chunks(folder, X):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "x.hdf5", "w") as file:
        file["other"] = X + X
        file.create_dataset("x", data=X, chunks=(10, 3), maxshape=(None, None), compression="gzip")
        file.create_dataset("big_endian", data=X.astype(X.dtype.newbyteorder(">")))
    return open_matrix(folder / "x.hdf5", "x")


def hdf5_big_endian(folder, X):
    hdf5_chunks(folder, X)
    return open_matrix(folder / "x.hdf5", "big_endian")


def hdf5_dataset(folder, X):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    hdf5_chunks(folder, X)
    with h5py.File(folder / "x.hdf5", "r") as file:
        return as_source(file["x"])


def zarr_folder(folder, X):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    zarr.create_array(folder / "x.zarr", data=X, chunks=(10, 3))
    return open_matrix(folder / "x.zarr")


def zarr_group(folder, X):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    group = zarr.open_group(folder / "x.zarr", mode="w")
    group.create_array("deep/x", data=X, chunks=(10, N_COLUMNS))
    group.create_array("other", data=X + X)
    return open_matrix(folder / "x.zarr", "deep/x")


def zarr_array(folder, X):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    zarr_group(folder, X)
    return as_source(zarr.open_array(folder / "x.zarr", path="deep/x", mode="r"))


def zarr_shards(folder, X):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    zarr.create_array(folder / "x.zarr", data=X, chunks=(10, N_COLUMNS), shards=(20, N_COLUMNS))
    return open_matrix(folder / "x.zarr")


def parquet(folder, X):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    names = [f"feature {j}" for j in range(X.shape[1])]
    table = pa.table({name: X[:, j] for j, name in enumerate(names)})
    parquet.write_table(table, folder / "x.parquet", row_group_size=10)
    return open_matrix(folder / "x.parquet")


def parquet_lists(folder, X):
    """As embeddings are stored: a list of fixed length per row."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    parquet.write_table(pa.table({"x": lists}), folder / "x.parquet", row_group_size=10)
    return open_matrix(folder / "x.parquet")


def mat(folder, X):
    savemat(folder / "x.mat", {"x": X})
    return open_matrix(folder / "x.mat")


def mat_compressed(folder, X):
    content = {"x": X, "words": "some text", "y": X + X, "cells": np.array([1, "a"], dtype=object)}
    savemat(folder / "x.mat", content, do_compression=True)
    return open_matrix(folder / "x.mat", "x")


def mat_sparse(folder, X):
    savemat(folder / "x.mat", {"x": csr_array(X)})
    return open_matrix(folder / "x.mat")


def mat_73(folder, X):
    """As MATLAB writes matrices to HDF5: transposed, after a block of its own, beside text."""
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "x.mat", "w", userblock_size=512) as file:
        data = file.create_dataset("x", data=X.T, chunks=(3, 10), maxshape=(None, None))
        data.attrs["MATLAB_class"] = np.bytes_("double")
        text = file.create_dataset("words", data=np.array([[104], [105]], dtype=np.uint16))
        text.attrs["MATLAB_class"] = np.bytes_("char")
        file["#refs#/a"] = X.T
    with open(folder / "x.mat", "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return open_matrix(folder / "x.mat")


def sparse_npz(folder, X):
    save_npz(folder / "x.npz", csr_array(X))
    return open_matrix(folder / "x.npz")


def sparse_npz_stored(folder, X):
    save_npz(folder / "x.npz", csr_array(X), compressed=False)
    return open_matrix(folder / "x.npz")


def dask_chunks(_, X):
    da = pytest.importorskip("dask.array")
    return as_source(da.from_array(X, chunks=((20, 3, 30), (4, 3))))


def dask_sparse(_, X):
    da = pytest.importorskip("dask.array")
    rows = da.from_array(X, chunks=(10, N_COLUMNS))
    return as_source(
        rows.map_blocks(csr_array, dtype=X.dtype, meta=csr_array((0, 0), dtype=X.dtype))
    )


IN_FILES = [
    npy,
    npy_fortran,
    npy_big_endian,
    npy_fortran_big_endian,
    memmap,
    memmap_part,
    memmap_backwards,
    memmap_written,
    hdf5,
    hdf5_chunks,
    hdf5_big_endian,
    hdf5_dataset,
    zarr_folder,
    zarr_group,
    zarr_array,
    zarr_shards,
    parquet,
    parquet_lists,
    mat,
    mat_compressed,
    mat_sparse,
    mat_73,
    sparse_npz,
    sparse_npz_stored,
]
CONTAINERS = [*IN_FILES, dask_chunks, dask_sparse]
SPARSE = [sparse_npz, sparse_npz_stored, dask_sparse, mat_sparse]
CHUNKED = [
    hdf5_chunks,
    hdf5_dataset,
    zarr_folder,
    zarr_group,
    zarr_array,
    zarr_shards,
    parquet,
    parquet_lists,
    mat_73,
]

WITHOUT_ROWS = [  # NumPy maps no empty file; the Dask arrays have chunks of given heights
    make for make in IN_FILES if make not in (memmap_part, memmap_backwards, memmap_written)
]
ONE_FILE = [
    npy,
    npy_fortran,
    hdf5,
    hdf5_chunks,
    parquet,
    parquet_lists,
    mat,
    mat_sparse,
    mat_73,
    sparse_npz,
    sparse_npz_stored,
]

SELECTIONS = {
    "everything": slice(None),
    "slice": slice(5, 41),
    "step": slice(3, 50, 4),
    "downwards": slice(None, None, -1),
    "downwards by three": slice(45, 7, -3),
    "none": slice(9, 9),
    "mask": np.random.default_rng(1).random(N_ROWS) < 0.4,
    "mask of nothing": np.zeros(N_ROWS, dtype=bool),
    "sorted positions": np.array([0, 1, 2, 8, 9, 30, 51, 52]),
    "positions": np.random.default_rng(2).permutation(N_ROWS)[:31],
    "positions twice": np.array([7, 7, 3, 52, 3, 7]),
    "neighbours": np.arange(11, 37),
    "from the end": np.array([-1, 4, -53]),
    "list": [4, 0, 9],
    "empty list": [],
}


@pytest.fixture(params=CONTAINERS, ids=lambda make: make.__name__)
def container(request):
    return request.param


@pytest.fixture(params=IN_FILES, ids=lambda make: make.__name__)
def file_container(request):
    return request.param


def assert_same(block, expected):
    """The very numbers in the very type, in a block that is the caller's own."""
    assert block.dtype == expected.dtype
    assert block.dtype.isnative
    assert block.shape == expected.shape
    if issparse(block):
        assert isinstance(block, csr_array)
        block = block.toarray()
    else:
        assert block.flags.c_contiguous
        assert block.flags.writeable
        assert block.base is None or block.base.base is None
    np.testing.assert_array_equal(block, expected)


def dtypes_of(container):
    """The types of numbers that a container can hold."""
    if container is mat_sparse:  # MATLAB's sparse matrices are of doubles
        return {dtype for dtype in DTYPES if np.dtype(dtype).kind == "f"} - {"float16"}
    # Neither SciPy's sparse matrices nor MATLAB's have float16.
    has_no_half = container in SPARSE or container in (mat, mat_compressed)
    return {"uint16", *DTYPES} - {"float16"} if has_no_half else set(DTYPES)


def test_blocks_are_the_rows_of_the_matrix(tmp_path, container):
    for dtype in dtypes_of(container):
        X, folder = matrix(dtype), tmp_path / dtype
        folder.mkdir()
        source = container(folder, X)
        described = (source.shape, source.dtype, len(source), source.ndim)
        assert described == (X.shape, X.dtype, N_ROWS, 2)
        for start, stop in [(0, N_ROWS), (0, 1), (52, 53), (17, 44), (10, 20), (30, 30), (0, 0)]:
            assert_same(source.read(start, stop), X[start:stop])


def test_selections_are_those_of_numpy(tmp_path, container):
    X = matrix("float32")
    source = container(tmp_path, X)
    for rows in SELECTIONS.values():
        selected, expected = source[rows], X[np.arange(N_ROWS)[rows].astype(int)]
        assert isinstance(selected, RowSource)
        assert selected.shape == expected.shape
        assert_same(selected.read(0, len(selected)), expected)
        for start in range(0, len(selected), 4):
            stop = min(start + 4, len(selected))
            assert_same(selected.read(start, stop), expected[start:stop])


@pytest.mark.parametrize("rows", SELECTIONS.values(), ids=SELECTIONS)
def test_selections_of_selections_are_those_of_numpy(tmp_path, rows):
    X = matrix()
    source = npy(tmp_path, X)
    first = np.arange(N_ROWS)[rows].astype(int)
    for again in (
        slice(1, 30, 2),
        slice(None, None, -2),
        [0, -1, 0],
        np.arange(len(first)) % 3 == 0,
    ):
        if not len(first) and isinstance(again, list):
            continue
        expected = X[first][again]
        nested = source[rows][again]
        assert_same(nested.read(0, len(nested)), expected)


@pytest.mark.parametrize("container", CHUNKED, ids=lambda make: make.__name__)
def test_boundaries_of_a_selection_are_where_its_rows_pass_a_boundary(tmp_path, container):
    source = container(tmp_path, matrix())
    assert source.boundaries == (0, 10, 20, 30, 40, 50, 53)
    for rows in SELECTIONS.values():
        positions = np.arange(N_ROWS)[rows].astype(int)
        chunk = positions // 10
        jumps = np.any(np.diff(positions) <= 0) and not isinstance(rows, slice)
        passed = [0, *(np.flatnonzero(np.diff(chunk)) + 1), len(positions)]
        assert source[rows].boundaries == (None if jumps else tuple(sorted(set(passed))))


def test_rows_lying_anywhere_in_a_file_have_no_boundaries(tmp_path):
    assert npy(tmp_path, matrix()).boundaries is None


def test_boundaries_of_a_dask_array_are_its_row_chunks(tmp_path):
    assert dask_chunks(tmp_path, matrix()).boundaries == (0, 20, 23, 53)


@pytest.mark.filterwarnings("ignore:.*64 of 64 chunks are not stored")
def test_chunks_too_tall_for_a_block_are_cut(tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    shape = (2**20, 64)
    zarr.create_array(tmp_path / "x.zarr", shape=shape, dtype="float64", chunks=(2**20, 1))
    assert open_matrix(tmp_path / "x.zarr").boundaries == tuple(range(0, 2**20 + 1, 2**17))


@pytest.mark.parametrize("container", WITHOUT_ROWS, ids=lambda make: make.__name__)
def test_a_matrix_without_rows_is_one(tmp_path, container):
    X = np.empty((0, N_COLUMNS))
    source = container(tmp_path, X)
    assert source.shape == (0, N_COLUMNS)
    assert source.boundaries in (None, (0,))
    assert_same(source.read(0, 0), X)
    assert_same(source[::2].read(0, 0), X)


def test_an_array_of_a_source_is_the_whole_matrix(tmp_path, container):
    X = matrix()
    source = container(tmp_path, X)
    if source.is_sparse:
        with pytest.raises(TypeError, match="would become dense"):
            np.asarray(source)
    else:
        np.testing.assert_array_equal(np.asarray(source), X)
        assert np.asarray(source, dtype=np.float32).dtype == np.float32
        with pytest.raises(ValueError, match="not in memory"):
            source.__array__(copy=False)


def test_columns_keep_their_names(tmp_path):
    source = parquet(tmp_path, matrix())
    assert source.columns == tuple(f"feature {j}" for j in range(N_COLUMNS))
    assert source[5:9].columns == source.columns
    assert npy(tmp_path, matrix()).columns is None


# Where and by whom it is read


def test_a_pickled_source_reads_the_same_and_carries_no_rows(tmp_path, container):
    X = np.tile(matrix(), (100, 1)) if container in (npy, sparse_npz) else matrix()
    source = container(tmp_path, X)
    source.read(3, 9)
    pickled = pickle.dumps(source[4:])
    assert container in (dask_chunks, dask_sparse) or len(pickled) < 2_000
    assert_same(pickle.loads(pickled).read(0, 20), X[4:24])


def test_another_process_in_another_folder_reads_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", matrix())
    (tmp_path / "source").write_bytes(pickle.dumps(open_matrix("x.npy")[::3]))
    program = (
        "import pickle, sys; source = pickle.load(sys.stdin.buffer); print(source.read(2, 4).sum())"
    )
    with open(tmp_path / "source", "rb") as pickled:
        answer = subprocess.run(
            [sys.executable, "-c", program], stdin=pickled, cwd="/", check=True, capture_output=True
        )
    assert float(answer.stdout) == matrix()[::3][2:4].sum()


def test_threads_that_read_at_once_all_read_right(tmp_path, container):
    X = matrix()
    source = container(tmp_path, X)
    shuffled = np.random.default_rng(0).permutation(N_ROWS)
    together = threading.Barrier(4, timeout=240)

    def read(number):
        together.wait()
        wrong = 0
        for start in np.random.default_rng(number).permutation(N_ROWS - 5)[:8]:
            for part, expected in ((source, X), (source[shuffled], X[shuffled])):
                block = part.read(start, start + 5)
                block = block.toarray() if issparse(block) else block
                wrong += not np.array_equal(block, expected[start : start + 5])
        return wrong

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(read, range(4))) == [0, 0, 0, 0]


# What is read, and how much memory it takes


@pytest.mark.slow
@pytest.mark.parametrize("order", ["C", "F"])
def test_reading_a_file_by_blocks_takes_the_memory_of_a_block(tmp_path, order):
    n_rows, n_columns, block_rows = 200_000, 250, 5_000  # 200 MB in blocks of 5 MB
    path = tmp_path / "x.npy"
    writable = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_columns), order == "F")
    writable[::block_rows, 0] = np.arange(n_rows // block_rows)
    del writable
    gc.collect()
    source = open_matrix(path)
    tracemalloc.start()
    total = 0.0
    for start in range(0, n_rows, block_rows):
        total += float(source.read(start, start + block_rows).sum())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == sum(range(n_rows // block_rows))
    assert peak < 11e6  # the block and the one before it


def test_rows_here_and_there_take_little_more_memory_than_they_have(tmp_path):
    source = npy(tmp_path, np.zeros((200_000, 25)))
    rows = np.random.default_rng(0).permutation(200_000)[:20_000]
    tracemalloc.start()
    source[rows].read(0, 20_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 20_000 * 25 * 8


class CountedReads(RowSource):
    """A matrix in memory that writes down what is read of it."""

    def __init__(self, X, boundaries=None):
        self.name = "counted"
        self.boundaries = boundaries
        self.describe(X.shape, X.dtype)
        self.X, self.runs = X, []

    def blocks(self, ranges):
        self.runs += ranges
        return (self.X[start:stop].copy() for start, stop in ranges)

    def identity(self):
        return ()


def test_only_the_rows_of_a_block_are_read():
    source = CountedReads(matrix(shape=(1000, 4)))
    source[100:900].read(50, 60)
    assert source.runs == [(150, 160)]


def test_neighbouring_positions_are_read_together():
    source = CountedReads(np.zeros((100_000, 4096), dtype=np.uint8))
    rows = np.concatenate([np.arange(80_000, 80_400), np.arange(40, 200)])
    source[rows].read(0, len(rows))
    assert len(source.runs) <= 8
    assert sum(stop - start for start, stop in source.runs) == len(rows)


def test_chunks_are_read_once_each_for_positions_in_any_order():
    source = CountedReads(matrix(shape=(1000, 4)), boundaries=tuple(range(0, 1001, 100)))
    source[[950, 110, 190, 905, 150, 120]].read(0, 6)
    assert source.runs == [(110, 191), (905, 951)]


def count_bytes(monkeypatch):
    """Bytes that zip archives hand out, decompressed."""
    handed_out = [0]
    read = zipfile.ZipExtFile._read1

    def counted(self, n):
        data = read(self, n)
        handed_out[0] += len(data)
        return data

    monkeypatch.setattr(zipfile.ZipExtFile, "_read1", counted)
    return handed_out


def test_sparse_blocks_in_order_cost_one_pass_over_the_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = csr_array(rng.random((20_000, 100)) * (rng.random((20_000, 100)) < 0.2))
    save_npz(tmp_path / "x.npz", X)
    source = open_matrix(tmp_path / "x.npz")
    handed_out = count_bytes(monkeypatch)
    for start in range(0, 20_000, 500):
        source.read(start, start + 500)
    assert handed_out[0] < 1.1 * (X.data.nbytes + X.indices.nbytes)
    source.read(0, 10)  # and back to the top
    assert_same(source.read(19_000, 19_010), X[19_000:19_010].toarray())


def test_sparse_blocks_take_the_memory_of_a_block(tmp_path):
    X = csr_array(np.ones((50_000, 20)))
    save_npz(tmp_path / "x.npz", X)  # 12 MB
    source = open_matrix(tmp_path / "x.npz")
    tracemalloc.start()
    for start in range(0, 50_000, 2_000):
        source.read(start, start + 2_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4e6  # a block of 0.5 MB, and pieces of 1 MB


def decoded_groups(monkeypatch):
    """Row groups in the order in which they are decoded from now on."""
    file = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow").ParquetFile
    decoded, batches = [], file.iter_batches

    def counted(self, height, groups, *more, **options):
        decoded.extend(groups)
        return batches(self, height, groups, *more, **options)

    monkeypatch.setattr(file, "iter_batches", counted)
    return decoded


def test_parquet_reads_only_the_row_groups_it_needs_and_each_once_in_order(tmp_path, monkeypatch):
    decoded, X = decoded_groups(monkeypatch), matrix()
    source = parquet(tmp_path, X)
    for start in range(15, 53, 4):
        assert_same(source.read(start, min(start + 4, 53)), X[start : start + 4])
    assert decoded == [1, 2, 3, 4, 5]
    source.read(3, 4)
    source.read(38, 49)
    assert decoded[5:] == [0, 3, 4]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_columns_are_decoded_in_sets_and_rows_are_whole(tmp_path, monkeypatch, ending):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import feather, parquet

    from mvcca.blocks.sources import _arrow

    monkeypatch.setattr(_arrow, "_BATCH_BYTES", 16 * 8 * 5)  # five rows of a set
    X = np.random.default_rng(0).integers(-100, 100, (53, 40)).astype(float)
    columns = {f"c{j}": x.astype(("i2", "f4", "f8")[j % 3]) for j, x in enumerate(X.T)}
    table = pa.table({name: columns[name] for name in sorted(columns)} | {"last": [None] * 53})
    if ending == "parquet":
        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=12)
    else:
        feather.write_feather(table, tmp_path / "x.arrow", compression="lz4", chunksize=12)
    source = _arrow.TableFile(tmp_path / f"x.{ending}", list(columns))
    for step in (4, 7, 12, 30, 53):
        blocks = list(source.blocks([(a, min(a + step, 53)) for a in range(0, 53, step)]))
        assert_same(np.concatenate(blocks), X)
    for start, stop in [(50, 53), (3, 4), (3, 9), (13, 13), (0, 13), (14, 15), (30, 53)]:
        assert_same(source.read(start, stop), X[start:stop])


def test_a_missing_integer_is_named_by_its_row_in_any_set_of_columns(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    from mvcca.blocks.sources import _arrow

    monkeypatch.setattr(_arrow, "_BATCH_BYTES", 16 * 8 * 5)
    columns = {f"c{j}": list(range(53)) for j in range(40)}
    columns["c20"][33] = None
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=20)
    source = open_matrix(tmp_path / "x.parquet")
    assert_same(source.read(0, 30), np.repeat(np.arange(30)[:, None], 40, axis=1))
    with pytest.raises(SourceError, match="'c20', first in row 33"):
        source.read(0, 53)


def test_a_thread_goes_on_where_another_one_stopped(tmp_path, monkeypatch):
    decoded, X = decoded_groups(monkeypatch), matrix()
    source = parquet(tmp_path, X)
    for start in range(0, 50, 5):
        with ThreadPoolExecutor(1) as pool:
            assert_same(pool.submit(source.read, start, start + 5).result(), X[start : start + 5])
    assert decoded == sorted(set(decoded))
    source.read(0, 5)
    place, gone = weakref.ref(source), gc.isenabled()
    gc.disable()
    try:
        del source
        assert place() is None  # without garbage collection, as it holds decoded pages
    finally:
        if gone:
            gc.enable()


@pytest.mark.parametrize("step", [3, 10, 20, 33, 53])
def test_rows_that_are_kept_are_handed_to_the_reader_that_begins_with_them(step):
    X = matrix()
    source = CountedReads(X)
    rows = CheckedRows(source, "x", "CCA")
    head = rows[10:30]
    head.keep(head.read(0, 20))
    rows = pickle.loads(pickle.dumps(rows)) if step == 53 else rows  # kept by this process only
    source.runs.clear()
    blocks = [rows[a : min(a + step, 53)].read(0, min(step, 53 - a)) for a in range(10, 53, step)]
    assert_same(np.concatenate(blocks), X[10:])
    assert step == 53 or sum(stop - start for start, stop in source.runs) == 53 - 30
    source.runs.clear()
    head.keep(head.read(0, 20))
    assert_same(rows[5:8].read(0, 3), X[5:8])  # begins elsewhere
    assert not rows._head


def test_a_row_group_is_decoded_batch_by_batch(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    rows = np.random.default_rng(0).random((200_000, 50), dtype=np.float32)  # 40 MB, one group
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 50)
    parquet.write_table(pa.table({"x": values}), tmp_path / "x.parquet")
    source = open_matrix(tmp_path / "x.parquet")
    program = (
        "import pickle, sys, pyarrow; source = pickle.load(sys.stdin.buffer);"
        "sys.modules['mvcca.blocks.sources._arrow']._BATCH_BYTES = 2**18;"
        "[source.read(start, start + 1000) for start in range(0, 200_000, 1000)];"
        "print(pyarrow.default_memory_pool().max_memory())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(source), check=True, capture_output=True,
    )  # fmt: skip
    assert int(answer.stdout) < 10e6
    assert_same(source.read(150_000, 150_100), rows[150_000:150_100])


# What goes wrong


def test_rows_that_are_not_there_are_an_error(tmp_path, container):
    source = container(tmp_path, matrix())
    for start, stop in [(-1, 3), (0, 54), (5, 4), (54, 54)]:
        with pytest.raises(IndexError, match=f"rows 0 to {N_ROWS}, got {start} to {stop}"):
            source.read(start, stop)
    with pytest.raises(TypeError, match="integer"):
        source.read(0, 2.5)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (53, TypeError, "A single row i"),
        ([0.5], TypeError, "got float64"),
        ([[1, 2]], TypeError, r"shape \(1, 2\)"),
        ((slice(3), slice(2)), TypeError, "Select columns of the blocks"),
        ([53], IndexError, "there are 53"),
        ([-54], IndexError, "there are 53"),
        ([True, False], IndexError, "mask of 53 rows, got one of 2"),
    ],
)
def test_an_index_that_is_no_rows_is_an_error(tmp_path, rows, error, message):
    with pytest.raises(error, match=message):
        npy(tmp_path, matrix())[rows]


def test_a_file_that_changed_is_an_error_that_names_it(tmp_path, file_container):
    source = file_container(tmp_path, matrix())
    before = source.fingerprint()
    source.read(0, 3)
    target = tmp_path / os.path.basename(source.path)
    if target.is_dir():
        target = target / (source.key or "") / "zarr.json"
    else:
        file_container(tmp_path, matrix(seed=1))
    later = time.time() + 1
    os.utime(target, (later, later))
    with pytest.raises(SourceError, match="has changed since it was opened") as caught:
        source.read(0, 3)
    assert str(tmp_path) in str(caught.value)
    assert source.fingerprint() == before  # of what was opened


def test_a_zarr_chunk_that_changed_is_found_by_the_end_of_a_pass(tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    source = zarr_folder(tmp_path, matrix())
    zarr.open_array(tmp_path / "x.zarr", mode="r+")[0, 0] = 77
    later = time.time() + 1
    os.utime(tmp_path / "x.zarr" / "c" / "0" / "0", (later, later))
    source.read(0, 10)
    with pytest.raises(SourceError, match="chunks have changed"):
        source.read(50, 53)


def test_fingerprints_tell_files_and_selections_apart(tmp_path, container):
    X = matrix()
    source = container(tmp_path, X)
    parts = [source, source[2:], source[::2], source[[1, 5, 2]], source[[1, 2, 5]]]
    assert len({part.fingerprint() for part in parts}) == len(parts)
    if container not in (dask_chunks, dask_sparse):  # Dask names an array after how it was made
        assert source[2:][3:].fingerprint() == source[5:].fingerprint()
    assert pickle.loads(pickle.dumps(source)).fingerprint() == source.fingerprint()


def test_rewriting_a_file_changes_its_fingerprint(tmp_path):
    before = npy(tmp_path, matrix()).fingerprint()
    status = (tmp_path / "x.npy").stat()
    os.utime(tmp_path / "x.npy", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert open_matrix(tmp_path / "x.npy").fingerprint() != before


def test_a_file_that_vanished_is_an_error_that_names_it(tmp_path):
    source = npy(tmp_path, matrix())
    (tmp_path / "x.npy").unlink()
    with pytest.raises(SourceError, match=r"x\.npy: no such file"):
        source.read(0, 3)


@pytest.mark.parametrize("make", ONE_FILE, ids=lambda make: make.__name__)
@pytest.mark.parametrize("keep", [0.98, 0.6, 0.02])
def test_a_truncated_file_is_an_error_that_names_it_before_any_row_is_read(tmp_path, make, keep):
    path = Path(make(tmp_path, matrix()).path)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(SourceError) as caught:
        open_matrix(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".h5", ".mat", ".parquet"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 300, os.urandom(300)], ids=len)
def test_a_file_of_something_else_is_an_error_that_names_it(tmp_path, ending, content):
    for library in NEEDS.values():
        pytest.importorskip(library, reason=f"needs {library}")
    path = tmp_path / f"x{ending}"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"cannot be (opened|read)") as caught:
        open_matrix(path)
    assert str(path) in str(caught.value)


def test_an_empty_folder_is_no_zarr(tmp_path):
    pytest.importorskip("zarr", reason="needs zarr")
    (tmp_path / "x.zarr").mkdir()
    with pytest.raises(SourceError, match=r"x\.zarr: cannot be opened"):
        open_matrix(tmp_path / "x.zarr")


def test_a_truncated_file_says_how_many_bytes_are_missing(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((100, 10)))
    with open(tmp_path / "x.npy", "r+b") as file:
        file.truncate(128 + 7_900)
    with pytest.raises(SourceError, match="end at byte 8128, the file has 8028"):
        open_matrix(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "content",
    [
        np.array([["a", None]], dtype=object),
        np.array([["a", "b"]]),
        np.zeros((2, 2), dtype=complex),
        np.zeros((2, 2), dtype=[("a", "f8"), ("b", "i4")]),
        np.zeros((2, 2), dtype="datetime64[s]"),
    ],
    ids=["objects", "strings", "complex", "records", "dates"],
)
def test_what_is_not_real_numbers_is_refused_and_never_unpickled(tmp_path, content):
    np.save(tmp_path / "x.npy", content, allow_pickle=True)
    with pytest.raises(SourceError, match="expected real numbers"):
        open_matrix(tmp_path / "x.npy")


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), ()])
def test_what_is_not_a_matrix_is_refused(tmp_path, shape):
    np.save(tmp_path / "x.npy", np.zeros(shape))
    with pytest.raises(SourceError, match="expected a matrix of shape"):
        open_matrix(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.csv", "x", "x.zarr"])
def test_a_path_that_cannot_be_opened_is_an_error_that_names_it(tmp_path, name):
    with pytest.raises(SourceError, match=f"{name}: no such file"):
        open_matrix(tmp_path / name)


def test_files_and_folders_are_not_taken_for_each_other(tmp_path):
    (tmp_path / "x.npy").mkdir()
    (tmp_path / "x.zarr").write_bytes(b"")
    with pytest.raises(SourceError, match="expected a file, got a folder"):
        open_matrix(tmp_path / "x.npy")
    with pytest.raises(SourceError, match="expected a folder, got a file"):
        open_matrix(tmp_path / "x.zarr")


def test_a_key_of_a_file_with_one_matrix_is_refused(tmp_path):
    npy(tmp_path, matrix())
    with pytest.raises(SourceError, match="holds one matrix; it has no 'a'"):
        open_matrix(tmp_path / "x.npy", key="a")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n", "utf-8")
    with pytest.raises(SourceError, match="a table is one matrix"):
        open_matrix(tmp_path / "x.csv", key="a")


@pytest.mark.parametrize(("make", "name"), [(hdf5_chunks, "x.hdf5"), (zarr_group, "x.zarr")])
def test_of_several_matrices_one_must_be_named(tmp_path, make, name):
    make(tmp_path, matrix())
    with pytest.raises(SourceError, match=r"expected one matrix, found .*'other'"):
        open_matrix(tmp_path / name)
    with pytest.raises(SourceError, match=r"'another'; there are .*'other'"):
        open_matrix(tmp_path / name, key="another")


@pytest.mark.parametrize("library", ["h5py", "zarr", "pyarrow.parquet"])
def test_a_missing_library_is_named_with_the_extra_that_has_it(tmp_path, monkeypatch, library):
    make = {"h5py": hdf5, "zarr": zarr_folder, "pyarrow.parquet": parquet}[library]
    source = make(tmp_path, matrix())
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"pip install 'mvcca\[files\]'"):
        open_matrix(source.path)


def test_an_hdf5_file_open_for_writing_is_refused_with_advice(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["x"] = matrix()
        with pytest.raises(SourceError, match=r"open for writing\. Close it"):
            as_source(file["x"])


def test_a_zarr_array_in_memory_is_refused_with_advice():
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    with pytest.raises(SourceError, match=r"MemoryStore. Copy it to a folder, or .* array\[:\]"):
        as_source(zarr.array(matrix()))


@pytest.mark.parametrize("other", ["csc", "coo"])
def test_sparse_columns_are_refused_with_advice(tmp_path, other):
    save_npz(tmp_path / "x.npz", csc_array(matrix()).asformat(other))
    with pytest.raises(SourceError, match=f"got {other}. .*tocsr"):
        open_matrix(tmp_path / "x.npz")


def test_dense_archives_are_refused_with_advice(tmp_path):
    np.savez(tmp_path / "x.npz", a=matrix())
    with pytest.raises(SourceError, match=r"save each to a \.npy file"):
        open_matrix(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays["indices"].__setitem__(5, 1_000_000),
        lambda arrays: arrays["indices"].__setitem__(5, -1),
    ],
    ids=["beyond", "negative"],
)
def test_sparse_columns_that_are_not_there_are_damage(tmp_path, change):
    save_npz(tmp_path / "x.npz", csr_array(matrix()))
    arrays = dict(np.load(tmp_path / "x.npz"))
    change(arrays)
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(SourceError, match=r"x\.npz is damaged"):
        open_matrix(tmp_path / "x.npz").read(0, N_ROWS)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": np.array([999, N_COLUMNS])},
        {"data": np.zeros(3)},
        {"indptr": np.r_[0, np.arange(N_ROWS)[::-1]]},
        {"indptr": np.r_[0, np.full(N_ROWS - 1, 2**63), N_ROWS * N_COLUMNS].astype(np.uint64)},
        {"indptr": np.linspace(0, N_ROWS * N_COLUMNS, N_ROWS + 1)},
        {"indices": np.zeros(N_ROWS * N_COLUMNS)},
    ],
    ids=["shape", "data", "indptr", "unsigned indptr", "indptr of floats", "indices of floats"],
)
def test_sparse_arrays_that_do_not_belong_together_are_damage(tmp_path, change):
    save_npz(tmp_path / "x.npz", csr_array(np.ones((N_ROWS, N_COLUMNS))))
    np.savez(tmp_path / "x.npz", **{**np.load(tmp_path / "x.npz"), **change})
    with pytest.raises(SourceError, match=r"x\.npz is damaged"):
        open_matrix(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [-1, 7, 10**6, 2**40])
def test_a_sparse_file_read_whole_has_every_index_checked(tmp_path, kind, index):
    rng = np.random.default_rng(0)
    X = csr_array(rng.random((20, 7)) * (rng.random((20, 7)) < 0.3)).asformat(kind)
    save_npz(tmp_path / "x.npz", X)
    file = str(tmp_path / "x.npz")
    np.testing.assert_array_equal(read_whole(file).matrix.toarray(), X.toarray())
    arrays = dict(np.load(tmp_path / "x.npz"))
    name = next(name for name in ("indices", "col", "coords") if name in arrays)
    arrays[name] = arrays[name].astype(np.int64)
    arrays[name].reshape(-1)[-1] = index if kind != "csc" or index != 7 else 20
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(ValueError, match=r"ind|coord|columns"):
        read_whole(file)


def test_a_flipped_byte_in_compressed_data_is_found_by_the_end_of_a_pass(tmp_path):
    X = csr_array(np.random.default_rng(0).random((200, 50)))
    save_npz(tmp_path / "x.npz", X)
    with zipfile.ZipFile(tmp_path / "x.npz") as archive:
        begin = archive.getinfo("data.npy").header_offset
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[begin + 20_000] ^= 4
    (tmp_path / "x.npz").write_bytes(bytes(content))
    source = open_matrix(tmp_path / "x.npz")
    with pytest.raises(SourceError, match=r"x\.npz: cannot be read: .*[Ee]rror|CRC"):
        [source.read(start, start + 20) for start in range(0, 200, 20)]


def test_a_damaged_zarr_chunk_is_an_error_that_names_the_folder(tmp_path):
    source = zarr_group(tmp_path, matrix())
    (chunk,) = (tmp_path / "x.zarr" / "deep" / "x" / "c" / "1").iterdir()
    chunk.write_bytes(b"not a chunk")
    source.read(0, 10)
    with pytest.raises(SourceError, match=r"x\.zarr, 'deep/x': cannot be read"):
        source.read(5, 15)


@pytest.mark.parametrize(
    ("first", "column", "message"),
    [
        (
            [1.0, 2.0, 3.0],
            ["a", "b", "c"],
            "got (large_)?string in 'b'.*or give drop='b', or id='b' if it names",
        ),
        ([1, 2, 3], [1, None, 3], "values are missing in column 'b', first in row 1. Fill them in"),
    ],
)
def test_arrow_columns_must_be_numbers_and_integers_complete(first, column, message):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    with pytest.raises(SourceError, match=message):
        as_source(pa.table({"a": first, "b": column})).read(0, 3)


@pytest.mark.parametrize("column", [[1.0, None, 3.0], [1, None, 3]])
def test_missing_values_beside_decimals_are_nan_as_pandas_wrote_them(tmp_path, column):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.0, 2.0, 3.0], "b": column}), tmp_path / "x.parquet")
    found = open_matrix(tmp_path / "x.parquet")
    np.testing.assert_array_equal(found.read(0, 3), [[1, 1], [2, np.nan], [3, 3]])
    with pytest.raises(ValueError, match=r"first in row 1, column 'b' of .*x\.parquet; 1 such"):
        MVCCA().fit({"x": found, "y": np.eye(3)})


def write_table(table, path, rows=None):
    """Write a table to a Parquet or an Arrow file, in groups of some rows."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    if path.suffix == ".parquet":
        from pyarrow import parquet

        parquet.write_table(table, path, row_group_size=rows)
        return
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=rows)


TABLES = pytest.mark.parametrize("suffix", [".parquet", ".arrow"])


@TABLES
def test_lists_of_fixed_length_are_the_columns_of_a_matrix(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    X = matrix("float32")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X[:, :3].ravel()), 3)
    write_table(pa.table({"embedding": lists}), tmp_path / f"x{suffix}", 7)
    source = open_matrix(tmp_path / f"x{suffix}")
    assert source.columns == ("embedding[0]", "embedding[1]", "embedding[2]")
    assert source.boundaries[:3] == (0, 7, 14)
    assert_same(source.read(5, 40), X[5:40, :3])
    assert_same(source[[30, 2, 16]].read(0, 3), X[[30, 2, 16], :3])
    assert_same(pickle.loads(pickle.dumps(source)).read(0, 9), X[:9, :3])


@TABLES
def test_lists_of_equal_length_need_no_fixed_type(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    X = matrix()
    write_table(pa.table({"a": X.tolist()}), tmp_path / f"x{suffix}", 7)
    source = open_matrix(tmp_path / f"x{suffix}")
    assert source.columns == tuple(f"a[{j}]" for j in range(X.shape[1]))
    assert_same(source.read(4, 30), X[4:30])
    write_table(pa.table({"a": pa.array([], pa.list_(pa.float64()))}), tmp_path / f"none{suffix}")
    with pytest.raises(SourceError, match="the length of the lists in 'a' is unknown"):
        open_matrix(tmp_path / f"none{suffix}")


@TABLES
@pytest.mark.parametrize("beside", ["integers", "floats", "lists"])
def test_a_column_of_lists_is_the_matrix_of_a_file_unless_there_are_two(tmp_path, beside, suffix):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    X = matrix()
    columns = {"integers": list(range(len(X))), "floats": X[:, 0], "lists": X[:, :2].tolist()}
    table = pa.table({"vector": X.tolist(), "other": columns[beside]})
    file = tmp_path / f"x{suffix}"
    write_table(table, file)
    with pytest.raises(SourceError, match="one column of lists, got lists in 'vector'") as no:
        as_source(table)
    assert "as in FILE:vector or key='vector'; from a table in memory, select it" in str(no)
    assert_same(open_matrix(file, "vector").read(0, len(X)), X)
    assert_same(read_whole(f"{file}:vector").matrix, X)
    if beside == "lists":
        with pytest.raises(SourceError, match="'vector', 'other' hold lists; name the one"):
            open_matrix(file)
    else:
        assert_same(open_matrix(file).read(0, len(X)), X)
        assert "left out: 'other'" in read_table(file).took
        assert read_table(file, id="other").ids is not None


def test_one_column_of_a_table_is_named_behind_the_path(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    X = matrix()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    ids = [f"row {i}" for i in range(len(X))]
    for suffix in (".parquet", ".arrow"):
        write_table(pa.table({"id": ids, "vector": lists}), tmp_path / f"x{suffix}")
        np.testing.assert_array_equal(read_whole(f"{tmp_path}/x{suffix}:vector").matrix, X)
        assert read_whole(f"{tmp_path}/x{suffix}:id").matrix.ravel().tolist() == ids
        assert read_whole(f"{tmp_path}/x{suffix}").ids.tolist() == ids


def test_an_arrow_file_that_changes_or_is_none_is_named(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    write_table(pa.table({"a": [1.0, 2.0, 3.0]}), tmp_path / "x.arrow")
    source = open_matrix(tmp_path / "x.arrow")
    write_table(pa.table({"a": [1.0, 2.0, 3.0, 4.0]}), tmp_path / "x.arrow")
    with pytest.raises(SourceError, match="has changed since it was opened"):
        source.read(0, 2)
    (tmp_path / "x.arrow").write_bytes(b"ARROW1 is how such files begin")
    with pytest.raises(SourceError, match=r"x\.arrow: cannot be (opened|read)"):
        open_matrix(tmp_path / "x.arrow")


@TABLES
@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0], [3.0], [4.0, 5.0]], "expected lists of 2 numbers in column 'b', as in row 0"),
        ([[1.0, 2.0], None, [4.0, 5.0]], "values are missing in column 'b', first in row 1"),
        ([[1.0, 2.0], [3.0, None], [4.0, 5.0]], "values are missing in column 'b', first in row 1"),
        (
            [["1", "2"], ["3", "4"], ["5", "6"]],
            "expected columns of numbers, found texts",
        ),
    ],
    ids=["varying", "missing", "incomplete", "words"],
)
def test_lists_must_be_of_numbers_of_fixed_length_and_complete(tmp_path, lists, message, suffix):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    item = pa.string() if isinstance(lists[0][0], str) else pa.float64()
    kind = pa.list_(item) if "as in row" in message else pa.list_(item, 2)
    table = pa.table({"b": pa.array(lists, kind)})
    write_table(table, tmp_path / f"x{suffix}")
    with pytest.raises(SourceError, match=message):
        open_matrix(tmp_path / f"x{suffix}").read(0, 3)


def test_an_index_that_pandas_wrote_is_no_feature(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    frame = pd.DataFrame({"b": [1.5, 2], "a": [3, 4]}, index=["one", "two"])
    frame.to_parquet(tmp_path / "x.parquet")
    source = open_matrix(tmp_path / "x.parquet")
    assert source.columns == ("b", "a")
    np.testing.assert_array_equal(source.read(0, 2), frame.to_numpy())


@pytest.mark.parametrize("content", ["words", "cells", "structure", "complex", "cube"])
def test_a_matlab_variable_that_is_no_matrix_of_numbers_is_refused(tmp_path, content):
    value = {
        "words": "some text",
        "cells": np.array([[1, "a"]], dtype=object),
        "structure": {"x": matrix()},
        "complex": matrix() * 1j,
        "cube": np.ones((2, 3, 4)),
    }[content]
    savemat(tmp_path / "x.mat", {"x": value})
    with pytest.raises(SourceError, match=r"x\.mat.*(expected|no array)") as caught:
        open_matrix(tmp_path / "x.mat", "x")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [mat_compressed, mat_73], ids=lambda make: make.__name__)
def test_of_several_matlab_variables_one_must_be_named(tmp_path, make):
    make(tmp_path, matrix())
    if make is mat_73:
        import h5py

        with h5py.File(tmp_path / "x.mat", "r+") as file:
            file["y"] = matrix()
    with pytest.raises(SourceError, match=r"found 'x', 'y'\. Name the one you mean"):
        open_matrix(tmp_path / "x.mat")
    with pytest.raises(SourceError, match=r"no array 'words'; there are \['x', 'y'\]"):
        open_matrix(tmp_path / "x.mat", "words")


def test_whole_numbers_that_matlab_stores_as_bytes_are_doubles(tmp_path):
    small = np.arange(6.0).reshape(2, 3)
    savemat(tmp_path / "x.mat", {"x": small})
    content = (tmp_path / "x.mat").read_bytes()
    numbers = np.array([9, 48], "<u4").tobytes() + small.tobytes(order="F")  # miDOUBLE, 48 bytes
    begin = content.index(numbers)
    stored = np.array([2, 6], "<u4").tobytes() + small.astype("u1").tobytes(order="F") + b"\0\0"
    length = np.array(len(content) - 136 - len(numbers) + len(stored), "<u4").tobytes()
    (tmp_path / "x.mat").write_bytes(
        content[:132] + length + content[136:begin] + stored + content[begin + len(numbers) :]
    )
    assert_same(open_matrix(tmp_path / "x.mat").read(0, 2), small)


# What is a source, and what is in memory


@pytest.mark.parametrize(
    "block",
    [matrix(), csr_array(matrix()), [[1, 2]], None],
)
def test_what_is_in_memory_is_no_source(block):
    assert as_source(block) is None


def test_maps_that_their_file_does_not_hold_are_no_source(tmp_path):
    np.save(tmp_path / "x.npy", matrix())
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert as_source(mapped + 1) is None
    assert as_source(mapped[[3, 1]]) is None
    assert as_source(mapped[0]) is None
    assert as_source(np.load(tmp_path / "x.npy", mmap_mode="c")) is None
    (tmp_path / "x.npy").unlink()
    assert as_source(mapped) is None


def test_a_source_is_its_own_source(tmp_path):
    source = npy(tmp_path, matrix())
    assert as_source(source) is source
    assert source[:] is source


def test_unknown_chunk_sizes_are_refused_with_advice():
    da = pytest.importorskip("dask.array")
    rows = da.from_array(matrix(), chunks=(10, 7))
    with pytest.raises(SourceError, match=r"compute_chunk_sizes\(\)"):
        as_source(rows[rows[:, 0] > 0])


def test_a_selection_of_a_dask_array_is_a_dask_array_and_computes_nothing():
    da = pytest.importorskip("dask.array")
    computed = []

    def counted(block):
        computed.append(len(block))
        return block

    X = matrix()
    source = as_source(da.from_array(X, chunks=(10, 7)).map_blocks(counted, meta=X[:0]))
    selected = source[12:35][[3, 1, 20]]
    assert computed == []
    np.testing.assert_array_equal(selected.array.compute(scheduler="sync"), X[[15, 13, 32]])
    computed.clear()
    source.read(12, 18)
    assert computed == [10]


@pytest.mark.parametrize("inline", [True, False])
def test_a_graph_that_carries_its_data_is_warned_of(tmp_path, inline):
    da = pytest.importorskip("dask.array")
    large = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float64, (130_000, 100))
    with pytest.warns(UserWarning, match=r"carries 104 MB of data.*mvcca\.open_matrix"):
        as_source(da.from_array(large, chunks=(10_000, 100), inline_array=inline, name=False) * 2)


def test_a_graph_that_is_a_recipe_is_not_warned_of():
    da = pytest.importorskip("dask.array")
    assert as_source(da.zeros((10**9, 100), chunks=(10**6, 100))).shape == (10**9, 100)


def test_a_module_of_the_user_with_the_name_of_a_library_does_no_harm(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", ModuleType("datasets"))
    assert as_source(np.eye(3)) is None


# ---- files that claim more than they hold, or hold it elsewhere ----------------------------------


def zarr_of_rows(path, rows, **options):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    return zarr.create_array(path, shape=rows.shape, dtype=rows.dtype, chunks=(10, 3), **options)


@pytest.mark.parametrize("layout", [{"zarr_format": 2}, {"zarr_format": 3}, {"shards": (20, 6)}])
def test_missing_chunks_of_zarr_are_warned_of_with_their_number(tmp_path, layout):
    rows = np.random.default_rng(0).random((400, 6))
    array = zarr_of_rows(tmp_path / "x.zarr", rows, **layout)
    array[:350] = rows[:350]  # here the writer died
    with pytest.warns(
        UserWarning, match=r"x\.zarr: 10 of 80 chunks .*, in 50 of 400 rows; .* 0\.0"
    ):
        found = open_matrix(tmp_path / "x.zarr")
    assert not found.read(350, 400).any()
    with pytest.warns(UserWarning, match="10 of 80 chunks"):
        as_source(array)
    array[350:] = rows[350:]
    np.testing.assert_array_equal(open_matrix(tmp_path / "x.zarr").read(0, 400), rows)


@pytest.mark.parametrize("layout", [{}, {"shards": (20, 6)}])
def test_fill_values_that_were_written_are_not_missing(tmp_path, layout):
    config = {"write_empty_chunks": True}
    array = zarr_of_rows(tmp_path / "x.zarr", np.zeros((41, 6)), config=config, **layout)
    array[:] = 0
    assert not open_matrix(tmp_path / "x.zarr").read(0, 41).any()


def test_missing_chunks_of_hdf5_are_warned_of_with_their_number(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    rows = np.random.default_rng(0).random((400, 6))
    for name, transposed in (("x.h5", False), ("x.mat", True)):
        part = rows.T if transposed else rows
        with h5py.File(tmp_path / name, "w", userblock_size=512) as file:
            chunks = (3, 10) if transposed else (10, 3)
            new = file.create_dataset("x", part.shape, "f8", chunks=chunks, fillvalue=-1)
            new.attrs["MATLAB_class"] = np.bytes_("double")
            if transposed:
                new[:, :350] = part[:, :350]
            else:
                new[:350] = part[:350]
        with pytest.warns(
            UserWarning, match=r"10 of 80 .* 50 of 400 rows; they were never written"
        ):
            assert (open_matrix(tmp_path / name).read(350, 400) == -1).all()


@pytest.mark.parametrize("kind", ["external", "virtual", "never written"])
def test_numbers_that_are_not_in_the_hdf5_file_are_refused(tmp_path, kind):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    (tmp_path / "secret").write_bytes(np.full((4, 3), 7.0).tobytes())
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.full((4, 3), 7.0)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "external":
            place = [(str(tmp_path / "secret"), 0, h5py.h5f.UNLIMITED)]
            file.create_dataset("x", (4, 3), "f8", external=place)
        elif kind == "virtual":
            layout = h5py.VirtualLayout((4, 3), "f8")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (4, 3))
            file.create_virtual_dataset("x", layout)
        else:
            file.create_dataset("x", (4, 3), "f8")
    message = "never written" if kind == "never written" else "numbers are in other files"
    with pytest.raises(SourceError, match=message):
        open_matrix(tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r") as file, pytest.raises(SourceError, match=message):
        as_source(file["x"])


def _claims(folder):
    """Files of a few bytes that claim terabytes; the first ones by h5py and zarr themselves."""
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    for name, options in {
        "contiguous.h5": {},
        "chunks.h5": {"chunks": (1, 10**6)},
        "packed.h5": {"chunks": (4, 10**6), "compression": "gzip"},
        "tiny.h5": {"chunks": (1, 1)},
    }.items():
        with h5py.File(folder / name, "w") as file:
            new = file.create_dataset("x", (10**7, 10**6), "f8", **options)
            if options:
                new[0, :1] = 1
    for name, chunks in {"rows.zarr": (1, 10**6), "cells.zarr": (1, 1), "whole.zarr": None}.items():
        array = zarr.create_array(
            folder / name, shape=(10**7, 10**6), chunks=chunks or (10**7, 10**6), dtype="f8"
        )
        if chunks:
            array[0, :1] = 1
    array = zarr.create_array(folder / "bytes.zarr", shape=(10**9, 1), chunks=(1, 1), dtype="u1")
    array[0] = 1
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(0)), 10**9)
    parquet.write_table(pa.table({"x": lists}), folder / "lists.parquet")
    one = np.ones(1)
    members = {"format": np.array("csr"), "shape": np.array([1, 1]), "data": one, "indptr": one}
    with zipfile.ZipFile(folder / "sparse.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in members.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, values)
        with archive.open("indices.npy", "w") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": (10**13,)}
            np.lib.format.write_array_header_1_0(file, header)
    return sorted(path for path in folder.iterdir() if path.suffix != ".part")


def test_files_that_claim_more_than_they_can_hold_are_refused_at_once(tmp_path):
    tracemalloc.start()
    try:
        for path in _claims(tmp_path):
            tracemalloc.reset_peak()
            start = time.process_time()
            with pytest.raises(SourceError, match=path.name):
                read_whole(str(path))
            with pytest.raises(SourceError, match=path.name):
                open_matrix(path)
            assert time.process_time() - start < 5, path
            assert tracemalloc.get_traced_memory()[1] < 100e6, path
    finally:
        tracemalloc.stop()


def test_compressed_and_sparse_files_may_claim_much(tmp_path):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.zeros((2000, 5000)), compression="gzip")
    assert open_matrix(tmp_path / "x.h5").shape == (2000, 5000)
    X = csr_array(([1.0], ([3], [10**6 - 1])), shape=(10**6, 10**6))
    save_npz(tmp_path / "x.npz", X)
    savemat(tmp_path / "x.mat", {"x": X.tocsc()}, do_compression=True)
    for name in ("x.npz", "x.mat"):
        assert open_matrix(tmp_path / name).read(3, 4).indices.tolist() == [10**6 - 1]


@pytest.mark.parametrize("text", [False, True])
def test_checksums_of_parquet_pages_are_verified(tmp_path, text):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    from pyarrow import parquet

    values = np.random.default_rng(0).random(50)
    column = [f"class {value}" for value in values] if text else values
    options = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    parquet.write_table(pa.table({"x": column}), tmp_path / "x.parquet", **options)
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    changed = content.find(column[20].encode() if text else values[20].tobytes())
    content[changed + 6] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"x\.parquet: cannot be read.* CRC"):
        read_whole(str(tmp_path / "x.parquet"))


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_inconsistent_offsets_are_found_before_the_entries_are_read(tmp_path, kind):
    n = 4 * 10**6
    arrays = {"format": np.array(kind), "shape": np.array([60, 60])}
    arrays["data"] = np.zeros((n, 1, 1) if kind == "bsr" else n)
    arrays |= {"indices": np.zeros(n, dtype=np.int64), "indptr": np.arange(61)}
    np.savez_compressed(tmp_path / "x.npz", **arrays)
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="row offsets are inconsistent"):
            read_labels(str(tmp_path / "x.npz"))
        assert tracemalloc.get_traced_memory()[1] < 5e6  # the arrays take 64 MB
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_what_is_no_regular_file_is_refused_rather_than_waited_for(tmp_path):
    zarr_group(tmp_path, matrix())
    os.rename(tmp_path / "x.zarr", tmp_path / "y.zarr")
    (tmp_path / "y.zarr" / "deep" / "x" / "c" / "1" / "0").unlink()
    os.mkfifo(tmp_path / "y.zarr" / "deep" / "x" / "c" / "1" / "0")
    paths = [tmp_path / "y.zarr"]
    endings = ("npy", "npz", "h5", "zarr", "mat", "parquet", "arrow", "csv", "tsv", "txt", "vec")
    for ending in endings:
        paths += [tmp_path / f"fifo.{ending}", tmp_path / f"zero.{ending}"]
        os.mkfifo(paths[-2])
        paths[-1].symlink_to("/dev/zero")
    readers = (open_matrix, open_view_of, read_labels, read_ids, read_label_vectors)

    def read_all():
        return [_refusal(reader, str(path)) for path in paths for reader in readers]

    pool = ThreadPoolExecutor(1)
    refusals = pool.submit(read_all).result(timeout=60)
    assert all(isinstance(refusal, SourceError) for refusal in refusals)
    pool.shutdown()


def open_view_of(path):
    return open_tables({"view": path})["view"].matrix


def _refusal(reader, path):
    try:
        return reader(path)
    except SourceError as error:
        return error


def test_texts_are_not_padded_to_an_absurd_length(tmp_path):
    (tmp_path / "y.csv").write_text("x" * 100_000 + "\n" + "cat\n" * 10_000)
    with pytest.raises(SourceError, match="10,001 texts padded to the longest"):
        read_labels(str(tmp_path / "y.csv"))
    with pytest.raises(SourceError, match="10,001 texts padded to the longest"):
        read_ids(str(tmp_path / "y.csv"))
