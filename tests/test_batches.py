"""Batches are added up, and solved for when a result is read; sums of several estimators merge."""

from __future__ import annotations

import gc
import pickle
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add

import numpy as np
import pytest
from estimators import (
    BATCHES,
    FIRST_LABELS,
    LABELS,
    SHALLOW_VARIANTS,
    N,
    Trait,
    assert_same_model,
    blocks_for,
    crossed,
    fitted,
    over,
)
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mvcca
from mvcca import CCA, KCCA, MVCCA, MVMLCCA, PLS, Views
from mvcca.base import sums
from mvcca.statistics import Moments

DRAWN_FEATURES = Trait("features are drawn from rows", lambda est: isinstance(est, KCCA))
CUTS = [slice(0, 30), slice(30, 31), slice(31, 70), slice(70, N)]
RNG = np.random.default_rng(0)
SHARED = RNG.standard_normal((400, 3))
TWO = {
    name: SHARED @ RNG.standard_normal((3, width)) + RNG.standard_normal((400, width))
    for name, width in (("image", 6), ("text", 5))
}


def parts(estimator):
    views = Views(blocks_for(estimator))
    return [(views[rows], LABELS[rows]) for rows in CUTS]


@pytest.fixture
def solutions(monkeypatch):
    """The estimators for which batches were solved so far."""
    found, solution_of = [], sums.solution_of
    monkeypatch.setattr(sums, "solution_of", lambda *given: found.append(1) or solution_of(*given))
    return found


READS = {
    "attribute": lambda model, _: model.n_components_,
    "hasattr": lambda model, _: hasattr(model, "means_"),
    "transform": lambda model, at: model.transform(at["views"]),
    "project": lambda model, at: model.project(at["views"]),
    "score": lambda model, at: model.score(at["views"], LABELS),
    "save": lambda model, at: mvcca.save(model, at["path"]),
    "pickle": lambda model, _: pickle.dumps(model),
    "check": lambda model, _: check_is_fitted(model),
    "names": lambda model, _: model.get_feature_names_out(),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@crossed("read", READS, SHALLOW_VARIANTS, needs=[BATCHES])
def test_batches_are_solved_for_once_when_a_result_is_read(estimator, read, solutions, tmp_path):
    at = {"views": Views(blocks_for(estimator)), "path": tmp_path / "model.mvcca"}
    model = clone(estimator)
    for own, y in parts(estimator):
        model.partial_fit(own, y)
    clone(model)
    repr(model)
    assert model.statistic_ is not None
    assert not solutions
    for _ in range(2):
        read(model, at)
        assert len(solutions) == 1


@pytest.mark.filterwarnings("ignore::UserWarning")
@over(SHALLOW_VARIANTS, needs=[BATCHES])
def test_reading_and_pickling_between_batches_change_nothing(estimator):
    unread, read, pickled = (clone(estimator) for _ in range(3))
    for own, y in parts(estimator):
        unread.partial_fit(own, y)
        with warnings.catch_warnings(action="ignore"):
            getattr(read.partial_fit(own, y), "weights_", None)
        pickled = pickle.loads(pickle.dumps(pickled.partial_fit(own, y)))
    expected, rows = unread.transform(blocks_for(estimator)), blocks_for(estimator)
    for model in (read, pickled):
        np.testing.assert_equal(model.transform(rows), expected)
        assert vars(model).keys() == vars(unread).keys()


@pytest.mark.filterwarnings("ignore::UserWarning")
@over(SHALLOW_VARIANTS, needs=[BATCHES], but=[FIRST_LABELS, DRAWN_FEATURES])
def test_statistics_of_estimators_that_saw_a_part_each_merge(estimator):
    saved = [
        pickle.dumps(clone(estimator).partial_fit(*own).statistic_) for own in parts(estimator)
    ]
    total = reduce(add, map(pickle.loads, saved))
    model = clone(estimator).fit_statistic(total)
    assert_same_model(model, fitted(estimator))
    assert model.statistic_ is total
    again = clone(estimator).fit_statistic(pickle.loads(saved[0]))
    for own in parts(estimator)[1:]:
        again.partial_fit(*own)
    assert_same_model(again, fitted(estimator))


@pytest.mark.parametrize(
    "model", [KCCA(approximation="nystroem", n_landmarks=20), MVMLCCA(label_features="nystroem")]
)
def test_sums_of_features_that_were_drawn_from_rows_are_refused(model):
    views, y = Views(TWO), np.arange(400) % 3
    statistic = clone(model).partial_fit(views, y).statistic_
    with pytest.raises(ValueError, match=r"rows.*, which sums do not hold: use fit"):
        model.fit_statistic(statistic)


def test_the_statistic_of_another_method_is_refused():
    y = np.arange(400) % 3
    statistic = MVMLCCA().partial_fit(TWO, y).statistic_
    with pytest.raises(TypeError, match=r"takes mvcca.statistics.Moments .* got LabelSt"):
        CCA().fit_statistic(statistic)
    with pytest.raises(TypeError, match="takes the LabelStatistic that `statistic_` is after"):
        MVMLCCA().fit_statistic(Moments.of(Views(TWO)))
    with pytest.raises(ValueError, match='reg="auto" looks at single rows'):
        CCA(reg="auto").fit_statistic(CCA(reg=0.1).partial_fit(TWO).statistic_)


def test_fit_keeps_no_statistic():
    with pytest.raises(AttributeError, match="CCA keeps no sum over rows: partial_fit does"):
        CCA().fit(TWO).statistic_  # noqa: B018
    assert not hasattr(CCA(), "statistic_")


def test_sums_of_rows_that_were_divided_by_powers_of_two_are_not_handed_out():
    model = CCA(reg=0.1).partial_fit({**TWO, "text": TWO["text"] * 1e160})
    with pytest.raises(AttributeError, match=r"divided the views \['text'\] by powers of two"):
        model.statistic_  # noqa: B018
    assert np.isfinite(model.score({**TWO, "text": TWO["text"] * 1e160}))


def test_batches_are_not_held_until_a_result_is_read():
    X, Y = TWO["image"].copy(), TWO["text"].copy()
    model, held = CCA().partial_fit({"image": X, "text": Y}), weakref.ref(X)
    del X, Y
    gc.collect()
    assert held() is None
    assert model.score(TWO) > 0.5


def test_threads_that_read_at_once_solve_once(solutions):
    model = MVCCA(3).partial_fit(TWO)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.transform(TWO)["text"], range(16)))
    assert len(solutions) == 1
    for scores in found:
        np.testing.assert_array_equal(scores, found[0])


def test_the_solution_has_the_parameters_that_the_batches_came_with():
    model = CCA(2, reg=0.1).partial_fit(TWO)
    model.set_params(n_components=3, reg=0.5)
    expected = CCA(2, reg=0.1).fit(TWO)
    np.testing.assert_allclose(model.weights_["text"], expected.weights_["text"], atol=1e-12)
    assert model.get_params()["n_components"] == 3


@pytest.mark.parametrize("model", [CCA(2), PLS(2), MVMLCCA(2)])
def test_what_batches_lack_is_said_whenever_a_result_is_read(model):
    y = np.arange(400) % 3
    constant = {**TWO, "text": np.ones((400, 5))}
    model = clone(model).partial_fit(constant, y)
    for read in (model.transform, model.score, model.project):
        with pytest.raises(NotFittedError, match=r"batches so far: .*'text' has no variance"):
            read(Views(TWO))
    with pytest.raises(NotFittedError, match="has no variance"):
        pickle.loads(pickle.dumps(model)).weights_  # noqa: B018
    assert model.view_names_ == ("image", "text")
    assert np.isfinite(model.partial_fit(TWO, y).transform(TWO)["text"]).all()


def test_a_solution_warns_once():
    model = CCA(2, reg=0).partial_fit({name: X[:8] for name, X in TWO.items()})
    with pytest.warns(UserWarning, match="8 objects against"):
        assert hasattr(model, "weights_")
    with warnings.catch_warnings(action="error"):
        model.transform(TWO)
        model.score(TWO)


def test_warnings_count_the_rows_of_all_batches():
    model = CCA(2, reg=0)
    for start in range(0, 400, 20):
        model.partial_fit({name: X[start : start + 20] for name, X in TWO.items()})
    with warnings.catch_warnings(action="error"):
        assert model.n_components_ == 2


def test_a_first_batch_in_which_a_view_never_varies_is_added_up_like_any_other():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((400, 2), dtype=np.float32)
    X, Y = np.hstack([Z, Z[::-1, :1]]), Z + rng.standard_normal((400, 2), dtype=np.float32)
    Y[:200] = 1
    model = CCA(1)
    for part in (slice(200), slice(200, None)):
        model.partial_fit({"x": X[part], "y": Y[part]})
    assert not model._in_float32
    expected = CCA(1).fit({"x": X, "y": Y}).canonical_correlations_
    np.testing.assert_allclose(model.canonical_correlations_, expected, rtol=1e-6)


def test_a_model_of_float32_batches_is_saved(tmp_path):
    model = CCA(2).partial_fit({name: X.astype(np.float32) for name, X in TWO.items()})
    assert model._in_float32
    mvcca.save(model, tmp_path / "model.mvcca")
    assert mvcca.load(tmp_path / "model.mvcca")._in_float32


def test_a_file_that_does_not_tell_what_a_solution_sets_takes_batches():
    model = CCA(2).partial_fit({name: X[:200] for name, X in TWO.items()})
    assert hasattr(model, "weights_")
    del model._solved  # as of version 0.4
    model.partial_fit({name: X[200:] for name, X in TWO.items()})
    assert_allclose = np.testing.assert_allclose
    assert_allclose(model.weights_["text"], CCA(2).fit(TWO).weights_["text"], atol=1e-10)
