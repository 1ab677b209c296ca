"""Kernel CCA against the problem written from its formula, against CCA, and against itself."""

from __future__ import annotations

import tracemalloc
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels
from sklearn.model_selection import GridSearchCV, cross_val_score

from mvcca import CCA, KCCA, MVCCA, Views, config_context, evaluate_retrieval
from mvcca.datasets import load_digits_views, make_gaussian_views, make_nonlinear_views
from mvcca.kernel import _kcca
from mvcca.kernel.exact import exact_maps
from mvcca.kernel.held_out import HeldOut, HeldOutFeatures, fold_of, keys_of
from mvcca.kernel.kernels import Kernel, features_at, greedy_landmarks, median_gamma
from mvcca.linear.features import FourierFeatures
from mvcca.machine import memory as _memory
from mvcca.measures import column_correlations
from mvcca.statistics.moments import moments_of_block

GAMMA = 0.05


def random_views(n: int = 80, widths: tuple[int, ...] = (5, 4), seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 2))
    return Views(
        [
            np.tanh(latent @ rng.standard_normal((2, d))) + 0.3 * rng.standard_normal((n, d)) + 1
            for d in widths
        ]
    )


def centred(K: np.ndarray) -> np.ndarray:
    """HKH, by subtracting the means of rows, of columns and of all."""
    return K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()


def assert_same_up_to_sign(found: np.ndarray, wanted: np.ndarray, tol: float) -> None:
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found * signs, wanted, atol=tol * np.abs(wanted).max())


def assert_same_functions(model: KCCA, expected: KCCA, rows: Views, tol: float) -> None:
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=tol)
    scores, wanted = model.transform(rows), expected.transform(rows)
    for name in rows.names:
        assert_same_up_to_sign(scores[name], wanted[name], tol)


# ---- the problem that is solved ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "reg"), [("rbf", 0.01), ("poly", {"view0": 0.1, "view1": 1}), ("precomputed", 0.05)]
)
def test_exact_maps_by_kernel_matrices_are_those_by_features(kernel, reg, monkeypatch):
    rows = random_views(300, (30, 20))
    views = new = rows
    if kernel == "precomputed":
        views = rows.replace({n: pairwise_kernels(X, metric="rbf") for n, X in rows.items()})
        new = views[:20]
    found, solved = [], []
    for by_kernels in (exact_maps, lambda *_: None):
        monkeypatch.setattr(
            _kcca, "exact_maps", lambda *a, f=by_kernels: solved.append(f(*a)) or solved[-1]
        )
        found.append(KCCA(3, kernel=kernel, reg=reg).fit(views))
    assert solved[0] is not None
    fast, slow = found
    assert_same_functions(fast, slow, new, 1e-10)
    for name in views.names:  # signs are the same, too
        scale = np.abs(slow.weights_[name]).max()
        np.testing.assert_allclose(fast.weights_[name], slow.weights_[name], atol=1e-9 * scale)
        np.testing.assert_allclose(fast.means_[name], slow.means_[name], rtol=1e-10)
    for attribute in ("canonical_correlations_", "expected_correlations_"):
        np.testing.assert_allclose(getattr(fast, attribute), getattr(slow, attribute), atol=1e-10)
    np.testing.assert_allclose(
        fast.expected_correlations_by_pair_, slow.expected_correlations_by_pair_, atol=1e-10
    )


def test_exact_kcca_of_given_kernels_overwrites_only_its_own_copies():
    rows = random_views(400, (30, 20))
    kernels = {name: pairwise_kernels(X, metric="rbf") for name, X in rows.items()}
    before = {name: K.copy() for name, K in kernels.items()}
    KCCA(3, kernel="precomputed", reg=0.05).fit(kernels)
    for name, K in kernels.items():
        np.testing.assert_array_equal(K, before[name])
    tracemalloc.start()
    try:
        KCCA(3, reg=0.05).fit(rows)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * 8 * 400**2  # two matrices of the dual problem at a time


def test_exact_kcca_keeps_no_matrix_over_the_rows_and_features_that_are_asked_for_are_the_same():
    views = random_views(200, (30, 20))
    model = KCCA(2).fit(views)
    arrays = {name: vars(own).values() for name, own in model.feature_maps_.items()}
    for name, X in views.items():
        assert max(a.size for a in arrays[name] if isinstance(a, np.ndarray)) <= X.size
        features = model.feature_maps_[name]
        again = features_at(features.kernel, X, np.arange(200))
        np.testing.assert_allclose(features(X[:5]), again(X[:5]), atol=1e-10)


def test_views_that_the_dual_does_not_solve_exactly_are_left_to_features():
    views, weights = random_views(200), np.ones(200)
    maps = KCCA(2).fit(views).feature_maps_
    rows = KCCA(2, reg=0.01)._open_rows(views, None, None)

    def by_kernels(**changes: object) -> object:
        return exact_maps(maps, replace(rows, **changes))

    assert by_kernels() is not None
    no_ridge, little = ({"view0": 0.01, "view1": r} for r in (0.0, 1e-6))
    assert by_kernels(reg=no_ridge) is None
    assert by_kernels(reg=little) is None
    assert by_kernels(sample_weight=weights) is None
    assert by_kernels(n_components=60) is None
    assert by_kernels(n_components=None) is None
    for name in views.names:
        repeated = views[name].copy()
        repeated[199] = repeated[0]
        maps = KCCA(2).fit(dict(views.items()) | {name: repeated}).feature_maps_
        assert maps[name].n_features == 199


@pytest.mark.parametrize("reg", [0.5, 0.01])
def test_exact_correlations_solve_the_ridged_problem_of_the_centred_kernel_matrices(reg):
    views, n = random_views(40), 40
    model = KCCA(3, gamma=GAMMA, reg=reg).fit(views)
    halves = []
    for _, X in views.items():
        values, vectors = np.linalg.eigh(centred(pairwise_kernels(X, metric="rbf", gamma=GAMMA)))
        values, vectors = values[1:], vectors[:, 1:]  # all but the constant
        ridge = reg * values.sum() / ((n - 1) * n)
        halves.append(vectors * values / np.sqrt(values**2 / (n - 1) + ridge * values))
    wanted = np.linalg.svd(halves[0].T @ halves[1] / (n - 1), compute_uv=False)
    np.testing.assert_allclose(model.canonical_correlations_, wanted[:3], atol=1e-10)


def test_weights_meet_the_constraint_on_the_centred_kernel_matrices():
    views, n, reg = random_views(50), 50, 0.2
    model = KCCA(3, gamma=GAMMA, reg=reg).fit(views)
    for name, X in views.items():
        K = centred(pairwise_kernels(X, metric="rbf", gamma=GAMMA))
        features = model.feature_maps_[name]
        landmarks = features.landmarks + features.origin
        rows = ((landmarks[:, None] - X) ** 2).sum(axis=2).argmin(axis=1)
        alpha = np.empty((n, 3))
        alpha[rows] = model.weights_[name]
        ridge = reg * np.trace(K) / ((n - 1) * n)
        np.testing.assert_allclose(
            alpha.T @ (K @ K / (n - 1) + ridge * K) @ alpha, np.eye(3), atol=1e-8
        )


def test_new_rows_are_centred_by_the_column_means_and_the_grand_mean_of_the_training_rows():
    views, new = random_views(60), random_views(20, seed=1)["view0"]
    model = KCCA(2, kernel="poly", gamma=0.1, degree=2).fit(views)
    X = views["view0"]
    K, K_new = (pairwise_kernels(A, X, metric="poly", gamma=0.1, degree=2) for A in (X, new))
    both = K_new - K_new.mean(axis=1)[:, None] - K.mean(axis=0) + K.mean()
    # Scores are a linear function of the centred kernel values, the same for old rows and new.
    coefficients = linalg.lstsq(centred(K), model.transform({"view0": X})["view0"], cond=1e-10)[0]
    np.testing.assert_allclose(
        model.transform({"view0": new})["view0"], both @ coefficients, atol=1e-6
    )


@pytest.mark.parametrize("reg", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("approximation", [None, "nystroem", "cholesky"])
def test_a_linear_kernel_gives_cca(approximation, reg):
    views = random_views(80)
    model = KCCA(3, kernel="linear", reg=reg, approximation=approximation, n_landmarks=20)
    assert_same_functions(model.fit(views), MVCCA(3, reg=reg).fit(views), views, 1e-8)


def test_a_linear_kernel_of_three_views_gives_mvcca():
    views = random_views(80, widths=(5, 4, 3))
    model = KCCA(3, kernel="linear", reg=0.1).fit(views)
    assert_same_functions(model, MVCCA(3, reg=0.1).fit(views), views, 1e-8)


def test_linear_cca_finds_nothing_where_kernels_find_all():
    data = make_nonlinear_views(600, random_state=0)
    train, test = data.views[:400], data.views[400:]
    assert abs(CCA(1).fit(train).score(test)) < 0.2
    for approximation in (None, "nystroem", "cholesky", "fourier"):
        model = KCCA(1, approximation=approximation, n_landmarks=50, reg=1e-3, random_state=0)
        assert model.fit(train).score(test) > 0.99


def test_kernels_find_what_three_views_share_nonlinearly():
    x = np.random.default_rng(0).uniform(-1, 1, (400, 1))
    views = Views([x, x**2, np.abs(x) + x**4])
    assert KCCA(1, reg=1e-3).fit(views[:300]).score(views[300:]) > 0.99


def test_an_invertible_kernel_without_a_ridge_correlates_noise_and_a_warning_says_so():
    rng = np.random.default_rng(0)
    noise = [rng.standard_normal((30, 4)), rng.standard_normal((30, 3))]
    with pytest.warns(UserWarning, match=r"reg=0.*Correlations of 1 .*mean nothing; set reg > 0"):
        model = KCCA(5, gamma=1.0, reg=0.0).fit(noise)
    np.testing.assert_allclose(model.canonical_correlations_, 1, atol=1e-8)


# ---- approximations ------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", ["nystroem", "cholesky"])
def test_all_rows_as_landmarks_are_exact(approximation):
    views = random_views()
    exact = KCCA(3, reg=0.1).fit(views)
    model = KCCA(3, reg=0.1, approximation=approximation, n_landmarks=80, random_state=0)
    assert_same_functions(model.fit(views), exact, random_views(seed=1), 1e-6)


def test_the_error_of_fourier_features_falls_with_the_root_of_their_number():
    X = random_views(60)["view0"]
    K = pairwise_kernels(X, metric="rbf", gamma=GAMMA)

    def error(m: int) -> float:
        errors = []
        for seed in range(20):
            rng = np.random.RandomState(seed)
            F = FourierFeatures.of_rbf(GAMMA, X.shape[1], m, rng)(X)
            errors.append(np.mean((2 / m * F @ F.T - K) ** 2))
        return float(np.sqrt(np.mean(errors)))

    few, many = error(100), error(1600)
    assert 3 < few / many < 5.3  # 4 = √16
    assert many < 1.1 / np.sqrt(1600)


def test_fourier_correlations_approach_the_exact_ones_of_the_same_absolute_ridge():
    views, n = random_views(80), 80
    exact = KCCA(2, gamma=GAMMA, reg=1.0).fit(views).canonical_correlations_
    errors = []
    for m in (20, 160):
        # The ridge is in units of the mean variance of the features: trace / m, not trace / n.
        model = KCCA(2, gamma=GAMMA, approximation="fourier", n_landmarks=m, reg=m / n)
        found = [
            clone(model).set_params(random_state=seed).fit(views).canonical_correlations_
            for seed in range(10)
        ]
        errors.append(np.sqrt(np.mean((np.array(found) - exact) ** 2)))
    assert errors[1] < 0.5 * errors[0]  # 0.35 = 1 / √8


def test_landmark_features_are_the_projection_of_the_kernel_onto_the_landmarks():
    X = random_views()["view0"]
    features = features_at(Kernel("rbf", GAMMA), X, np.arange(10))
    K = pairwise_kernels(X, metric="rbf", gamma=GAMMA)
    wanted = K[:, :10] @ np.linalg.solve(K[:10, :10], K[:10])
    np.testing.assert_allclose(features(X) @ features(X).T, wanted, atol=1e-9)


def test_greedy_landmarks_are_the_pivots_of_a_cholesky_decomposition():
    X = random_views()["view0"]
    K = pairwise_kernels(X, metric="poly", gamma=0.1, degree=2, coef0=1)
    kernel = Kernel("poly", 0.1, degree=2, coef0=1)
    _, pivots, _, _ = linalg.lapack.dpstrf(K, lower=1)
    np.testing.assert_array_equal(greedy_landmarks(kernel, X, 12), pivots[:12] - 1)


def test_greedy_landmarks_stop_where_the_kernel_is_used_up():
    X = random_views()["view0"]
    assert len(greedy_landmarks(Kernel("linear"), X, 30)) == X.shape[1]
    rows = np.repeat(X[:7], 3, axis=0)
    assert len(greedy_landmarks(Kernel("rbf", GAMMA), rows, 30)) == 7


@pytest.mark.parametrize("approximation", [None, "nystroem", "cholesky"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_kernel_matrix_of_low_rank_is_no_error(approximation, dtype):
    views = random_views(120)
    twice = {name: np.r_[X, X].astype(dtype) for name, X in views.items()}
    model = KCCA(2, gamma=1e-7, reg=1e-10, approximation=approximation, n_landmarks=200)
    model.set_params(random_state=0).fit(twice)  # rows repeat, and the kernel is nearly constant
    assert max(model.ranks_.values()) < 120
    assert all(np.isfinite(scores).all() for scores in model.transform(twice).values())


@pytest.mark.parametrize("approximation", ["fourier", "nystroem", "cholesky"])
def test_fewer_features_than_rows_that_are_close_to_collinear_are_warned_of(approximation):
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(300, 3)) for name in "xy"}
    model = KCCA(1, gamma=1e-5, reg=0.0, approximation=approximation, n_landmarks=20)
    with pytest.warns(UserWarning, match="View '[xy]' is close to collinear"):
        model.set_params(random_state=0).fit(views)


def test_more_landmarks_than_rows_take_all_rows():
    with warnings.catch_warnings(action="error"):
        model = KCCA(approximation="nystroem", random_state=0).fit(random_views())
    assert model.feature_maps_["view0"].n_features == 80


@pytest.mark.parametrize("approximation", ["fourier", "nystroem", "cholesky"])
def test_batches_after_the_first_add_up_to_what_blocks_of_one_fit_do(approximation):
    views = random_views(200)
    model = KCCA(3, approximation=approximation, n_landmarks=20, random_state=0)
    model.partial_fit(views[:50]).partial_fit(views[50:51]).partial_fit(views[51:])
    maps = model.feature_maps_
    features = Views({name: maps[name](X) for name, X in views.items()})
    expected = MVCCA(3, reg=1e-2, scale=False).fit(features)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-9)
    for name, scores in model.transform(views).items():
        assert_same_up_to_sign(scores, expected.transform(features)[name], 1e-7)


def test_frequencies_and_landmarks_are_drawn_from_the_first_batch_alone():
    views = random_views(200)
    for approximation in ("fourier", "nystroem", "cholesky"):
        model = KCCA(approximation=approximation, n_landmarks=20, random_state=0)
        once = model.partial_fit(views[:50]).feature_maps_["view0"]
        assert model.partial_fit(views[50:]).feature_maps_["view0"] is once


@pytest.mark.filterwarnings("ignore:Unlike units")
def test_partly_paired_views_give_mvcca_of_their_features():
    views, n = random_views(widths=(5, 4, 3)), 80
    index = np.tile(np.arange(n)[:, None], 3)
    index[:20, 0] = index[30:45, 1] = index[60:70, 2] = -1
    partly = Views(dict(views.items()), index)
    for approximation in (None, "nystroem", "fourier"):
        model = KCCA(2, approximation=approximation, n_landmarks=15, random_state=0)
        with config_context(block_rows=10):
            model.fit(partly)
        maps = model.feature_maps_
        features = partly.replace({name: maps[name](X) for name, X in partly.items()})
        expected = MVCCA(2, reg=1e-2, scale=False).fit(features).eigenvalues_
        np.testing.assert_allclose(model.eigenvalues_, expected, atol=1e-7)


def test_float32_rows_give_the_correlations_of_float64_rows():
    views = load_digits_views("halves").views[:600]
    single = views.replace({name: X.astype(np.float32) for name, X in views.items()})
    for approximation in ("nystroem", "fourier"):
        model = KCCA(5, approximation=approximation, n_landmarks=100, random_state=0)
        found = clone(model).fit(single)
        expected = clone(model).fit(views)
        np.testing.assert_allclose(found.eigenvalues_, expected.eigenvalues_, atol=1e-4)
        assert found.transform(single)["left"].dtype == np.float32


# ---- kernels and their parameters ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("rbf", {"gamma": 0.1}),
        ("linear", {}),
        ("poly", {"gamma": 0.1, "degree": 2, "coef0": 0.5}),
        ("cosine", {}),
    ],
)
@pytest.mark.parametrize("approximation", [None, "nystroem", "cholesky"])
def test_a_precomputed_kernel_equals_the_named_one(name, parameters, approximation):
    views, new = random_views(), random_views(20, seed=1)
    settings = {"approximation": approximation, "n_landmarks": 15, "random_state": 0}
    named = KCCA(2, kernel=name, **parameters, **settings).fit(views)
    K = {n: pairwise_kernels(X, metric=name, **parameters) for n, X in views.items()}
    K_new = {n: pairwise_kernels(new[n], views[n], metric=name, **parameters) for n in K}
    given = KCCA(2, kernel="precomputed", **settings).fit(K)
    np.testing.assert_allclose(given.eigenvalues_, named.eigenvalues_, atol=1e-7)
    for n, scores in given.transform(K_new).items():
        assert_same_up_to_sign(scores, named.transform(new)[n], 1e-6)


def test_a_callable_gets_two_rows():
    def laplacian(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.exp(-0.1 * np.abs(x - y).sum()))

    views = random_views(40)
    model = KCCA(2, kernel=laplacian).fit(views)
    K = {name: laplacian_kernel(X, gamma=0.1) for name, X in views.items()}
    expected = KCCA(2, kernel="precomputed").fit(K)
    np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, atol=1e-10)


def test_every_view_may_have_its_own_kernel_and_gamma():
    views = random_views()
    model = KCCA(
        2, kernel={"view0": "rbf", "view1": "linear"}, gamma={"view0": 0.1, "view1": None}
    ).fit(views)
    K0 = pairwise_kernels(views["view0"], metric="rbf", gamma=0.1)
    K1 = pairwise_kernels(views["view1"], metric="linear")
    given = KCCA(2, kernel="precomputed").fit({"view0": K0, "view1": K1})
    np.testing.assert_allclose(model.eigenvalues_, given.eigenvalues_, atol=1e-7)


@pytest.mark.slow
def test_auto_is_a_value_in_a_grid_of_scikit_learn():
    views = load_digits_views("halves").views[:60]
    grid = {"gamma": ["auto", "median"], "reg": [0.1, "cv"]}
    search = GridSearchCV(KCCA(2), grid, cv=2, error_score="raise").fit(views)
    by_median = clone(search.best_estimator_).set_params(gamma="median", reg=0.1)
    scores = dict(zip(map(str, search.cv_results_["params"]), _means(search), strict=True))
    fixed = [scores[str({"gamma": own, "reg": 0.1})] for own in ("auto", "median")]
    assert fixed[0] == fixed[1] == cross_val_score(by_median, views, cv=2).mean()
    assert np.isfinite(_means(search)).all()


def _means(search):
    return search.cv_results_["mean_test_score"]


def test_the_median_is_of_the_distances_between_rows_that_differ():
    X = random_views()["view0"]
    squares = ((X[:, None] - X) ** 2).sum(axis=2)[np.triu_indices(len(X), 1)]
    expected = 1 / np.median(squares)
    for rows in (X, sp.csr_array(X), np.repeat(X, 2, axis=0), X + 1e6):
        gamma = median_gamma(rows, np.random.RandomState(0))
        np.testing.assert_allclose(gamma, expected, rtol=1e-8)


def test_no_gamma_is_that_of_scikit_learn():
    views = random_views()
    for approximation in (None, "fourier"):
        model = KCCA(2, approximation=approximation, n_landmarks=20, random_state=0)
        default = clone(model).set_params(gamma=None).fit(views)
        gamma = {"view0": 1 / 5, "view1": 1 / 4}
        expected = clone(model).set_params(gamma=gamma).fit(views)
        np.testing.assert_allclose(default.eigenvalues_, expected.eigenvalues_, rtol=1e-12)


BAD_CHOICES = {
    "a median for poly": (
        {"kernel": "poly", "gamma": "median"},
        "View 'view0': gamma=\"median\" is a width of",
    ),
    "fourier of poly": (
        {"kernel": "poly", "gamma": 1.0, "approximation": "fourier"},
        'View \'view0\': approximation="fourier" is for kernel="rbf"',
    ),
    "kernels of other views": ({"kernel": {"view0": "rbf"}}, r"kernel names the views \['view0'\]"),
    "gammas of other views": ({"gamma": {"a": 1.0}}, r"gamma names the views \['a'\], expected"),
    "an unknown kernel by view": (
        {"kernel": {"view0": "rbf", "view1": "gauss"}},
        "kernel of view 'view1' must be .*, got 'gauss'",
    ),
    "a bad gamma by view": (
        {"gamma": {"view0": 1.0, "view1": -1.0}},
        "gamma of view 'view1' must be .*, got -1.0",
    ),
    "a kernel that is not square": ({"kernel": "precomputed"}, "80 rows and 5 columns"),
    "a kernel that is not positive": (
        {"kernel": lambda x, y: -float(x @ y)},
        "View 'view0': Expected a positive semi-definite kernel",
    ),
    "a kernel that is not finite": (
        {"kernel": lambda x, y: np.nan * x @ y},
        "View 'view0': The kernel is not finite",
    ),
}


@pytest.mark.parametrize(("parameters", "message"), BAD_CHOICES.values(), ids=BAD_CHOICES)
def test_a_choice_that_does_not_fit_is_one_clear_error(parameters, message):
    with pytest.raises(ValueError, match=message):
        KCCA(**parameters).fit(random_views())


def test_a_precomputed_kernel_that_is_not_symmetric_is_refused():
    K = np.eye(80) + np.triu(np.ones((80, 80)))
    with pytest.raises(ValueError, match="View 'view0': Expected a symmetric kernel"):
        KCCA(kernel="precomputed").fit([K, K])


def test_exact_kcca_has_no_batches_and_precomputed_kernels_none_either():
    assert not hasattr(KCCA(), "partial_fit")
    model = KCCA(kernel="precomputed", approximation="nystroem", n_landmarks=5)
    with pytest.raises(ValueError, match="Batches of a precomputed kernel cannot be fitted"):
        model.partial_fit([np.eye(80)[:40], np.eye(80)[:40]])


def test_rows_that_do_not_fit_into_memory_are_counted_in_bytes(monkeypatch):
    monkeypatch.setattr(_kcca, "available_bytes", lambda: 1e5)
    message = r"80 rows needs about 204,800 bytes \(0\.0 GB\).*nystroem.*fourier.*cholesky"
    with pytest.raises(MemoryError, match=message):
        KCCA().fit(random_views())
    monkeypatch.setattr(_kcca, "available_bytes", lambda: 3e5)
    with pytest.raises(MemoryError, match="80 rows needs about 1,228,800 bytes"):
        KCCA(reg=0).fit(random_views())
    KCCA(approximation="nystroem", n_landmarks=10).fit(random_views())


GROUPS = {
    "free memory": ({}, "0::/"),
    "container, version 2": (
        {"memory.max": "2000000", "memory.current": "1500000", "memory.stat": "inactive_file 9"},
        "0::/",
    ),
    "parent group, version 2": (
        {"memory.max": "1000000", "memory.current": "500000", "a/b/memory.max": "max"},
        "0::/a/b",
    ),
    "container, version 1": (
        {
            "memory/memory.limit_in_bytes": "1700000",
            "memory/memory.usage_in_bytes": "1300000",
            "memory/memory.stat": "cache 1\ntotal_inactive_file 100000",
        },
        "3:cpu,cpuacct:/\n4:memory:/docker/0123\n0::/docker/0123",
    ),
}


@pytest.mark.parametrize("name", GROUPS)
def test_memory_is_what_is_free_and_what_a_container_allows(monkeypatch, tmp_path, name):
    files, groups = GROUPS[name]
    free = 500 if name == "free memory" else 9_999_999
    contents = {
        "proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {free} kB\n",
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{path}": content for path, content in files.items()},
    }
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content + "\n")
    monkeypatch.setattr(_memory, "_SYSTEM", tmp_path)
    assert _memory.available_bytes() == pytest.approx(500_000, rel=0.03)
    assert _memory.available_bytes() < _memory.memory_bytes()
    with pytest.raises(MemoryError, match=r"1,228,800 bytes .* and 0\.0 GB are available"):
        KCCA().fit(random_views())


def test_views_draw_alike_so_that_their_order_does_not_matter():
    views = random_views()
    for approximation in ("fourier", "nystroem"):
        model = KCCA(2, approximation=approximation, n_landmarks=20, random_state=0)
        turned = clone(model).fit(views.select(["view1", "view0"]))
        assert_same_functions(turned, clone(model).fit(views), views, 1e-8)


# ---- correlations to expect on new rows ----------------------------------------------------------

DIGITS = load_digits_views("halves").views[np.random.default_rng(0).permutation(1797)]
PLANTED = make_gaussian_views(
    3000, n_features=(30, 20), correlations=(0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5), random_state=1
).views
QUICK = [{}, {"approximation": "fourier", "n_landmarks": 100}]
SLOW = [
    {"reg": 1.0},
    {"approximation": "nystroem", "n_landmarks": 100},
    {"approximation": "cholesky", "n_landmarks": 100},
]
VARIANTS = [
    pytest.param(KCCA(10, random_state=0, **own), marks=pytest.mark.slow if own in SLOW else ())
    for own in (*QUICK, *SLOW)
]


@pytest.mark.parametrize("views", [DIGITS, PLANTED], ids=["digits", "planted"])
@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_expected_correlations_are_close_to_those_of_new_rows(estimator, views):
    model = clone(estimator).fit(views[:500])
    scores = model.transform(views[500:])
    new = column_correlations(*(scores[name] for name in views.names))
    error = model.expected_correlations_ - new
    assert np.abs(error).mean() < 0.1
    assert abs(error.mean()) < 0.08


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
def test_likelihood_ranks_about_as_well_as_the_cosine(estimator):
    model, new = clone(estimator).set_params(n_components=20).fit(DIGITS[:500]), DIGITS[500:]
    recall = {
        weighting: evaluate_retrieval(
            new, estimator=model, weighting=weighting, measures="r@1"
        ).mean()["r@1"]
        for weighting in (None, "auto", "likelihood")
    }
    error = np.sqrt(recall[None] * (1 - recall[None]) / len(new))
    assert recall["auto"] > recall[None] - error
    assert recall["likelihood"] > recall[None] - 2 * error


def test_batches_expect_what_fit_expects():
    views = random_views(700)
    for approximation in ("fourier", "nystroem"):
        model = KCCA(3, gamma=0.05, approximation=approximation, n_landmarks=20, random_state=0)
        model.fit(views)
        batches = clone(model)
        with config_context(block_rows=50):
            for rows in (slice(0, 150), slice(150, 160), slice(160, 700)):
                batches.partial_fit(views[rows])
            if approximation == "nystroem":  # whose landmarks are of the first batch
                model.fit(views[:150])
                model = clone(model).partial_fit(views[:150]).partial_fit(views[150:])
        for name in ("expected_correlations_", "expected_correlations_by_pair_"):
            np.testing.assert_allclose(getattr(batches, name), getattr(model, name), atol=1e-9)


def test_rows_that_repeat_are_held_out_together():
    noise = np.random.default_rng(0).standard_normal((100, 12))
    copies = np.repeat(noise, 5, axis=0)
    model = KCCA(3, reg=0.1, random_state=0).fit([copies[:, :6], copies[:, 6:]])
    assert model.canonical_correlations_[0] > 0.7
    assert model.expected_correlations_.max() < 0.35


def test_landmarks_are_not_held_out_where_there_are_enough_others():
    rng, are_landmarks = np.random.default_rng(0), np.arange(400) < 100
    noise = rng.standard_normal((2, 400, 1))
    noise[1, are_landmarks] = noise[0, are_landmarks]
    views = Views(list(noise * np.where(are_landmarks, 3, 1)[:, None]))
    weights = np.ones(400)
    total = moments_of_block(views, weights, np.dtype(float))

    def problem(_):
        maps = SimpleNamespace(project=lambda _, rows: rows)
        return SimpleNamespace(solve=lambda *_, **__: maps)

    for marks, least, most in ((are_landmarks, 0, 0.2), (~are_landmarks, 0.9, 1.01)):
        sample = HeldOutFeatures(views, keys_of(views), weights, marks)
        assert least <= HeldOut(total, 400, sample).expected(problem, 1).mean[0] <= most


def test_objects_that_no_fold_holds_out_stay_so_as_objects_are_added():
    keys = np.random.default_rng(0).random(200_000)
    kept = np.ones(len(keys), dtype=bool)
    for n in (10, 100, 250, 400, 900, 1300, 5000, 5001, 20_000, 200_000):
        folds = fold_of(keys, n)
        assert not (kept & (folds >= 0))[~kept].any()
        assert (kept | (folds < 0)).all()
        held_out = np.mean(folds >= 0) * n
        assert 0.95 * min(n, 250) < held_out < 1.1 * 1000
        kept &= folds >= 0


def test_keys_of_objects_are_of_their_numbers_only():
    views = random_views(50)
    keys = keys_of(views)
    assert len(np.unique(keys)) == 50
    sparse = views.replace({name: sp.csr_array(X) for name, X in views.items()})
    single = views.replace({name: X.astype(np.float32) for name, X in views.items()})
    double = views.replace({name: X.astype(np.float64) for name, X in single.items()})
    np.testing.assert_array_equal(keys_of(sparse), keys)
    np.testing.assert_array_equal(keys_of(views.select(views.names[::-1])), keys)
    np.testing.assert_array_equal(keys_of(views[::-1]), keys[::-1])
    np.testing.assert_array_equal(keys_of(single), keys_of(double))
    many = Views({"x": np.arange(20_000.0)[:, None], "y": -np.arange(20_000.0)[:, None]})
    counts, _ = np.histogram(keys_of(many), bins=20, range=(0, 1))
    assert np.abs(counts - 1000).max() < 150  # five standard deviations


@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed"])
def test_landmarks_are_told_from_their_features(kernel):
    (_, X), _ = random_views(60).items()
    rows = np.arange(0, 60, 3)
    X = pairwise_kernels(X, metric="rbf") if kernel == "precomputed" else X
    features = features_at(Kernel(kernel, gamma=GAMMA), X, rows)
    found = np.flatnonzero(features.are_landmarks(features(X)))
    assert set(found) <= set(rows)
    # Five linear features have five independent landmarks.
    assert len(found) == (5 if kernel == "linear" else len(rows))
