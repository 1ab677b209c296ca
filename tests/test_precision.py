"""How many digits a fit keeps: float32 rows, ill-conditioned views, sparse rows far from zero."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone

from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    AffineMap,
    Labels,
    Views,
    config_context,
    load,
    open_matrix,
    save,
)
from mvcca.problem import _sampled_condition, precision
from mvcca.problem._sampled_condition import is_ill_conditioned
from mvcca.problem.directions import canonical_directions
from mvcca.problem.whitener import Whitener
from mvcca.statistics import Moments
from mvcca.statistics.digits_lost import DigitsLost


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

    monkeypatch.setattr(Moments, "of", watched)
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


@pytest.fixture(scope="module")
def many_rows():
    """Views of as many rows as a sample is worth it for: well- and ill-conditioned ones."""
    return {
        condition: [X.astype(np.float32) for X in correlated(22_000, (200, 20), condition)]
        for condition in (1.0, 1e3)
    }


@pytest.mark.parametrize("kind", ["arrays", "files", "weights", "partly paired"])
def test_a_sample_tells_that_float32_products_of_many_rows_are_in_vain(
    kind, many_rows, products, tmp_path
):
    X, Y = many_rows[1e3]
    weights = np.random.default_rng(0).integers(1, 4, len(X)) if kind == "weights" else None
    if kind == "files":
        for name, block in {"x": X, "y": Y}.items():
            np.save(tmp_path / name, block)
        views = Views([np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "xy"])
    elif kind == "partly paired":
        index = np.repeat(np.arange(len(X))[:, None], 2, axis=1)
        index[:5000, 1] = -1
        index = np.where(index < 0, -1, index - [0, 5000])
        views = Views([X, Y[5000:], X[:, :9]], np.column_stack([index, np.arange(len(X))]))
    else:
        views = Views([X, Y])
    found = MVCCA(3, reg=0).fit(views, sample_weight=weights).eigenvalues_
    assert set(products) == {"float64"}
    exact = views.replace({name: np.asarray(X, float) for name, X in views.items()})
    exact = MVCCA(3, reg=0).fit(exact, sample_weight=weights).eigenvalues_
    assert_allclose(found, exact, atol=1e-9)


def test_a_sample_leaves_well_conditioned_rows_and_those_with_a_ridge_to_float32(
    many_rows, products
):
    for condition, reg in ((1.0, 0.0), (1e3, 10.0), (1e3, {"view0": 10.0, "view1": 0.0})):
        products.clear()
        CCA(3, reg=reg).fit(Views(many_rows[condition]))
        assert products == ["float32"], (condition, reg)


def test_rows_that_a_sample_passes_are_checked_all_the_same(many_rows, products, monkeypatch):
    monkeypatch.setattr(precision, "is_ill_conditioned", lambda *_: False)
    CCA(3).fit(*many_rows[1e3])
    assert products == ["float32", "float64"]


def test_a_sample_estimates_condition_numbers_within_a_half():
    for condition in (5.0, 30.0, 300.0):
        X = correlated(26_000, (200, 20), condition)[0].astype(np.float32)
        C = np.corrcoef(X.astype(float).T)
        true = np.sqrt(np.linalg.cond(C))
        rows = Views([X]), None, {"view0": 0.0}
        assert is_ill_conditioned(*rows, true / 1.5)
        assert not is_ill_conditioned(*rows, true * 1.5)


def test_part_of_the_sample_tells_well_conditioned_rows(monkeypatch):
    X = correlated(26_000, (200, 20), 30.0)[0].astype(np.float32)
    true = np.sqrt(np.linalg.cond(np.corrcoef(X.T.astype(float))))
    judge, found = _sampled_condition._condition, []
    monkeypatch.setattr(
        _sampled_condition, "_condition", lambda *some: found.append(judge(*some)) or found[-1]
    )
    assert not is_ill_conditioned(Views([X]), None, {"view0": 0.0}, 2 * true)
    assert len(found) == 1
    assert is_ill_conditioned(Views([X]), None, {"view0": 0.0}, true / 2)
    assert len(found) == 3
    assert true / 1.5 < found[2] < found[1] < 2 * true


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
        CCA(2).partial_fit(X, Y).score(X, Y)


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


# ---- copies of columns ---------------------------------------------------------------------------

COPYING = {
    "CCA": CCA(3, reg=0),
    "standardized": CCA(3, scale=True),
    "a tiny ridge": CCA(3, reg=1e-16),
    "about zero": CCA(3, center=False),
    "MVCCA": MVCCA(3, reg=0),
    "MLCCA": MLCCA(2, reg=0),
    "MVMLCCA": MVMLCCA(2, reg=0),
    "confounds": MVCCA(2, reg=0, confounds="Y"),
    "a map to copies": AffineMap(2, reg=0, target="X"),
    "a map of copies": AffineMap(2, reg=0, target="Y"),
}


@pytest.fixture
def decomposed(monkeypatch):
    """Views whose rows were decomposed."""
    found, of = [], precision.principal_components
    monkeypatch.setattr(
        precision, "principal_components", lambda *a, **k: found.append(1) or of(*a, **k)
    )
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", COPYING)
def test_columns_that_are_copies_share_weights_as_by_a_decomposition_of_the_rows(
    case, weighted, dtype, decomposed, monkeypatch
):
    X, Y, Z = (view.astype(dtype) for view in correlated(400, (8, 6, 5), seed=3))
    views = {"X": np.c_[X, X[:, [0, 0, 3]]], "Y": Y} | ({"Z": Z} if case == "confounds" else {})
    y, model = np.digitize(X[:, 0] + Y[:, 0], [-1, 0, 1]), COPYING[case]
    weights = np.arange(400) % 3 + 1.0 if weighted else None
    with warnings.catch_warnings(action="error"):
        found = clone(model).fit(views, y, sample_weight=weights)
    assert not decomposed
    monkeypatch.setattr(precision, "first_copies", lambda _: None)
    with warnings.catch_warnings(action="ignore"):
        slow = clone(model).fit(views, y, sample_weight=weights)
    assert decomposed or case in ("confounds", "a map to copies")
    tol = 1e-4 if dtype == np.float32 else 1e-10
    for name in found.view_names_:
        weight = slow.weights_[name]
        assert_allclose(found.weights_[name], weight, atol=tol * np.abs(weight).max())
        assert_allclose(found.means_[name], slow.means_[name], atol=tol)
    assert_allclose(found.eigenvalues_, slow.eigenvalues_, atol=tol)
    assert found.ranks_ == slow.ranks_
    if case.startswith("a map"):
        return
    assert_allclose(found.weights_["X"][8:10], found.weights_["X"][[0, 0]], rtol=1e-6)
    assert_allclose(found.expected_correlations_, slow.expected_correlations_, atol=tol)


@pytest.mark.parametrize("case", COPYING)
def test_rows_with_copies_and_other_collinear_columns_are_decomposed_in_fewer_columns(
    case, monkeypatch
):
    X, Y, Z = correlated(400, (8, 6, 5), seed=3)
    X, Y = X + 50, Y - 20
    views = {"X": np.c_[X, X[:, 0], X[:, 1] + X[:, 2]], "Y": Y}
    views |= {"Z": Z} if case == "confounds" else {}
    y, model = np.digitize(X[:, 0] + Y[:, 0], [29, 30, 31]), COPYING[case]
    with warnings.catch_warnings(action="ignore"):
        found = clone(model).fit(views, y)
        monkeypatch.setattr(precision, "first_copies", lambda _: None)
        slow = clone(model).fit(views, y)
    for name in found.view_names_:
        assert_allclose(found.means_[name], slow.means_[name], atol=1e-10)
        scores, expected = (one.transform(views)[name] for one in (found, slow))
        assert_allclose(scores, expected, atol=1e-8 * np.abs(expected).max())


def test_copies_cost_one_more_pass_and_no_decomposition(products, decomposed):
    X, Y = (view.astype(np.float32) for view in correlated(2000, (12, 9)))
    CCA(2, reg=0).fit(np.c_[X, X[:, :2]], Y)
    assert products == ["float32", "float32"]
    assert not decomposed


def test_copies_among_many_rows_cost_no_pass(many_rows, products, decomposed):
    X, Y = many_rows[1.0]
    expected = CCA(3).fit(X, Y).canonical_correlations_
    products.clear()
    found = CCA(3).fit(np.c_[X, X[:, :2]], Y)
    assert products == ["float32"]
    assert not decomposed
    assert_allclose(found.canonical_correlations_, expected, atol=1e-6)
    assert_allclose(found.weights_["X"][:2], found.weights_["X"][-2:])


def test_only_equal_columns_that_vary_are_copies():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (5000, 6)).astype(float)
    assert precision.first_copies(X) is None
    X = np.c_[X, X[:, 2], -X[:, 1], X[:, 4], np.zeros((5000, 2)), np.ones((5000, 2))]
    X[X == 0] *= rng.choice([-1, 1], np.count_nonzero(X == 0))  # zeros have signs
    X[4321, 8] += 1e-12
    first = precision.first_copies(X)
    np.testing.assert_array_equal(first, [0, 1, 2, 3, 4, 5, 2, *range(7, 13)])
    rare = np.zeros((5000, 40))  # no sample of rows tells them apart
    rare[np.arange(40) * 120 + 1, np.arange(40)] = 1
    assert precision.first_copies(rare) is None
    first = precision.first_copies(np.c_[rare, rare[:, 7]])
    np.testing.assert_array_equal(first[[7, 40]], [7, 7])
    assert precision.first_copies(np.ones((1, 3))) is None


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
    monkeypatch.setattr("mvcca.problem._bases.linalg.qr", None)
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
    for rows in (slice(100), slice(100, 200)):
        with pytest.warns(UserWarning, match="sums of its rows by label lose digits"):
            model.partial_fit([X[rows], Y[rows]], y[rows]).transform([X, Y])
    exact = MVMLCCA(2, within="sample").fit([X - 1e9, Y - 1e9], y)
    assert_allclose(model.eigenvalues_, exact.eigenvalues_, atol=1e-5)
    whole = MVMLCCA(2, within="sample").fit([X, Y], y)  # in memory, rows are centred first
    assert_allclose(whole.eigenvalues_, exact.eigenvalues_, atol=1e-12)


# ---- the edges of the range of floats -----------------------------------------------------------

FOURIER = {"label_features": "fourier", "n_label_features": 40, "random_state": 0}
# Methods that views in other units do not affect, or only in the units of the result, beside those
# of tests/test_contract_numbers.py.
RESCALED = {
    "PLS": PLS(2),
    "PLS scale": PLS(2, scale=True),
    "PLS canonical": PLS(2, scale=True, algorithm="canonical"),
    "PLS regression": PLS(2, algorithm="regression"),
    "CFA": CFA(2),
    "LGCFL": LGCFL(),
    "JRL": JRL(n_neighbors=10),
    "NCCA": NCCA(2, n_neighbors=10, random_state=0),
    "CMOLRS": CMOLRS(2, random_state=0),
}


def edge_views(width=6):
    X, Y = correlated(60, (width, 4))
    labels = np.arange(60) % 4
    return [X + 2 * labels[:, None], Y + labels[:, None]], labels


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e155, 1e300])
@pytest.mark.parametrize("method", RESCALED)
def test_rows_whose_squares_leave_the_range_of_floats_give_the_same_scores(method, scale):
    views, labels = edge_views()
    expected = clone(RESCALED[method]).fit(views, labels)
    model = clone(RESCALED[method])
    if method in ("PLS", "PLS regression", "CFA") and scale > 1:
        with pytest.raises(ValueError, match=r"Covariances of the views .* exceed the largest"):
            model.fit([X * scale for X in views], labels)
        return
    model.fit([X * scale for X in views], labels)
    unit = scale if method in ("PLS", "CFA", "PLS regression") else 1
    for name, weights in expected.weights_.items():
        size = np.abs(weights).max()
        back = model.weights_[name] if method == "NCCA" else model.weights_[name] * (scale / unit)
        assert_allclose(back, weights, atol=1e-8 * size)
    for found, exact in zip(
        model.transform([X * scale for X in views]), expected.transform(views), strict=True
    ):
        assert_allclose(found / unit, exact, atol=1e-8 * np.abs(exact).max())
    if hasattr(expected, "eigenvalues_") and unit == 1:
        assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["wide", "sparse", "batches", "loaded", "unpaired", "float32"])
@pytest.mark.parametrize("scale", [1e-160, 1e155])
def test_rows_of_any_kind_are_scaled(kind, scale, tmp_path):
    views, labels = edge_views(width=80 if kind == "wide" else 6)
    model, expected = MLCCA(2, reg=0.1, **FOURIER), MLCCA(2, reg=0.1, **FOURIER)
    if kind == "sparse":
        views = [sp.csr_array(X * (X > 0)) for X in views]
    if kind == "float32":
        views = [X.astype(np.float32) for X in views]
        scale = np.float32(1e-22 if scale < 1 else 1e22)
    other = [X * scale for X in views]
    if kind == "unpaired":
        labels = [labels, labels]
        expected.fit(Views.unpaired(dict(zip("ab", views, strict=True))), labels)
        model.fit(Views.unpaired(dict(zip("ab", other, strict=True))), labels)
    elif kind in ("batches", "loaded"):
        for each, rows in ((expected, views), (model, other)):
            for part in (slice(0, 32), slice(32, 60)):
                each.partial_fit([X[part] for X in rows], labels[part])
                if kind == "loaded":
                    save(each, tmp_path / "model")
                    each = load(tmp_path / "model")
            model, expected = (each, expected) if rows is other else (model, each)
    else:
        expected.fit(views, labels)
        model.fit(other, labels)
    tolerance = 1e-4 if kind == "float32" else 1e-9
    assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=tolerance)
    for found, exact in zip(model.weights_.values(), expected.weights_.values(), strict=True):
        assert_allclose(found * float(scale), exact, atol=10 * tolerance * np.abs(exact).max())


@pytest.mark.parametrize("method", [PLS(2, scale=True), MLCCA(2, reg=0), JRL(n_neighbors=10)])
def test_columns_of_sizes_far_apart_are_scaled_one_by_one(method):
    views, labels = edge_views()
    expected = clone(method).fit(views, labels).transform(views)
    units = 10.0 ** np.array([-250, -160, 0, 0, 160, 250])
    other = [views[0] * units, views[1]]
    for found, exact in zip(method.fit(other, labels).transform(other), expected, strict=True):
        assert_allclose(found, exact, atol=1e-8)


def test_three_views_of_pls_keep_their_relative_sizes():
    views = correlated(50, (4, 3, 3))
    expected = PLS(2).fit(views)
    model = PLS(2).fit([X * 1e-140 for X in views])
    for name, weights in expected.weights_.items():
        assert_allclose(model.weights_[name], weights, atol=1e-9)
    assert_allclose(model.eigenvalues_, expected.eigenvalues_ * 1e-280, rtol=1e-9)


def test_ordinary_rows_are_not_scaled():
    views, labels = edge_views()
    for method in (PLS(2, scale=True), MLCCA(2, **FOURIER), LGCFL()):
        for scale in (1e-60, 1, 1e60):
            assert not method.fit([X * scale for X in views], labels)._exponents


@pytest.mark.parametrize("scale", [1e-308, 1e-200, 1e155, 1e200, 1e300])
@pytest.mark.parametrize(
    "method", [LGCFL(), JRL(n_neighbors=10), MLCCA(2), MLCCA(2, **FOURIER), MVMLCCA(2)], ids=repr
)
def test_label_vectors_whose_squares_leave_the_range_of_floats_are_refused(method, scale):
    views, labels = edge_views()
    vectors = np.random.default_rng(0).normal(size=(4, 3))[labels] * scale
    with pytest.raises(ValueError, match=r"Label vectors .* leave the range of floats\. Rescale"):
        clone(method).fit(views, vectors)


def test_label_vectors_of_zeros_are_allowed():
    assert Labels.of(np.array([[0.0, 0.0], [0.5, 2.0]])).n_distinct == 2


@pytest.mark.parametrize("bandwidth", [1e-320, 1e-200, 1e200, 1e308])
def test_extreme_bandwidths_of_ncca_are_the_limits(bandwidth):
    views, _ = edge_views()
    limit = 1e-2 if bandwidth < 1 else 1e7
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The graph of neighbours falls apart")
        expected = NCCA(2, bandwidth=limit, random_state=0).fit(views)
        model = NCCA(2, bandwidth=bandwidth, random_state=0).fit(views)
    rows = [X[:9] + 0.01 for X in views]
    for smoother, exact, X in zip(
        model.smoothers_.values(), expected.smoothers_.values(), rows, strict=True
    ):
        assert_allclose(smoother(X).toarray(), exact(X).toarray(), atol=1e-9)
    assert_allclose(model.canonical_correlations_, expected.canonical_correlations_, atol=1e-6)


@pytest.mark.parametrize("learning_rate", [1e308, 1.7e308])
def test_a_learning_rate_of_cmolrs_that_overflows_is_named(learning_rate):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = [3 * np.eye(3)[y] @ rng.normal(size=(3, p)) + rng.normal(size=(60, p)) for p in (4, 3)]
    model = CMOLRS(2, learning_rate=learning_rate, random_state=0)
    with pytest.raises(ValueError, match=r"learning_rate=1.*e\+308 is too large"):
        model.fit(X, y)


@pytest.mark.parametrize("n_groups", [1, 2, 5])
@pytest.mark.parametrize("block_rows", [None, 500])
def test_a_fit_decodes_each_row_of_parquet_once(tmp_path, monkeypatch, n_groups, block_rows):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    n, width = 12_000, 150  # as few as are sampled to judge the condition
    views = {name: rng.normal(size=(n, width)).astype(np.float32) for name in ("x", "y")}
    for name, X in views.items():
        lists = pyarrow.FixedSizeListArray.from_arrays(X.ravel(), width)
        table = pyarrow.table({"embedding": lists})
        parquet.write_table(table, tmp_path / f"{name}.parquet", row_group_size=n // n_groups)
    decoded, iter_batches = [], parquet.ParquetFile.iter_batches

    def counted(self, *args, **options):
        for batch in iter_batches(self, *args, **options):
            decoded.append(len(batch))
            yield batch

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", counted)
    with config_context(block_rows=block_rows):
        found = CCA(2).fit({name: open_matrix(tmp_path / f"{name}.parquet") for name in views})
    assert sum(decoded) == 2 * n
    np.testing.assert_allclose(found.weights_["x"], CCA(2).fit(views).weights_["x"], rtol=1e-3)


def test_a_fit_reads_each_chunk_of_hdf5_once(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    from mvcca.blocks.sources._chunked import ChunkedArray

    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(12_000, 150)).astype(np.float32) for name in ("x", "y")}
    for name, X in views.items():
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file.create_dataset("x", data=X, chunks=(3_000, 50), compression="gzip")
    ranges, read = [], ChunkedArray._read_file
    monkeypatch.setattr(
        ChunkedArray, "_read_file", lambda self, own: ranges.extend(own) or read(self, own)
    )
    found = CCA(2).fit({name: open_matrix(tmp_path / f"{name}.h5") for name in views})
    assert sum(stop - start for start, stop in ranges) == 2 * 12_000
    assert_allclose(found.weights_["x"], CCA(2).fit(views).weights_["x"], rtol=1e-3)
