"""Principal components of rows with holes, against scikit-learn, pandas and regressions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from mvcca import CCA, PerView, Views, config_context, load, save
from mvcca.compose import MomentPCA

HOW = pytest.mark.parametrize("missing", ["pairwise", "em"])
NAMES = ("components_", "explained_variance_", "explained_variance_ratio_", "mean_")


def rows(n=400, d=6, share=0.0, seed=0):
    """Rows with two strong components, less a share of their cells."""
    rng = np.random.default_rng(seed)
    strong = rng.normal(size=(n, 2)) * [3.0, 2.0]
    X = strong @ rng.normal(size=(2, d)) + rng.normal(size=(n, d)) + 10
    return np.where(rng.random((n, d)) < share, np.nan, X)


@HOW
@pytest.mark.parametrize("n_components", [2, None])
def test_without_holes_they_are_those_of_scikit_learn(missing, n_components):
    X = rows()
    expected = PCA(n_components, svd_solver="full").fit(X)
    found = MomentPCA(n_components, missing=missing).fit(X)
    for name in NAMES:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-9)
    assert found.n_components_ == expected.n_components_
    assert list(found.get_feature_names_out()[:2]) == ["momentpca0", "momentpca1"]


def test_pairwise_components_are_those_of_the_covariances_of_pairs():
    X = rows(share=0.1)
    Sigma = pd.DataFrame(X).cov().to_numpy()  # of the rows that have both
    values, vectors = np.linalg.eigh(Sigma)
    assert values[0] > 0
    found = MomentPCA(missing="pairwise").fit(X)
    np.testing.assert_allclose(found.explained_variance_, values[::-1], rtol=1e-10)
    cosines = np.einsum("ij,ji->i", found.components_, vectors[:, ::-1])
    np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-10)
    np.testing.assert_allclose(found.mean_, np.nanmean(X, axis=0))


@HOW
def test_holes_are_filled_by_the_regression_on_the_cells_of_the_row(missing):
    X = rows(share=0.3)
    X[0] = np.nan
    train, new = X[:300], X[300:].copy()
    model = MomentPCA(2, missing=missing).fit(train)
    S = np.linalg.inv(model.precision_)  # with its ridge
    new = np.vstack([X[:1], new])
    for row, scores in zip(new, model.transform(new), strict=True):
        o, m = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        full = np.where(np.isnan(row), model.mean_, row)
        full[m] += S[np.ix_(m, o)] @ np.linalg.solve(S[np.ix_(o, o)], (row - model.mean_)[o])
        np.testing.assert_allclose(scores, model.components_ @ (full - model.mean_), atol=1e-8)
    np.testing.assert_allclose(model.transform(X[:1]), 0, atol=1e-12)  # nothing is known of it


@pytest.mark.filterwarnings("ignore:The correlations of pairs")
@HOW
def test_variances_are_those_of_complete_rows_and_not_of_imputed_ones(missing):
    errors, of_imputed = [], []
    for seed in range(20):
        whole, holes = rows(seed=seed), rows(share=0.2, seed=seed)
        expected = PCA(2).fit(whole).explained_variance_
        errors.append(MomentPCA(2, missing=missing).fit(holes).explained_variance_ / expected - 1)
        imputed = SimpleImputer().fit_transform(holes)
        of_imputed.append(PCA(2).fit(imputed).explained_variance_ / expected - 1)
    assert np.abs(np.mean(errors, axis=0)).max() < 0.02
    assert np.mean(of_imputed, axis=0).max() < -0.1


@HOW
def test_weights_count_and_batches_of_rows_add_up(missing):
    X, weights = rows(share=0.2), np.random.default_rng(1).integers(0, 3, 400)
    weighted = MomentPCA(2, missing=missing).fit(X, sample_weight=weights)
    repeated = MomentPCA(2, missing=missing).fit(np.repeat(X, weights, axis=0))
    with config_context(block_rows=7):
        in_blocks = MomentPCA(2, missing=missing).fit(X, sample_weight=weights)
    for name in NAMES:
        expected = getattr(repeated, name)
        np.testing.assert_allclose(getattr(weighted, name), expected, rtol=1e-7)
        np.testing.assert_allclose(getattr(in_blocks, name), expected, rtol=1e-7)


def test_a_step_of_a_pipeline_is_saved_and_knows_its_columns(tmp_path):
    frames = {n: pd.DataFrame(rows(share=0.2, seed=i)).add_prefix(n) for i, n in enumerate("ab")}
    views = Views(frames)
    model = make_pipeline(PerView(MomentPCA(2)), CCA(1)).fit(views)
    save(model, tmp_path / "model.mvcca")
    again = load(tmp_path / "model.mvcca").transform(views)
    np.testing.assert_array_equal(again["a"], model.transform(views)["a"])
    step = model[0].transformers_["a"]
    assert list(step.feature_names_in_) == list(frames["a"].columns)
    with pytest.raises(ValueError, match="feature names"):
        step.transform(frames["b"])


def test_pairs_that_contradict_each_other_are_said():
    X = rows(12, 10, share=0.3)
    with pytest.warns(UserWarning, match=r"% of the trace .* had to be added"):
        model = MomentPCA(missing="pairwise").fit(X)
    assert model.explained_variance_.min() > 0


def _without(column):
    X = rows(20)
    X[1:, column] = np.nan
    return X


@pytest.mark.parametrize(
    ("model", "X", "message"),
    [
        (MomentPCA(), _without(3), "column 3 .* is missing in all rows but 1"),
        (MomentPCA(7), rows(), "n_components=7, but X has only 6 principal components"),
        (MomentPCA(6), np.repeat(rows(), 2, axis=1)[:, :6], "has only 3 principal"),
        (MomentPCA(), np.ones((5, 3)), "no variance"),
        (MomentPCA(), np.array([[1.0, np.inf], [2.0, 3.0], [1.0, 2.0]]), "infinity"),
        (MomentPCA(missing="error"), rows(), "'missing' parameter of MomentPCA must be"),
    ],
)
def test_what_it_does_not_take(model, X, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X)


def test_sparse_rows_are_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        MomentPCA().fit(sp.eye_array(5).tocsr())
