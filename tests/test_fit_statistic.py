"""Fits to moments alone give what fits to all rows give, wherever the moments were computed."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import reduce
from multiprocessing import get_context
from operator import add

import numpy as np
import pytest
from given_matrices import GivenMatrices
from scipy.sparse import csr_array
from sklearn.base import clone

import mvcca
from mvcca import (
    CCA,
    CFA,
    GCCA,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    PLS,
    RGCCA,
    AffineMap,
    Labels,
    Procrustes,
    SparseCCA,
    SparseDiscriminant,
    Views,
)
from mvcca.base import StatisticEstimator
from mvcca.statistics import CellMoments, LabelSums, Moments, PairMoments, PatternMoments

N = 300
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 3))


def view(width):
    return SHARED @ RNG.normal(size=(3, width)) + RNG.normal(size=(N, width)) + 2


THREE = {"image": view(6), "text": view(4), "sound": view(5)}
TWO = {name: THREE[name] for name in ("image", "text")}
GIVEN_AGE = {**TWO, "age": RNG.normal(size=(N, 1))}
HOLES = {name: np.where(RNG.random(X.shape) < 0.05, np.nan, X) for name, X in THREE.items()}
SEEN = np.arange(N)[:, None] >= np.array([0, 40, 90])
PARTLY = Views(
    {name: X[SEEN[:, p]] for p, (name, X) in enumerate(THREE.items())},
    np.where(SEEN, np.cumsum(SEEN, axis=0) - 1, -1),
)
WEIGHTS = RNG.integers(1, 4, N).astype(float)


def test_moments_of_parts_are_a_map_and_a_reduce():
    views = Views(TWO)
    parts = [views[start : start + 50] for start in range(0, N, 50)]
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        of_processes = list(pool.map(Moments.of, parts))
    with ThreadPoolExecutor(2) as pool:
        of_threads = list(pool.map(Moments.of, parts))
    found = [CCA(3).fit_statistic(reduce(add, own)) for own in (of_processes, of_threads)]
    expected = CCA(3).fit(TWO)
    for model in found:
        np.testing.assert_array_equal(model.weights_["image"], found[0].weights_["image"])
        np.testing.assert_allclose(model.weights_["image"], expected.weights_["image"], rtol=1e-8)


CASES = {
    "CCA": (CCA(3), TWO, Moments),
    "all components": (CCA(None, reg=0.1), TWO, Moments),
    "a ridge for one view": (CCA(2, reg={"image": 0.1, "text": 0}), TWO, Moments),
    "an absolute ridge": (CCA(2, reg=0.3, reg_unit="absolute"), TWO, Moments),
    "about zero": (CCA(2, center=False), TWO, Moments),
    "given confounds": (CCA(2, reg=0.1, confounds="age"), GIVEN_AGE, Moments),
    "few rows": (CCA(2), {name: X[:12] for name, X in TWO.items()}, Moments),
    "sparse rows": (CCA(2), {n: csr_array(X * (X > 2)) for n, X in TWO.items()}, Moments),
    "constant column": (CCA(2), {**TWO, "text": np.c_[TWO["text"], np.ones(N)]}, Moments),
    "one feature": (CCA(1), {**TWO, "image": TWO["image"][:, :1]}, Moments),
    "wide views": (CCA(2, reg=0.1), {n: X[:5] for n, X in TWO.items()}, Moments),
    "MVCCA": (MVCCA(2, power=1), THREE, Moments),
    "MVCCA of two": (MVCCA(2), TWO, Moments),
    "partly paired": (MVCCA(2), PARTLY, PairMoments),
    "cells by pairs": (MVCCA(2, reg=0.1, missing="pairwise"), HOLES, CellMoments),
    "cells by EM": (MVCCA(2, reg=0.1, missing="em"), HOLES, PatternMoments),
    "GCCA": (GCCA(2, reg=0.1), THREE, Moments),
    "GCCA, partly paired": (GCCA(2, reg=0.1), PARTLY, PairMoments),
    "PLS": (PLS(3), THREE, Moments),
    "PLS, scaled": (PLS(3, scale=True), TWO, Moments),
    "PLS, canonical": (PLS(3, algorithm="canonical"), TWO, Moments),
    "PLS regression": (PLS(3, algorithm="regression", scale=True), TWO, Moments),
    "CFA": (CFA(2), TWO, Moments),
    "AffineMap": (AffineMap(target="image"), THREE, Moments),
    "AffineMap, partly paired": (AffineMap(2), PARTLY, PairMoments),
    "Procrustes": (Procrustes(), TWO, Moments),
    "Procrustes of three": (Procrustes(2), THREE, Moments),
    "RGCCA": (RGCCA(2, tau=0.5), THREE, Moments),
    "RGCCA, sparse": (RGCCA(2, n_features=2, deflation="weights"), TWO, Moments),
    "SparseCCA": (SparseCCA(2, n_features=3, tau=0.5), TWO, Moments),
    "a method of the guide": (GivenMatrices(2), TWO, Moments),
}
cases = pytest.mark.parametrize("case", CASES)


def moments_of(views, kind=Moments, weights=None, n_parts=5):
    """The sum of the moments of parts, each of which has been in a file."""
    views = views if isinstance(views, Views) else Views(views)
    parts = np.array_split(np.arange(len(views)), n_parts)
    own = [None if weights is None else weights[part] for part in parts]
    found = [kind.of(views[part], w) for part, w in zip(parts, own, strict=True)]
    return reduce(add, (pickle.loads(pickle.dumps(one)) for one in found))


def learned(model):
    state = model.__getstate__()
    return {n: v for n, v in state.items() if n.endswith("_") and not n.startswith("__")}


def assert_same(found, expected, name=""):
    if isinstance(expected, dict):
        assert list(found) == list(expected), name
        for key, value in expected.items():
            assert_same(found[key], value, f"{name}[{key!r}]")
    elif isinstance(expected, list):
        for i, (own, value) in enumerate(zip(found, expected, strict=True)):
            assert_same(own, value, f"{name}[{i}]")
    elif isinstance(expected, np.ndarray) and expected.dtype != object:
        scale = np.abs(expected).max(initial=1e-3)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * scale, err_msg=name)
    else:
        assert np.array_equal(found, expected), name


def assert_same_fit(found, expected, but=()):
    assert learned(found).keys() == learned(expected).keys()
    for name, value in learned(expected).items():
        if name not in but:
            assert_same(getattr(found, name), value, name)


@cases
def test_five_pickled_parts_give_what_all_rows_give(case):
    model, views, kind = CASES[case]
    with warnings.catch_warnings(record=True) as of_rows:
        warnings.simplefilter("always")
        expected = clone(model).fit(views)
    with warnings.catch_warnings(record=True) as of_moments:
        warnings.simplefilter("always")
        found = clone(model).fit_statistic(moments_of(views, kind))
    # `fit` solves views with fewer rows than features in a basis of their rows.
    assert_same_fit(found, expected, but={"ranks_"} if case == "wide views" else ())
    assert [str(w.message) for w in of_moments] == [str(w.message) for w in of_rows]
    views = views if isinstance(views, Views) else Views(views)
    projected, rows = found.project(views), expected.project(views)
    for name, scores in rows.items():
        np.testing.assert_allclose(projected[name], scores, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", [CCA(2), MVCCA(2), GCCA(2), PLS(2), CFA(2)])
def test_weights_count_in_the_moments(model):
    expected = clone(model).fit(TWO, sample_weight=WEIGHTS)
    assert_same_fit(clone(model).fit_statistic(moments_of(TWO, weights=WEIGHTS)), expected)


def test_moments_of_a_single_part_suffice():
    assert_same_fit(CCA(2).fit_statistic(Moments.of(Views(TWO))), CCA(2).fit(TWO))


def test_every_linear_method_without_labels_takes_moments():
    taken = {type(model) for model, *_ in CASES.values()}
    estimators = [getattr(mvcca, name) for name in mvcca.linear.__all__ if hasattr(mvcca, name)]
    by_statistic = {e for e in estimators if isinstance(e, type)}
    by_statistic = {e for e in by_statistic if issubclass(e, StatisticEstimator)}
    assert by_statistic - taken == {LGCFL, MLCCA, MVMLCCA, SparseDiscriminant}


@pytest.mark.parametrize("model", [MLCCA(), MVMLCCA(), LGCFL(), SparseDiscriminant(n_features=2)])
@pytest.mark.parametrize("of_labels", [False, True])
def test_methods_that_learn_from_labels_ask_for_their_own_sums(model, of_labels):
    statistic = moments_of(TWO)
    if of_labels:
        statistic = LabelSums.of(Views(TWO), Labels(np.eye(3)[np.arange(N) % 3]))
    with pytest.raises(
        TypeError, match=r"takes the \w+ that `statistic_` is after partial_fit, got"
    ):
        model.fit_statistic(statistic)


@pytest.mark.parametrize(
    ("model", "remedy"),
    [(KCCA(), "use fit[.]"), (KCCA(approximation="nystroem"), "use fit, or partial_fit batch")],
)
def test_kernel_methods_ask_for_rows(model, remedy):
    with pytest.raises(ValueError, match=f"KCCA learns from the rows themselves, .* {remedy}"):
        model.fit_statistic(moments_of(TWO))


class OfRows(StatisticEstimator):
    """A method whose statistic is the rows."""

    def statistic_of(self, rows):
        return rows.views


def test_methods_with_a_statistic_of_their_own_ask_for_rows():
    with pytest.raises(ValueError, match="OfRows learns from the rows themselves"):
        OfRows().fit_statistic(moments_of(TWO))


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (CCA(2, reg="cv"), 'reg="cv"'),
        (MVCCA(2, reg="auto"), 'reg="auto"'),
        (GCCA(2, reg="oas"), 'reg="oas"'),
        (AffineMap(reg="cv"), 'reg="cv"'),
        (PLS("cv"), 'n_components="cv"'),
        (Procrustes("cv"), 'n_components="cv"'),
    ],
)
def test_what_rows_choose_needs_a_value(model, named):
    with pytest.raises(ValueError, match=f"{named} looks at single rows, .* or give it a value"):
        model.fit_statistic(moments_of(TWO))


REFUSED = {
    "too many views": (CCA(2), moments_of(THREE), ValueError, "CCA takes 2 views, got 3"),
    "too few views": (
        MVCCA(2),
        moments_of(TWO).select(["image"]),
        ValueError,
        "MVCCA takes at least 2 views, got 1",
    ),
    "three views by deflation": (
        PLS(2, algorithm="canonical"),
        moments_of(THREE),
        ValueError,
        "PLS with algorithm='canonical' takes 2 views, got 3",
    ),
    "no confounds": (
        CCA(2, confounds="age"),
        moments_of(TWO),
        ValueError,
        "needs the view 'age' beside the others, .* Got the views .'image', 'text'.",
    ),
    "a ridge of another view": (
        CCA(2, reg={"smell": 1.0}),
        moments_of(TWO),
        ValueError,
        "reg names the views",
    ),
    "no target": (AffineMap(target="smell"), moments_of(TWO), ValueError, "target must be one of"),
    "no rows": (
        CCA(2),
        Moments.of_nothing({"a": 2, "b": 2}),
        ValueError,
        "learns from at least two objects, but the moments of view 'a' are of 0",
    ),
    "one row": (
        CCA(2),
        Moments.of(Views(TWO)[:1]),
        ValueError,
        "learns from at least two objects, but the moments of view 'image' are of 1[.]",
    ),
    "constant view": (
        CCA(2),
        moments_of({**TWO, "text": np.ones((N, 2))}),
        ValueError,
        "view 'text' has no variance",
    ),
    "missing cells": (CCA(2), moments_of(HOLES).select(list(TWO)), ValueError, "moments are NaN"),
    "moments of partly paired views": (
        MVCCA(2),
        Moments.of(PARTLY),
        ValueError,
        r"different numbers of objects.*PairMoments.of\(views\)",
    ),
    "rows": (CCA(2), TWO, TypeError, "takes mvcca.statistics.Moments or .*PairMoments, got dict"),
    "moments where cells may be missing": (
        MVCCA(2, missing="em"),
        moments_of(TWO),
        TypeError,
        r"MVCCA\(missing='em'\).fit_statistic takes mvcca.statistics.PatternMoments, got Moments",
    ),
    "moments of cells where none may be missing": (
        MVCCA(2),
        moments_of(TWO, CellMoments),
        TypeError,
        "got CellMoments",
    ),
    "moments of pairs of views given confounds": (
        MVCCA(2, confounds="sound"),
        moments_of(THREE, PairMoments),
        TypeError,
        r"MVCCA\(confounds='sound'\).fit_statistic takes mvcca.statistics.Moments, got PairMoments",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_statistics_are_refused_and_leave_the_model_as_it_was(case):
    model, statistic, error, message = REFUSED[case]
    fitted = clone(model)
    fitted.weights_ = before = {}
    with pytest.raises(error, match=message):
        fitted.fit_statistic(statistic)
    assert fitted.weights_ is before
    assert not hasattr(fitted, "view_names_")


def test_rows_of_later_batches_are_added():
    first, rest = ({n: X[part] for n, X in TWO.items()} for part in (slice(60), slice(60, None)))
    model = CCA(2).fit_statistic(moments_of(first, n_parts=2)).partial_fit(rest)
    assert_same_fit(model, CCA(2).fit(TWO))
    with pytest.raises(ValueError, match="View 'text' has 3 features"):
        model.partial_fit({**rest, "text": rest["text"][:, :3]})


def test_views_that_are_collinear_warn_and_fit_does_better():
    copied = {**TWO, "image": np.c_[TWO["image"], TWO["image"][:, 0]]}
    CCA(2).fit(copied)
    with pytest.warns(UserWarning, match="close to collinear.*or fit dense rows in memory"):
        CCA(2).fit_statistic(moments_of(copied))


def test_an_earlier_fit_leaves_nothing_behind():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(TWO["image"]).add_prefix("column")
    model = CCA(2, confounds="site").fit(
        {**TWO, "image": frame, "site": pd.DataFrame({"site": ["a", "b", "c"] * (N // 3)})}
    )
    given = {**TWO, "site": GIVEN_AGE["age"]}
    model.fit_statistic(moments_of(given))
    assert_same_fit(model, CCA(2, confounds="site").fit(given))
    renamed = {
        **given,
        "image": frame.add_suffix("_"),
        "site": pd.DataFrame({"age": given["site"].ravel()}),
    }
    model.transform(renamed)  # moments know no names of columns


def test_y_is_a_vector_only_where_one_was_fitted():
    y = TWO["text"][:, 0]
    model = PLS(1).fit(TWO["image"], y)
    assert model.predict({"X": TWO["image"]}).shape == (N,)
    model.fit_statistic(moments_of({"X": TWO["image"], "y": y[:, None]}))
    assert model.predict({"X": TWO["image"]}).shape == (N, 1)


def test_a_model_of_moments_is_saved_and_pickled(tmp_path):
    model = CCA(2).fit_statistic(moments_of(TWO))
    mvcca.save(model, tmp_path / "model.mvcca")
    for again in (mvcca.load(tmp_path / "model.mvcca"), pickle.loads(pickle.dumps(model))):
        assert_same_fit(again, model)
        assert_same_fit(again.partial_fit(TWO), clone(model).partial_fit(TWO).partial_fit(TWO))
