"""Probabilities of matches on planted views, and against scikit-learn on all pairs."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score, roc_curve

from mvcca import CCA, config_context
from mvcca.retrieval import RetrievalIndex, calibrate_matches, top_k

RHO = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.4, 0.3])
LIKELIHOOD_CONSTANT = -np.log1p(-(RHO**2)).sum() / 2


def gaussian_views(n, seed):
    """Rows whose inner products are the log-likelihood ratios of a match, up to a constant."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(n, len(RHO)))
    b = RHO * a + np.sqrt(1 - RHO**2) * rng.normal(size=a.shape)
    squares = RHO**2 / (2 * (1 - RHO**2))
    one = np.ones((n, 1))
    return {
        "text": np.hstack([a * RHO / (1 - RHO**2), -(a**2) @ squares[:, None], one]),
        "image": np.hstack([b, one, -(b**2) @ squares[:, None]]),
    }


def calibrated(views, **options):
    return calibrate_matches(views, "text", "image", similarity="inner", **options)


def noisy(n, seed, noise=0.7):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, 5))
    return {name: shared + noise * rng.normal(size=shared.shape) for name in ("text", "image")}


# ---- calibration --------------------------------------------------------------------------------


def is_reliable(p, is_right, edges=(0, 0.03, 0.1, 0.3, 0.6, 1.01)):
    """Whether the share of right items is that predicted, within sampling error."""
    for low, high in pairwise(edges):
        inside = (p >= low) & (p < high)
        expected, deviation = p[inside].sum(), np.sqrt((p * (1 - p))[inside].sum())
        # 5 % for the sampling error of the calibration itself
        assert abs(is_right[inside].sum() - expected) < 3 * deviation + 0.05 * expected, (low, high)


def test_gaussian_views_are_calibrated_by_bayes_rule():
    calibration = calibrated(gaussian_views(1500, 0))
    assert calibration.slope == pytest.approx(1, abs=0.06)
    assert calibration.evidence_slope == pytest.approx(1, abs=0.3)
    assert calibration.evidence_intercept == pytest.approx(
        calibration.evidence_slope * LIKELIHOOD_CONSTANT, abs=0.2
    )


@pytest.mark.parametrize("k", [5, 50])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_probabilities_are_the_shares_of_right_items_in_new_searches(share, k):
    calibration = calibrated(gaussian_views(1500, 0))
    n, probabilities, is_right = 1000, [], []
    for seed in (1, 2, 3):
        views, others = gaussian_views(n, seed), gaussian_views(n, seed + 10)["image"]
        is_held = np.arange(n) < share * n
        gallery = np.where(is_held[:, None], views["image"], others)
        scores, items = top_k(views["text"], gallery, k, "inner")
        probabilities.append(calibration.probability(scores, n, share))
        is_right.append((items == np.arange(n)[:, None]) & is_held[:, None])
    p, is_right = np.concatenate(probabilities), np.concatenate(is_right)
    is_reliable(p[:, 0], is_right[:, 0])
    is_reliable(p.ravel(), is_right.ravel())


def test_probabilities_of_a_fitted_model_are_calibrated_in_an_index():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(2, len(RHO), len(RHO)))

    def drawn(n):
        a = rng.normal(size=(n, len(RHO)))
        b = RHO * a + np.sqrt(1 - RHO**2) * rng.normal(size=a.shape)
        return {"text": a @ mixing[0], "image": b @ mixing[1]}

    model = CCA(len(RHO)).fit(drawn(5000))
    options = {"estimator": model, "weighting": "likelihood"}
    calibration = calibrate_matches(drawn(1500), "text", "image", **options)
    assert calibration.slope == pytest.approx(1, abs=0.08)
    assert calibration.evidence_intercept == pytest.approx(0, abs=0.2)
    index = RetrievalIndex(model, weighting="likelihood").add(views := drawn(1500))
    scores, ids = index.search({"text": views["text"]}, "image", k=10)
    is_right = ids == np.arange(1500)[:, None]
    is_reliable(calibration.probability(scores, 1500, share=1).ravel(), is_right.ravel())


def test_the_fit_is_temperature_scaling_and_a_logistic_regression():
    views = noisy(120, 0)
    scores, own = views["text"] @ views["image"].T, np.eye(120, dtype=bool)
    calibration = calibrated(views)
    slopes = calibration.slope * np.array([0.9, 0.99, 1, 1.01, 1.1])
    losses = [np.sum(logsumexp(a * scores, axis=1) - a * scores[own]) for a in slopes]
    assert np.argmin(losses) == 2
    logs, drawn = calibration.slope * scores, np.random.RandomState(0).permutation(120)
    ranked = scores.argsort(axis=1)
    held, missing, weights = [], [], []
    for n_parts in (1, 2, 4, 8):  # galleries of all items, and of random parts of each ranked list
        for part in range(n_parts):
            places = drawn[part * 120 // n_parts : (part + 1) * 120 // n_parts]
            for i in range(120):
                others = [logs[i, j] for j in ranked[i, places] if j != i]
                all_of_them = [logs[i, i], *others]
                weights.append(1 / n_parts)
                for found, sample in ((held, all_of_them), (missing, others)):
                    found.append([logsumexp(sample) - np.log(len(sample)), np.log(len(sample))])
    x = np.tile(np.concatenate([held, missing]), (2, 1))
    y, targets = np.repeat([1, 0], 3600), np.repeat([481 / 482, 1 / 482], 1800)
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    targets = np.concatenate([targets, 1 - targets]) * np.tile(weights, 4)
    model.fit(x, y, sample_weight=targets)
    found = calibration.evidence_slope, calibration.size_slope, calibration.evidence_intercept
    assert_allclose(found, [*model.coef_[0], model.intercept_[0]], rtol=1e-3, atol=1e-3)
    with config_context(block_rows=7):
        again = calibrated(views)
    assert again.slope == pytest.approx(calibration.slope, rel=1e-9)


@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "inner"])
def test_the_order_of_objects_and_of_views_does_not_change_the_calibration(similarity):
    views = {name: np.round(rows, 1) for name, rows in noisy(150, 0).items()}
    views["text"][:20] = views["text"][20:40]  # copies of some queries and items
    views["image"][70:80] = views["image"][:10]
    order = np.random.default_rng(1).permutation(150)
    expected = calibrate_matches(views, "text", "image", similarity=similarity)
    turned = {name: views[name][order] for name in ("image", "text")}
    found = calibrate_matches(turned, "text", "image", similarity=similarity)
    for name, value in vars(expected).items():
        assert_allclose(getattr(found, name), value, rtol=1e-6, atol=1e-9, err_msg=name)


def test_probabilities_are_those_of_the_formula():
    views = noisy(60, 1)
    c = calibrated(noisy(90, 0))
    scores, items = top_k(views["text"], views["image"], 60, "inner")
    for share in (0.2, 1.0):
        p = c.probability(scores, 60, share)
        for i in range(60):
            ratios = np.exp(c.slope * scores[i])
            held = 1.0
            if share < 1:
                odds = share / (1 - share) * np.exp(c.evidence_intercept)
                odds *= (ratios.sum() / 60) ** c.evidence_slope * 60**c.size_slope
                held = odds / (1 + odds)
            assert_allclose(p[i], held * ratios / ratios.sum())
        assert_allclose(c.probability(scores[:, :20], 60, share), p[:, :20], atol=0.02)
    assert items.shape == p.shape


def test_scores_that_separate_all_matches_have_finite_odds():
    views = {name: 10 * np.eye(30) for name in ("text", "image")}
    calibration = calibrated(views)
    assert np.isfinite(
        [calibration.slope, calibration.evidence_slope, calibration.evidence_intercept]
    ).all()
    p = calibration.probability(np.sort(views["text"] @ views["image"].T)[:, ::-1], 30)
    assert (p[:, 0] > 0.9).all()
    assert calibration.probability(np.zeros((1, 30)), 30).sum() < 0.1
    assert calibration.auc == 1


# ---- the ROC and thresholds ---------------------------------------------------------------------


def test_the_roc_is_that_of_all_pairs():
    views = noisy(80, 1)
    scores = views["text"] @ views["image"].T
    is_match = np.eye(80, dtype=bool)
    calibration = calibrated(views)
    assert calibration.auc == pytest.approx(roc_auc_score(is_match.ravel(), scores.ravel()))
    false, true, thresholds = roc_curve(is_match.ravel(), scores.ravel(), drop_intermediate=False)
    places = np.searchsorted(-thresholds, -calibration.thresholds)
    assert_allclose(calibration.thresholds, thresholds[places])
    assert_allclose(calibration.true_positive_rates, true[places])
    assert_allclose(calibration.false_positive_rates, false[places])


def test_thresholds_keep_what_they_promise():
    views = noisy(80, 1)
    scores, is_match = views["text"] @ views["image"].T, np.eye(80, dtype=bool)
    calibration = calibrated(views)
    for rate in (0.001, 0.01, 0.2):
        threshold = calibration.threshold(rate)
        assert np.mean(scores[~is_match] >= threshold) <= rate
        below = calibration.thresholds[calibration.thresholds < threshold]
        assert np.mean(scores[~is_match] >= below[0]) > rate
    # Every rate that a threshold has is allowed to be reached.
    rates, places = np.unique(calibration.false_positive_rates[::-1], return_index=True)
    assert [calibration.threshold(rate) for rate in rates] == [
        *calibration.thresholds[::-1][places]
    ]
    swapped = {"text": views["text"], "image": -views["image"]}
    assert calibrated(swapped).threshold(1e-6) == np.inf


# ---- what is ranked -----------------------------------------------------------------------------


@pytest.mark.parametrize("hubness", [None, "csls"])
@pytest.mark.parametrize("similarity", ["cosine", "euclidean", "inner"])
def test_calibrated_scores_are_those_of_a_search(similarity, hubness):
    views, bank = noisy(70, 2), noisy(40, 3)
    options = {} if hubness is None else {"hubness": hubness, "bank": bank}
    calibration = calibrate_matches(views, "text", "image", similarity=similarity, **options)
    if options:
        options["bank"] = bank["text"], bank["image"]
    scores, items = top_k(views["text"], views["image"], 70, similarity, **options)
    matches = scores[items == np.arange(70)[:, None]]
    assert_allclose(calibration.thresholds, -np.sort(-matches), rtol=1e-12)
    wrong = scores[items != np.arange(70)[:, None]]
    assert_allclose(
        calibration.false_positive_rates,
        [np.mean(wrong >= t - 1e-13) for t in calibration.thresholds],
        atol=1e-3,
    )


def test_an_estimator_projects_the_rows_and_objects_may_have_several():
    train, views = noisy(200, 4), noisy(60, 5)
    model = CCA(3).fit(train)
    views["text"] = np.repeat(views["text"], 5, axis=0)
    calibration = calibrate_matches(views, "text", "image", estimator=model, similarity="cosine")
    assert len(calibration.thresholds) == 300
    projected = {name: model.transform({name: rows})[name] for name, rows in views.items()}
    again = calibrate_matches(projected, "text", "image", similarity="cosine")
    assert again.slope == calibration.slope
    restored = pickle.loads(pickle.dumps(calibration))
    assert restored.probability([[0.3]], 60) == calibration.probability([[0.3]], 60)


def test_several_right_items_share_the_probability_of_a_match():
    rng, n = np.random.default_rng(0), 150

    def drawn(n):
        shared = rng.normal(size=(n, 12))
        captions = np.repeat(shared, 5, axis=0)
        return {
            "image": shared + 0.5 * rng.normal(size=shared.shape),
            "text": captions + 0.5 * rng.normal(size=captions.shape),
        }

    with pytest.warns(UserWarning, match="up to 5 right items in 'text', which share"):
        calibration = calibrate_matches(drawn(n), "image", "text")
    new = drawn(2 * n)
    scores, found = top_k(new["image"], new["text"][: 5 * n], k=10)  # half of them have no text
    is_right = found // 5 == np.arange(2 * n)[:, None]
    probability = calibration.probability(scores, 5 * n)
    assert probability.sum(axis=1).mean() == pytest.approx(is_right.any(axis=1).mean(), abs=0.05)
    assert probability[:, 0].mean() < 0.8 * is_right[:, 0].mean()


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_objects_are_calibrated(n):
    calibration = calibrated(noisy(n, 7))
    assert np.isfinite(calibration.probability([[0.9, 0.1]], n)).all()


def test_errors_say_what_is_wrong():
    views = noisy(30, 6)
    with pytest.raises(ValueError, match="Unknown view 'sound'"):
        calibrate_matches(views, "sound", "image")
    with pytest.raises(ValueError, match="nothing to compare with"):
        calibrated({name: rows[:1] for name, rows in views.items()})
    calibration = calibrated(views)
    with pytest.raises(ValueError, match="false_positive_rate to be from 0 to 1, got 2"):
        calibration.threshold(2)
    with pytest.raises(ValueError, match="share to be above 0 and at most 1, got 0"):
        calibration.probability([[1.0]], 30, share=0)
    with pytest.raises(ValueError, match=r"k from 1 to n_items = 1, got \(1, 2\)"):
        calibration.probability([[1.0, 0.5]], 1)
