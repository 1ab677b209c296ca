"""Semantic matching, judged by scikit-learn's classifiers and by planted classes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import SemanticMatching, evaluate_retrieval, retrieval_scorer
from mvcca.datasets import load_digits_views

DIGITS = load_digits_views()
TRAIN, TEST = DIGITS.views[:500], DIGITS.views[500:800]
Y, Y_TEST = np.asarray(DIGITS.labels)[:500], np.asarray(DIGITS.labels)[500:800]
LEFT = np.asarray(TRAIN["left"])


def of_classes(n: int = 120, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around one corner per class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return rng.normal(size=(n, 4)) + 2 * np.eye(3, 4)[y], y


def sets_of(y: np.ndarray) -> list[set[int]]:
    """One to three labels a row; 9 is a label of all, and 8 of those of class 0."""
    return [{int(own), 9} | ({8} if own == 0 else set()) for own in y]


def test_without_a_kernel_it_is_logistic_regression_on_standardised_columns():
    X, y = of_classes()
    reg = 0.05
    model = SemanticMatching(reg=reg, kernel="linear").fit({"a": X}, y)
    other = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (reg * len(X)), tol=1e-10))
    expected = other.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(model.transform({"a": X})["a"], expected, atol=2e-5)


def test_of_two_classes_probabilities_add_up_to_one():
    X, y = of_classes()
    scores = SemanticMatching(kernel="linear").fit({"a": X}, y > 0).transform({"a": X})["a"]
    np.testing.assert_allclose(scores.sum(axis=1), 1)
    assert ((scores[:, 1] > 0.5) == (y > 0)).mean() > 0.85


def test_label_sets_have_a_classifier_per_label():
    X, y = of_classes()
    model = SemanticMatching(kernel="linear", reg=0.01).fit({"a": X}, sets_of(y))
    scores = dict(zip(model.labels_, model.transform({"a": X})["a"].T, strict=True))
    assert (scores[9] == 1).all()  # all rows have it
    np.testing.assert_allclose(scores[8], scores[0], atol=1e-6)
    other = LogisticRegression(C=1 / (0.01 * len(X)), tol=1e-10)
    scaled = StandardScaler().fit_transform(X)
    expected = other.fit(scaled, y == 0).predict_proba(scaled)[:, 1]
    np.testing.assert_allclose(scores[8], expected, atol=2e-5)


@pytest.mark.parametrize("classifier", [None, KNeighborsClassifier(5)], ids=["own", "given"])
@pytest.mark.parametrize("as_sets", [False, True])
def test_labels_that_a_view_lacks_have_probability_zero_there(classifier, as_sets):
    X, y = of_classes()
    other, known = X[y < 2], y[y < 2]
    labels = {"all": y, "some": known}
    if as_sets:
        labels = {name: sets_of(own) for name, own in labels.items()}
    model = SemanticMatching(classifier).fit({"all": X, "some": other}, labels)
    scores = model.transform({"some": X})["some"]
    assert (scores[:, list(model.labels_).index(2)] == 0).all()
    assert np.isfinite(scores).all()
    if not as_sets:
        np.testing.assert_allclose(scores.sum(axis=1), 1)


def test_a_view_of_one_class_is_certain_of_it():
    X, y = of_classes()
    model = SemanticMatching().fit({"a": X, "b": X}, {"a": y, "b": np.zeros(len(y), int)})
    np.testing.assert_array_equal(model.transform({"b": X[:2]})["b"], [[1, 0, 0]] * 2)


def test_units_of_columns_do_not_matter():
    X, y = of_classes()
    expected = SemanticMatching(random_state=0).fit({"a": X}, y).transform({"a": X})["a"]
    for factors in (10.0 ** np.arange(-4, 4, 2), np.full(4, 1e200), np.full(4, -1e-200)):
        rows = {"a": X * factors}
        found = SemanticMatching(random_state=0).fit(rows, y).transform(rows)["a"]
        np.testing.assert_allclose(found, expected, atol=1e-9)


SAME_ROWS = {
    "another seed": lambda X, _: (X, slice(None), 1),
    "rows": lambda X, rng: (X, rng.permutation(len(X)), 0),
    "columns": lambda X, rng: (X[:, rng.permutation(X.shape[1])], slice(None), 0),
    "powers of two": lambda X, rng: (X * 2.0 ** rng.integers(-9, 9, X.shape[1]), slice(None), 0),
    "powers of ten": lambda X, rng: (X * 10.0 ** rng.integers(-9, 9, X.shape[1]), slice(None), 0),
    "rounding": lambda X, rng: (X * (1 + 1e-15 * rng.normal(size=X.shape)), slice(None), 0),
}


@pytest.mark.parametrize("change", SAME_ROWS.values(), ids=SAME_ROWS)
@pytest.mark.parametrize("reg", [1e-3, 0.1])
@pytest.mark.parametrize(("kernel", "as_sets"), [("linear", False), ("rbf", False), ("rbf", True)])
def test_nothing_but_the_data_decides(kernel, as_sets, reg, change):
    X, y, rng = LEFT[:150], Y[:150], np.random.default_rng(1)
    labels = np.arange(10) == y[:, None]
    if as_sets:
        labels |= np.arange(10) == (rng.integers(2, size=len(y)) + y)[:, None] % 10

    def of(rows, some, seed):
        model = SemanticMatching(kernel=kernel, reg=reg, random_state=seed)
        return model.fit({"a": rows[some]}, labels[some]).transform({"a": rows})["a"]

    np.testing.assert_allclose(of(*change(X, rng)), of(X, slice(None), 0), atol=1e-5)


def test_the_largest_penalty_leaves_shares_of_classes():
    X, y = of_classes()
    scores = SemanticMatching(reg=1e300).fit({"a": X}, y).transform({"a": X})["a"]
    np.testing.assert_allclose(scores, [np.bincount(y) / len(y)] * len(y), atol=1e-6)


def test_a_penalty_too_small_for_the_steps_warns():
    X, _ = of_classes(90)
    with pytest.warns(ConvergenceWarning, match="not converged after 100 steps. Raise reg"):
        SemanticMatching(kernel="linear", reg=1e-12).fit({"a": X}, np.arange(90) // 2)


def test_sparse_rows_and_constant_columns():
    X, y = of_classes()
    X = np.where(np.abs(X) < 1, 0, X)
    X = np.column_stack([X, np.full(len(X), 7.0)])
    expected = SemanticMatching(random_state=0).fit({"a": X}, y).transform({"a": X})["a"]
    rows = {"a": sp.csr_array(X)}
    found = SemanticMatching(random_state=0).fit(rows, y).transform(rows)["a"]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    less = {"a": X[:, :-1]}
    without = SemanticMatching(random_state=0).fit(less, y).transform(less)["a"]
    np.testing.assert_allclose(without, expected, atol=1e-6)


def test_it_finds_classes_of_digits_and_tunes_itself():
    def found(model):
        model.fit(TRAIN, Y)
        return evaluate_retrieval(TEST, Y_TEST, measures="map", estimator=model).mean()["map"]

    tuned = SemanticMatching(reg="cv", random_state=0)
    figures = [found(SemanticMatching(kernel="linear")), found(SemanticMatching()), found(tuned)]
    assert figures[0] > 0.5
    assert figures[1] > figures[0] + 0.05
    assert figures[2] >= figures[1] - 0.02
    assert tuned.kernel_ == "rbf"
    assert tuned.ranking_ == "inner"
    again = SemanticMatching(reg=tuned.reg_, kernel=tuned.kernel_, random_state=0).fit(TRAIN, Y)
    np.testing.assert_array_equal(again.transform(TEST)["left"], tuned.transform(TEST)["left"])
    assert retrieval_scorer("map")(tuned, TEST, Y_TEST) == pytest.approx(figures[2])


def test_rows_are_projected_some_at_a_time():
    model = SemanticMatching(random_state=0).fit(TRAIN, Y)
    expected = model.transform(TEST)
    with mvcca.config_context(block_rows=7):
        for name, scores in model.transform(TEST).items():
            np.testing.assert_allclose(scores, expected[name], atol=1e-12)
    rows = {"left": np.tile(LEFT, (80, 1))}
    tracemalloc.start()
    model.transform(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * len(rows["left"]) * 500  # the features of all rows


def test_classifiers_by_view():
    model = SemanticMatching({"left": KNeighborsClassifier(5), "right": None}).fit(TRAIN, Y)
    expected = KNeighborsClassifier(5).fit(LEFT, Y).predict_proba(np.asarray(TEST["left"]))
    np.testing.assert_array_equal(model.transform(TEST)["left"], expected)


@pytest.mark.parametrize("y", [Y, sets_of(Y)], ids=["classes", "sets"])
@pytest.mark.parametrize("classifier", [None, LogisticRegression(C=1e-3, max_iter=5000)])
def test_models_are_stored(tmp_path, y, classifier):
    model = SemanticMatching(classifier, kernel="rbf", random_state=0).fit(TRAIN, y)
    mvcca.save(model, tmp_path / "model.mvcca")
    loaded = mvcca.load(tmp_path / "model.mvcca")
    for name, scores in model.transform(TEST).items():
        np.testing.assert_array_equal(loaded.transform(TEST)[name], scores)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (SemanticMatching(), np.random.default_rng(0).normal(size=(500, 3)), "real label vectors"),
        (SemanticMatching(), np.zeros(500), "All rows have the same labels"),
        (SemanticMatching(KNeighborsClassifier(), reg="cv"), Y, 'reg="cv" is of logistic'),
        (SemanticMatching({"left": 3, "right": None}), Y, "classifier of view 'left' must be"),
        (SemanticMatching(reg=0), Y, "'reg' parameter of SemanticMatching must be"),
    ],
)
def test_what_cannot_be_learned_is_refused(model, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(TRAIN, y)


def test_it_is_a_method_by_name():
    result = mvcca.compare(["sm", "mlcca"], TRAIN, Y, cv=3, tune=False, params={"n_components": 5})
    assert result.methods == ("semantic matching", "MLCCA")
    found = {name: result.mean(name, "map@50") for name in result.methods}
    assert found["semantic matching"] > found["MLCCA"] + 0.1
