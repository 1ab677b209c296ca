"""How many digits a fit keeps: float32 rows, ill-conditioned views, sparse rows far from zero."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from mvcca import CCA, KCCA, MLCCA, MVCCA, MVMLCCA, Views
from mvcca.linalg import DigitsLost, Whitener, canonical_directions
from mvcca.problem import _rows
from mvcca.statistics import Moments


def correlated(n, widths, condition=1.0, seed=17):
    """Views that share three latent variables, the first as ill-conditioned as asked for."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    views = [z @ rng.normal(size=(3, p)) * 0.7 + rng.normal(size=(n, p)) for p in widths]
    p = widths[0]
    scaled = views[0] * np.logspace(0, -np.log10(condition), p)
    return [scaled @ np.linalg.qr(rng.normal(size=(p, p)))[0], *views[1:]]


@pytest.fixture
def products(monkeypatch):
    """Precisions in which moments are taken, pass by pass."""
    taken = []
    of = Moments.of

    def watched(views, weights=None, dtype=np.float64):
        taken.append(np.dtype(dtype).name)
        return of(views, weights, dtype)

    monkeypatch.setattr(_rows.Moments, "of", watched)
    return taken


def test_float32_indicators_of_rare_classes_give_the_model_of_float64():
    rng = np.random.default_rng(28)
    c = rng.choice(6, 5000, p=[0.9, 0.05, 0.02, 0.02, 0.005, 0.005])
    d = np.where(rng.random(5000) < 0.5, c, rng.integers(0, 6, 5000))
    one_hot = np.eye(6, dtype=np.float32)
    exact = CCA(1).fit(one_hot[c].astype(float), one_hot[d].astype(float))
    found = CCA(1).fit(one_hot[c], one_hot[d])
    assert_allclose(found.canonical_correlations_, exact.canonical_correlations_, atol=1e-9)


@pytest.mark.parametrize("condition", [1e2, 1e3, 5e3])
def test_ill_conditioned_float32_rows_give_the_model_of_float64(condition):
    X, Y = correlated(500, (10, 8), condition)
    exact = CCA(8).fit(X, Y).canonical_correlations_
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    assert_allclose(CCA(8).fit(X, Y).canonical_correlations_, exact, atol=1e-4)
    batches = CCA(8)
    for rows in np.array_split(np.arange(500), 7):
        batches.partial_fit(X[rows], Y[rows])
    assert_allclose(batches.canonical_correlations_, exact, atol=1e-4)


@pytest.mark.parametrize(
    "model", [MVCCA(3, reg=0), MLCCA(3, reg=0), MVMLCCA(3, within="sample", reg=0)]
)
def test_float32_rows_of_three_views_give_the_model_of_float64(model):
    views = correlated(500, (10, 8, 6), 3e3)
    labels = views[1].argmax(axis=1)
    exact = clone(model).fit(views, labels).eigenvalues_
    found = model.fit([view.astype(np.float32) for view in views], labels).eigenvalues_
    assert_allclose(found, exact, atol=1e-4)


def test_views_that_determine_each_other_correlate_no_more_than_1():
    X = correlated(2000, (6, 1), 40.0)[0].astype(np.float32)
    model = CCA(6).fit(X, X @ np.diag([1, 2, 3, 4, 5, 6]).astype(np.float32))
    assert (model.canonical_correlations_ <= 1 + 1e-6).all()
    assert_allclose(model.canonical_correlations_, 1, atol=1e-4)


def test_well_conditioned_float32_rows_are_multiplied_in_float32_and_once(products):
    X, Y = correlated(500, (10, 8))
    CCA(2).fit(X.astype(np.float32), Y.astype(np.float32))
    assert products == ["float32"]


def test_ill_conditioned_float32_rows_are_multiplied_again_in_float64(products):
    X, Y = correlated(500, (10, 8), 1e3)
    CCA(2).fit(X.astype(np.float32), Y.astype(np.float32))
    assert products == ["float32", "float64"]


def test_ill_conditioned_rows_keep_nine_digits():
    X, Y = correlated(500, (10, 8), 1e6)
    stable = correlated(500, (10, 8))[0]
    expected = CCA(8).fit(stable, Y).canonical_correlations_  # of the same span
    assert_allclose(CCA(8).fit(X, Y).canonical_correlations_, expected, atol=1e-9)


@pytest.mark.parametrize("model", [CCA(2, reg=1e-8), MLCCA(2, reg=1e-8)])
def test_a_ridge_on_collinear_rows_is_that_of_their_features(model):
    """As many features as rows: the ridge alone decides among weights of equal scores."""
    X, Y = correlated(20, (20, 3), 100.0)
    labels = np.arange(20) % 4
    found = clone(model).fit([X, Y], labels)
    # A constant column more makes n < p: the same problem in a basis of the rows.
    wide = np.column_stack([X, np.zeros(20)])
    reg = {"a": model.reg * 21 / 20, "b": model.reg}  # in units of the mean variance
    expected = clone(model).set_params(reg=reg).fit({"a": wide, "b": Y}, labels)
    assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-10)


def test_batches_of_ill_conditioned_rows_are_warned_of():
    X, Y = correlated(500, (10, 8), 1e5)
    with pytest.warns(UserWarning, match=r"'X' is close to collinear: its condition number is 1e"):
        CCA(2).partial_fit(X, Y)


def test_rows_rounded_to_float32_are_warned_of_where_the_rounding_matters():
    X, Y = correlated(500, (10, 8), 1e6)
    with pytest.warns(UserWarning, match="may be the rounding of its numbers to float32"):
        CCA(2).fit(X.astype(np.float32), Y.astype(np.float32))


def test_a_correlation_above_1_is_an_error():
    whiteners = {"a": Whitener.of(np.eye(2)), "b": Whitener.of(np.eye(2))}
    between = {("a", "b"): np.diag([1 + 2e-6, 0.5])}
    with pytest.raises(DigitsLost, match=r"A correlation of 1\.000002 is above 1.*Set reg > 0"):
        canonical_directions(between, whiteners, 1, is_joint=True)
    assert canonical_directions(between, whiteners, 1, is_joint=False).values[0] > 1


# ---- sparse rows --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [1e3, 1e5, 1e8])
def test_sparse_rows_far_from_zero_give_the_model_of_dense_ones(offset, dtype):
    X, Y = ((view + offset).astype(dtype) for view in correlated(3000, (10, 8)))
    exact = CCA(3).fit(X.astype(float), Y.astype(float)).canonical_correlations_
    # At 1e8, numbers in float32 are multiples of 8.
    are_rounding = dtype == np.float32 and offset == 1e8
    with pytest.warns(UserWarning, match="far above") if are_rounding else nullcontext():
        found = CCA(3).fit(sp.csr_array(X), sp.csr_array(Y)).canonical_correlations_
        mixed = CCA(3).fit(X.astype(float), sp.csr_array(Y)).canonical_correlations_
    assert_allclose(found, exact, atol=1e-12)
    assert_allclose(mixed, exact, atol=1e-12)


def test_many_sparse_float32_rows_are_added_up_in_float64():
    rng = np.random.default_rng(0)
    X = rng.random((300_000, 3), dtype=np.float32)
    Y = X[:, :2] + rng.random((300_000, 2), dtype=np.float32)
    exact = CCA(2).fit(X.astype(float), Y.astype(float)).canonical_correlations_
    found = CCA(2).fit(sp.csr_array(X), sp.csr_array(Y)).canonical_correlations_
    assert_allclose(found, exact, atol=1e-12)


@pytest.mark.parametrize(
    "method", [MLCCA(3, n_neighbors=5, random_state=0), KCCA(3, random_state=0)]
)
def test_sparse_pairs_and_kernels_far_from_zero_keep_their_digits(method):
    X, Y = (view + 1e5 for view in correlated(200, (6, 5)))
    labels = np.arange(200) % 7
    exact = clone(method).fit([X, Y], labels).eigenvalues_
    found = method.fit([sp.csr_array(X), sp.csr_array(Y)], labels).eigenvalues_
    assert_allclose(found, exact, atol=1e-8)


def test_columns_that_are_almost_full_keep_their_zeros():
    rng = np.random.default_rng(0)
    dense = rng.random((400, 4)) + 50
    dense[rng.random((400, 4)) < 0.03] = 0
    views = Views({"a": dense, "b": rng.random((400, 3)) + dense[:, :3]})
    exact = Moments.of(views)
    found = Moments.of(Views({name: sp.csr_array(block) for name, block in views.items()}))
    assert_allclose(found.scatter, exact.scatter, rtol=1e-12, atol=1e-9)
    assert_allclose(found.means, exact.means, rtol=1e-14)


@pytest.mark.parametrize("reg", [1.0, 1e-2])
def test_rows_with_a_strong_factor_keep_their_digits_and_need_no_qr_under_a_ridge(reg, monkeypatch):
    rng = np.random.default_rng(5)
    z = rng.normal(size=(60, 3))
    views = [100 * z @ rng.normal(size=(3, p)) + rng.normal(size=(60, p)) for p in (300, 200)]
    by_svd, scatters = [], []
    for X in views:
        left, sizes, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
        ridge = reg * np.sum(sizes**2) / X.shape[1]
        by_svd.append(left * (sizes / np.sqrt(sizes**2 + ridge)))
    expected = np.linalg.svd(by_svd[0].T @ by_svd[1], compute_uv=False)[:8]
    monkeypatch.setattr("mvcca.linalg.linalg.qr", None)
    model = CCA(8, reg=reg).fit(*views)
    assert_allclose(model.canonical_correlations_, expected, rtol=0, atol=1e-12)
    for X, weights in zip(views, model.weights_.values(), strict=True):
        scores = (X - X.mean(axis=0)) @ weights
        ridge = reg * X.var(axis=0).sum() * len(X) / X.shape[1]
        scatters.append((scores.T @ scores + ridge * weights.T @ weights) / (len(X) - 1))
    assert_allclose(scatters, [np.eye(8)] * 2, atol=1e-10)


def test_label_sums_of_batches_far_from_zero_warn_of_lost_digits():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, 200)
    X, Y = (np.round(10 * rng.normal(size=(200, p)) + 5 * y[:, None]) + 1e9 for p in (4, 3))
    model = MVMLCCA(2, within="sample")
    with pytest.warns(UserWarning, match="sums of its rows by label lose digits"):
        model.partial_fit([X[:100], Y[:100]], y[:100])
        model.partial_fit([X[100:], Y[100:]], y[100:])
    exact = MVMLCCA(2, within="sample").fit([X - 1e9, Y - 1e9], y)
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, atol=1e-5)
    whole = MVMLCCA(2, within="sample").fit([X, Y], y)  # in memory, rows are centred first
    assert_allclose(whole.eigenvalues_, exact.eigenvalues_, atol=1e-12)
