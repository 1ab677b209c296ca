"""Every operation of blocks, for every kind of storage, against NumPy."""

from __future__ import annotations

import array_api_strict
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_matrix, csr_array, dok_array, save_npz

from mvcca.blocks import KINDS, as_block, is_mapping, kind_of, open_matrix, stack

N, D = 23, 5
rng = np.random.default_rng(0)
X = np.round(rng.normal(size=(N, D)), 3) * (rng.random((N, D)) < 0.7)
X[3] = 0
X[:, 4] = np.round(rng.normal(size=N) + 3, 3)  # a full column
X[7, 4] = X[3, 4] = 0
WEIGHTS, MEAN, CODES = rng.random(N), rng.normal(size=D), rng.integers(0, 4, N)
U, V = rng.normal(size=(N, 3)), rng.normal(size=(D, 2))


def in_file(X, folder):
    np.save(folder / "x.npy", X)
    return np.load(folder / "x.npy", mmap_mode="r")


STORED = {
    "NumPy": lambda X, _: X.copy(),
    "NumPy, columns first": lambda X, _: np.asfortranarray(X),
    "CSR": lambda X, _: csr_array(X),
    "CSC matrix": lambda X, _: csc_matrix(X),
    "DataFrame": lambda X, _: pd.DataFrame(X),
    "array API": lambda X, _: array_api_strict.asarray(X.copy()),
    "file": in_file,
    "Dask": lambda X, _: da.from_array(X, chunks=(7, 2)),
    "sparse Dask": lambda X, _: da.from_array(X, chunks=(7, D)).map_blocks(
        csr_array, meta=csr_array((0, D))
    ),
}

# An operation of a block of any kind, and the same in NumPy.
CENTRED = X - MEAN
OPERATIONS = {
    "X V": (lambda block: block @ V, X @ V),
    "Xᵀ U": (lambda block: block.cross(U), X.T @ U),
    "column sums": (lambda block: block.column_sums(), X.sum(axis=0)),
    "weighted sums": (lambda block: block.column_sums(WEIGHTS), WEIGHTS @ X),
    "column means": (lambda block: block.column_means(), X.mean(axis=0)),
    "weighted means": (
        lambda block: block.column_means(WEIGHTS),
        np.average(X, axis=0, weights=WEIGHTS),
    ),
    "means": (lambda block: block.mean_and_variance()[0], X.mean(axis=0)),
    "variances": (lambda block: block.mean_and_variance()[1], X.var(axis=0)),
    "smallest": (lambda block: block.extremes()[0], X.min(axis=0)),
    "largest": (lambda block: block.extremes()[1], X.max(axis=0)),
    "centred cross": (lambda block: block.centred_cross(U, MEAN), CENTRED.T @ U),
    "centred squares": (lambda block: block.centred_squares(MEAN), (CENTRED**2).sum(axis=0)),
    "weighted squares": (
        lambda block: block.centred_squares(MEAN, WEIGHTS),
        WEIGHTS @ CENTRED**2,
    ),
    "squared norms": (lambda block: block.squared_norms(MEAN), (CENTRED**2).sum(axis=1)),
    "Gram matrix": (lambda block: block.gram(MEAN**2), (X * MEAN**2) @ X.T),
    "row squares": (lambda block: block.row_squares(), (X**2).sum(axis=1)),
    "projection": (lambda block: block.project(MEAN, V), CENTRED @ V),
    "sums by code": (
        lambda block: block.add_by_code(np.zeros((4, D)), CODES, WEIGHTS),
        (WEIGHTS[:, None] * (CODES[:, None] == np.arange(4))).T @ X,
    ),
    "rows in memory": (lambda block: block.in_memory(), X),
    "rows on the host": (lambda block: block.on_host(), X),
    "dense rows": (lambda block: block.dense(), X),
    "plain rows": (lambda block: block.plain(), X),
    "promoted": (lambda block: block.promoted(np.dtype(np.float64)), X),
    "canonical": (lambda block: block.canonical(), X),
    "about": (lambda block: block.about(MEAN), CENTRED),
    "scaled": (lambda block: block.scaled(MEAN), X * MEAN),
    "a range": (lambda block: block.take(slice(2, 9)), X[2:9]),
    "positions": (lambda block: block.take(np.array([9, 0, 9])), X[[9, 0, 9]]),
    "no rows": (lambda block: block.take(slice(4, 4)), X[4:4]),
    "columns": (lambda block: block.by_columns()[:, [1, 3]], X[:, [1, 3]]),
    "stacked": (lambda block: stack([block, block.take(slice(0, 2))]), np.vstack([X, X[:2]])),
    "side by side": (lambda block: stack([block, block], axis=1), np.hstack([X, X])),
    "booleans": (lambda block: block.booleans(), X != 0),
    "Dask array": (lambda block: as_block(block.as_dask()), X),
    "mapped": (lambda block: as_block(block.mapped(lambda X: as_block(X) @ V, 2)), X @ V),
    "in pieces": (lambda block: stack(block.in_pieces(2**22)), X),
    "row blocks": (lambda block: stack(block.row_blocks()), X),
}


@pytest.fixture(params=STORED)
def block(request, tmp_path):
    return as_block(STORED[request.param](X, tmp_path))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_is_that_of_numpy(block, operation):
    function, expected = OPERATIONS[operation]
    result = as_block(function(block)).dense().matrix
    assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


def test_description(block):
    assert block.shape == (N, D)
    assert block.dtype == np.float64
    assert 0 < block.row_bytes <= 16 * D
    assert block.holds_numbers()
    assert not block.holds_texts()
    assert block.is_finite()
    assert isinstance(block.storage, str)


def test_equal_rows_have_equal_hashes_however_they_are_stored(block):
    assert_array_equal(block.row_hashes(), as_block(X).row_hashes())


def test_digests_tell_rows_apart(block):
    assert block.digest() == block.digest()
    assert block.digest() != block.take(np.arange(N)[::-1]).digest()


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("other", [X[:, 1:4].copy(), csr_array(X[:, 1:4])], ids=["dense", "CSR"])
def test_scatter_with_other_rows(block, other, weights):
    w = np.ones(N) if weights is None else weights
    means = [np.average(matrix, axis=0, weights=w) for matrix in (X, X[:, 1:4])]
    mean, other_mean, left, scatter = block.scatter_with(as_block(other), weights)
    assert_allclose(mean, means[0], atol=1e-12)
    assert_allclose(other_mean + left, means[1], atol=1e-12)
    expected = (w[:, None] * (X - means[0])).T @ (X[:, 1:4] - means[1])
    assert_allclose(scatter, expected, atol=1e-12)


def test_centred_rows_and_the_rest_of_the_mean(block):
    rows, left = block.centred(MEAN)
    assert_allclose(rows.dense().matrix - left, X - MEAN, atol=1e-12)


def test_empty_rows_are_known_of_sparse_rows_only(block):
    empty = block.empty_rows()
    if empty is not None:
        assert block.is_sparse
        assert_array_equal(empty, ~X.any(axis=1))


def test_numbers_that_are_not_finite_are_found(tmp_path):
    bad = X.copy()
    bad[5, 4] = np.nan
    for stored in STORED.values():
        assert not as_block(stored(bad, tmp_path)).is_finite()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_in_the_table(kind, tmp_path):
    assert kind in {kind_of(stored(X, tmp_path)) for stored in STORED.values()}


@pytest.mark.parametrize("stored", STORED)
def test_blocks_know_whether_their_rows_are_sparse(stored, tmp_path):
    sparse = stored in ("CSR", "CSC matrix", "sparse Dask")
    assert as_block(STORED[stored](X, tmp_path)).is_sparse == sparse


def test_a_file_of_sparse_rows_is_sparse_and_knows_its_empty_rows(tmp_path):
    rows = csr_array(np.where(np.arange(N)[:, None] % 2, X, 0))
    save_npz(tmp_path / "rows.npz", rows)
    block = as_block(open_matrix(tmp_path / "rows.npz"))
    assert block.is_sparse
    assert block.take(slice(3)).is_sparse
    assert_array_equal(block.empty_rows(), ~rows.toarray().any(axis=1))


@pytest.mark.parametrize("make", [csr_array, csc_matrix, coo_array])
def test_nearly_full_columns_of_any_sparse_format_are_shifted(make):
    expected = [0, 0, 0, 0, X[:, 4].sum() / np.count_nonzero(X[:, 4])]
    block = as_block(make(X))
    shift = block.origin()
    rows = block.about(shift)
    assert rows.is_sparse
    assert_allclose(shift, expected)
    assert_allclose(rows.dense().matrix + shift, X, atol=1e-12)


def test_numbers_whose_sum_overflows_are_finite():
    assert as_block(np.full((4, 2), 1e308)).is_finite()
    assert not as_block(np.array([[1e308, np.inf], [np.nan, 1e308]])).is_finite()


def test_a_block_is_its_own_block(block):
    assert as_block(block) is block


def test_repeated_entries_are_summed_in_a_copy():
    matrix = csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2))
    assert_array_equal(as_block(matrix).canonical().dense().matrix, [[2.0, 1.0]])
    assert matrix.nnz == 3


@pytest.mark.parametrize("matrix", [dok_array((2, 2)), coo_array((2, 2)), np.eye(2), [[1.0]]])
def test_matrices_are_no_mappings_of_names(matrix):
    assert not is_mapping(matrix)
    assert is_mapping({"a": matrix})
