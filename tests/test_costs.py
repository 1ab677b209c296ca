"""Costs are estimated for every method, grow with every shape, and are close to measured times."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from time import thread_time

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from mvcca import CCA, JRL, KCCA, Views, datasets, open_matrix
from mvcca.comparison import costs
from mvcca.comparison.costs import Shapes, ViewShape, Work, fit_work, parse_budget, ranking_work
from mvcca.comparison.data import Data
from mvcca.comparison.registry import METHODS
from mvcca.model_selection import tunable

DENSE = ViewShape(4000, 200, 200)
SHAPES = Shapes((DENSE, DENSE), n_labels=20, n_label_sets=100)


def estimators():
    for name, method in METHODS.items():
        if not method.is_deep or find_spec("torch"):
            yield name, method.build({"n_components": 10, "reg": 0.1, "random_state": 0})


def seconds(work):
    return work.seconds(costs.Rates(2e-11, 5e-10, 1e-9, 1e-8, 3e-10, 2e-6))


def test_all_methods_have_estimates():
    for name, estimator in estimators():
        for work in (fit_work(estimator, SHAPES), ranking_work(estimator, SHAPES, 500)):
            assert work is not None, name
            assert 0 < seconds(work) < np.inf
        assert fit_work(estimator, SHAPES).n_bytes > 0, name


@pytest.mark.parametrize("change", ["rows", "width", "labels", "views", "stored"])
def test_estimates_grow_with_every_shape(change):
    views, small = list(SHAPES.views), SHAPES
    if change == "rows":
        large = replace(small, views=tuple(replace(view, n_rows=8000) for view in views))
    elif change == "width":
        large = replace(small, views=tuple(replace(v, width=400, stored=400) for v in views))
    elif change == "labels":
        large = replace(small, n_labels=80, n_label_sets=2000)
    elif change == "views":
        large = replace(small, views=(*views, DENSE))
    else:
        sparse = [ViewShape(4000, 200, stored, is_sparse=True) for stored in (5, 50)]
        small, large = (replace(SHAPES, views=(view, view)) for view in sparse)
    grown = set()
    for name, estimator in estimators():
        if change == "views" and name in ("cca", "ncca"):
            continue  # of two views
        before, after = (seconds(fit_work(estimator, shapes)) for shapes in (small, large))
        only_some = change in ("labels", "stored")  # methods depend on it
        assert after >= before if only_some else after > before, name
        grown |= {name} if after > before else set()
        before, after = (seconds(ranking_work(estimator, s, 500)) for s in (small, large))
        assert after >= before, name
        assert seconds(ranking_work(estimator, large, 1000)) > after, name
    assert {"mlcca", "mvmlcca", "lgcfl", "jrl"} <= grown


def test_work_and_costs_are_those_of_consecutive_steps():
    step, other = Work(products=1, calls=2, n_bytes=3), Work(calls=5, n_bytes=1)
    assert 2 * step + other == Work(products=2, calls=9, n_bytes=3)
    cost = costs.Cost(1.5, 10) * 2 + costs.Cost(1, 20)
    assert cost == costs.Cost(4, 20)


def test_the_machine_is_not_measured_for_small_data(monkeypatch):
    def refuse():
        raise AssertionError("measured")

    monkeypatch.setattr(costs._work, "measured_rates", refuse)
    shapes = Shapes.of(Data.of(datasets.load_digits_views("halves").views), 300)
    small = costs.costs_of({"CCA": 10 * fit_work(CCA(2, reg=0.1), shapes)})
    assert 0 < small["CCA"].seconds < 1
    with pytest.raises(AssertionError, match="measured"):
        costs.costs_of({"KCCA": fit_work(KCCA(2), SHAPES)})


def test_shapes_of_a_selection_expect_fewer_label_sets():
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(400, 7)).astype("f4"), "b": random_array((400, 30), density=0.1)}
    y = [{number % 5, 5 + number // 2} for number in range(400)]  # 400 distinct sets
    data = Data.of(views, y)
    shapes = Shapes.of(data, 100)
    a, b = shapes.views
    assert a == ViewShape(100, 7, 7, itemsize=4)
    assert b.is_sparse
    assert b.stored == pytest.approx(3)
    assert (shapes.n_labels, shapes.n_label_sets) == (205, 100)
    whole = Shapes.of(data, 400).n_members
    assert 400 < whole < 400**2 / 40
    assert shapes.n_members < whole / 4
    classes = Shapes.of(Data.of(views, np.arange(400) % 4), 100)
    assert (classes.n_labels, classes.n_label_sets) == (4, 4)


def test_label_sets_that_share_few_subsets_and_few_components_take_less():
    model = METHODS["mvmlcca-label"].build({"n_components": 10, "reg": 0.1, "random_state": 0})
    tiles = replace(SHAPES, n_label_sets=3000)
    by_subsets, all_components = replace(tiles, n_members=2e4), clone(model)
    assert seconds(fit_work(model, by_subsets)) < 0.8 * seconds(fit_work(model, tiles))
    all_components.set_params(n_components=None)
    assert seconds(fit_work(all_components, tiles)) > seconds(fit_work(model, tiles))


def test_wide_views_with_few_label_sets_take_less():
    wide = ViewShape(4000, 20_000, 45, is_sparse=True)
    few = Shapes((wide, wide), n_labels=20, n_label_sets=100)
    many = replace(few, n_label_sets=4000)
    model = METHODS["mvmlcca"].build({"n_components": 10, "reg": 0.1, "random_state": 0})
    assert 4 * seconds(fit_work(model, few)) < seconds(fit_work(model, many))
    model = METHODS["mvmlcca-label"].build({"n_components": 10, "reg": 0.1, "random_state": 0})
    assert 50 * seconds(fit_work(model, few)) < seconds(fit_work(model, many))


def test_estimators_of_others_have_no_estimate():
    assert fit_work(make_pipeline(PCA(2), CCA(2)), SHAPES) is None
    assert ranking_work(PCA(2), SHAPES, 10) is None


@pytest.mark.parametrize("goal", ["object", "class"])
def test_tuned_fits_take_the_time_of_their_search(goal):
    plain, tuned = CCA(None, reg=0.1), CCA(None, reg="cv", cv_goal=goal)
    search = costs.search_work(tuned, SHAPES, goal)
    assert fit_work(tuned, SHAPES) == fit_work(plain, SHAPES) + search
    nested = costs.search_work(tuned, SHAPES, goal, nested=True)
    assert 2 < seconds(nested) / seconds(search) < 4.5  # ten models, each of which serves two folds


def test_of_many_rows_one_model_is_searched_in_place_of_five():
    seconds_of = {}
    for n_rows in (12_000, 13_000):
        views = tuple(ViewShape(n_rows, 1_000, 1_000) for _ in range(2))
        shapes = replace(SHAPES, views=views)
        seconds_of[n_rows] = seconds(costs.search_work(CCA(None, reg="cv"), shapes, "object"))
    assert seconds_of[13_000] < 0.5 * seconds_of[12_000]


def test_all_tuned_methods_have_estimates():
    for name, estimator in estimators():
        settings = tunable(estimator)
        if settings is None:
            continue
        plain = seconds(fit_work(estimator, SHAPES))
        estimator.set_params(**settings)
        assert seconds(fit_work(estimator, SHAPES)) > 2 * plain, name
        assert seconds(ranking_work(estimator, SHAPES, 500)) > 0, name


def test_a_subclass_is_estimated_as_its_base():
    class Own(JRL):
        pass

    assert fit_work(Own(), SHAPES) == fit_work(JRL(), SHAPES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30s", 30),
        ("10min", 600),
        ("2h", 7200),
        (" 1.5 h ", 5400),
        (".5s", 0.5),
        (90, 90),
        (1.5, 1.5),
    ],
)
def test_budgets_are_seconds_or_have_units(text, expected):
    assert parse_budget(text) == expected


@pytest.mark.parametrize("text", ["", "10", "10m", "-3s", "0s", "1h30min", 0, -1, float("nan")])
def test_other_budgets_are_refused(text):
    with pytest.raises(ValueError, match='a time such as "30s", "10min" or "2h"'):
        parse_budget(text)


@pytest.mark.parametrize("value", [None, True, [1]])
def test_budgets_of_other_types_are_refused(value):
    with pytest.raises(TypeError, match="Expected budget to be seconds"):
        parse_budget(value)


def test_an_estimate_is_close_to_the_time_of_a_fit():
    data = datasets.load_digits_views()
    model = KCCA(10, approximation="nystroem", reg=0.1, random_state=0)
    model.fit(data.views[:600])
    start = thread_time()
    model.fit(data.views)
    measured = thread_time() - start
    work = fit_work(model, Shapes.of(Data.of(data.views), len(data.views)))
    assert measured / 4 < work.seconds(costs.measured_rates()) < 4 * measured


# ---- commands -----------------------------------------------------------------------------------

ROWS = ViewShape(4000, 200, 200)
LARGE = replace(ROWS, n_rows=20_000)
WIDE = replace(ROWS, width=400, stored=400)
COMMANDS = {
    "search": lambda view: costs.hits_work({"x": view}, {"y": ROWS}, 50),
    "transform": lambda view: costs.projection_work({"x": view}, 50),
    "align": lambda view: costs.alignment_work(view, view, 20),
    "align without pairs": lambda view: costs.alignment_work(view, view, 0),
    "migrate": lambda view: costs.migration_work(view, ROWS, writes=True),
    "migrate queries": lambda view: costs.migration_work(
        view, ROWS, direction="queries", writes=False
    ),
    "similarity": lambda view: costs.similarity_work([view, view], None, ["cka_unbiased"]),
    "similarity by spectra": lambda view: costs.similarity_work([view, ROWS], [view], ["svcca"]),
    "test": lambda view: costs.study_work(view, view, 999),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_estimates_of_commands_grow_with_rows_and_widths(command):
    found, large, wide = (COMMANDS[command](view) for view in (ROWS, LARGE, WIDE))
    assert 0 < seconds(found) < min(seconds(large), seconds(wide))
    assert found.n_bytes <= min(large.n_bytes, wide.n_bytes)


def test_shapes_of_files_are_had_without_reading_them(tmp_path):
    from scipy.sparse import save_npz

    X = random_array((500, 80), density=0.1, format="csr", rng=0)
    save_npz(tmp_path / "x.npz", X)
    source = open_matrix(tmp_path / "x.npz")
    source._read_runs = None  # fails if it is called
    (found,) = Shapes.of_views(Views({"x": source})).views
    (expected,) = Shapes.of_views(Views({"x": X})).views
    assert (found.n_rows, found.width, found.is_sparse) == (500, 80, True)
    assert 0.5 < found.stored / expected.stored < 2
