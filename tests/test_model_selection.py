"""Class-disjoint splits: the protocol of scikit-learn, and what makes a split zero-shot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV, cross_validate

from mvcca import CCA, Views, load, retrieval_scorer, save
from mvcca.datasets import load_digits_views
from mvcca.model_selection import ClassDisjointSplit

Y = np.repeat(np.arange(8), 5)
X = np.zeros((len(Y), 2))


@pytest.mark.parametrize(("test_size", "n_test"), [(0.25, 2), (0.3, 3), (5, 5)])
def test_no_class_is_on_both_sides_and_every_object_on_one(test_size, n_test):
    splits = list(ClassDisjointSplit(6, test_size=test_size, random_state=0).split(X, Y))
    assert len(splits) == 6
    for train, test in splits:
        assert not set(Y[train]) & set(Y[test])
        assert len(set(Y[test])) == n_test
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(Y)))
    assert len({tuple(test) for _, test in splits}) > 1


@pytest.mark.parametrize(("test_size", "n_test"), [(0.07, 7), (0.55, 55), (1 - 0.8, 20)])
def test_a_share_of_classes_is_exact(test_size, n_test):
    y = np.arange(100).repeat(2)
    for _, test in ClassDisjointSplit(2, test_size=test_size, random_state=0).split(y, y):
        assert len(set(y[test])) == n_test


def test_objects_with_labels_of_both_kinds_are_left_out():
    sets = [{"cat"}, {"dog"}, {"cat", "dog"}, {"car"}, {"dog", "car"}, set()]
    for labels in (sets, [list(s) for s in sets]):
        for train, test in ClassDisjointSplit(8, test_size=1, random_state=0).split(sets, labels):
            tested = set().union(*(sets[i] for i in test))
            assert len(tested) == 1
            assert [i for i in range(6) if sets[i] and sets[i] <= tested] == test.tolist()
            assert [i for i in range(6) if sets[i] and not sets[i] & tested] == train.tolist()


def test_every_form_of_labels_gives_the_same_splits():
    indicator = np.eye(8, dtype=int)[Y]
    expected = list(ClassDisjointSplit(3, random_state=4).split(X, Y))
    for labels in (indicator, csr_array(indicator), [{f"class {c}"} for c in Y]):
        found = list(ClassDisjointSplit(3, random_state=4).split(X, labels))
        for ours, theirs in zip(expected, found, strict=True):
            assert_array_equal(ours[0], theirs[0])
            assert_array_equal(ours[1], theirs[1])


def test_it_works_with_views_in_a_search_and_is_stored(tmp_path):
    digits = load_digits_views()
    views, y = digits.views[:400], digits.labels[:400]
    assert isinstance(views, Views)
    splitter = ClassDisjointSplit(2, test_size=3, random_state=0)
    scoring = retrieval_scorer("p@10:class_means")
    result = cross_validate(CCA(9, reg=0.1), views, y, cv=splitter, scoring=scoring)
    assert (result["test_score"] > 1 / 3).all()  # chance of three classes
    search = GridSearchCV(CCA(9), {"reg": [0.1, 1.0]}, cv=splitter, scoring=scoring).fit(views, y)
    save(search, tmp_path / "search.mvcca")
    loaded = load(tmp_path / "search.mvcca")
    assert repr(loaded.cv) == repr(splitter)
    assert loaded.best_score_ == search.best_score_
    for ours, theirs in zip(splitter.split(views, y), loaded.cv.split(views, y), strict=True):
        assert_array_equal(ours[1], theirs[1])


@pytest.mark.parametrize(
    ("test_size", "y", "message"),
    [
        (0.25, None, "needs labels"),
        (8, Y, "integer from 1 to 7"),
        (0, Y, "test_size"),
        (1.5, Y, "test_size"),
        (True, Y, "test_size"),
        ("half", Y, "test_size"),
        (0.5, np.zeros(40), "test_size"),
        (1, [{"a", "b"}, {"b", "c"}, {"a", "c"}], "labels of both kinds"),
        (
            0.5,
            np.random.default_rng(0).normal(size=(40, 2)),
            "ClassDisjointSplit needs .* real-valued",
        ),
    ],
)
def test_impossible_splits_are_refused(test_size, y, message):
    rows = X if y is None else X[: len(y)]
    with pytest.raises(ValueError, match=message):
        list(ClassDisjointSplit(test_size=test_size).split(rows, y))
