"""Label regression, judged by scikit-learn's ridge and by planted classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import LabelRegression, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.kernel.kernels import median_gamma

DIGITS = load_digits_views()
TRAIN, TEST = DIGITS.views[:400], DIGITS.views[400:700]
Y, Y_TEST = np.asarray(DIGITS.labels)[:400], np.asarray(DIGITS.labels)[400:700]


def of_classes(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around one corner per class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y], y


def scores_of(model: LabelRegression, X: object, y: object, rows: object = None) -> np.ndarray:
    return model.fit({"a": X}, y).transform({"a": X if rows is None else rows})["a"]


def indicators(y: np.ndarray) -> np.ndarray:
    return np.eye(3)[y] - np.eye(3)[y].mean(axis=0)


def test_without_a_kernel_it_is_ridge_regression_on_standardised_columns():
    X, y = of_classes()
    Z = StandardScaler().fit_transform(X)
    expected = Ridge(alpha=0.05 * len(X)).fit(Z, indicators(y)).predict(Z)
    found = scores_of(LabelRegression(0.05, kernel="linear"), X, y)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_with_all_rows_as_landmarks_it_is_kernel_ridge_regression():
    X, y = of_classes(80)
    Z = StandardScaler().fit_transform(X)
    K = rbf_kernel(Z, gamma=median_gamma(Z, np.random.RandomState(0)))
    centre = np.eye(80) - 1 / 80
    K = centre @ K @ centre
    ridge = 0.1 * np.trace(K) / 80 * 80  # r v n, with v the mean variance of 80 features
    expected = K @ np.linalg.solve(K + ridge * np.eye(80), indicators(y))
    found = scores_of(LabelRegression(0.1 * 80, random_state=0), X, y)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_it_takes_real_label_vectors_and_sets():
    X, y = of_classes()
    vectors = np.random.default_rng(1).normal(size=(3, 5))[y]
    model = LabelRegression(0.05, kernel="linear")
    Z = StandardScaler().fit_transform(X)
    expected = Ridge(alpha=0.05 * len(X)).fit(Z, vectors - vectors.mean(axis=0)).predict(Z)
    found = scores_of(model, X, vectors)
    np.testing.assert_allclose(found / np.abs(found).max(), expected / np.abs(expected).max())
    found = scores_of(LabelRegression(0.05, kernel="linear"), X, vectors * 1e140)
    np.testing.assert_allclose(found / np.abs(found).max(), expected / np.abs(expected).max())
    as_sets = scores_of(LabelRegression(0.05, kernel="linear"), X, [{int(own), 9} for own in y])
    classes = scores_of(LabelRegression(0.05, kernel="linear"), X, y)
    np.testing.assert_allclose(as_sets, np.column_stack([classes, np.zeros(len(y))]), atol=1e-12)


def test_units_of_columns_and_copies_of_rows_do_not_matter():
    X, y = of_classes()
    expected = scores_of(LabelRegression(random_state=0), X, y)
    for factors in (10.0 ** np.arange(-4, 4, 2), np.full(4, 1e200), np.full(4, -1e-200)):
        found = scores_of(LabelRegression(random_state=0), X * factors, y)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    times = np.arange(120) % 3
    weighted = LabelRegression(kernel="linear").fit({"a": X}, y, sample_weight=times)
    repeated = scores_of(LabelRegression(kernel="linear"), X.repeat(times, 0), y.repeat(times), X)
    np.testing.assert_allclose(weighted.transform({"a": X})["a"], repeated, atol=1e-12)


def test_the_smallest_ridge_fits_the_rows():
    X, y = of_classes()
    found = scores_of(LabelRegression(1e-300, random_state=0), X, y)
    np.testing.assert_allclose(found, indicators(y), atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_sparse_rows_and_constant_columns(kernel):
    X, y = of_classes()
    X = np.column_stack([np.where(np.abs(X) < 1, 0, X), np.full(len(X), 7.0)])
    expected = scores_of(LabelRegression(kernel=kernel, random_state=0), X, y)
    found = scores_of(LabelRegression(kernel=kernel, random_state=0), sp.csr_array(X), y)
    np.testing.assert_allclose(found, expected, atol=1e-8)
    without = scores_of(LabelRegression(kernel="linear"), X[:, :-1], y)
    constant = scores_of(LabelRegression(kernel="linear"), X, y)
    share = 4 / 5  # of the ridge, in units of the mean variance of the columns
    less = scores_of(LabelRegression(0.1 * share, kernel="linear"), X[:, :-1], y)
    np.testing.assert_allclose(constant, less, atol=1e-12)
    assert not np.allclose(without, less)


def test_views_may_have_other_labels_and_need_no_pairs():
    X, y = of_classes()
    labels = {"all": y, "some": y[y < 2]}
    model = LabelRegression().fit({"all": X, "some": X[y < 2]}, labels)
    np.testing.assert_array_equal(model.transform({"some": X})["some"][:, 2], 0)
    assert (model.transform({"all": X})["all"].argmax(axis=1) == y).mean() > 0.8


def test_it_finds_classes_of_digits_and_tunes_itself(tmp_path):
    def found(model):
        model.fit(TRAIN, Y)
        return evaluate_retrieval(TEST, Y_TEST, measures="map", estimator=model).mean()["map"]

    tuned = LabelRegression(reg="cv", random_state=0)
    figures = [found(LabelRegression(kernel="linear")), found(LabelRegression()), found(tuned)]
    assert figures[0] > 0.35
    assert figures[1] > figures[0] + 0.15
    assert figures[2] >= figures[1] - 0.02
    assert tuned.kernel_ == "rbf"
    assert {*tuned.cv_results_["param_ranking"]} == {"cosine", "inner"}
    mvcca.save(tuned, tmp_path / "model.mvcca")
    loaded = mvcca.load(tmp_path / "model.mvcca")
    for name, scores in tuned.transform(TEST).items():
        np.testing.assert_array_equal(loaded.transform(TEST)[name], scores)


def test_where_labels_are_hard_to_predict_folds_choose_the_inner_product():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    clear = rng.random(400) < 0.3  # only these rows say what they are
    views = {n: rng.normal(size=(400, 6)) + 4 * clear[:, None] * np.eye(3, 6)[y] for n in "ab"}
    model = LabelRegression("cv", random_state=0).fit(views, y)
    assert model.ranking_ == "inner"
    scores = model.transform(views)
    expected = evaluate_retrieval(scores, y, measures="map@50", similarity="inner").mean()
    assert evaluate_retrieval(views, y, measures="map@50", estimator=model).mean() == expected


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (LabelRegression(), np.zeros(400), "All rows have the same labels"),
        (LabelRegression(), {"left": Y, "right": np.ones(400, int)}, "View 'right'.*same labels"),
        (LabelRegression(reg=0), Y, "'reg' parameter of LabelRegression must be"),
        (LabelRegression(kernel={"left": "cv", "right": "rbf"}), Y, "one value for all views"),
    ],
)
def test_what_cannot_be_learned_is_refused(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(TRAIN, y)


def test_it_is_a_method_by_name():
    result = mvcca.compare(["klr", "mlcca"], TRAIN, Y, cv=3, tune=False, params={"n_components": 5})
    assert result.methods == ("label regression", "MLCCA")
    found = {name: result.mean(name, "map@50") for name in result.methods}
    assert found["label regression"] > found["MLCCA"] + 0.1
