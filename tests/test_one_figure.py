"""One estimator has one figure, by whichever door retrieval is measured.

The judge is a plain loop over the lists that an index returns; all other doors must agree with it.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from estimators import DEEP
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from threadpoolctl import threadpool_limits

from mvcca import (
    CMOLRS,
    JRL,
    MLCCA,
    MVMLCCA,
    RetrievalIndex,
    SparseDiscriminant,
    Views,
    compare,
    evaluate_retrieval,
    kernel,
    linear,
    retrieval_scorer,
    save,
)
from mvcca.base import MultiViewEstimator
from mvcca.cli import main
from mvcca.datasets import load_digits_views
from mvcca.inspection import component_correlations

QUICK: dict[type, dict[str, Any]] = {
    CMOLRS: {"n_epochs": 2, "random_state": 0},
    JRL: {"n_neighbors": 10},
    MVMLCCA: {"within": "sample"},
    kernel.LabelRegression: {"random_state": 0},  # two fits of which draw the same landmarks
    kernel.SemanticMatching: {"random_state": 0},
    SparseDiscriminant: {"n_features": 3},
}
ESTIMATORS: list[Any] = [
    cls(**QUICK.get(cls, {}))
    for module in (linear, kernel)
    for cls in (getattr(module, name) for name in module.__all__)
    if isinstance(cls, type) and issubclass(cls, MultiViewEstimator)
]
HOLD_CODE = ("EncoderCCA",)  # which files do not
NAMES = ("image", "text")


def over(estimators: list[Any]) -> Any:
    """Parametrise over estimators; of the networks, only the first is quick."""
    params = [
        pytest.param(
            estimator,
            id=type(estimator).__name__,
            marks=pytest.mark.slow if estimator in DEEP[1:] else (),
        )
        for estimator in estimators
    ]
    return pytest.mark.parametrize("estimator", params)


every_estimator = over([*ESTIMATORS, *DEEP])
of_unpaired_views = over(
    [e for e in ESTIMATORS if e.requires.labels] + [e for e in DEEP if not e.requires.pairs]
)


def rows_and_classes(n=150, seed=0):
    """Two views of four classes, whose objects differ within their class too."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 4)
    Z = 1.5 * rng.normal(size=(4, 3))[y] + rng.normal(size=(n, 3))
    blocks = {
        name: Z @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(n, d)) + 1
        for name, d in zip(NAMES, (6, 5), strict=True)
    }
    return blocks, np.array(["a", "b", "c", "d"])[y]


def average_precision(relevant):
    """Of one ranked list, the whole gallery long."""
    places = np.flatnonzero(relevant) + 1
    return (np.arange(1, len(places) + 1) / places).mean() if len(places) else 0.0


def judged(lists, of_query, of_item):
    """Mean average precision of ranked lists, and of the directions between two views."""
    means = [
        np.mean(
            [
                average_precision(of_item[t][found] == own)
                for own, found in zip(of_query[q], lists[q, t], strict=True)
            ]
        )
        for q, t in lists
    ]
    return np.mean(means)


def fitted(estimator, views, y):
    """A model as `compare` fits it to few rows: in one thread, to the last bit."""
    with threadpool_limits(1):
        return clone(estimator).fit(views, y)


def lists_of_an_index(model, rows):
    index = {t: RetrievalIndex(model).add({t: rows[t]}) for t in NAMES}
    return {
        (q, t): index[t].search({q: rows[q]}, t, k=len(rows[t]))[1] for q, t in permutations(NAMES)
    }


def lists_of_the_command(model, rows, folder, monkeypatch):
    monkeypatch.chdir(folder)
    save(model, "model.mvcca")
    for name in NAMES:
        np.save(f"{name}.npy", rows[name])
    lists = {}
    for q, t in permutations(NAMES):
        files = ["--gallery", f"{t}={t}.npy", "--query", f"{q}={q}.npy"]
        main(["search", "model.mvcca", *files, "-k", str(len(rows[t])), "-o", f"{q}{t}.npy"])
        lists[q, t] = np.load(f"{q}{t}.npy")
    return lists


def compared(estimator, views, y, train, test):
    cv = [(train, test)]
    result = compare({"it": estimator}, views, y, cv=cv, measures="map", relevance="labels")
    assert not result.failures
    return result.fold_values("it", "map").item()


@every_estimator
def test_paired_views_have_one_figure(estimator, tmp_path, monkeypatch):
    blocks, y = rows_and_classes()
    views = Views(blocks)
    train, test = np.arange(100), np.arange(100, 150)
    model = fitted(estimator, views[train], y[train])
    held_out = views[test]
    labels = dict.fromkeys(NAMES, y[test])
    figure = judged(lists_of_an_index(model, held_out), labels, labels)

    options = {"measures": "map", "relevance": "labels", "estimator": model}
    assert evaluate_retrieval(held_out, y[test], **options).mean()["map"] == pytest.approx(figure)
    assert retrieval_scorer("map", relevance="labels")(model, held_out, y[test]) == pytest.approx(
        figure
    )
    assert compared(estimator, views, y, train, test) == pytest.approx(figure)
    if type(estimator).__name__ not in HOLD_CODE:
        lists = lists_of_the_command(model, held_out, tmp_path, monkeypatch)
        assert judged(lists, labels, labels) == pytest.approx(figure)

    if is_classifier(estimator):  # whose score is the share of right predictions
        return
    [rho] = component_correlations(model, held_out).values()  # pairs have correlations
    assert model.score(held_out, y[test] if estimator.requires.labels else None) == pytest.approx(
        rho.mean()
    )


@of_unpaired_views
def test_unpaired_views_have_one_figure(estimator, tmp_path, monkeypatch):
    blocks, y = rows_and_classes(240)
    views = Views.unpaired({"image": blocks["image"][:130], "text": blocks["text"][130:]})
    labels = {"image": y[:130], "text": y[130:]}
    train = np.r_[:90, 130:200]
    test = np.r_[90:130, 200:240]
    held_out = views[test]
    of_train = {"image": y[:90], "text": y[130:200]}
    of_test = {"image": y[90:130], "text": y[200:]}
    model = fitted(estimator, views[train], of_train)
    figure = judged(lists_of_an_index(model, held_out), of_test, of_test)

    table = evaluate_retrieval(held_out, of_test, measures="map", estimator=model)
    assert table.mean()["map"] == pytest.approx(figure)
    assert retrieval_scorer("map")(model, held_out, of_test) == pytest.approx(figure)
    assert compared(estimator, views, labels, train, test) == pytest.approx(figure)
    lists = lists_of_the_command(model, held_out, tmp_path, monkeypatch)
    assert judged(lists, of_test, of_test) == pytest.approx(figure)
    if not is_classifier(estimator):
        assert model.score(held_out, of_test) == pytest.approx(figure)


def test_a_search_with_the_default_scorer_finds_the_ridge_that_ranks_best():
    data = load_digits_views()
    half = len(data.views) // 2
    left, right = (data.views[name] for name in data.views.names)
    views = Views.unpaired({"left": left[:half], "right": right[half:]})
    folds = list(StratifiedKFold(3).split(data.labels, views.pattern))
    search = GridSearchCV(JRL(n_neighbors=20), {"reg": [0.01, 0.1]}, cv=folds)
    search.fit(views, data.labels)
    by_cosine = retrieval_scorer("map", similarity="cosine")
    other = clone(search).set_params(scoring=by_cosine).fit(views, data.labels)
    assert (search.best_params_["reg"], other.best_params_["reg"]) == (0.1, 0.01)
    by_scorer = clone(search).set_params(scoring=retrieval_scorer("map")).fit(views, data.labels)
    by_score = search.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(by_score, by_scorer.cv_results_["mean_test_score"])


def test_within_a_single_view_the_score_is_that_of_its_ranking():
    blocks, y = rows_and_classes()
    for estimator in (JRL(n_neighbors=10), MLCCA()):
        model = estimator.fit(blocks["image"], y)
        table = evaluate_retrieval(
            {"X": blocks["image"]}, y, measures="map", directions="within", estimator=model
        )
        assert model.score(blocks["image"], y) == table.mean()["map"]
