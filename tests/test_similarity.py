"""Label similarities, and the similarity matrix that is multiplied without being held."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mvcca.machine.compiled_loops import (
    add_rows_by_code,
    fill_by_difference,
    inner_products_to_exponents,
    pack_label_sets,
)
from mvcca.similarity import LabelGram, cosine, equal, exponential, squared_exponential
from mvcca.views import Labels

ORACLES = {
    "sqexp": lambda A, B, sigma: np.exp(-cdist(A, B, "sqeuclidean") / (2 * sigma)),
    "exp": lambda A, B, sigma: np.exp(-cdist(A, B) / sigma),
    "cosine": lambda A, B, _: 1 - cdist(A, B, "cosine"),
    "equal": lambda A, B, _: (cdist(A, B) == 0).astype(float),
}


def binary_table(n: int = 97, n_labels: int = 130, seed: int = 0) -> Labels:
    indicators = np.random.default_rng(seed).random((n, n_labels)) < 0.03
    indicators[:, 0] |= ~indicators.any(axis=1)  # no empty sets: cdist's cosine is NaN there
    return Labels.of(indicators.astype(int)).distinct


def real_table(n: int = 97, n_dims: int = 7, seed: int = 0) -> Labels:
    return Labels(np.random.default_rng(seed).standard_normal((n, n_dims)))


@pytest.mark.parametrize("function", [squared_exponential, exponential, cosine, equal])
def test_formulas_agree_with_scipy_distances(function):
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((11, 5)), rng.standard_normal((7, 5))
    B[0] = A[3]
    name = {squared_exponential: "sqexp", exponential: "exp", cosine: "cosine", equal: "equal"}
    extra = {"sigma": 0.7} if function in (squared_exponential, exponential) else {}
    expected = ORACLES[name[function]](A, B, 0.7)
    # the distance of equal vectors is a root of what rounding left of zero
    tolerance = 1e-7 if function is exponential else 1e-13
    np.testing.assert_allclose(function(A, B, **extra), expected, atol=tolerance)


def test_cosine_of_a_zero_vector_is_zero():
    assert cosine(np.zeros((1, 3)), np.ones((2, 3))).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("tile_rows", [1, 2, 13, 96, 97, 1000])
@pytest.mark.parametrize("similarity", ["sqexp", "exp", "cosine", "equal"])
@pytest.mark.parametrize("table", [binary_table(), real_table()], ids=["sets", "real"])
def test_products_with_the_gram_agree_with_the_held_matrix(table, similarity, tile_rows):
    rng = np.random.default_rng(2)
    S, V = rng.standard_normal((len(table), 6)), rng.random((len(table), 2))
    G = ORACLES[similarity](table.dense(), table.dense(), 0.8)
    gram = LabelGram(table, similarity, 0.8, tile_rows)
    tolerance = 1e-6 if similarity == "exp" and not table.are_sets else 1e-12
    np.testing.assert_allclose(gram.quadratic(S), S.T @ G @ S, atol=tolerance * len(table))
    np.testing.assert_allclose(gram.times(V), G @ V, atol=tolerance * len(table))


def test_a_callable_similarity_equals_the_same_formula_by_name():
    table = binary_table()
    S = np.random.default_rng(3).standard_normal((len(table), 4))
    named = LabelGram(table, "sqexp", 2.0).quadratic(S)
    called = LabelGram(table, lambda A, B: squared_exponential(A, B, 2.0)).quadratic(S)
    np.testing.assert_allclose(called, named, rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (lambda A, B: np.arange(len(A) * len(B), dtype=float).reshape(len(A), -1), "symmetric"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "finite"),
        (lambda A, _: np.ones(len(A)), "one value per pair"),
    ],
)
def test_a_callable_that_is_no_similarity_is_refused(function, complaint):
    with pytest.raises(ValueError, match=complaint):
        LabelGram(binary_table(), function)


def test_unknown_similarity_is_refused():
    with pytest.raises(ValueError, match="unknown similarity 'dot'"):
        LabelGram(binary_table(), "dot")


def test_a_tiny_bandwidth_is_the_identity():
    table = binary_table()
    S = np.random.default_rng(4).standard_normal((len(table), 3))
    np.testing.assert_array_equal(LabelGram(table, "sqexp", 1e-320).times(S), S)


def test_real_label_vectors_far_from_the_origin_keep_their_distances_in_float32():
    table = real_table(60, 5)
    far = Labels(table.vectors + 1e3)
    S = np.random.default_rng(5).standard_normal((60, 3)).astype(np.float32)
    near, away = LabelGram(table).times(S), LabelGram(far).times(S)
    assert np.abs(near - away).max() / np.abs(near).max() <= 1e-4


# ---- kernels and their plain twins ---------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_popcount_kernel_equals_counting_differences(n_labels, dtype):
    rng = np.random.default_rng(n_labels)
    table = Labels.of((rng.random((40, n_labels)) < 0.4).astype(int)).distinct
    packed, dense = pack_label_sets(table.vectors), table.dense()
    values = rng.random(n_labels + 1).astype(dtype)
    out = np.empty((len(table), len(table)), dtype)
    fill_by_difference(packed, packed, values, out)
    differences = (dense[:, None] != dense[None]).sum(axis=2)
    np.testing.assert_array_equal(out, values[differences])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exponent_kernel_equals_expanded_distances(dtype):
    rng = np.random.default_rng(6)
    A, B = rng.standard_normal((9, 4)).astype(dtype), rng.standard_normal((5, 4)).astype(dtype)
    tile = A @ B.T
    inner_products_to_exponents(tile, (A * A).sum(1) / 2, (B * B).sum(1) / 2, 1 / 0.3)
    np.testing.assert_allclose(
        tile, -cdist(A, B, "sqeuclidean") / 0.6, rtol=1e-4 if dtype == np.float32 else 1e-12
    )
    assert tile.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_grouped_row_sum_equals_adding_row_by_row(dtype):
    rng = np.random.default_rng(7)
    X, codes = rng.standard_normal((50, 3)).astype(dtype), rng.integers(0, 6, 50)
    weights = rng.random(50)
    sums, expected = np.zeros((6, 3)), np.zeros((6, 3))
    add_rows_by_code(X, codes, weights, sums)
    np.add.at(expected, codes, weights[:, None] * X.astype(float))
    np.testing.assert_allclose(sums, expected, rtol=1e-13)
