"""Code written for `sklearn.cross_decomposition` runs on mvcca, and finds the same.

Each idiom is a function of a namespace with the four estimators, and returns what the user looks
at. It runs with scikit-learn's and with ours; `PLSRegression` is then PLS(algorithm="regression",
scale=True), and so on. Components are compared up to sign, those of CCA up to scale: scores of CCA
have unit variance here. What differs is in DIFFERENT, with a test, and in docs/migration.rst.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.cross_decomposition as sk
from numpy.testing import assert_allclose
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_linnerud
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
    validation_curve,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import CCA, PLS
from mvcca.inspection import explained_variance, vip

# scikit-learn's own iterations stop early unless they are told not to.
_CONVERGED = {"tol": 1e-30, "max_iter": 10**5}
SKLEARN = SimpleNamespace(
    CCA=partial(sk.CCA, **_CONVERGED),
    PLSRegression=partial(sk.PLSRegression, **_CONVERGED),
    PLSCanonical=partial(sk.PLSCanonical, algorithm="svd"),
    PLSSVD=sk.PLSSVD,
)
OURS = SimpleNamespace(
    CCA=CCA,
    PLSRegression=partial(PLS, algorithm="regression", scale=True),
    PLSCanonical=partial(PLS, algorithm="canonical", scale=True),
    PLSSVD=partial(PLS, algorithm="svd", scale=True),
)

rng = np.random.default_rng(0)
_shared = rng.normal(size=(150, 3))
X = _shared @ rng.normal(size=(3, 6)) + rng.normal(size=(150, 6)) * [1, 2, 1, 3, 1, 2] + 5
Y = _shared @ rng.normal(size=(3, 4)) + rng.normal(size=(150, 4)) - 2
X_FRAME = pd.DataFrame(X, columns=list("abcdef"), index=range(10, 160))
Y_FRAME = pd.DataFrame(Y, columns=list("uvwx"), index=range(10, 160))
LINNERUD = load_linnerud(return_X_y=True)
X_DOCS = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [2.0, 2.0, 2.0], [3.0, 5.0, 4.0]]
Y_DOCS = [[0.1, -0.2], [0.9, 1.1], [6.2, 5.9], [11.9, 12.3]]


class Components(np.ndarray):
    """Columns that are unique up to sign."""


class Directions(np.ndarray):
    """Columns that are unique up to scale."""


def components(array: Any) -> Components:
    return np.asarray(array).view(Components)


def directions(array: Any) -> Directions:
    return np.asarray(array).view(Directions)


def assert_same(found: Any, expected: Any, tol: float = 1e-6) -> None:
    """Equal numbers; the same shapes, types of containers and labels."""
    if isinstance(expected, pd.DataFrame | pd.Series):
        assert type(found) is type(expected)
        assert list(found.index) == list(expected.index)
        found, expected = (own.to_numpy().view(Components) for own in (found, expected))
    if isinstance(expected, Components | Directions):
        is_scaled = isinstance(expected, Directions)
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape
        products = np.einsum("ij,ij->j", found, expected)
        factors = products / np.einsum("ij,ij->j", found, found) if is_scaled else np.sign(products)
        assert_allclose(found * factors, expected, atol=tol * np.abs(expected).max())
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        assert isinstance(found, tuple) == isinstance(expected, tuple)
        for own, other in zip(found, expected, strict=True):
            assert_same(own, other, tol)
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key, other in expected.items():
            assert_same(found[key], other, tol)
    elif isinstance(expected, np.ndarray) and expected.dtype.kind in "fc":
        assert np.shape(found) == expected.shape
        assert_allclose(found, expected, atol=tol * max(np.abs(expected).max(), 1))
    elif isinstance(expected, float):
        assert isinstance(found, float)
        assert found == pytest.approx(expected, abs=tol)
    else:
        assert type(found) is type(expected)
        assert np.array_equal(found, expected)


def scores_correlate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    k = x.shape[1]
    return np.diag(np.corrcoef(np.asarray(x).T, np.asarray(y).T)[:k, k:]).copy()


IDIOMS: dict[str, Callable[[Any], Any]] = {}


def idiom(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    IDIOMS[function.__name__.replace("_", " ")] = function
    return function


# ---- fit and transform ---------------------------------------------------------------------------


@idiom
def docs_example_of_cca(cd):
    cca = cd.CCA(n_components=1)
    cca.fit(X_DOCS, Y_DOCS)
    X_c, Y_c = cca.transform(X_DOCS, Y_DOCS)
    return X_c.shape, Y_c.shape, scores_correlate(X_c, Y_c)  # 1: many directions are as good


@idiom
def fit_transform_unpacks(cd):
    X_c, Y_c = cd.CCA(n_components=2).fit_transform(X, Y)
    return directions(X_c), directions(Y_c)


@idiom
def correlations_of_scores_by_corrcoef(cd):
    X_c, Y_c = cd.CCA(n_components=3).fit(X, Y).transform(X, Y)
    return [np.corrcoef(X_c[:, i], Y_c[:, i])[0, 1] for i in range(3)]


@idiom
def transform_one_matrix(cd):
    return directions(cd.CCA(2).fit(X, Y).transform(X))


@idiom
def transform_held_out_rows(cd):
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, random_state=0)
    x, y = cd.PLSCanonical(n_components=2).fit(X_train, Y_train).transform(X_test, Y_test)
    return components(x), components(y), scores_correlate(x, y)


@idiom
def plssvd_docs_example(cd):
    pls = cd.PLSSVD(n_components=2).fit(X_DOCS, Y_DOCS)
    X_c, Y_c = pls.transform(X_DOCS, Y_DOCS)
    return X_c.shape, Y_c.shape, components(X_c), components(Y_c)


@idiom
def fit_transform_of_plsregression_unpacks(cd):
    x, y = cd.PLSRegression(n_components=2).fit_transform(*LINNERUD)
    return components(x), components(y)


@idiom
def a_vector_as_y(cd):
    x, y = cd.PLSRegression(n_components=1).fit(X, Y[:, 0]).transform(X, Y[:, 0])
    return components(x), components(y)


@idiom
def float32_rows(cd):
    pls = cd.PLSRegression(n_components=2).fit(X.astype(np.float32), Y.astype(np.float32))
    return np.asarray(pls.predict(X.astype(np.float32)), dtype=float).round(3)


@idiom
def lists_of_lists(cd):
    return cd.PLSRegression(n_components=2).fit(X.tolist(), Y.tolist()).predict(X.tolist())


@idiom
def training_arrays_are_left_as_they_are(cd):
    given = X.copy(), Y.copy()
    cd.PLSRegression(2).fit(*given).predict(given[0])
    return bool((given[0] == X).all() and (given[1] == Y).all())


@idiom
def more_features_than_rows(cd):
    return cd.PLSRegression(n_components=3).fit(X[:5], Y[:5]).predict(X[5:9])


@idiom
def a_constant_column(cd):
    return (
        cd.PLSRegression(n_components=2)
        .fit(np.c_[X, np.ones(150)], Y)
        .predict(np.c_[X, np.ones(150)])
    )


# ---- predict -------------------------------------------------------------------------------------


@idiom
def docs_example_of_plsregression(cd):
    pls2 = cd.PLSRegression(n_components=2)
    pls2.fit(X_DOCS, Y_DOCS)
    return pls2.predict(X_DOCS)


@idiom
def predictions_of_a_vector_are_a_vector(cd):
    return cd.PLSRegression(n_components=2).fit(X, Y[:, 0]).predict(X)


@idiom
def r2_score_of_predictions(cd):
    return float(r2_score(Y, cd.PLSRegression(3).fit(X, Y).predict(X)))


@idiom
def rmse_on_held_out_rows(cd):
    X_train, X_test, y_train, y_test = train_test_split(X, Y[:, 0], random_state=1)
    predicted = cd.PLSRegression(2).fit(X_train, y_train).predict(X_test)
    return float(np.sqrt(mean_squared_error(y_test, predicted)))


@idiom
def predictions_by_coef_and_intercept(cd):
    pls = cd.PLSRegression(n_components=2).fit(X, Y)
    return (X - X.mean(axis=0)) @ pls.coef_.T + pls.intercept_, pls.predict(X)


@idiom
def is_a_regressor(cd):
    return is_regressor(cd.PLSRegression())


# ---- attributes ----------------------------------------------------------------------------------


@idiom
def coef_and_its_shape(cd):
    coef = cd.PLSRegression(2).fit(X, Y).coef_
    return coef.shape, coef


@idiom
def coef_of_a_vector(cd):
    pls = cd.PLSRegression(2).fit(X, Y[:, 0])
    return pls.coef_.ravel(), pls.intercept_


@idiom
def weights_loadings_and_rotations_of_plsregression(cd):
    pls = cd.PLSRegression(n_components=3).fit(X, Y)
    names = ("x_weights_", "y_weights_", "x_loadings_", "y_loadings_", "x_rotations_")
    return [components(getattr(pls, name)) for name in (*names, "y_rotations_")]


@idiom
def weights_loadings_and_rotations_of_plscanonical(cd):
    pls = cd.PLSCanonical(n_components=3).fit(X, Y)
    names = ("x_weights_", "y_weights_", "x_loadings_", "y_loadings_", "x_rotations_")
    return [components(getattr(pls, name)) for name in (*names, "y_rotations_")]


@idiom
def weights_of_plssvd(cd):
    pls = cd.PLSSVD(n_components=3).fit(X, Y)
    return components(pls.x_weights_), components(pls.y_weights_)


@idiom
def loadings_of_cca_on_standardized_columns(cd):
    Z, W = StandardScaler().fit_transform(X), StandardScaler().fit_transform(Y)
    cca = cd.CCA(n_components=2).fit(Z, W)
    names = ("x_weights_", "y_weights_", "x_loadings_", "y_loadings_", "x_rotations_")
    return [directions(getattr(cca, name)) for name in (*names, "y_rotations_")]


@idiom
def training_scores(cd):
    pls = cd.PLSRegression(n_components=3).fit(X, Y)
    return components(pls.x_scores_), components(pls.y_scores_)


@idiom
def scores_by_rotations(cd):
    pls = cd.PLSCanonical(2).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return components(Z @ pls.x_rotations_)


@idiom
def vip_by_the_usual_snippet(cd):
    model = cd.PLSRegression(n_components=3).fit(X, Y)
    t, w, q = model.x_scores_, model.x_weights_, model.y_loadings_
    p, h = w.shape
    vips = np.zeros((p,))
    s = np.diag(t.T @ t @ q.T @ q).reshape(h, -1)
    total_s = np.sum(s)
    for i in range(p):
        weight = np.array([(w[i, j] / np.linalg.norm(w[:, j])) ** 2 for j in range(h)])
        vips[i] = np.sqrt(p * (s.T @ weight)[0] / total_s)
    return vips


@idiom
def explained_variance_of_x_by_its_scores(cd):
    pls = cd.PLSRegression(n_components=3).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return (
        np.var(pls.x_scores_, axis=0) * (pls.x_loadings_**2).sum(axis=0) / np.var(Z, axis=0).sum()
    )


@idiom
def scores_reconstruct_rows_by_loadings(cd):
    pls = cd.PLSRegression(n_components=3).fit(X, Y)
    return pls.x_scores_ @ pls.x_loadings_.T


@idiom
def n_features_in_and_names(cd):
    pls = cd.PLSRegression(2).fit(X_FRAME, Y_FRAME)
    return pls.n_features_in_, list(pls.feature_names_in_)


@idiom
def inverse_transform_of_x(cd):
    pls = cd.PLSRegression(n_components=2).fit(X, Y)
    return pls.inverse_transform(pls.transform(X))


@idiom
def inverse_transform_of_both(cd):
    pls = cd.PLSCanonical(n_components=2).fit(X, Y)
    return pls.inverse_transform(*pls.transform(X, Y))


@idiom
def inverse_transform_with_all_components_is_exact(cd):
    cca = cd.CCA(n_components=4).fit(X[:, :4], Y)
    x, y = cca.inverse_transform(*cca.transform(X[:, :4], Y))
    return x, y, bool(np.allclose(x, X[:, :4]) and np.allclose(y, Y))


# ---- scikit-learn's tools ------------------------------------------------------------------------


@idiom
def pipeline_with_scaler_predicts(cd):
    pipe = Pipeline([("scale", StandardScaler()), ("pls", cd.PLSRegression(n_components=2))])
    return pipe.fit(X, Y).predict(X)


@idiom
def regression_on_scores_of_cca(cd):
    scores = cd.CCA(n_components=2).fit(X, Y).transform(X)
    return LinearRegression().fit(scores, Y).predict(scores)


@idiom
def cross_val_score_by_r2(cd):
    return cross_val_score(cd.PLSRegression(2), X, Y, cv=5, scoring="r2")


@idiom
def cross_val_score_by_squared_error(cd):
    scoring = "neg_mean_squared_error"
    errors = [
        -cross_val_score(cd.PLSRegression(k), X, Y[:, 0], cv=KFold(5), scoring=scoring).mean()
        for k in range(1, 6)
    ]
    return int(np.argmin(errors)), np.array(errors)


@idiom
def cross_val_predict_of_rows(cd):
    return cross_val_predict(cd.PLSRegression(n_components=2), X, Y, cv=10)


@idiom
def cross_val_predict_of_a_vector(cd):
    return cross_val_predict(cd.PLSRegression(n_components=2), X, Y[:, 1], cv=10)


@idiom
def cross_validate_several_scores(cd):
    found = cross_validate(
        cd.PLSRegression(2), X, Y, cv=3, scoring=["r2", "neg_mean_absolute_error"]
    )
    return found["test_r2"], found["test_neg_mean_absolute_error"]


@idiom
def grid_search_over_numbers_of_components(cd):
    grid = {"n_components": [1, 2, 3, 4]}
    search = GridSearchCV(cd.PLSRegression(), grid, scoring="r2", cv=5).fit(X, Y)
    return search.best_params_, float(search.best_score_), search.predict(X)


@idiom
def grid_search_over_a_pipeline(cd):
    pipe = make_pipeline(StandardScaler(with_std=False), cd.PLSRegression())
    pipe.steps[1] = ("pls", pipe.steps[1][1])
    grid = {"pls__n_components": np.arange(1, 5), "pls__scale": [True, False]}
    search = GridSearchCV(pipe, grid, scoring="neg_mean_squared_error", cv=3).fit(X, Y[:, 0])
    return {key: int(value) for key, value in search.best_params_.items()}, search.predict(X)


@idiom
def randomized_search(cd):
    grid = {"n_components": [1, 2, 3, 4]}
    search = RandomizedSearchCV(
        cd.PLSRegression(), grid, n_iter=3, scoring="r2", random_state=0
    ).fit(X, Y)
    return search.best_params_, search.cv_results_["mean_test_score"]


@idiom
def validation_curve_over_components(cd):
    return validation_curve(
        cd.PLSRegression(), X, Y, param_name="n_components", param_range=[1, 2, 3], scoring="r2"
    )


@idiom
def learning_curve_by_r2(cd):
    return learning_curve(cd.PLSRegression(2), X, Y, cv=3, scoring="r2")[1:3]


@idiom
def permutation_importance_by_r2(cd):
    model = cd.PLSRegression(2).fit(X, Y)
    found = permutation_importance(model, X, Y, scoring="r2", n_repeats=3, random_state=0)
    return found.importances_mean


@idiom
def permutation_test_score_of_predictions(cd):
    return permutation_test_score(
        cd.PLSRegression(1), X, Y[:, 0], scoring="r2", n_permutations=9, random_state=0
    )


@idiom
def recursive_feature_elimination(cd):
    return RFE(cd.PLSRegression(n_components=1), n_features_to_select=3).fit(X, Y[:, 0]).support_


@idiom
def selection_by_coef(cd):
    return SelectFromModel(cd.PLSRegression(2)).fit(X, Y[:, 0]).get_support()


@idiom
def transformed_targets(cd):
    return (
        TransformedTargetRegressor(cd.PLSRegression(2), transformer=StandardScaler())
        .fit(X, Y)
        .predict(X)
    )


@idiom
def one_model_per_target(cd):
    return MultiOutputRegressor(cd.PLSRegression(2)).fit(X, Y).predict(X)


@idiom
def bagged_voted_and_stacked(cd):
    members = [("pls", cd.PLSRegression(2)), ("ols", LinearRegression())]
    models = (
        BaggingRegressor(cd.PLSRegression(2), n_estimators=3, random_state=0),
        VotingRegressor(members),
        StackingRegressor(members, RidgeCV()),
    )
    return [model.fit(X, Y[:, 0]).predict(X) for model in models]


@idiom
def feature_union_of_scores(cd):
    union = FeatureUnion([("pls", cd.PLSCanonical(2)), ("raw", StandardScaler())])
    return components(union.fit(X, Y).transform(X))


# ---- objects -------------------------------------------------------------------------------------


@idiom
def clone_and_set_params(cd):
    model = clone(cd.PLSRegression(n_components=3)).set_params(n_components=1)
    return model.get_params()["n_components"], model.fit(X, Y).predict(X)


@idiom
def pickle_and_joblib(cd):
    model = cd.PLSRegression(2).fit(X, Y)
    return [own.predict(X) for own in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model))]


@idiom
def joblib_fits_in_threads(cd):
    tasks = (joblib.delayed(cd.PLSRegression(k).fit)(X, Y) for k in (1, 2))
    models = joblib.Parallel(n_jobs=2, prefer="threads")(tasks)
    return [model.predict(X) for model in models]


@idiom
def data_frames_in_arrays_out(cd):
    x, y = cd.PLSCanonical(2).fit(X_FRAME, Y_FRAME).transform(X_FRAME, Y_FRAME)
    return components(x), components(y)


@idiom
def data_frames_predict_arrays(cd):
    return cd.PLSRegression(2).fit(X_FRAME, Y_FRAME).predict(X_FRAME)


@idiom
def a_series_as_y(cd):
    return cd.PLSRegression(2).fit(X_FRAME, Y_FRAME["u"]).predict(X_FRAME)


@idiom
def set_output_to_pandas(cd):
    return cd.PLSCanonical(2).set_output(transform="pandas").fit(X_FRAME, Y).transform(X_FRAME)


@idiom
def names_of_scores(cd):
    return list(cd.CCA(2).fit(X, Y).get_feature_names_out())


@idiom
def refitting_forgets(cd):
    model = cd.PLSRegression(2).fit(X, Y)
    return model.fit(X[:, :3], Y[:, 0]).predict(X[:, :3])


@idiom
def an_unfitted_model_raises_not_fitted(cd):
    for call in ("transform", "predict", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(cd.PLSRegression(), call)(X)
    return True


@idiom
def other_numbers_of_features_raise(cd):
    model = cd.PLSRegression(2).fit(X, Y)
    for call in (model.transform, model.predict):
        with pytest.raises(ValueError, match=r"5 features.* expecting 6 features"):
            call(X[:, :5])
    return True


@idiom
def rows_that_do_not_match_raise(cd):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cd.CCA(2).fit(X, Y[:-1])
    return True


@idiom
def missing_values_raise(cd):
    with pytest.raises(ValueError, match="NaN"):
        cd.CCA(2).fit(np.where(X > 7, np.nan, X), Y)
    return True


@pytest.mark.parametrize("name", IDIOMS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataDimensionalityWarning")
def test_an_idiom_finds_what_it_finds_with_scikit_learn(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, of iterations without end
        expected = IDIOMS[name](SKLEARN)
    assert_same(IDIOMS[name](OURS), expected)


def test_idioms_of_scikit_learn_that_run_unchanged_are_most():
    assert len(IDIOMS) >= 44
    assert len(IDIOMS) / (len(IDIOMS) + len(DIFFERENT)) >= 44 / 48


# ---- what differs: docs/migration.rst says what to write -----------------------------------------

DIFFERENT: dict[str, Callable[[], None]] = {}


def different(function: Callable[[], None]) -> Callable[[], None]:
    DIFFERENT[function.__name__.replace("_", " ")] = function
    return function


@different
def options_of_iterations_and_copies_do_not_exist():
    for options in ({"max_iter": 1000}, {"tol": 1e-9}, {"copy": False}):
        sk.CCA(**options)
        for estimator in (CCA, PLS):
            with pytest.raises(TypeError, match="unexpected keyword"):
                estimator(**options)
    with pytest.raises(TypeError, match="unexpected keyword"):
        CCA(2).fit(X, Y).transform(X, copy=False)
    with pytest.raises(TypeError, match="unexpected keyword"):
        CCA(2).fit(X, Y).predict(X, copy=False)
    assert not hasattr(CCA(2).fit(X, Y), "n_iter_")


@different
def score_is_a_correlation_and_r2_a_scoring():
    train, test = slice(0, 100), slice(100, 150)
    peer, model = (cd.PLSRegression(2).fit(X[train], Y[train]) for cd in (SKLEARN, OURS))
    r2 = peer.score(X[test], Y[test])
    correlations = scores_correlate(*model.transform(X[test], Y[test]))
    assert model.score(X[test], Y[test]) == pytest.approx(correlations.mean())
    assert mvcca_r2(model, X[test], Y[test]) == pytest.approx(r2, abs=1e-9)
    assert abs(r2 - model.score(X[test], Y[test])) > 0.05


def mvcca_r2(model, rows, targets):
    """What the migration page says to write in place of ``score``."""
    return r2_score(targets, model.predict(rows))


@different
def cca_predicts_by_least_squares():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = SKLEARN.CCA(2).fit(X, Y), SKLEARN.PLSCanonical(2).fit(X, Y)
    for peer, model in zip(peers, (OURS.CCA(2), OURS.PLSCanonical(2)), strict=True):
        scores = peer.transform(X)
        best = LinearRegression().fit(scores, Y).predict(scores)
        model.fit(X, Y)
        assert_allclose(model.predict(X), best, atol=1e-6)
        by_coef = (X - X.mean(axis=0)) @ model.coef_.T + model.intercept_
        assert_allclose(by_coef, best, atol=1e-6)
        assert r2_score(Y, peer.predict(X)) < r2_score(Y, best) - 0.01


@different
def too_many_components_warn():
    with pytest.raises(ValueError, match="upper bound is 4"):
        sk.CCA(n_components=5).fit(X, Y)
    with pytest.warns(UserWarning, match="fitted 4"):
        assert CCA(n_components=5).fit(X, Y).n_components_ == 4


@different
def scores_of_pls_are_named_after_its_class():
    peer, model = (cd.PLSRegression(2).fit(X, Y) for cd in (SKLEARN, OURS))
    assert list(peer.get_feature_names_out()) == ["plsregression0", "plsregression1"]
    assert list(model.get_feature_names_out()) == ["pls0", "pls1"]


@different
def scores_of_cca_have_unit_variance():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = SKLEARN.CCA(2).fit(X, Y).transform(X)
    ours = CCA(2).fit(X, Y).transform(X)
    assert_allclose(ours.std(axis=0, ddof=1), 1)
    assert_same(directions(ours), directions(theirs))
    assert (np.abs(theirs.std(axis=0) - 1) > 0.01).any()


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_the_documented_one(name):
    DIFFERENT[name]()


# ---- beyond scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True], ids=["as it is", "scaled"])
def test_vip_is_the_usual_formula(scale):
    model = PLS(3, algorithm="regression", scale=scale).fit(X, Y)
    peer = sk.PLSRegression(3, scale=scale, **_CONVERGED).fit(X, Y)
    sums = (peer.x_scores_**2).sum(axis=0) * (peer.y_loadings_**2).sum(axis=0)
    expected = np.sqrt(6 * (peer.x_weights_**2 @ sums) / sums.sum())
    assert_allclose(vip(model), expected, rtol=1e-8)
    assert np.mean(vip(model) ** 2) == pytest.approx(1)


def test_vip_is_for_pls_regression():
    with pytest.raises(ValueError, match=r"needs a fitted PLS.*got CCA"):
        vip(CCA(2).fit(X, Y))


@pytest.mark.parametrize("scale", [False, True], ids=["as it is", "scaled"])
def test_explained_variance_of_pls_is_that_of_its_reconstructions(scale):
    model = PLS(3, algorithm="regression", scale=scale).fit(X, Y)
    rows = [own - own.mean(axis=0) for own in (X, Y)]
    if scale:
        rows = [own / own.std(axis=0) for own in rows]
    T = model.transform(X)
    found = explained_variance(model, X, Y, variates="X", standardize=scale)
    for name, own in zip(("X", "y"), rows, strict=True):
        shares = [
            1 - np.sum((own - np.outer(t, t @ own / (t @ t))) ** 2) / np.sum(own**2) for t in T.T
        ]
        assert_allclose(found[name], shares, rtol=1e-9)
        total = LinearRegression().fit(T, own).predict(T)
        assert found[name].sum() == pytest.approx(np.sum(total**2) / np.sum(own**2))


@pytest.mark.parametrize(
    "estimator",
    [
        CCA(4),
        CCA(4, reg=0.3),
        CCA(4, center=False),
        PLS(4),
        PLS(4, scale=True),
        PLS(4, algorithm="canonical"),
        PLS(4, algorithm="regression", scale=True),
    ],
    ids=str,
)
def test_all_components_reconstruct_rows_exactly(estimator):
    rows = {"x": X[:, :4], "y": Y}
    back = estimator.fit(rows).inverse_transform(estimator.transform(rows))
    for name, own in rows.items():
        assert_allclose(back[name], own, atol=1e-7)
    single = estimator.inverse_transform({"y": estimator.transform({"y": Y[:3]})["y"]})
    assert_allclose(single["y"], Y[:3], atol=1e-7)


@pytest.mark.parametrize("algorithm", ["svd", "canonical", "regression"])
@pytest.mark.parametrize("shape", [(80, 6), (12, 40)], ids=["tall", "wide"])
def test_pls_predicts_by_least_squares_on_its_scores(algorithm, shape):
    n, p = shape
    rows = np.random.default_rng(1).normal(size=(n, p)) + 2
    targets = rows[:, :3] + np.random.default_rng(2).normal(size=(n, 3))
    counts = np.random.default_rng(3).integers(1, 3, n)
    model = PLS(3, algorithm=algorithm).fit({"a": rows, "b": targets}, sample_weight=counts)
    scores = model.transform({"a": rows})["a"]
    expected = LinearRegression().fit(scores, targets, sample_weight=counts).predict(scores)
    assert_allclose(model.predict({"a": rows}), expected, atol=1e-8)


def test_attributes_of_scikit_learn_are_of_two_lone_matrices():
    model = CCA(2).fit({"a": X, "b": Y})
    with pytest.raises(AttributeError, match=r"two lone matrices.*views \['a', 'b'\]"):
        _ = model.x_weights_
    with pytest.raises(AttributeError, match="not fitted"):
        _ = CCA(2).coef_
    with pytest.raises(AttributeError, match=r"x_scores_.*transform\(X, y\)"):
        _ = CCA(2).fit(X, Y).x_scores_
    assert not hasattr(sk.CCA(2).fit(X, Y), "x_scores_")


def test_three_views_of_pls_predict_nothing():
    model = PLS(2).fit([X, Y, X[:, :3]])
    with pytest.raises(ValueError, match="two of them"):
        model.predict({"view0": X}, target="view1")


def test_scores_of_another_number_of_components_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n_rows, 2\).*got \(150, 6\)"):
        CCA(2).fit(X, Y).inverse_transform(X)


def test_saved_models_predict_vectors_and_keep_training_scores(tmp_path):
    model = PLS(2, algorithm="regression", scale=True).fit(X, Y[:, 0])
    mvcca.save(model, tmp_path / "model.mvcca")
    loaded = mvcca.load(tmp_path / "model.mvcca")
    assert_allclose(loaded.predict(X), model.predict(X))
    assert loaded.predict(X).ndim == 1
    assert_allclose(loaded.x_scores_, model.x_scores_)


def test_predictions_far_from_one_keep_their_units():
    small = PLS(2, algorithm="regression").fit(np.ldexp(X, 400), np.ldexp(Y, -400))
    expected = PLS(2, algorithm="regression").fit(X, Y)
    assert_allclose(np.ldexp(small.predict(np.ldexp(X, 400)), 400), expected.predict(X), rtol=1e-9)
