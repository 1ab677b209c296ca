"""Planted models have the solution that they state, by scipy's decompositions of their samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh, sqrtm, svdvals
from sklearn.datasets import load_digits

from mvcca import datasets
from mvcca.views import Views


def empirical_correlations(x, y):
    """Canonical correlations: singular values of Qx' Qy (Björck & Golub 1973)."""
    q = [np.linalg.qr(block - block.mean(axis=0))[0] for block in (x, y)]
    return svdvals(q[0].T @ q[1])


def same_views(a, b):
    return a.names == b.names and all(np.array_equal(a[name], b[name]) for name in a.names)


# ---- digits


@pytest.mark.parametrize("parts", ["halves", "quadrants"])
def test_parts_of_a_digit_put_together_are_the_image(parts):
    data = datasets.load_digits_views(parts)
    drawn = {
        name: data.views[name].reshape(-1, *data.image_shapes[name]) for name in data.views.names
    }
    if parts == "halves":
        whole = np.concatenate([drawn["left"], drawn["right"]], axis=2)
    else:
        rows = [
            np.concatenate([drawn[f"{row}_left"], drawn[f"{row}_right"]], axis=2)
            for row in ("top", "bottom")
        ]
        whole = np.concatenate(rows, axis=1)
    np.testing.assert_array_equal(whole, load_digits().images)


def test_digits_are_the_labels_of_digits_views():
    data = datasets.load_digits_views()
    np.testing.assert_array_equal(data.labels, load_digits().target)
    assert data.views.is_paired
    assert {data.views[name].dtype for name in data.views.names} == {np.dtype(float)}


def test_segments_draw_the_digit_of_a_seven_segment_display():
    drawings = (
        " _       _   _       _   _   _   _   _  ",
        "| |   |  _|  _| |_| |_  |_    | |_| |_| ",
        "|_|   | |_   _|   |  _| |_|   | |_|  _| ",
    )
    # Place of each segment in a drawing of 3 x 3 characters.
    places = {
        "a": (0, 1),
        "f": (1, 0),
        "g": (1, 1),
        "b": (1, 2),
        "e": (2, 0),
        "d": (2, 1),
        "c": (2, 2),
    }
    data = datasets.load_digits_views(labels="segments")
    for digit in range(10):
        start = 4 * digit
        lit = {
            segment
            for segment, (row, column) in places.items()
            if drawings[row][start + column] != " "
        }
        assert {
            labels for labels, d in zip(data.labels, data.digits, strict=True) if d == digit
        } == {frozenset(lit)}


@pytest.mark.parametrize("arguments", [{"parts": "thirds"}, {"labels": "letters"}])
def test_digits_views_name_what_they_know(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"{name} must be"):
        datasets.load_digits_views(**arguments)


# ---- planted models

PLANTED = [
    (datasets.make_gaussian_views, {"n_features": (4, 3, 2), "correlations": (0.9, 0.5)}),
    (datasets.make_sparse_views, {"n_features": (30, 20)}),
    (datasets.make_nonlinear_views, {"noise": 0.1}),
    (datasets.make_multilabel_views, {"paired": 0.3}),
]


@pytest.mark.parametrize(("make", "arguments"), PLANTED)
def test_the_seed_decides_every_draw(make, arguments):
    first, again, other = (make(50, random_state=seed, **arguments) for seed in (0, 0, 1))
    assert same_views(first.views, again.views)
    assert not same_views(first.views, other.views)
    assert make(50, random_state=np.random.RandomState(0), **arguments).views.shape == (
        first.views.shape
    )


@pytest.mark.parametrize("rho", [(0.9, 0.7, 0.5), (0.8, 0.8, 0.8), (1.0, 0.3), (0.5, 0.9)])
def test_two_gaussian_views_have_the_planted_correlations(rho):
    data = datasets.make_gaussian_views(
        100_000, n_features=(6, 5), correlations=rho, random_state=0
    )
    found = empirical_correlations(data.views["view0"], data.views["view1"])
    np.testing.assert_allclose(found[: len(rho)], sorted(rho, reverse=True), atol=0.01)
    np.testing.assert_allclose(found[len(rho) :], 0, atol=0.02)
    np.testing.assert_array_equal(data.correlations, sorted(rho, reverse=True))


def test_planted_weights_give_uncorrelated_variates_with_the_planted_correlations():
    data = datasets.make_gaussian_views(100_000, n_features=(6, 5, 4), random_state=1)
    variates = [
        (data.views[name] - data.means[name]) @ data.weights[name] for name in data.views.names
    ]
    for p, x in enumerate(variates):
        np.testing.assert_allclose(x.T @ x / len(x), np.eye(3), atol=0.02)
        for y in variates[:p]:
            np.testing.assert_allclose(x.T @ y / len(x), np.diag(data.correlations), atol=0.02)


def test_many_gaussian_views_have_the_planted_eigenvalues():
    data = datasets.make_gaussian_views(100_000, n_features=(6, 5, 4, 3), random_state=2)
    joint = np.cov(np.hstack([data.views[name] for name in data.views.names]).T)
    ends = np.cumsum([0, *data.views.widths.values()])
    within = block_diag(*(joint[a:b, a:b] for a, b in pairwise(ends)))
    found = eigh(joint, within, eigvals_only=True)[::-1]
    np.testing.assert_allclose(found[:3], data.eigenvalues, atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": (4,)}, "at least two views"),
        ({"correlations": (1.2,)}, "between 0 and 1"),
        ({"correlations": (np.nan,)}, "between 0 and 1"),
        ({"n_features": (4, 2)}, "views of at least 3 features"),
    ],
)
def test_gaussian_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_gaussian_views(10, **arguments)


@pytest.mark.parametrize("covariance", ["identity", "toeplitz", "sparse_inverse"])
def test_the_sparse_population_has_one_canonical_correlation_and_it_is_the_planted_one(covariance):
    data = datasets.make_sparse_views(
        2, n_features=(60, 40), correlation=0.8, covariance=covariance, random_state=0
    )
    xx, xy, yy = data.covariance[:60, :60], data.covariance[:60, 60:], data.covariance[60:, 60:]
    coherence = np.linalg.solve(sqrtm(xx), np.linalg.solve(sqrtm(yy), xy.T).T)
    np.testing.assert_allclose(svdvals(coherence), [0.8] + [0] * 39, atol=1e-9)
    np.testing.assert_allclose(np.diag(data.covariance), 1)
    phi, eta = data.weights["view0"], data.weights["view1"]
    np.testing.assert_allclose(
        [(phi.T @ xy @ eta).item(), (phi.T @ xx @ phi).item(), (eta.T @ yy @ eta).item()],
        [0.8, 1, 1],
    )


@pytest.mark.parametrize("covariance", ["identity", "toeplitz", "sparse_inverse"])
def test_sparse_views_are_drawn_with_the_covariance_they_state(covariance):
    data = datasets.make_sparse_views(
        200_000, n_features=(7, 6), n_nonzero=3, covariance=covariance, random_state=0
    )
    joint = np.hstack([data.views["view0"], data.views["view1"]])
    np.testing.assert_allclose(joint.T @ joint / len(joint), data.covariance, atol=0.015)


def test_the_inverse_of_the_sparse_inverse_covariance_has_five_diagonals():
    data = datasets.make_sparse_views(2, n_features=(20, 20), covariance="sparse_inverse")
    inverse = np.linalg.inv(data.covariance[:20, :20])
    distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    np.testing.assert_allclose(inverse[distance > 2], 0, atol=1e-10)
    assert np.all(inverse[distance <= 2] > 0.1)


def test_sparse_weights_live_on_their_support():
    data = datasets.make_sparse_views(random_state=0)
    assert data.views.shape == (400, 1600)
    for name, weights in data.weights.items():
        np.testing.assert_array_equal(np.flatnonzero(weights), data.support[name])
        np.testing.assert_allclose(weights[data.support[name]], 5**-0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": (8, 8, 8)}, "two views"),
        ({"n_features": (8, 4), "n_nonzero": 5}, "between 1 and 4"),
        ({"correlation": -0.1}, "between 0 and 1"),
        ({"covariance": "full"}, "one of"),
    ],
)
def test_sparse_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_sparse_views(10, **{"n_features": (8, 8), **arguments})


def test_a_variable_and_its_square_are_linearly_uncorrelated():
    views = datasets.make_nonlinear_views(100_000, random_state=0).views
    assert abs(np.corrcoef(views["view0"].ravel(), views["view1"].ravel())[0, 1]) < 0.01
    np.testing.assert_allclose(views["view1"], views["view0"] ** 2)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_squaring_finds_the_nonlinear_correlation(noise):
    data = datasets.make_nonlinear_views(100_000, noise=noise, random_state=0)
    x, y = data.views["view0"].ravel(), data.views["view1"].ravel()
    assert np.corrcoef(x**2, y)[0, 1] == pytest.approx(data.nonlinear_correlation, abs=0.01)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="cannot be negative"):
        datasets.make_nonlinear_views(10, noise=-1)
    with pytest.raises(ValueError, match="cannot be negative"):
        datasets.make_multilabel_views(10, noise=-1)


def test_labels_explain_noiseless_multilabel_views_entirely():
    data = datasets.make_multilabel_views(200, paired=0.5, noise=0.0, random_state=0)
    for name, block in data.views.items():
        design = np.hstack([np.ones((200, 1)), data.indicator])[data.views.objects(name)]
        _, residual, rank, _ = np.linalg.lstsq(design, block, rcond=None)
        assert rank == 7
        np.testing.assert_allclose(residual, 0, atol=1e-20)


def test_the_latent_vector_can_be_read_off_every_view():
    data = datasets.make_multilabel_views(5000, noise=0.1, random_state=0)
    for name, block in data.views.items():
        read = (block - data.means[name]) @ np.linalg.pinv(data.mixing[name])
        error = read - data.latent[data.views.objects(name)]
        np.testing.assert_allclose(error.std(axis=0), 0.1, rtol=0.05)
        np.testing.assert_allclose(error.mean(axis=0), 0, atol=0.01)


@pytest.mark.parametrize("paired", [0.0, 0.25, 1.0])
def test_the_given_share_of_objects_is_paired_and_the_rest_seen_once(paired):
    views = datasets.make_multilabel_views(
        100, n_features=(9, 8, 7), paired=paired, random_state=0
    ).views
    times = views.seen.sum(axis=1)
    assert np.sum(times == 3) == 100 * paired
    assert np.sum(times == 1) == 100 * (1 - paired)
    alone = views.seen[times == 1].sum(axis=0)
    assert alone.max() - alone.min() <= 1


def test_views_without_a_pair_are_stacked_like_unpaired_ones():
    views = datasets.make_multilabel_views(31, random_state=0).views
    stacked = Views.unpaired(dict(views.items()))
    np.testing.assert_array_equal(views.seen, stacked.seen)


def test_label_sets_and_indicator_say_the_same_and_no_set_is_empty():
    data = datasets.make_multilabel_views(2000, n_classes=5, max_labels=4, random_state=0)
    for labels, row in zip(data.labels, data.indicator, strict=True):
        assert labels == {label for label in range(5) if row[label]}
    np.testing.assert_array_equal(np.unique(data.indicator.sum(axis=1)), [1, 2, 3, 4])
    np.testing.assert_allclose(data.indicator.mean(axis=0), 2.5 / 5, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_labels": 7}, "between 1 and n_classes=6"),
        ({"paired": 1.5}, "between 0 and 1"),
        ({"n_features": (20, 5)}, "at least n_latent=6"),
        ({"n_samples": 1}, "leave a view empty"),
    ],
)
def test_multilabel_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_multilabel_views(**arguments)


# ---- spoken digits


def test_spoken_digits_share_classes_and_no_objects():
    data = datasets.load_spoken_digits()
    for part, n_images in ((data.train, 1297), (data.test, 500)):
        assert not part.views.seen.all(axis=1).any()
        assert part.views["sound"].shape == (300, 24 * 40)
        assert part.views["image"].shape == (n_images, 8 * 8)
        assert np.array_equal(np.bincount(part.labels["sound"]), [30] * 10)
        assert len(part.labels["image"]) == n_images
    assert {name: len(set(of)) for name, of in data.speakers.items()} == {"train": 6, "test": 6}
    assert data.image_shapes == {"sound": (24, 40), "image": (8, 8)}
    assert np.array_equal(data.train.views["image"], load_digits().data[:1297])
