"""Methods that are fitted again for every setting: what their folds choose, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from estimators import choice_on_folds
from sklearn.base import clone
from sklearn.linear_model import Ridge

from mvcca import (
    CFA,
    CMOLRS,
    JRL,
    KCCA,
    LGCFL,
    NCCA,
    PLS,
    AffineMap,
    Procrustes,
    Views,
    evaluate_retrieval,
)
from mvcca.comparison.registry import GROUPS, METHODS
from mvcca.model_selection import Space
from mvcca.model_selection.fold_statistics import InnerFolds
from mvcca.model_selection.folds import Fold
from mvcca.model_selection.goals import Asked
from mvcca.model_selection.space_search import SpaceSearch
from mvcca.model_selection.tuning import fit_chosen, tunable
from mvcca.problem import Rows
from mvcca.views import Labels
from mvcca.views.labels_by_view import LabelsByView

N = 90


@pytest.fixture(scope="module")
def planted():
    """Two views of three classes, and of what the objects have in common besides."""
    rng = np.random.default_rng(0)
    y = np.arange(N) % 3
    common = rng.standard_normal((N, 3)) + 2 * np.eye(3)[y]
    views = {
        name: common @ rng.standard_normal((3, d)) + 0.5 * rng.standard_normal((N, d))
        for name, d in (("image", 6), ("text", 5))
    }
    return Views(views).with_ids(np.arange(1, N + 1)), y


CODES = np.arange(N) // 3 % 3  # three folds

SEARCHED: list[Any] = [
    PLS("cv"),
    CFA("cv"),
    Procrustes("cv"),
    LGCFL("cv"),
    JRL("cv", n_neighbors="cv"),
    CMOLRS("cv", learning_rate="cv", n_epochs=2, random_state=0),
    NCCA(None, n_neighbors="cv", bandwidth="cv", random_state=0),
    KCCA(None, reg="cv", gamma="cv", approximation="nystroem", n_landmarks=20, random_state=0),
    AffineMap(reg="cv"),
]


def name_of(estimator: Any) -> str:
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", SEARCHED, ids=name_of)
def test_a_fit_ranks_as_a_model_with_what_it_chose(planted, estimator):
    views, y = planted
    goal = "class" if estimator.requires.labels or isinstance(estimator, KCCA) else "object"
    model = clone(estimator).set_params(cv_goal=goal).fit(views, y)
    assert model.get_params() == clone(estimator).set_params(cv_goal=goal).get_params()
    results = model.cv_results_
    chosen = results["params"][int(results["mean_test_score"].argmax())]
    assert {f"param_{name}" for name in chosen} <= results.keys()
    kept = {
        name: getattr(model, f"{name}_")
        for name, value in estimator.get_params().items()
        if isinstance(value, str) and value == "cv" and name != "n_components"
    }
    plain = (
        clone(estimator).set_params(n_components=model.n_components_, **kept)
        if ("n_components" in estimator.get_params())
        else clone(estimator).set_params(**kept)
    )
    plain.fit(views, y)
    expected, found = plain.transform(views), model.transform(views)
    for name in views.names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-8, atol=1e-10)
    assert model.ranking_.removesuffix("+csls") in (
        "cosine",
        "inner",
        "profile-likelihood",
        "likelihood",
    )
    assert evaluate_retrieval(views, y, estimator=model).mean()["mrr"] > 0.05


@pytest.mark.filterwarnings("ignore:.*so large that it drops")
def test_values_are_those_of_a_loop_over_folds(planted):
    views, y = planted
    estimator = LGCFL(reg="cv")
    choice = choice_on_folds(estimator, views, y, InnerFolds(CODES), "class", Labels.of(y))
    for setting, *values in zip(
        choice.cv_results["params"],
        *(choice.cv_results[f"split{fold}_test_score"] for fold in range(3)),
        strict=True,
    ):
        for fold, value in enumerate(values):
            train, test = np.flatnonzero(fold != CODES), np.flatnonzero(fold == CODES)
            if setting["reg"] > 0.1:  # drops features, and with them all differences of rows
                continue
            model = LGCFL(reg=setting["reg"]).fit(views[train], y[train])
            table = evaluate_retrieval(views[test], y[test], measures="map@50", estimator=model)
            assert value == pytest.approx(table.mean()["map@50"], abs=1e-4)  # in float32


def test_prefixes_of_components_are_models_with_fewer(planted):
    views, y = planted
    choice = choice_on_folds(PLS("cv"), views, y, InnerFolds(CODES), "object", Labels.of(y))
    tried = {setting["n_components"] for setting in choice.cv_results["params"]}
    assert tried == {1, 2, 3, None}
    for setting, value in zip(
        choice.cv_results["params"], choice.cv_results["split0_test_score"], strict=True
    ):
        if setting["ranking"] == "cosine":
            train, test = np.flatnonzero(CODES != 0), np.flatnonzero(CODES == 0)
            model = PLS(setting["n_components"]).fit(views[train])
            table = evaluate_retrieval(views[test], measures="mrr", estimator=model)
            assert value == pytest.approx(table.mean()["mrr"], abs=1e-12)


def test_ridges_of_kernel_features_are_those_of_fits(planted):
    views, y = planted
    how = {"approximation": "nystroem", "n_landmarks": 20, "random_state": 0}
    choice = choice_on_folds(
        KCCA(4, reg="cv", gamma="median", scale=False, **how),
        views,
        y,
        InnerFolds(CODES),
        "class",
        Labels.of(y),
    )
    train, test = np.flatnonzero(CODES != 1), np.flatnonzero(CODES == 1)
    n_compared = 0
    for setting, value in zip(
        choice.cv_results["params"], choice.cv_results["split1_test_score"], strict=True
    ):
        if setting["ranking"] == "profile-likelihood" and setting["reg"] >= 1e-2:
            model = KCCA(4, reg=setting["reg"], **how).fit(views[train])
            shown = evaluate_retrieval(views[test], y[test], measures="map@50", estimator=model)
            # a fit measures what correlations to expect, by which the ranking weights
            assert value == pytest.approx(shown.mean()["map@50"], abs=0.03)
            n_compared += 1
    assert n_compared == 3


# One of each way to have models of training parts: sums of folds, features, refits.
IN_CI = {"cca", "mlcca", "pls", "nkcca", "jrl", "ncca", "three-view-cca"}


@pytest.mark.filterwarnings("ignore")  # of too few label sets, and of few steps
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in IN_CI else [pytest.mark.slow, pytest.mark.long])
        for n, method in METHODS.items()
        if not method.is_deep and n != "kcca" and n not in GROUPS["selection"]
    ],
)
def test_a_comparison_chooses_without_objects_of_neither_part(planted, name):
    """These objects are poisoned with other numbers, and the choices are the same."""
    views, y = planted
    if name == "fast-mlcca":
        pytest.skip("needs 50 neighbours in every training part")
    estimator = METHODS[name].build({"random_state": 0})
    parameters = tunable(estimator)
    assert parameters is not None
    estimator.set_params(**parameters)
    if name in ("fkcca", "nkcca"):
        estimator.set_params(n_landmarks=20, n_components=2)
    if name == "cmolrs":
        estimator.set_params(n_epochs=1)
    rng = np.random.default_rng(1)
    poisoned = {
        n: np.where(CODES[:, None] == 2, 9 * rng.random(X.shape), X) for n, X in views.items()
    }
    asked = Asked(("object", "class"), 100)
    found = []
    for own in (views, views.replace(poisoned)):
        parts = np.flatnonzero(CODES % 2), np.flatnonzero(CODES == 0)
        search = SpaceSearch(by_heads=False)
        search.hold_out(estimator, own, Labels.of(y), Fold(0, *parts), asked, Labels.of(y))
        found.append(search.choices())
    for goal in asked.goals:
        clean, other = (own[goal] for own in found)
        assert clean.choose().parameters == other.choose().parameters
        assert clean.best.ranking == other.best.ranking
        assert clean.value == other.value
        np.testing.assert_array_equal(
            *(own.values[own.best][0].of_objects for own in (clean, other))
        )
    model, choice = clone(estimator), found[0]["class"].choose()
    fit_chosen(model, choice, views, Labels.of(y))
    assert model.ranking_ == choice.ranking


def parameters_to_choose(name: str) -> list[str]:
    """Parameters of a method that folds can choose; numbers of components are asked for apart."""
    found = {} if METHODS[name].is_deep else tunable(METHODS[name].build({})) or {}
    return sorted(found.keys() - {"n_components"})


@pytest.mark.parametrize(
    ("name", "asked"), [(name, own) for name in METHODS for own in parameters_to_choose(name)]
)
def test_a_search_of_one_parameter_is_that_of_a_comparison(planted, name, asked):
    """A method whose "cv" leaves out what `compare` searches has other settings than its own."""
    views, y = planted
    rows = Rows(views, labels=LabelsByView.of(views, y))
    compared = METHODS[name].build({}).set_params(**(tunable(METHODS[name].build({})) or {}))
    bare = METHODS[name].build({asked: "cv"})
    spaces = [Space.offered_by(own, rows).of(own).values for own in (bare, compared)]
    assert spaces[0] == {own: values for own, values in spaces[1].items() if own in spaces[0]}
    # Each of these is a number or "cv", never "auto": it is searched where it is asked for.
    assert spaces[1].keys() - spaces[0].keys() <= {"n_components", "reg"} - {asked}


ONE_VIEW = [
    name
    for name, method in METHODS.items()
    if not method.is_deep and method.build({}).requires.views[0] == 1 and parameters_to_choose(name)
]


@pytest.mark.parametrize("name", ONE_VIEW)
def test_folds_choose_nothing_for_one_view(planted, name):
    views, y = planted
    model = METHODS[name].build({})
    model.set_params(**tunable(model))
    with pytest.raises(ValueError, match=r"there is only one view. Give values in place of .cv."):
        model.fit({"image": views["image"]}, y)


def test_jrl_that_searches_its_ridge_searches_its_neighbours():
    """Ten rows of a class: a hundred neighbours are rows of all classes."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 15
    Z = rng.standard_normal((15, 6))[y] + 0.5 * rng.standard_normal((150, 6))
    views = Views({name: Z @ rng.standard_normal((6, 8)) for name in ("image", "text")})
    found, both = (own.fit(views, y) for own in (JRL("cv"), JRL("cv", n_neighbors="cv")))
    assert (found.reg_, found.n_neighbors_) == (both.reg_, both.n_neighbors_)
    assert found.n_neighbors_ <= 10
    for name in views.names:
        np.testing.assert_array_equal(found.weights_[name], both.weights_[name])


@pytest.mark.parametrize(
    "estimator",
    [
        KCCA(reg="cv", kernel="poly"),
        KCCA(reg="cv", kernel={"image": "rbf", "text": "poly"}),
        KCCA(reg="cv", kernel="linear"),
        KCCA(gamma="cv", kernel="poly"),
    ],
    ids=repr,
)
def test_kernels_without_a_width_are_searched_without_one(planted, estimator):
    model = clone(estimator).fit(planted[0])
    assert model.gamma_ == "auto"
    reg = getattr(model, "reg_", model.reg)
    plain = KCCA(reg=reg, kernel=model.kernel, scale=model.scale_).fit(planted[0])
    np.testing.assert_allclose(model.weights_["text"], plain.weights_["text"], rtol=1e-9)


@pytest.mark.parametrize("value", ["auto", {"image": "auto", "text": 0.1}])
def test_automatic_widths_are_by_kernel(planted, value):
    views, _ = planted
    of_rbf = {"image": "median", "text": 0.1 if isinstance(value, dict) else "median"}
    found, expected = KCCA(gamma=value).fit(views), KCCA(gamma=of_rbf).fit(views)
    np.testing.assert_array_equal(found.weights_["image"], expected.weights_["image"])
    found, expected = KCCA(kernel="poly").fit(views), KCCA(kernel="poly", gamma=None).fit(views)
    np.testing.assert_array_equal(found.weights_["image"], expected.weights_["image"])


def test_a_search_is_of_one_value_for_all_views(planted):
    with pytest.raises(ValueError, match='n_neighbors="cv" chooses one value for all views'):
        NCCA(n_neighbors={"image": "cv", "text": 5}).fit(planted[0])


def test_left_out_predictions_are_those_of_refits(planted):
    views, _ = planted
    X, Y = views["image"], views["text"]
    reg, objects = 0.3, np.array([0, 7, 40])
    [scores] = AffineMap().left_out_scores(Rows(views), objects, [reg])
    ridge = reg * (N - 1) * X.var(axis=0, ddof=1).mean()
    for row, left in enumerate(objects):
        rest = np.delete(np.arange(N), left)
        model = Ridge(alpha=ridge).fit(X[rest], Y[rest])
        expected = model.predict(X[[left]])[0] - Y.mean(axis=0)
        np.testing.assert_allclose(scores["image"][row], expected, rtol=1e-10)
        np.testing.assert_allclose(scores["text"][row], Y[left] - Y.mean(axis=0))


def test_weights_are_repetitions_of_left_out_rows(planted):
    views, _ = planted
    weights = np.ones(N)
    weights[3] = 2
    twice = views[np.append(np.arange(N), 3)]
    X, Y = twice["image"], twice["text"]
    [scores] = AffineMap().left_out_scores(Rows(views, weights), np.array([3]), [0.1])
    ridge = 0.1 * N * X.var(axis=0, ddof=1).mean()
    rest = np.delete(np.arange(N), 3)
    model = Ridge(alpha=ridge).fit(X[rest], Y[rest])
    mean = scores["text"][0] - views["text"][3]
    np.testing.assert_allclose(scores["image"][0] - mean, model.predict(X[[3]])[0], rtol=1e-10)


def test_batches_refuse_a_search(planted):
    views, _ = planted
    with pytest.raises(ValueError, match='n_components="cv" looks at all rows at once'):
        PLS("cv").partial_fit(views)
