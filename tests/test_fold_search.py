"""A search from statistics of folds finds what scikit-learn's search finds, score by score."""

from __future__ import annotations

import pickle
import re
import tracemalloc
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from every_option import estimators, options
from given_matrices import GivenMatrices
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from mvcca import (
    CCA,
    CFA,
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
    PerView,
    Procrustes,
    Views,
    load,
    retrieval_scorer,
    save,
)
from mvcca.problem.whitener import Bidiagonal, Tridiagonal
from mvcca.retrieval.bank import bank_of

N = 96
RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(N, 5))
CLASSES = FACTORS[:, :2].argmax(axis=1) * 2 + (FACTORS[:, 2] > 0)
WEIGHTS = RNG.integers(0, 3, size=N).astype(float)
FOLDS = KFold(3, shuffle=True, random_state=0)
MRR, MAP = retrieval_scorer("mrr"), retrieval_scorer("map")
RIDGES = [1e-3, 1.0]
IN_FLOAT32 = {"reg": RIDGES}
GRID = {"reg": RIDGES, "n_components": [1, 3, None]}


def rows(width, noise=1.0):
    return FACTORS @ RNG.normal(size=(5, width)) + noise * RNG.normal(size=(N, width))


A, B, C = rows(8), rows(6), rows(5)
PAIR, THREE = Views({"a": A, "b": B}), Views({"a": A, "b": B, "c": C})
SPARSE = Views({"a": csr_array(np.where(abs(A) > 1.5, A, 0)), "b": B})
WIDE = Views({"a": rows(150), "b": rows(20)})
UNPAIRED = Views.unpaired({"a": A, "b": B})
TWICE = np.concatenate([CLASSES, CLASSES])
FRAMES = Views({"a": pd.DataFrame(A, index=np.arange(N) + 7), "b": B}).with_ids(np.arange(N) + 7)


def partly_paired(names):
    seen = np.random.default_rng(1).random((N, len(names))) < 0.75
    index = np.where(seen, np.cumsum(seen, axis=0) - 1, -1)[seen.any(axis=1)]
    return Views({name: THREE[name][seen[:, i]] for i, name in enumerate(names)}, index)


class GivenLandmarks(KCCA):
    """KCCA with the features of rows that are no part of the data."""

    def _draw_map(self, name, gamma, factors, X, rng):
        given = np.random.default_rng(2).normal(size=(200, X.shape[1]))
        return super()._draw_map(name, gamma, factors, given, rng)


def squared_error(model, X):
    return -float(np.mean((model.predict({"b": X["b"]}, "a") - X["a"]) ** 2))


def identity_of_some(_):
    return np.diag(np.repeat([1.0, 0.0, 1.0], [4, 4, 11]))


CASES = {
    "two views": (CCA(), GRID, PAIR),
    "two matrices": (CCA(), {"reg": [0, 0.1], "n_components": [2, 4]}, A, B),
    "by retrieval": (CCA(), GRID, PAIR, None, {"scoring": MRR}),
    "by prediction": (CCA(), GRID, PAIR, None, {"scoring": squared_error}),
    "without a ridge": (CCA(), {"reg": [0, 0.1], "n_components": [2, None]}, PAIR),
    "without a ridge, by prediction": (
        *(CCA(), {"reg": [0, {"a": 0, "b": 1}], "n_components": [1, 3]}, PAIR, None),
        {"scoring": squared_error},
    ),
    "a ridge per view": (CCA(2), {"reg": [{"a": 0.1, "b": 9}, {"a": 0, "b": 1}]}, PAIR),
    "weighted": (CCA(), GRID, PAIR, None, {"sample_weight": WEIGHTS}),
    "weighted frames": (
        *(MVCCA(2), {"reg": RIDGES}, FRAMES, None),
        {"sample_weight": pd.Series(WEIGHTS, index=np.arange(N) + 7)},
    ),
    "float32": (CCA(), IN_FLOAT32, Views({"a": A.astype("f4"), "b": B.astype("f4")})),
    "covariances within views on both sides": (GCCA(2), {"reg": [0, 0.1, 1.0]}, THREE),
    "three views with powers": (MVCCA(), {**GRID, "power": [0.0, 3.0]}, THREE),
    "sparse": (MVCCA(), GRID, SPARSE),
    "one column": (
        *(CCA(1), {"reg": RIDGES}, Views({"a": A[:, :1], "b": np.c_[B[:, 0], np.ones(N)]})),
    ),
    "wide": (CCA(), GRID, WIDE, None, {"scoring": MRR}),
    "wide, weighted": (CCA(), GRID, WIDE, None, {"sample_weight": WEIGHTS}),
    "wide, without a ridge": (CCA(), {"reg": [0, 0.1], "n_components": [1, 3]}, WIDE),
    "wide, by prediction": (CCA(), {"reg": [0.01, 1]}, WIDE, None, {"scoring": squared_error}),
    "partly paired": (MVCCA(), GRID, partly_paired("abc")),
    "some paired": (CCA(), {"reg": [0, 0.1]}, partly_paired("ab")),
    "collinear": (
        *(CCA(2), {"reg": [0, 1e-12, 1e-6, 0.1]}),
        Views({"a": np.c_[A, A[:, 0] + 1e-6 * C[:, 0], np.ones(N)], "b": B}),
    ),
    "label-weighted": (MLCCA(), {"reg": RIDGES, "sigma": [0.5, 2.0]}, PAIR, CLASSES),
    "label means": (MLCCA(weighting="means"), GRID, PAIR, CLASSES),
    "label means far from zero": (
        *(MLCCA(weighting="means"), {"reg": RIDGES}, Views({"a": A + 1e7, "b": B}), CLASSES),
    ),
    "labels far from zero": (
        MVMLCCA(within="label"),
        {"reg": RIDGES},
        Views({"a": A + 1e7, "b": B}),
        CLASSES,
    ),
    "nearest labels": (MLCCA(n_neighbors=4, random_state=0), GRID, PAIR, CLASSES),
    "unpaired": (MLCCA(), GRID, UNPAIRED, TWICE, {"scoring": MAP}),
    "unpaired, weighted": (
        *(MLCCA(), GRID, UNPAIRED, TWICE),
        {"sample_weight": np.concatenate([WEIGHTS, WEIGHTS])},
    ),
    "one view": (MLCCA(), {"reg": [1e-3, 1.0]}, A, CLASSES, {"scoring": MAP}),
    "wide labelled": (MLCCA(), GRID, WIDE, CLASSES),
    "labels in the constraint": (
        MVMLCCA(within="label"),
        {"reg": RIDGES, "sigma": [0.5, 2.0]},
        PAIR,
        CLASSES,
    ),
    "labels between": (MVMLCCA(within="sample"), GRID, THREE, CLASSES),
    "labels of unpaired views": (MVMLCCA(within="sample"), GRID, UNPAIRED, TWICE),
    "label features": (MVMLCCA(label_features="nystroem", within="sample"), GRID, PAIR, CLASSES),
    "Nyström": (
        *(GivenLandmarks(approximation="nystroem", n_landmarks=30, gamma=0.1, random_state=0),),
        *({"reg": [1e-3, 1.0], "n_components": [1, 3]}, PAIR, None),
        {"sample_weight": WEIGHTS},
    ),
    "PLS": (PLS(), {"n_components": [1, 3]}, PAIR),
    "wide PLS": (PLS(), {"n_components": [1, 3]}, WIDE),
    "scaled PLS": (PLS(algorithm="canonical", scale=True), {"n_components": [1, 3]}, PAIR),
    "PLS by regression": (PLS(algorithm="regression"), {"n_components": [1, 3]}, PAIR),
    "CFA": (CFA(), {"n_components": [1, 3]}, PAIR),
    "Procrustes": (Procrustes(), {"n_components": [1, 3, None]}, THREE),
    "wide Procrustes": (Procrustes(), {"n_components": [1, 3]}, WIDE),
    "affine maps": (AffineMap(), {"reg": [0, 0.1], "n_components": [1, None]}, PAIR),
    "wide affine maps": (AffineMap(), {"reg": [0.1, 1], "n_components": [1, None]}, WIDE),
    "sparse features": (LGCFL(), {"reg": [0.01, 0.1]}, PAIR, CLASSES),
    "given matrices": (GivenMatrices(2), {"reg": [0.01, 1.0]}, THREE),
    "some features": (GivenMatrices(2, within=identity_of_some), {"reg": [0.01, 1.0]}, THREE),
    "overlapping splits": (
        *(CCA(2), {"reg": RIDGES}, PAIR, None),
        {"cv": ShuffleSplit(4, random_state=0)},
    ),
    "growing parts": (CCA(2), {"reg": RIDGES}, PAIR, None, {"cv": TimeSeriesSplit(3)}),
    "rows in neither part": (
        *(CCA(2), {"reg": RIDGES}, PAIR, None),
        {"cv": ShuffleSplit(1, train_size=0.6, test_size=0.2, random_state=0)},
    ),
    "groups": (
        *(CCA(2), {"reg": RIDGES}, PAIR, None),
        {"cv": GroupKFold(3), "groups": np.arange(N) // 5},
    ),
}  # fmt: skip


DATA = "sample_weight", "groups"


def fitted(search_class, estimator, grid, X, y=None, options=()):
    """A search, fitted without the warnings of its candidates."""
    options = dict(options)
    data = {name: options.pop(name) for name in DATA if name in options}
    search = search_class(clone(estimator), grid, **{"cv": FOLDS, **options})
    with warnings.catch_warnings(action="ignore"):
        return search.fit(X, y, **data)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_scores_are_those_of_a_grid_search(case):
    expected = fitted(partial(GridSearchCV, error_score="raise"), *case)
    found = fitted(FoldSearchCV, *case)
    rounding = 1e-5 if case[1] is IN_FLOAT32 else 1e-8
    for name, values in expected.cv_results_.items():
        if name.startswith("param"):
            assert list(found.cv_results_[name]) == list(values)
        elif "test_score" in name and not name.startswith("rank"):  # rounding decides ties
            assert_allclose(found.cv_results_[name], values, rtol=0, atol=rounding, err_msg=name)
    assert found.cv_results_.keys() == expected.cv_results_.keys()
    assert found.best_score_ == pytest.approx(expected.best_score_, abs=rounding)
    assert found.n_splits_ == expected.n_splits_
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    model = found.best_estimator_
    with warnings.catch_warnings(action="ignore"):
        best = expected.best_estimator_.set_params(**found.best_params_)
        best.fit(*case[2:4], **{k: v for k, v in (case[4:] or ({},))[0].items() if k in DATA[:1]})
    assert vars(model).keys() == vars(best).keys()
    for name, W in best.weights_.items():
        assert_allclose(model.weights_[name], W, rtol=0, atol=100 * rounding * np.abs(W).max())
        assert_allclose(model.means_[name], best.means_[name], atol=rounding)


# ---- rankings ------------------------------------------------------------------------------------


def test_rankings_are_searched_with_training_rows_against_hubs():
    names = ["profile-likelihood", "likelihood", "likelihood+csls", "cosine", "cosine+csls"]
    search = FoldSearchCV(CCA(4), {"reg": [0.1, 1.0], "ranking": names}, cv=FOLDS, scoring=MRR)
    search.fit(PAIR)
    for params, *values in zip(
        search.cv_results_["params"],
        *(search.cv_results_[f"split{fold}_test_score"] for fold in range(3)),
        strict=True,
    ):
        expected = []
        for train, test in FOLDS.split(PAIR):
            model = CCA(4, reg=params["reg"]).fit(PAIR[train])
            model.ranking_ = params["ranking"]
            if model.ranking_.endswith("+csls"):
                model.bank_ = bank_of(model, PAIR[train])
            expected.append(MRR(model, PAIR[test]))
        assert_allclose(values, expected, atol=1e-12)
    best = search.best_estimator_
    assert best.ranking_ == search.best_params_["ranking"]
    assert len(np.unique(search.cv_results_["mean_test_score"])) > 5


def test_the_chosen_ranking_travels_with_the_best_model(tmp_path):
    search = FoldSearchCV(CCA(4), {"ranking": ["likelihood+csls"]}, cv=FOLDS, scoring=MRR)
    search.fit(PAIR)
    expected = CCA(4).fit(PAIR)
    expected.ranking_ = "likelihood+csls"
    expected.bank_ = bank_of(expected, PAIR)
    assert search.score(PAIR) == pytest.approx(MRR(expected, PAIR))
    assert search.score(PAIR) != MRR(CCA(4).fit(PAIR), PAIR)
    save(search, tmp_path / "search.mvcca")
    assert load(tmp_path / "search.mvcca").score(PAIR) == pytest.approx(search.score(PAIR))


def test_training_rows_of_two_lone_matrices_correct_for_hubs_too():
    grid = {"reg": [0.1, 1.0], "ranking": ["cosine+csls", "cosine"]}
    found, expected = (FoldSearchCV(CCA(4), grid, cv=FOLDS, scoring=MRR) for _ in range(2))
    found.fit(A, B)
    expected.fit(Views({"X": A, "y": B}))
    for fold in range(3):
        name = f"split{fold}_test_score"
        assert_allclose(found.cv_results_[name], expected.cv_results_[name], rtol=1e-12)


def test_a_second_view_that_is_a_vector_is_searched_as_its_column():
    grid = {"n_components": [1, 2], "ranking": ["cosine+csls", "cosine"]}
    found, expected = (
        FoldSearchCV(PLS(algorithm="regression"), grid, cv=FOLDS, scoring=MRR).fit(A, y)
        for y in (pd.Series(B[:, 0]), B[:, :1])
    )
    assert_array_equal(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )


def test_a_refit_standardizes_the_views_that_a_fit_does():
    unlike = Views({"a": A * np.geomspace(1, 1e4, A.shape[1]), "b": B})
    for best, reg in enumerate([0.0, 0.1]):
        search = FoldSearchCV(CCA(), {"reg": [0.0, 0.1]}, cv=FOLDS, refit=lambda _, best=best: best)
        model = search.fit(unlike).best_estimator_
        assert model.scale_ == CCA(reg=reg).fit(unlike).scale_ == {"a": reg > 0, "b": False}


# ---- one pass ------------------------------------------------------------------------------------


class Counting(MVCCA):
    """MVCCA that counts the rows that it sums up."""

    n_read = 0

    def statistic_of(self, rows):
        Counting.n_read += len(rows.views)
        return super().statistic_of(rows)


@pytest.mark.parametrize(
    ("grid", "cv", "n_read"),
    [
        ({"reg": RIDGES, "n_components": [1, 2]}, FOLDS, N),
        ({"reg": [0.0, *RIDGES]}, FOLDS, N),
        ({"reg": RIDGES}, TimeSeriesSplit(3), N),
        ({"reg": RIDGES}, ShuffleSplit(4, test_size=0.5), 3 * N),  # four halves, and all of them
    ],
)
def test_rows_are_summed_up_once(grid, cv, n_read):
    Counting.n_read = 0
    FoldSearchCV(Counting(), grid, cv=cv).fit(PAIR)
    assert Counting.n_read == n_read


def test_wide_views_without_a_ridge_are_summed_up_once_per_split_and_basis():
    Counting.n_read = 0
    search = FoldSearchCV(Counting(1), {"reg": [0.0], "n_components": [1, 2, 3]}, cv=FOLDS)
    with warnings.catch_warnings(action="ignore"):
        search.fit(WIDE)
    assert Counting.n_read == N + 2 * N + N  # folds, training parts, and the best model


class CountingSolutions(PLS):
    """PLS that counts its solutions."""

    n_solved = 0

    def _learn(self, rows, statistic):
        CountingSolutions.n_solved += 1
        super()._learn(rows, statistic)


def test_fewer_components_are_the_first_of_one_solution():
    CountingSolutions.n_solved = 0
    grid = {"n_components": [4, 1, 2, 5, 3]}
    FoldSearchCV(CountingSolutions(), grid, cv=FOLDS).fit(PAIR)
    assert CountingSolutions.n_solved == 3 + 1  # of the training parts, and of all rows


@pytest.mark.parametrize("n_folds", [5, 15])
def test_memory_is_a_statistic_per_fold_and_three_more(n_folds):
    rng = np.random.default_rng(0)
    views = Views({"a": rng.normal(size=(900, 300)), "b": rng.normal(size=(900, 150))})
    FoldSearchCV(CCA(5), {"reg": [0.1]}, cv=2).fit(PAIR)  # imports and caches
    tracemalloc.start()
    FoldSearchCV(CCA(5), {"reg": [0.1, 1.0]}, cv=n_folds).fit(views)
    peak = tracemalloc.get_traced_memory()[1] / (8 * 450**2)
    tracemalloc.stop()
    assert peak < n_folds + 3.7  # with positions of rows, and what is beside the scatter


class WithoutProjection(MVCCA):
    """MVCCA that cannot project rows."""

    def _projection(self, name, maps):
        raise NotImplementedError


@pytest.mark.parametrize("views", [THREE, partly_paired("abc"), WIDE])
def test_mean_correlations_take_moments_of_the_held_out_rows_only(views):
    expected = fitted(GridSearchCV, MVCCA(), GRID, views).cv_results_
    found = fitted(FoldSearchCV, WithoutProjection(), GRID, views).cv_results_
    for fold in range(3):
        name = f"split{fold}_test_score"
        assert_allclose(found[name], expected[name], atol=1e-8)


# ---- scikit-learn's interface --------------------------------------------------------------------


def test_several_measures_are_those_of_a_grid_search():
    options = {"scoring": {"mrr": MRR, "r@1": retrieval_scorer("r@1")}, "refit": "mrr"}
    case = CCA(), {"reg": RIDGES}, PAIR, None, options
    expected, found = fitted(GridSearchCV, *case), fitted(FoldSearchCV, *case)
    for measure in options["scoring"]:
        name = f"mean_test_{measure}"
        assert_allclose(found.cv_results_[name], expected.cv_results_[name], atol=1e-12)
    assert found.best_params_ == expected.best_params_
    assert found.scorer_.keys() == expected.scorer_.keys()
    assert found.score(PAIR) == pytest.approx(expected.score(PAIR))


@pytest.mark.parametrize("refit", [False, lambda _: 1])
def test_refit_is_as_in_a_grid_search(refit):
    case = CCA(), {"reg": RIDGES}, PAIR, None, {"refit": refit}
    expected, found = fitted(GridSearchCV, *case), fitted(FoldSearchCV, *case)
    assert found.best_params_ == expected.best_params_
    assert hasattr(found, "best_estimator_") == hasattr(expected, "best_estimator_")
    assert hasattr(found, "best_score_") == hasattr(expected, "best_score_")
    assert hasattr(found, "refit_time_") == hasattr(expected, "refit_time_")


def test_a_search_is_an_estimator():
    search = FoldSearchCV(CCA(), [{"reg": RIDGES}, {"n_components": [1, 2]}], cv=FOLDS)
    assert clone(search).get_params(deep=False).keys() == {
        "estimator", "grid", "cv", "scoring", "refit"
    }  # fmt: skip
    search.set_params(estimator__n_components=3).fit(PAIR)
    check_is_fitted(search)
    assert len(search.cv_results_["params"]) == 4
    assert search.n_features_in_ == 14
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.transform(PAIR)["a"], search.transform(PAIR)["a"])


def test_it_is_the_last_step_of_a_pipeline():
    scaled = PerView(StandardScaler()).fit_transform(PAIR)
    expected = FoldSearchCV(CCA(2), {"reg": RIDGES}, cv=FOLDS).fit(scaled)
    search = FoldSearchCV(CCA(2), {"reg": RIDGES}, cv=FOLDS)
    pipeline = make_pipeline(PerView(StandardScaler()), search).fit(PAIR)
    assert pipeline[-1].best_params_ == expected.best_params_
    assert_allclose(pipeline.transform(PAIR)["b"], expected.transform(scaled)["b"])


def test_a_grid_search_over_other_parameters_holds_it():
    model = FoldSearchCV(MVMLCCA(within="sample"), {"reg": RIDGES}, cv=FOLDS, scoring=MAP)
    grid = {"estimator__sigma": [0.5, 2.0]}
    search = GridSearchCV(model, grid, cv=FOLDS, error_score="raise").fit(PAIR, CLASSES)
    assert set(search.best_params_) == {"estimator__sigma"}


def test_warnings_are_given_once():
    with pytest.warns(UserWarning, match="more than these data have") as caught:
        FoldSearchCV(CCA(), {"n_components": [20], "reg": RIDGES}, cv=FOLDS).fit(PAIR)
    assert len({str(own.message) for own in caught}) == len(caught)
    assert caught[0].filename == __file__


# ---- what it refuses -----------------------------------------------------------------------------


REFUSED = {
    "a kernel": (KCCA(approximation="nystroem"), {"gamma": [0.1, 1.0]}, "'gamma' change more"),
    "exact KCCA": (KCCA(), {"reg": [0.1]}, "approximation=None"),
    "neighbours": (MLCCA(), {"n_neighbors": [5]}, "'n_neighbors' change more than the solution"),
    "an algorithm": (PLS(), {"algorithm": ["svd"]}, "n_components, ranking of PLS"),
    "a parameter of others": (CCA(), {"power": [1.0]}, "'power' are not its parameters"),
    "estimated ridges": (CCA(), {"reg": [0.1, "auto"]}, "got 'auto'"),
    "a search within": (CCA(reg="cv"), {"n_components": [1]}, "got 'cv'"),
    "drawn label features": (
        MLCCA(label_features="fourier"), {"sigma": [1.0]}, "label_features='fourier' are drawn"
    ),
    "NCCA": (NCCA(), {"n_components": [1]}, "NCCA has none"),
    "JRL": (JRL(), {"reg": [0.1]}, "JRL has none"),
    "a pipeline": (make_pipeline(CCA()), {"reg": [0.1]}, "Pipeline has none"),
}  # fmt: skip


@pytest.mark.parametrize(("estimator", "grid", "message"), REFUSED.values(), ids=REFUSED)
def test_what_more_than_the_solution_depends_on_is_left_to_grid_search(estimator, grid, message):
    with pytest.raises(ValueError, match=message) as refused:
        FoldSearchCV(estimator, grid).fit(PAIR, CLASSES)
    assert "GridSearchCV" in str(refused.value)


def test_unknown_rankings_and_values_are_refused_before_any_work():
    with pytest.raises(ValueError, match="weighting to be"):
        FoldSearchCV(CCA(), {"ranking": ["best"]}).fit(PAIR)
    with pytest.raises(ValueError, match="'n_components' parameter of CCA"):
        FoldSearchCV(CCA(), {"n_components": [0]}).fit(PAIR)
    with pytest.raises(TypeError, match="'X_val'"):
        FoldSearchCV(CCA(), {"reg": [0.1]}).fit(PAIR, X_val=PAIR)


# ---- every option --------------------------------------------------------------------------------


TWO = {"cv": KFold(2)}
ADDING = {name: cls for name, cls in estimators().items() if hasattr(cls, "statistic_of")}
OF_VIEWS = {
    "reg": {"a": 0.1, "b": 1.0},
    "kernel": {"a": "linear", "b": "rbf"},
    "gamma": {"a": 0.1, "b": 0.2},
    "groups": {"a": np.arange(8) // 2, "b": np.arange(6) // 2},
}
SMALL = {"random_state": 0, "n_landmarks": 20, "approximation": "nystroem"}
SMALL |= {"n_features": 3, "tau": 1.0}
CHOSEN_BY_FITS = [
    *[("reg", name) for name in ("auto", "oas", "cv")],
    *[("gamma", "cv"), ("n_components", "cv"), ("approximation", None), ("scale", "cv")],
    *[("n_features", "cv"), ("tau", "auto"), ("tau", "cv")],
]


def with_option(cls, parameter, value):
    known = cls._get_param_names()
    small = {n: own for n, own in SMALL.items() if n in known}
    if parameter == "l1":
        del small["n_features"]
    return cls(**{**small, parameter: value})


def draws(estimator):
    """Whether `GridSearchCV` draws from each training part what is drawn once here."""
    return isinstance(estimator, KCCA) or getattr(estimator, "label_features", None) is not None


def error_of(search):
    try:
        with warnings.catch_warnings(action="ignore"):
            return None, search()
    except ValueError as error:
        return str(error), None


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=() if n in ("CCA", "MLCCA") else pytest.mark.slow) for n in ADDING],
)
def test_every_option_of_every_estimator_is_searched_as_by_refits_or_refused(name):
    few, y = Views({"a": A[:40], "b": B[:40]}), CLASSES[:40]
    given = Views({"a": A[:40], "b": B[:40], "z": C[:40, :2]})
    for parameter, value in options(ADDING[name], OF_VIEWS, {"confounds": "z", "target": "a"}):
        estimator = with_option(ADDING[name], parameter, value)
        X, where = given if value == "z" else few, f"{name}({parameter}={value!r})"
        grid = {"reg": RIDGES} if "reg" in estimator.get_params() else {"n_components": [1, 2]}
        if parameter in grid:
            grid = {"ranking": ["cosine"]}
        refused, found = error_of(
            lambda e=estimator, g=grid, X=X: fitted(FoldSearchCV, e, g, X, y, TWO)
        )
        if (parameter, value) in CHOSEN_BY_FITS:
            assert re.search(f"{parameter}\\b.*Use GridSearchCV", refused), where
            continue
        own = {} if found is None else {n: found.best_params_[n] for n in grid if n != "ranking"}
        best = clone(estimator).set_params(**own)
        error, best = error_of(partial(best.fit, X, y))
        assert error == refused, where
        for view, W in ({} if best is None else best.weights_).items():
            atol = 1e-6 * np.abs(W).max()
            assert_allclose(found.best_estimator_.weights_[view], W, atol=atol, err_msg=where)
        if best is not None and not draws(estimator) and "ranking" not in grid:
            refits = partial(GridSearchCV, error_score="raise")
            expected = fitted(refits, estimator, grid, X, y, TWO).cv_results_
            for score in ("mean_test_score", "std_test_score"):
                assert_allclose(found.cv_results_[score], expected[score], atol=1e-8, err_msg=where)


ANY_UNITS = [MLCCA(), MLCCA(weighting="means"), MVMLCCA(), MVMLCCA(within="label"), CCA(), PLS()]
SIZES = {
    "large": (np.full(8, 1e150), np.full(6, 1e150)),
    "small": (np.full(8, 1e-150), np.full(6, 1e-150)),
    "one view": (np.full(8, 1e-120), np.ones(6)),
    "columns": (np.r_[1e-120, np.ones(7)], np.r_[np.ones(5), 1e-120]),
}


UNITS = [(est, "columns") for est in ANY_UNITS]
UNITS += [(est, size) for est in ANY_UNITS[3:5] for size in SIZES if size != "columns"]


@pytest.mark.parametrize(("estimator", "size"), UNITS, ids=repr)
def test_views_with_and_without_a_ridge_are_searched_in_any_unit(estimator, size):
    sizes = SIZES[size]
    views = Views({"a": A * sizes[0], "b": B * sizes[1]})
    grid = {"n_components": [1, 2]}
    if "reg" in estimator.get_params():
        grid = {"reg": [{"a": 0, "b": 1.0}, {"a": 1.0, "b": 0}, 0, 1.0]}
    expected = fitted(partial(GridSearchCV, error_score="raise"), estimator, grid, views, CLASSES)
    found = fitted(FoldSearchCV, estimator, grid, views, CLASSES)
    key = "mean_test_score"
    assert_allclose(found.cv_results_[key], expected.cv_results_[key], rtol=0, atol=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_absolute_ridges_are_in_the_units_of_the_views(size):
    for estimator in (MLCCA(), MVMLCCA(), CCA(), MVCCA(), GCCA()):
        estimator.set_params(reg_unit="absolute")
        of_unit_size = fitted(FoldSearchCV, estimator, {"reg": RIDGES}, PAIR, CLASSES)
        views = Views({name: X * size for name, X in PAIR.items()})
        grid = {"reg": [reg * size**2 for reg in RIDGES]}
        found = fitted(FoldSearchCV, estimator, grid, views, CLASSES).cv_results_
        key = "mean_test_score"
        assert_allclose(found[key], of_unit_size.cv_results_[key], rtol=0, atol=1e-8)


def test_components_without_weights_leave_memory_alone():
    # SciPy's dtbtrs writes past the end of arrays of no columns, which ended the process.
    white = Bidiagonal.of(Tridiagonal(np.ones(5), np.zeros(4)), "a")
    for _ in range(200):
        assert white.lift(np.ones((5, 2))[:, :0]).shape == (5, 0)


def test_groups_with_labels_of_other_rows_are_refused():
    names = [f"row {number}" for number in range(N)]
    views = {name: pd.DataFrame(FACTORS[:, :4], index=names) for name in "ab"}
    groups = pd.Series(np.arange(N) // 5, index=names)
    search = FoldSearchCV(CCA(1), {"reg": [0.1, 1.0]}, cv=GroupKFold(3))
    search.fit(views, groups=groups)
    with pytest.raises(ValueError, match="the groups and the views have the same labels in a diff"):
        search.fit(views, groups=groups[::-1])
