"""Inputs on which other packages are wrong without a word: units, near-collinearity, more features
than rows. Judged by oracles in extended precision and by the primal problem written out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import linalg
from scipy.sparse import csr_array
from sklearn.base import clone

from mvcca import CCA, MLCCA, MVCCA, MVMLCCA

UNITS = np.geomspace(1e-6, 1e6, 30)


def latent_views(n: int, widths: tuple[int, ...], seed: int = 0, k: int = 5) -> list[np.ndarray]:
    """Views that share k variables, of decreasing strength, about means that are not zero."""
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, k)) * np.linspace(2, 0.5, k)
    return [latent @ rng.standard_normal((k, d)) + rng.standard_normal((n, d)) + 3 for d in widths]


def ill_conditioned(X: np.ndarray, condition: float, seed: int = 0) -> np.ndarray:
    """X, turned so that its columns are nearly collinear."""
    d = X.shape[1]
    bases = np.linalg.qr(np.random.default_rng(seed).standard_normal((2, d, d)))[0]
    return (X - X.mean(axis=0)) @ (bases[0] * np.geomspace(1, 1 / condition, d)) @ bases[1].T


def orthonormal(X: np.ndarray) -> np.ndarray:
    """Basis of the centred columns by Gram and Schmidt, twice, in extended precision."""
    Q = X.astype(np.longdouble)
    Q -= Q.mean(axis=0)
    for j in range(Q.shape[1]):
        for _ in range(2):
            Q[:, j] -= Q[:, :j] @ (Q[:, :j].T @ Q[:, j])
        Q[:, j] /= np.sqrt(Q[:, j] @ Q[:, j])
    return Q


def agreements(blocks: list[np.ndarray]) -> np.ndarray:
    """λ of MVCCA: eigenvalues of all products between orthonormal bases of the views."""
    Q = np.concatenate([orthonormal(X) for X in blocks], axis=1)
    return np.linalg.eigvalsh((Q.T @ Q).astype(float))[::-1]


def correlations(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    return (A * B).sum(axis=0) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0)


extended = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="no extended precision on this platform"
)


# ---- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "method",
    [CCA(5), MVCCA(5, reg=0), MLCCA(3, reg=0), MVMLCCA(3, reg=0, within="sample")],
    ids=lambda method: type(method).__name__,
)
def test_units_a_trillion_apart_leave_correlations_of_new_rows_as_they_are(method, fit, form):
    X, Y = latent_views(600, (30, 20))
    y = np.digitize(X[:, 0] + Y[:, 0], [3, 6, 9])
    train, test = slice(0, 400), slice(400, 600)

    def found(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model = getattr(clone(method), fit)([form(X[train]), Y[train]], y[train])
        return model.eigenvalues_, correlations(*model.transform([X[test], Y[test]]))

    plain, scaled = found(X), found(X * UNITS)
    np.testing.assert_allclose(scaled[0], plain[0], atol=1e-8)
    np.testing.assert_allclose(scaled[1], plain[1], atol=1e-8)


# ---- near-collinear views ------------------------------------------------------------------------


@extended
@pytest.mark.parametrize("units", [1.0, UNITS], ids=["one unit", "many units"])
@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8])
def test_correlations_of_near_collinear_views_are_those_of_extended_precision(condition, units):
    X, Y = latent_views(500, (30, 20))
    X, Y = ill_conditioned(X, condition) * units, ill_conditioned(Y, condition, seed=1)
    exact = agreements([X, Y])[:20] - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = CCA(20).fit(X, Y).canonical_correlations_
    np.testing.assert_allclose(found, exact, atol=1e-8)


@extended
def test_agreement_of_three_near_collinear_views_is_that_of_extended_precision():
    blocks = [ill_conditioned(X, 1e8, i) for i, X in enumerate(latent_views(500, (12, 10, 8)))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = MVCCA(6, reg=0).fit(blocks).eigenvalues_
    np.testing.assert_allclose(found, agreements(blocks)[:6], atol=1e-8)


# ---- more features than rows ---------------------------------------------------------------------


def ridge_scores(
    train: list[np.ndarray], test: list[np.ndarray], reg: float, k: int
) -> list[np.ndarray]:
    """Scores of new rows by the primal problem, features by features, with its ridge."""
    X, Y = (A - A.mean(axis=0) for A in train)
    Sxx, Syy = (A.T @ A + reg * np.mean(np.sum(A**2, axis=0)) * np.eye(A.shape[1]) for A in (X, Y))
    _, A = linalg.eigh(X.T @ Y @ np.linalg.solve(Syy, Y.T @ X), Sxx)
    A = A[:, ::-1][:, :k]
    B = np.linalg.solve(Syy, Y.T @ X @ A)
    return [(T - F.mean(axis=0)) @ W for T, F, W in zip(test, train, (A, B), strict=True)]


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("rows", ["distinct", "nearly repeated"])
@pytest.mark.parametrize("reg", [1e-4, 1.0])
def test_ridge_with_more_features_than_rows_projects_new_rows_as_the_primal_problem(n, rows, reg):
    blocks = latent_views(n + 50, (150, 100))
    train, test = [X[:n].copy() for X in blocks], [X[n:] for X in blocks]
    if rows == "nearly repeated":
        for X in train:
            X[1] = X[0] * (1 + 1e-7)
    found = CCA(3, reg=reg).fit(*train).transform(*test)
    for ours, exact in zip(found, ridge_scores(train, test, reg, 3), strict=True):
        np.testing.assert_allclose(np.abs(correlations(ours, exact)), 1, atol=1e-8)
    exact = correlations(*ridge_scores(train, test, reg, 3))
    np.testing.assert_allclose(correlations(*found), exact, atol=1e-8)


def test_ridge_finds_on_new_rows_what_is_shared_by_thousands_of_features():
    blocks = latent_views(400, (2000, 1500), k=3)
    train, test = [X[:200] for X in blocks], [X[200:] for X in blocks]
    scores = CCA(3, reg=1.0).fit(*train).transform(*test)
    assert correlations(*scores).min() > 0.95


@pytest.mark.parametrize("units", [1.0, np.geomspace(1e-6, 1e6, 90)], ids=["one unit", "many"])
def test_without_a_ridge_a_wide_view_predicts_the_other_with_the_least_weights(units):
    X, Y = latent_views(100, (90, 4))
    X = X * units
    with pytest.warns(UserWarning, match=r"n <= p \+ q and reg=0"):
        model = CCA(4).fit({"wide": X[:40], "narrow": Y[:40]})
    np.testing.assert_allclose(model.canonical_correlations_, 1, atol=1e-8)
    scores = model.transform({"wide": X[40:], "narrow": Y[40:]})
    mean, deviation = X[:40].mean(axis=0), X[:40].std(axis=0)
    target = (Y[:40] - Y[:40].mean(axis=0)) @ model.weights_["narrow"]
    coefficients = np.linalg.pinv((X[:40] - mean) / deviation, rcond=1e-10) @ target
    predicted = (X[40:] - mean) / deviation @ coefficients
    np.testing.assert_allclose(scores["wide"], predicted, atol=1e-8 * np.abs(predicted).max())


@pytest.mark.parametrize(
    "reg", [10**400, {"X": 10**400, "y": 0}, {"X": np.inf, "y": 0}], ids=["int", "X", "inf"]
)
def test_a_ridge_beyond_the_largest_float_is_refused(reg):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match=r"reg.*must be a number >= 0, got (inf|10000)"):
        CCA(1, reg=reg).fit(X, X[:, :2])
