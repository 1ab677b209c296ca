"""PLS and CFA of wide views, by products of their rows: against dense decompositions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from mvcca import CFA, PLS, Views, config_context, open_matrix
from mvcca.linear import _pls
from mvcca.problem import cross_covariance
from mvcca.problem._krylov import Krylov
from mvcca.problem.centred_rows import CentredRows


def sparse_views(n=150, widths=(90, 70, 50), seed=3):
    """Sparse views that share six topics, with a constant column each."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.3, size=(n, 6))
    views = []
    for width in widths:
        X = rng.poisson(topics @ rng.gamma(0.3, size=(6, width))).astype(float)
        X[:, 4] = 0
        views.append(sp.csr_array(X))
    return views


@pytest.fixture(autouse=True)
def _any_width(monkeypatch):
    """Products may be taken for views of any width."""
    monkeypatch.setattr(_pls, "WIDE", 0)


@pytest.fixture
def by_products(monkeypatch):
    monkeypatch.setattr(_pls, "steps_of_products", lambda *_: None)


def singular(X, Y, weights=None, scale=False, center=True):
    """σ, and the absolute weights of both views, from the whole covariance."""
    w = np.ones(X.shape[0]) if weights is None else weights
    total = w.sum()
    units, centred = [], []
    for Z in (np.asarray(M.todense()) for M in (X, Y)):
        Z = Z - center * (w @ Z) / total
        deviation = np.sqrt(w @ Z**2 / (total - center)) if scale else np.ones(Z.shape[1])
        units.append(np.divide(1, deviation, out=np.zeros(len(deviation)), where=deviation > 0))
        centred.append(Z * units[-1])
    U, values, V = np.linalg.svd(centred[0].T @ (w[:, None] * centred[1]) / (total - center))
    return values, np.abs(units[0][:, None] * U), np.abs(units[1][:, None] * V.T)


@pytest.mark.parametrize("shape", [(120, 80), (80, 120), (30, 12), (60, 61)])
@pytest.mark.parametrize("rank", [7, 60])
@pytest.mark.parametrize("k", [1, 5])
def test_a_krylov_space_finds_the_leading_singular_vectors(shape, rank, k):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(shape[0], rank)) @ rng.normal(size=(rank, shape[1]))
    space = Krylov(lambda V: B @ V, lambda U: B.T @ U, shape[1], k)
    assert space.grow(300)
    U, values, V = space.singular()
    assert_allclose(values, np.linalg.svd(B)[1][:k], rtol=1e-9)
    assert_allclose(B @ V, U * values, atol=1e-8 * values[0])
    assert_allclose(B.T @ U, V * values, atol=2e-6 * values[0])
    assert_allclose(V.T @ V, np.eye(k), atol=1e-12)


@pytest.mark.parametrize("n", [9, 250])
def test_a_krylov_space_finds_the_largest_eigenvalues_of_an_indefinite_matrix(n):
    A = np.random.default_rng(0).normal(size=(n, n))
    A = A + A.T
    space = Krylov(lambda V: A @ V, None, n, 4)
    assert space.grow(300)
    values, vectors = space.eigen()
    assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:4], rtol=1e-9)
    assert_allclose(A @ vectors, vectors * values, atol=2e-6 * values[0])


@pytest.mark.usefixtures("by_products")
@pytest.mark.parametrize("kind", ["sparse", "dense", "files", "float32"])
@pytest.mark.parametrize(
    ("options", "weighted"), [({}, False), ({"scale": True}, True), ({"center": False}, True)]
)
def test_products_of_rows_give_the_singular_vectors_of_the_covariance(
    kind, options, weighted, tmp_path
):
    X, Y = sparse_views()[:2]
    weights = np.random.default_rng(1).integers(1, 4, 150) if weighted else None
    values, *expected = singular(X, Y, weights, **options)
    if kind == "files":
        for name, block in {"X": X, "y": Y}.items():
            sp.save_npz(tmp_path / f"{name}.npz", block, compressed=False)
        views = [open_matrix(tmp_path / f"{name}.npz") for name in ("X", "y")]
    else:
        convert = {"sparse": lambda Z: Z, "dense": lambda Z: Z.toarray()}
        views = [convert.get(kind, lambda Z: Z.astype(np.float32))(Z) for Z in (X, Y)]
    with config_context(block_rows=40):  # smaller files are read at once
        model = PLS(4, **options).fit(Views(views), sample_weight=weights)
    assert_allclose(model.eigenvalues_, values[:4], rtol=1e-9)
    for W, of_view in zip(model.weights_.values(), expected, strict=True):
        assert_allclose(np.abs(W), of_view[:, :4], atol=2e-5)
        assert not W[4].any()  # constant columns


@pytest.mark.parametrize("model", [PLS(5), PLS(5, scale=True), PLS(5, center=False), CFA(5)])
@pytest.mark.parametrize("n_views", [2, 3])
def test_all_routes_give_the_same_model(model, n_views, monkeypatch):
    views = Views(sparse_views()[:n_views])
    other = type(model)(**model.get_params()).fit(views)
    monkeypatch.setattr(_pls, "steps_of_products", lambda *_: None)
    model.fit(views)
    assert_allclose(model.eigenvalues_, other.eigenvalues_, rtol=1e-9)
    assert model.ranks_ == other.ranks_
    for name in views.names:
        assert_allclose(model.weights_[name], other.weights_[name], atol=1e-8)
        assert_allclose(model.means_[name], other.means_[name], atol=1e-12)
        if n_views == 2:
            assert_allclose(model.patterns_[name], other.patterns_[name], atol=1e-7)
            assert_allclose(model.own_patterns_[name], other.own_patterns_[name], atol=1e-7)


@pytest.mark.usefixtures("by_products")
def test_more_components_than_views_share_are_warned_of():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, 3))
    X, Y = (sp.csr_array(z @ rng.normal(size=(3, width))) for width in (200, 150))
    with pytest.warns(UserWarning, match="fitted 3"):
        model = PLS(8).fit(X, Y)
    assert model.n_components_ == 3


def test_wide_sparse_views_are_multiplied_and_not_squared_unasked(monkeypatch, capsys):
    for statistic in ("_learn", "_learn_wide"):
        monkeypatch.setattr(PLS, statistic, None)  # fails if it is called
    rng = np.random.default_rng(0)
    shape = (3000, 5000)
    X, Y = (sp.random_array(shape, density=0.002, format="csr", rng=rng) for _ in range(2))
    Y = sp.csr_array(Y + X)
    with config_context(progress=True):
        model = PLS(3).fit(X, Y)
    assert "X, y: operator route, up to" in capsys.readouterr().err
    A = (X - X.mean(axis=0)[None]) @ model.weights_["X"]  # dense, once
    assert_allclose(np.linalg.norm(model.weights_["X"], axis=0), 1)
    assert_allclose((A * (Y @ model.weights_["y"])).sum(axis=0) / 2999, model.eigenvalues_)


def test_progress_says_that_matrices_are_the_route(capsys):
    X, Y = np.random.default_rng(0).normal(size=(2, 600, 520)).astype(np.float32)
    with config_context(progress=True):
        PLS(2).fit(X, Y)
    assert "X, y: covariance route" in capsys.readouterr().err


def test_wide_dense_views_take_the_gram_route_if_the_krylov_space_does_not_settle(monkeypatch):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 1200, 1300))  # noise, whose singular values are close to each other
    steps = []
    grow = Krylov.grow
    monkeypatch.setattr(Krylov, "grow", lambda *own: steps.append(grow(*own)) or steps[-1])
    model = PLS(2).fit(X, Y)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    assert_allclose(model.eigenvalues_, np.linalg.svd(X.T @ Y / 1199)[1][:2], rtol=1e-9)
    assert steps == [False]


@pytest.mark.usefixtures("by_products")
def test_rows_in_files_are_read_a_counted_number_of_times(tmp_path, monkeypatch):
    X, Y = sparse_views(400)[:2]
    for name, block in {"X": X, "y": Y}.items():
        sp.save_npz(tmp_path / f"{name}.npz", block, compressed=False)
    views = Views([open_matrix(tmp_path / f"{name}.npz") for name in ("X", "y")])
    passes, steps, product = [], [], Krylov._append
    for name in ("forward", "backward"):
        of = getattr(CentredRows, name)
        monkeypatch.setattr(CentredRows, name, lambda *own, of=of: passes.append(1) or of(*own))
    monkeypatch.setattr(Krylov, "_append", lambda *own: steps.append(1) or product(*own))
    with config_context(block_rows=50):
        PLS(4).fit(views)
    # B V and BᵀU read both views once; so do scores, and what they have in common with features.
    assert len(passes) == 4 * len(steps) + 4
    assert len(steps) <= 12


@pytest.mark.usefixtures("by_products")
def test_components_that_do_not_converge_are_warned_of(monkeypatch):
    monkeypatch.setattr(cross_covariance, "_MOST_STEPS", 2)
    X, Y = np.random.default_rng(0).normal(size=(2, 200, 150))
    with pytest.warns(ConvergenceWarning, match="after 2 steps: their values are right to about"):
        PLS(2).fit(X, Y)
