"""GCCA: the eigenvectors of the sum of ridge projections, found without any n x n matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy import linalg

import mvcca.base.statistic_estimator as base
from mvcca import CCA, GCCA, MVCCA, JoinViews, Views
from mvcca.datasets import load_digits_views


def three_views(n=120, widths=(7, 5, 4), seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return {
        name: z @ rng.normal(size=(3, d)) + rng.normal(size=(n, d)) * rng.uniform(0.5, 3, d) + 2
        for name, d in zip("abc", widths, strict=True)
    }


def by_projections(views, reg, k, weights=None):
    """Eigenvectors G, in descending order, of the sum of the views' ridge projections."""
    n = len(next(iter(views.values())))
    weights = np.ones(n) if weights is None else weights
    M, total = np.zeros((n, n)), weights.sum()
    for X in views.values():
        Z = np.sqrt(weights)[:, None] * (X - np.average(X, axis=0, weights=weights))
        S = Z.T @ Z
        ridge = reg * np.trace(S) / len(S)
        M += Z @ np.linalg.solve(S + ridge * np.eye(len(S)), Z.T)
    values, G = linalg.eigh(M, subset_by_index=[n - k, n - 1])
    return values[::-1], G[:, ::-1] * np.sqrt((total - 1) / weights)[:, None]


def same_up_to_signs(found, expected, atol):
    signs = np.sign(np.sum(found * expected, axis=0))
    assert_allclose(found, expected * signs, atol=atol)


@pytest.mark.parametrize("reg", [1e-3, 0.1, 3.0])
@pytest.mark.parametrize("widths", [(7, 5, 4), (7, 5), (150, 5, 130)], ids=str)
def test_gcca_has_the_eigenvectors_of_the_sum_of_ridge_projections(widths, reg):
    views = three_views(widths=(*widths, 4)[:3] if len(widths) > 2 else (*widths, 3))
    views = dict(list(views.items())[: len(widths)])
    values, G = by_projections(views, reg, 3)
    model = GCCA(3, reg=reg).fit(views)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)
    # Scores of all views, averaged, are multiples of G.
    joint = JoinViews("mean").fit_transform(model.transform(views))
    same_up_to_signs(joint / joint.std(axis=0, ddof=1), G, 1e-7)


def test_weights_are_ridge_regressions_of_the_shared_representation():
    views, reg = three_views(), 0.3
    model = GCCA(2, reg=reg).fit(views)
    joint = JoinViews("mean").fit_transform(model.transform(views))
    G = joint / joint.std(axis=0, ddof=1)
    for name, X in views.items():
        Z = X - X.mean(axis=0)
        S = Z.T @ Z
        regression = np.linalg.solve(S + reg * np.trace(S) / len(S) * np.eye(len(S)), Z.T @ G)
        weights = model.weights_[name] * np.sqrt(model.eigenvalues_ / 3)
        assert_allclose(weights, regression, atol=1e-10)


def test_frequencies_weight_the_sum_of_projections():
    views = three_views()
    weights = np.random.default_rng(1).integers(1, 4, 120).astype(float)
    values, G = by_projections(views, 0.2, 2, weights)
    model = GCCA(2, reg=0.2).fit(views, sample_weight=weights)
    assert_allclose(model.eigenvalues_, values, rtol=1e-10)
    joint = sum(model.transform(views).values())
    same_up_to_signs(joint / np.sqrt(np.cov(joint.T, fweights=weights).diagonal()), G, 1e-8)


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_without_a_ridge_gcca_is_mvcca(names):
    views = {name: X for name, X in three_views().items() if name in names}
    model, expected = GCCA(3, reg=0).fit(views), MVCCA(3, reg=0).fit(views)
    assert_allclose(model.eigenvalues_, by_projections(views, 0, 3)[0], rtol=1e-10)
    for attribute in ("eigenvalues_", "expected_correlations_"):
        assert_allclose(getattr(model, attribute), getattr(expected, attribute), rtol=1e-12)
    for name, W in expected.weights_.items():
        assert_allclose(model.weights_[name], W, atol=1e-12)


def test_without_a_ridge_gcca_of_two_views_expects_what_cca_does():
    views = load_digits_views().views[:400]
    model, expected = GCCA(5, reg=0).fit(views), CCA(5).fit(views)
    assert_allclose(model.eigenvalues_, 1 + expected.canonical_correlations_, rtol=1e-12)
    assert_allclose(model.expected_correlations_, expected.expected_correlations_, rtol=1e-9)


def test_a_large_ridge_gives_the_principal_components_of_all_features():
    views = three_views()
    model = GCCA(3, reg=1e8, reg_unit="absolute").fit(views)
    X = np.hstack([X - X.mean(axis=0) for X in views.values()])
    _, sizes, axes = np.linalg.svd(X, full_matrices=False)
    assert_allclose(model.eigenvalues_ * 1e8, sizes[:3] ** 2 / (len(X) - 1), rtol=1e-6)
    W = np.concatenate(list(model.weights_.values()))
    same_up_to_signs(W / np.linalg.norm(W, axis=0), axes[:3].T, 1e-6)


def test_a_ridge_counts_what_one_view_has_alone_unlike_mvcca():
    views = three_views(400)
    loud = np.random.default_rng(2).normal(size=400) * 50
    views["a"] = np.c_[views["a"], loud]
    reg = dict.fromkeys("abc", 30.0)
    share = {}
    for method in (GCCA, MVCCA):
        with pytest.warns(UserWarning, match="Unlike units: column 7"):
            W = method(1, reg=reg, reg_unit="absolute").fit(views).weights_
        share[method] = abs(W["a"][-1, 0] * 50) / np.std(views["a"] @ W["a"][:, 0])
    assert share[GCCA] > 0.9 > 0.5 > share[MVCCA]


@pytest.mark.parametrize("widths", [(6, 3), (6, 4, 3)], ids=str)
def test_no_more_components_than_views_can_share(widths):
    views = {n: X[:, :d] for (n, X), d in zip(three_views().items(), widths, strict=False)}
    most = sum(widths) - max(widths)
    with pytest.warns(UserWarning, match=f"fitted {most}"):
        model = GCCA(20, reg=0.1).fit(views)
    assert model.n_components_ == most


def test_partly_paired_views_solve_the_problem_of_their_pairs():
    rng, blocks = np.random.default_rng(3), three_views(300)
    seen = rng.random((300, 3)) < 0.7
    views = Views(blocks, np.where(seen, np.arange(300)[:, None], -1))
    columns = {"a": slice(0, 7), "b": slice(7, 12), "c": slice(12, 16)}
    A, within = np.zeros((16, 16)), {name: [] for name in "abc"}
    for i, p in enumerate("abc"):
        for j, q in enumerate("abc"):
            if i == j:
                continue
            both = seen[:, i] & seen[:, j]
            joint, d = np.cov(np.hstack([blocks[p][both], blocks[q][both]]).T), blocks[p].shape[1]
            A[columns[p], columns[q]] = joint[:d, d:]
            within[p].append(joint[:d, :d])
    B = linalg.block_diag(*(np.mean(own, axis=0) for own in within.values()))
    ridge = np.concatenate(
        [np.full(own.stop - own.start, 0.1 * np.diag(B)[own].mean()) for own in columns.values()]
    )
    expected = linalg.eigh(A + B, B + np.diag(ridge), eigvals_only=True)[::-1][:3]
    assert_allclose(GCCA(3, reg=0.1).fit(views).eigenvalues_, expected, rtol=1e-10)


def test_folds_choose_a_ridge_as_for_its_siblings():
    views = three_views(300)
    model = GCCA(None, reg="cv").fit(views)
    again = GCCA(None, reg=model.reg_, scale=model.scale_).fit(views)
    assert_allclose(model.eigenvalues_, again.eigenvalues_, rtol=1e-8)
    assert_allclose(model.expected_correlations_, again.expected_correlations_, rtol=1e-6)


def test_wide_sparse_views_are_not_solved_as_those_of_mvcca(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("products solve the problem of MVCCA")

    monkeypatch.setattr(base, "by_products", refused)
    rng = np.random.default_rng(0)
    views = {name: sp.random_array((90, 700), density=0.1, rng=rng, format="csr") for name in "ab"}
    with pytest.raises(AssertionError):  # where products would be asked for
        MVCCA(2, reg=1.0).fit(views)
    model = GCCA(2, reg=1.0).fit(views)
    values, _ = by_projections({name: X.toarray() for name, X in views.items()}, 1.0, 2)
    assert_allclose(model.eigenvalues_, values, rtol=1e-9)


def test_expected_correlations_are_near_those_of_new_rows():
    views = load_digits_views("quadrants").views
    model = GCCA(8, reg=0.1).fit(views[:900])
    new = model.score(views[900:])
    assert abs(model.expected_correlations_.mean() - new) < 0.03
    training = model.score(views[:900])
    assert training - new > 0.04
