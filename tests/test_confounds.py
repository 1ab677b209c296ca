"""Confounds, views that are removed from the others: against residuals by `numpy.linalg.lstsq`."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import mvcca
from mvcca import (
    CCA,
    MVCCA,
    MVMLCCA,
    FoldSearchCV,
    PerView,
    RetrievalIndex,
    Views,
    load,
    retrieval_scorer,
    save,
)
from mvcca.compose import Deconfound, RankGaussian
from mvcca.inspection import (
    correlation_intervals,
    loadings,
    parametric_tests,
    permutation_test,
    study,
)
from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.problem import ProductPath, Rows
from mvcca.problem import confounds as confounds_module
from mvcca.problem._estimate import n_lost
from mvcca.problem.confounds import given
from mvcca.statistics import Moments

N = 300
NAMES = ("x", "y")
rng = np.random.default_rng(0)
Z = rng.normal(size=(N, 3))
SHARED = rng.normal(size=(N, 2))


def _view(width, seed):
    draw = np.random.default_rng(seed)
    rows = SHARED @ draw.normal(size=(2, width)) + Z @ draw.normal(size=(3, width)) + 3
    return rows + draw.normal(size=(N, width))


BLOCKS = {"x": _view(6, 1), "y": _view(5, 2)}
VIEWS = Views({**BLOCKS, "z": Z})


def _coefficients(X, Z, weights=None):
    root = np.ones(len(Z)) if weights is None else np.sqrt(weights)
    design = root[:, None] * np.column_stack([np.ones(len(Z)), Z])
    return np.linalg.lstsq(design, root[:, None] * X, rcond=None)[0]


def _less(X, Z, B):
    return X - np.column_stack([np.ones(len(Z)), Z]) @ B


def residuals(views, confounds="z"):
    Z = np.asarray(views[confounds])
    rows = {n: np.asarray(X) for n, X in views.items() if n != confounds}
    return Views({name: _less(X, Z, _coefficients(X, Z)) for name, X in rows.items()})


def assert_same_fit(model, reference, views, expected, atol=1e-10):
    np.testing.assert_allclose(
        model.canonical_correlations_, reference.canonical_correlations_, rtol=0, atol=atol
    )
    scores, others = model.transform(views).in_memory(), reference.transform(expected)
    assert scores.names == others.names == model.view_names_
    for name in scores.names:
        np.testing.assert_allclose(scores[name], others[name], rtol=0, atol=atol)


# ---- partial CCA is CCA of residuals -------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.0, 0.1, "auto", "oas", {"x": 0.2, "y": 0.0}])
@pytest.mark.parametrize("model", [CCA(4), MVCCA(4, power=2)])
def test_confounds_equal_a_fit_to_residuals(model, reg):
    expected = residuals(VIEWS)
    reference = mvcca.CCA(4) if isinstance(model, CCA) else MVCCA(4, power=2)
    reference.set_params(reg=reg).fit(expected)
    model.set_params(reg=reg, confounds="z").fit(VIEWS)
    assert_same_fit(model, reference, VIEWS, expected)
    assert model.score(VIEWS) == pytest.approx(reference.score(expected), abs=1e-12)


@pytest.mark.parametrize("reg", [0.0, "auto", "oas"])
def test_without_centring_the_regression_has_no_intercept(reg):
    expected = {n: X - Z @ np.linalg.lstsq(Z, X, rcond=None)[0] for n, X in BLOCKS.items()}
    model = CCA(2, reg=reg, center=False, confounds="z").fit(VIEWS)
    reference = CCA(2, reg=reg, center=False).fit(expected)
    assert_same_fit(model, reference, VIEWS, Views(expected))


def test_three_views_given_a_fourth():
    views = VIEWS.add("w", _view(4, 3))
    model, expected = MVCCA(3, confounds="z").fit(views), residuals(views)
    reference = MVCCA(3).fit(expected)
    np.testing.assert_allclose(model.eigenvalues_, reference.eigenvalues_, atol=1e-10)
    for name, scores in model.transform(views).items():
        np.testing.assert_allclose(scores, reference.transform(expected)[name], atol=1e-10)


def test_batches_do_not_tell_the_fourth_moments_of_residuals():
    with pytest.raises(ValueError, match=r'reg="auto" looks at all rows twice.*reg="oas" or a'):
        CCA(2, reg="auto", confounds="z").partial_fit(VIEWS)


@pytest.mark.parametrize("reg", [0.1, "auto", "oas"])
def test_more_features_than_rows(reg):
    views = VIEWS.replace({"y": BLOCKS["y"], "z": Z}).add("x", _view(400, 4))
    model, expected = CCA(2, reg=reg, confounds="z").fit(views), residuals(views)
    assert_same_fit(model, CCA(2, reg=reg).fit(expected), views, expected)
    B = _coefficients(views["x"], Z)[1:]
    np.testing.assert_allclose(model.confound_coefficients_["x"], B, atol=1e-10)


def test_float32_rows_are_regressed_in_float64():
    single = VIEWS.replace({name: X.astype(np.float32) for name, X in VIEWS.items()})
    shift = {"x": 1e-3, "y": 1e-3, "z": 1.0}  # what confounds leave is a thousandth
    near = single.replace({n: (X * shift[n]).astype(np.float32) for n, X in single.items()})
    loud = near.replace(
        {n: X if n == "z" else (X + 1e1 * near["z"][:, :1]) for n, X in near.items()}
    )
    expected = residuals(loud.promoted(np.dtype(np.float64)))
    model = CCA(2, confounds="z").fit(loud)
    rho = CCA(2).fit(expected).canonical_correlations_
    np.testing.assert_allclose(model.canonical_correlations_, rho, atol=1e-8)


# ---- invariances ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "confounds",
    [
        (Z + 50) @ np.diag([1e6, 1.0, 1e-6]),
        Z @ rng.normal(size=(3, 3)),
        np.hstack([Z, Z[:, :1] - 2 * Z[:, 1:2], np.ones((N, 1)), np.zeros((N, 1))]),
    ],
    ids=["scaled", "rotated", "collinear"],
)
def test_only_the_span_of_confounds_matters(confounds):
    views = Views({**BLOCKS, "z": confounds})
    model, reference = CCA(2, confounds="z").fit(views), CCA(2).fit(residuals(VIEWS))
    assert_same_fit(model, reference, views, residuals(VIEWS))
    assert model.ranks_["z"] == 3


@pytest.mark.parametrize("confounds", [np.zeros((N, 1)), np.full((N, 2), 7.1)])
def test_constant_confounds_change_nothing(confounds):
    views = Views({**BLOCKS, "z": confounds})
    model, reference = CCA(3, confounds="z").fit(views), CCA(3).fit(BLOCKS)
    assert_same_fit(model, reference, views, Views(BLOCKS), atol=1e-12)
    found, expected = model.expected_correlations_, reference.expected_correlations_
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_confounds_explain_is_left_out(recwarn):
    X = np.hstack([BLOCKS["x"], Z[:, :1], BLOCKS["x"][:, :1] + Z[:, 1:2]])
    views = Views({"x": X, "y": BLOCKS["y"], "z": Z})
    model = CCA(2, confounds="z").fit(views)
    rho = CCA(2).fit(residuals(VIEWS)).canonical_correlations_
    np.testing.assert_allclose(model.canonical_correlations_, rho, atol=1e-10)
    assert model.ranks_ == {"x": 6, "y": 5, "z": 3}
    assert not recwarn


def test_expected_correlations_count_the_confounds():
    noise = np.random.default_rng(5).normal(size=(N, 100))
    views = Views({**BLOCKS, "z": np.hstack([Z, noise])})
    model, expected = CCA(2, confounds="z").fit(views), residuals(views)
    lost = (N - 103) / N  # as if so many rows had been seen
    reference = CCA(2).fit(expected, sample_weight=np.full(N, lost))
    np.testing.assert_allclose(
        model.expected_correlations_, reference.expected_correlations_, rtol=1e-9
    )
    assert (model.expected_correlations_ < CCA(2).fit(expected).expected_correlations_).all()


@pytest.mark.parametrize("weights", [rng.integers(0, 4, N), rng.uniform(0, 2, N)])
def test_weights_count_in_the_regression(weights):
    model = CCA(2, confounds="z").fit(VIEWS, sample_weight=weights)
    rows = {n: _less(X, Z, _coefficients(X, Z, weights)) for n, X in BLOCKS.items()}
    reference = CCA(2).fit(rows, sample_weight=weights)
    assert_same_fit(model, reference, VIEWS, Views(rows))


# ---- held-out rows see the coefficients of training rows -----------------------------------------


def _by_hand(train, test, **params):
    """A fit to residuals of training rows, and held-out rows less the training regression."""
    own, held_out = VIEWS[train], VIEWS[test]
    B = {n: _coefficients(own[n], own["z"]) for n in NAMES}
    model = CCA(**params).fit({n: _less(own[n], own["z"], B[n]) for n in NAMES})
    return model, Views({n: _less(held_out[n], held_out["z"], B[n]) for n in NAMES})


@pytest.mark.parametrize("scoring", [None, retrieval_scorer("mrr", weighting=None)])
@pytest.mark.parametrize("search", [None, GridSearchCV, FoldSearchCV])
def test_folds_regress_by_training_rows(search, scoring):
    cv, grid = KFold(3), {"reg": [0, 0.1, 1.0]}
    if search is None:
        found = [cross_val_score(CCA(2, confounds="z"), VIEWS, cv=cv, scoring=scoring)]
    else:
        results = search(CCA(2, confounds="z"), grid, cv=cv, scoring=scoring).fit(VIEWS).cv_results_
        found = np.stack([results[f"split{i}_test_score"] for i in range(3)], axis=1)
    score = scoring or (lambda model, rows: model.score(rows))
    for reg, values in zip(grid["reg"], found, strict=False):
        pairs = [_by_hand(*own, n_components=2, reg=reg) for own in cv.split(VIEWS)]
        expected = [score(model, held_out) for model, held_out in pairs]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)


def test_folds_that_choose_the_ridge_regress_by_training_rows():
    model = CCA(2, reg="cv", cv_goal="correlation", confounds="z").fit(VIEWS)
    codes = InnerFolds.of(Views(BLOCKS), None).codes
    for i, params in enumerate(model.cv_results_["params"]):
        setting = {"reg": params["reg"], "scale": dict(params["scale"])}
        for fold in range(5):
            own, rows = _by_hand(codes != fold, codes == fold, n_components=2, **setting)
            value = model.cv_results_[f"split{fold}_test_score"][i]
            assert value == pytest.approx(own.score(rows), abs=1e-10)


def test_equal_confounds_are_no_copies_of_an_object():
    site = np.repeat(np.eye(2), N // 2, axis=0)
    model = CCA(2, reg="cv", confounds="z").fit(Views({**BLOCKS, "z": site}))
    assert model.cv_results_["split4_test_score"].size  # five folds, not one per site


# ---- everything else that takes models -----------------------------------------------------------


def test_the_confounds_are_no_gallery():
    model = CCA(2, confounds="z").fit(VIEWS)
    expected = residuals(VIEWS)
    index = RetrievalIndex(model).add(VIEWS)
    scores, ids = index.search(VIEWS[:3].select(["y", "z"]), "x", k=4)
    plain = CCA(2).fit(expected)
    plain.expected_correlations_ = model.expected_correlations_
    others = RetrievalIndex(plain).add(expected).search(expected[:3].select(["y"]), "x", k=4)
    np.testing.assert_array_equal(ids, others[1])
    np.testing.assert_allclose(scores, others[0], atol=1e-10)
    table = mvcca.evaluate_retrieval(VIEWS, measures="mrr", estimator=model)
    assert table.mean()["mrr"] == pytest.approx(
        mvcca.evaluate_retrieval(expected, measures="mrr", estimator=plain).mean()["mrr"]
    )


def test_predictions_add_what_confounds_explain():
    model, expected = CCA(2, confounds="z").fit(VIEWS), residuals(VIEWS)
    found = model.predict(VIEWS.select(["x", "z"]))
    reference = CCA(2).fit(expected).predict(expected.select(["x"]))
    np.testing.assert_allclose(found, reference + BLOCKS["y"] - expected["y"], atol=1e-10)
    with pytest.raises(ValueError, match="Use predict"):
        model.predictor("x")


def test_loadings_are_of_the_views_that_are_correlated():
    model = CCA(2, confounds="z").fit(VIEWS)
    found = loadings(model, VIEWS)
    scores = model.transform(VIEWS)
    expected = np.corrcoef(BLOCKS["x"].T, scores["x"].T)[:6, 6:]
    assert found.keys() == {"x", "y"}
    np.testing.assert_allclose(found["x"], expected, atol=1e-12)


def test_containers_hold_the_confounds_where_fit_had_them():
    model = CCA(2, confounds="view1").fit([BLOCKS["x"], Z, BLOCKS["y"]])
    assert model.view_names_ == ("view0", "view2")
    first, second = model.transform([BLOCKS["x"], Z, BLOCKS["y"]])
    scores = CCA(2, confounds="z").fit(VIEWS).transform(VIEWS)
    np.testing.assert_allclose(first, scores["x"], atol=1e-12)
    np.testing.assert_allclose(second, scores["y"], atol=1e-12)


def test_objects_without_a_pair_do_not_count():
    index = np.tile(np.arange(N)[:, None], 3)
    index[250:, 1] = -1
    views = Views(dict(VIEWS.items()), index)
    model = CCA(2, confounds="z").fit(views)
    seen = CCA(2, confounds="z").fit(VIEWS[:250])
    np.testing.assert_allclose(model.transform(VIEWS)["x"], seen.transform(VIEWS)["x"], atol=1e-12)


def test_moments_given_confounds_are_those_of_residuals():
    found = given(Moments.of(VIEWS), "z")
    expected = residuals(VIEWS)
    rows = np.hstack([expected[name] for name in NAMES])
    np.testing.assert_allclose(found.covariance(), np.cov(rows.T), atol=1e-12)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (BLOCKS, r"confounds='z'\) needs the view 'z'.*\['x', 'y'\]"),
        ({**BLOCKS, "z": rng.normal(size=(N, N))}, "299 independent columns for 300 rows"),
        ({**BLOCKS, "y": Z[:, :2], "z": Z}, "explain view 'y' completely"),
        ({**BLOCKS, "z": Z * np.nan}, "'z'.*NaN"),
        ({"x": BLOCKS["x"], "z": Z}, "at least 2 views, got 1"),
        ({**BLOCKS, "w": _view(2, 7), "z": Z}, r"takes 2 views, got 3: \['x', 'y', 'w'\]"),
        (
            Views({**BLOCKS, "z": Z[:200]}, np.where(np.arange(N) < 200, np.arange(N), -1)[:, None]
                  * [0, 0, 1] + np.arange(N)[:, None] * [1, 1, 0]),
            "missing for 100 of 300 objects",
        ),
    ],
)  # fmt: skip
def test_confounds_that_cannot_be_removed(views, message):
    with pytest.raises(ValueError, match=message):
        CCA(confounds="z").fit(views)


def test_lone_matrices_have_no_confounds():
    with pytest.raises(ValueError, match="pass Views"):
        CCA(confounds="z").fit(*BLOCKS.values())


def test_partly_paired_views_are_refused():
    views = VIEWS.add("w", _view(4, 3))
    index = np.tile(np.arange(N)[:, None], 4)
    index[250:, 1] = -1
    with pytest.raises(ValueError, match="seen in all views"):
        MVCCA(confounds="z").fit(Views(dict(views.items()), index))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"x": BLOCKS["x"]}, "needs the view 'z'"),
        ({"x": BLOCKS["x"][:5], "z": Z}, "same number of rows, got x: 5, z: 300"),
        (Views.unpaired({"x": BLOCKS["x"], "z": Z}), "missing for 300 of 600 objects"),
    ],
)
def test_queries_without_their_confounds(rows, message):
    model = CCA(confounds="z").fit(VIEWS)
    with pytest.raises(ValueError, match=message):
        model.transform(rows)


# ---- steps of pipelines --------------------------------------------------------------------------


def test_deconfounded_rows_are_residuals_by_training_coefficients():
    train, test = VIEWS[:200], VIEWS[200:]
    step = Deconfound("z").fit(train)
    for rows in (train, test):
        found = step.transform(rows)
        assert found.names == NAMES
        for name in NAMES:
            expected = _less(rows[name], rows["z"], _coefficients(train[name], train["z"]))
            np.testing.assert_allclose(found[name], expected, atol=1e-10)
    assert step.rank_ == 3


def test_deconfound_before_cca_is_cca_with_confounds():
    model = make_pipeline(Deconfound("z"), CCA(2)).fit(VIEWS[:200])
    scores = model.transform(VIEWS[200:])
    expected = CCA(2, confounds="z").fit(VIEWS[:200])
    for name in NAMES:
        np.testing.assert_allclose(scores[name], expected.transform(VIEWS[200:])[name], atol=1e-10)
        np.testing.assert_allclose(
            model[0].coefficients_[name], expected.confound_coefficients_[name], atol=1e-10
        )


def _frame(_):
    pd = pytest.importorskip("pandas")
    site = np.array(list("ABCD"))[np.arange(N) % 4]
    return pd.DataFrame({"age": Z[:, 0], "site": pd.Categorical(site)})


def _dask(X):
    return pytest.importorskip("dask.array").from_array(X, chunks=(77, -1))


_INDICATORS = np.eye(4)[np.arange(N) % 4]


@pytest.mark.parametrize(
    "confounds",
    [
        lambda Z: Z,
        lambda Z: Z[:, :1],
        lambda Z: 0 * Z + 1,
        lambda _: _INDICATORS,
        lambda _: sp.csr_array(_INDICATORS),
        _frame,
        _dask,
        lambda _: np.random.default_rng(3).normal(size=(N, N // 2)),
    ],
    ids=["columns", "column", "constant", "collinear", "sparse", "frame", "Dask", "many"],
)
@pytest.mark.parametrize("estimator", [CCA(2), CCA(2, reg=0.1), MVCCA(2, reg="auto"), CCA(None)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataDimensionalityWarning")
def test_residuals_count_for_fewer_rows_in_the_next_step(estimator, confounds):
    views = Views({**BLOCKS, "z": confounds(Z)})
    step = make_pipeline(Deconfound("z"), clone(estimator)).fit(views)[-1]
    expected = clone(estimator).set_params(confounds="z").fit(views)
    for name in ("expected_correlations_", "expected_correlations_by_pair_", "eigenvalues_"):
        np.testing.assert_allclose(getattr(step, name), getattr(expected, name), atol=1e-12)
    for name in NAMES:
        own, other = step.expected_deviations_[name], expected.expected_deviations_[name]
        np.testing.assert_allclose(own, other, atol=1e-12)
        np.testing.assert_allclose(step.weights_[name], expected.weights_[name], atol=1e-10)


@pytest.mark.parametrize(("n_rows", "reg"), [(14, 0.1), (14, 0), (24, 0)])
def test_few_rows_of_residuals_support_and_warn_of_what_confounds_leave(n_rows, reg):
    draw, widths = np.random.default_rng(6), [("x", 5), ("y", 5), ("z", 8)]
    views = Views({name: draw.normal(size=(n_rows, d)) for name, d in widths})
    found = []
    for model in (
        make_pipeline(Deconfound("z"), CCA(None, reg=reg)),
        CCA(None, confounds="z", reg=reg),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = model.fit(views)
        fitted = fitted[-1] if hasattr(fitted, "steps") else fitted
        found.append((fitted.n_components_, [str(one.message) for one in caught]))
    assert found[0] == found[1]
    assert reg or found[0][1]


def test_residuals_count_for_fewer_rows_in_products_too():
    draw = np.random.default_rng(5)
    views = {n: SHARED @ draw.normal(size=(2, d)) for n, d in (("x", 60), ("y", 50))}
    views = {n: X + 9 * draw.normal(size=X.shape) for n, X in views.items()}
    views = Views({**views, "z": draw.normal(size=(N, 100))})
    expected = CCA(2, reg=0.5, confounds="z").fit(views).expected_correlations_
    found = Deconfound("z").fit_transform(views)
    rows = Rows(found, None, n_components=2, reg=dict.fromkeys(NAMES, 0.5))
    own, plain = (
        ProductPath(replace(rows, views=own)).solve(rows.reg, 2).expected.mean
        for own in (found, Views(dict(found.items())))
    )
    assert (np.abs(own - expected) < 0.2 * (plain - own)).all()


def test_methods_that_learn_from_labels_expect_less_of_residuals():
    found, y = Deconfound("z").fit_transform(VIEWS), (SHARED[:, 0] > 0).astype(int)
    model, plain = (MVMLCCA(1).fit(views, y) for views in (found, Views(dict(found.items()))))
    assert (model.expected_correlations_ < plain.expected_correlations_).all()


def _two_steps(views):
    """A step that removes age from the views and the site, and one that then removes the site."""
    return Deconfound("site").fit_transform(Deconfound("age").fit_transform(views))


@pytest.mark.parametrize(
    "residuals_of",
    [
        lambda views: Deconfound("z").fit_transform(dict(views.items())),
        lambda views: Deconfound("z").fit_transform(views).in_memory().promoted(np.float64),
        lambda views: pickle.loads(pickle.dumps(Deconfound("z").fit_transform(views))),
        lambda views: PerView(PCA()).fit_transform(Deconfound("z").fit_transform(views)),
        lambda views: Deconfound("z", drop=False).fit_transform(views).select(NAMES),
        lambda views: Views.concatenate(
            [(found := Deconfound("z").fit_transform(views))[:100], found[100:]]
        ),
        # Residuals of the same confounds are what they were.
        lambda views: Deconfound("z").fit_transform(
            Deconfound("z", drop=False).fit_transform(views)
        ),
        lambda _: _two_steps(Views({**BLOCKS, "age": Z[:, :1], "site": Z[:, 1:]})),
    ],
    ids=[
        "mapping",
        "in_memory",
        "pickle",
        "PerView",
        "select",
        "concatenate",
        "again",
        "two_steps",
    ],
)
def test_residuals_stay_residuals(residuals_of):
    found = CCA(2).fit(residuals_of(VIEWS)).expected_correlations_
    expected = CCA(2, confounds="z").fit(VIEWS).expected_correlations_
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_share_of_residuals_lacks_a_share_of_the_degrees_of_freedom():
    found = Deconfound("z").fit_transform(VIEWS)
    assert dict(found.removed) == {"x": (3, N), "y": (3, N)}
    assert found[: N // 3].add("w", Z[: N // 3]).removed == found.removed
    assert n_lost(found, NAMES, N // 3) == 1
    assert n_lost(found, ["w"], N) == 0
    both = Views.concatenate([found, Views(BLOCKS)])
    assert n_lost(both, NAMES, 2 * N) == 3


def test_batches_of_residuals_count_for_as_many_rows_as_all_of_them():
    found = Deconfound("z").fit_transform(VIEWS)
    model = CCA(2).partial_fit(found[:1]).partial_fit(found[1:200]).partial_fit(found[200:])
    expected = CCA(2).fit(found).expected_correlations_
    np.testing.assert_allclose(model.expected_correlations_, expected, atol=1e-12)


def test_folds_of_a_pipeline_are_those_of_confounds():
    grid = {"reg": [0.01, 1.0, 10.0]}
    search = GridSearchCV(CCA(2, confounds="z"), grid, cv=3).fit(VIEWS)
    pipeline = make_pipeline(Deconfound("z"), CCA(2))
    steps = GridSearchCV(pipeline, {"cca__reg": grid["reg"]}, cv=3).fit(VIEWS)
    for key in ("mean_test_score", "std_test_score"):
        np.testing.assert_allclose(steps.cv_results_[key], search.cv_results_[key], atol=1e-12)
    found, expected = steps.best_estimator_[-1], search.best_estimator_
    assert found.reg == expected.reg
    np.testing.assert_allclose(
        found.expected_correlations_, expected.expected_correlations_, atol=1e-12
    )


@pytest.mark.parametrize(
    "result", [permutation_test, correlation_intervals, parametric_tests, study]
)
def test_tests_and_intervals_ask_for_the_rows_before_residuals(result):
    left = Deconfound("z", drop=False).fit_transform(VIEWS)
    options = {} if result is parametric_tests else {"random_state": 0}
    if result in (permutation_test, study):
        options["n_permutations"] = 19
    with pytest.raises(
        ValueError, match=r"'x' .rank 3., 'y' .rank 3..*before Deconfound, and conf"
    ):
        result(left.select(NAMES), **options)
    if result is not study:  # which takes confounds by themselves
        found = result(left, confounds="z", **options).correlations
        expected = result(VIEWS, confounds="z", **options).correlations
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_squares_of_confounds_are_removed_too():
    views = Views({name: X + 5 * Z[:, :1] ** 2 for name, X in BLOCKS.items()} | {"z": Z})
    found = Deconfound("z", degree="squares").fit(views[:200]).transform(views)
    design = np.hstack([Z, Z**2])
    for name in NAMES:
        B = _coefficients(views[name][:200], design[:200])
        np.testing.assert_allclose(found[name], _less(views[name], design, B), atol=1e-9)


def test_products_of_confounds_are_removed_too():
    i, j = np.triu_indices(Z.shape[1])
    design = np.hstack([Z, Z[:, i] * Z[:, j]])
    views = Views({name: X + 5 * Z[:, :1] * Z[:, 1:2] for name, X in BLOCKS.items()} | {"z": Z})
    found = Deconfound("z", degree=2).fit(views[:200]).transform(views)
    for name in NAMES:
        B = _coefficients(views[name][:200], design[:200])
        np.testing.assert_allclose(found[name], _less(views[name], design, B), atol=1e-9)
    with pytest.raises(ValueError, match="'degree' parameter"):
        Deconfound("z", degree=3).fit(views)


def test_kept_confounds_are_those_of_the_rows():
    found = Deconfound("z", drop=False).fit_transform(VIEWS)
    assert found.names == VIEWS.names
    np.testing.assert_array_equal(found["z"], Z)


def test_deconfound_counts_weights():
    weights = rng.integers(0, 4, N)
    repeated = Deconfound("z").fit(VIEWS[np.repeat(np.arange(N), weights)])
    weighted = Deconfound("z").fit(VIEWS, sample_weight=weights)
    for name in NAMES:
        np.testing.assert_allclose(
            weighted.coefficients_[name], repeated.coefficients_[name], atol=1e-12
        )
        np.testing.assert_allclose(weighted.means_[name], repeated.means_[name], atol=1e-12)


def test_each_view_is_regressed_over_its_own_objects():
    index = np.tile(np.arange(N)[:, None], 3)
    index[200:, 0] = index[:100, 1] = -1
    views = Views(dict(VIEWS.items()), index)
    found = Deconfound("z").fit_transform(views)
    np.testing.assert_allclose(found["x"], residuals(VIEWS[:200])["x"], atol=1e-10)
    np.testing.assert_allclose(found["y"], residuals(VIEWS[100:])["y"], atol=1e-10)


@pytest.mark.parametrize("form", ["rows", "weights", "squares", "blocks", "Dask", "float32"])
def test_columns_with_holes_are_regressed_over_the_rows_that_have_them(form):
    draw = np.random.default_rng(3)
    holes = {n: np.where(draw.random(X.shape) < 0.2, np.nan, X) for n, X in BLOCKS.items()}
    holes["x"][:, 0] = BLOCKS["x"][:, 0]  # a complete column among others
    views, weights = Views({**holes, "z": Z}), None
    if form == "weights":
        weights = draw.integers(0, 4, N)
    if form == "Dask":
        da = pytest.importorskip("dask.array")
        views = Views({n: da.from_array(X, chunks=(77, -1)) for n, X in views.items()})
    if form == "float32":
        views = Views({n: X.astype(np.float32) for n, X in views.items()})
    step = Deconfound("z", degree="squares" if form == "squares" else 1)
    with mvcca.config_context(block_rows=7 if form == "blocks" else None):
        found = step.fit(views, sample_weight=weights).transform(views).in_memory()
    design = np.hstack([Z, Z**2]) if form == "squares" else Z
    for name, X in holes.items():
        for j, column in enumerate(X.T):
            own = ~np.isnan(column)
            w = None if weights is None else weights[own]
            B = _coefficients(column[own, None], design[own], w)
            expected = np.where(own, _less(column[:, None], design, B)[:, 0], np.nan)
            atol = 1e-4 if form == "float32" else 1e-9
            np.testing.assert_allclose(found[name][:, j], expected, atol=atol)


def test_lazy_rows_stay_lazy():
    da = pytest.importorskip("dask.array")
    lazy = Views({n: da.from_array(X, chunks=(77, -1)) for n, X in VIEWS.items()})
    found = Deconfound("z").fit(lazy).transform(lazy)
    assert found.is_lazy
    np.testing.assert_allclose(found.in_memory()["x"], residuals(VIEWS)["x"], atol=1e-10)


def test_steps_keep_frames_and_their_columns():
    pd = pytest.importorskip("pandas")
    frames = {n: pd.DataFrame(X).add_prefix(n) for n, X in VIEWS.items()}
    step = Deconfound("z").set_output(transform="pandas").fit(frames)
    found = step.transform(frames)
    assert list(found["y"].columns) == ["y0", "y1", "y2", "y3", "y4"]
    assert list(step.get_feature_names_out()[[0, -1]]) == ["x__x0", "y__y4"]
    with pytest.raises(ValueError, match="feature names"):
        step.transform({"x": frames["x"].add_suffix("?"), "z": frames["z"]})


def test_saved_steps_remove_the_same(tmp_path):
    model = make_pipeline(PerView(RankGaussian()), Deconfound("z", degree="squares"), CCA(2))
    model.fit(VIEWS)
    mvcca.save(model, tmp_path / "model.mvcca")
    loaded = mvcca.load(tmp_path / "model.mvcca")
    np.testing.assert_array_equal(loaded.transform(VIEWS)["x"], model.transform(VIEWS)["x"])
    found, expected = loaded[:-1].transform(VIEWS), model[:-1].transform(VIEWS)
    assert dict(found.removed) == dict(expected.removed) == {"x": (6, N), "y": (6, N)}
    del loaded[1]._removed  # as in files of older versions
    assert not loaded[:-1].transform(VIEWS).removed


def test_scorers_of_pipelines_rank_no_confounds():
    model = make_pipeline(Deconfound("z"), mvcca.PLS(2)).fit(VIEWS)
    plain = mvcca.PLS(2).fit(residuals(VIEWS))
    score = retrieval_scorer("mrr")
    assert score(model, VIEWS) == pytest.approx(score(plain, residuals(VIEWS)), abs=1e-6)


def _seen_in(n_rows):
    """The views, with a column that so few rows have."""
    X = BLOCKS["x"].copy()
    X[n_rows:, 2] = np.nan
    return {**BLOCKS, "x": X}


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (BLOCKS, r"needs the view 'z' beside the others"),
        ({**BLOCKS, "x": sp.csr_array(BLOCKS["x"]), "z": Z}, "'x' is sparse.*CCA"),
        ({**BLOCKS, "z": rng.normal(size=(N, N))}, "explain completely"),
        ({**BLOCKS, "z": Z * np.nan}, "'z'.*NaN"),
        ({**_seen_in(4), "z": Z}, "View 'x', column 2: .*3 independent columns for 4 rows"),
        ({**_seen_in(1), "z": Z}, "View 'x': column 2 is missing in all rows but 1"),
    ],
)
def test_deconfound_refuses(views, message):
    with pytest.raises(ValueError, match=message):
        Deconfound("z").fit(views)


def test_deconfound_takes_the_fitted_views():
    step = Deconfound("z").fit(VIEWS)
    with pytest.raises(ValueError, match="needs the view 'z'"):
        step.transform(BLOCKS)
    with pytest.raises(ValueError, match="Unknown view 'w'"):
        step.transform({"w": BLOCKS["x"], "z": Z})
    with pytest.raises(ValueError, match="'x' has 5 features"):
        step.transform({"x": BLOCKS["y"], "z": Z})
    with pytest.raises(TypeError, match="Expected Views"):
        step.fit(BLOCKS["x"])


# ---- rounding is no direction --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_columns_that_confounds_explain_become_zero(dtype, offset, missing, weighted):
    """Rounding that is left of them would be a variable once it is scaled to unit variance."""
    rng = np.random.default_rng(0)
    age = rng.standard_normal((200, 1))
    X = np.hstack([rng.standard_normal((200, 2)), 3 * age + offset, age**2, np.full((200, 1), 0.1)])
    X[:, 1] *= 1e-6  # small, and not explained
    if missing:
        X[::7, 1:3] = np.nan
    views = {"brain": X.astype(dtype), "age": age.astype(dtype)}
    weights = rng.integers(1, 4, 200) if weighted else None
    model = Deconfound("age", degree=2).fit(views, sample_weight=weights)
    found = model.transform(views)["brain"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(X))
    assert (np.nan_to_num(found[:, 2:]) == 0).all()
    assert (np.nanstd(found[:, :2], axis=0) > [0.5, 5e-7]).all()
    # The same for a few rows, and new rows that differ from the relation keep the difference.
    np.testing.assert_array_equal(
        model.transform({n: A[:3] for n, A in views.items()})["brain"][:, 2:], found[:3, 2:]
    )
    views["brain"][:, 2] += 1
    assert np.nanmin(model.transform(views)["brain"][:, 2]) > 0.9


@pytest.mark.parametrize("n", range(30, 150, 4))
@pytest.mark.parametrize(
    "values", [(0.1, 0.3), (-1, 1), (1e4, 1e4 + 1 / 3), (1e8 + 0.1, 1e8 + 0.3)]
)
def test_squares_of_a_balanced_confound_are_constant(n, values):
    rng = np.random.default_rng(n)
    views = {"brain": rng.standard_normal((n, 3)), "sex": np.resize(values, n)[:, None]}
    squares = Deconfound("sex", degree=2).fit(views)
    plain = Deconfound("sex").fit(views)
    assert squares.rank_ == plain.rank_ == 1
    found, expected = squares.transform(views)["brain"], plain.transform(views)["brain"]
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_without_explained_columns_residuals_are_what_they_were():
    rng = np.random.default_rng(1)
    views = {"brain": rng.standard_normal((90, 4)), "age": rng.standard_normal((90, 2))}
    model = Deconfound("age").fit(views)
    assert not model._rounding
    Z = views["age"] - model.means_["age"]
    expected = views["brain"] - model.means_["brain"] - Z @ model.coefficients_["brain"]
    np.testing.assert_allclose(model.transform(views)["brain"], expected, atol=1e-14)


def test_a_model_with_explained_columns_is_saved(tmp_path):
    rng = np.random.default_rng(2)
    age = rng.standard_normal((90, 1))
    views = {"brain": np.hstack([rng.standard_normal((90, 2)), age]), "age": age}
    model = Deconfound("age").fit(views)
    save(model, tmp_path / "model.mvcca")
    again = load(tmp_path / "model.mvcca").transform(views)["brain"]
    np.testing.assert_array_equal(again, model.transform(views)["brain"])
    assert (again[:, 2] == 0).all()


@pytest.mark.parametrize("n", [30, 90, 134])
def test_a_column_that_varies_by_rounding_is_no_direction_of_a_view(n):
    """Also where other columns have directions of the same length once it is scaled."""
    rng = np.random.default_rng(n)
    square = (np.where(np.arange(n) % 2, 0.1, 0.3) - 0.2) ** 2
    assert len(set(square)) == 2
    X, Y = rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
    with_square = np.column_stack([X, square])
    for how in (
        lambda A: CCA(None).fit(A, Y).canonical_correlations_,
        lambda A: permutation_test(A, Y, n_permutations=19).correlations,
        lambda A: correlation_intervals(A, Y, cv=2, random_state=0).correlations,
    ):
        with warnings.catch_warnings(action="ignore"):
            np.testing.assert_allclose(how(with_square), how(X), atol=1e-8)


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 41.0)])
def test_columns_with_missing_cells_are_regressed_by_the_moments_of_their_rows(
    weights, monkeypatch
):
    rng = np.random.default_rng(0)
    Z = rng.normal([1e3, -5], size=(40, 2))
    X = rng.normal(size=(40, 3))
    X[:12, 0] = X[25:, 1] = np.nan
    found, whitener = [], confounds_module._whitener

    def recorded(moments, name):
        found.append(moments)
        return whitener(moments, name)

    monkeypatch.setattr(confounds_module, "_whitener", recorded)
    confounds_module.regression_on(Views({"x": X, "z": Z}), "z", weights)
    own = found[-3:]  # one for each column of x
    for column, moments in zip(X.T, own, strict=True):
        seen = ~np.isnan(column)
        w = np.ones(seen.sum()) if weights is None else weights[seen]
        mean = np.average(Z[seen], axis=0, weights=w)
        scatter = (w[:, None] * (Z[seen] - mean)).T @ (Z[seen] - mean)
        np.testing.assert_allclose(moments.mean()["z"], mean, rtol=1e-12)
        np.testing.assert_allclose(moments.scatter, scatter, rtol=1e-6)
        assert moments.counts == pytest.approx(w.sum())
