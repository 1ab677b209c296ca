"""The linear family against SciPy, scikit-learn, double loops and planted solutions."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from given_matrices import GivenMatrices
from scipy import linalg
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage
from sklearn.cross_decomposition import CCA as SklearnCCA
from sklearn.datasets import load_linnerud

from benchmarks.real import fetch_mnist_halves
from mvcca import CCA, KCCA, MLCCA, MVCCA, MVMLCCA, Views
from mvcca.datasets import load_digits_views, make_gaussian_views
from mvcca.linear import with_labels_as_view
from mvcca.measures import total_correlation
from mvcca.problem.shrinkage import shrinkages


def correlations_by_scipy(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Cosines of the principal angles between the column spaces of centred views."""
    Q1, Q2 = (linalg.orth(A - A.mean(axis=0)) for A in (X, Y))
    return linalg.svdvals(Q1.T @ Q2)


def correlated(n: int = 300, widths: tuple[int, ...] = (7, 5), seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    latent = rng.standard_normal((n, 4))
    return [latent @ rng.standard_normal((4, d)) + rng.standard_normal((n, d)) + 1 for d in widths]


# ---- CCA -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_canonical_correlations_equal_principal_angles(seed):
    X, Y = correlated(seed=seed)
    model = CCA(5).fit(X, Y)
    np.testing.assert_allclose(
        model.canonical_correlations_, correlations_by_scipy(X, Y), atol=1e-12
    )


def test_scores_have_unit_variance_and_correlate_only_pairwise():
    X, Y = correlated()
    model = CCA(5).fit(X, Y)
    S, T = model.transform(X, Y)
    np.testing.assert_allclose(np.cov(S.T), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(np.cov(T.T), np.eye(5), atol=1e-10)
    cross = (S.T @ T) / (len(S) - 1)
    np.testing.assert_allclose(cross, np.diag(model.canonical_correlations_), atol=1e-10)


@pytest.mark.filterwarnings("ignore:Few rows")
def test_linnerud_scores_equal_those_of_scikit_learn():
    X, Y = load_linnerud(return_X_y=True)
    ours = CCA(2).fit(X, Y).transform(X, Y)
    theirs = SklearnCCA(2, max_iter=5000, tol=1e-14).fit(X, Y).transform(X, Y)
    for a, b in zip(ours, theirs, strict=True):
        correlation = np.corrcoef(a.T, b.T)[:2, 2:]
        np.testing.assert_allclose(np.abs(np.diag(correlation)), 1, atol=1e-6)


def test_ridge_is_that_of_the_generalized_eigenproblem():
    X, Y = correlated()
    reg = {"X": 0.3, "y": 0.05}
    Sigma = np.cov(np.hstack([X, Y]).T)
    Sxx, Syy, Sxy = Sigma[:7, :7], Sigma[7:, 7:], Sigma[:7, 7:]
    Sxx = Sxx + 0.3 * np.trace(Sxx) / 7 * np.eye(7)
    Syy = Syy + 0.05 * np.trace(Syy) / 5 * np.eye(5)
    squares = linalg.eigh(Sxy @ np.linalg.solve(Syy, Sxy.T), Sxx, eigvals_only=True)[::-1][:3]
    model = CCA(3, reg=reg).fit(X, Y)
    np.testing.assert_allclose(model.canonical_correlations_, np.sqrt(squares), rtol=1e-10)
    A = model.weights_["X"]
    np.testing.assert_allclose(A.T @ Sxx @ A, np.eye(3), atol=1e-10)


@pytest.mark.parametrize("reg", [1e-3, 1.0])
def test_more_features_than_rows_gives_what_the_large_problem_gives(reg):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((25, 60)) + 2, rng.standard_normal((25, 40))
    Y[:, :3] += X[:, :3]
    wide = CCA(4, reg=reg).fit(X, Y)
    primal = CCA(4, reg=reg).partial_fit(X, Y)  # moments of all 60 + 40 features
    np.testing.assert_allclose(
        wide.canonical_correlations_, primal.canonical_correlations_, atol=1e-10
    )
    np.testing.assert_allclose(wide.weights_["X"], primal.weights_["X"], atol=1e-8)
    np.testing.assert_allclose(wide.means_["X"], X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("condition", [1e4, 1e8])
def test_ill_conditioned_views_are_solved_from_their_rows(condition):
    rng = np.random.default_rng(0)
    X, Y = correlated(1000, (8, 6))
    basis, _ = np.linalg.qr(rng.standard_normal((8, 8)))
    X_bad = (X - X.mean(axis=0)) @ (basis * np.geomspace(1, 1 / condition, 8)) @ basis.T
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = CCA(6).fit(X_bad, Y).canonical_correlations_
    np.testing.assert_allclose(found, correlations_by_scipy(X, Y), atol=1e-13 * condition)


@pytest.mark.parametrize("shape", [(60, 7), (20, 31)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted"])
def test_auto_ridge_shrinks_as_scikit_learn_does(shape, kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape) @ np.diag(np.linspace(1, 3, shape[1])) + 2
    X[:, 0] *= X[:, 0] > 0
    weights = rng.integers(1, 4, len(X)).astype(float) if kind == "weighted" else None
    repeated = X if weights is None else np.repeat(X, weights.astype(int), axis=0)
    shrinkage = ledoit_wolf_shrinkage(repeated)
    found = shrinkages(Views({"x": csr_array(X) if kind == "sparse" else X}), weights)["x"]
    assert found == pytest.approx(shrinkage, rel=1e-9)


def shrunk(X: np.ndarray) -> np.ndarray:
    """scikit-learn's shrunk covariance, over n - 1."""
    return LedoitWolf().fit(X).covariance_ * len(X) / (len(X) - 1)


def directions(model: MVCCA) -> np.ndarray:
    """Weights of all views, stacked, up to the factor of a component."""
    W = np.concatenate(list(model.weights_.values()))
    return W / np.linalg.norm(W, axis=0)


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("n_rows", [60, 12])
def test_reg_auto_constrains_by_the_shrunk_covariance_of_every_view(n_rows, n_views):
    blocks = correlated(n_rows, widths=(7, 15, 6)[:n_views])
    blocks[0] = blocks[0] @ np.diag(np.linspace(1, 5, 7))  # shrunk less than the others
    model = MVCCA(3, reg="auto").fit(blocks)
    within = linalg.block_diag(*map(shrunk, blocks))
    total = np.cov(np.hstack(blocks).T)
    between = total - linalg.block_diag(*(np.cov(X.T) for X in blocks))
    values, W = linalg.eigh(between, within)
    W = W[:, ::-1][:, :3] / np.linalg.norm(W[:, ::-1][:, :3], axis=0)
    np.testing.assert_allclose(np.abs(np.sum(W * directions(model), axis=0)), 1, rtol=1e-9)
    rho = model.eigenvalues_ - 1
    np.testing.assert_allclose(rho / rho[0], values[::-1][:3] / values[-1], rtol=1e-9)
    assert rho[0] <= n_views - 1


def near_white(n_views: int) -> list[np.ndarray]:
    """Views of variance 1 to within 1e-3 in every direction, which share two latent variables."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((400, 2))
    blocks = []
    for _ in range(n_views):
        X = np.hstack([shared + 0.5 * rng.standard_normal((400, 2)), rng.standard_normal((400, 6))])
        white = linalg.svd(X - X.mean(axis=0), full_matrices=False)[0] * np.sqrt(399)
        blocks.append(white * np.linspace(1, 1.001, 8))
    return blocks


@pytest.mark.parametrize("n_views", [2, 3])
def test_reg_auto_of_white_views_is_no_ridge(n_views):
    blocks = near_white(n_views)
    assert all(shrinkages(Views({"x": X}))["x"] == 1 for X in blocks)
    auto, plain = MVCCA(2, reg="auto").fit(blocks), MVCCA(2, reg=0).fit(blocks)
    np.testing.assert_allclose(auto.eigenvalues_, plain.eigenvalues_, rtol=2e-3)
    np.testing.assert_allclose(
        np.abs(np.sum(directions(auto) * directions(plain), axis=0)), 1, rtol=1e-3
    )


@pytest.mark.parametrize(
    "estimator",
    [MVCCA(), MLCCA(), MLCCA(weighting="means"), MVMLCCA(within="label"), MVMLCCA(within="sample")],
    ids=repr,
)
def test_a_view_that_is_all_shrunk_stays_in_the_problem(estimator):
    blocks = [*near_white(2), correlated(400)[0]]
    bins = [np.digitize(X[:, j], [-0.8, 0, 0.8]) for j, X in enumerate(blocks[:2])]
    labels = bins[0] + 4 * bins[1]
    blocks[2] = blocks[2] + 2 * np.eye(16, 7)[labels]
    model = estimator.set_params(reg="auto").fit(blocks, labels)
    scores = model.transform(blocks)
    for z in scores:
        assert z[:, 0].std() > 0.02 * max(other[:, 0].std() for other in scores)
    assert 1.01 < model.eigenvalues_[0] <= 3 + 1e-9


@pytest.mark.needs_data("mnist.npz")
def test_mnist_halves_correlate_as_published():
    data = fetch_mnist_halves()

    def total(model: CCA, part: str) -> float:
        scores = model.transform(data[part].views)
        return total_correlation(scores["left"], scores["right"])

    models = [CCA(50, reg=reg).fit(data.train.views) for reg in (1e-6, 1e-5, 1e-4, 1e-3)]
    best = max(models, key=lambda model: total(model, "valid"))
    assert total(best, "test") >= 28.8  # SPEC: 28.86 measured, 28.88 published


# ---- MVCCA ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0, 1e-2])
def test_two_view_mvcca_is_cca(reg):
    X, Y = correlated()
    cca, mvcca = CCA(3, reg=reg).fit([X, Y]), MVCCA(3, reg=reg).fit([X, Y])
    np.testing.assert_allclose(mvcca.eigenvalues_, 1 + cca.canonical_correlations_, atol=1e-12)
    for name in ("view0", "view1"):
        np.testing.assert_allclose(mvcca.weights_[name], cca.weights_[name], atol=1e-10)


def test_mvcca_without_a_ridge_is_maxvar_generalized_cca():
    blocks = correlated(widths=(4, 3, 5, 6))
    model = MVCCA(4, reg=0).fit(blocks)
    bases = [linalg.orth(X - X.mean(axis=0)) for X in blocks]
    # MAXVAR: the variate that the views' projections together explain best.
    values, variates = linalg.eigh(sum(Q @ Q.T for Q in bases))
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:4], atol=1e-10)
    total = sum(model.transform(blocks))
    cosines = np.sum(total / np.linalg.norm(total, axis=0) * variates[:, ::-1][:, :4], axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [
        MVCCA(3, reg=1.0),
        MVMLCCA(3, reg=1.0, within="label"),
        MVMLCCA(3, reg=0.5, within="sample", power=2.0),
    ],
    ids=repr,
)
def test_weights_solve_the_equation_of_the_docstring(estimator):
    blocks = correlated(widths=(4, 3, 5))
    labels = np.arange(300) % 7
    model = estimator.fit(blocks, labels)
    centred = [X - X.mean(axis=0) for X in blocks]
    if isinstance(estimator, MVCCA):
        pair = np.eye(300) / 299
    else:
        pair = np.exp(-1.0 * (labels[:, None] != labels)) / 300**2  # σ = 1, ‖z - z'‖² = 2
    W, rho = list(model.weights_.values()), model.eigenvalues_ - 1
    for p, X in enumerate(centred):
        others = sum(X.T @ pair @ Z @ W[q] for q, Z in enumerate(centred) if q != p)
        B = X.T @ X / 299 if getattr(estimator, "within", "sample") == "sample" else X.T @ pair @ X
        B = B + estimator.reg * np.trace(B) / len(B) * np.eye(len(B))
        np.testing.assert_allclose(others, rho * (B @ W[p]), atol=1e-10)
        if estimator.power:
            expected = X @ W[p] * (1 + rho) ** 2
            np.testing.assert_allclose(model.transform(blocks)[p], expected, atol=1e-9)


@pytest.mark.parametrize("reg", [0, 1e-2])
def test_mvcca_solves_the_block_eigenproblem(reg):
    blocks = correlated(widths=(4, 3, 5, 6))
    Sigma = np.cov(np.hstack(blocks).T)
    B = linalg.block_diag(*(np.cov(X.T) for X in blocks))
    ridge = np.concatenate(
        [np.full(X.shape[1], reg * np.cov(X.T).trace() / X.shape[1]) for X in blocks]
    )
    values, vectors = linalg.eigh(Sigma + np.diag(ridge), B + np.diag(ridge))
    model = MVCCA(4, reg=reg).fit(blocks)
    np.testing.assert_allclose(model.eigenvalues_, values[::-1][:4], rtol=1e-10)
    W = np.concatenate(list(model.weights_.values()))
    expected = vectors[:, ::-1][:, :4] * 2  # Σ wᵀBw = 4 views
    np.testing.assert_allclose(np.abs(W), np.abs(expected), atol=1e-8)
    np.testing.assert_allclose(W.T @ (B + np.diag(ridge)) @ W, 4 * np.eye(4), atol=1e-9)


def test_power_multiplies_scores_by_powers_of_the_eigenvalues():
    views = Views(correlated(widths=(4, 3, 5)))
    plain, scaled = MVCCA(3).fit(views), MVCCA(3, power=2).fit(views)
    np.testing.assert_allclose(
        scaled.transform(views)["view1"],
        plain.transform(views)["view1"] * plain.eigenvalues_**2,
    )


def patterns(seed: int, blocks: list[np.ndarray]) -> Views:
    """Objects that lack views at random; for odd seeds none is seen in all of them."""
    rng = np.random.default_rng(seed)
    n, V = len(blocks[0]), len(blocks)
    seen = rng.random((n, V)) < rng.choice([0.3, 0.6, 0.9])
    if seed % 2 and V > 2:
        seen[np.arange(n), rng.integers(0, V, n)] = False
    seen[: 2 * V] = False  # each view shares two objects with the next one
    for v in range(V):
        seen[[2 * v, 2 * v + 1], v] = seen[[2 * v, 2 * v + 1], (v + 1) % V] = True
    return Views(blocks, np.where(seen, np.arange(n)[:, None], -1))


@pytest.mark.filterwarnings("ignore")  # of more features than objects
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 24), marks=pytest.mark.long)])
@pytest.mark.parametrize("estimator", [MVCCA(3), GivenMatrices(3), KCCA(3)], ids=repr)
def test_no_correlation_is_above_its_bound_in_any_pattern_of_pairing(estimator, seeds):
    for seed in seeds:
        rng = np.random.default_rng(seed)
        widths = rng.integers(1, 15, rng.integers(2, 5))
        views = patterns(seed, correlated(60, widths, seed))
        model = clone(estimator).set_params(reg=[1e-4, 1e-2, 1.0][seed % 3]).fit(views)
        assert 1 < model.eigenvalues_[0] <= len(widths) * (1 + 1e-9), seed


@pytest.mark.filterwarnings("ignore:Few rows")
def test_covariances_within_and_between_two_views_are_of_the_same_objects():
    blocks = correlated(200, (4, 3, 5))
    views = patterns(1, blocks)
    seen, names = views.seen, views.names
    B = {name: [] for name in names}
    A = np.zeros((12, 12))
    columns = dict(zip(names, (slice(0, 4), slice(4, 7), slice(7, 12)), strict=True))
    for (i, p), (j, q) in combinations(enumerate(names), 2):
        both = seen[:, i] & seen[:, j]
        joint = np.cov(np.hstack([blocks[i][both], blocks[j][both]]).T)
        d = blocks[i].shape[1]
        A[columns[p], columns[q]], A[columns[q], columns[p]] = joint[:d, d:], joint[d:, :d]
        B[p].append(joint[:d, :d])
        B[q].append(joint[d:, d:])
    within = linalg.block_diag(*(np.mean(own, axis=0) for own in B.values()))
    expected = 1 + linalg.eigh(A, within, eigvals_only=True)[::-1][:4]
    np.testing.assert_allclose(MVCCA(4, reg=0).fit(views).eigenvalues_, expected, rtol=1e-10)


def test_partly_paired_views_teach_more_than_their_complete_objects():
    new = make_gaussian_views(3000, n_features=(15, 12, 10), random_state=0)
    blocks = [new.views[name] for name in new.views.names]
    gains = []
    for seed in range(8):
        rows = np.random.default_rng(seed).permutation(3000)
        train, test = ([X[part] for X in blocks] for part in (rows[:300], rows[300:]))
        seen = np.random.default_rng(seed).random((300, 3)) < 0.5
        views = Views(train, np.where(seen, np.arange(300)[:, None], -1))
        model, complete = MVCCA(3, reg=0.1).fit(views), views[views.seen.all(axis=1)]
        gains.append(model.score(test) - MVCCA(3, reg=0.1).fit(complete).score(test))
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_a_view_without_pairs_is_named():
    X, Y, Z = correlated(30, (3, 3, 3))
    index = np.tile(np.arange(30)[:, None], 3)
    index[:10, 2], index[10:, :] = -1, -1
    index[10:, 2] = np.arange(20)
    with pytest.raises(ValueError, match="view 'view2' shares 0 objects with the others"):
        MVCCA().fit(Views([X, Y, Z], index))


def test_labels_as_a_view_are_their_indicators():
    data = load_digits_views()
    views = with_labels_as_view(data.views, data.labels)
    assert views.names == ("left", "right", "labels")
    np.testing.assert_array_equal(views["labels"].toarray(), np.eye(10)[data.labels])


# ---- MLCCA and MVMLCCA ---------------------------------------------------------------------------


def sqexp(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-cdist(A, B, "sqeuclidean") / 2)


def cos(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return 1 - cdist(A, B, "cosine")


def unpaired(seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    pool = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    labels = [pool[rng.integers(0, 5, n)] for n in (70, 50)]
    effects = [rng.standard_normal((4, d)) for d in (3, 4)]
    blocks = [
        Z @ E + rng.standard_normal((len(Z), E.shape[1]))
        for Z, E in zip(labels, effects, strict=True)
    ]
    return blocks, labels


def eigen(between: np.ndarray, within: list[np.ndarray], reg: float, k: int) -> np.ndarray:
    """λ of the block problem, ridge in units of the mean diagonal, by SciPy."""
    B = linalg.block_diag(*(W + reg * np.trace(W) / len(W) * np.eye(len(W)) for W in within))
    d = len(within[0])
    off = np.zeros_like(B)
    off[:d, d:] = between
    off[d:, :d] = between.T
    return 1 + linalg.eigh(off, B, eigvals_only=True)[::-1][:k]


@pytest.mark.parametrize(("name", "f"), [("sqexp", sqexp), ("cosine", cos)])
def test_mlcca_equals_sums_over_all_pairs_of_rows(name, f):
    (X, Y), (Zx, Zy) = unpaired()
    F = f(Zx, Zy)
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    within = [Xc.T @ np.diag(F.sum(axis=1)) @ Xc, Yc.T @ np.diag(F.sum(axis=0)) @ Yc]
    model = MLCCA(3, label_similarity=name, reg=0.1).fit([X, Y], [Zx, Zy])
    np.testing.assert_allclose(model.eigenvalues_, eigen(Xc.T @ F @ Yc, within, 0.1, 3), rtol=1e-10)


@pytest.mark.parametrize("within", ["label", "sample"])
def test_mvmlcca_equals_sums_over_all_pairs_of_rows(within):
    (X, Y), (Zx, Zy) = unpaired()
    Xc, Yc = X - X.mean(axis=0), Y - Y.mean(axis=0)
    psi = Xc.T @ sqexp(Zx, Zy) @ Yc / (len(X) * len(Y))
    if within == "label":
        own = [C.T @ sqexp(Z, Z) @ C / len(C) ** 2 for C, Z in ((Xc, Zx), (Yc, Zy))]
    else:
        own = [np.cov(X.T), np.cov(Y.T)]
    model = MVMLCCA(3, reg=0.1, within=within).fit([X, Y], [Zx, Zy])
    np.testing.assert_allclose(model.eigenvalues_, eigen(psi, own, 0.1, 3), rtol=1e-10)


@pytest.mark.parametrize("n_views", [2, 3])
def test_mvmlcca_that_pairs_each_row_with_itself_is_mvcca(n_views):
    views = Views(correlated(widths=(4, 3, 5)[:n_views]))
    y = np.arange(len(views))  # a label of its own for every object
    pairing = MVMLCCA(3, label_similarity="equal", within="label").fit(views, y)
    by_callable = MVMLCCA(
        3, label_similarity=lambda A, B: (A @ B.T > 0).astype(float), within="label"
    ).fit(views, y)
    expected = MVCCA(3).fit(views)
    for model in (pairing, by_callable):
        np.testing.assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
        for name in views.names:
            W, V = model.weights_[name], expected.weights_[name]
            np.testing.assert_allclose(W / np.abs(W).max(), V / np.abs(V).max(), atol=1e-9)


def test_cluster_cca_is_cca_over_all_pairs_within_classes():
    rng = np.random.default_rng(0)
    classes = [rng.integers(0, 4, 40), rng.integers(0, 4, 30)]
    blocks = [rng.standard_normal((4, 3))[c] + rng.standard_normal((len(c), 3)) for c in classes]
    X, Y = (B - B.mean(axis=0) for B in blocks)
    i, j = np.nonzero(classes[0][:, None] == classes[1])
    within = [X[i].T @ X[i], Y[j].T @ Y[j]]
    model = MLCCA(2, label_similarity="equal", reg=1e-3).fit(blocks, classes)
    np.testing.assert_allclose(
        model.eigenvalues_, eigen(X[i].T @ Y[j], within, 1e-3, 2), rtol=1e-10
    )


def test_mean_cca_is_cca_of_class_means_about_the_mean_of_all_rows():
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.repeat(np.arange(6), (10, 20, 30, 5, 8, 40)))
    blocks = [rng.standard_normal((6, 3))[classes] + rng.standard_normal((113, 3)) for _ in "ab"]
    means = [
        np.array([B[classes == c].mean(axis=0) for c in range(6)]) - B.mean(axis=0) for B in blocks
    ]
    within = [M.T @ M for M in means]
    model = MLCCA(2, label_similarity="equal", weighting="means", reg=0.01).fit(blocks, classes)
    np.testing.assert_allclose(
        model.eigenvalues_, eigen(means[0].T @ means[1], within, 0.01, 2), rtol=1e-10
    )


def test_mlcca_of_three_views_averages_the_constraint_over_pairs():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 60)
    blocks = [rng.standard_normal((4, 3))[y] + rng.standard_normal((60, 3)) for _ in "abc"]
    model = MLCCA(2, label_similarity="equal", reg=0.1).fit(blocks, y)
    F = (y[:, None] == y).astype(float)
    C = [B - B.mean(axis=0) for B in blocks]
    within = [X.T @ np.diag(F.sum(axis=1)) @ X for X in C]
    B = linalg.block_diag(*(W + 0.1 * np.trace(W) / 3 * np.eye(3) for W in within))
    A = np.block(
        [
            [X.T @ F @ Y if p != q else np.zeros((3, 3)) for q, Y in enumerate(C)]
            for p, X in enumerate(C)
        ]
    )
    expected = 1 + linalg.eigh(A, B, eigvals_only=True)[::-1][:2]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-10)


def test_nearest_neighbours_of_every_row_are_all_pairs():
    (X, Y), (Zx, Zy) = unpaired()
    X, Zx = X[:50], Zx[:50]
    exact = MLCCA(3, reg=0.1).fit([X, Y], [Zx, Zy])
    fast = MLCCA(3, reg=0.1, n_neighbors=50, random_state=0).fit([X, Y], [Zx, Zy])
    np.testing.assert_allclose(fast.eigenvalues_, exact.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(fast.weights_["view0"], exact.weights_["view0"], atol=1e-8)


def test_fast_mlcca_takes_the_nearest_rows_itself_first_and_each_row_its_own_draw():
    from mvcca.linear.pairs import nearest_label_pairs

    rng = np.random.default_rng(0)
    vectors = (rng.random((12, 6)) < 0.5).astype(float)
    vectors = np.unique(vectors, axis=0)
    codes, order = rng.integers(0, len(vectors), 80), rng.permutation(80)
    F = nearest_label_pairs(vectors, (codes, order), (codes, order), 9, sqexp).tocsr()
    D = cdist(vectors[codes], vectors[codes])
    for row in range(80):
        taken = F.indices[F.indptr[row] : F.indptr[row + 1]]
        assert len(set(taken)) == 9
        assert row in taken
        left_out = np.setdiff1d(np.arange(80), taken)
        assert D[row, taken].max() <= D[row, left_out].min() + 1e-12
        np.testing.assert_allclose(
            F.toarray()[row, taken], sqexp(vectors[codes[row]][None], vectors[codes[taken]])[0]
        )
    biggest = np.flatnonzero(codes == np.bincount(codes).argmax())
    assert len({tuple(sorted(F[[r]].indices)) for r in biggest}) > 1


@pytest.mark.parametrize("paired", [True, False])
def test_fast_mlcca_does_not_depend_on_the_order_of_views(paired):
    (X, Y), (Zx, Zy) = unpaired()
    if paired:
        X, Zx = X[:50], Zy
    blocks, labels = {"a": X, "b": Y, "c": np.tanh(X[:, :3])}, {"a": Zx, "b": Zy, "c": Zx}
    model = MLCCA(3, n_neighbors=6, random_state=0)
    views = Views(blocks) if paired else Views.unpaired(blocks)
    turned = views.select(["c", "b", "a"])
    ours = model.fit(views, labels).eigenvalues_
    np.testing.assert_allclose(model.fit(turned, labels).eigenvalues_, ours, rtol=1e-9)


def test_fast_mlcca_is_the_sum_over_neighbours_in_both_directions():
    (X, Y), (Zx, Zy) = unpaired()
    n = 50
    X, Y, Zx = X[:n], Y[:n], Zy  # paired, so that both views share one order of ties
    model = MLCCA(2, n_neighbors=4, reg=0.1, random_state=3).fit([X, Y], Zx)
    place = np.random.RandomState(3).permutation(n)
    F = np.zeros((n, n))
    for i in range(n):
        near = np.lexsort(((place - place[i]) % n, np.round(cdist(Zx[i : i + 1], Zx)[0], 9)))
        F[i, near[:4]] = sqexp(Zx[i : i + 1], Zx[near[:4]])
    F = (F + F.T) / 2 / (4 * n)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    w = F.sum(axis=1)
    C_xx, C_yy = X.T * w @ X, Y.T * w @ Y
    for C in (C_xx, C_yy):
        C[np.diag_indices_from(C)] += 0.1 * np.trace(C) / len(C)
    half = [linalg.cholesky(C, lower=True) for C in (C_xx, C_yy)]
    T = linalg.solve(half[0], X.T @ F @ Y) @ linalg.inv(half[1]).T
    np.testing.assert_allclose(model.eigenvalues_ - 1, linalg.svdvals(T)[:2], rtol=1e-9)


def test_more_neighbours_than_rows_are_refused():
    (X, Y), labels = unpaired()
    with pytest.raises(ValueError, match="n_neighbors=51 is more than the 50 rows"):
        MLCCA(2, n_neighbors=51).fit([X, Y], labels)


def test_mvmlcca_warns_with_both_numbers_where_label_sets_are_too_few():
    data = load_digits_views()
    with pytest.warns(UserWarning, match="'left' has 32 features but only 10 distinct label sets"):
        MVMLCCA(4, within="label").fit(data.views, data.labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MVMLCCA(4, within="sample").fit(data.views, data.labels)


@pytest.mark.parametrize(
    ("method", "y", "bound"),
    [
        (CCA(9), None, 5),
        (MVCCA(9), None, 5),
        (MLCCA(9, label_similarity="equal"), np.arange(300) % 4, 3),
        (MLCCA(9, label_similarity="equal", weighting="means"), np.arange(300) % 4, 3),
        (MLCCA(9, label_similarity="cosine", weighting="means"), np.arange(300) % 4, 3),
        (MLCCA(9, weighting="means"), np.arange(300) % 4, 3),
        (MLCCA(9, label_similarity="exp", reg=1e-8), np.arange(300) % 4, 3),
        (MVMLCCA(9, within="sample", reg=1e-8), np.arange(300) % 4, 3),
        (MLCCA(9, label_similarity="cosine"), np.eye(3, dtype=int)[np.arange(300) % 3], 2),
        (
            MLCCA(9, label_similarity="cosine"),
            (np.arange(300) % 7 + 1)[:, None] >> np.arange(3) & 1,
            3,
        ),
        (MVMLCCA(9, within="sample", label_similarity="equal"), np.arange(300) % 4, 3),
    ],
)
def test_too_many_components_are_clipped_and_said_so(method, y, bound):
    with pytest.warns(UserWarning, match=f"fitted {bound}"):
        method.fit(correlated(), y)
    assert method.n_components_ == bound == len(method.eigenvalues_)


@pytest.mark.parametrize("similarity", ["sqexp", "exp"])
@pytest.mark.parametrize("kind", ["classes", "real"])
@pytest.mark.parametrize("sigma", [1e10, 1e20, 1e300])
@pytest.mark.parametrize(
    "method",
    [
        MLCCA(2),
        MVMLCCA(2, within="label"),
        MVMLCCA(2, label_features="nystroem", random_state=0, within="label"),
    ],
    ids=repr,
)
def test_a_bandwidth_under_which_all_labels_are_alike_is_an_error(method, sigma, kind, similarity):
    labels = np.arange(300) % 9
    y = labels if kind == "classes" else np.random.default_rng(0).standard_normal((9, 3))[labels]
    method = method.set_params(sigma=sigma, label_similarity=similarity)
    with pytest.raises(ValueError, match=r"sigma=1e\+\d+ is too large.* Expected at most"):
        method.fit(correlated(), y)


def test_a_bandwidth_far_above_the_distances_of_labels_still_has_its_digits():
    labels = np.arange(300) % 9
    blocks = correlated(widths=(5, 4))
    wide, wider = (
        MVMLCCA(2, sigma=sigma, reg=1e-2, within="label").fit(blocks, labels)
        for sigma in (1e5, 1e6)
    )  # both as good as g = 1 - ‖z - z'‖² / 2σ, under which σ is a factor of all covariances
    np.testing.assert_allclose(wide.eigenvalues_, wider.eigenvalues_, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_power_beyond_the_largest_float_is_an_error_that_names_it(dtype):
    blocks = [X.astype(dtype) for X in correlated()]
    with pytest.raises(ValueError, match=r"power=2000 is too large: .*\^2000"):
        MVCCA(2, power=2000).fit(blocks)
    model = MVCCA(2, power=300).fit(blocks)
    if dtype == np.float32:
        with pytest.raises(ValueError, match=r"power=300 is too large.*float32"):
            model.transform(blocks)
    else:
        assert np.isfinite(model.transform(blocks)[0]).all()


def test_negative_row_weights_are_refused():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.standard_normal((20, 2)) + 5, -rng.standard_normal((280, 2)) - 5])
    with pytest.raises(ValueError, match="negative weights"):
        MLCCA(label_similarity="cosine").fit(correlated(), y)
