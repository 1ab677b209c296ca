"""Expected correlations, and the scores weighted by them that retrieval ranks by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mvcca import CCA, KCCA, MVCCA, Views
from mvcca.datasets import load_digits_views, make_gaussian_views
from mvcca.problem._expected import expected_correlation
from mvcca.retrieval import evaluate_retrieval


def gaussian_views(n, rho, width, seed):
    """Views whose leading features have the correlations `rho`; the others are noise."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, n, width))
    k = len(rho)
    Y[:, :k] = rho * X[:, :k] + np.sqrt(1 - np.square(rho)) * Y[:, :k]
    return Views({"x": X, "y": Y})


def correlations(model, views):
    x, y = (model.transform({name: views[name]})[name] for name in views.names)
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(x.T, y.T, strict=True)])


# ---- correlations to expect ---------------------------------------------------------------------


def test_with_one_view_fixed_the_estimate_is_leaving_one_out_by_hand():
    rng = np.random.default_rng(0)
    n, d = 200, 30
    X, v = rng.normal(size=(n, d)), rng.normal(size=n)
    X[:, 0] += v
    X, v = X - X.mean(axis=0), v - v.mean()
    left_out = np.empty(n)
    for j in range(n):
        rest = np.arange(n) != j
        left_out[j] = X[j] @ np.linalg.lstsq(X[rest], v[rest], rcond=None)[0]
    fitted = X @ np.linalg.lstsq(X, v, rcond=None)[0]
    training = np.corrcoef(fitted, v)[0, 1]
    estimate = expected_correlation(np.array([training]), (d, 0), n)
    assert abs(estimate[0] - np.corrcoef(left_out, v)[0, 1]) < 0.02
    assert training - estimate[0] > 0.05


@pytest.mark.parametrize("reg", [0.0, 0.1, 1.0, "auto"])
def test_expected_correlations_are_close_to_those_of_new_rows(reg):
    rho = np.array([0.95, 0.8, 0.6, 0.45])
    model = CCA(4, reg=reg).fit(gaussian_views(1500, rho, 60, seed=1))
    new = correlations(model, gaussian_views(50_000, rho, 60, seed=2))
    error = np.abs(model.expected_correlations_ - new)
    assert error.max() < 0.06
    optimism = np.abs(correlations(model, gaussian_views(1500, rho, 60, seed=1)) - new)
    assert error.sum() < 0.6 * optimism.sum()


def test_without_rows_to_spare_all_components_weigh_the_same():
    views = gaussian_views(40, np.array([0.9]), 60, seed=0)
    with pytest.warns(UserWarning, match="by construction"):
        model = CCA(3).fit(views)
    np.testing.assert_allclose(model.expected_correlations_, 1 / np.sqrt(40))
    plain = evaluate_retrieval(views, estimator=model, similarity="cosine")
    assert evaluate_retrieval(views, estimator=model).mean() == plain.mean()


@pytest.mark.parametrize("estimator", [CCA(3), CCA(3, reg=0.1), MVCCA(3, reg="auto")])
def test_storage_and_batches_do_not_change_what_is_expected(estimator):
    views = gaussian_views(300, np.array([0.9, 0.6, 0.4]), 10, seed=0)
    expected = estimator.fit(views).expected_correlations_.copy()
    wide = Views({name: np.repeat(X, 40, axis=1) for name, X in views.items()})
    np.testing.assert_allclose(
        estimator.fit(wide).expected_correlations_, expected, rtol=0, atol=0.02
    )
    if estimator.reg == "auto":
        return
    batches = clone(estimator)
    for rows in (slice(0, 100), slice(100, 300)):
        batches.partial_fit(views[rows])
    np.testing.assert_allclose(batches.expected_correlations_, expected, rtol=1e-9)


def test_of_three_views_the_mean_over_pairs_is_expected():
    views = make_gaussian_views(500, n_features=(4, 3, 5), random_state=0).views
    model = MVCCA(3, reg=0.0).fit(views)
    scores = model.transform(views)
    pairs = [("view0", "view1"), ("view0", "view2"), ("view1", "view2")]
    widths = {"view0": 4, "view1": 3, "view2": 5}
    by_hand = []
    for p, q in pairs:
        training = [np.corrcoef(a, b)[0, 1] for a, b in zip(scores[p].T, scores[q].T, strict=True)]
        by_hand.append(expected_correlation(np.array(training), (widths[p], widths[q]), 500))
    np.testing.assert_allclose(model.expected_correlations_, np.mean(by_hand, axis=0), atol=1e-10)


# ---- the weights --------------------------------------------------------------------------------


def test_weights_are_those_of_the_likelihood_ratio():
    rho = np.array([0.9, 0.6, 0.3])
    model = CCA(3).fit(gaussian_views(100, rho, 3, seed=0))
    model.expected_correlations_ = rho
    rows = gaussian_views(5, rho, 3, seed=1)
    scores, vectors = model.transform(rows), model.retrieval_scores(rows)
    for a, b, u, v in zip(scores["x"], scores["y"], vectors["x"], vectors["y"], strict=True):
        joint = multivariate_normal(
            np.zeros(6), np.block([[np.eye(3), np.diag(rho)], [np.diag(rho), np.eye(3)]])
        )
        apart = multivariate_normal(np.zeros(6), np.eye(6))
        ratio = joint.logpdf(np.r_[a, b]) - apart.logpdf(np.r_[a, b])
        squares = (rho**2 / (2 * (1 - rho**2))) @ (a**2 + b**2)
        constant = -0.5 * np.log(1 - rho**2).sum()
        np.testing.assert_allclose(u @ v - squares + constant, ratio, rtol=1e-10)


@pytest.mark.parametrize("estimator", [CCA(20, reg=0.01), KCCA(20, reg=0.1), MVCCA(20, reg="auto")])
def test_digits_are_found_better_than_by_the_cosine_of_scores(estimator):
    data = load_digits_views()
    order = np.random.default_rng(0).permutation(len(data.labels))
    train, test = order[:1200], order[1200:]
    model = estimator.fit(data.views[train])
    rows, labels = data.views[test], data.labels[test]
    weighted = evaluate_retrieval(rows, labels, measures="map", estimator=model).mean()["map"]
    plain = evaluate_retrieval(
        rows, labels, measures="map", estimator=model, similarity="cosine"
    ).mean()["map"]
    assert weighted > plain


def test_power_takes_the_place_of_the_weights():
    data = load_digits_views()
    model = MVCCA(5, power=4).fit(data.views)
    np.testing.assert_array_equal(
        model.retrieval_scores(data.views)["left"], model.transform(data.views)["left"]
    )


def test_models_saved_without_expected_correlations_rank_by_plain_scores():
    data = load_digits_views()
    model = CCA(5).fit(data.views)
    del model.expected_correlations_
    np.testing.assert_array_equal(
        model.retrieval_scores(data.views)["left"], model.transform(data.views)["left"]
    )


def test_models_that_are_not_fitted_say_so():
    with pytest.raises(NotFittedError, match="CCA"):
        CCA().retrieval_scores({"x": np.ones((2, 2))})
