"""Ridge CCA by products with rows equals the dense solution, however rows are stored."""

import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg
from scipy.sparse import csr_array, save_npz
from sklearn.exceptions import ConvergenceWarning, DataDimensionalityWarning

from mvcca import CCA, MVCCA, Views, config_context, open_matrix
from mvcca.blocks import as_block
from mvcca.problem import Rows, _lobpcg, dual
from mvcca.problem import route as routing
from mvcca.problem._bases import _moments_near_zero, gram_of_rows
from mvcca.problem.route import by_products
from mvcca.problem.shrinkage import shrinkages
from mvcca.statistics.passes import _checkpoint

N, K = 150, 4
WIDTHS = {"x": 260, "y": 180, "z": 90}
NAMES = ["x", "y"]


def sparse_views(names, n_rows=N, seed=0):
    """Sparse counts that share a few factors, with columns of very different means."""
    rng = np.random.default_rng(seed)
    factors = rng.random((n_rows, 6)) * 2.0 ** -np.arange(6)
    views = {}
    for name in names:
        loadings = rng.random((6, WIDTHS[name])) ** 8
        views[name] = rng.poisson(3 * factors @ loadings).astype(float)
        views[name][:, 5] = 3  # constant
    return views


@pytest.fixture(autouse=True)
def _by_products(monkeypatch):
    """Take products for views of any width, if any route may."""
    monkeypatch.setattr(routing, "WIDE", 0)
    monkeypatch.setattr("mvcca.base.statistic_estimator.WIDE", 0)
    monkeypatch.setattr(routing, "cheapest", lambda found: found["operator"])


@pytest.fixture
def solved(monkeypatch):
    """Fits that were solved by products."""
    calls = []

    def counted(rows, **options):
        maps = by_products(rows, **options)
        calls.append(maps is not None)
        return maps

    monkeypatch.setattr("mvcca.base.statistic_estimator.by_products", counted)
    yield calls
    assert calls
    assert all(calls)


def dense_solution(views, reg, weights=None, absolute=False):
    """All ρ, and weights with Σ_p w_pᵀ B_p w_p = V, by one dense generalised eigenproblem."""
    w = np.ones(len(next(iter(views.values())))) if weights is None else weights
    X = np.hstack(list(views.values()))
    X = X - np.average(X, axis=0, weights=w)
    Sigma = (w[:, None] * X).T @ X / (w.sum() - 1)
    B, start = np.zeros_like(Sigma), 0
    for matrix in views.values():
        own = slice(start, start := start + matrix.shape[1])
        unit = 1 if absolute else np.trace(Sigma[own, own]) / matrix.shape[1]
        B[own, own] = Sigma[own, own] + reg * unit * np.eye(matrix.shape[1])
        Sigma[own, own] = 0
    values, vectors = linalg.eigh(Sigma, B)
    return values[::-1], np.sqrt(len(views)) * vectors[:, ::-1]


def assert_same_maps(model, other, atol=5e-4):
    for name in model.view_names_:
        scale = np.abs(other.weights_[name]).max()
        assert_allclose(model.weights_[name], other.weights_[name], atol=atol * scale)
        assert_allclose(model.means_[name], other.means_[name], atol=1e-12)
    assert_allclose(model.eigenvalues_, other.eigenvalues_, atol=1e-6)


def by_matrices(model, views, monkeypatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(routing, "cheapest", lambda found: next(iter(found.values())))
        return model.fit(views, **options)


@pytest.mark.parametrize("reg", [0.3, 2.0])
@pytest.mark.parametrize(("model", "names"), [(CCA, ["x", "y"]), (MVCCA, ["x", "y", "z"])])
@pytest.mark.usefixtures("solved")
def test_solutions_are_those_of_a_dense_eigenproblem(model, names, reg):
    views = sparse_views(names)
    values, vectors = dense_solution(views, reg)
    fitted = model(K, reg=reg).fit({name: csr_array(X) for name, X in views.items()})
    assert_allclose(fitted.eigenvalues_, 1 + values[:K], atol=1e-6)
    stacked = np.vstack(list(fitted.weights_.values()))
    signs = np.sign((stacked * vectors[:, :K]).sum(axis=0))
    assert_allclose(stacked, signs * vectors[:, :K], atol=5e-4 * np.abs(vectors[:, :K]).max())


@pytest.mark.parametrize(
    "options",
    [
        {"reg": 0.5},
        {"reg": {"x": 0.2, "y": 3.0}},
        {"reg": 0.2, "reg_unit": "absolute"},
        {"reg": "auto"},
        {"reg": "oas"},
        {"reg": 0.5, "center": False},
    ],
    ids=str,
)
@pytest.mark.usefixtures("solved")
def test_fits_are_those_by_matrices(options, monkeypatch):
    views = sparse_views(NAMES)
    model = CCA(K, **options).fit({name: csr_array(X) for name, X in views.items()})
    monkeypatch.setattr("mvcca.base.statistic_estimator.by_products", lambda *_, **__: None)
    other = CCA(K, **options).fit(views)
    assert_same_maps(model, other)
    assert model.ranks_ == other.ranks_
    for name in views:
        # These depend on all ρ, whose distribution is known by two traces.
        deviations = model.expected_deviations_[name], other.expected_deviations_[name]
        assert_allclose(*deviations, rtol=0.12)
        scale = np.abs(other.patterns_[name]).max()
        assert_allclose(model.patterns_[name], other.patterns_[name], atol=1e-3 * scale)
        assert_allclose(model.own_patterns_[name], other.own_patterns_[name], atol=1e-3 * scale)
    assert_allclose(model.expected_correlations_, other.expected_correlations_, atol=0.04)


def saved(folder, name, X):
    np.save(folder / f"{name}.npy", X)
    return open_matrix(folder / f"{name}.npy")


def saved_sparse(folder, name, X):
    save_npz(folder / f"{name}.npz", csr_array(X))
    return open_matrix(folder / f"{name}.npz")


def dask_of(_, __, X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(40, -1))


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "in passes"])
@pytest.mark.parametrize(
    "stored",
    [lambda _, __, X: X, lambda _, __, X: csr_array(X), saved, saved_sparse, dask_of],
    ids=["dense", "CSR", ".npy", ".npz", "Dask"],
)
@pytest.mark.usefixtures("solved")
def test_storage_does_not_change_the_model(stored, is_read, monkeypatch, tmp_path):
    views = sparse_views(["x", "y", "z"])
    model = MVCCA(K, reg=1.0).fit(views)
    if not is_read:  # files are larger than memory
        monkeypatch.setattr(routing, "available_bytes", lambda: 0.0)
    with config_context(block_rows=37):
        other = MVCCA(K, reg=1.0).fit({n: stored(tmp_path, n, X) for n, X in views.items()})
    assert_same_maps(other, model)
    assert_allclose(other.expected_correlations_, model.expected_correlations_, atol=0.02)


@pytest.mark.usefixtures("solved")
def test_weights_are_repetition():
    views = sparse_views(NAMES)
    weights = np.random.default_rng(1).integers(0, 3, N)
    rows = {name: csr_array(X) for name, X in views.items()}
    model = CCA(K, reg=1.0).fit(rows, sample_weight=weights)
    repeated = {name: csr_array(np.repeat(X, weights, axis=0)) for name, X in views.items()}
    assert_same_maps(model, CCA(K, reg=1.0).fit(repeated))


@pytest.mark.usefixtures("solved")
def test_row_order_does_not_change_the_model():
    views, order = sparse_views(NAMES), np.random.default_rng(2).permutation(N)
    model = CCA(K, reg=1.0).fit({name: csr_array(X) for name, X in views.items()})
    assert_same_maps(model, CCA(K, reg=1.0).fit({n: csr_array(X[order]) for n, X in views.items()}))


@pytest.mark.usefixtures("solved")
def test_scaling_a_view_scales_its_weights():
    views = sparse_views(NAMES)
    model = CCA(K, reg=1.0).fit(views)
    other = CCA(K, reg=1.0).fit({"x": views["x"], "y": 1e6 * views["y"]})
    assert_allclose(model.eigenvalues_, other.eigenvalues_, atol=1e-6)
    scale = np.abs(model.weights_["y"]).max()
    assert_allclose(1e6 * other.weights_["y"], model.weights_["y"], atol=5e-4 * scale)


@pytest.mark.usefixtures("solved")
def test_means_far_above_deviations_cost_no_digits():
    views = sparse_views(NAMES)
    model = CCA(K, reg=1.0).fit(views)
    other = CCA(K, reg=1.0).fit({name: X + 1e6 for name, X in views.items()})
    assert_allclose(other.eigenvalues_, model.eigenvalues_, atol=1e-6)


@pytest.mark.parametrize("weights", [None, np.arange(N) % 3], ids=["unweighted", "weighted"])
@pytest.mark.usefixtures("solved")
def test_partly_paired_views_are_those_by_matrices(weights, monkeypatch):
    full = sparse_views(["x", "y", "z"])
    objects = np.arange(N)
    kept = {"x": objects < 130, "y": objects % 4 > 0, "z": objects > 30}
    blocks = {name: as_block(csr_array(X[kept[name]])) for name, X in full.items()}
    views = Views.of(blocks, np.stack([*kept.values()], axis=1))
    model = MVCCA(K, reg=1.0).fit(views, sample_weight=weights)
    monkeypatch.setattr("mvcca.base.statistic_estimator.by_products", lambda *_, **__: None)
    other = MVCCA(K, reg=1.0).fit(views, sample_weight=weights)
    assert_same_maps(model, other)
    assert_allclose(model.expected_correlations_, other.expected_correlations_, atol=0.04)


@pytest.mark.usefixtures("solved")
def test_a_fit_transforms_scores_and_persists(tmp_path):
    import mvcca

    rows = {name: csr_array(X) for name, X in sparse_views(NAMES).items()}
    model = CCA(K, reg=1.0).fit(rows)
    scores = model.transform(rows)
    assert_allclose(model.score(rows), np.mean([
        np.corrcoef(scores["x"][:, j], scores["y"][:, j])[0, 1] for j in range(K)
    ]))  # fmt: skip
    mvcca.save(model, tmp_path / "model.mvcca")
    loaded = mvcca.load(tmp_path / "model.mvcca")
    for name, own in loaded.transform(rows).items():
        assert_array_equal(own, scores[name])


@pytest.mark.usefixtures("solved")
def test_training_scores_have_unit_variance_with_the_ridge():
    views = sparse_views(NAMES)
    model = CCA(K, reg=1.0).fit(views)
    scores = model.transform(views)
    for name, X in views.items():
        S, W = scores[name], model.weights_[name]
        ridge = X.var(axis=0, ddof=1).mean()
        assert_allclose(np.cov(S.T) + ridge * W.T @ W, np.eye(K), atol=1e-3)


def test_no_ridge_takes_matrices(monkeypatch):
    views = sparse_views(NAMES, n_rows=60)
    for reg in (0.0, {"x": 1.0, "y": 0.0}):
        with pytest.warns(DataDimensionalityWarning):
            model = CCA(2, reg=reg).fit(views)
        monkeypatch.setattr("mvcca.base.statistic_estimator.by_products", lambda *_, **__: None)
        with pytest.warns(DataDimensionalityWarning):
            other = CCA(2, reg=reg).fit(views)
        assert_array_equal(other.weights_["x"], model.weights_["x"])


def test_small_ridges_take_matrices_of_few_rows_and_warn_for_many(monkeypatch):
    views = sparse_views(NAMES, n_rows=60)
    other = by_matrices(CCA(2, reg=1e-6), views, monkeypatch)
    assert_array_equal(CCA(2, reg=1e-6).fit(views).weights_["x"], other.weights_["x"])
    monkeypatch.setattr(routing, "_FEW_ROWS", 10)
    with pytest.warns() as warned:
        CCA(2, reg=1e-6).fit(views)
    kinds = {w.category for w in warned}
    assert kinds == {DataDimensionalityWarning, ConvergenceWarning} or kinds == {
        DataDimensionalityWarning
    }


def test_a_fit_that_has_not_converged_says_how_many_digits(monkeypatch):
    monkeypatch.setattr("mvcca.problem._lobpcg._MOST_STEPS", 3)
    monkeypatch.setattr(routing, "_FEW_ROWS", 0)  # few rows take matrices
    views = sparse_views(NAMES)
    values, _ = dense_solution(views, 0.3)
    with pytest.warns(ConvergenceWarning, match="after 3 steps.*within") as warned:
        model = CCA(K, reg=0.3).fit(views)
    bound = float(str(warned[0].message).partition("within ")[2].partition(". A")[0])
    error = np.abs(model.canonical_correlations_ - values[:K]).max()
    assert 0 < error <= 1.1 * bound


def test_progress_says_which_route(capsys):
    with config_context(progress=True):
        CCA(K, reg=1.0).fit(sparse_views(NAMES))
    printed = capsys.readouterr().err
    assert "operator route" in printed
    assert "row space" in printed
    assert "LOBPCG" in printed


@pytest.mark.usefixtures("solved")
def test_pairs_of_scores_correlate_at_their_eigenvalues():
    """ρ of three views is the mean covariance of their scores, of views with unit size."""
    views = sparse_views(["x", "y", "z"])
    model = MVCCA(1, reg=1.0).fit(views)
    scores = model.transform(views)
    between = sum(
        2 * np.cov(scores[p][:, 0], scores[q][:, 0])[0, 1] for p, q in combinations(views, 2)
    )
    assert between / 3 == pytest.approx(model.eigenvalues_[0] - 1, abs=1e-6)


@pytest.mark.parametrize("weights", [None, np.arange(N) % 3], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("method", ["auto", "oas"])
def test_shrinkage_of_large_views_takes_products(method, center, weights, monkeypatch):
    views = Views({"x": sparse_views(["x"])["x"]})
    exact = shrinkages(views, weights, method, center=center)["x"]
    monkeypatch.setattr("mvcca.problem.shrinkage._LARGE", 0)
    monkeypatch.setattr("mvcca.problem.shrinkage._PROBES", 16)
    rows = Views({"x": csr_array(views["x"])})
    assert shrinkages(rows, weights, method, center=center)["x"] == pytest.approx(exact, rel=0.02)


class Stop(BaseException):
    """Ends a fit as Ctrl-C does."""


@pytest.mark.parametrize("is_read", [True, False], ids=["in memory", "in passes"])
def test_an_interrupted_fit_goes_on_from_its_last_step(is_read, monkeypatch, tmp_path):
    views = {name: csr_array(X) for name, X in sparse_views(NAMES).items()}
    if not is_read:
        for name, X in views.items():
            save_npz(tmp_path / f"{name}.npz", X)
            views[name] = open_matrix(tmp_path / f"{name}.npz")
        monkeypatch.setattr(routing, "available_bytes", lambda: 0.0)
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    whole = CCA(K, reg=1.0).fit(views)
    steps, rotate = [], _lobpcg._SearchSubspace.rotate

    def counted(basis, size):
        steps.append(size)
        if len(steps) == 5:
            raise Stop
        return rotate(basis, size)

    monkeypatch.setattr(_lobpcg._SearchSubspace, "rotate", counted)
    with config_context(checkpoint=tmp_path / "kept"):
        with pytest.raises(Stop):
            CCA(K, reg=1.0).fit(views)
        n_files = len(list((tmp_path / "kept").iterdir()))
        assert n_files
        with pytest.raises(ValueError, match="of other data, parameters"):
            CCA(K, reg=2.0).fit(views)
        resumed = CCA(K, reg=1.0).fit(views)
    assert not list((tmp_path / "kept").iterdir())
    n_steps = len(steps) - 1  # the last one of the first fit was not taken
    steps.clear()
    monkeypatch.setattr(
        _lobpcg._SearchSubspace, "rotate", lambda *a: (steps.append(0), rotate(*a))[1]
    )
    CCA(K, reg=1.0).fit(views)
    assert n_steps == len(steps)
    assert_same_maps(resumed, whole, 1e-5)  # rounding, as the subspace is made anew


@pytest.mark.slow
def test_ctrl_c_is_answered_within_two_seconds():
    code = """
import _thread, threading, time
import numpy as np
from scipy.sparse import random_array
from mvcca import CCA
from mvcca.problem import _lobpcg
X, Y = (random_array((100_000, 50_000), density=1e-3, rng=i, format="csr") for i in range(2))
def interrupt():
    global asked
    asked = time.monotonic()
    _thread.interrupt_main()
run = _lobpcg.leading
def started(*args, **options):
    threading.Timer(1, interrupt).start()
    return run(*args, **options)
import mvcca.problem._products as products
products.leading = started
try:
    CCA(10, reg=1.0).fit(X, Y)
except KeyboardInterrupt:
    print(time.monotonic() - asked)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert float(done.stdout) < 2, done.stderr


@pytest.mark.parametrize("mean", [0.0, 1000.0])
@pytest.mark.parametrize("reg", [1.0, 1e-2])
def test_gram_matrices_alone_give_what_bases_of_the_rows_give(monkeypatch, reg, mean):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 5))
    X, Y = (Z @ rng.normal(size=(5, p)) + rng.normal(size=(200, p)) + mean for p in (700, 400))
    monkeypatch.setattr(routing, "operator_route", lambda _: None)
    found = []

    def in_dual(*args, **options):
        found.append(dual.in_dual(*args, **options))
        return found[-1]

    monkeypatch.setattr(routing, "in_dual", in_dual)
    fast = CCA(3, reg=reg).fit(X, Y)
    assert found[0] is not None
    monkeypatch.setattr(routing, "in_dual", lambda _, **__: None)
    slow = CCA(3, reg=reg).fit(X, Y)
    for name in ("canonical_correlations_", "eigenvalues_", "expected_correlations_"):
        assert_allclose(getattr(fast, name), getattr(slow, name), rtol=1e-10)
    for name in ("weights_", "means_", "patterns_", "own_patterns_", "expected_deviations_"):
        for view, expected in getattr(slow, name).items():
            largest = np.abs(expected).max()
            assert_allclose(getattr(fast, name)[view], expected, rtol=0, atol=1e-8 * largest)
    assert fast.ranks_ == slow.ranks_


@pytest.mark.parametrize("mean", [0.0, 0.2, 0.6, 1e6])
def test_rows_are_multiplied_as_they_are_only_where_that_keeps_their_digits(mean):
    X = np.random.default_rng(0).normal(size=(200, 300)) + mean
    X[:, 3] = 0
    X[:, 5] *= 1e-8  # its mean is in units of its own deviation
    X[3] = X[4]
    assert (_moments_near_zero(X) is not None) == (mean < 0.3)
    found = gram_of_rows(X)
    in_blocks = gram_of_rows(np.asfortranarray(X))  # which are centred
    for own, expected in zip(found[:3], in_blocks[:3], strict=True):
        assert_allclose(own, expected, rtol=1e-12, atol=1e-16)
    own, expected = (np.tril(gram) for *_, gram in (found, in_blocks))
    assert_allclose(own, expected, rtol=0, atol=1e-13 * np.abs(expected).max())
    centred = np.delete(X - X.mean(axis=0), 3, axis=1)
    assert_allclose(np.trace(own), np.sum(centred**2), rtol=1e-12)


def test_gram_matrices_without_enough_digits_are_left_to_bases_of_the_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(150, 700)), rng.normal(size=(150, 400))
    repeated = X.copy()
    repeated[75:] = X[:75]  # half the directions

    def solved(*views, reg=0.1, **options):
        rows = Rows(Views(dict(zip("ab", views, strict=True))), reg={"a": reg, "b": reg})
        return dual.in_dual(replace(rows, n_components=2, **options))

    assert solved(X, Y) is not None
    for own in (repeated, np.ones_like(X), X * 1e-160, X * 1e160):
        with np.errstate(all="ignore"):
            assert solved(own, Y) is None
            assert solved(Y, own) is None
    assert solved(X, Y, reg=0.0) is None
    assert solved(X, Y, sample_weight=np.ones(150)) is None
    assert solved(X, Y[:, :50]) is None
