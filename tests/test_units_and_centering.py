"""Units of ridges, shrinkage and moments about zero, judged by NumPy, SciPy and scikit-learn."""

from __future__ import annotations

import operator
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from given_matrices import GivenMatrices
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.covariance import ledoit_wolf_shrinkage, oas
from sklearn.model_selection import GridSearchCV, KFold

from mvcca import CCA, MLCCA, MVCCA, MVMLCCA, PLS, Views
from mvcca.model_selection import FoldSearchCV
from mvcca.problem import Rows
from mvcca.problem.shrinkage import SHRINKAGES, Shrunk, shrinkages

SHAPES = {"tall": (100, 6, 4), "wide": (12, 30, 4), "both wide": (12, 30, 25)}
of_shapes = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
ABSOLUTE = 0.7


def two_views(n=100, p=6, q=4, seed=0):
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(n, p)) + 2
    return X, X[:, :3] @ rng.normal(size=(3, q)) + rng.normal(size=(n, q)) - 1


def three_views(n=60, seed=0):
    X, Y = two_views(n, seed=seed)
    return {"x": X, "y": Y, "z": X[:, :3] + np.random.default_rng(seed + 9).normal(size=(n, 3))}


def whitened_svd(A, B, C):
    """Correlations of CCA with constraints A and B and cross-moments C."""
    roots = (np.linalg.inv(np.real(linalg.sqrtm(own))) for own in (A, B))
    return np.linalg.svd(next(roots) @ C @ next(roots))[1]


def moments(X, Y, center=True):
    if center:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    total = len(X) - center
    return X.T @ X / total, Y.T @ Y / total, X.T @ Y / total


# ---- absolute ridges -----------------------------------------------------------------------------


@of_shapes
@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
def test_an_absolute_ridge_is_added_to_the_covariances(shape, center):
    X, Y = two_views(*shape)
    A, B, C = moments(X, Y, center)
    A, B = (own + ABSOLUTE * np.eye(len(own)) for own in (A, B))
    model = CCA(3, reg=ABSOLUTE, reg_unit="absolute", center=center).fit(X, Y)
    assert_allclose(model.canonical_correlations_, whitened_svd(A, B, C)[:3], atol=1e-12)
    W = model.weights_["X"]
    assert_allclose(W.T @ A @ W, np.eye(3), atol=1e-10)


@pytest.mark.parametrize("estimator", [CCA, MVCCA, MLCCA, MVMLCCA, GivenMatrices])
def test_an_absolute_ridge_adds_to_the_constraint_of_every_method(estimator):
    # Of one feature per view, the constraint is a number b, and w² (b + r) = 1.
    X, Y = two_views(60)
    views, y = {"x": X[:, :1], "y": Y[:, :1]}, np.arange(60) % 3
    without = estimator(1, reg=0.0).fit(views, y).weights_
    model = estimator(1, reg={"x": ABSOLUTE, "y": 2.0}, reg_unit="absolute").fit(views, y)
    for name, ridge in (("x", ABSOLUTE), ("y", 2.0)):
        added = model.weights_[name][0, 0] ** -2 - without[name][0, 0] ** -2
        assert_allclose(added, ridge, rtol=1e-8)


def test_an_absolute_ridge_of_views_far_from_one_keeps_its_units():
    views, y = three_views(), np.arange(60) % 4
    small = {name: np.ldexp(X, -300) for name, X in views.items()}
    reg = dict.fromkeys(views, 0.5)
    tiny = dict.fromkeys(views, np.ldexp(0.5, -600))
    expected = MLCCA(2, reg=reg, reg_unit="absolute").fit(views, y).transform(views)
    found = MLCCA(2, reg=tiny, reg_unit="absolute").fit(small, y).transform(small)
    for name, scores in expected.items():
        assert_allclose(found[name], scores, rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"reg_unit": "absolute"}, {"center": False}, {"reg_unit": "absolute", "center": False}],
)
def test_searches_over_folds_fit_the_same_models_as_one_fit_per_fold(options):
    views = Views(three_views())
    grid = {"reg": [0.01, ABSOLUTE, 20.0], "n_components": [1, 3]}
    ours = FoldSearchCV(MVCCA(**options), grid, cv=KFold(3)).fit(views)
    theirs = GridSearchCV(MVCCA(**options), grid, cv=KFold(3)).fit(views)
    for key in ("mean_test_score", "std_test_score"):
        assert_allclose(ours.cv_results_[key], theirs.cv_results_[key], atol=1e-9)
    assert ours.best_params_ == theirs.best_params_
    best, other = ours.best_estimator_.weights_, theirs.best_estimator_.weights_
    for name, W in best.items():
        assert_allclose(W, other[name], atol=1e-9)


@pytest.mark.parametrize("reg", ["cv", "auto", "oas"])
def test_searched_and_estimated_ridges_have_no_absolute_unit(reg):
    with pytest.raises(ValueError, match=f'reg="{reg}" .*absolute.* needs a number'):
        CCA(2, reg=reg, reg_unit="absolute").fit(*two_views())


# ---- shrinkage -----------------------------------------------------------------------------------


@of_shapes
@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_shrinkages_are_those_of_scikit_learn(shape, center, sparse):
    X, _ = two_views(*shape)
    X = np.where(np.abs(X) < 2, 0, X)
    counts = np.random.default_rng(1).integers(1, 3, len(X))
    rows = X.repeat(counts, axis=0)
    views = Views({"x": csr_array(X) if sparse else X})
    for method, expected in (
        ("oas", oas(rows, assume_centered=not center)[1]),
        ("auto", ledoit_wolf_shrinkage(rows, assume_centered=not center)),
    ):
        found = shrinkages(views, counts.astype(float), method, center=center)["x"]
        assert_allclose(found, expected, atol=1e-10)
        assert 0 < found < 1


@pytest.mark.parametrize("reg", ["oas", "auto"])
def test_a_model_with_shrinkage_is_the_cca_of_shrunk_covariances(reg):
    X, Y = two_views(20, 8, 6)
    within = []
    for rows in (X, Y):
        share = oas(rows)[1] if reg == "oas" else ledoit_wolf_shrinkage(rows)
        S = np.cov(rows.T)
        within.append((1 - share) * S + share * np.trace(S) / len(S) * np.eye(len(S)))
    C = np.cov(X.T, Y.T)[:8, 8:]
    model = CCA(3, reg=reg).fit(X, Y)
    directions = model.weights_["X"]
    expected = np.linalg.solve(within[0], C @ model.weights_["y"])
    cosines = np.einsum("ij,ij->j", directions, expected)
    cosines /= np.linalg.norm(directions, axis=0) * np.linalg.norm(expected, axis=0)
    assert_allclose(cosines, 1, atol=1e-10)


BATCHES = {
    "of few": np.split(np.arange(40), [9, 20]),
    "of one": np.split(np.arange(40), 40),
    "after a first one": np.split(np.arange(40), [1]),
    "without weight": np.split(np.arange(40), [14, 15]),
}


@pytest.mark.parametrize("center", [True, False], ids=["centred", "about zero"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("scale", [1.0, 1e-140, 1e140])
def test_shrinkages_of_batches_are_those_of_all_rows(batches, center, sparse, scale):
    X, Y = (scale * (rows[:40] + 3) for rows in two_views())
    X = np.where(np.abs(X) < 2 * scale, 0, X)
    rows = Rows(Views({"x": csr_array(X) if sparse else X, "y": Y}))
    rows = replace(
        rows, sample_weight=np.r_[np.zeros(14), np.random.default_rng(1).integers(1, 4, 26)]
    )
    parts = (Shrunk.of(own.moments(), own) for own in map(rows.take, batches))
    total = reduce(operator.add, parts)
    for method in SHRINKAGES:
        expected = shrinkages(rows.views, rows.sample_weight, method, center=center)
        found = total.shrinkages(method, center=center)
        assert 0 < min(expected.values()) < max(expected.values()) < 1
        for name, share in expected.items():
            assert_allclose(found[name], share, rtol=1e-12)


@pytest.mark.parametrize("reg", SHRINKAGES)
@pytest.mark.parametrize("estimator", [CCA, MVCCA, MLCCA, MVMLCCA, GivenMatrices])
def test_batches_are_shrunk_as_all_rows_are(reg, estimator):
    views, y = Views(three_views()), np.arange(60) % 4
    views = views.select(["x", "y"]) if estimator is CCA else views
    expected, model = estimator(2, reg=reg).fit(views, y), estimator(2, reg=reg)
    for rows in (slice(0, 1), slice(1, 20), slice(20, 60)):
        model.partial_fit(views[rows], y[rows])
    for name, W in expected.weights_.items():
        assert_allclose(model.weights_[name], W, rtol=1e-9, atol=1e-11)
    if hasattr(expected, "expected_correlations_"):
        assert_allclose(model.expected_correlations_, expected.expected_correlations_, rtol=1e-9)


def test_shrinkage_can_be_asked_of_batches_from_the_first_one_on_only():
    X, Y = two_views()
    model = CCA(2, reg=0.1).partial_fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match=r'reg="auto" takes sums of all batches.*Start over'):
        model.set_params(reg="auto").partial_fit(X[50:], Y[50:])
    for reg in ("oas", 0.1):
        model = CCA(2, reg="auto").partial_fit(X[:50], Y[:50])
        model.set_params(reg=reg).partial_fit(X[50:], Y[50:])
        assert_allclose(model.weights_["X"], CCA(2, reg=reg).fit(X, Y).weights_["X"], rtol=1e-9)


# ---- about zero ----------------------------------------------------------------------------------


@of_shapes
@pytest.mark.parametrize("as_rows", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_without_centring_cca_is_an_svd_of_whitened_rows(shape, as_rows):
    X, Y = two_views(*shape)
    reg = dict.fromkeys(("X", "y"), 0.0 if shape[0] > 50 else 0.01)
    model = CCA(3, reg=reg, center=False).fit(as_rows(X), as_rows(Y))
    left, right = (
        linalg.sqrtm(rows.T @ rows / len(rows) + own * np.mean(rows**2) * np.eye(rows.shape[1]))
        for rows, own in zip((X, Y), reg.values(), strict=True)
    )
    whitened = (X @ np.linalg.inv(left.real)).T @ (Y @ np.linalg.inv(right.real)) / len(X)
    assert_allclose(model.canonical_correlations_, np.linalg.svd(whitened)[1][:3], atol=1e-9)
    scores = model.transform(as_rows(X))
    assert_allclose(scores, X @ model.weights_["X"], atol=1e-12)
    if not reg["X"]:
        assert_allclose(scores.T @ scores / len(X), np.eye(3), atol=1e-9)
    assert not any(mean.any() for mean in model.means_.values())


@of_shapes
def test_without_centring_pls_is_an_svd_of_the_rows(shape):
    X, Y = two_views(*shape)
    U, sizes, Vt = np.linalg.svd(X.T @ Y / len(X), full_matrices=False)
    model = PLS(3, center=False).fit(X, Y)
    assert_allclose(model.eigenvalues_, sizes[:3])
    signs = np.sign(np.einsum("ij,ij->j", U[:, :3], model.weights_["X"]))
    assert_allclose(model.weights_["X"] * signs, U[:, :3], atol=1e-9)
    assert_allclose(model.weights_["y"] * signs, Vt[:3].T, atol=1e-9)
    assert not any(mean.any() for mean in model.means_.values())


@pytest.mark.parametrize("algorithm", ["svd", "canonical", "regression"])
def test_scaled_pls_without_centring_divides_by_root_mean_squares(algorithm):
    X, Y = two_views()
    scaled = [rows / np.sqrt(np.mean(rows**2, axis=0)) for rows in (X, Y)]
    expected = PLS(3, algorithm=algorithm, center=False).fit(*scaled).transform(*scaled)
    model = PLS(3, algorithm=algorithm, center=False, scale=True).fit(X, Y)
    for found, own in zip(model.transform(X, Y), expected, strict=True):
        assert_allclose(found, own, atol=1e-9)


def test_three_views_without_centring_solve_the_eigenproblem_of_their_products():
    views = three_views(80)
    rows = np.hstack(list(views.values()))
    S = rows.T @ rows / len(rows)
    own = linalg.block_diag(*(X.T @ X / len(X) for X in views.values()))
    model = MVCCA(3, reg=0.0, center=False).fit(views)
    assert_allclose(model.eigenvalues_, linalg.eigh(S, own, eigvals_only=True)[::-1][:3])


def test_centring_rows_first_changes_nothing_without_centring():
    X, Y = (rows - rows.mean(axis=0) for rows in two_views())
    expected, found = CCA(3).fit(X, Y), CCA(3, center=False).fit(X, Y)
    assert_allclose(found.canonical_correlations_, expected.canonical_correlations_)


def test_partly_paired_views_without_centring_have_the_moments_of_their_pairs():
    X, Y = two_views(100)
    seen_in_both = np.arange(20, 100)
    index = np.full((120, 2), -1)
    index[:100, 0], index[20:, 1] = np.arange(100), np.arange(100)
    views = Views({"x": X, "y": np.vstack([Y[20:], Y[:20]])}, index=index)
    model = CCA(3, center=False).fit(views)
    expected = CCA(3, center=False).fit(X[seen_in_both], Y[seen_in_both])
    assert_allclose(model.canonical_correlations_, expected.canonical_correlations_, rtol=1e-10)


def test_folds_choose_a_ridge_without_centring():
    views = three_views(30)
    model = MVCCA(2, reg="cv", center=False).fit(views)
    again = MVCCA(2, reg=model.reg_, scale=model.scale_, center=False).fit(views)
    for name, W in again.weights_.items():
        assert_allclose(model.weights_[name], W, atol=1e-8)
    assert not model.means_["x"].any()
