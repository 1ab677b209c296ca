"""Expected correlations, and the scores weighted by them that retrieval ranks by."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, KCCA, MLCCA, MVCCA, PerView, Views, retrieval_scorer
from mvcca.datasets import load_digits_views, make_gaussian_views
from mvcca.measures import unit_rows
from mvcca.problem.bias import SampleBias
from mvcca.problem.expected import expected_correlation, expected_covariances
from mvcca.retrieval import (
    RetrievalIndex,
    evaluate_retrieval,
    retrieval_vectors,
    top_k,
)
from mvcca.retrieval.ranking import Ranking


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
    r, held_out = np.array([training]), np.corrcoef(left_out, v)[0, 1]
    variances, covariance = expected_covariances(np.ones((2, 1)), r, (d, 0), n, r)
    of_scores = covariance / np.sqrt(variances.prod(axis=0))
    for estimate in (of_scores, expected_correlation(r, (d, 0), n)):
        assert abs(estimate[0] - held_out) < 0.02
        assert training - estimate[0] > 0.05


@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_moments_to_expect_are_those_of_rows_left_out_of_refits(reg):
    n, rho = 150, np.array([0.95, 0.8, 0.6])
    views = gaussian_views(n, rho, 12, seed=3)
    model = CCA(3, reg=reg).fit(views)
    own, left_out = model.transform(views), {"x": np.empty((n, 3)), "y": np.empty((n, 3))}
    for j in range(n):
        refit = CCA(3, reg=reg).fit(views[np.arange(n) != j])
        scores = refit.transform(views)
        signs = np.sign((scores["x"] * own["x"]).sum(axis=0))
        for name, block in scores.items():
            left_out[name][j] = block[j] * signs
    by_refits = [
        np.corrcoef(a, b)[0, 1] for a, b in zip(left_out["x"].T, left_out["y"].T, strict=True)
    ]
    np.testing.assert_allclose(model.expected_correlations_, by_refits, atol=0.03)
    assert (correlations(model, views) - by_refits).max() > 0.06
    for name, block in left_out.items():
        least = own[name].std(axis=0)
        found = np.maximum(block.std(axis=0), least)
        np.testing.assert_allclose(model.expected_deviations_[name], found, rtol=0.03)


@pytest.mark.filterwarnings("ignore:Few rows")
def test_one_component_in_noise_is_expected_to_correlate_as_the_limit_of_large_views():
    # Bao, Hu, Pan and Zhou (2019): squared training correlations, and those of new rows.
    n, p, rho = 3000, 500, 0.9
    c, t = p / (n - 1), rho**2
    f = t * (1 - c) + c
    model = CCA(1).fit(gaussian_views(n, np.array([rho]), p, seed=0))
    np.testing.assert_allclose(model.canonical_correlations_**2, f * f / t, atol=0.01)
    signal = t**2 * (1 - c) ** 2 - c**2
    limit = rho * signal / (signal + c * (1 - t) * f)
    np.testing.assert_allclose(model.expected_correlations_, limit, atol=0.01)


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.parametrize(
    ("k", "reg", "tolerance"),
    [(3, 0.0, 1e-10), (3, 0.1, 0.005), (3, 1.0, 0.005), (40, 0.0, 1e-10), (40, 0.1, 1e-10)],
)
def test_few_components_are_expected_to_agree_as_among_all(k, reg, tolerance):
    views = gaussian_views(600, np.linspace(0.95, 0.3, 30), 150, seed=4)
    views = Views({name: X * np.linspace(3, 0.3, 150) for name, X in views.items()})
    # 3 by the Gram matrix, others by an SVD
    few, full = (CCA(n_components, reg=reg).fit(views) for n_components in (k, 150))
    for by_pair in ("expected_correlations_", "expected_correlations_by_pair_"):
        found, expected = getattr(few, by_pair), getattr(full, by_pair)[..., :k]
        np.testing.assert_allclose(found, expected, atol=tolerance)
    for name, deviations in few.expected_deviations_.items():
        expected = full.expected_deviations_[name][:k]
        np.testing.assert_allclose(deviations, expected, rtol=tolerance)


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.parametrize(("width", "reg"), [(90, 0.0), (150, 0.1), (300, 1.0)])
def test_with_as_many_features_as_rows_the_best_components_are_still_known(width, reg):
    rho, rng = np.linspace(0.95, 0.5, 10), np.random.default_rng(0)
    train, new = (gaussian_views(n, rho, width, seed=n) for n in (200, 20_000))
    scale = np.where(np.arange(width) < 10, 3.0, rng.uniform(0.2, 1, width))
    train, new = (Views({k: X * scale for k, X in views.items()}) for views in (train, new))
    model = CCA(30, reg=reg).fit(train)
    expected, found = model.expected_correlations_, correlations(model, new)
    assert np.diff(expected).max() < 0.01
    assert expected[0] > 2 * expected[-1]
    assert np.sqrt(np.mean((expected - found) ** 2)) < 0.18
    assert np.sqrt(np.mean((correlations(model, train) - found) ** 2)) > 0.4


@pytest.mark.parametrize("reg", [0.0, 0.1, 1.0, "auto"])
def test_expected_correlations_are_close_to_those_of_new_rows(reg):
    rho = np.array([0.95, 0.8, 0.6, 0.45])
    model = CCA(4, reg=reg).fit(gaussian_views(1500, rho, 60, seed=1))
    new = correlations(model, gaussian_views(50_000, rho, 60, seed=2))
    error = np.abs(model.expected_correlations_ - new)
    assert error.max() < 0.06
    optimism = np.abs(correlations(model, gaussian_views(1500, rho, 60, seed=1)) - new)
    assert error.sum() < 0.6 * optimism.sum()


@pytest.mark.filterwarnings("ignore:Few rows")
def test_of_components_below_the_noise_edge_nothing_is_expected():
    n, width = 200, 20
    noise = CCA(width).fit(gaussian_views(n, np.array([0.3]), width, seed=3))  # ρ leaves no trace
    assert noise.canonical_correlations_[0] < SampleBias(n, (width, width)).edge
    np.testing.assert_allclose(noise.expected_correlations_, 1 / np.sqrt(n))
    # Many weak components are each below the edge, but not together.
    weak = CCA(width).fit(gaussian_views(n, np.full(width, 0.3), width, seed=0))
    below = weak.canonical_correlations_ < SampleBias(n, (width, width)).edge
    assert below.sum() > 10
    assert (weak.expected_correlations_[below] > 1.5 / np.sqrt(n)).any()


@pytest.mark.filterwarnings("ignore:Few rows")
@pytest.mark.parametrize("n_seeds", [60, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("n", "width", "rho", "most"),
    [(200, 10, 0.3, 0.05), (200, 20, 0.5, 0.04), (200, 20, 0.3, 0.09)],
)
def test_weak_components_are_expected_to_correlate_nearly_as_they_do(n, width, rho, most, n_seeds):
    bias = []
    for seed in range(n_seeds):
        model = CCA(1).fit(gaussian_views(n, np.array([rho]), width, seed))
        a, b = (W[:, 0] for W in model.weights_.values())
        found = rho * a[0] * b[0] / np.linalg.norm(a) / np.linalg.norm(b)
        bias.append(model.expected_correlations_[0] - found)
    assert abs(np.mean(bias)) < most


def test_without_rows_to_spare_all_components_weigh_the_same():
    views = gaussian_views(40, np.array([0.9]), 60, seed=0)
    with pytest.warns(UserWarning, match="by construction"):
        model = CCA(3).fit(views)
    np.testing.assert_allclose(model.expected_correlations_, 1 / np.sqrt(40))
    plain = evaluate_retrieval(views, estimator=model, similarity="cosine")
    assert evaluate_retrieval(views, estimator=model).mean() == plain.mean()


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


@pytest.mark.parametrize("n_valid", [99, 150])
@pytest.mark.parametrize(("method", "max_epochs"), [("DCCA", 3), ("CCAL", 30)])
def test_deep_estimators_expect_the_correlations_of_their_validation_rows(
    method, max_epochs, n_valid
):
    deep = pytest.importorskip("mvcca.deep", reason="pip install 'mvcca[deep]'")
    train, valid = (gaussian_views(n, np.array([0.9, 0.7, 0.5]), 8, seed=n) for n in (200, n_valid))
    options = {"hidden_layer_sizes": (64,), "max_epochs": max_epochs, "random_state": 0}
    options["start"] = "random"  # which overfits; linear CCA shrinks its correlations
    model = getattr(deep, method)(3, **options).fit(train, X_val=valid)
    held_out = correlations(model, valid)
    assert (held_out > 1 / np.sqrt(n_valid)).all()
    assert np.abs(correlations(model, train) - held_out).max() > 0.05
    if n_valid >= 100:
        np.testing.assert_allclose(model.expected_correlations_, held_out, atol=1e-5)
        deviations = model.transform({"x": valid["x"]})["x"].std(axis=0, ddof=1)
        np.testing.assert_allclose(model.expected_deviations_["x"], deviations, rtol=1e-4)
    else:
        assert np.abs(model.expected_correlations_ - held_out).max() > 1e-3


# ---- the likelihood ratio -----------------------------------------------------------------------

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
WEIGHTINGS = ("likelihood", "profile-likelihood", "likelihood-cosine", "correlation^2", None)


def log_ratio(a, b, rho):
    """Log-likelihood ratio of scores of unit variance, from SciPy's densities."""
    k = len(rho)
    of_pairs = np.block([[np.eye(k), np.diag(rho)], [np.diag(rho), np.eye(k)]])
    joint = multivariate_normal(np.zeros(2 * k), of_pairs)
    apart = multivariate_normal(np.zeros(2 * k), np.eye(2 * k))
    return joint.logpdf(np.r_[a, b]) - apart.logpdf(np.r_[a, b])


def planted(rho, n_features, views=("x", "y")):
    """An estimator that knows the correlations of the leading features."""
    rng = np.random.default_rng(0)
    n_rows = 100 + 5 * n_features  # enough for as many components as features
    model = MVCCA(len(rho)).fit({name: rng.normal(size=(n_rows, n_features)) for name in views})
    model.weights_ = {name: np.eye(n_features, len(rho)) for name in views}
    model.means_ = {name: np.zeros(n_features) for name in views}
    model.expected_correlations_ = np.asarray(rho)
    model.expected_correlations_by_pair_ = np.tile(rho, (len(views), len(views), 1))
    model.expected_deviations_ = {name: np.ones(len(rho)) for name in views}
    return model


def test_scores_of_an_index_are_log_likelihood_ratios():
    rho = np.array([0.9, 0.6, 0.3])
    rows = gaussian_views(5, rho, 3, seed=1)
    index = RetrievalIndex(planted(rho, 3), weighting="likelihood").add({"y": rows["y"]})
    scores, ids = index.search({"x": rows["x"]}, target="y", k=5)
    for a, of_query, items in zip(rows["x"], scores, ids, strict=True):
        for score, item in zip(of_query, items, strict=True):
            np.testing.assert_allclose(score, log_ratio(a, rows["y"][item], rho), rtol=1e-10)


def test_scores_are_measured_in_their_deviations():
    rho, sizes = np.array([0.8, 0.5]), np.array([3.0, 0.2])
    rows = gaussian_views(4, rho, 2, seed=1)
    model = planted(rho, 2)
    model.expected_deviations_ = {"x": sizes, "y": 1 / sizes}
    scaled = {"x": rows["x"] * sizes, "y": rows["y"] / sizes}
    ranking = Ranking.of(model, weighting="likelihood")
    projected = ranking.project(scaled, unpaired=True).rows
    queries = ranking.queries({"x": projected["x"]}, ("y",))
    items = ranking.items({"y": projected["y"]})
    ratios = [[log_ratio(a, b, rho) for b in rows["y"]] for a in rows["x"]]
    np.testing.assert_allclose(queries @ items.T, ratios, rtol=1e-10)


def test_each_pair_of_views_has_its_own_correlations_and_joint_queries_add_ratios():
    rng = np.random.default_rng(0)
    names, k = ("a", "b", "c", "d"), 3
    model = planted(np.full(k, 0.5), k, names)
    of_pairs = rng.uniform(0.1, 0.9, size=(4, 4, k))
    of_pairs = model.expected_correlations_by_pair_ = (of_pairs + of_pairs.transpose(1, 0, 2)) / 2
    rows = {name: rng.normal(size=(6, k)) for name in names}
    ranking = Ranking.of(model, weighting="likelihood")
    projected = ranking.project(rows, unpaired=True).rows

    def ratios(queries, targets):
        return np.array(
            [
                [
                    sum(
                        log_ratio(rows[p][i], rows[q][j], of_pairs[names.index(p), names.index(q)])
                        for p in queries
                        for q in targets
                    )
                    for j in range(6)
                ]
                for i in range(6)
            ]
        )

    for queries, targets in [("a", "b"), ("d", "a"), ("c", "c"), ("ab", "c"), ("ac", "bd")]:
        q = ranking.queries({p: projected[p] for p in queries}, tuple(targets))
        g = ranking.items({t: projected[t] for t in targets})
        np.testing.assert_allclose(q @ g.T, ratios(queries, targets), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_with_the_planted_correlations_no_power_ranks_better(seed):
    rho = np.array([0.95, 0.9, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
    model, rows = planted(rho, 10), gaussian_views(3000, rho, 10, seed)

    def recall(weighting):
        options = {"measures": "r@1", "estimator": model, "weighting": weighting}
        return evaluate_retrieval(rows, **options).mean()["r@1"]

    likelihood = recall("likelihood")
    others = [None, "profile-likelihood", "likelihood-cosine"]
    others += [f"correlation^{power}" for power in (0.5, 1, 2, 4, 8)]
    assert likelihood > max(map(recall, others)) + 0.01


def test_vectors_are_those_of_the_profile_likelihood():
    rho = np.array([0.9, 0.6, 0.3])
    rows = gaussian_views(5, rho, 3, seed=1)
    vectors = retrieval_vectors(planted(rho, 3), rows)

    def ratio(a, b, scale):
        w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
        return (w * a * b).sum() * scale - (v * (scale * b) ** 2).sum() / 2

    for a, u in zip(rows["x"], vectors["x"], strict=True):
        best = [
            -minimize_scalar(lambda t, a=a, b=b: -ratio(a, b, np.exp(t))).fun for b in rows["y"]
        ]
        products = vectors["y"] @ u
        size = ((rho**2 / (1 - rho**2)) * a**2).sum()
        np.testing.assert_allclose(
            best, np.maximum(products, 0) ** 2 * size / 2, rtol=1e-6, atol=1e-6
        )


def profile_of_sums(queries, items, rho):
    """Profile likelihood of the sums over views, by loops over all pairs."""
    w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
    return np.array(
        [
            [(w * a * b).sum() / np.sqrt((v * a**2).sum() * (v * b**2).sum()) for b in sum(items)]
            for a in sum(queries)
        ]
    )


@pytest.mark.parametrize("backend", ["exact", "faiss:Flat"])
@pytest.mark.parametrize(
    ("query", "target"), [("a", "b"), ("ab", "c"), ("a", "cd"), ("ab", "cd"), ("bad", "cab")]
)
def test_the_profile_likelihood_adds_the_views_before_it_profiles_their_scale(
    query, target, backend
):
    if backend != "exact":
        pytest.importorskip("faiss", reason="pip install 'mvcca[index]'")
    rng = np.random.default_rng(0)
    rho = np.array([0.95, 0.7, 0.4, 0.1])
    model = planted(rho, 4, tuple("abcd"))
    rows = {name: rng.normal(size=(30, 4)) * rng.exponential(size=(30, 1)) for name in "abcd"}
    by_hand = profile_of_sums([rows[p] for p in query], [rows[q] for q in target], rho)

    index = RetrievalIndex(model, backend=backend).add({name: rows[name] for name in target})
    scores, ids = index.search({name: rows[name] for name in query}, tuple(target), k=30)
    np.testing.assert_array_equal(ids, np.argsort(-by_hand, axis=1))
    np.testing.assert_allclose(scores, -np.sort(-by_hand, axis=1), rtol=1e-9, atol=1e-12)

    table = evaluate_retrieval(
        rows, measures="mrr", directions=[(tuple(query), tuple(target))], estimator=model
    )
    mrr = (1 / (1 + (by_hand > by_hand.diagonal()[:, None]).sum(axis=1))).mean()
    np.testing.assert_allclose(table.mean()["mrr"], mrr, rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_joint_queries_find_more_than_sums_of_vectors_and_than_any_cosine(seed):
    rng = np.random.default_rng(seed)
    names, rho = tuple("abcd"), 0.7 * np.exp(-np.arange(200) / 40)
    model, shared = planted(rho, 200, names), rng.normal(size=(2000, 200)) * np.sqrt(rho)
    rows = {name: shared + rng.normal(size=(2000, 200)) * np.sqrt(1 - rho) for name in names}
    options = {"measures": "r@1", "directions": [(("a", "b"), ("c", "d"))]}

    def recall(views, **ranking):
        return evaluate_retrieval(views, **options, **ranking).mean()["r@1"]

    default = recall(rows, estimator=model)
    assert default > recall(retrieval_vectors(model, rows), similarity="inner") + 0.01
    for weighting in (None, "correlation", "correlation^4", "likelihood-cosine"):
        assert default > recall(rows, estimator=model, weighting=weighting) + 0.01


@pytest.mark.parametrize("backend", ["exact", "faiss:Flat", "torch", "dask"])
def test_every_route_gives_the_formula(backend):
    rho = np.linspace(0.95, 0.1, 12)
    model, rows = planted(rho, 12), gaussian_views(300, rho, 12, seed=2)
    a, b = rows["x"][:40], rows["y"]
    w, v = rho / (1 - rho**2), rho**2 / (1 - rho**2)
    formula = (a * w) @ b.T - (a**2 @ v)[:, None] / 2 - b**2 @ v / 2
    formula = formula - np.log1p(-(rho**2)).sum() / 2
    if backend in ("torch", "dask"):
        library = pytest.importorskip(backend if backend == "torch" else "dask.array")
        as_array = library.as_tensor if backend == "torch" else library.from_array
        ranking = Ranking.of(model, weighting="likelihood")
        projected = ranking.project({"x": as_array(a), "y": as_array(b)}, unpaired=True).rows
        queries = ranking.queries({"x": np.asarray(projected["x"])}, ("y",))
        scores, ids = top_k(queries, projected["y"], 300, ranking.similarity)
    else:
        if backend.startswith("faiss"):
            pytest.importorskip("faiss", reason="pip install 'mvcca[index]'")
        index = RetrievalIndex(model, weighting="likelihood", backend=backend).add({"y": b})
        scores, ids = index.search({"x": a}, target="y", k=300)
    np.testing.assert_allclose(
        scores,
        np.take_along_axis(formula, ids, axis=1),
        rtol=1e-12,
        atol=1e-12 * abs(formula).max(),
    )
    np.testing.assert_array_equal(ids, np.argsort(-formula, axis=1, kind="stable"))


# ---- all weightings -----------------------------------------------------------------------------


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("estimator", [CCA(3), KCCA(3), MVCCA(3), MVCCA(3, power=2)])
def test_every_route_ranks_alike(weighting, estimator):
    views = make_gaussian_views(120, random_state=0).views
    model, rows = estimator.fit(views[:80]), views[80:]
    first, second = rows.names[:2]
    index = RetrievalIndex(model, weighting=weighting).add({second: rows[second]})
    _, ids = index.search({first: rows[first]}, target=second, k=1)
    recall = np.mean(ids.ravel() == np.arange(len(rows)))
    options = {"estimator": model, "weighting": weighting, "directions": [(first, second)]}
    table = evaluate_retrieval(rows, measures=["r@1", "mr"], **options)
    assert table.mean()["r@1"] == recall
    assert table.recall_curves(1)[first, second] == [recall]
    score = retrieval_scorer("r@1", first, second, weighting=weighting)
    assert score(model, rows) == recall
    assert score(
        make_pipeline(PerView(StandardScaler()).fit(views[:80]), "passthrough", model), rows
    )


def test_weighting_leaves_out_the_power_of_the_estimator():
    views = make_gaussian_views(60, random_state=0).views
    plain, powered = MVCCA(3).fit(views), MVCCA(3, power=2).fit(views)
    for weighting in WEIGHTINGS:
        options = {"measures": "mrr", "weighting": weighting}
        if weighting in (None, "likelihood", "correlation^2"):
            assert (
                evaluate_retrieval(views, estimator=plain, **options).mean()
                == evaluate_retrieval(views, estimator=powered, **options).mean()
            )
    assert powered.power == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weighting": "likelyhood"}, "Expected weighting to be .* got 'likelyhood'"),
        ({"weighting": "correlation^-1"}, "power P of at least 0"),
        ({"weighting": "likelihood^2"}, "Expected weighting"),
        ({"weighting": "likelihood", "similarity": "cosine"}, "give one of them"),
    ],
)
def test_weightings_that_cannot_be_are_refused(arguments, message):
    model = CCA(2).fit(gaussian_views(50, np.array([0.9, 0.5]), 3, seed=0))
    with pytest.raises(ValueError, match=message):
        RetrievalIndex(model, **arguments)


def test_estimators_without_correlations_say_so():
    data = load_digits_views()
    left, right = data.views["left"][:900], data.views["right"][900:]  # unpaired
    model = MLCCA(2).fit([left, right], [data.labels[:900], data.labels[900:]])
    views = Views.unpaired({"view1": left, "view2": right})
    with pytest.raises(ValueError, match="MLCCA has no expected_correlations_"):
        evaluate_retrieval(views, estimator=model, weighting="likelihood-cosine")
    with pytest.raises(ValueError, match="pass estimator="):
        evaluate_retrieval({"a": np.eye(3), "b": np.eye(3)}, weighting="likelihood")


@pytest.mark.parametrize("estimator", [CCA(20, reg=0.01), KCCA(20, reg=0.1), MVCCA(20, reg="auto")])
def test_digits_are_found_better_than_by_the_cosine_of_scores(estimator):
    data = load_digits_views()
    order = np.random.default_rng(0).permutation(len(data.labels))
    train, test = order[:600], order[600:1200]
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
        retrieval_vectors(model, data.views)["left"],
        unit_rows(model.transform(data.views)["left"]),
    )


def test_models_that_are_not_fitted_say_so():
    with pytest.raises(NotFittedError, match="CCA"):
        retrieval_vectors(CCA(), {"x": np.ones((2, 2))})
