"""NCCA, judged by dense matrices written from its formulas and by a planted nonlinear model."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from mvcca import CCA, NCCA, Views
from mvcca.datasets import make_gaussian_views, make_nonlinear_views


def two_views(n=120, seed=0):
    """A circle seen from two sides through different distortions."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.c_[np.cos(angle), np.sin(angle), rng.standard_normal(n) / 4] + 5
    Y = np.c_[3 * np.sin(2 * angle) ** 3, np.cos(angle), np.sin(angle), rng.standard_normal(n) / 3]
    return {"image": X, "text": Y + rng.standard_normal(Y.shape) / 10}


def smoothing(rows, training, k, h):
    """D of a view as a dense matrix, row by row."""
    centred = training - training.mean(axis=0)
    unit = np.sqrt(np.mean((centred**2).sum(axis=1)))
    D = np.zeros((len(rows), len(training)))
    for i, distances in enumerate(cdist(rows, training) / unit):
        nearest = np.argsort(distances)[:k]
        D[i, nearest] = np.exp(-(distances[nearest] ** 2) / (2 * h**2))
        D[i] /= D[i].sum()
    return D


def dense_solution(blocks, k, h, n_components, n_iter=15):
    """Correlations, training scores, and new scores as functions of rows."""
    X, Y = blocks.values()
    D_x, D_y = smoothing(X, X, k, h), smoothing(Y, Y, k, h)
    S = D_x @ D_y.T
    a = np.ones(len(X))
    for _ in range(n_iter):
        b = 1 / (S.T @ a)
        a = 1 / (S @ b)
    U, sigma, Vt = np.linalg.svd(np.diag(a) @ S @ np.diag(b))
    np.testing.assert_allclose(sigma[0], 1, atol=1e-3)
    kept = slice(1, n_components + 1)
    U, sigma, V = U[:, kept], sigma[kept], Vt[kept].T
    root = np.sqrt(len(X))

    def f(rows):
        s = smoothing(rows, X, k, h) @ D_y.T
        return root * (s @ np.diag(b) @ V) / sigma / (s @ b)[:, None]

    def g(rows):
        s = smoothing(rows, Y, k, h) @ D_x.T
        return root * (s @ np.diag(a) @ U) / sigma / (s @ a)[:, None]

    return sigma, (root * U, root * V), (f, g)


def assert_equal_up_to_signs(found, expected, tol=1e-8):
    signs = np.sign(np.einsum("ij,ij->j", found[0], expected[0]))
    for A, B in zip(found, expected, strict=True):
        np.testing.assert_allclose(A * signs, B, rtol=0, atol=tol * np.abs(B).max())


# Of 120 rows, three triplets come from products with sparse matrices and 16 from a dense one.
@pytest.mark.parametrize("n_components", [2, 15])
@pytest.mark.parametrize(("k", "h"), [(20, 0.5), (9, 0.2), (12, 50.0)])
def test_correlations_and_scores_are_those_of_the_dense_matrix(n_components, k, h):
    blocks = two_views()
    sigma, _, functions = dense_solution(blocks, k, h, n_components, n_iter=3000)
    model = NCCA(n_components, n_neighbors=k, bandwidth=h, tol=1e-12).fit(blocks)
    np.testing.assert_allclose(model.canonical_correlations_, sigma, rtol=1e-10)
    for seed in (0, 1):
        rows = two_views(n=120 - 80 * seed, seed=seed)
        expected = [of(block) for of, block in zip(functions, rows.values(), strict=True)]
        assert_equal_up_to_signs(list(model.transform(rows).values()), expected)


@pytest.mark.parametrize("n_components", [2, 15])
def test_training_rows_are_projected_to_their_singular_vectors(n_components):
    blocks = two_views()
    _, scores, _ = dense_solution(blocks, 20, 0.5, n_components, n_iter=300)
    model = NCCA(n_components, tol=1e-12).fit(blocks)
    assert_equal_up_to_signs(list(model.fit_transform(blocks).values()), scores)


def test_training_scores_have_mean_zero_and_unit_covariance():
    scores = NCCA(3, tol=1e-12).fit_transform(two_views())
    for block in scores.values():
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-8)
        np.testing.assert_allclose(block.T @ block / len(block), np.eye(3), atol=1e-8)


def test_correlated_views_have_scores_of_mean_zero_by_default():
    views = make_gaussian_views(
        1000, n_features=(2, 2), correlations=[0.97, 0.9], random_state=0
    ).views
    for block in NCCA(2, bandwidth=0.3).fit_transform(dict(views.items())).values():
        np.testing.assert_allclose(block.mean(axis=0), 0, atol=1e-4)


def test_too_few_sinkhorn_iterations_are_said_with_what_is_left():
    with pytest.warns(ConvergenceWarning, match=r"n_iter=3 iterations: columns .* within \d\.\de-"):
        NCCA(2, n_iter=3).fit(two_views())


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_view_far_from_zero_gives_the_functions_of_the_view_at_zero(offset, form):
    X, Y = two_views().values()
    X = np.round(X * 256) / 256  # so that the offset takes no digits
    expected = NCCA(2).fit({"a": X, "b": Y})
    found = NCCA(2).fit({"a": form(X + offset), "b": Y})
    np.testing.assert_allclose(
        found.canonical_correlations_, expected.canonical_correlations_, rtol=1e-9
    )
    scores = found.transform({"a": form(X[:9] + offset)})["a"]
    np.testing.assert_allclose(scores, expected.transform({"a": X[:9]})["a"], atol=1e-7)


def test_a_square_is_found_in_new_rows_where_linear_cca_finds_nothing():
    train = make_nonlinear_views(600, random_state=0).views
    test = make_nonlinear_views(400, random_state=1).views
    assert abs(CCA(1).fit(train).score(test)) < 0.15
    assert NCCA(1, bandwidth=0.1).fit(train).score(test) > 0.99


def test_a_reducer_is_fitted_to_its_view_alone():
    blocks = two_views()
    pca = PCA(2).fit(blocks["text"])
    reduced = {**blocks, "text": pca.transform(blocks["text"])}
    expected = NCCA(3).fit(reduced).transform(reduced)
    model = NCCA(3, reducer={"image": None, "text": PCA(2)}).fit(blocks)
    for name, scores in model.transform(blocks).items():
        np.testing.assert_allclose(scores, expected[name], atol=1e-8)
    assert not hasattr(model.reducer["text"], "components_")


def test_neighbours_and_bandwidth_by_name_are_those_of_their_view():
    blocks = two_views()
    by_name = NCCA(
        n_neighbors={"text": 30, "image": 10}, bandwidth={"text": 1.0, "image": 0.3}
    ).fit(blocks)
    for name, k, h in (("image", 10, 0.3), ("text", 30, 1.0)):
        D = by_name.smoothers_[name](blocks[name]).toarray()
        np.testing.assert_allclose(D, smoothing(blocks[name], blocks[name], k, h), atol=1e-10)


def test_many_equal_rows_have_equal_scores_and_the_correlation_of_their_classes():
    rng = np.random.default_rng(3)
    classes = np.repeat([0, 1], 60)
    seen = np.where(rng.random(120) < 0.9, classes, 1 - classes)
    blocks = {"image": classes[:, None] + rng.standard_normal((120, 1)) / 9, "text": seen[:, None]}
    model = NCCA(1, n_neighbors=20).fit(blocks)
    scores = model.transform(blocks)
    assert np.ptp(scores["text"][seen == 0]) < 1e-10
    agreement = np.corrcoef(classes, seen)[0, 1]
    np.testing.assert_allclose(model.score(blocks), agreement, atol=0.1)


def test_a_bandwidth_far_below_every_distance_still_weighs_the_nearest_rows():
    blocks = two_views()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the graph, which falls apart
        model = NCCA(bandwidth=1e-3).fit(blocks)
    scores = model.transform({name: block + 0.5 for name, block in blocks.items()})
    assert all(np.isfinite(block).all() for block in scores.values())


def test_a_graph_in_parts_is_warned_of_with_the_number_of_certain_correlations():
    blocks = two_views()
    blocks = {name: block + 100 * (np.arange(120) % 3)[:, None] for name, block in blocks.items()}
    with pytest.warns(UserWarning, match=r"falls apart: 2 correlations are 1.*Raise n_neighbors"):
        model = NCCA(3, n_neighbors=20).fit(blocks)
    np.testing.assert_allclose(model.canonical_correlations_[:2], 1, atol=1e-8)
    assert model.canonical_correlations_[2] < 1 - 1e-6


def test_a_connected_graph_is_fitted_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NCCA(3).fit(two_views())


def test_more_neighbours_than_rows_are_all_rows_with_a_warning():
    blocks = {name: block[:15] for name, block in two_views().items()}
    with pytest.warns(UserWarning, match="n_neighbors=20 is more than the 15 rows of view"):
        model = NCCA(n_neighbors=20).fit(blocks)
    expected = NCCA(n_neighbors=15).fit(blocks)
    np.testing.assert_array_equal(model.canonical_correlations_, expected.canonical_correlations_)
    with warnings.catch_warnings(action="error"):  # the default takes what there is
        by_default = NCCA().fit(blocks)
    np.testing.assert_array_equal(
        by_default.canonical_correlations_, expected.canonical_correlations_
    )


def test_an_error_names_its_view_once():
    x, y = two_views().values()
    for reducer, blocks in ((None, {"x": np.zeros_like(x), "y": y}), (PCA(900), {"x": x, "y": y})):
        with pytest.raises(ValueError, match="'x'") as refused:
            NCCA(reducer=reducer).fit(blocks)
        assert str(refused.value).count("'x'") == 1


def test_objects_seen_in_one_view_only_are_refused_with_the_way_out():
    blocks = two_views()
    index = np.tile(np.arange(120)[:, None], 2)
    index[:20, 1] = -1
    views = Views(blocks, index)
    with pytest.raises(ValueError, match="20 of 120 objects are seen in one view only"):
        NCCA().fit(views)
    paired = views[views.seen.all(axis=1)]
    model = NCCA().fit(paired)
    assert model.score(views) == pytest.approx(model.score(paired), abs=1e-12)


REFUSED = {
    "a bandwidth for one view": ({"bandwidth": {"image": 1.0}}, r"names the views \['image'\],"),
    "no bandwidth": (
        {"bandwidth": {"image": 1.0, "text": 0}}, "bandwidth of view 'text' must be .* got 0"
    ),
    "half a neighbour": (
        {"n_neighbors": {"image": 2.5, "text": 3}}, "n_neighbors of view 'image' must be .* 2.5"
    ),
    "a number to reduce": (
        {"reducer": {"image": 3, "text": None}}, "reducer of view 'image' must be .* got 3"
    ),
    **{
        f"{name}={value}": ({name: value}, f"The '{name}' parameter")
        for name, value in [("n_components", 0), ("n_neighbors", 0), ("bandwidth", 0.0),
                            ("reducer", 1), ("n_iter", 0), ("tol", -1.0)]
    },
}  # fmt: skip


@pytest.mark.parametrize(("parameters", "message"), REFUSED.values(), ids=REFUSED)
def test_a_parameter_for_other_views_or_out_of_range_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        NCCA(**parameters).fit(two_views())


def test_scores_of_one_view_and_three_views_are_refused():
    X, Y = two_views().values()
    with pytest.raises(ValueError, match="needs objects that are seen in two views"):
        NCCA().fit(two_views()).score({"text": Y})
    with pytest.raises(ValueError, match="NCCA takes 2 views, got 3"):
        NCCA().fit([X, Y, X])
