"""`mvcca.compare`, judged by scikit-learn's cross-validation, SciPy and planted data."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import signal
import time
import unicodedata
import warnings
from dataclasses import replace
from functools import partial
from importlib import import_module
from mmap import mmap
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed, parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline

import mvcca
from mvcca import CCA, CMOLRS, JRL, MLCCA, MVCCA, NCCA, Labels, PerView, Views, retrieval_scorer
from mvcca.comparison import protocol
from mvcca.comparison.data import Presentation
from mvcca.comparison.registry import GROUPS, METHODS
from mvcca.comparison.verdict import CAPTION, answers, sentences, verbose_text
from mvcca.comparison.wording import code, pretty
from mvcca.model_selection.folds import make_folds
from mvcca.model_selection.groups import Groups

N = 150
CLASSES = np.arange(N) % 5
MEASURES = ("map@50", "r@1", "mrr", "mr")


def planted(noise=0.5, n=N, seed=0):
    """Two views that share three dimensions and the five classes."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((5, 3))[np.arange(n) % 5] + 0.7 * rng.standard_normal((n, 3))
    blocks = {
        name: shared @ rng.standard_normal((3, width)) + noise * rng.standard_normal((n, width))
        for name, width in (("image", 6), ("text", 5))
    }
    return Views(blocks)


def full(found, **options):
    """All that is known, as with --verbose."""
    return verbose_text(found, **options)


METHODS_BY_NAME = {"CCA": CCA(3, reg=0.1), "MLCCA": MLCCA(3, reg=0.1)}


@pytest.fixture(scope="module")
def result():
    return mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, measures=MEASURES)


@pytest.fixture(scope="module")
def one_split():
    return mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, cv=0.4, measures=MEASURES)


# ---- folds --------------------------------------------------------------------------------------


def test_pipelines_take_views_with_row_labels():
    rng = np.random.default_rng(0)
    blocks = {name: rng.standard_normal((60, 4)) for name in ("x", "y")}
    model = {"CCA": make_pipeline(PerView("passthrough"), CCA(2))}
    expected = mvcca.compare(model, blocks, cv=2, measures="mrr").mean("CCA", "mrr")
    for index in (range(60), range(5, 65)):
        frames = {name: pd.DataFrame(X, index=index) for name, X in blocks.items()}
        found = mvcca.compare(model, frames, cv=2, measures="mrr")
        assert found.mean("CCA", "mrr") == pytest.approx(expected)


@pytest.mark.parametrize("labels", [CLASSES, np.array(list("abcde"))[CLASSES]])
def test_folds_of_classes_are_those_of_stratified_k_fold(labels):
    folds = make_folds(planted(), Labels.of(labels), 5, random_state=3)
    expected = StratifiedKFold(5, shuffle=True, random_state=3).split(np.zeros(N), labels)
    for fold, (train, test) in zip(folds, expected, strict=True):
        assert_array_equal(fold.train, train)
        assert_array_equal(fold.test, test)


def test_a_fraction_is_the_split_of_stratified_shuffle_split():
    (fold,) = make_folds(planted(), Labels.of(CLASSES), 0.3, random_state=1)
    splitter = StratifiedShuffleSplit(1, test_size=0.3, random_state=1)
    ((train, test),) = splitter.split(np.zeros(N), CLASSES)
    assert_array_equal(fold.train, train)
    assert_array_equal(fold.test, test)


@pytest.mark.parametrize("share", [0.07, 0.14, 0.2, 1 - 0.8, 0.28, 0.55, 0.8, 0.29, 2 / 3])
def test_a_fraction_holds_out_exactly_so_many_objects_and_keeps_the_classes(share):
    classes = np.arange(300) % 15
    views = Views({"a": np.zeros((300, 1)), "b": np.zeros((300, 1))})
    (fold,) = make_folds(views, Labels.of(classes), share, 0)
    assert len(fold.test) == round(share * 300)
    assert np.ptp(np.bincount(classes[fold.test], minlength=15)) <= 1
    # As many classes as the smaller part has objects: each is in both parts.
    few = Views({"a": np.zeros((40, 1)), "b": np.zeros((40, 1))})
    (fold,) = make_folds(few, Labels.of(np.arange(40) % 8), 0.8, 0)
    assert np.bincount(np.arange(40)[fold.train] % 8).tolist() == [1] * 8
    with pytest.raises(ValueError, match=r"got 0\.99: it leaves none of 40 objects to learn from"):
        make_folds(few, None, 0.99, 0)


@pytest.mark.parametrize("splitter", [KFold(4), ShuffleSplit(3, random_state=0)])
def test_a_splitter_splits_as_it_does_in_scikit_learn(splitter):
    folds = make_folds(planted(), None, splitter, random_state=0)
    for fold, (train, test) in zip(folds, splitter.split(np.zeros(N)), strict=True):
        assert_array_equal(fold.train, train)
        assert_array_equal(fold.test, test)


def test_every_fold_has_its_share_of_each_view_and_rows_of_an_object_stay_together():
    index = np.array([[i, i - 20 if i >= 20 else -1] for i in range(60)])
    views = Views({"a": np.arange(60.0)[:, None], "b": -np.arange(20.0, 60)[:, None]}, index)
    for fold in make_folds(views, None, 4, random_state=0):
        held_out = views[fold.test]
        assert [held_out[name].shape[0] for name in "ab"] == [15, 10]
        both = held_out.seen.all(axis=1)
        assert_array_equal(held_out["a"][both[held_out.seen[:, 0]]], -held_out["b"])


def test_classes_too_rare_for_the_folds_are_joined():
    classes = np.array([0] * 20 + [1] * 20 + [2, 3, 4])
    views = Views([np.zeros((43, 1)), np.zeros((43, 1))])
    for fold in make_folds(views, Labels.of(classes), 5, random_state=0):
        assert np.sum(classes[fold.test] == 1) == 4
        assert np.sum(classes[fold.test] != 1) in (4, 5)


def test_label_sets_do_not_decide_the_folds():
    sets = [{"a", "b"} if i % 2 else {"c"} for i in range(N)]
    folds = make_folds(planted(), Labels.of(sets), 5, random_state=0)
    expected = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(N), np.zeros(N))
    assert_array_equal(folds[0].test, next(expected)[1])


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "from 2 to 150 folds, got 1"),
        (200, "from 2 to 150 folds, got 200"),
        (1.5, "between 0 and 1, got 1.5"),
        ("five", "Expected cv to be a number of folds"),
        (None, "Expected cv to be a number of folds"),
        ([], "at least one split"),
        ([(np.arange(10), np.arange(5, 20))], "both the training and the held-out part"),
        ([(np.arange(10), np.arange(0))], "10 training and 0 held-out"),
    ],
)
def test_a_cv_that_makes_no_sense_is_an_error(cv, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, cv=cv)


class Recorder(TransformerMixin, BaseEstimator):
    """A CCA that records the objects it is fitted to, and holds 80 MB."""

    seen: ClassVar[list] = []

    def __init__(self, name=""):
        self.name = name

    def fit(self, X, y=None):
        self.seen.append((self.name, tuple(X.ids - 1)))
        # Pages of the system: malloc would reuse what earlier tests have freed.
        self.kept_ = np.frombuffer(mmap(-1, 8 * 10**7))
        self.kept_[:] = 1
        self.model_ = CCA(2).fit(X)
        return self

    def transform(self, X):
        return self.model_.transform(X)


def test_every_method_is_fitted_to_the_same_folds_and_its_memory_is_measured():
    Recorder.seen.clear()
    methods = {name: Recorder(name) for name in ("first", "second")}
    found = mvcca.compare(methods, planted(), CLASSES, measures="mrr")
    for name in methods:
        trained = [rows for seen, rows in Recorder.seen if seen == name]
        assert trained == [tuple(fold.train) for fold in found.folds]
        assert min(found.runs[name].seconds.values()) > 0
    peaks = found.runs["first"].peak_bytes.values()
    if None in peaks:
        pytest.skip("the system does not report resident memory")
    assert 0.9 * 80e6 < max(peaks) < 2 * 80e6
    assert re.search(rf"^first .*pairs .* {max(peaks) / 10**6:.0f}$", full(found), re.M)


# ---- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        CCA(3, reg=0.1),
        MLCCA(3, reg=0.1),
        JRL(n_neighbors=20),
        CMOLRS(3, n_epochs=2, random_state=0),
        NCCA(3),
        make_pipeline(PerView("passthrough"), CCA(3)),
        GridSearchCV(CCA(3), {"reg": [0.01, 1.0]}, scoring=retrieval_scorer("mrr"), cv=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_values_are_those_of_cross_validate_with_retrieval_scorer(estimator):
    views = planted()
    result = mvcca.compare({"it": estimator}, views, CLASSES, cv=4, measures=MEASURES)
    assert not result.failures
    splits = list(StratifiedKFold(4, shuffle=True, random_state=0).split(np.zeros(N), CLASSES))
    scoring = {measure: retrieval_scorer(measure) for measure in MEASURES}
    expected = cross_validate(estimator, views, CLASSES, cv=splits, scoring=scoring)
    for measure in MEASURES:
        sign = -1 if measure == "mr" else 1  # a scorer negates ranks
        values = sign * expected[f"test_{measure}"]
        assert_allclose(result.fold_values("it", measure), values, rtol=0, atol=1e-12)


def test_hyper_parameters_are_the_best_on_the_folds_for_each_goal():
    views, grid = planted(noise=2.0), {"reg": [1e-6, 0.3, 30.0], "n_components": [1, 3]}
    result = mvcca.compare({"CCA": CCA()}, views, CLASSES, cv=3, search=grid)
    folds = [(fold.train, fold.test) for fold in result.folds]
    search = GridSearchCV(CCA(), grid, scoring=retrieval_scorer("mrr"), cv=folds)
    search.fit(views, CLASSES)
    assert result.choice("CCA", "object").params == search.best_params_
    assert result.standing("CCA", "object").value == pytest.approx(search.best_score_, abs=1e-6)
    assert result.mean("CCA", "mrr") == pytest.approx(search.best_score_, abs=1e-12)
    assert result.refit("CCA", "object").get_params().items() >= search.best_params_.items()
    of_class = result.choice("CCA", "class")
    assert of_class.value == max(of_class.cv_results["mean_test_score"])


def test_a_search_leaves_methods_without_its_parameters_alone():
    methods = {"CCA": CCA(3), "CMOLRS": CMOLRS(3, n_epochs=1, random_state=0)}
    found = mvcca.compare(methods, planted(), CLASSES, cv=2, search={"reg": [0.1, 1.0]})
    plain = mvcca.compare(methods, planted(), CLASSES, cv=2)
    assert found.choice("CMOLRS") is None
    assert found.mean("CMOLRS", "map@50") == plain.mean("CMOLRS", "map@50")
    with pytest.raises(ValueError, match="'gamma' is not a parameter of any"):
        mvcca.compare(methods, planted(), CLASSES, search={"gamma": [1.0]})


def test_labels_to_learn_from_may_differ_from_those_that_define_relevance():
    coarse = CLASSES // 3
    found = mvcca.compare(
        "mlcca", planted(), CLASSES, fit_labels=coarse, params={"n_components": 1}, tune=False
    )
    (fold, *_), views = found.folds, planted()
    model = MLCCA(1, reg=0.1, random_state=0).fit(views[fold.train], coarse[fold.train])
    value = retrieval_scorer("map@50")(model, views[fold.test], CLASSES[fold.test])
    assert found.fold_values("MLCCA", "map@50")[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.slow  # starts processes
def test_several_processes_find_the_same_and_are_not_those_of_joblib(result):
    other = mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, measures=MEASURES, n_jobs=2)
    for name in METHODS_BY_NAME:
        for measure in MEASURES:
            assert_array_equal(other.fold_values(name, measure), result.fold_values(name, measure))
    with parallel_config("loky", n_jobs=2):  # the executor that joblib keeps is of its own class
        assert Parallel()(delayed(abs)(n) for n in (-1, -2)) == [1, 2]


def test_unpaired_views_with_labels_by_view():
    views = planted()
    labels = {"image": CLASSES[:100], "text": CLASSES}
    X = {"image": views["image"][:100], "text": views["text"]}
    found = mvcca.compare({"MLCCA": MLCCA(2), "CCA": CCA(2)}, X, labels, measures="map", cv=3)
    assert found.failures == {"CCA": "needs objects seen in two views; these are unpaired"}
    assert found.mean("MLCCA", "map") > 0.5
    assert "held-out correlation" not in set(found.to_frame().measure)


# ---- uncertainty --------------------------------------------------------------------------------


def test_the_corrected_t_test_is_the_formula_and_without_correction_that_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        differences = 0.1 + rng.standard_normal(10)
        plain = protocol.corrected_t_test(differences, 0.0)
        assert plain == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
        # The statistic of 10 folds, each with a ninth of the rows as held-out rows.
        t = differences.mean() / np.sqrt((1 / 10 + 1 / 9) * differences.var(ddof=1))
        expected = 2 * stats.t(9).sf(abs(t))
        assert protocol.corrected_t_test(differences, 1 / 9) == pytest.approx(expected)
    assert protocol.corrected_t_test(np.zeros(5), 0.25) == 1
    assert protocol.corrected_t_test(np.ones(5), 0.25) == 0


def test_with_one_split_the_test_is_scipys_paired_t_test_over_objects(one_split):
    frame = one_split.per_query("mrr")
    by_object = frame.groupby(["method", "object"]).value.mean()
    expected = stats.ttest_rel(by_object["CCA"], by_object["MLCCA"]).pvalue
    best, other = one_split.ranked_for("mrr")
    behind = one_split.standing(other, "mrr").behind(one_split.standing(best, "mrr"))
    assert protocol.paired_test(behind) == pytest.approx(expected)
    assert one_split.is_worse(other, "mrr") == (expected < 0.05)
    error = by_object[best].std() / np.sqrt(len(by_object[best]))
    assert one_split.standing(best, "mrr").reach == pytest.approx(2 * 1.96 * error)


def test_the_test_over_folds_uses_the_difference_on_each_fold(result):
    differences = result.fold_values("CCA", "r@1") - result.fold_values("MLCCA", "r@1")
    assert result.ranked_for("r@1") == ["CCA", "MLCCA"]
    expected = protocol.corrected_t_test(differences, 30 / 120)
    assert result.is_worse("MLCCA", "r@1") == (expected < 0.05)
    assert not result.is_worse("CCA", "r@1")
    ranks = {name: result.mean(name, "mr") for name in result.methods}
    assert result.best_for("mr") == min(ranks, key=ranks.get)  # the smaller, the better


def test_equal_methods_are_not_worse_and_a_clear_loser_is():
    methods = {"good": CCA(3, reg=0.1), "same": MVCCA(3, reg=0.1), "bad": CCA(3, reg=1e6)}
    found = mvcca.compare(methods, planted(noise=0.1), cv=5, measures="mrr")
    for what in ("mrr", "object"):
        assert [found.is_worse(name, what) for name in methods] == [False, False, True]


@pytest.mark.slow
@pytest.mark.parametrize("cv", [pytest.param(5, marks=pytest.mark.long), 0.3])
def test_two_equal_methods_are_rarely_found_different(cv):
    """Both methods learn from different halves of the features' noise; 200 data sets."""
    p_values = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shared = rng.standard_normal((100, 2))
        views = Views(
            {
                name: np.hstack([shared + rng.standard_normal((100, 2)) for _ in range(2)])
                for name in ("a", "b")
            }
        )
        halves = {
            name: make_pipeline(PerView(Columns(start)), CCA(2, reg=0.1))
            for name, start in (("first", 0), ("second", 2))
        }
        found = mvcca.compare(halves, views, measures="mrr", cv=cv, random_state=seed)
        best, other = found.ranked_for("mrr")
        behind = found.standing(other, "mrr").behind(found.standing(best, "mrr"))
        scores = found.fold_values(best, "mrr") - found.fold_values(other, "mrr")
        test = protocol.paired_test(behind) if cv < 1 else protocol.corrected_t_test(scores, 0.25)
        p_values.append(test)
        assert (p_values[-1] < 0.05) == found.is_worse(other, "mrr")
    # At level 0.05, more than 19 of 200 rejections have probability 0.002.
    assert np.sum(np.array(p_values) < 0.05) <= 19
    assert 0.15 < np.mean(np.array(p_values) < 0.5) < 0.65  # the test is not blind


class Columns(TransformerMixin, BaseEstimator):
    """Two columns of a matrix."""

    def __init__(self, start=0):
        self.start = start

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X[:, self.start : self.start + 2]


# ---- the result ---------------------------------------------------------------------------------


def test_the_frame_is_tidy(result):
    frame = result.to_frame()
    assert list(frame.columns) == ["method", "fold", "direction", "measure", "value"]
    retrieval = frame[frame.direction != ""]
    assert len(retrieval) == 2 * 5 * 2 * len(MEASURES)
    means = retrieval.groupby(["method", "measure"]).value.mean()
    for name in result.methods:
        for measure in MEASURES:
            assert means[name, measure] == pytest.approx(result.mean(name, measure))
    assert {"seconds"} <= set(frame[frame.direction == ""].measure)


def test_without_measures_values_are_those_of_the_goals():
    found = mvcca.compare({"CCA": CCA(3, reg=0.1)}, planted(), CLASSES, cv=3)
    frame = found.to_frame()
    means = frame[frame.direction != ""].groupby("measure").value.mean()
    own = found.standing("CCA", "object")
    assert means["r@1"] == pytest.approx(own.recall())
    assert means["mrr"] == pytest.approx(own.value) == pytest.approx(found.mean("CCA", "mrr"))
    assert means["r@10"] == pytest.approx(found.mean("CCA", "r@10"))
    assert means["map@50"] == pytest.approx(found.standing("CCA", "class").value)
    assert "R@10 by direction" in full(found, directions=True)


def test_queries_have_the_objects_of_the_data(result):
    frame = result.per_query("r@1")
    of_one = frame[(frame.method == "CCA") & (frame.direction == "image -> text")]
    assert sorted(of_one.object) == list(range(N))  # every object is held out once
    assert_array_equal(of_one[of_one.fold == 2].object, result.folds[2].test)
    with pytest.raises(ValueError, match=r"'map' is not one of the measures"):
        result.per_query("map")


def test_the_best_estimator_is_fitted_to_everything(result):
    assert result.best == "MLCCA"
    expected = MLCCA(3, reg=0.1).fit(planted(), CLASSES)
    found = result.best_estimator_
    for name in ("image", "text"):
        assert_allclose(found.weights_[name], expected.weights_[name], atol=1e-12)


def test_the_table_fits_the_terminal(monkeypatch):
    names = ["cca", "pls", "mvmlcca", "mlcca"]
    found = mvcca.compare(names, planted(), CLASSES, cv=2, params={"n_components": 3})
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        text = str(found)
        assert max(map(len, text.splitlines())) <= width
        for method in found.methods:
            assert re.search(rf"^{method} +\d", text, re.M)


def test_the_table_marks_the_best_and_measures_are_in_it(result):
    text = full(result, directions=True)
    for name in result.methods:
        assert f"{result.mean(name, 'r@1'):.3f}±" in text
        cells = re.search(rf"^{name} .*$", text, re.M)[0].split()
        assert cells[2].endswith("<") == (name == result.best_for("object"))
        assert cells[3].endswith("<") == (name == result.best_for("class"))
    assert "ranked by" in text
    assert "profile-likelihood" in text
    assert "Median rank by direction" in text or "median rank by direction" in text


def test_notebooks_show_the_sentences_and_the_table(result):
    table = result._repr_html_()
    for goal in result.goals:
        best = result.best_for(goal)
        row, *_ = re.findall(rf'<th scope="row"[^>]*>{best}</th>(.*?)</tr>', table)
        assert f"{result.standing(best, goal).shown():.3f}±" in row
    text = html.unescape(table)
    for sentence in sentences(result):
        assert sentence in text
    assert text.index(sentences(result)[0]) < text.index("<table")


def test_a_method_that_fails_is_a_row_with_its_reason():
    views = planted().add("third", np.random.default_rng(0).standard_normal((N, 3)))
    found = mvcca.compare({"CCA": CCA(2), "MVCCA": MVCCA(2)}, views, cv=2)
    assert found.successes == ["MVCCA"]
    assert found.failures["CCA"].startswith("CCA takes 2 views, got 3")
    assert re.search(r"^CCA +skipped: CCA takes 2 views", str(found), re.M)
    assert "skipped: CCA takes 2 views" in found._repr_html_()
    with pytest.raises(ValueError, match="There is no value of 'CCA': CCA takes 2 views"):
        found.mean("CCA", "mrr")


def test_ctrl_c_leaves_what_was_measured():
    seen = []

    def stop(text):
        seen.append(text)
        if len(seen) == 6:  # the third fold of MLCCA
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted: the result contains 5 of 10 fits"):
        found = mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, progress=stop)
    assert not found.is_complete
    assert len(found.fold_values("CCA", "mrr")) == 3
    assert len(found.fold_values("MLCCA", "mrr")) == 2
    assert "Interrupted" in str(found)
    assert found.best in found.methods


class Slow(CCA):
    """A CCA that takes its time."""

    def fit(self, X, y=None):
        time.sleep(0.3)
        return super().fit(X, y)


@pytest.mark.slow  # starts processes
def test_ctrl_c_with_several_processes_leaves_what_was_measured():
    seen = []

    def stop(text):
        seen.append(text)
        if len(seen) == 6:  # of two processes, so that at least four fits are done
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(UserWarning, match=r"Interrupted: the result contains \d of 10 fits"):
        found = mvcca.compare(
            {"a": Slow(2), "b": Slow(1)}, planted(), CLASSES, n_jobs=2, progress=stop
        )
    assert not found.is_complete
    assert 2 <= sum(len(run.folds) for run in found.runs.values()) < 10
    assert found.best in found.successes


def test_ctrl_c_before_anything_was_measured_is_an_interruption():
    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mvcca.compare(METHODS_BY_NAME, planted(), CLASSES, progress=stop)


def test_reports_by_ending(result, tmp_path):
    result.save_page(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == list(result.to_frame().value)
    result.save_page(tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    (found,) = content["results"]
    assert found["best"] == result.best == "MLCCA"
    assert found["methods"][0]["measures"]["mrr"]["mean"] == result.mean("CCA", "mrr")
    half_width = result.standing("CCA", "mrr").reach
    assert found["methods"][0]["measures"]["mrr"]["half_width"] == half_width
    result.save_page(tmp_path / "out.md")
    assert "| method | R@1 of 30 |" in (tmp_path / "out.md").read_text(encoding="utf-8")
    result.save_page(tmp_path / "out.html")
    assert "<svg" in (tmp_path / "out.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"out\.xls: expected a file for results ending in \.html"):
        result.save_page(tmp_path / "out.xls")


def test_the_report_begins_with_a_verdict_and_ends_with_the_next_step(result, tmp_path):
    result.save_page(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    (found,) = re.findall(r'<dl class="answers">(.*?)</dl>', page, re.S)
    shown = " ".join(re.sub("<[^>]*>", " ", found).split())
    for part in answers(result):
        value = f"{part.value} random scores: {part.chance}"
        text = " ".join(filter(None, (part.what, part.method, value, part.others)))
        assert shown.startswith(text)
        shown = shown.removeprefix(text).strip()
    assert not shown
    steps = [page.index(mark) for mark in (found, "<table", "<svg", "<h2>Next", "How this page")]
    assert steps == sorted(steps)
    for goal in result.goals:
        statement = f"mvcca.save(result.refit({result.best_for(goal)!r}, {goal!r})"
        assert statement in html.unescape(page)


def test_every_table_and_figure_of_the_report_says_what_it_was_measured_on(
    result, one_split, tmp_path
):
    for found, folds in ((result, f"{len(result.folds)} folds, "), (one_split, "")):
        found.save_page(tmp_path / "out.html")
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        held_out = f"{len(found.folds[0].test)} held-out objects"
        first, *captions = re.findall("<caption[^>]*>(.*?)</caption>", page)
        assert first == CAPTION
        assert captions[-1].endswith(f"{folds}{held_out}" + (" in the first" if folds else ""))
        sources = re.findall(r'<span class="source">Measured on: (.*?)\.</span>', page)
        assert len(sources) == page.count("<figcaption>") == 2
        assert all(held_out in source for source in sources)
        varied = "6 queries, drawn at random among those of different labels"
        assert f"Measured on: {varied}; {folds and 'first of '}" in page


@pytest.mark.parametrize("labels", [pytest.param(None, marks=pytest.mark.slow), CLASSES])
def test_queries_are_named_by_their_words_or_the_index_of_the_views_or_their_row(
    labels, tmp_path, monkeypatch
):
    monkeypatch.setattr("mvcca.comparison.report.has_pictures", lambda: False)  # which take long
    names = [f"page {i}" for i in range(0, 2 * N, 2)]
    plain = planted()
    indexed = {name: pd.DataFrame(block, index=names) for name, block in plain.items()}
    words = Presentation(words=lambda view, row: f"{view} no. {row}")
    pages = []
    for views, presentation in ((plain, Presentation()), (indexed, Presentation()), (plain, words)):
        found = mvcca.compare({"CCA": CCA(3)}, views, labels, cv=2)
        replace(found, presentation=presentation).save_page(tmp_path / "out.html")
        page = (tmp_path / "out.html").read_text(encoding="utf-8")
        pages.append(
            [html.unescape(text) for text in re.findall(r'<p class="query">(.*?)</p>', page)]
        )
    rows = [int(re.match(r"row (\d+)", text)[1]) for text in pages[0]]
    assert len(rows) == 6
    suffix = ["" if labels is None else f" [{labels[row]}]" for row in rows]
    assert pages[0] == [f"row {row}{end}" for row, end in zip(rows, suffix, strict=True)]
    assert pages[1] == [f"page {2 * row}{end}" for row, end in zip(rows, suffix, strict=True)]
    assert pages[2] == [f"image no. {row}{end}" for row, end in zip(rows, suffix, strict=True)]


def test_the_sentences_name_the_best_method_of_each_goal_and_its_gallery(result, one_split):
    for found in (result, one_split):
        of_object, of_class = sentences(found)
        best = found.best_for("object")
        recall = found.standing(best, "object").at(N)[0]
        start = f"Same object: {best} finds it first in {100 * recall:.2g} % of searches among {N}"
        assert of_object.startswith(start)
        best = found.best_for("class")
        value = f"{found.standing(best, 'class').value:.2f}".removeprefix("0")
        assert of_class.startswith(f"Same class: {best} has mAP@50 {value} among {N} items (chance")
        for goal, text in zip(found.goals, (of_object, of_class), strict=True):
            _, other = found.ranked_for(goal)
            assert f"; next {other} " in text
            assert text.endswith(", which may be as good.") != found.is_worse(other, goal)
    alone = mvcca.compare({"CCA": CCA(2, reg=0.1)}, planted(), CLASSES, cv=0.4, measures="mrr")
    assert len(sentences(alone)) == 1
    assert "next" not in sentences(alone)[0]
    failed = mvcca.compare({"CCA": CCA(2, reg=-1.0)}, planted(), CLASSES, cv=0.4)
    assert sentences(failed) == ["No method could be fitted."]


def test_a_next_method_that_finds_more_objects_first_is_next_by_mrr():
    methods = {"one": CCA(1, reg=0.1), "three": CCA(3, reg=0.1), "two": CCA(2, reg=0.1)}
    found = mvcca.compare(methods, planted(), cv=2)
    _, other, _ = found.ranked_for("object")
    assert "MRR" not in str(found)
    own = found.standing(other, "object")
    ranks = {n: np.full_like(old, N) for n, old in own.of_folds.items()}
    for of_fold in ranks.values():
        of_fold[:80] = 1
    found._standings[other, "object"] = replace(own, of_folds=ranks)
    assert f"; next by MRR {other} " in sentences(found)[0]
    assert "< best, of the same object by MRR in the folds" in " ".join(str(found).split())


def test_without_pairs_or_labels_there_is_one_question():
    sets = [{"ab"[i % 2], "cd"[i // 2 % 2]} for i in range(N)]
    unpaired = {"image": planted()["image"][:100], "text": planted()["text"]}
    by_view = {"image": CLASSES[:100], "text": CLASSES}
    for X, y, more, what in (
        (planted(), None, {}, "the same object"),
        (planted(), CLASSES, {"relevance": "pairs"}, "the same object"),
        (planted(), CLASSES, {"measures": ["hubness@5", "map"]}, "the same class"),
        (planted(), sets, {"measures": "map"}, "a label in common"),
        (unpaired, by_view, {}, "the same class"),
    ):
        found = mvcca.compare(
            {"MLCCA": MLCCA(2)} if y is not None else {"CCA": CCA(2)}, X, y, cv=2, **more
        )
        assert list(map(found.right_items, found.goals)) == [what]
        assert len(sentences(found)) == 1
        assert sentences(found)[0].startswith(what.removeprefix("the ").capitalize())


def test_the_sentences_are_the_first_that_is_read(result, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    assert str(result).splitlines()[:2] == sentences(result)
    result.save_page(tmp_path / "out.md")
    heading, text = (tmp_path / "out.md").read_text(encoding="utf-8").split("\n\n")[:2]
    assert heading.startswith("## ")
    assert text == " ".join(sentences(result))
    result.save_page(tmp_path / "out.json")
    (found,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["results"]
    assert found["sentences"] == sentences(result)
    assert found["best_for"]["the same object"] == result.best_for("object")


def test_tables_of_the_report_have_captions_and_scopes(result, tmp_path):
    result.save_page(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    tables = re.findall(r"<table.*?</table>", page, re.S)
    heads = [re.findall('<th scope="col"[^>]*>(.*?)</th>', table) for table in tables]
    assert heads[0][:4] == ["method", "R@1 of 30", "R@1 of 150", "mAP@50 of 150"]
    shown = [head for own in heads for head in own if ", fold of 30" in head]
    assert shown == [f"{pretty(measure)}, fold of 30" for measure in result.measures]
    costs = ["for", "settings", "ranked by", "learns from", "s a fold", "MB"]
    assert {*costs} <= {head for own in heads for head in own}
    by_direction = [own for own in heads if own[0] == "query → searched"]
    assert len(by_direction) == len(result.measures)
    for table in tables:
        assert re.search(r"<caption[^>]*>[^<]+</caption>", table)
        heads = re.findall(r"<th\b[^>]*>", table)
        assert heads
        assert all(re.search('scope="(row|col)"', head) for head in heads)
        for row in re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], re.S):
            assert row.count('<th scope="row"') == 1


def test_recall_curves_are_merged_where_equal_and_named_from_the_highest():
    figures = pytest.importorskip("matplotlib.figure", reason="drawing needs mvcca[plot]")
    from mvcca.comparison.figures import draw_recall

    methods = {"CCA": CCA(3, reg=0.1), "MLCCA": MLCCA(3, reg=0.1), "again": CCA(3, reg=0.1)}
    found = mvcca.compare(methods, planted(), CLASSES, cv=3)
    ax = figures.Figure().subplots()
    draw_recall(found, ax)
    *lines, chance = ax.lines
    ends = {line.get_label(): line.get_ydata()[-1] for line in ax.lines}
    assert set(ends) == {"CCA, again", "MLCCA", "random scores"}
    for line in lines:
        name = line.get_label().split(",")[0]
        r10 = [found.mean(name, "r@1"), found.mean(name, "r@10")]
        assert_allclose(line.get_ydata()[[0, 9]], r10)
    assert lines[0].get_linestyle() != lines[1].get_linestyle()
    assert_allclose(chance.get_ydata(), np.arange(1, 51) / 50)  # of 50 held-out objects
    listed = [text.get_text() for text in ax.get_legend().get_texts()]
    assert listed == sorted(ends, key=lambda name: -ends[name])


def test_the_plot_draws_means_and_intervals(result):
    assert result.plot().get_xlabel() == "R@1 of 30; dotted: chance"
    ax = result.plot(figure="mrr")
    drawn = [line.get_xdata() for line in ax.lines]
    for name in result.methods:
        mean, reach = result.mean(name, "mrr"), result.standing(name, "mrr").reach
        assert any(np.allclose(xs, [mean - reach, mean + reach]) for xs in drawn if len(xs) == 2)
        assert any(np.allclose(xs, mean) for xs in drawn if len(xs) == 1)
    assert ax.get_xlabel() == "MRR of 30; dotted: chance"
    ax.figure.clear()


def test_rows_are_checked_once_and_faults_are_reported_by_every_method(result):
    for fold in result.folds:
        train = result.data.views[fold.train]
        for name in train.names:
            block = train.block(name)
            assert block.checked(CCA(), name, ensure_min_samples=2) is block
    views = planted()
    views["text"][7, 2] = np.nan
    found = mvcca.compare(METHODS_BY_NAME, views, CLASSES, cv=3)
    for reason in found.failures.values():
        assert reason.startswith("View 'text' contains NaN: first in row 7, column 2")
    assert list(found.failures) == list(METHODS_BY_NAME)


# ---- results that grow --------------------------------------------------------------------------


def values_of(found):
    """All that is measured but seconds and bytes, with uncertainty and decisions."""
    return {
        (name, measure): (
            found.fold_values(name, measure).tolist(),
            found.standing(name, measure).reach,
            found.is_worse(name, measure),
        )
        for name in found.methods
        for measure in found.measures
    }


@pytest.mark.parametrize("cv", [3, 0.4], ids=["folds", "split"])
@pytest.mark.parametrize("search", [None, {"reg": [0.01, 1.0]}], ids=["plain", "search"])
def test_results_of_several_calls_are_those_of_one(cv, search):
    methods = {"CCA": CCA(3), "MLCCA": MLCCA(3, reg=0.1), "NCCA": NCCA(3), "bad": CCA(2, reg=-1)}
    compared = partial(
        mvcca.compare, X=planted(), y=CLASSES, cv=cv, search=search, measures=("map", "mr")
    )
    once = compared(methods)
    first, second = (
        {name: methods[name] for name in names} for names in (("CCA", "MLCCA"), ("NCCA", "bad"))
    )
    steps = compared(first)
    added = steps.add(second)
    assert steps.methods == ("CCA", "MLCCA")  # not changed
    for found in (added, steps | compared(second)):
        assert found.methods == once.methods
        assert found.failures == once.failures
        assert found.best == once.best
        assert values_of(replace(found, candidates=found.candidates[:3])) == values_of(
            replace(once, candidates=once.candidates[:3])
        )
        assert sentences(found) == sentences(once)
        assert found.refit("MLCCA").get_params() == once.refit("MLCCA").get_params()


def test_names_and_estimators_are_added_to_each_other():
    params = {"n_components": 2}
    named = mvcca.compare(["cca"], planted(), CLASSES, cv=2, params=params, tune=False)
    both = named.add("mlcca").add({"mine": MLCCA(2, reg=0.1)})
    assert both.methods == ("CCA", "MLCCA", "mine")
    assert both.mean("mine", "mrr") == both.mean("MLCCA", "mrr")
    given = mvcca.compare({"mine": MLCCA(2, reg=0.1)}, planted(), CLASSES, cv=2, tune=False)
    assert "settings: " not in full(given)
    for joined in (given | named, named | given):
        assert values_of(joined) == values_of(replace(joined, settings=named.settings))
        assert "settings: 2 components, reg 0.1" in full(joined)


def test_a_method_is_added_once_and_under_a_name_of_its_own(result):
    with pytest.raises(ValueError, match="There is a method 'CCA' already"):
        result.add({"CCA": CCA(1)})
    with pytest.raises(ValueError, match="There is a method 'CCA' already"):
        result.add("cca")
    with pytest.raises(ValueError, match="Both results have a method 'CCA'"):
        result | result
    with pytest.raises(TypeError, match="unsupported operand"):
        result | {"mine": CCA(2)}


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"X": planted(seed=1)}, "views"),
        ({"y": CLASSES[::-1]}, "labels and labels to learn from"),
        ({"fit_labels": CLASSES // 2}, "labels to learn from"),
        ({"cv": 4}, "folds"),
        ({"groups": np.arange(N)}, "groups"),
        ({"measures": "mrr"}, "measures"),
        ({"relevance": "labels"}, "relevance"),
        ({"directions": "all"}, "directions"),
        ({"search": {"reg": [0.1, 1.0]}}, "search"),
        ({"random_state": 1}, "folds and random_state"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_results_that_were_measured_differently_are_not_joined(changed, what):
    given = {"X": planted(), "y": CLASSES, "cv": 3}
    result = mvcca.compare({"CCA": CCA(2)}, **given)
    other = mvcca.compare({"other": CCA(2)}, **(given | changed))
    with pytest.raises(ValueError, match=f"they differ in {what}\\. Compare the methods in one"):
        result | other


def test_params_differ_only_between_methods_selected_by_name():
    first = mvcca.compare("cca", planted(), cv=2, params={"n_components": 2})
    other = mvcca.compare("pls", planted(), cv=2, params={"n_components": 3})
    with pytest.raises(ValueError, match=r"they differ in params\."):
        first | other


def test_an_interruption_while_a_method_is_added_leaves_the_others(result):
    methods = {"again": CCA(2), "ends": Ends(KeyboardInterrupt)}
    with pytest.warns(UserWarning, match="Interrupted: the result contains 1 of 10 fits"):
        found = result.add(methods)
    assert found.successes == ["CCA", "MLCCA", "again"]
    assert list(found.failures) == ["ends"]
    assert not found.is_complete


# ---- names --------------------------------------------------------------------------------------


def test_the_listing_shows_every_method():
    listing = repr(mvcca.methods())
    for name, method in METHODS.items():
        assert re.search(rf"^  {name} +{re.escape(method.summary)} ", listing, re.M)


def test_the_default_methods_leave_out_what_does_not_apply():
    params = {"n_components": 2, "reg": 0.1}
    compared = partial(mvcca.compare, "default", cv=2, params=params, measures="map", tune=False)
    both = compared(planted(), CLASSES)
    assert both.methods == (
        "CCA",
        "NKCCA",
        "semantic matching",
        "JRL",
    )
    more = planted().add("third", np.random.default_rng(0).standard_normal((N, 3)))
    assert "MVCCA" in compared(more, CLASSES).methods
    assert "CCA" not in set(compared(more, CLASSES).methods)
    assert compared(planted()).methods == ("CCA", "NKCCA")
    for found in (both, compared(more, CLASSES)):
        assert not found.failures


def test_a_wrong_name_is_an_error_that_suggests_another():
    with pytest.raises(ValueError, match=r"unknown method 'nkca'; did you mean 'nkcca'"):
        mvcca.compare("nkca", planted())
    with pytest.raises(
        ValueError, match="no method any more: use MVCCA with the labels as one more"
    ):
        mvcca.compare("three-view-cca", planted())
    with pytest.raises(ValueError, match="'gamma' is not a parameter of cca"):
        mvcca.compare("cca", planted(), params={"gamma": 1.0})
    with pytest.raises(ValueError, match="set the parameters of estimators"):
        mvcca.compare({"CCA": CCA()}, planted(), params={"reg": 1.0})
    with pytest.raises(TypeError, match="Expected estimators with fit"):
        mvcca.compare({"CCA": "cca"}, planted())
    with pytest.raises(ValueError, match="Relevance by labels needs classes"):
        mvcca.compare("cca", planted(), relevance="labels")


@pytest.mark.parametrize(
    ("peer", "name"),
    [("DIABLO", "sparse-discriminant"), ("spls", "sparse-cca"), ("rgcca", "sparse-cca")],
)
def test_names_of_other_packages_are_answered_with_the_name_here(peer, name):
    message = rf"unknown method '{peer}'; here it is '{name}': see \"Coming from mixOmics"
    with pytest.raises(ValueError, match=message):
        mvcca.compare(peer, planted())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": CCA(2)}, "Expected names of methods .* got CCA"),
        ({"methods": [CCA(2), MVCCA(2)]}, "mapping of names to estimators such as"),
        ({"methods": []}, "at least one method"),
        ({"X": planted()["image"]}, r"got ndarray\. Pass two matrices as \[X1, X2\]"),
        ({"y": Labels.of(CLASSES[:9])}, r"inconsistent numbers of samples: \[150, 9\]"),
        ({"y": CLASSES[:9]}, r"\[150, 9\]\. One label"),
        ({"measures": "wmap@5"}, "wmap@5 needs label_vectors"),
        ({"directions": [("image", "sound")]}, "Unknown view 'sound'"),
        ({"search": {"regg": [1, 2]}}, r"not a parameter of any .*; did you mean 'reg'\?"),
        ({"search": {"reg": 0.1}}, r"expected a sequence of values of reg, got 0\.1"),
        ({"search": ["reg"]}, "Expected search to map parameters to their values"),
        ({"params": {"regg": 1}}, r"'regg' is not a parameter of cca; did you mean 'reg'\?"),
        ({"cv": GroupKFold(3)}, "GroupKFold.* cannot split the objects: .* cv=list"),
        ({"random_state": None}, "Expected random_state to be a seed"),
        ({"random_state": -1}, "Expected random_state to be a seed"),
    ],
    ids=str,
)
def test_wrong_arguments_are_errors_before_anything_is_fitted(arguments, message):
    fitted = []
    given = {"methods": "cca", "X": planted(), "y": CLASSES, "progress": fitted.append, **arguments}
    methods, X, y = (given.pop(name) for name in ("methods", "X", "y"))
    with pytest.raises((ValueError, TypeError), match=message):
        mvcca.compare(methods, X, y, **given)
    assert not fitted


@pytest.mark.parametrize(
    "names", [["a"], ["a", "a", "b", "c", "d"], list("abcdef")], ids=["few", "twice", "many"]
)
def test_every_label_has_a_name_of_its_own(names):
    with pytest.raises(ValueError, match="a different name for each of 5 labels"):
        Labels.of(np.eye(5, dtype=np.uint8)[CLASSES], names)
    with pytest.raises(ValueError, match="Expected names of classes 0 to 4, got 1 names"):
        Labels.of(CLASSES, names=["a"])


def test_a_search_that_fails_is_a_row_with_the_reason_of_its_estimator():
    found = mvcca.compare({"CCA": CCA(2)}, planted(), CLASSES, cv=2, search={"reg": [-1.0, 0.1]})
    assert found.failures["CCA"].startswith("The 'reg' parameter of CCA must be")
    assert found.failures["CCA"].endswith("Got -1.0 instead.")


def test_values_of_what_was_not_compared_are_errors(result):
    with pytest.raises(ValueError, match=r"value of 'PLS': the methods are 'CCA', 'MLCCA'\."):
        result.mean("PLS", "mrr")
    for ask in (result.best_for, partial(result.standing, "CCA")):
        with pytest.raises(ValueError, match="'p@5' is not one of the measures"):
            ask("p@5")
    with pytest.raises(ValueError, match=r"Expected figure to be one of .*'mrr'.*; got 'p@5'"):
        result.plot(figure="p@5")
    with pytest.raises(FileNotFoundError, match="there is no folder nowhere"):
        result.save_page("nowhere/out.csv")


def test_groups_have_known_methods():
    assert all(name in METHODS for names in GROUPS.values() for name in names)


@pytest.mark.parametrize("named", ["names", "indicators"])
def test_views_without_labels_in_common_are_an_error_with_their_names(named):
    animals, trees = np.array(["cat", "dog"] * 20), np.array(["elm", "oak"] * 20)
    if named == "names":
        y = {"image": animals, "text": trees}
    else:
        names = ["cat", "dog", "elm", "oak"]
        codes = np.concatenate([np.searchsorted(names, part) for part in (animals, trees)])
        y = Labels.of(np.eye(4, dtype=np.uint8)[codes], names)
    rng = np.random.default_rng(0)
    X = Views.unpaired(
        {"image": rng.standard_normal((40, 4)), "text": rng.standard_normal((40, 3))}
    )
    compared = partial(mvcca.compare, {"MLCCA": MLCCA(2, reg=0.1)}, X, cv=2)
    with pytest.raises(ValueError, match=r"'image' \('cat', 'dog'\) .* 'text' \('elm', 'oak'\)"):
        compared(y)
    within = compared(y, directions="within")  # where images share labels
    assert list(within.failures) == ["MLCCA"]
    named = r"view 'image' \('cat', 'dog'\) have nothing in common .* \('elm', 'oak'\)"
    assert re.search(named, within.failures["MLCCA"])


NOT_BY_NAME = {
    "CellCCA": "relates views that share features, not rows",
    "EncoderCCA": "is defined by an objective",
    "RGCCA": "has the parameters of R's packages, with SparseCCA for their search",
}


@pytest.mark.parametrize("family", ["linear", "kernel", "deep"])
def test_every_public_estimator_has_a_name(family):
    if family == "deep":
        pytest.importorskip("torch")
    module = import_module(f"mvcca.{family}")
    estimators = {name for name in module.__all__ if isinstance(getattr(module, name), type)}
    entries = [m for m in METHODS.values() if m.path.startswith(f"mvcca.{family}:")]
    named = {type(method.build({})).__name__ for method in entries}
    assert named
    assert estimators - named == estimators & set(NOT_BY_NAME)


# ---- measures without values of queries ---------------------------------------------------------


@pytest.mark.parametrize("cv", [3, 0.4])
def test_hubness_is_compared_like_other_measures(cv, tmp_path):
    result = mvcca.compare(
        METHODS_BY_NAME, planted(), CLASSES, cv=cv, measures=["map", "hubness@5"]
    )
    fold = result.folds[0]
    fitted = CCA(3, reg=0.1).fit(planted()[fold.train])
    table = mvcca.evaluate_retrieval(
        planted()[fold.test], CLASSES[fold.test], measures="hubness@5", estimator=fitted
    )
    assert result.fold_values("CCA", "hubness@5")[0] == pytest.approx(table.mean()["hubness@5"])
    assert f"{result.mean('CCA', 'hubness@5'):.3f}" in full(result)
    assert np.isnan(result.standing("CCA", "hubness@5").reach)
    assert result.ranked_for("hubness@5")
    result.save_page(tmp_path / "found.json")
    json.loads((tmp_path / "found.json").read_text(), parse_constant=pytest.fail)
    result.save_page(tmp_path / "found.html")
    with pytest.raises(ValueError, match="has no values of queries"):
        result.per_query("hubness@5")


# ---- repeated objects ---------------------------------------------------------------------------


def repeated_noise(n_pairs=60, n_copies=5):
    """Pairs of noise that nothing connects, each of which occurs several times."""
    rng = np.random.default_rng(0)
    pairs = np.repeat(np.arange(n_pairs), n_copies)
    return [rng.standard_normal((n_pairs, width))[pairs] for width in (6, 5)], pairs


@pytest.mark.parametrize("given", [False, True], ids=["found", "given"])
@pytest.mark.parametrize("cv", [5, 0.2])
def test_copies_of_training_objects_are_not_held_out(cv, given):
    X, pairs = repeated_noise()
    groups = pairs if given else None
    options = {"cv": cv, "measures": ("r@5", "mrr"), "tune": False}
    found = mvcca.compare("nkcca", X, groups=groups, **options)
    for fold in found.folds:
        assert set(pairs[fold.train]).isdisjoint(pairs[fold.test])
        assert len(fold.test) == 60
    # Twelve held-out pairs, with five equal rows each: noise finds them as often as chance.
    assert found.mean("NKCCA", "mrr") < found.chance_level("mrr") + 0.15
    split = mvcca.compare("nkcca", X, groups=np.arange(300), **options)
    assert split.mean("NKCCA", "mrr") > 0.3  # what was measured without groups


def test_a_note_says_how_many_objects_are_repeated_and_what_was_done():
    X, pairs = repeated_noise()
    together = " ".join(str(mvcca.compare({"CCA": CCA(2)}, X, cv=3)).split())
    assert "repeated rows (view0: 300, view1: 300): 300 objects share a row" in together
    assert "are in the same part of a split as that object" in together
    given = str(mvcca.compare({"CCA": CCA(2)}, X, cv=3, groups=pairs))
    assert "groups: 60, each in one part of a split" in given
    halves = [(np.arange(0, 300, 2), np.arange(1, 300, 2))]
    divided = " ".join(str(mvcca.compare({"CCA": CCA(2)}, X, cv=halves)).split())
    assert "up to 150 held-out objects of a split repeat a training row" in divided
    assert "repeated" not in str(mvcca.compare({"CCA": CCA(2)}, planted(), cv=3))


def test_cells_that_cannot_be_compared_make_no_groups():
    lists = np.empty((4, 1), dtype=object)
    lists[:, 0] = [[1], [1], [2], [3]]
    assert Groups.found_in(Views({"lists": lists, "other": np.arange(4.0)[:, None]})) is None


@pytest.mark.parametrize("kind", ["array", "float32", "sparse", "frame", "texts", "integers"])
def test_rows_that_occur_twice_are_found_in_every_kind_of_view(kind):
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, size=(400, 3))
    other = rng.standard_normal((400, 2))
    block = {
        "array": rows.astype(float),
        "float32": rows.astype(np.float32),
        "sparse": csr_array(rows),
        "frame": pd.DataFrame(rows),
        "texts": [" ".join(map(str, row)) if row.any() else "" for row in rows],
        "integers": rows,
    }[kind]
    groups = Groups.found_in(Views({"rows": block, "other": other}))
    names, first = {}, []
    for place, row in enumerate(map(tuple, rows)):  # objects with equal rows, in a loop
        first.append(names.setdefault(row, place) if any(row) else place)
    assert_array_equal(groups.codes[:, None] == groups.codes, np.equal.outer(first, first))
    n_repeated = sum(first.count(place) > 1 for place in first)
    assert groups.repeats == {"rows": n_repeated}


def test_objects_are_linked_through_rows_of_several_views():
    a, b = np.array([1.0, 1, 2, 3, 4, 0, 0])[:, None], np.array([5.0, 6, 6, 7, 8, 9, 10])[:, None]
    groups = Groups.found_in(Views({"a": a, "b": b}))
    assert_array_equal(groups.codes[:3], groups.codes[0])  # by a, and by b
    assert len(set(groups.codes)) == 5  # rows of zeros are not linked
    assert groups.repeats == {"a": 2, "b": 2}
    assert Groups.found_in(Views({"a": np.array([0.0, -0.0])[:, None]})) is None
    assert Groups.found_in(Views({"a": a[2:5], "b": b[2:5]})) is None


@pytest.mark.parametrize("cv", [4, 0.25])
def test_grouped_folds_have_equal_shares_of_objects_and_classes(cv):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(80), rng.integers(1, 8, size=80))
    classes = (groups % 3).astype(int)
    views = Views([np.zeros((len(groups), 1))] * 2)
    folds = make_folds(views, Labels.of(classes), cv, 0, groups)
    for fold in folds:
        assert np.intersect1d(groups[fold.train], groups[fold.test]).size == 0
        assert len(fold.train) + len(fold.test) == len(groups)
        expected = np.bincount(classes) / 4
        assert_allclose(np.bincount(classes[fold.test]), expected, atol=4)
    if cv == 4:
        assert_array_equal(np.sort(np.concatenate([f.test for f in folds])), np.arange(len(groups)))
        other = make_folds(views, Labels.of(classes), cv, 1, groups)
        assert not np.array_equal(folds[0].test, other[0].test)  # the seed decides


def test_as_few_groups_as_folds_leave_no_fold_empty():
    groups = np.repeat([0, 1, 2, 3], [50, 3, 2, 1])
    views = Views([np.zeros((56, 1))] * 2)
    assert all(len(fold.test) for fold in make_folds(views, None, 4, 0, groups))
    (fold,) = make_folds(views, None, 0.1, 0, groups[:53])
    assert len(fold.test)
    with pytest.raises(ValueError, match="at least 5 groups for 5 parts, got 4"):
        make_folds(views, None, 5, 0, groups)


@pytest.mark.parametrize("cv", [0.2, 0.8])
def test_groups_that_are_found_stay_together_if_the_smaller_part_holds_the_largest(cv):
    views = Views({"x": np.random.default_rng(0).normal(size=(40, 2))})
    for size, stay in {2: True, 7: True, 9: False, 20: False}.items():
        groups = np.concatenate([np.zeros(size, int), np.arange(1, 41 - size)])
        folds = [make_folds(views, None, cv, seed, groups, are_given=False)[0] for seed in range(5)]
        divided = [{*groups[own.test]} & {*groups[own.train]} for own in folds]
        assert any(divided) != stay


def test_rows_that_nearly_all_objects_share_do_not_decide_the_folds():
    rng = np.random.default_rng(0)
    X = {"a": rng.standard_normal((N, 3)), "b": np.repeat([[1.0, 2.0], [3.0, 4.0]], N // 2, axis=0)}
    found = mvcca.compare({"MLCCA": MLCCA(1)}, X, CLASSES, cv=5)
    assert [len(fold.test) for fold in found.folds] == [30] * 5
    assert "30 held-out objects of a split repeat a training row" in " ".join(str(found).split())


def test_rows_that_describe_classes_do_not_make_groups():
    rng = np.random.default_rng(0)
    attributes = rng.standard_normal((5, 3))[CLASSES]
    views = Views({"image": rng.standard_normal((N, 4)), "attributes": attributes})
    assert Groups.found_in(views).repeats == {"attributes": N}
    assert Groups.found_in(views, Labels.of(CLASSES)) is None
    result = mvcca.compare({"MLCCA": MLCCA(2)}, views, CLASSES, cv=5)
    assert all(set(CLASSES[fold.test]) == set(range(5)) for fold in result.folds)
    copies = Views({"image": attributes, "attributes": attributes + 1})  # of five objects
    assert Groups.found_in(copies, Labels.of(CLASSES)).codes.max() == 4
    other = rng.permutation(CLASSES)
    assert Groups.found_in(views, Labels.of(other)).repeats == {"attributes": N}


def test_groups_are_matched_with_the_index_of_the_views():
    names = [f"page {i}" for i in range(N)]
    frames = {name: pd.DataFrame(X, index=names) for name, X in planted().items()}
    groups = pd.Series(np.arange(N) // 3, index=names)
    found = mvcca.compare({"CCA": CCA(2)}, frames, cv=3, groups=groups)
    assert all(np.isin(f.train // 3, f.test // 3).sum() == 0 for f in found.folds)
    with pytest.raises(ValueError, match="the groups and the views have the same labels in a diff"):
        mvcca.compare({"CCA": CCA(2)}, frames, groups=groups[::-1])


def test_splitters_are_given_the_groups():
    X, pairs = repeated_noise()
    found = mvcca.compare({"CCA": CCA(2)}, X, cv=GroupKFold(3), groups=pairs)
    expected = GroupKFold(3).split(pairs, groups=pairs)
    for fold, (_, test) in zip(found.folds, expected, strict=True):
        assert_array_equal(fold.test, test)
    for cv in (KFold(3, shuffle=True), [(np.arange(298), np.arange(298, 300))]):
        with pytest.raises(ValueError, match=r"Split 0 divides a group.*GroupKFold"):
            mvcca.compare({"CCA": CCA(2)}, X, cv=cv, groups=pairs)


def test_groups_of_unpaired_views_are_given_by_view():
    views = planted()
    X = {"image": views["image"][:100], "text": views["text"]}
    y = {"image": CLASSES[:100], "text": CLASSES}
    people = {"image": [f"p{i // 4}" for i in range(100)], "text": [f"p{i // 4}" for i in range(N)]}
    found = mvcca.compare({"MLCCA": MLCCA(2)}, X, y, cv=3, groups=people)
    of_objects = np.array([*people["image"], *people["text"]])
    for fold in found.folds:
        assert set(of_objects[fold.train]).isdisjoint(of_objects[fold.test])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(9), "Expected groups of 150 objects, got shape (9,)"),
        ([None, *range(149)], "got a missing value"),
        ([np.nan, *range(149)], "got a missing value"),
        ({"image": np.arange(N), "text": np.arange(N)}, "by view for the unpaired views"),
        (pd.Series(range(N), index=range(N)[::-1]), "the groups and the views have"),
    ],
    ids=["short", "none", "nan", "by view", "other order"],
)
def test_groups_that_do_not_fit_are_an_error(groups, message):
    frames = {name: pd.DataFrame(block) for name, block in planted().items()}
    with pytest.raises(ValueError, match=re.escape(message)):
        mvcca.compare(METHODS_BY_NAME, frames, groups=groups)


def test_with_one_split_the_test_is_of_groups():
    groups = np.repeat(np.arange(30), 3)
    repeated = np.repeat(np.random.default_rng(0).standard_normal(30) + 0.1, 3)  # nothing new
    of_groups = protocol.by_group(repeated, groups)
    assert of_groups.mean() == pytest.approx(repeated.mean())
    expected = stats.ttest_1samp(repeated[::3], 0).pvalue
    assert protocol.paired_test(of_groups) == pytest.approx(expected)


# ---- chance and power ---------------------------------------------------------------------------


def test_chance_is_exact(one_split):
    n_held_out = len(one_split.folds[0].test)
    assert n_held_out == 60
    assert one_split.chance_level("r@1") == pytest.approx(1 / 60)
    assert one_split.chance_level("mr") == pytest.approx(30.5)
    harmonic = np.sum(1 / np.arange(1, 61))
    assert one_split.chance_level("mrr") == pytest.approx(harmonic / 60)
    assert one_split.chance_of_goals["object"] == pytest.approx(1 / N)


def test_bold_is_for_best_values_only(result, tmp_path):
    result.save_page(tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert text.count("**") // 2 == len(result.goals)
    assert 'style="font-weight: normal"' in result._repr_html_()  # of headings, bold in notebooks
    result.save_page(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("<b>") == len(result.goals)
    assert set(re.findall(r"font-weight: *(\w+)", page)) == {"normal"}
    odd = mvcca.compare({"v1<": CCA(2), "v2?": CCA(3)}, planted(), cv=2, measures="mrr")
    (bold,) = re.findall(r"\x1b\[1m(.*?)\x1b\[0m", full(odd, bold=True))
    assert bold.endswith("<")
    assert bold != "v1<"


class Ends(CCA):
    """A CCA that ends the program."""

    def __init__(self, error=SystemExit):
        super().__init__()
        self.error = error

    def fit(self, X, y=None):
        raise self.error(3)


class Unusual(BaseException):
    """As libraries for coroutines raise them."""


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, Unusual])
@pytest.mark.parametrize("search", [None, {"n_components": [1, 2]}])
def test_an_estimator_that_ends_the_program_is_a_row_with_its_reason(error, search):
    methods = {"CCA": CCA(2), "ends": Ends(error), "again": CCA(1)}
    found = mvcca.compare(methods, planted(), CLASSES, cv=2, search=search)
    assert found.is_complete
    assert found.successes == ["CCA", "again"]
    assert found.failures == {"ends": f"{error.__name__}: 3"}


class Killed(CCA):
    """A CCA whose process ends at once, as if it had used too much memory."""

    def fit(self, X, y=None):
        time.sleep(2)  # the others are done
        os._exit(1)


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_what_was_measured():
    methods = {"CCA": CCA(2), "killed": Killed(2)}
    with pytest.warns(UserWarning, match=r"A process was killed: the result contains \d of 4 fits"):
        found = mvcca.compare(methods, planted(), CLASSES, cv=2, n_jobs=2)
    assert found.successes == ["CCA"]
    assert not found.is_complete


HARMFUL = (
    "<script>alert(1)</script>",
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "two\nlines | **and** a [link](javascript:alert)",
    "`tick` _x_ ~y~ # &lt;",
)


@pytest.fixture(scope="module")
def harmful():
    """A comparison whose methods and views have names that other programs would act on."""
    rng = np.random.default_rng(0)  # noise, so that a held-out correlation is negative
    names = ("=2+2<b>", "te\x1b[0mxt")
    views = Views(
        {name: rng.standard_normal((N, width)) for name, width in zip(names, (6, 5), strict=True)}
    )
    methods = {name: CCA(2) for name in HARMFUL} | {"\x1b[7mfails": CCA(2, reg=-1.0)}
    return mvcca.compare(methods, views, cv=2, measures=["r@1", "mrr"])


def controls(text):
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs")} - {"\n"}


def test_no_name_controls_a_terminal(harmful, tmp_path):
    table = mvcca.evaluate_retrieval(dict(harmful.data.views.replace(
        {name: np.eye(N)[:, :2] for name in harmful.data.views.names}
    ).items()), measures="r@1")  # fmt: skip
    by_direction = full(harmful, directions=True)
    for text in (
        str(harmful),
        by_direction,
        *sentences(harmful),
        str(table),
        repr(harmful.data.views),
    ):
        assert not controls(text)
    assert r"\x1b[31mred\x1b]0;title\x07\x9b2J" in str(harmful)
    assert r"two\nlines" in str(harmful)
    assert not controls(harmful._repr_html_())
    for ending in ("html", "md", "json"):
        harmful.save_page(tmp_path / f"out.{ending}")
        assert not controls((tmp_path / f"out.{ending}").read_text(encoding="utf-8")), ending
    content = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    names = [one["name"] for one in content["results"][0]["methods"]]
    assert names == list(harmful.methods)  # as they are


class Warns(CCA):
    """A CCA that warns of a name."""

    def fit(self, X, y=None):
        warnings.warn("view \x1b[2Jx\ny | <b>", stacklevel=1)
        return super().fit(X, y)


def test_no_warning_controls_a_terminal(tmp_path):
    found = mvcca.compare({"CCA": CCA(2), "warns": Warns(2)}, planted(), cv=2, measures="mrr")
    assert not controls(str(found))
    said = r"warns: view \x1b[2Jx y | <b>"
    assert str(found).count(said) == full(found).count(said) == 1
    found.save_page(tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert r"- warns: view \\x1b\[2Jx y \| &lt;b&gt;" in text


def test_no_name_is_markup(harmful, tmp_path):
    harmful.save_page(tmp_path / "out.html")
    for page in ((tmp_path / "out.html").read_text(encoding="utf-8"), harmful._repr_html_()):
        assert "<script>" not in page
        assert html.escape(HARMFUL[0]) in page
    harmful.save_page(tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "<" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    n_bars = [len(re.findall(r"(?<!\\)\|", line)) for line in table]
    n_methods = len(harmful.methods)  # the last of which fails
    assert n_bars == [n_bars[0]] * (2 + n_methods) + [n_bars[-1]] * (2 + n_methods - 1)
    assert r"\*\*and\*\* a \[link\](javascript:alert)" in text
    assert r"\`tick\` \_x\_ \~y\~ \# &amp;lt;" in text


def test_a_code_span_holds_any_text():
    for text in ("a", "`", "a `` b", "`` ` ```", "<script>"):
        found = code(text)
        fence = re.match("`+", found)[0]
        assert found.startswith(fence)
        assert found.endswith(fence)
        inner = found[len(fence) : -len(fence)]
        assert fence not in re.findall("`+", inner)
        assert inner.strip() == text


def test_no_name_is_a_formula_of_a_spreadsheet(harmful, tmp_path):
    harmful.save_page(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    for row in rows[1:]:
        assert not any(cell.startswith(tuple("=+-@\t\r\n")) for cell in row[:-1])
        assert float(row[-1]) == pytest.approx(float(row[-1]))
    methods = {row[0] for row in rows[1:]}
    assert {"'=1+1", "'-2+3", "'@SUM(A1)", r"\tx", HARMFUL[0]} <= methods
    assert any(row[2] == r"'=2+2<b> -> te\x1b[0mxt" for row in rows[1:])
    values = [float(row[-1]) for row in rows[1:]]  # numbers stay numbers
    assert values == list(harmful.to_frame().value)


def test_a_comparison_within_views_is_one_of_classes():
    """Any row finds itself, so that nothing is measured for the same object."""
    data = mvcca.datasets.load_digits_views()
    views, labels = data.views[:120], data.labels[:120]
    result = mvcca.compare(["cca", "mlcca"], views, labels, cv=0.3, tune=False, directions="within")
    assert result.goals == ("class",)
    assert str(result).startswith("Same class: MLCCA has mAP@50")
