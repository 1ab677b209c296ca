"""The parameter `scale`: units of columns do not matter where views are standardized."""

from __future__ import annotations

import dask.array as da
import estimators
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mvcca
from mvcca import (
    CCA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    AffineMap,
    FoldSearchCV,
    Procrustes,
    Views,
)
from mvcca.inspection import permutation_test, stability
from mvcca.linear._rgcca import BlockEstimator
from mvcca.model_selection import Trials
from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.model_selection.goals import Value
from mvcca.model_selection.sources import FromProducts, FromStatistic
from mvcca.model_selection.spaces import Scales
from mvcca.persistence import _estimators
from mvcca.statistics import CellMoments, Moments

N = 150
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 3))
CLASSES = np.arange(N) % 5
MANY = np.arange(N) % 15  # classes, more than features of a view


def view(width: int) -> np.ndarray:
    return SHARED @ RNG.normal(size=(3, width)) + RNG.normal(size=(N, width))


PLAIN = {"a": view(7), "b": view(5)}
UNITS = {
    n: 10 ** RNG.uniform(-3, 3, X.shape[1]) * RNG.choice([-1, 1], X.shape[1])
    for n, X in PLAIN.items()
}
SHIFTS = {n: RNG.normal(size=X.shape[1]) * np.abs(UNITS[n]) for n, X in PLAIN.items()}
ORDERS = {n: RNG.permutation(X.shape[1]) for n, X in PLAIN.items()}
MIXED = {n: X * UNITS[n] + SHIFTS[n] for n, X in PLAIN.items()}
LINEAR = [CCA, MVCCA, GCCA, MLCCA, MVMLCCA]
NYSTROEM = KCCA(3, reg=0.1, approximation="nystroem", n_landmarks=40, random_state=0)
OF_ROWS = [  # that do not pose a problem of covariances
    KCCA(3, reg=0.1),
    NYSTROEM,
    KCCA(3, reg=0.1, approximation="fourier", n_landmarks=40, random_state=0),
    NCCA(3),
    LGCFL(),
    JRL(n_neighbors=10),
    CMOLRS(3, n_epochs=2, random_state=0),
    AffineMap(),
    AffineMap(2, reg=0.0),
]


def standardized(blocks):
    return {n: (X - X.mean(0)) / X.std(0, ddof=1) for n, X in blocks.items()}


def same_scores(model, views, other, others, tol=1e-6):
    for name, S in model.transform(views).items():
        T = other.transform(others)[name]
        signs = np.sign(np.sum(S * T, axis=0))
        assert_allclose(S, T * signs, atol=tol * np.abs(T).max())


def draws_by_column(estimator):
    """Whether numbers are drawn for each column, of which order and signs decide which is whose."""
    return isinstance(estimator, CMOLRS) or getattr(estimator, "approximation", "") == "fourier"


SCALABLE = [
    own
    for own in estimators.EVERYTHING
    if "scale" in own.get_params()
    and not isinstance(own, Procrustes)  # of whole views
    and not estimators.confounds_of(own)
]


@pytest.mark.parametrize("estimator", SCALABLE, ids=repr)
def test_units_signs_order_and_shifts_of_standardized_columns_change_nothing(estimator):
    views = {n: X[:, ORDERS[n]] for n, X in MIXED.items()}
    if draws_by_column(estimator):
        views = {n: X * np.abs(UNITS[n]) for n, X in PLAIN.items()}
    elif not getattr(estimator, "center", True):
        views = {n: (X * UNITS[n])[:, ORDERS[n]] for n, X in PLAIN.items()}
    first, second = (
        clone(estimator).set_params(scale=True).fit(own, MANY) for own in (PLAIN, views)
    )
    same_scores(first, PLAIN, second, views)
    if not isinstance(estimator, PLS | BlockEstimator):
        is_plain = estimator.get_params().get("reg", 1) == 0 and not isinstance(
            estimator, AffineMap
        )
        assert set(first.scale_.values()) == {not is_plain}


@pytest.mark.parametrize("estimator", OF_ROWS, ids=repr)
@pytest.mark.parametrize("scale", [{"a": True, "b": False}, "auto"])
def test_methods_of_rows_learn_from_standardized_columns(estimator, scale):
    views, blocks = {"a": MIXED["a"], "b": PLAIN["b"]}, {**standardized(PLAIN), "b": PLAIN["b"]}
    found, expected = (clone(estimator).set_params(scale=own) for own in (scale, False))
    found.fit(views, CLASSES)
    expected.fit(blocks, CLASSES)
    assert found.scale_ == {"a": True, "b": False}
    assert expected.scale_ == {"a": False, "b": False}
    if draws_by_column(estimator):
        return
    same_scores(found, views, expected, blocks)
    if isinstance(estimator, AffineMap):
        predicted = found.predict({"a": views["a"]})
        assert_allclose(predicted, expected.predict({"a": blocks["a"]}), rtol=1e-8)
        found.set_params(scale=True).fit(views)
        if estimator.n_components is None:  # else columns of the target have other weights
            assert_allclose(found.predict({"a": views["a"]}), predicted, rtol=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        clone(NYSTROEM).set_params(reg="cv", gamma="median", n_landmarks=15),
        NCCA(3, bandwidth="cv"),
        AffineMap(reg="cv"),
        AffineMap(2, reg="cv"),
        AffineMap(scale="cv"),
        AffineMap(2, reg=0.1, scale="cv"),
        CMOLRS("cv", n_epochs=1, random_state=0),
        LGCFL(scale="cv"),
        JRL(scale="cv", n_neighbors=10),
    ],
    ids=repr,
)
def test_folds_choose_scales_of_methods_of_rows(estimator):
    views = {"a": MIXED["a"], "b": PLAIN["b"]}
    model = clone(estimator).fit(views, CLASSES)
    table = model.cv_results_
    assert {tuple(own.values()) for own in table["param_scale"]} == {
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    }
    of_chosen = [own == model.scale_ for own in table["param_scale"]]
    best = table["mean_test_score"].max()
    assert table["mean_test_score"][of_chosen].max() >= best - 0.05  # if components take a margin
    assert model.scale_["a"] or isinstance(estimator, CMOLRS | JRL)


@pytest.mark.parametrize("method", LINEAR)
@pytest.mark.parametrize("reg", [0.1, 1e-3, "auto"])
def test_standardizing_equals_a_fit_to_standardized_columns(method, reg):
    blocks = standardized(PLAIN)
    expected = method(3, reg=reg, scale=False).fit(blocks, CLASSES)
    found = method(3, reg=reg, scale=True).fit(MIXED, CLASSES)
    assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-8)
    same_scores(found, MIXED, expected, blocks)
    assert found.scale_ == {"a": True, "b": True}
    assert expected.scale_ == {"a": False, "b": False}


@pytest.mark.parametrize(
    ("model", "goal"),
    [
        *((own(None, reg="cv"), "object") for own in LINEAR),
        (CCA(None, reg="cv"), "class"),
        (MLCCA(None, reg="cv"), "class"),
        (clone(NYSTROEM).set_params(reg="cv", gamma="median", n_landmarks=15), "object"),
        (NCCA(3, bandwidth="cv"), "object"),
        (LGCFL("cv"), "class"),
        (AffineMap(reg="cv"), "object"),
    ],
    ids=repr,
)
def test_folds_of_standardized_columns_do_not_depend_on_units(model, goal):
    views = {n: X[:, ORDERS[n]] for n, X in MIXED.items()}
    first, second = (
        clone(model).set_params(cv_goal=goal, scale=True).fit(own, CLASSES)
        for own in (PLAIN, views)
    )
    for key, values in first.cv_results_.items():
        if key.endswith("score"):
            assert_allclose(values, second.cv_results_[key], atol=1e-6)
    assert list(first.cv_results_["params"]) == list(second.cv_results_["params"])
    assert first.ranking_ == second.ranking_
    same_scores(first, PLAIN, second, views)


@pytest.mark.parametrize("method", [CCA, MVMLCCA])
def test_folds_choose_scales_by_view(method):
    views = {"a": MIXED["a"], "b": PLAIN["b"]}
    model = method(None, reg="cv").fit(views, CLASSES)
    table = model.cv_results_
    tried = {tuple(own.values()) for own in table["param_scale"]}
    assert tried == {(False, False), (False, True), (True, False), (True, True)}
    assert model.scale_["a"]
    best = table["mean_test_score"].max()
    of_chosen = [own == model.scale_ for own in table["param_scale"]]
    assert table["mean_test_score"][of_chosen].max() == best
    again = method(None, reg=model.reg_, scale=model.scale_).fit(views, CLASSES)
    same_scores(model, views, again, views, 1e-9)
    always = method(None, reg="cv", scale=True).fit(views, CLASSES).cv_results_
    values = dict(zip(map(_key, always["params"]), always["mean_test_score"], strict=True))
    both = [all(own.values()) for own in table["param_scale"]]
    for params, value in zip(table["params"], table["mean_test_score"], strict=True):
        if all(params["scale"].values()):
            assert value == pytest.approx(values[_key(params)], abs=1e-9)
    assert any(both)


def _key(params):
    return params["reg"], params["ranking"], params["n_components"]


def test_of_three_views_all_none_and_flipped_ones_are_tried():
    views = {"a": MIXED["a"], "b": PLAIN["b"], "c": view(4)}
    model = MVCCA(None, reg="cv").fit(views)
    assert model.scale_["a"]
    assert len({tuple(own.values()) for own in model.cv_results_["param_scale"]}) == 5


def test_of_equally_good_scales_the_fewest_win():
    """Columns of two values, of which all deviations are 1."""
    signs = {n: np.sign(X - np.median(X, axis=0)) for n, X in PLAIN.items()}
    twice = {n: np.vstack([X, -X]) for n, X in signs.items()}
    scalings = Scales.first(["a", "b"])
    assert [sum(own.values()) for own in scalings] == [2, 1, 1, 0]
    trials = Trials("object", [{"scale": own, "reg": 0.1} for own in scalings])
    for place in range(4):
        trials.add(0, Value(0.5, 0.5), place)
    assert not any(trials.chosen["scale"].values())
    assert CCA(2, reg=0.1).fit(twice).scale_ == {"a": False, "b": False}


@pytest.mark.parametrize("scale", [False, True, "auto", {"a": True, "b": False}])
def test_without_a_ridge_scales_change_nothing(scale):
    expected = CCA(4, scale=False).fit(PLAIN).canonical_correlations_
    assert_allclose(CCA(4, scale=scale).fit(MIXED).canonical_correlations_, expected, rtol=1e-9)


def batches(views):
    return [{n: X[rows] for n, X in views.items()} for rows in np.array_split(np.arange(N), 4)]


@pytest.mark.parametrize("scale", [True, "auto", {"a": True, "b": False}])
@pytest.mark.parametrize(
    "model",
    [
        CCA(3, reg=0.1),
        CCA(3, reg=0.1, center=False),
        CCA(2, reg=0.1, confounds="z"),
        CCA(3, reg=0.1, missing="pairwise"),
        CCA(3, reg=0.1, missing="em"),
        GCCA(3, reg=0.1),
        MLCCA(3, reg=0.1),
        MVMLCCA(3, reg=0.1),
        LGCFL(),
        AffineMap(),
        AffineMap(2),
    ],
    ids=repr,
)
def test_batches_and_moments_give_what_a_fit_gives(model, scale):
    views = {"a": MIXED["a"], "b": PLAIN["b"]}
    if model.confounds:
        views["z"] = view(2)
    if model.missing != "error":
        views["a"] = np.where(RNG.random(views["a"].shape) < 0.05, np.nan, views["a"])
    whole, parts = (clone(model).set_params(scale=scale) for _ in range(2))
    whole.fit(views, CLASSES)
    of_parts = np.array_split(CLASSES, 4)
    for batch, y in zip(batches(views), of_parts, strict=True):
        parts.partial_fit(batch, y)
    assert parts.scale_ == whole.scale_
    assert whole.scale_["a"]
    for name, W in whole.weights_.items():
        assert_allclose(parts.weights_[name], W, atol=1e-7 * np.abs(W).max())
    if model.requires.labels or model.missing == "em":
        return
    kind = CellMoments if model.missing == "pairwise" else Moments
    moments = clone(whole).fit_statistic(kind.of(Views(views)))
    for name, W in whole.weights_.items():
        assert_allclose(moments.weights_[name], W, atol=1e-7 * np.abs(W).max())


def test_confounds_leave_residuals_whose_deviations_count():
    z = view(2)
    views = {"a": MIXED["a"], "b": MIXED["b"]}
    design = np.c_[np.ones(N), z]
    left = {n: X - design @ np.linalg.lstsq(design, X, rcond=None)[0] for n, X in views.items()}
    expected = CCA(2, reg=0.1, scale=True).fit(left)
    found = CCA(2, reg=0.1, scale=True, confounds="z").fit({**views, "z": z})
    assert_allclose(found.canonical_correlations_, expected.canonical_correlations_, rtol=1e-8)


STORED = {
    "csr": lambda X: sp.csr_array(np.where(np.abs(X) > np.median(np.abs(X)), X, 0)),
    "dask": lambda X: da.from_array(X, chunks=(40, -1)),
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("model", [CCA(3, reg=0.1, scale=True), CCA(3, reg="cv")], ids=repr)
def test_rows_of_any_storage_are_standardized(storage, model):
    views = {n: STORED[storage](X) for n, X in MIXED.items()}
    found = clone(model).fit(views)
    dense = {
        n: X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float) for n, X in views.items()
    }
    expected = clone(model).fit(dense)
    assert found.scale_ == expected.scale_ == {"a": True, "b": True}
    tol = 1e-3 if storage == "float32" else 1e-8
    assert_allclose(found.canonical_correlations_, expected.canonical_correlations_, rtol=tol)


@pytest.mark.parametrize("reg", [0.1, "cv"])
@pytest.mark.parametrize("method", [CCA, MLCCA, MVMLCCA])
def test_wide_views_are_standardized(method, reg):
    wide = SHARED[:60] @ RNG.normal(size=(3, 200)) + RNG.normal(size=(60, 200))
    units = 10 ** RNG.uniform(-3, 3, 200)
    narrow, y = PLAIN["b"][:60], CLASSES[:60]
    options = {"reg": reg, "scale": {"a": True, "b": False}}
    found = method(2, **options).fit({"a": wide * units, "b": narrow}, y)
    blocks = {"a": (wide - wide.mean(0)) / wide.std(0, ddof=1), "b": narrow}
    expected = method(2, reg=reg, scale=False).fit(blocks, y)
    assert_allclose(found.eigenvalues_, expected.eigenvalues_, rtol=1e-6)
    same_scores(found, {"a": wide * units, "b": narrow}, expected, blocks)


def test_products_standardize_wide_sparse_rows(monkeypatch):
    monkeypatch.setattr("mvcca.problem.route.cheapest", lambda found: found["operator"])
    rng = np.random.default_rng(1)
    X, Y = (sp.random_array((400, 1500), density=0.03, rng=rng).tocsr() for _ in range(2))
    varies = np.arange(1500) % 4 > 0  # columns that do not are not counted by a relative ridge
    units = np.where(np.arange(1500) % 9, 1.0, 1e3) * varies
    views = {"a": sp.csr_array(X.multiply(units)), "b": Y}
    blocks = {"a": sp.csr_array(views["a"][:, varies]), "b": Y}
    factors = {n: 1 / np.asarray(B.todense()).std(0, ddof=1) for n, B in blocks.items()}
    blocks = {n: sp.csr_array(B.multiply(factors[n])) for n, B in blocks.items()}
    found = CCA(4, reg=3.0, scale=True).fit(views)
    expected = CCA(4, reg=3.0, scale=False).fit(blocks)
    assert_allclose(found.canonical_correlations_, expected.canonical_correlations_, rtol=1e-6)
    # Steps end at six digits of correlations, which are close to each other.
    same_scores(found, views, expected, blocks, 1e-2)


def test_constant_columns_are_left_out():
    with_constant = {**MIXED, "a": np.c_[MIXED["a"], np.full(N, 7.1)]}
    found = CCA(3, reg=0.1, scale=True).fit(with_constant)
    expected = CCA(3, reg=0.1, scale=True).fit(MIXED)
    assert_allclose(found.canonical_correlations_, expected.canonical_correlations_, rtol=1e-9)
    assert_array_equal(found.weights_["a"][-1], 0)
    assert found.means_["a"][-1] == pytest.approx(7.1)


@pytest.mark.parametrize("scale", [True, "auto"])
@pytest.mark.parametrize("model", [CCA(reg=0.1), MLCCA(), MVMLCCA()], ids=repr)
def test_one_pass_over_folds_finds_what_refits_find(model, scale):
    model, grid = clone(model).set_params(scale=scale), {"reg": [0.01, 0.1, 1.0]}
    views = Views(MIXED)
    found, expected = (
        search(model, grid, cv=3).fit(views, CLASSES) for search in (FoldSearchCV, GridSearchCV)
    )
    key = "mean_test_score"
    assert_allclose(found.cv_results_[key], expected.cv_results_[key], atol=1e-8)
    assert found.best_estimator_.scale_["a"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scale": "cv", "reg": 0.0}, "compares fits with a ridge"),
        ({"scale": "cv", "reg": "auto"}, "compares fits with a ridge"),
        ({"scale": {"a": "cv", "b": True}, "reg": 0.1}, "chooses one value for all views"),
        ({"scale": {"a": True}, "reg": 0.1}, "scale names the views"),
        ({"scale": "yes"}, "The 'scale' parameter of CCA must be"),
    ],
)
def test_scales_that_cannot_be_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        CCA(2, **options).fit(PLAIN)


def test_batches_cannot_choose_scales_nor_shrink_standardized_columns():
    with pytest.raises(ValueError, match='scale="cv" looks at all rows at once'):
        CCA(2, reg=0.1, scale="cv").partial_fit(PLAIN)
    model = CCA(2, reg="auto", scale=True).partial_fit(PLAIN)
    with pytest.raises(AttributeError, match="looks at all rows twice"):
        _ = model.weights_


@pytest.mark.parametrize("exponent", [-150, 150])
@pytest.mark.parametrize("model", [CCA(2, reg=0.1), *OF_ROWS], ids=repr)
def test_units_at_the_edges_of_floats(model, exponent):
    units = np.where(np.arange(7) % 2, 1.0, 10.0**exponent)
    views = {"a": PLAIN["a"] * units, "b": PLAIN["b"]}
    found, expected = (
        clone(model).set_params(scale=True).fit(own, CLASSES) for own in (views, PLAIN)
    )
    same_scores(found, views, expected, PLAIN)


@pytest.mark.parametrize("model", OF_ROWS, ids=repr)
def test_sparse_rows_are_standardized_as_dense_ones(model):
    views = {n: STORED["csr"](X) for n, X in MIXED.items()}
    dense = {n: X.toarray() for n, X in views.items()}
    found, expected = (
        clone(model).set_params(scale=True).fit(own, CLASSES) for own in (views, dense)
    )
    same_scores(found, views, expected, dense, 1e-8)


@pytest.mark.parametrize("model", [CCA(2, reg=0.1), *OF_ROWS], ids=repr)
def test_a_file_without_scales_is_of_a_model_that_had_none(model, tmp_path, monkeypatch):
    scale = isinstance(model, JRL)  # which always standardized
    old = clone(model).set_params(scale=scale).fit(PLAIN, CLASSES)
    parts_of = _estimators.parts_of_estimator
    lacking = {"scale", "scale_", "loadings_"}
    monkeypatch.setattr(
        _estimators,
        "parts_of_estimator",
        lambda own: {n: value for n, value in parts_of(own).items() if n not in lacking},
    )
    mvcca.save(old, tmp_path / "m.mvcca")
    loaded = mvcca.load(tmp_path / "m.mvcca")
    assert loaded.scale is scale
    assert_array_equal(loaded.transform(PLAIN)["a"], old.transform(PLAIN)["a"])
    if isinstance(model, AffineMap):
        assert_array_equal(loaded.predict({"a": PLAIN["a"]}), old.predict({"a": PLAIN["a"]}))


# ---- inspection ----------------------------------------------------------------------------------


def test_permutations_keep_the_units_that_all_rows_decide():
    views = Views({"a": MIXED["a"], "b": PLAIN["b"], "z": view(2)})
    options = {"n_permutations": 20, "random_state": 0}
    for pair, confounds in ((views.select(["a", "b"]), None), (views, "z")):
        test = permutation_test(pair, reg=0.1, statistic="roy", confounds=confounds, **options)
        model = CCA(None, reg=0.1, confounds=confounds).fit(pair)
        assert model.scale_ == {"a": True, "b": False}
        assert_allclose(test.correlations, model.canonical_correlations_, rtol=1e-8)


def test_halves_keep_the_units_that_all_rows_decide():
    views = {"a": PLAIN["a"] * np.r_[11.0, np.ones(6)], "b": PLAIN["b"]}  # the rule's threshold
    model = CCA(2, reg=0.1).fit(views)
    found, expected = (
        stability(own, views, cv=3, random_state=0)
        for own in (CCA(2, reg=0.1), CCA(2, reg=0.1, scale=model.scale_))
    )
    for name, weights in expected.weights.items():
        assert_array_equal(found.weights[name], weights)


@pytest.mark.parametrize("by", [FromProducts, FromStatistic])
def test_folds_of_wide_views_keep_the_units_of_all_rows(by):
    rng = np.random.default_rng(2)
    blocks = {n: sp.csr_array(sp.random_array((300, 600), density=0.05, rng=rng)) for n in "ab"}
    units = 10 ** rng.uniform(-3, 3, 600)
    views = Views({n: sp.csr_array(X.multiply(units)) for n, X in blocks.items()})
    folds = InnerFolds.of(views, None)
    model = CCA(4, reg=3.0, scale=True)
    rows = model._open_rows(views, None, None)
    rows = rows if by is FromProducts else rows.in_row_space()
    source = by.of(model, rows, folds, "object")
    ((_, found),) = source.solved((0,), [{"reg": 3.0}])
    deviations = {n: views[n].toarray().std(axis=0, ddof=1) for n in "ab"}
    in_units = Views({n: views[n].toarray() / deviations[n] for n in "ab"})
    part = CCA(4, reg=3.0, scale=False).fit(in_units[folds.without((0,))])
    scores, _ = found[0]
    held_out = np.setdiff1d(np.arange(300), folds.without((0,)))
    for name, Z in part.project(in_units[held_out], "variates").items():
        own = scores.scores[name]
        assert_allclose(np.abs(np.sum(own * Z, axis=0)), np.sum(Z**2, axis=0), rtol=1e-3)
