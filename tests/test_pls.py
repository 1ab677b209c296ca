"""PLS and CFA, judged by scikit-learn, by SciPy and by the problems in their docstrings."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.cross_decomposition import PLSSVD, PLSCanonical, PLSRegression
from sklearn.model_selection import GridSearchCV

from mvcca import CFA, PLS, FoldSearchCV, Views

ALGORITHMS = ("svd", "canonical", "regression")

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
scaled_or_not = pytest.mark.parametrize("scale", [False, True], ids=["as it is", "scaled"])


def two_views(n=80, p=7, q=5, seed=0):
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 4)) * [3, 2, 1.5, 1]
    X = latent @ rng.standard_normal((4, p)) + rng.standard_normal((n, p)) + 2
    Y = latent @ rng.standard_normal((4, q)) + rng.standard_normal((n, q)) - 1
    return X, Y


def scikit_learns(algorithm, n_components, scale):
    if algorithm == "svd":
        return PLSSVD(n_components, scale=scale)
    if algorithm == "canonical":
        return PLSCanonical(n_components, scale=scale, algorithm="svd")
    return PLSRegression(n_components, scale=scale, tol=1e-30, max_iter=10**5)


def assert_equal_up_to_signs(found, expected, tol=1e-8):
    """One sign for each column, the same in all pairs of matrices."""
    signs = np.sign(np.einsum("ij,ij->j", found[0], expected[0]))
    for A, B in zip(found, expected, strict=True):
        np.testing.assert_allclose(A * signs, B, rtol=0, atol=tol * np.abs(B).max())


@scaled_or_not
@every_algorithm
@pytest.mark.parametrize("shape", [(80, 7, 5), (80, 4, 6), (6, 9, 8), (30, 40, 3)], ids=str)
def test_scores_are_those_of_scikit_learn(algorithm, scale, shape):
    X, Y = two_views(*shape)
    n_components = 3
    peer = scikit_learns(algorithm, n_components, scale).fit(X, Y)
    model = PLS(n_components, algorithm=algorithm, scale=scale).fit(X, Y)
    new_X, new_Y = two_views(*shape, seed=1)
    for pair in ((X, Y), (new_X, new_Y)):
        assert_equal_up_to_signs(model.transform(*pair), peer.transform(*pair))


@every_algorithm
def test_all_components_are_those_of_scikit_learn(algorithm):
    X, Y = two_views()
    peer = scikit_learns(algorithm, 5, False).fit(X, Y)
    model = PLS(5, algorithm=algorithm).fit(X, Y)
    assert_equal_up_to_signs(model.transform(X, Y), peer.transform(X, Y))


@pytest.mark.parametrize("algorithm", ["canonical", "regression"])
def test_weights_are_scikit_learns_rotations(algorithm):
    X, Y = two_views()
    peer = scikit_learns(algorithm, 3, False).fit(X, Y)
    model = PLS(3, algorithm=algorithm).fit(X, Y)
    found = [model.weights_["X"], model.weights_["y"]]
    assert_equal_up_to_signs(found, [peer.x_rotations_, peer.y_rotations_])


def test_regression_has_more_components_than_the_second_view_has_columns():
    X, Y = two_views(q=1)
    peer = scikit_learns("regression", 4, False).fit(X, Y)
    model = PLS(4, algorithm="regression").fit(X, Y)
    assert model.n_components_ == 4
    assert_equal_up_to_signs([model.transform(X)], [peer.transform(X)])


def test_scores_of_regression_are_uncorrelated_and_span_what_predicts():
    X, Y = two_views()
    scores = PLS(3, algorithm="regression").fit(X, Y).transform(X)
    correlation = np.corrcoef(scores.T)
    np.testing.assert_allclose(correlation, np.eye(3), atol=1e-10)
    predicted = scores @ np.linalg.lstsq(scores, Y - Y.mean(axis=0))[0] + Y.mean(axis=0)
    expected = PLSRegression(3, scale=False, tol=1e-30, max_iter=10**5).fit(X, Y).predict(X)
    np.testing.assert_allclose(predicted, expected, atol=1e-8)


def test_three_views_solve_the_eigenproblem_of_the_covariance_without_its_diagonal_blocks():
    X, Y = two_views()
    Z = two_views(q=4, seed=2)[1] + X[:, :4]
    covariance = np.cov(np.c_[X, Y, Z].T)
    covariance -= linalg.block_diag(np.cov(X.T), np.cov(Y.T), np.cov(Z.T))
    values, vectors = np.linalg.eigh(covariance)
    model = PLS(3).fit([X, Y, Z])
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:3])
    found = np.concatenate(list(model.weights_.values()))
    assert_equal_up_to_signs([found], [np.sqrt(3) * vectors[:, ::-1][:, :3]])


@every_algorithm
def test_components_that_are_not_there_are_clipped_with_a_warning(algorithm):
    X, Y = two_views()
    X = np.outer(X[:, 0], np.arange(1, 8))
    with pytest.warns(UserWarning, match=r"n_components=3 is more .* fitted 1\."):
        model = PLS(3, algorithm=algorithm).fit(X, Y)
    assert model.transform(X, Y)[1].shape == (80, 1)


@every_algorithm
def test_views_without_covariance_are_refused(algorithm):
    X = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    with pytest.raises(ValueError, match="nothing in common"):
        PLS(algorithm=algorithm).fit(X, X[:, :1] * X[:, 1:])


@pytest.mark.parametrize("algorithm", ["canonical", "regression"])
def test_deflation_of_three_views_points_to_svd(algorithm):
    X, Y = two_views()
    with pytest.raises(ValueError, match=r"takes 2 views, got 3.*Use algorithm=\"svd\" for more"):
        PLS(algorithm=algorithm).fit([X, Y, X])


@every_algorithm
def test_a_view_whose_squares_overflow_gives_the_same_scores(algorithm):
    X, Y = two_views()
    expected = PLS(algorithm=algorithm).fit({"image": X, "text": 1e60 * Y})
    model = PLS(algorithm=algorithm).fit({"image": X, "text": 1e300 * Y})
    found, exact = (m.transform({"image": X})["image"] for m in (model, expected))
    np.testing.assert_allclose(found, exact, atol=1e-9)
    units = (1, 1) if algorithm == "regression" else (1e300, 1e60)
    found = model.transform({"text": 1e300 * Y})["text"] / units[0]
    exact = expected.transform({"text": 1e60 * Y})["text"] / units[1]
    np.testing.assert_allclose(found, exact, atol=1e-9)
    np.testing.assert_allclose(model.eigenvalues_ / 1e300, expected.eigenvalues_ / 1e60)


@every_algorithm
def test_views_whose_covariances_overflow_are_refused_by_name(algorithm):
    X, Y = two_views()
    with pytest.raises(ValueError, match=r"Covariances of the views 'image' and 'text'.*Rescale"):
        PLS(algorithm=algorithm).fit({"image": 1e200 * X, "text": 1e200 * Y})


def test_svd_of_partly_paired_views_uses_the_pairs_there_are():
    X, Y = two_views()
    index = np.tile(np.arange(80)[:, None], 2)
    index[:20, 1] = -1
    model = PLS(1).fit(Views({"image": X, "text": Y}, index))
    centred = X[20:] - X.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T @ (Y[20:] - Y[20:].mean(axis=0)))
    found = [model.weights_["image"], model.weights_["text"]]
    assert_equal_up_to_signs(found, [left[:, :1], right[:1].T])


def test_cfa_of_equally_wide_views_is_the_procrustes_rotation():
    X, Y = two_views(p=5, q=5)
    model = CFA(5).fit([X, Y])
    A, B = model.weights_.values()
    rotation, _ = linalg.orthogonal_procrustes(X - X.mean(axis=0), Y - Y.mean(axis=0))
    np.testing.assert_allclose(A @ B.T, rotation, atol=1e-10)


def test_no_other_rotations_bring_pairs_closer_than_those_of_cfa():
    X, Y = two_views(p=5, q=5)
    scores = CFA(5).fit([X, Y]).transform([X, Y])
    distance = np.linalg.norm(scores[0] - scores[1])
    rng = np.random.default_rng(4)
    for _ in range(20):
        turn = linalg.expm(0.1 * (S := rng.standard_normal((5, 5))) - 0.1 * S.T)
        assert np.linalg.norm(scores[0] @ turn - scores[1]) > distance


def test_cfa_has_the_weights_of_scikit_learns_pls_svd():
    X, Y = two_views()
    peer = PLSSVD(3, scale=False).fit(X, Y)
    assert_equal_up_to_signs(CFA(3).fit(X, Y).transform(X, Y), peer.transform(X, Y))


@pytest.mark.parametrize("estimator", [PLS(), CFA(), PLS(1), PLS(3)], ids=repr)
@pytest.mark.parametrize("width", [1, 3])
def test_four_views_one_of_them_at_1e100_have_finite_weights(estimator, width):
    rng = np.random.default_rng(0)
    for number in range(40):
        blocks = [rng.standard_normal((30, width)) for _ in range(4)]
        blocks[number % 4] *= 1e100
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # components of the views at 1 are rounding to that one
            model = estimator.fit(blocks)
        assert np.isfinite(model.eigenvalues_).all()
        gram = sum(W.T @ W for W in model.weights_.values())
        np.testing.assert_allclose(gram, 4 * np.eye(model.n_components_), atol=1e-8)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_wide_views_are_neither_copied_nor_multiplied_feature_by_feature(is_sparse):
    rng = np.random.default_rng(8)
    views = [rng.poisson(0.1, (200, d)).astype(float) for d in (40_000, 20_000)]
    size = sum(X.nbytes for X in views)
    K, L = ((X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T for X in views)
    expected = np.sqrt(np.sort(np.linalg.eigvals(K @ L).real)[:-4:-1]) / 199
    if is_sparse:
        views = [csr_array(X) for X in views]
    tracemalloc.start()
    model = PLS(3).fit(views)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * size
    assert_allclose(model.eigenvalues_, expected, rtol=1e-9)
    for weights in model.weights_.values():
        assert_allclose(weights.T @ weights, np.eye(3), atol=1e-10)


@pytest.mark.filterwarnings("ignore:y residual is constant", "ignore:View 'y' is constant")
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("algorithm", ["regression", "canonical"])
@pytest.mark.parametrize("y", [np.full(40, 3.0), np.full((40, 2), 0.1)], ids=["vector", "matrix"])
def test_of_a_constant_y_the_mean_is_predicted(y, algorithm, scale):
    X = np.random.default_rng(0).normal(size=(40, 4))
    model = PLS(2, algorithm=algorithm, scale=scale)
    with pytest.warns(UserWarning, match="View 'y' is constant"):
        model.fit(X, y)
    reference = PLSRegression(2, scale=scale).fit(X, y)
    np.testing.assert_allclose(model.predict(X), reference.predict(X))
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert not any(scores.any() for scores in model.transform(X, y))
    if algorithm == "regression":
        assert np.isfinite(model.y_scores_).all()


@pytest.mark.filterwarnings("ignore:y residual is constant", "ignore:View 'y' is constant")
@pytest.mark.parametrize("search", [GridSearchCV, FoldSearchCV])
def test_a_training_part_with_a_constant_y_does_not_stop_a_search(search):
    X, y = np.random.default_rng(0).normal(size=(40, 4)), np.repeat([0.0, 1.0], [10, 30])
    folds = [(np.arange(10, 40), np.arange(10)), (np.arange(20), np.arange(20, 40))]
    grid, scoring = {"n_components": [1, 2]}, "neg_mean_squared_error"
    found = search(PLS(1, algorithm="regression", scale=True), grid, cv=folds, scoring=scoring)
    expected = GridSearchCV(PLSRegression(1), grid, cv=folds, scoring=scoring).fit(X, y)
    np.testing.assert_allclose(
        found.fit(X, y).cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
