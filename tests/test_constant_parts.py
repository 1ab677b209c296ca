"""Features, views and labels that are constant, in all rows or in a training or held-out part.

Every estimator gives finite values or one error that names the cause. Searches and comparisons name
the split as well, and no search is all NaN without a warning that says why.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from estimators import DEEP, LONG, OTHERS, SHALLOW, crossed
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import (
    CCA,
    GCCA,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    PLS,
    FoldSearchCV,
    JoinViews,
    PerView,
    SparseCCA,
    Views,
)
from mvcca.compose import MomentPCA, RankGaussian

N = 60
FOLDS = np.repeat([0, 1, 2], N // 3)
TRAIN, TEST = np.flatnonzero(FOLDS != 1), np.flatnonzero(FOLDS == 1)  # split 1 of 3
SPLITS = [(np.flatnonzero(k != FOLDS), np.flatnonzero(k == FOLDS)) for k in range(3)]
SMALL = {"batch_size": 20}  # of networks
NO_VARIANCE = "'image' has no variance|'text' has no variance"
ONE_CLASS = "have the same labels"

# What is constant: the view, its rows, its columns.
EVERYTHING, ONE = slice(None), slice(1)
CONSTANT = {
    "a feature": ("image", EVERYTHING, ONE),
    "a column of y": ("text", EVERYTHING, ONE),
    "a feature of a training part": ("image", TRAIN, ONE),
    "a column of y in a training part": ("text", TRAIN, ONE),
    "the first view of a training part": ("image", TRAIN, EVERYTHING),
    "the second view of a training part": ("text", TRAIN, EVERYTHING),
    "a view of held-out rows": ("text", TEST, EVERYTHING),
    "the class of a training part": (None, TRAIN, EVERYTHING),
}
TUNED_IN_CI = ("a view of held-out rows", "the class of a training part")
NAMED = {what: what for what in CONSTANT}
ON_CPUS = [
    *SHALLOW,
    *OTHERS,
    MVCCA(reg=0.1),
    MVMLCCA(within="sample"),
    *(PLS(1, algorithm=algorithm, scale=True) for algorithm in ("regression", "canonical")),
]
NETWORKS = [clone(model).set_params(**SMALL) for model in DEEP]
ESTIMATORS = [*ON_CPUS, *NETWORKS]
ADDING = [model for model in ON_CPUS if hasattr(model, "partial_fit")]
STEPS = [PerView(), PerView(StandardScaler()), JoinViews(), MomentPCA(2), RankGaussian()]
TUNED = [CCA(reg="cv"), MVCCA(reg="cv"), GCCA(reg="cv"), KCCA(reg="cv"), PLS("cv"), LGCFL(reg="cv")]


def data(what: str) -> tuple[Views, np.ndarray]:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N, 3))
    blocks = {
        name: (latent @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(N, d))).astype("f4")
        for name, d in {"image": 5, "text": 4}.items()
    }
    y = np.tile([0, 1, 2], N // 3)
    name, rows, columns = CONSTANT[what]
    if name is None:
        y[rows] = 1
    else:
        blocks[name][rows, columns] = 2
    return Views(blocks), y


def grid_of(model: Any) -> dict[str, list[Any]]:
    names = ("n_components", "reg", "max_epochs")
    return {next(name for name in names if name in model.get_params()): [1]}


def name_of(model: Any) -> str:
    return type(model).__name__


def refusal(model: Any, what: str) -> str | None:
    """The error that the training part of split 1 must give, if any."""
    if what == "the class of a training part":
        return ONE_CLASS if model.requires.labels else None
    if what == "the second view of a training part" and isinstance(model, PLS):
        return None if model.algorithm != "svd" else NO_VARIANCE  # its mean is predicted
    return NO_VARIANCE if what.endswith("view of a training part") else None


def outcome(measure: Any) -> tuple[np.ndarray, str, list[warnings.WarningMessage]]:
    """Values or the message of the error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            values, error = np.atleast_1d(measure()), ""
        except ValueError as raised:
            values, error = np.zeros(0), str(raised)
    assert not any("RuntimeWarning" in str(own.category) for own in caught)
    return values, error, caught


@crossed("what", NAMED, ESTIMATORS)
def test_scores_are_finite_or_the_error_names_the_cause(estimator, what):
    views, labels = data(what)
    y = labels if estimator.requires.labels else None
    expected = refusal(estimator, what)

    def score() -> float:
        own = [None if y is None else y[rows] for rows in (TRAIN, TEST)]
        return clone(estimator).fit(views[TRAIN], own[0]).score(views[TEST], own[1])

    values, error, _ = outcome(score)
    assert bool(error) == (expected is not None)
    assert np.isfinite(values).all()
    assert re.search(expected or "", error)


@crossed("what", NAMED, ESTIMATORS)
def test_scikit_learn_says_why_a_split_has_no_score(estimator, what):
    views, labels = data(what)
    y = labels if estimator.requires.labels else None
    expected = refusal(estimator, what)
    found, _, caught = outcome(lambda: cross_val_score(estimator, views, y, cv=SPLITS))
    assert np.isnan(found).tolist() == [False, expected is not None, False]
    means, error, of_search = outcome(
        lambda: (
            GridSearchCV(estimator, grid_of(estimator), cv=SPLITS, refit=False)
            .fit(views, y)
            .cv_results_["mean_test_score"]
        )
    )
    assert not error
    assert np.isnan(means).all() == np.isnan(means).any() == (expected is not None)
    for own in (caught, of_search):
        failed = [str(w.message) for w in own if w.category is FitFailedWarning]
        assert bool(failed) == (expected is not None)
        assert all(re.search(expected or "", text) for text in failed)
    if expected is not None:
        with pytest.raises(ValueError, match=expected), warnings.catch_warnings(action="ignore"):
            GridSearchCV(estimator, grid_of(estimator), cv=SPLITS, error_score="raise").fit(
                views, y
            )


@crossed("what", NAMED, ADDING)
def test_a_fold_search_names_the_split(estimator, what):
    views, labels = data(what)
    y = labels if estimator.requires.labels else None
    expected = refusal(estimator, what)
    means, error, _ = outcome(
        lambda: (
            FoldSearchCV(estimator, grid_of(estimator), cv=SPLITS)
            .fit(views, y)
            .cv_results_["mean_test_score"]
        )
    )
    assert bool(error) == (expected is not None)
    assert np.isfinite(means).all()
    if expected is not None:
        assert re.search(rf"Split 1 of 3 \(from 0\) cannot be .*({expected}).*\(cv=\)", error)


@pytest.mark.parametrize(
    ("what", "tune"),
    [
        *((what, False) for what in TUNED_IN_CI),
        *(
            pytest.param(what, False, marks=pytest.mark.slow)
            for what in CONSTANT
            if what not in TUNED_IN_CI
        ),
        *(pytest.param(what, True, marks=LONG) for what in CONSTANT if what not in TUNED_IN_CI),
        *(pytest.param(what, True, marks=pytest.mark.slow) for what in TUNED_IN_CI),
    ],
)
def test_a_comparison_names_methods_that_fail_with_view_and_fold(what, tune):
    views, labels = data(what)
    names = ["cca", "pls", "mlcca", "lgcfl", "kcca"]
    with warnings.catch_warnings(action="ignore"):
        found = mvcca.compare(names, views, labels, cv=SPLITS, tune=tune)
    failing = {model for model in (CCA(), PLS(), MLCCA(), LGCFL(), KCCA()) if refusal(model, what)}
    # Models of a nested search learn from a single fold, and the second one is constant.
    if not (tune and what == "a view of held-out rows"):
        assert set(found.failures) == {type(model).__name__ for model in failing}
    for reason in found.failures.values():
        assert re.search(f"{NO_VARIANCE}|{ONE_CLASS}", reason)
        assert "fold 2 of 3" in reason
    for name in found.successes:
        assert np.isfinite([found.mean(name, measure) for measure in found.measures]).all()


@pytest.mark.parametrize("model", TUNED, ids=name_of)
def test_folds_that_choose_settings_are_named_where_a_view_is_constant(model):
    views, labels = data("a feature")
    text = np.ones((N, 4))
    text[5] = np.arange(4)  # the only row that differs; the model without it learns nothing
    views = Views({"image": views["image"], "text": text})
    y = labels if model.requires.labels else None
    _, error, caught = outcome(lambda: len(clone(model).fit(views, y).view_names_))
    said = error or " ".join(str(own.message) for own in caught)
    assert re.search(r"fails without fold \d of \d \(from 0\): view 'text' has no variance", said)


def test_labels_that_folds_learn_from_are_of_two_classes():
    views, labels = data("the class of a training part")
    with warnings.catch_warnings(action="ignore"):
        found = mvcca.compare(["mlcca"], views, labels, cv=SPLITS)
    assert ONE_CLASS in found.failures["MLCCA"]


@pytest.mark.filterwarnings("ignore:y residual is constant")
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("n_columns", [3, 80])
def test_pls_predicts_constant_columns_as_scikit_learn_does(n_columns, scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 4)), rng.normal(size=(40, n_columns))
    y[:, 0] = 3
    model = PLS(2, algorithm="regression", scale=scale)
    reference = PLSRegression(2, scale=scale, tol=1e-14, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).predict(X), reference.predict(X), atol=1e-6)
    with pytest.warns(UserWarning, match="View 'y' is constant"):
        model.fit(np.ones((40, 4)), np.full((40, 2), 3.0))
    np.testing.assert_array_equal(model.predict(X), np.full((40, 2), 3.0))
    with pytest.raises(ValueError, match="'X' has no variance"):  # scikit-learn: a NaN entry
        model.fit(np.ones((40, 4)), y)


@pytest.mark.parametrize("what", [w for w in CONSTANT if CONSTANT[w][0] is not None])
@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_steps_give_finite_rows_or_name_the_cause(step, what):
    views, _ = data(what)
    is_of_one = isinstance(step, MomentPCA | RankGaussian)
    train, test = (views[own]["image"] if is_of_one else views[own] for own in (TRAIN, TEST))

    def transformed() -> np.ndarray:
        found = clone(step).fit(train).transform(test)
        blocks = [found[name] for name in found.names] if isinstance(found, Views) else [found]
        return np.concatenate([np.ravel(own) for own in blocks])

    values, error, _ = outcome(transformed)
    assert np.isfinite(values).all()
    assert not error or re.search("has no variance", error)


CONSTANTS = {
    "ones": np.ones((N, 3)),
    "zeros": np.zeros((N, 3)),
    "tiny": np.full((N, 3), 1e-300),
    "one column": np.ones((N, 1), int),
    "equal rows": np.tile(np.arange(3.0), (N, 1)),
    "no entries": sp.csr_array((N, 3)),
}


@pytest.mark.parametrize("constant", CONSTANTS.values(), ids=CONSTANTS)
@pytest.mark.parametrize(
    "estimator",
    [CCA(reg="cv"), MVCCA(None, reg="cv"), SparseCCA(1, n_features="cv"), *DEEP[:2]],
    ids=repr,
)
def test_a_view_of_equal_rows_is_the_cause_not_a_fold_or_a_network(estimator, constant):
    X = np.random.default_rng(0).normal(size=(N, 4))
    with pytest.raises(ValueError, match=r"^view 'b' has no variance: all its rows are the same"):
        clone(estimator).fit({"a": X, "b": constant}, np.arange(N) % 3)


@pytest.mark.filterwarnings("ignore")
def test_a_linear_start_without_a_fold_is_named():
    deep = pytest.importorskip("mvcca.deep")
    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(N, 4)), "b": np.vstack([np.zeros((N - 1, 3)), np.ones(3)])}
    options = {"hidden_layer_sizes": (4,), "batch_size": N, "max_epochs": 1, "random_state": 0}
    model = deep.DCCA(2, **options)
    with pytest.raises(ValueError, match=r"linear start .* without one fold, view 'b' has no var"):
        model.fit(views)
    assert model.set_params(start="random").fit(views).n_components_ >= 1
