"""The contributor's guide: its methods are what they claim to be. (test_front_page.py runs it.)"""

from __future__ import annotations

import doctest
import os
import pickle
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from given_matrices import GivenMatrices
from numpy.testing import assert_allclose
from scipy.linalg import block_diag, eigh, lstsq

from mvcca import CCA, MVCCA, Views
from mvcca.datasets import load_digits_views
from mvcca.statistics import Moments

PAGE = Path(__file__).parents[1] / "docs" / "contributing.rst"


@pytest.fixture(scope="module")
def methods():
    """The classes that the guide defines."""
    source = doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    names = {}
    for example in source:
        exec(example.source, names)
    return names


def three_views(n=200, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3))
    return {
        name: z @ rng.normal(size=(3, p)) + rng.normal(size=(n, p))
        for name, p in {"a": 6, "b": 5, "c": 4}.items()
    }


def test_views_that_match_a_hub_solve_the_eigenproblem_of_its_pairs(methods):
    views = three_views()
    model = methods["HubCCA"](3, hub="b", reg=0.2).fit(views)
    A = np.cov(np.hstack(list(views.values())), rowvar=False)
    blocks = [np.cov(X, rowvar=False) for X in views.values()]
    A[:6, 11:] = A[11:, :6] = 0  # a and c
    A -= block_diag(*blocks)
    constraint = block_diag(*(B + 0.2 * np.diag(B).mean() * np.eye(len(B)) for B in blocks))
    assert_allclose(model.eigenvalues_ - 1, eigh(A, constraint)[0][:-4:-1], rtol=1e-10)
    w = np.concatenate(list(model.weights_.values()))
    assert_allclose(w.T @ constraint @ w, 3 * np.eye(3), atol=1e-10)


def test_a_method_of_moments_takes_batches(methods):
    views = three_views()
    whole = methods["HubCCA"](2, hub="b", reg=0.2).fit(views)
    batches = methods["HubCCA"](2, hub="b", reg=0.2)
    for rows in (slice(0, 90), slice(90, 200)):
        batches.partial_fit({name: X[rows] for name, X in views.items()})
    assert_allclose(batches.weights_["a"], whole.weights_["a"], atol=1e-10)


def test_part_cca_is_cca_of_residuals_of_the_first_view(methods):
    views = three_views()
    X, Z = (views[name] - views[name].mean(axis=0) for name in "ac")
    residuals = {"a": X - Z @ lstsq(Z, X)[0], "b": views["b"]}
    expected = CCA(3).fit(residuals)
    model = methods["PartCCA"](3, confounds="c").fit(views)
    assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    found = model.transform(views)
    for name, scores in expected.transform(residuals).items():
        assert_allclose(found[name], scores, atol=1e-8)
    assert_allclose(model.score(views), expected.score(residuals), rtol=1e-10)


def test_an_operator_between_views_is_never_formed(methods, monkeypatch):
    monkeypatch.setattr(Moments, "of", None)
    views = load_digits_views().views
    model = methods["StreamedPLS"](3).fit(views)
    X, Y = (block - block.mean(axis=0) for _, block in views.items())
    left, values, _ = np.linalg.svd(X.T @ Y / (len(X) - 1))
    assert_allclose(model.eigenvalues_ - 1, values[:3], rtol=1e-10)
    assert_allclose(np.abs(left[:, :3].T @ model.weights_["left"]), np.eye(3), atol=1e-6)


# ---- matrices of the user's own ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_given_matrices_with_its_defaults_is_mvcca(dtype):
    views = {name: X.astype(dtype) for name, X in three_views().items()}
    expected = MVCCA(3, reg=0.1).fit(views)
    model = GivenMatrices(3, reg=0.1).fit(views)
    assert_allclose(model.eigenvalues_, expected.eigenvalues_, rtol=1e-10)
    for name, weights in expected.weights_.items():
        assert_allclose(model.weights_[name], weights, atol=1e-10)
    batches = GivenMatrices(3, reg=0.1)
    for rows in (slice(0, 90), slice(90, 200)):
        batches.partial_fit(Views(views)[rows])
    assert_allclose(batches.eigenvalues_, expected.eigenvalues_, rtol=1e-5)


def test_given_matrices_solves_the_problem_of_the_matrices_it_is_given():
    views = three_views()

    def within(_):
        return np.diag(1.0 + np.arange(15))

    def between(moments):
        return moments.covariance() ** 3

    model = GivenMatrices(2, between=between, within=within, reg=0).fit(views)
    A = np.cov(np.hstack(list(views.values())), rowvar=False) ** 3
    for own in (slice(0, 6), slice(6, 11), slice(11, 15)):
        A[own, own] = 0
    expected = eigh(A, np.diag(1.0 + np.arange(15)), eigvals_only=True)[:-3:-1]
    assert_allclose(model.eigenvalues_ - 1, expected, rtol=1e-10)


def test_a_source_of_a_database_is_a_source_like_any_other(methods, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    path = str(tmp_path / "vectors.db")
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE vectors (number INTEGER PRIMARY KEY, vector BLOB)")
        database.executemany("INSERT INTO vectors VALUES (?, ?)", enumerate(map(bytes, X)))
        database.commit()
    source = methods["SqliteVectors"](path)
    for start, stop in [(0, 40), (0, 1), (39, 40), (7, 7), (3, 29)]:
        np.testing.assert_array_equal(source.read(start, stop), X[start:stop])
    rows = np.random.default_rng(1).integers(0, 40, 60)
    for selected in (rows, slice(None, None, -3), X[:, 0] > 0, []):
        found = source[selected]
        np.testing.assert_array_equal(found.read(0, len(found)), X[selected])
    assert repr(source) == f"<vectors in {path}: 40 rows, 3 columns, float32>"
    assert source.fingerprint() == methods["SqliteVectors"](path).fingerprint()
    before = source.fingerprint()
    assert source[:10].fingerprint() != before
    os.utime(path, ns=(0, 0))
    assert source.fingerprint() != before
    assert len(pickle.dumps(vars(source))) < 1000  # no connection, no rows
    with pytest.raises(IndexError, match="rows 0 to 40, got 0 to 41"):
        source.read(0, 41)
