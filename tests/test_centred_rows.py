"""`CentredRows`: products with centred rows, however they are stored, equal those of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array, save_npz

from mvcca import config_context, open_matrix
from mvcca.blocks import as_block
from mvcca.problem.centred_rows import CentredRows

N, D, K = 40, 7, 3
RNG = np.random.default_rng(0)
X = np.where(RNG.random((N, D)) < 0.4, RNG.normal(size=(N, D)) + 2, 0)
X[:, 2] = 5 + RNG.random(N)  # a full column, which is shifted
X[:, 3] = 1.5  # a constant one
V, U = RNG.normal(size=(D, K)), RNG.normal(size=(N, K))
WEIGHTS = RNG.integers(0, 4, N).astype(float)


def dask_of(matrix):
    return pytest.importorskip("dask.array").from_array(matrix, chunks=(11, -1))


def saved(folder, matrix):
    np.save(folder / "X.npy", matrix)
    return open_matrix(folder / "X.npy")


def saved_sparse(folder, matrix):
    save_npz(folder / "X.npz", csr_array(matrix))
    return open_matrix(folder / "X.npz")


STORED = {
    "dense": lambda _, matrix: matrix,
    "column-major": lambda _, matrix: np.asfortranarray(matrix),
    "CSR": lambda _, matrix: csr_array(matrix),
    ".npy": saved,
    ".npz": saved_sparse,
    "Dask": lambda _, matrix: dask_of(matrix),
}


def expected(matrix, weights, center=True):
    """X̄ by its definition, and the mean."""
    w = np.ones(len(matrix)) if weights is None else weights
    mean = np.average(matrix, axis=0, weights=w) if center else np.zeros(matrix.shape[1])
    total = w.sum() - 1 if center else w.sum()
    return np.sqrt(w / total)[:, None] * (matrix - mean), mean


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("storage", STORED)
def test_products_are_those_of_centred_rows(storage, weights, center, tmp_path):
    with config_context(block_rows=13):
        rows = CentredRows.of(as_block(STORED[storage](tmp_path, X)), weights, center=center)
        centred, mean = expected(X, weights, center)
        assert_allclose(rows.mean, mean, atol=1e-14)
        assert_allclose(rows.variances, (centred**2).sum(axis=0), atol=1e-14)
        assert_allclose(rows.forward(V), centred @ V, atol=1e-13)
        assert_allclose(rows.backward(U), centred.T @ U, atol=1e-13)
        assert (rows.n_rows, rows.n_features) == X.shape


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(
    "matrix", [X, csr_array(X), X.astype(np.float32)], ids=["dense", "CSR", "float32"]
)
def test_columns_in_other_units_are_multiplied(matrix, weights):
    factors = np.linspace(0.5, 3, X.shape[1])
    rows = CentredRows.of(as_block(matrix), weights).in_units(factors)
    centred, _ = expected(np.asarray(as_block(matrix).dense().matrix, dtype=float), weights)
    assert_allclose(rows.variances, factors**2 * (centred**2).sum(axis=0), atol=1e-13)
    assert_allclose(rows.forward(V), centred * factors @ V, atol=1e-12)
    assert_allclose(rows.backward(U), (centred * factors).T @ U, atol=1e-12)


@pytest.mark.parametrize("storage", STORED)
def test_means_far_above_deviations_cost_no_digits(storage, tmp_path):
    far = X + 1e7
    rows = CentredRows.of(as_block(STORED[storage](tmp_path, far)))
    centred, _ = expected(far, None)
    centred -= centred.mean(axis=0)
    left = rows.forward(V) - centred @ V  # a shift by the rounding of the mean is the same in all
    assert_allclose(left, left.mean(axis=0) * np.ones((N, 1)), atol=1e-12)
    assert_allclose(rows.backward(U), centred.T @ U, atol=1e-8)
    assert_array_equal(rows.backward(U)[3], 0)


def test_constant_columns_have_no_variance_and_no_products():
    for matrix in (X, csr_array(X)):
        rows = CentredRows.of(as_block(matrix))
        assert rows.variances[3] == 0
        assert_array_equal(rows.backward(U)[3], 0)


def test_float32_rows_are_multiplied_in_float64():
    low = X.astype(np.float32)
    for matrix in (low, csr_array(low)):
        rows = CentredRows.of(as_block(matrix))
        centred, _ = expected(low.astype(float), None)
        assert_allclose(rows.forward(V), centred @ V, atol=1e-13)


def test_sparse_rows_stay_sparse():
    rows = CentredRows.of(as_block(csr_array(X)))
    assert rows.parts[0].is_sparse
    assert rows.parts[0].matrix.nnz <= np.count_nonzero(X)


def test_the_rows_of_the_caller_do_not_change():
    before = X.copy()
    rows = CentredRows.of(as_block(X))
    scores = U.copy()
    rows.backward(scores)
    rows.forward(V)
    assert_array_equal(X, before)
    assert_array_equal(scores, U)
