"""Label features against sums over all pairs of rows: label vectors that never repeat."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import clone

from mvcca import MLCCA, MVMLCCA, Labels, Views, config_context
from mvcca.linear.label_features import fourier_features, landmark_features
from mvcca.similarity import LabelKernel, squared_exponential
from mvcca.statistics.label_sums_by_feature import LabelFeatureSums

ORACLES = {
    "sqexp": lambda A, B, sigma: np.exp(-cdist(A, B, "sqeuclidean") / (2 * sigma)),
    "exp": lambda A, B, sigma: np.exp(-cdist(A, B) / sigma),
    "cosine": lambda A, B, _: 1 - cdist(A, B, "cosine"),
    "equal": lambda A, B, _: (cdist(A, B) == 0).astype(float),
}
WIDTHS = {"image": 6, "text": 5}


def name_of(estimator):
    """As it prints, but for addresses of functions, which differ between test processes."""
    return re.sub(r" at 0x\w+", "", repr(estimator))


def real_labels(n: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 3))


def views_of(labels: np.ndarray, seed: int = 1) -> Views:
    """Views that share what their labels say, on means far from zero."""
    rng = np.random.default_rng(seed)
    blocks = {}
    for name, d in WIDTHS.items():
        signal = np.tanh(labels @ rng.standard_normal((labels.shape[1], 4)))
        noise = rng.standard_normal((len(labels), d))
        blocks[name] = signal @ rng.standard_normal((4, d)) + 0.5 * noise + 3
    return Views(blocks)


def pair_sums(views: Views, labels: dict[str, np.ndarray], g: Any, weights: Any = None) -> Any:
    """Ψ from the formula: every row of every view against every row of every view."""
    weights = np.ones(len(views)) if weights is None else weights
    centred, of_rows, vectors = [], [], []
    for p, (name, X) in enumerate(views.items()):
        X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
        w = weights[views.objects(name)] / weights[views.objects(name)].sum()
        part = np.zeros((len(X), sum(views.widths.values())))
        start = sum(list(views.widths.values())[:p])
        part[:, start : start + X.shape[1]] = w[:, None] * (X - w @ X)
        centred.append(part)
        of_rows.append(w)
        vectors.append(labels[name])
    rows, z = np.concatenate(centred), np.concatenate(vectors)
    return rows.T @ g(z, z) @ rows


def feature_sums(views: Views, y: np.ndarray, features: Any, weights: Any = None) -> Any:
    return LabelFeatureSums.of(views, Labels.of(y), features, weights)


def fourier(n_features: int, labels: Any, sigma: float = 1.0, seed: int = 0) -> Any:
    rng = np.random.RandomState(seed)
    return fourier_features(LabelKernel("sqexp", sigma), labels, n_features, rng)


def product_of_features(features: Any) -> Any:
    return lambda A, B: features(A) @ features(B).T


# ---- maps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("similarity", ["sqexp", "exp"])
def test_products_of_fourier_features_are_the_similarity_on_average(similarity):
    Z = real_labels(12)
    rng = np.random.RandomState(0)
    features = fourier_features(LabelKernel(similarity, 0.7), Z, 200_000, rng)
    np.testing.assert_allclose(
        features(Z) @ features(Z).T, ORACLES[similarity](Z, Z, 0.7), atol=0.02
    )


def test_equal_label_vectors_have_fourier_similarity_one_exactly():
    Z = real_labels(20)
    features = fourier(10, Z)
    np.testing.assert_allclose((features(Z) ** 2).sum(axis=1), 1, rtol=1e-14)


def test_fourier_features_keep_their_digits_where_labels_are_far_from_zero():
    Z = np.round(real_labels(30) * 64) / 64  # so that moving them is exact
    near, far = (fourier(50, labels)(labels) for labels in (Z, Z + 2.0**20))
    np.testing.assert_allclose(far, near, atol=1e-8)


@pytest.mark.parametrize("similarity", ["sqexp", "exp", "cosine", "equal"])
def test_landmark_features_are_exact_between_landmarks(similarity):
    Z = real_labels(40)
    features = landmark_features(LabelKernel(similarity, 0.7), Z)
    expected = ORACLES[similarity](Z, Z, 0.7)
    np.testing.assert_allclose(features(Z) @ features(Z).T, expected, atol=1e-7)


def test_landmark_features_leave_out_what_adds_nothing():
    Z = real_labels(40)
    assert landmark_features(LabelKernel("cosine", 1.0), Z).n_features == 3
    twice = np.repeat(Z[:10], 2, axis=0)
    assert landmark_features(LabelKernel("sqexp", 1.0), twice).n_features == 10


def test_landmark_features_project_onto_the_span_of_the_landmarks():
    Z, L = real_labels(40), real_labels(7, seed=5)
    features = landmark_features(LabelKernel("sqexp", 0.7), L)
    g = ORACLES["sqexp"]
    expected = g(Z, L, 0.7) @ np.linalg.inv(g(L, L, 0.7)) @ g(L, Z, 0.7)
    np.testing.assert_allclose(features(Z) @ features(Z).T, expected, atol=1e-10)


BAD_MAPS = {
    "Fourier features of a cosine": (
        {"label_features": "fourier", "label_similarity": "cosine"},
        'is for label_similarity="sqexp" or "exp".*Use label_features="nystroem"',
    ),
    "an odd number of Fourier features": (
        {"label_features": "fourier", "n_label_features": 501},
        "expected an even n_label_features, got 501",
    ),
    "frequencies that overflow": (
        {"label_features": "fourier", "label_similarity": "exp", "sigma": 1e-310},
        "too small for Fourier label features",
    ),
    "an indefinite similarity": (
        {"label_features": "nystroem", "label_similarity": lambda A, B: cdist(A, B)},
        "positive semi-definite label similarity, got eigenvalues from -",
    ),
    "an asymmetric similarity": (
        {"label_features": "nystroem", "label_similarity": lambda A, B: A[:, :1] + 2 * B[:, 0]},
        "must be symmetric",
    ),
    "a similarity of nothing": (
        {"label_features": "nystroem", "label_similarity": lambda A, B: np.zeros((len(A), len(B)))},
        "is zero, even to themselves",
    ),
}


@pytest.mark.parametrize(("parameters", "message"), BAD_MAPS.values(), ids=BAD_MAPS)
@pytest.mark.parametrize("estimator", [MVMLCCA, MLCCA])
def test_features_that_cannot_be_made_are_refused_with_a_way_out(estimator, parameters, message):
    labels = real_labels()
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(views_of(labels), labels)


@pytest.mark.parametrize("choice", [{"weighting": "means"}, {"n_neighbors": 5}])
def test_features_are_refused_where_sums_are_not_over_all_pairs(choice):
    labels = real_labels()
    with pytest.raises(ValueError, match="label_features are for sums over all pairs"):
        MLCCA(label_features="nystroem", **choice).fit(views_of(labels), labels)


# ---- the statistic -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("pairing", ["paired", "unpaired", "partly"])
def test_covariance_equals_the_double_sum_with_products_of_features(pairing, form, weighted):
    labels = real_labels()
    blocks = {name: form(X) for name, X in views_of(labels).items()}
    if pairing == "paired":
        views = Views(blocks)
    elif pairing == "unpaired":
        views = Views.unpaired({"image": blocks["image"][:70], "text": blocks["text"][70:]})
    else:
        index = np.tile(np.arange(len(labels))[:, None], 2)
        index[:20, 0] = index[50:60, 1] = -1
        views = Views(blocks, index)
    weights = np.random.default_rng(2).uniform(0.5, 3, len(views)) if weighted else None
    features = fourier(16, labels)
    expected = pair_sums(
        views,
        {name: labels[views.objects(name)] for name in views.names},
        product_of_features(features),
        weights,
    )
    found = feature_sums(views, labels, features, weights)
    np.testing.assert_allclose(found.covariance(), expected, atol=1e-12)


@pytest.mark.parametrize("block_rows", [1, 7, 119, 120, 1000])
def test_block_size_changes_nothing_but_rounding(block_rows):
    labels = real_labels()
    views, features = views_of(labels), fourier(16, labels)
    expected = feature_sums(views, labels, features).covariance()
    with config_context(block_rows=block_rows):
        found = feature_sums(views, labels, features).covariance()
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_statistics_of_batches_add_up_to_that_of_all_rows():
    labels = real_labels()
    views, features = views_of(labels), fourier(16, labels)
    cuts = [slice(0, 1), slice(1, 50), slice(50, 120)]
    parts = [feature_sums(views[rows], labels[rows], features) for rows in cuts]
    whole = feature_sums(views, labels, features)
    total = reduce(add, parts)
    np.testing.assert_allclose(total.covariance(), whole.covariance(), atol=1e-13)
    np.testing.assert_allclose(total.counts, whole.counts)
    for name, mean in total.mean().items():
        np.testing.assert_allclose(mean, views[name].mean(axis=0), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_mean_costs_no_digits_that_the_rows_have(dtype):
    labels = real_labels(400)
    small = views_of(labels)
    # whole 64ths, which a mean of 4096 leaves exact in float32 too
    blocks = {name: np.round(X * 64) / 64 for name, X in small.items()}
    features = fourier(16, labels)
    expected = feature_sums(Views(blocks), labels, features).covariance()
    shift = 2**12 if dtype == np.float32 else 2**20
    moved = Views({name: (X + shift).astype(dtype) for name, X in blocks.items()})
    with config_context(block_rows=64):
        found = feature_sums(moved, labels, features).covariance()
    tolerance = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_a_column_that_never_varies_has_exactly_no_covariance(form):
    labels = real_labels()
    views = views_of(labels)
    blocks = dict(views.items())
    blocks["image"] = np.column_stack([blocks["image"], np.full(len(labels), 0.1)])
    weights = np.random.default_rng(3).random(len(labels)) + 0.5
    with config_context(block_rows=7):
        found = feature_sums(
            Views({name: form(X) for name, X in blocks.items()}),
            labels,
            fourier(8, labels),
            weights,
        )
    assert not found.covariance()[WIDTHS["image"]].any()


def test_statistics_of_other_features_or_views_do_not_add():
    labels = real_labels()
    views = views_of(labels)
    few, many = (feature_sums(views, labels, fourier(m, labels)) for m in (8, 16))
    with pytest.raises(ValueError, match="Expected 8 label features"):
        few + many


@pytest.mark.parametrize("similarity", ["sqexp", "exp", "cosine"])
def test_row_weights_are_mean_similarities_to_the_rows_of_each_view(similarity):
    labels = real_labels()
    views = Views.unpaired({"image": np.ones((50, 2)), "text": np.ones((70, 3))})
    encoded = Labels.of(labels)
    features = landmark_features(LabelKernel(similarity, 0.7), labels)
    sums = feature_sums(views, labels, features)
    expected = ORACLES[similarity](labels, labels, 0.7)
    means = np.column_stack([expected[:, :50].mean(axis=1), expected[:, 50:].mean(axis=1)])
    with config_context(block_rows=13):
        weights = sums.row_weights(encoded, features)
    np.testing.assert_allclose(weights[encoded.codes], means, atol=1e-8)


@dataclass
class Watched:
    """A map that notes how many label vectors it was given at once."""

    features: Any
    most: int = 0

    @property
    def n_features(self) -> int:
        return self.features.n_features

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        self.most = max(self.most, len(vectors))
        return self.features(vectors)


def test_no_more_label_features_are_made_at_once_than_a_block_has_rows():
    labels = real_labels(500)
    watched = Watched(fourier(8, labels))
    views, encoded = views_of(labels), Labels.of(labels)
    with config_context(block_rows=32):
        sums = feature_sums(views, labels, watched)
        sums.row_weights(Labels(encoded.vectors), watched)
    assert 0 < watched.most <= 32
    assert len(encoded) == 500


def test_memory_is_by_label_features_and_not_by_rows():
    def peak(n: int) -> int:
        rng = np.random.default_rng(0)
        labels = rng.standard_normal((n, 2))
        views = Views({"image": rng.random((n, 60)), "text": rng.random((n, 40))})
        features = fourier(64, labels)
        with config_context(block_rows=256):
            tracemalloc.start()
            LabelFeatureSums.of(views, Labels(labels), features)
            top = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return top

    added = peak(16_000) - peak(4_000)
    assert added < 12_000 * 60  # a line number per row and view, and no (n, m) or (n, D) of floats


# ---- estimators ----------------------------------------------------------------------------------

BY_FEATURES = [
    MVMLCCA(reg=0.1, label_features="nystroem", within="label"),
    MVMLCCA(reg=0.1, label_features="nystroem", within="sample"),
    MVMLCCA(reg=0.1, label_features="nystroem", label_similarity="cosine", within="sample"),
    MLCCA(reg=0.1, label_features="nystroem"),
    MLCCA(reg=0.1, label_features="nystroem", label_similarity="exp"),
    MLCCA(reg=0.1, label_features="nystroem", label_similarity=squared_exponential),
]
each_by_features = pytest.mark.parametrize("estimator", BY_FEATURES, ids=name_of)


def assert_same_scores(model: Any, expected: Any, views: Views, tol: float = 1e-7) -> None:
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=tol)
    wanted = expected.transform(views)
    for name, scores in model.transform(views).items():
        np.testing.assert_allclose(scores, wanted[name], atol=tol * np.abs(wanted[name]).max())


@each_by_features
@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_all_label_vectors_as_landmarks_give_the_exact_model(estimator, pairing):
    labels = real_labels()
    views, y = views_of(labels), labels
    if pairing == "unpaired":
        views = Views.unpaired({"image": views["image"][:70], "text": views["text"][50:]})
        y = {"image": labels[:70], "text": labels[50:]}
    weights = np.random.default_rng(4).uniform(0.5, 3, len(views))
    model = clone(estimator).fit(views, y, sample_weight=weights)
    exact = clone(estimator).set_params(label_features=None).fit(views, y, sample_weight=weights)
    assert_same_scores(model, exact, views)
    assert model.covariance_error_ < 1e-8
    assert model.n_label_features_ == model.label_feature_map_.n_features <= len(labels)


def test_label_sets_have_features_too():
    rng = np.random.default_rng(5)
    sets = [set(rng.choice(list("abcdefg"), rng.integers(1, 4), replace=False)) for _ in range(120)]
    views = views_of(real_labels())
    exact = MVMLCCA(reg=0.1, within="label").fit(views, sets)
    model = MVMLCCA(reg=0.1, label_features="nystroem", within="label").fit(views, sets)
    assert_same_scores(model, exact, views)


def test_landmarks_are_of_the_first_batch_and_so_is_the_error():
    labels = real_labels()
    views = views_of(labels)
    model = MVMLCCA(reg=0.1, label_features="nystroem", random_state=0, within="label")
    model.partial_fit(views[:40], labels[:40])
    landmarks, error = model.label_feature_map_.landmarks, model.covariance_error_
    model.partial_fit(views[40:], labels[40:])
    assert model.label_feature_map_.landmarks is landmarks
    assert model.covariance_error_ == error
    np.testing.assert_array_equal(np.unique(landmarks, axis=0), np.unique(labels[:40], axis=0))


def test_labels_that_the_first_batch_did_not_have_are_named():
    views = views_of(real_labels())
    model = MVMLCCA(reg=0.1, within="sample", label_features="nystroem")
    model.partial_fit(views[:60], ["a", "b", "c"] * 20)
    with pytest.raises(ValueError, match=r"no columns for the labels \['d'\] of a later one"):
        model.partial_fit(views[60:], ["b", "d"] * 30)
    model.partial_fit(views[60:], ["c", "a"] * 30)  # fewer are well


def test_too_few_features_for_the_constraint_are_said():
    labels = real_labels()
    model = MVMLCCA(label_features="nystroem", n_label_features=4, random_state=0, within="label")
    with pytest.warns(UserWarning, match="'image' has 6 features but only 4 label features"):
        model.fit(views_of(labels), labels)


def test_rows_that_the_error_of_features_gives_a_negative_weight_are_said():
    labels = np.r_[real_labels(118), [[40.0, 0, 0], [-40.0, 0, 0]]]
    model = MLCCA(reg=0.1, label_features="fourier", n_label_features=20, random_state=1)
    with pytest.warns(UserWarning, match=r"negative weight: \d+ of 'image' .*, \d+ of 'text' "):
        model.fit(views_of(labels), labels)


def test_the_exact_route_has_no_attributes_of_features():
    labels = real_labels()
    model = MVMLCCA(reg=0.1, label_features="fourier", within="label").fit(views_of(labels), labels)
    assert not hasattr(model, "n_label_vectors_")
    model.set_params(label_features=None).fit(views_of(labels), labels)
    assert model.n_label_vectors_ == 120
    assert not hasattr(model, "covariance_error_")
    assert not hasattr(model, "label_feature_map_")


# ---- the error -----------------------------------------------------------------------------------


def error_by_definition(model: Any, views: Views, labels: np.ndarray) -> float:
    """‖Ψ̃ - Ψ‖ / ‖Ψ‖ over all rows, each view scaled to ‖Ψ_pp‖ = 1."""
    of_views = dict.fromkeys(views.names, labels)
    exact = pair_sums(views, of_views, lambda A, B: ORACLES["sqexp"](A, B, model.sigma))
    near = pair_sums(views, of_views, product_of_features(model.label_feature_map_))
    d = WIDTHS["image"]
    scale = np.r_[
        np.full(d, np.linalg.norm(exact[:d, :d]) ** -0.5),
        np.full(WIDTHS["text"], np.linalg.norm(exact[d:, d:]) ** -0.5),
    ]
    near, exact = (scale[:, None] * matrix * scale for matrix in (near, exact))
    return float(np.linalg.norm(near - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize("label_features", ["fourier", "nystroem"])
def test_the_error_is_that_of_the_covariance_over_all_pairs_of_rows(label_features):
    labels = real_labels()
    views = views_of(labels)
    views = views.replace({"image": 1000 * views["image"], "text": views["text"]})
    model = MVMLCCA(
        reg=0.1, label_features=label_features, n_label_features=20, random_state=0, within="label"
    )
    model.fit(views, labels)
    expected = error_by_definition(model, views, labels)
    assert expected > 0.01
    np.testing.assert_allclose(model.covariance_error_, expected, rtol=1e-8)


def test_the_error_of_fourier_features_shrinks_as_one_over_the_root_of_their_number():
    labels = real_labels(150)
    views = views_of(labels)

    def mean_error(n_label_features: int) -> float:
        model = MVMLCCA(
            reg=0.1,
            sigma=0.5,
            label_features="fourier",
            n_label_features=n_label_features,
            within="label",
        )
        fits = (clone(model).set_params(random_state=s).fit(views, labels) for s in range(12))
        return float(np.mean([fitted.covariance_error_ for fitted in fits]))

    errors = [mean_error(m) for m in (20, 320, 5120)]
    assert 3 < errors[0] / errors[1] < 5.3
    assert 3 < errors[1] / errors[2] < 5.3
    assert errors[2] < 0.05


def test_correlations_by_approximate_similarities_may_be_above_1():
    rng = np.random.default_rng(0)
    labels, X, Y = (rng.normal(size=(60, d)) for d in (3, 4, 3))
    model = MLCCA(1, reg=1e-3, label_features="fourier", n_label_features=4, random_state=0)
    with pytest.warns(UserWarning, match="negative weight"):
        model.fit([X, Y], labels)
    assert model.canonical_correlations_ > 1


def test_more_landmarks_leave_less_error():
    labels = real_labels(300)
    views = views_of(labels)
    errors = []
    for m in (10, 40, 160, 300):
        model = MVMLCCA(
            reg=0.1, label_features="nystroem", n_label_features=m, random_state=0, within="label"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            errors.append(model.fit(views, labels).covariance_error_)
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-10


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", [MLCCA, MVMLCCA])
def test_labels_that_are_all_the_same_are_refused(kind, method):
    X = np.random.default_rng(0).standard_normal((30, 4))
    model = kind(2, label_features="nystroem", n_label_features=5, random_state=0)
    with pytest.raises(ValueError, match="same labels"):  # of batches, once scores are asked for
        getattr(model, method)([X, X[:, :3]], np.zeros(30, int)).transform([X, X[:, :3]])
