"""SparseCCA: folds choose the features, from sums of the folds, as refits would."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate

from mvcca import RGCCA, SparseCCA, Views
from mvcca.linear._rgcca import BlockEstimator
from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.problem import ascent
from mvcca.problem.ascent import counts_to_try
from mvcca.problem.block_covariances import CovarianceMatrix
from mvcca.statistics import Moments


def planted(n=100, widths=(60, 80), n_true=6, loading=0.7, batch=0, seed=0):
    """Views of which the first columns share a variable, and the next ones have one by view."""
    rng = np.random.default_rng(seed)
    shared, blocks = rng.standard_normal((n, 1)), {}
    for name, p in zip("xyz", widths, strict=False):
        X = rng.standard_normal((n, p))
        X[:, :n_true] = loading * shared + np.sqrt(1 - loading**2) * X[:, :n_true]
        own = slice(n_true, n_true + batch)
        X[:, own] = 0.8 * rng.standard_normal((n, 1)) + 0.6 * X[:, own]
        blocks[name] = X
    return blocks


def f1(chosen, n_true):
    hits = np.sum(np.asarray(chosen) < n_true)
    return 2 * hits / (len(chosen) + n_true)


@pytest.fixture(scope="module")
def fitted():
    views = planted()
    return views, SparseCCA().fit(views)


def test_the_features_that_views_share_are_selected(fitted):
    _, model = fitted
    for names in model.selected_.values():
        assert set(range(6)) <= set(names[0])
        assert len(names[0]) <= 12
    assert model.held_out_correlations_[0] > 0.7


@pytest.mark.parametrize("widths", [(100, 120), (70, 80, 90)])
def test_features_are_found_beside_a_factor_of_each_view(widths):
    views = planted(widths=widths, n_true=10, batch=50, seed=1)
    model = SparseCCA(n_features=10, tau=1.0).fit(views)
    for names in model.selected_.values():
        assert f1(names[0], 10) >= 0.95


@pytest.mark.parametrize(
    ("small", "share_equal"), [(10**5, 1.0), (0, 0.8)], ids=["own starts", "starts from ends"]
)
def test_folds_measure_what_refits_would(fitted, small, share_equal, monkeypatch):
    """But where a number of features of large views starts from the ends of the one before."""
    monkeypatch.setattr(ascent, "_SMALL", small)
    rows, differences = Views(fitted[0]), []
    results = SparseCCA().fit(rows).cv_results_
    folds = InnerFolds.of(rows, None, few=False)
    for i in range(0, len(results["params"]), 7):
        setting = results["params"][i]
        for fold in range(5):
            train = rows[folds.without((fold,))]
            refit = SparseCCA(n_features=setting["n_features"], tau=setting["tau"]).fit(train)
            held_out = refit.transform(rows[folds.codes == fold])
            x, y = (held_out[name][:, 0] for name in rows.names)
            found = results[f"split{fold}_test_score"][i]
            differences.append(abs(found - np.corrcoef(x, y)[0, 1]))
    assert np.mean(np.array(differences) < 1e-8) >= share_equal
    assert np.mean(differences) < 0.01


def test_the_chosen_setting_is_the_best_row_of_the_table(fitted):
    views, model = fitted
    results = model.cv_results_
    best = results["params"][int(np.argmax(results["mean_test_score"]))]
    assert {n: int(k[0]) for n, k in model.n_features_.items()} == best["n_features"]
    assert model.tau_[0] == best["tau"]
    assert model.held_out_correlations_[0] == results["mean_test_score"].max()
    again = SparseCCA(n_features=best["n_features"], tau=best["tau"]).fit(views)
    for name, W in model.weights_.items():
        assert_allclose(again.weights_[name], W, rtol=1e-8)


def test_storage_does_not_change_what_folds_choose(fitted, tmp_path):
    views, model = fitted
    files = {}
    for name, X in views.items():
        np.save(tmp_path / f"{name}.npy", X)
        files[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    for rows in (files, {name: sp.csr_array(X) for name, X in views.items()}):
        found = clone(model).fit(rows)
        for name, W in model.weights_.items():
            assert_allclose(found.weights_[name], W, atol=1e-10 * np.abs(W).max())


@pytest.mark.parametrize("tau", [1.0, 0.2])
def test_given_settings_are_those_of_rgcca(tau):
    views = planted()
    found = SparseCCA(2, n_features=5, tau=tau).fit(views)
    expected = RGCCA(2, n_features=5, tau=tau, scale_views=False).fit(views)
    for name, W in expected.weights_.items():
        assert_allclose(found.weights_[name], W)
    assert found.tau_.tolist() == [tau, tau]
    assert found.n_features_["x"].tolist() == [5, 5]


def test_moments_of_parts_suffice_for_given_settings():
    views = Views(planted())
    moments = Moments.of(views[:30]) + Moments.of(views[30:])
    found = SparseCCA(n_features=5, tau=0.5).fit_statistic(moments)
    batches = SparseCCA(n_features=5, tau=0.5).partial_fit(views[:30]).partial_fit(views[30:])
    expected = SparseCCA(n_features=5, tau=0.5).fit(views)
    for name, W in expected.weights_.items():
        assert_allclose(found.weights_[name], W, atol=1e-10 * np.abs(W).max())
        assert_allclose(batches.weights_[name], W, atol=1e-10 * np.abs(W).max())


def test_each_component_has_its_own_settings():
    rng = np.random.default_rng(3)
    first, second = rng.standard_normal((2, 150, 1))
    views = {name: rng.standard_normal((150, 30)) for name in "xy"}
    for X in views.values():
        X[:, :8] += 1.5 * first
        X[:, 8:11] += 1.2 * second
    model = SparseCCA(2, tau=1.0).fit(views)
    assert set(range(8)) <= set(model.selected_["x"][0])
    assert {8, 9, 10} <= set(model.selected_["x"][1])
    assert model.cv_results_["param_component"].max() == 1
    scores = model.transform(views)["x"]
    assert abs(np.corrcoef(scores.T)[0, 1]) < 1e-10


def test_components_stop_where_held_out_rows_do_not_correlate():
    rng = np.random.default_rng(8)
    first, second = rng.standard_normal((2, 200, 1))
    views = {name: rng.standard_normal((200, 20)) for name in "xy"}
    with pytest.warns(UserWarning, match="correlate no more than those of unrelated views"):
        nothing = SparseCCA("cv", tau=1.0).fit(views)
    assert nothing.n_components_ == 1
    for X in views.values():
        X[:, :6] += 1.5 * first
        X[:, 6:10] += 1.2 * second
    model = SparseCCA("cv", tau=1.0).fit(views)
    assert model.n_components_ == 2
    with pytest.raises(ValueError, match='n_components="cv" looks at all rows at once'):
        SparseCCA("cv", n_features=2, tau=1.0).partial_fit(views)


@pytest.mark.filterwarnings("ignore:Scores of held-out rows", "ignore:n_components=")
@pytest.mark.parametrize("seed", [4, 6, 8])
def test_folds_take_no_more_components_than_the_narrowest_view_has(seed):
    rng = np.random.default_rng(seed)
    views = {"a": rng.normal(size=(30, 3)), "b": rng.normal(size=(30, 2))}
    model = SparseCCA(n_components=4, n_starts=2, tau=1.0).fit(views)
    assert model.n_components_ == len(model.held_out_correlations_) == 2


def test_confounds_are_removed_in_every_fold():
    views, rng = planted(n=200, widths=(20, 25)), np.random.default_rng(4)
    z = rng.standard_normal((200, 1))
    mixed = {name: X + 3 * z * (np.arange(X.shape[1]) > 12) for name, X in views.items()}
    model = SparseCCA(confounds="z", tau=1.0).fit({**mixed, "z": z})
    for names in model.selected_.values():
        assert f1(names[0], 6) >= 0.8
    rows = Views({**mixed, "z": z})
    folds = InnerFolds.of(rows.without("z"), None, few=False)
    setting = model.cv_results_["params"][3]
    refit = SparseCCA(n_features=setting["n_features"], tau=1.0, confounds="z")
    held_out = refit.fit(rows[folds.without((2,))]).transform(rows[folds.codes == 2])
    expected = np.corrcoef(*(held_out[name][:, 0] for name in "xy"))[0, 1]
    assert model.cv_results_["split2_test_score"][3] == pytest.approx(expected, abs=1e-8)


def test_names_of_columns_are_selected():
    views = planted(widths=(12, 15))
    tables = {
        name: pd.DataFrame(X, columns=[f"{name}{i}" for i in range(X.shape[1])])
        for name, X in views.items()
    }
    model = SparseCCA(n_features=6, tau=1.0).fit(tables)
    assert set(model.selected_["x"][0]) == {f"x{i}" for i in range(6)}


def test_scikit_learn_searches_take_it():
    views = Views(planted(widths=(15, 20)))
    search = GridSearchCV(SparseCCA(tau=1.0), {"n_features": [2, 6, 15]}, cv=3).fit(views)
    assert search.best_params_["n_features"] == 6
    found = cross_validate(SparseCCA(), views, cv=3)["test_score"]
    assert (found > 0.5).all()


def test_counts_end_with_all_features():
    assert counts_to_try(1, 1.0) == [1]
    assert counts_to_try(12, 1.0) == [2, 3, 5, 7, 10, 12]
    assert counts_to_try(150, 1.0)[-2:] == [80, 150]
    assert counts_to_try(1000, 1.0)[-4:] == [260, 440, 750, 1000]
    assert counts_to_try(20_000, 1.0)[-3:] == [440, 750, 20_000]


@pytest.mark.parametrize("model", [SparseCCA(n_features=2, tau=1.0), RGCCA(tau=0.5, n_features=2)])
def test_a_selection_from_few_rows_warns(model):
    rng = np.random.default_rng(0)
    largest = []
    for _ in range(50):
        X, Y = rng.standard_normal((8, 50)), rng.standard_normal((8, 50))
        largest.append(np.abs(np.corrcoef(X.T, Y.T)[:50, 50:]).max())
    with pytest.warns(UserWarning, match="Few rows to select features from: 8, .* by 0.96"):
        model.fit([X, Y])
    assert np.median(largest) == pytest.approx(0.96, abs=0.015)
    model.fit([rng.standard_normal((20, 50)) for _ in "xy"])  # no warning
    RGCCA(tau=0.5).fit([X, Y])  # of all features


def test_folds_of_few_rows_warn_that_what_they_find_may_be_chance():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match=r"of 4 rows, where 2 may be chance"):
        SparseCCA(tau=1.0).fit([rng.standard_normal((4, 5)), rng.standard_normal((4, 6))])


WRONG = {
    "few rows": (SparseCCA(), 3, "expected at least 4 objects, got 3"),
    "count": (SparseCCA(n_features={"x": 2, "y": 0}), 40, "whole numbers from 1 up, got 0"),
}


@pytest.mark.parametrize(("model", "n", "message"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused(model, n, message):
    with pytest.raises(ValueError, match=message):
        model.fit(planted(n=n, widths=(7, 8)))
    with pytest.raises(ValueError, match='="cv" looks at'):
        SparseCCA().partial_fit(planted())
    with pytest.raises(ValueError, match='="cv" looks at single rows'):
        SparseCCA().fit_statistic(Moments.of(Views(planted())))


@pytest.mark.parametrize(
    ("tau", "superblock", "n_features"),
    [
        (1.0, False, 7),
        (0.3, False, 7),
        (0.3, True, 7),
        (0.3, False, None),
        (0.3, True, None),
        (0.3, False, {"x": None, "y": 7}),
    ],
)
def test_wide_views_by_products_are_those_by_covariances(tau, superblock, n_features, monkeypatch):
    views = planted(n=40, widths=(700, 500), seed=2)
    options = {"n_features": n_features, "tau": tau, "superblock": superblock}
    model = RGCCA(2, **options)
    assert model.takes_row_products(model._open_rows(views, None, None))
    found = RGCCA(2, **options).fit(views)
    monkeypatch.setattr(BlockEstimator, "takes_row_products", lambda *_: False)
    expected = RGCCA(2, **options).fit(views)
    for name, W in expected.weights_.items():
        assert_allclose(found.weights_[name], W, atol=1e-9 * np.abs(W).max())
        assert_allclose(found.means_[name], expected.means_[name], atol=1e-12)


def test_folds_of_wide_views_by_products_are_those_by_covariances(monkeypatch):
    views = planted(n=60, widths=(700, 400), seed=2)
    found = SparseCCA().fit(views)
    monkeypatch.setattr(BlockEstimator, "takes_row_products", lambda *_: False)
    expected = SparseCCA().fit(views)
    table = expected.cv_results_["mean_test_score"]
    assert_allclose(found.cv_results_["mean_test_score"], table, atol=1e-8)
    for name, W in expected.weights_.items():
        assert_allclose(found.weights_[name], W, atol=1e-9 * np.abs(W).max())


def test_a_wide_dense_problem_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr("mvcca.base.statistic_estimator.available_bytes", lambda: 10**6)
    views = planted(n=40, widths=(700, 500))
    with pytest.raises(MemoryError, match=r"RGCCA of views .* needs about"):
        RGCCA(missing="pairwise").fit(views)


@pytest.mark.parametrize("superblock", [False, True])
def test_estimated_tau_of_wide_views_takes_no_matrix_over_features(superblock, monkeypatch):
    views = planted(n=40, widths=(700, 500), seed=2)
    blocks = {name: np.asarray(X).copy() for name, X in views.items()}
    blocks["x"][:, 3] = 5.0  # never varies
    weights = np.random.default_rng(0).integers(1, 4, 40)
    model = RGCCA(tau="auto", superblock=superblock)
    with monkeypatch.context() as patch:
        patch.setattr(CovarianceMatrix, "__init__", None)
        found = clone(model).fit(blocks, sample_weight=weights).tau_
    monkeypatch.setattr(BlockEstimator, "takes_row_products", lambda *_: False)
    expected = model.fit(blocks, sample_weight=weights).tau_
    assert found == pytest.approx(expected, rel=1e-10)
    assert all(0.01 < own < 0.99 for own in found.values())


@pytest.mark.parametrize("widths", [(30, 20), (20, 30, 25)])
def test_the_order_of_views_changes_neither_numbers_of_features_nor_which(widths):
    rng = np.random.default_rng(2)
    shared = rng.standard_normal((60, 1))
    blocks = {name: rng.standard_normal((60, p)) for name, p in zip("xyz", widths, strict=False)}
    for X, n_true in zip(blocks.values(), (3, 10, 15), strict=False):
        X[:, :n_true] = 0.5 * shared + 0.8 * X[:, :n_true]
    expected = SparseCCA(2).fit(blocks)
    for names in {2: ["yx"], 3: ["yzx", "zyx"]}[len(blocks)]:
        found = SparseCCA(2).fit({name: blocks[name] for name in names})
        assert [*found.n_features_] == [*found.selected_] == [*names]
        assert found.tau_.tolist() == expected.tau_.tolist()
        for name in names:
            assert found.n_features_[name].tolist() == expected.n_features_[name].tolist()
            assert_allclose(found.weights_[name], expected.weights_[name], atol=1e-9)
