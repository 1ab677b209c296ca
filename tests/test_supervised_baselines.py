"""LGCFL, JRL and CMOLRS against their formulas, written down a second time, and scikit-learn."""

from __future__ import annotations

import re
import signal
import threading
import time
import tracemalloc
import warnings
from functools import partial
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLasso
from sklearn.preprocessing import LabelBinarizer, StandardScaler

from mvcca import CMOLRS, JRL, LGCFL, Labels, Views, config_context, evaluate_retrieval
from mvcca.blocks import as_block
from mvcca.linear import jrl_loss as loss_module
from mvcca.linear._cmolrs import (
    _losses_and_gradient,
    _LowRank,
    _TripletSampler,
)
from mvcca.linear.group_sparse import MomentLoss
from mvcca.linear.jrl_loss import ObjectLoss, jrl_loss, laplacian, learned_rows
from mvcca.linear.shifted_rows import ShiftedRows

EXACT = {"tol": 1e-14, "max_iter": 1000}


def planted(
    n: int = 120, widths: tuple[int, ...] = (8, 6), n_classes: int = 3, seed: int = 0
) -> tuple[Views, np.ndarray]:
    """Views whose first three features tell the class, in every view differently; noise after."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    blocks = {}
    for name, d in zip(("image", "text", "sound", "smell"), widths, strict=False):
        blocks[name] = rng.standard_normal((n, d)) + 2
        blocks[name][:, :3] += 3 * rng.standard_normal((n_classes, 3))[y]
    return Views(blocks), y


def indicators(y: np.ndarray) -> np.ndarray:
    return LabelBinarizer().fit_transform(y).astype(float)


def lasso(X: np.ndarray, Y: np.ndarray, alpha: float) -> np.ndarray:
    """Weights (d, m) of the ℓ2,1 problem, by scikit-learn's coordinate descent."""
    return MultiTaskLasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, Y).coef_.T


def quietly(model, *args, **kwargs):
    """Fit to rounding, which is more steps than there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*args, **kwargs)


def scaler_of(X: np.ndarray) -> StandardScaler:
    """Scikit-learn's scaler, with deviations that divide by n - 1 as those of covariances do."""
    scaler = StandardScaler().fit(X)
    scaler.scale_ *= np.sqrt(len(X) / (len(X) - 1))
    return scaler


# ---- LGCFL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "reg"), [((120, (8, 6)), 0.003), ((20, (30, 6)), 0.05)], ids=["tall", "wide"]
)
def test_with_a_group_per_feature_lgcfl_is_scikit_learns_multi_task_lasso(shape, reg):
    views, y = planted(*shape)
    model = quietly(LGCFL(reg, scale=False, **EXACT), views, y)
    for name, X in views.items():
        expected = lasso(X, indicators(y), reg * np.sqrt(X.var(axis=0).mean()))
        error = 1e-4 * np.abs(expected).max()
        np.testing.assert_allclose(model.weights_[name], expected, atol=error)


def test_groups_meet_the_optimality_conditions_of_the_group_lasso():
    views, y = planted()
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    reg = 0.15
    model = quietly(LGCFL(reg, scale=False, groups={"image": groups}, **EXACT), views, y)
    X, Y, U = views["image"], indicators(y), model.weights_["image"]
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    slope = X.T @ (Y - X @ U) / len(X)
    penalty = reg * np.sqrt(X.var(axis=0).mean())
    size = {g: np.linalg.norm(U[groups == g]) for g in range(3)}
    assert size[0] > 1e3 * max(size[1], size[2])  # groups of noise are dropped
    np.testing.assert_allclose(
        slope[groups == 0], penalty * U[groups == 0] / size[0], atol=1e-6 * penalty
    )
    for g in (1, 2):
        assert np.linalg.norm(slope[groups == g]) < penalty


def test_groups_may_be_names():
    views, y = planted()
    numbers = LGCFL(groups={"text": [0, 0, 0, 1, 1, 1]}).fit(views, y)
    names = LGCFL(groups={"text": ["hog"] * 3 + ["gist"] * 3}).fit(views, y)
    np.testing.assert_allclose(names.weights_["text"], numbers.weights_["text"], rtol=1e-12)


@pytest.mark.parametrize("estimator", [LGCFL(0.05), JRL(0.1, n_neighbors=10)], ids=repr)
def test_no_step_increases_the_objective(estimator):
    model = estimator.fit(*planted())
    found = model.objectives_
    for objectives in found.values() if isinstance(found, dict) else [found]:
        assert len(objectives) > 2
        assert (np.diff(objectives) <= 1e-14).all()


@pytest.mark.parametrize("factor", [1.01, 0.99])
def test_a_penalty_that_drops_everything_is_the_one_that_scikit_learn_finds(factor):
    views, y = planted()
    X, Y = views["text"], indicators(y)
    slopes = (X - X.mean(axis=0)).T @ Y / len(X)
    largest = np.linalg.norm(slopes, axis=1).max() / np.sqrt(X.var(axis=0).mean())
    model = LGCFL({"image": 0.01, "text": factor * largest}, scale=False)
    if factor < 1:
        assert quietly(model, views, y).weights_["text"].any()
    else:
        with pytest.warns(
            UserWarning, match=r"View 'text': reg .* drops every feature.* than 0.99"
        ):
            model.fit(views, y)
        assert not model.weights_["text"].any()
        assert model.weights_["image"].any()


def test_components_of_lgcfl_and_jrl_stand_for_the_labels_they_name():
    views, y = planted()
    names = np.array(["cat", "cow", "dog"])[y]
    for estimator in (LGCFL(), JRL(n_neighbors=10)):
        model = estimator.fit(views, names)
        assert model.labels_.tolist() == ["cat", "cow", "dog"]
        for scores in model.transform(dict(views.items())).values():
            assert np.mean(model.labels_[scores.argmax(axis=1)] == names) > 0.95


def test_label_sets_and_real_label_vectors_are_regressed_on():
    views, y = planted()
    Z = np.c_[y == 0, y < 2, y > 0].astype(int)
    model = quietly(LGCFL(0.01, scale=False, **EXACT), views, Z)
    alpha = 0.01 * np.sqrt(views["text"].var(axis=0).mean())
    np.testing.assert_allclose(model.weights_["text"], lasso(views["text"], Z, alpha), atol=1e-5)
    model = quietly(LGCFL(0.01, scale=False, **EXACT), views, 1.5 * Z)
    expected = lasso(views["text"], 1.5 * Z, alpha)
    np.testing.assert_allclose(model.weights_["text"], expected, atol=1e-5)


X, Y = planted()
REFUSED = {
    "groups of no view": (LGCFL(groups={"smell": [0]}), X, Y, {}, "groups name the view 'smell'"),
    "groups of two features": (
        LGCFL(groups={"text": [0, 1]}), X, Y, {},
        r"groups of the 6 features of view 'text', one each, got shape \(2,\)",
    ),
    "no ridge of LGCFL": (
        LGCFL({"image": 0.1, "text": 0.0}), X, Y, {}, "reg of view 'text' must be positive, got 0"
    ),
    "no ridge of JRL": (
        JRL({"image": 0.1, "text": 0.0}), X, Y, {}, "reg of view 'text' must be positive, got 0"
    ),
    "unlabelled rows of no view": (
        JRL(), X, Y, {"X_unlabeled": {"smell": X["text"]}}, "Unknown view 'smell'"
    ),
    "unlabelled rows of four features": (
        JRL(), X, Y, {"X_unlabeled": {"text": X["text"][:, :4]}},
        "View 'text' has 4 features, but JRL is expecting 6",
    ),
    "real label vectors": (
        CMOLRS(), X, Y * 0.5, {}, r"CMOLRS needs classes.*got real-valued label vectors"
    ),
    "labels of other names": (
        CMOLRS(), [X["image"], X["text"]], [Y, Y + 10], {}, "nothing in common"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "X", "y", "given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused(model, X, y, given, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **given)


def test_too_few_steps_are_a_warning_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match=r"View 'image': .* Raise max_iter, or tol"):
        LGCFL(0.1, max_iter=2).fit({"image": planted()[0]["image"]}, planted()[1])


# ---- JRL -----------------------------------------------------------------------------------------


def dense_laplacian(X: np.ndarray, k: int) -> np.ndarray:
    """I - D^{-1/2} K D^{-1/2} by loops over rows."""
    n = len(X)
    distances = cdist(X, X)
    K = np.zeros((n, n))
    for i in range(n):
        others = [j for j in np.argsort(distances[i], kind="stable") if j != i]
        for j in others[:k]:
            K[i, j] = K[j, i] = 1 / (1 + np.exp(distances[i, j]))
    d = K.sum(axis=1)
    return np.eye(n) - K / np.sqrt(np.outer(d, d))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_laplacian_is_that_of_its_formula(form):
    X = np.random.default_rng(0).standard_normal((30, 4))
    np.testing.assert_allclose(laplacian(form(X), 5).toarray(), dense_laplacian(X, 5), atol=1e-12)


def test_far_rows_underflow_together():
    X = 1e5 * np.random.default_rng(0).standard_normal((30, 4))
    L = laplacian(X, 5).toarray()
    assert np.isfinite(L).all()
    np.testing.assert_allclose(np.diag(L), 1)


class Dense:
    """JRL's objective from its formula, with every matrix in full."""

    def __init__(self, model: JRL, views: Views, y: np.ndarray, unlabelled=None) -> None:
        self.model, self.Y = model, indicators(y)
        self.Y -= self.Y.mean(axis=0)
        self.Z, self.all, self.L = {}, {}, {}
        for name, X in views.items():
            scaler = scaler_of(X)
            more = [] if unlabelled is None else [scaler.transform(unlabelled[name])]
            self.Z[name] = scaler.transform(X)
            self.all[name] = np.concatenate([self.Z[name], *more])
            self.L[name] = dense_laplacian(self.all[name], model.n_neighbors)
        sd = {name: X.std(axis=0, ddof=1) for name, X in views.items()}
        self.P = {name: W * sd[name][:, None] for name, W in model.weights_.items()}

    def objective(self) -> float:
        model, total = self.model, 0.0
        for name, Z in self.Z.items():
            P, A = self.P[name], self.all[name] @ self.P[name]
            total += np.sum((Z @ P - self.Y) ** 2) / len(Z)
            total += model.smoothness * np.trace(A.T @ self.L[name] @ A) / len(A)
            total += model.reg * np.linalg.norm(P, axis=1).sum()
        n = len(self.Y)
        for p, q in permutations(self.Z, 2):
            gap = self.Z[p] @ self.P[p] - self.Z[q] @ self.P[q]
            total += model.pairing * np.sum(gap**2) / n / 2
        return total

    def slope(self, p: str) -> np.ndarray:
        """Minus the gradient of all but the norms."""
        Z, P, n = self.Z[p], self.P[p], len(self.Y)
        A = self.all[p]
        slope = -2 * Z.T @ (Z @ P - self.Y) / n
        slope -= 2 * self.model.smoothness * A.T @ self.L[p] @ A @ P / len(A)
        for q in self.Z:
            slope -= 2 * self.model.pairing * Z.T @ (Z @ P - self.Z[q] @ self.P[q]) / n
        return slope


@pytest.mark.parametrize(
    ("shape", "n_unlabelled"),
    [((90, (8, 6)), 0), ((60, (8, 6, 5)), 25), ((24, (60, 6)), 25)],
    ids=["two", "three", "wide"],
)
def test_jrl_is_optimal_under_its_formula_written_in_full(shape, n_unlabelled):
    views, y = planted(shape[0] + n_unlabelled, shape[1])
    train, rest = views[: shape[0]], views[shape[0] :]
    model = JRL(0.05, smoothness=3.0, pairing=0.7, n_neighbors=6, **EXACT)
    quietly(model, train, y[: shape[0]], X_unlabeled=rest if n_unlabelled else None)
    dense = Dense(model, train, y[: shape[0]], dict(rest.items()) if n_unlabelled else None)
    assert model.objectives_[-1] == pytest.approx(dense.objective(), rel=1e-4)
    for name, P in dense.P.items():
        lengths = np.linalg.norm(P, axis=1)
        kept = lengths > 1e-3 * lengths.max()
        assert kept.any()
        wanted = model.reg * P[kept] / lengths[kept, None]
        np.testing.assert_allclose(dense.slope(name)[kept], wanted, atol=1e-4 * model.reg)
        assert (np.linalg.norm(dense.slope(name)[~kept], axis=1) <= 1.001 * model.reg).all()


def partly_paired(widths: tuple[int, ...], heights: tuple[int, ...]) -> tuple[Views, np.ndarray]:
    """Views that see some of 40 objects each, and the classes of those that any sees."""
    views, y = planted(40, widths)
    rng = np.random.default_rng(5)
    index, blocks = np.full((40, len(widths)), -1), {}
    for number, ((name, X), n) in enumerate(zip(views.items(), heights, strict=True)):
        objects = np.sort(rng.choice(40, n, replace=False))
        index[objects, number], blocks[name] = np.arange(n), X[objects]
    seen = (index >= 0).any(axis=1)
    return Views(blocks, index[seen]), y[seen]


def plain_steps(model: JRL, views: Views, y: np.ndarray, unlabelled=None):
    """Weights and objectives of JRL's steps, each a solution for the features of all views."""
    Z, own, n_of, offset, width = {}, {}, {}, 0, sum(views.widths.values())
    M, B, constant = np.zeros((width, width)), [], 0.0
    for name, X in views.items():
        X, own[name] = as_dense(X), slice(offset, offset := offset + X.shape[1])
        scaler, more = scaler_of(X), (unlabelled or {}).get(name)
        Z[name], n_of[name] = scaler.transform(X), len(X)
        Y = indicators(y)[views.objects(name)]
        Y -= Y.mean(axis=0)
        A = Z[name] if more is None else np.vstack([Z[name], scaler.transform(as_dense(more))])
        k = min(model.n_neighbors, len(A) - 1)
        M[own[name], own[name]] = Z[name].T @ Z[name] / len(X)
        if model.smoothness:
            M[own[name], own[name]] += model.smoothness / len(A) * A.T @ dense_laplacian(A, k) @ A
        B.append(Z[name].T @ Y / len(X))
        constant += np.sum(Y**2) / len(X) / 2
    for p, q in combinations(views.names, 2):
        shared, i, j = np.intersect1d(views.objects(p), views.objects(q), return_indices=True)
        gap = np.zeros((len(shared), width))
        gap[:, own[p]], gap[:, own[q]] = Z[p][i], -Z[q][j]
        M += model.pairing / max(1, len(shared)) * gap.T @ gap
    B, penalty = np.vstack(B), model.reg / 2
    norms, epsilon, objectives = np.full(width, np.linalg.norm(B) / np.trace(M)), None, []
    for _ in range(model.max_iter):
        U = np.linalg.solve(M + np.diag(penalty / norms), B)
        lengths = np.linalg.norm(U, axis=1)
        epsilon = 1e-6 * lengths.max() if epsilon is None else epsilon
        norms = np.sqrt(lengths**2 + epsilon**2)
        value = np.sum(U * (M @ U)) / 2 - np.sum(U * B) + constant + penalty * norms.sum()
        objectives.append(2 * value)
        if len(objectives) > 1 and objectives[-2] - value * 2 <= model.tol * objectives[-1]:
            break
    deviations = {name: as_dense(X).std(axis=0, ddof=1) for name, X in views.items()}
    return {name: U[own[name]] / deviations[name][:, None] for name in views.names}, objectives


def as_dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


WIDE = (50, 60, 45, 55)
FAR = {name: X + 30 for name, X in planted(12, WIDE, seed=1)[0].items()}  # a component of the graph
CASES = {
    "one view": (*planted(40, WIDE[:1]), None, {}),
    "two views": (*planted(40, WIDE[:2]), None, {}),
    "no pairs": (*planted(40, WIDE[:2]), None, {"pairing": 0.0}),
    "no graph": (*planted(40, WIDE[:3]), None, {"smoothness": 0.0}),
    "narrow and wide": (*planted(40, (6, 200, 200)), None, {}),
    "much pairing": (*planted(40, WIDE), None, {"pairing": 30.0, "reg": 1e-3}),
    "two partly paired": (*partly_paired(WIDE[:2], (30, 25)), None, {}),
    "three partly paired": (*partly_paired(WIDE[:3], (30, 36, 25)), None, {"pairing": 5.0}),
    "four partly paired": (*partly_paired(WIDE, (30, 36, 25, 32)), None, {}),
    "unlabelled": (*planted(40, WIDE[:3]), dict(planted(60, WIDE[:3])[0][40:].items()), {}),
    "of one view": (*planted(40, WIDE[:3]), {"image": planted(60, WIDE)[0]["image"][45:]}, {}),
    "far from labels": (*planted(40, WIDE[:2]), {"image": FAR["image"]}, {}),
    "unlabelled, no graph": (*planted(40, WIDE[:2]), {"text": FAR["text"]}, {"smoothness": 0.0}),
}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("case", CASES)
def test_steps_of_wide_views_in_object_space_are_those_for_all_features(case, form, monkeypatch):
    views, y, unlabelled, options = CASES[case]
    views = views.replace({name: form(np.where(X > 2, X, 0)) for name, X in views.items()})
    if unlabelled is not None:
        unlabelled = {name: form(np.where(X > 2, X, 0)) for name, X in unlabelled.items()}
    monkeypatch.setattr(loss_module, "flops_by_features", lambda *_: np.inf)
    model = JRL(**{"n_neighbors": 5, "reg": 0.05, **options})
    model.fit(views, y, X_unlabeled=unlabelled)
    weights, objectives = plain_steps(model, views, y, unlabelled)
    np.testing.assert_allclose(model.objectives_, objectives, rtol=1e-10)
    for name, expected in weights.items():
        found = model.weights_[name]
        np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_the_route_of_fewer_operations_is_taken():
    loss = partial(jrl_loss, pairing=1.0, smoothness=1.0, n_neighbors=5)
    for widths, kind in (((8, 6), MomentLoss), ((8, 600), ObjectLoss), ((70, 80), ObjectLoss)):
        views, y = planted(60, widths)
        rows = {n: learned_rows(X, None) for n, X in views.items()}
        assert type(loss(views, rows, dict.fromkeys(rows, indicators(y)))) is kind


def test_the_route_that_fits_in_memory_is_taken_or_neither(monkeypatch):
    views, y = planted(60, (8, 600))
    by_objects = JRL(n_neighbors=5).fit(views, y)
    monkeypatch.setattr(loss_module, "available_bytes", lambda: 2e5)
    with pytest.raises(MemoryError) as refused:
        JRL(n_neighbors=5).fit(views, y)
    message = "JRL of 120 rows and 608 features .* 0.0 GB to solve for rows, .* Fit a sample of the"
    assert re.match(message, str(refused.value))
    kinds = []
    for kind in (MomentLoss, ObjectLoss):
        step = kind.minimised
        monkeypatch.setattr(kind, "minimised", lambda *a, s=step, k=kind: kinds.append(k) or s(*a))
    monkeypatch.setattr(loss_module, "bytes_by_features", lambda *_: 1e5)
    by_features = JRL(n_neighbors=5).fit(views, y)
    assert {*kinds} == {MomentLoss}
    for name, weights in by_objects.weights_.items():
        np.testing.assert_allclose(by_features.weights_[name], weights, atol=1e-10)


def test_jrl_counts_its_steps_and_an_interrupted_fit_leaves_the_model_as_it_was(
    monkeypatch, capsys
):
    views, y = planted(60, (80, 600))
    model = JRL(n_neighbors=5).fit(views, y)
    fitted = dict(vars(model))
    with config_context(progress=True):
        JRL(n_neighbors=5).fit(views, y)
    assert f"JRL: {model.n_iter_ - 1} steps" in capsys.readouterr().err
    step, taken = ObjectLoss.minimised, []

    def interrupted(loss, T):
        taken.append(T)
        if len(taken) == 2:
            signal.raise_signal(signal.SIGINT)
        return step(loss, T)

    monkeypatch.setattr(ObjectLoss, "minimised", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(views[:50], y[:50])
    assert len(taken) == 2
    assert vars(model) == fitted


@pytest.mark.slow
def test_ctrl_c_ends_a_fit_of_wide_views_within_two_seconds():
    views, y = planted(960, (3000, 3000, 3000))
    sent: list[float] = []

    def interrupt():
        sent.append(time.process_time())
        signal.raise_signal(signal.SIGINT)

    quietly(JRL(n_neighbors=5, max_iter=1), views[:60], y[:60])  # imports
    timer = threading.Timer(2.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        JRL(n_neighbors=20, tol=0).fit(views, y)
    assert time.process_time() - sent[0] < 2


def test_without_graph_and_pairs_jrl_is_the_multi_task_lasso_of_standardised_rows():
    views, y = planted()
    model = quietly(JRL(0.1, smoothness=0.0, pairing=0.0, **EXACT), views, y)
    for name, X in views.items():
        expected = lasso(scaler_of(X).transform(X), indicators(y), 0.05)
        found = model.weights_[name] * X.std(axis=0, ddof=1)[:, None]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_unpaired_views_have_no_pair_term():
    views, y = planted()
    apart = Views.unpaired(dict(views.items()))
    model = JRL(n_neighbors=10).fit(apart, np.r_[y, y])
    expected = JRL(pairing=0.0, n_neighbors=10).fit(views, y)
    for name, weights in model.weights_.items():
        np.testing.assert_allclose(weights, expected.weights_[name], atol=1e-10)


def test_pairing_brings_the_views_of_an_object_together():
    views, y = planted()
    gaps = []
    for pairing in (0.0, 1.0, 100.0):
        scores = JRL(pairing=pairing, n_neighbors=10).fit_transform(views, y)
        gaps.append(np.sum((scores["image"] - scores["text"]) ** 2))
    assert gaps[0] > gaps[1] > gaps[2]


def test_unlabelled_rows_may_be_of_one_view_sparse_and_as_many_as_there_are():
    views, y = planted(150)
    train, rest = views[:100], views["text"][100:]
    model = JRL(n_neighbors=10).fit(train, y[:100], X_unlabeled={"text": sp.csr_array(rest)})
    expected = JRL(n_neighbors=10).fit(train, y[:100], X_unlabeled={"text": rest})
    plain = JRL(n_neighbors=10).fit(train, y[:100])
    for name, weights in expected.weights_.items():
        np.testing.assert_allclose(model.weights_[name], weights, atol=1e-8)
        assert not np.allclose(plain.weights_[name], weights, atol=1e-6)


def test_inner_products_of_propagated_labels_are_the_published_similarity():
    views, y = planted(60)
    train, test = views[:45], views[45:]
    model = JRL(n_neighbors=7).fit(train, y[:45])
    places = np.concatenate(list(model.transform(dict(train.items())).values()))
    classes = np.r_[y[:45], y[:45]]
    weights = {}
    for name, scores in model.transform(dict(test.items())).items():
        W = np.zeros((len(scores), len(places)))
        for i, row in enumerate(cdist(scores, places)):
            for j in np.argsort(row)[:7]:
                W[i, j] = 1 / (1 + np.exp(row[j]))
        weights[name] = W / W.sum(axis=1, keepdims=True)
    same = classes[:, None] == classes[None, :]
    expected = weights["image"] @ same @ weights["text"].T
    shares = model.propagate(test)
    np.testing.assert_allclose(shares["image"] @ shares["text"].T, expected, atol=1e-12)


def test_propagated_labels_come_in_the_container_and_rank_by_class():
    views, y = planted()
    model = JRL(n_neighbors=10).fit(views[:90], y[:90])
    shares = model.propagate(views[90:])
    assert isinstance(shares, Views)
    for _, block in shares.items():
        np.testing.assert_allclose(block.sum(axis=1), 1)
    table = evaluate_retrieval(shares, y[90:], measures="map", similarity="inner")
    assert min(row.values["map"] for row in table) > 0.95


def test_more_neighbours_than_rows_are_all_of_them_with_a_warning():
    views, y = planted(40)
    with pytest.warns(UserWarning, match=r"n_neighbors=100 is more than the other rows .* 39"):
        many = JRL(n_neighbors=100).fit(views, y)
    with warnings.catch_warnings(action="error"):  # the default takes what there is
        default, some = (own.fit(views, y) for own in (JRL(), JRL(n_neighbors=39)))
    np.testing.assert_allclose(many.weights_["text"], some.weights_["text"], rtol=1e-12)
    np.testing.assert_array_equal(default.weights_["text"], some.weights_["text"])


# ---- CMOLRS --------------------------------------------------------------------------------------


class Triplets(NamedTuple):
    x: ShiftedRows
    query: np.ndarray
    difference: ShiftedRows
    margin: np.ndarray


def some_batch(seed: int = 0) -> tuple[Triplets, _LowRank]:
    rng = np.random.default_rng(seed)
    batch = Triplets(
        x=ShiftedRows(as_block(rng.standard_normal((4, 5))), np.zeros(5)),
        query=np.array([0, 0, 1, 2, 3, 3]),
        difference=ShiftedRows(as_block(rng.standard_normal((6, 3))), np.zeros(3)),
        margin=2 * rng.random(6),
    )
    W = _LowRank.random({"image": 5, "text": 3}, 2, np.random.RandomState(seed))
    return batch, _LowRank(W.columns, W.basis, np.array([5.0, 2.0]))


def in_full(W: _LowRank) -> np.ndarray:
    return W.basis * W.values @ W.basis.T


def loss_by_loop(batch: Triplets, W: np.ndarray) -> float:
    """Mean hinge, with W (8, 8) over both views and s(x, y) through its symmetric part."""
    between = (W + W.T)[:5, 5:] / 2
    x, difference = batch.x.block.matrix, batch.difference.block.matrix
    losses = [
        max(0.0, m - x[i] @ between @ d)
        for i, d, m in zip(batch.query, difference, batch.margin, strict=True)
    ]
    return sum(losses) / len(losses)


def gradient_by_differences(batch: Triplets, W: np.ndarray) -> np.ndarray:
    G, h = np.zeros_like(W), 1e-6
    for place in np.ndindex(W.shape):
        step = np.zeros_like(W)
        step[place] = h
        G[place] = (loss_by_loop(batch, W + step) - loss_by_loop(batch, W - step)) / (2 * h)
    return G


@pytest.mark.parametrize("seed", range(5))
def test_loss_and_gradient_are_those_of_a_loop_over_triplets(seed):
    batch, W = some_batch(seed)
    losses, gradient = _losses_and_gradient(W, ("image", "text"), *batch)
    assert losses.mean() == pytest.approx(loss_by_loop(batch, in_full(W)))
    expected = gradient_by_differences(batch, in_full(W)) @ W.basis
    np.testing.assert_allclose(gradient, expected, atol=1e-8)


def test_a_step_is_the_nearest_matrix_of_the_rank_to_a_tangent_step():
    batch, W = some_batch()
    _, gradient = _losses_and_gradient(W, ("image", "text"), *batch)
    G, U = gradient_by_differences(batch, in_full(W)), W.basis
    P = U @ U.T
    tangent = P @ G + G @ P - P @ G @ P
    values, vectors = np.linalg.eigh(in_full(W) - 0.3 * tangent)
    expected = vectors[:, -2:] * np.maximum(values[-2:], 0) @ vectors[:, -2:].T
    stepped = W.stepped(gradient, 0.3)
    np.testing.assert_allclose(in_full(stepped), expected, atol=1e-8)
    np.testing.assert_allclose(stepped.basis.T @ stepped.basis, np.eye(2), atol=1e-12)


SETS = [{"a"}, {"b"}, {"a", "b"}, {"c"}, set(), {"b", "c"}, {"a", "b", "c"}]


def test_triplets_are_all_that_labels_allow_and_no_others():
    labels = Labels.of(SETS)
    gallery = _TripletSampler(labels, 1.0)
    triplets = gallery.draw(labels.codes, 2000, np.random.RandomState(0))
    drawn = set(zip(*(places.tolist() for places in triplets), strict=True))
    n = range(len(SETS))
    allowed = {
        (i, j, k) for i in n for j in n for k in n if SETS[i] & SETS[j] and not SETS[i] & SETS[k]
    }
    assert drawn == allowed


def test_margins_are_those_of_a_loop():
    labels = Labels.of(SETS)
    gallery = _TripletSampler(labels, 2.5)
    _, positive, negative = gallery.draw(labels.codes, 20, np.random.RandomState(0))
    distances = np.random.default_rng(0).random(len(positive))
    margins = gallery.margins(positive, negative, distances)
    for j, k, distance, margin in zip(positive, negative, distances, margins, strict=True):
        shared = len(SETS[j] & SETS[k])
        cosine = shared / np.sqrt(len(SETS[j]) * len(SETS[k])) if shared else 0.0
        assert margin == pytest.approx((1 - cosine) * distance / 5)


@pytest.mark.parametrize("widths", [(8,), (8, 6), (8, 6, 5)], ids=["one", "two", "three"])
def test_cmolrs_ranks_planted_classes_of_held_out_rows_by_the_inner_product(widths):
    views, y = planted(200, widths)
    model = CMOLRS(2, random_state=0).fit(views[:120], y[:120])
    assert model.losses_[-1] < 0.5 * model.losses_[0]
    directions = "cross" if len(widths) > 1 else "within"
    table = evaluate_retrieval(
        model.transform(views[120:]),
        y[120:],
        measures="map",
        similarity="inner",
        directions=directions,
    )
    assert min(row.values["map"] for row in table) > 0.95


def test_the_inner_product_of_projections_is_the_bilinear_form():
    views, y = planted()
    model = CMOLRS(3, random_state=0).fit(views, y)
    X, Y = (views[name] - model.means_[name] for name in views.names)
    W = model.weights_["image"] @ model.weights_["text"].T
    assert np.linalg.matrix_rank(W) <= 3
    scores = model.transform(views)
    np.testing.assert_allclose(scores["image"] @ scores["text"].T, X @ W @ Y.T, atol=1e-10)


def test_cmolrs_learns_from_unpaired_views_of_different_heights():
    views, y = planted(200)
    blocks = {"image": views["image"][:150], "text": views["text"][60:]}
    model = CMOLRS(2, random_state=0).fit(blocks, {"image": y[:150], "text": y[60:]})
    assert model.losses_[-1] < 0.5 * model.losses_[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [LGCFL(max_iter=2), JRL(n_neighbors=3, max_iter=2), CMOLRS(2, n_epochs=1, random_state=0)],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:.*max_iter")
def test_memory_does_not_grow_with_the_square_of_the_number_of_classes(estimator):
    n_classes = 4000
    labels = np.arange(2 * n_classes) % n_classes
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_classes, 6))
    views = [centres[labels] + 0.1 * rng.standard_normal((len(labels), 6)) for _ in range(2)]
    tracemalloc.start()
    estimator.fit(views, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n_classes**2 / 2  # half of one dense label vector per class


def test_many_classes_give_the_triplets_of_few(monkeypatch):
    views, labels = planted()
    expected = CMOLRS(2, n_epochs=2, random_state=0).fit(views, labels)
    monkeypatch.setattr("mvcca.linear._cmolrs._DENSE_BYTES", 0)
    found = CMOLRS(2, n_epochs=2, random_state=0).fit(views, labels)
    np.testing.assert_allclose(found.weights_["text"], expected.weights_["text"], rtol=1e-12)


def test_more_labels_than_features_propagate_from_the_nearest_in_the_shared_space():
    views, y = planted(n=90, widths=(4, 3), n_classes=30)
    model = JRL(n_neighbors=5).fit(views, y)
    placed = np.concatenate([block for _, block in model.transform(views).items()])
    assert placed.shape == (180, 30)
    for name in views.names:
        distances = cdist(model.transform(views)[name], placed)
        nearest = np.argsort(distances, axis=1)[:, :5]
        near = np.take_along_axis(distances, nearest, axis=1)
        weights = 1 / (1 + np.exp(near))
        weights /= weights.sum(axis=1, keepdims=True)
        expected = np.einsum("ij,ijk->ik", weights, indicators(np.r_[y, y])[nearest])
        np.testing.assert_allclose(model.propagate(views)[name], expected, atol=1e-9)


@pytest.mark.parametrize(("given", "first"), [("auto", 3.0), (0.7, 0.7)])
def test_the_learning_rate_falls_with_the_root_of_the_epoch(given, first, monkeypatch):
    steps, epoch = [], CMOLRS._epoch

    def recorded(self, W, step, *more):
        steps.append(step)
        return epoch(self, W, step, *more)

    monkeypatch.setattr(CMOLRS, "_epoch", recorded)
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(30, 4)), "b": rng.normal(size=(30, 3))}
    CMOLRS(2, learning_rate=given, n_epochs=5, random_state=0).fit(views, np.arange(30) % 3)
    np.testing.assert_allclose(steps, [first / t**0.5 for t in (1, 2, 3, 4, 5)], rtol=1e-15)
