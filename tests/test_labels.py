"""Labels in every form against plain Python: which rows are alike, over which columns."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    permutation_test_score,
    train_test_split,
)

from mvcca import (
    JRL,
    LGCFL,
    MLCCA,
    MVMLCCA,
    Labels,
    Views,
    compare,
    evaluate_retrieval,
    retrieval_scorer,
)
from mvcca.views import labels as module
from mvcca.views.labels_by_view import LabelsByView, is_per_view

SETS = [{"cat", "dog"}, {"dog"}, set(), {"dog", "cat"}, {"cow"}, {"dog"}]
MATRIX = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 1]])
CLASSES = ["b", "a", "a", "c", "b", "c"]
REAL = np.array([[0.5, 2.0], [-1.0, 0.0], [0.5, 2.0], [3.0, -1.0], [-1.0, -0.0], [0.5, 2.5]])


def codes_in_order_of_appearance(rows: list[Hashable]) -> list[int]:
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(row, len(seen)) for row in rows]


def label_rows(y: Any) -> list[frozenset]:
    """Every row's labels by name, out of the distinct vectors and the codes."""
    labels = Labels.of(y)
    dense = labels.dense()
    return [
        frozenset(name for name, one in zip(labels.names, dense[c], strict=True) if one)
        for c in labels.codes
    ]


def indicators(*parts: Any) -> list[sp.csr_array]:
    """The 0/1 matrices of several labels, with the same columns."""
    return [labels.matrix for labels in Labels.in_common(parts)]


# ---- one set of labels ---------------------------------------------------------------------------

SET_FORMS = {
    "sets": SETS,
    "frozensets": [frozenset(row) for row in SETS],
    "lists": [sorted(row) for row in SETS],
    "tuples": tuple(tuple(sorted(row)) for row in SETS),
    "lists with repeats": [sorted(row) * 2 for row in SETS],
    "arrays of names": [np.array(sorted(row), dtype=object) for row in SETS],
    "an array of sets": np.array(SETS, dtype=object),
    "a Series of sets": pd.Series(SETS),
    "a Series of lists": pd.Series([sorted(row) for row in SETS]),
}


@pytest.mark.parametrize("y", SET_FORMS.values(), ids=SET_FORMS)
def test_label_sets_are_alike_when_they_hold_the_same_names(y):
    labels = Labels.of(y)
    assert label_rows(y) == [frozenset(row) for row in SETS]
    assert labels.codes.tolist() == codes_in_order_of_appearance([frozenset(row) for row in SETS])
    assert labels.vocabulary.tolist() == ["cat", "cow", "dog"]
    assert labels.are_sets
    assert labels.n_distinct == 4


MATRIX_FORMS = {
    "int": MATRIX,
    "bool": MATRIX.astype(bool),
    "float": MATRIX.astype(float),
    "float16": MATRIX.astype(np.float16),
    "big-endian": MATRIX.astype(">i4"),
    "Fortran order": np.asfortranarray(MATRIX),
    "nested lists": MATRIX.tolist(),
    "nested lists of bool": MATRIX.astype(bool).tolist(),
    "object": MATRIX.astype(object),
    "DataFrame": pd.DataFrame(MATRIX),
    "polars": pl.DataFrame(MATRIX, orient="row"),
    **{
        f"{form} {kind}": getattr(sp, f"{form}_{kind}")(MATRIX)
        for form in ("csr", "csc", "coo", "bsr", "lil", "dok", "dia")
        for kind in ("array", "matrix")
    },
    "with stored zeros": sp.csr_array(
        (MATRIX.ravel(), np.tile(np.arange(3), 6), np.arange(0, 19, 3)), MATRIX.shape
    ),
    "with unsorted columns": sp.csr_array(
        ([1, 1, 1, 1, 1, 1, 1], [2, 0, 2, 2, 0, 1, 2], [0, 2, 3, 3, 5, 6, 7]), MATRIX.shape
    ),
    "in halves": sp.csr_array(
        (np.full(14, 0.5), np.repeat([0, 2, 2, 0, 2, 1, 2], 2), [0, 4, 6, 6, 10, 12, 14]),
        MATRIX.shape,
    ),
}


@pytest.mark.parametrize("y", MATRIX_FORMS.values(), ids=MATRIX_FORMS)
def test_rows_of_an_indicator_are_alike_when_their_ones_are(y):
    labels = Labels.of(y)
    np.testing.assert_array_equal(labels.matrix.toarray(), MATRIX)
    assert labels.codes.tolist() == codes_in_order_of_appearance(
        [tuple(row) for row in MATRIX.tolist()]
    )
    assert labels.vocabulary is None
    assert labels.are_sets
    assert labels.vectors.data.tolist() == [1] * 4  # no stored zeros, none twice


CLASS_FORMS = {
    "names": CLASSES,
    "a tuple of names": tuple(CLASSES),
    "an array of names": np.array(CLASSES),
    "bytes": np.array(CLASSES, dtype="S"),
    "objects": np.array(CLASSES, dtype=object),
    "a Series": pd.Series(CLASSES),
    "a categorical Series": pd.Series(CLASSES, dtype="category"),
    "a polars Series": pl.Series(CLASSES),
    "a column": np.array(CLASSES)[:, None],
    "whole numbers": [7, -3, -3, 10**12, 7, 10**12],
    "whole floats": [7.0, -3.0, -3.0, 1e12, 7.0, 1e12],
    "a column of numbers": np.array([[7], [-3], [-3], [12], [7], [12]]),
    "numbers as objects": np.array([7, -3, -3, 12, 7, 12], dtype=object),
    "floats beyond integers": [2e300, 1.0, 1.0, 1e300, 2e300, 1e300],
    "dates": pd.to_datetime(
        ["2020-01-01", "2020-01-02", "2020-01-02", "2021-01-01", "2020-01-01", "2021-01-01"]
    ),
}


@pytest.mark.parametrize("y", CLASS_FORMS.values(), ids=CLASS_FORMS)
def test_rows_of_a_class_vector_are_alike_when_their_class_is(y):
    labels = Labels.of(y)
    assert labels.n_distinct == 3
    assert codes_in_order_of_appearance(labels.codes.tolist()) == [0, 1, 1, 2, 0, 2]
    np.testing.assert_array_equal(labels.vectors.toarray(), np.eye(3))
    assert len(labels.vocabulary) == 3


def test_two_classes_as_bool_are_two_classes_and_not_a_label():
    labels = Labels.of(np.array([True, False, True]))
    assert labels.n_distinct == 2
    assert labels.codes[0] == labels.codes[2] != labels.codes[1]


def test_real_label_vectors_are_alike_when_equal_and_signed_zeros_are():
    labels = Labels.of(REAL)
    assert labels.codes.tolist() == [0, 1, 0, 2, 1, 3]
    np.testing.assert_array_equal(labels.matrix, REAL)
    assert not labels.are_sets


@pytest.mark.parametrize(
    "y", [REAL.tolist(), REAL.astype(">f8"), pd.DataFrame(REAL), sp.csr_array(REAL)]
)
def test_real_label_vectors_in_other_containers_are_the_same(y):
    labels = Labels.of(y)
    np.testing.assert_array_equal(labels.matrix, REAL)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_real_number_per_row_is_a_label_vector_of_length_one(shape):
    values = np.array([0.5, 1.0, 0.5, -2.0])
    labels = Labels.of(values.reshape(shape))
    np.testing.assert_array_equal(labels.matrix, values[:, None])
    assert labels.codes.tolist() == [0, 1, 0, 2]


def test_counts_are_label_vectors_and_not_label_sets():
    counts = np.array([[0, 2], [1, 0], [0, 2]])
    labels = Labels.of(counts)
    assert not labels.are_sets
    np.testing.assert_array_equal(labels.matrix, counts)


def test_many_random_label_sets_fall_into_the_groups_of_a_dictionary():
    rng = np.random.default_rng(0)
    matrix = (rng.random((3000, 70)) < 0.03).astype(int)
    for y in (matrix, sp.csr_array(matrix), [set(np.flatnonzero(row)) for row in matrix]):
        labels = Labels.of(y)
        assert labels.codes.tolist() == codes_in_order_of_appearance(
            [tuple(r) for r in matrix.tolist()]
        )
        assert labels.n_distinct == len(set(map(tuple, matrix.tolist())))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_are_known_by_name(frame):
    y = {"sun": [1, 0, 1], "ape": [0, 0, 1]}
    labels = Labels.of(frame(y))
    assert labels.vocabulary.tolist() == ["ape", "sun"]
    np.testing.assert_array_equal(labels.matrix.toarray(), [[0, 1], [0, 0], [1, 1]])
    sets = [{"sun"}, set(), {"ape", "sun"}, {"cow"}]
    for a, b in ((frame(y), sets), (sets, frame(y))):
        first, second = indicators(a, b)
        assert first.shape[1] == second.shape[1] == 3
    real = frame({"v": [0.5, 2.0], "u": [3.0, 4.0]})
    labels = Labels.of(real)
    np.testing.assert_array_equal(labels.matrix, [[3.0, 0.5], [4.0, 2.0]])
    with pytest.raises(ValueError, match=r"same columns; .*: 'u', 'w'"):
        Labels.concatenate([real, frame({"v": [0.5], "w": [3.0]})])


def test_columns_with_numbers_for_names_match_sets_of_these_numbers():
    first, second = indicators(pd.DataFrame({90: [1, 0], 17: [0, 1]}), [{17}, {90, 3}])
    np.testing.assert_array_equal((first.astype(int) @ second.T).toarray(), [[0, 1], [1, 0]])


def test_a_name_of_two_columns_is_refused():
    with pytest.raises(ValueError, match="Several columns of y have the same name: 'a'"):
        Labels.of(pd.DataFrame(MATRIX, columns=["a", "b", "a"]))


def test_labels_are_not_written_into():
    for y in MATRIX_FORMS.values():
        if sp.issparse(y):
            before = y.toarray()
            Labels.of(y)
            np.testing.assert_array_equal(y.toarray(), before)
    stored = MATRIX_FORMS["with stored zeros"]
    assert stored.nnz == 18


# ---- what is refused -----------------------------------------------------------------------------

REFUSED = {
    "NaN": ([0.0, np.nan], "Labels contain NaN or infinity"),
    "infinity": ([[0.0, np.inf]], "Labels contain NaN or infinity"),
    "NaN in sparse": (sp.csr_array([[np.nan, 1.0]]), "Labels contain NaN or infinity"),
    "None": (["a", None], "Labels contain None; give every row a label, or an empty label set"),
    "None among numbers": ([1, None], "Labels contain None"),
    "NaN among names": (pd.Series(["a", np.nan], dtype=object), "Labels contain NaN"),
    "NA of pandas": (pd.Series(["a", pd.NA], dtype=object), "Labels contain <NA>"),
    "NA among nullable numbers": (pd.Series([1, None], dtype="Int64"), "Labels contain (NaN|<NA>)"),
    "complex": ([1j, 2], "Complex data not supported"),
    "a complex matrix": (np.eye(2) * 1j, "Complex data not supported"),
    "complex sparse": (sp.csr_array(np.eye(2) * 1j), "Complex data not supported"),
    "masked": (np.ma.masked_equal([1, 2, 1], 2), "Masked arrays are not supported"),
    "a masked matrix": (np.ma.array(np.eye(2)), "Masked arrays are not supported"),
    "three dimensions": (np.zeros((2, 2, 2)), r"got an array of shape \(2, 2, 2\)"),
    "deep lists": ([[[1, 2], [3, 4]]], r"got an array of shape \(1, 2, 2\)"),
    "a number": (3, r"got an array of shape \(\)"),
    "a name": ("cat", r"got an array of shape \(\)"),
    "a dict": ({"a": 1}, r"got an array of shape \(\)"),
    "a table of names": (np.array([["a", "b"]]), "must hold numbers.*as a list of sets"),
    "sets or vectors": ([[1, 2], [3, 4]], "may be label sets or label vectors.*list of sets"),
    "sets or vectors as tuples": ([(5, 2), (3, 4)], "may be label sets or label vectors"),
}


@pytest.mark.parametrize(("y", "message"), REFUSED.values(), ids=REFUSED)
def test_what_are_no_labels_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        Labels.of(y)


def test_lists_of_numbers_of_unequal_length_are_label_sets():
    assert label_rows([[1, 2], [3]]) == [{1, 2}, {3}]


# ---- several sets of labels ----------------------------------------------------------------------


def by_name(y: Any) -> list[frozenset]:
    return [frozenset([row]) if isinstance(row, str | int | float) else frozenset(row) for row in y]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["cat", "dog", "cat"], ["emu", "cat"]),
        (["cat", "dog", "cat"], [{"emu", "cat"}, set(), {"dog"}]),
        (SETS, [{"ape"}, {"cow", "dog"}]),
        ([3, 1, 3], [2.0, 1.0]),
        ([3, 1, 3], [{1, 2}, {3}]),
        (["1", "2"], [{"2", "a"}]),
        ([1, 2], [{"a", 1}]),  # names of two types in one vocabulary
    ],
)
def test_vocabularies_are_merged_by_name(first, second):
    a, b = indicators(first, second)
    assert a.shape[1] == b.shape[1]
    likeness = (a.astype(int) @ b.astype(int).T).toarray()
    expected = [[len(x & y) for y in by_name(second)] for x in by_name(first)]
    np.testing.assert_array_equal(likeness, expected)
    np.testing.assert_array_equal(a.sum(axis=1), [len(x) for x in by_name(first)])


def test_three_sets_of_labels_share_their_columns():
    parts = [["a", "c"], ["b", "a"], ["c", "d", "a"]]
    matrices = indicators(*parts)
    for p, P in zip(parts, matrices, strict=True):
        for q, Q in zip(parts, matrices, strict=True):
            expected = [[x == y for y in q] for x in p]
            np.testing.assert_array_equal((P.astype(int) @ Q.astype(int).T).toarray(), expected)


def test_indicators_share_columns_by_position():
    a, b = indicators(MATRIX, sp.csc_array(MATRIX[:2]))
    np.testing.assert_array_equal(a.toarray(), MATRIX)
    np.testing.assert_array_equal(b.toarray(), MATRIX[:2])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (MATRIX, CLASSES, "All labels must be of the same kind"),
        (MATRIX, MATRIX[:, :2], "same length, got 3 and 2.*word_sums"),
        (REAL, CLASSES, "All labels must be of the same kind"),
    ],
)
def test_labels_of_different_kinds_do_not_go_together(first, second, message):
    with pytest.raises(ValueError, match=message):
        indicators(first, second)


@pytest.mark.parametrize(
    "parts",
    [
        (SETS, [{"emu"}, {"dog"}]),
        (CLASSES, ["z", "a"]),
        (MATRIX, MATRIX[::-1]),
        (REAL, REAL[2:] + 1),
        (REAL, MATRIX[:, :2]),  # whole rows of zeros and ones among real vectors
        (MATRIX[:, :2], REAL),
    ],
    ids=["sets", "classes", "indicators", "vectors", "vectors and ones", "ones and vectors"],
)
def test_a_merged_table_has_every_row_of_both_once(parts):
    merged = Labels.concatenate(parts)
    codes = merged.codes
    if merged.vocabulary is None:
        rows = [tuple(map(float, row)) for part in parts for row in part]
        np.testing.assert_array_equal(merged.dense()[codes], np.array(rows))
    else:
        rows = [row for part in parts for row in by_name(part)]
    assert merged.n_distinct == len(set(rows))
    assert codes_in_order_of_appearance(codes.tolist()) == codes_in_order_of_appearance(rows)


# ---- word vectors --------------------------------------------------------------------------------

WORDS = {"cat": [1.0, 0.5], "dog": [0.0, 2.0], "cow": [-1.0, 0.0], 7: [9.0, 9.0]}


def test_label_vectors_are_sums_of_word_vectors():
    rows = [{"cat", "dog"}, ["cow"], "dog", [], {7, "cow"}]
    expected = [[1.0, 2.5], [-1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [8.0, 9.0]]
    np.testing.assert_array_equal(Labels.of(rows).word_sums(WORDS), expected)


def test_missing_word_vectors_are_all_named():
    with pytest.raises(KeyError, match=r"no word vector for the labels \['ape', 'emu'\]"):
        Labels.of([{"emu", "cat"}, "ape", "emu"]).word_sums(WORDS)
    with pytest.raises(ValueError, match="vectors is empty"):
        Labels.of([]).word_sums({})


def test_label_vectors_repeat_to_the_last_bit():
    rng = np.random.default_rng(0)
    words = {f"w{i}": rng.standard_normal(50) for i in range(40)}
    rows = [set(rng.choice(list(words), 9)) for _ in range(20)]
    again = [sorted(row) for row in rows]
    first, second = (Labels.of(y).word_sums(words) for y in (rows, again))
    np.testing.assert_array_equal(first, second)


# ---- labels of views -----------------------------------------------------------------------------

X, Y = np.arange(12.0).reshape(4, 3), np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize(
    ("views", "y", "expected"),
    [
        ([X, Y], ["a", "b", "a", "b"], False),
        ([X, Y], np.eye(4), False),
        ([X, Y], [["a"], ["b"], ["a", "b"], []], False),
        ([X, Y], [["a", "b", "a", "b"], ["c", "c", "c", "a"]], True),
        ([X, Y], (np.eye(4), sp.eye_array(4, format="csr")), True),
        ([X, Y], {"view0": [1, 2, 3, 4], "view1": [1, 2, 3, 4]}, True),
        ([X, Y[:3]], [[1, 2, 3, 4], [1, 2, 3]], True),
        ([X, Y], [[1, 2, 3, 4], [1, 2, 3]], True),  # and is refused, naming the view
        ([X, Y], [{"a"}, {"b"}], False),  # two label sets for four objects
        ([X, Y], ["a", "b"], False),
        ([X[:2], Y[:2]], [{"a"}, {"b"}], False),
        ([X[:2], Y[:2]], ["ab", "cd"], False),
        ([X[:2], Y[:2]], [["a", "b"], ["c", "d"]], True),
        ([X[:2], Y[:2]], [["a"], ["c", "d"]], False),
        ({"image": X, "text": Y}, [["a"] * 4, ["b"] * 4], True),
        (Views.unpaired([X, Y]), list("abababab"), False),
        (Views.unpaired([X, Y]), [list("abab"), list("abab")], True),
    ],
)
def test_labels_of_each_view_are_told_from_labels_of_each_object(views, y, expected):
    assert is_per_view(views, y) is expected


def test_codes_of_each_view_refer_to_one_table():
    views = Views({"image": X, "text": Y}, [[0, -1], [1, 2], [-1, 3], [3, 0]])
    per_object = [{"a"}, {"b"}, {"a", "b"}, {"c"}]
    labels = LabelsByView.of(views, per_object)
    for name in views.names:
        assert labels[name].sets() == [per_object[i] for i in views.objects(name)]
    per_view = {"text": [{"b"}, {"x"}, {"c"}], "image": [{"a"}, {"b"}, {"c"}]}
    labels = LabelsByView.of(views, per_view, per_view=True)
    assert labels.distinct.vocabulary.tolist() == ["a", "b", "c", "x"]
    for name, rows in per_view.items():
        assert labels[name].sets() == rows


def test_views_that_disagree_about_an_object_are_refused_in_any_order():
    index = [[0, -1], [1, 0], [-1, 1], [2, 2]]
    views = Views({"image": X[:3], "text": Y[:3]}, index)
    agreed = {"image": ["cat", "dog", "cow"], "text": ["dog", "cat", "cow"]}
    expected = ["cat", "dog", "cat", "cow"]
    for names in (["image", "text"], ["text", "image"]):
        own = views.select(names)
        labels = LabelsByView.of(own, agreed, per_view=True)
        assert labels.per_object(own).plain().tolist() == expected
        labels = LabelsByView.of(own, agreed | {"text": ["cat", "cat", "ox"]}, per_view=True)
        with pytest.raises(ValueError, match=r"2 of 4 objects: object 1 has '.*' in view") as found:
            labels.per_object(own)
        assert "'dog' in view 'image'" in str(found.value)
        assert "'cat' in view 'text'" in str(found.value)
    vectors = {"image": REAL[:3], "text": REAL[3:6]}
    with pytest.raises(ValueError, match=r"object 1 has \[-1\.  0\.\] in view 'image' and \["):
        LabelsByView.of(views, vectors, per_view=True).per_object(views)
    named = Views({n: pd.DataFrame(B, index=list("wxyz")) for n, B in (("a", X), ("b", Y))})
    labels = LabelsByView.of(named, {"a": list("pqpq"), "b": list("pqqq")}, per_view=True)
    with pytest.raises(ValueError, match="object y has 'p' in view 'a' and 'q' in view 'b'"):
        labels.per_object(named)


def test_labels_of_each_view_may_come_as_a_frame_a_series_and_a_sparse_matrix():
    matrix = np.eye(4)[[0, 1, 2, 3]]
    y = [pd.DataFrame(matrix), sp.csr_array(matrix)]
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((4, 2)), rng.standard_normal((4, 2))]
    expected = MLCCA(1).fit(blocks, matrix).eigenvalues_
    np.testing.assert_allclose(MLCCA(1).fit(blocks, y).eigenvalues_, expected)
    series = [pd.Series(list("abcd")), list("abcd")]
    np.testing.assert_allclose(MLCCA(1).fit(blocks, series).eigenvalues_, expected)


# ---- encoded labels, wherever labels are taken ---------------------------------------------------

N = 90
FORMS = {
    "classes": np.array(["ape", "bee", "cow"])[np.arange(N) % 3],
    "numbers": np.arange(N) % 3,
    "sets": [frozenset("abc"[: 1 + i % 3]) - {"b" * (i % 2)} for i in range(N)],
    "indicators": np.eye(4, dtype=int)[np.arange(N) % 3],
    "real vectors": np.random.default_rng(0).standard_normal((3, 2))[np.arange(N) % 3],
}
of_forms = pytest.mark.parametrize("y", FORMS.values(), ids=FORMS)


def planted(n: int = N) -> Views:
    rng = np.random.default_rng(1)
    centres = rng.standard_normal((3, 5))[np.arange(n) % 3]
    noise = {name: rng.standard_normal((n, 5)) for name in ("image", "text")}
    return Views({name: centres + 0.7 * noise[name] for name in noise})


@of_forms
def test_an_array_of_encoded_labels_is_labels_again(y):
    labels = Labels.of(y)
    assert Labels.of(labels) is labels
    again = Labels.of(np.asarray(labels))
    assert codes_in_order_of_appearance(again.codes.tolist()) == codes_in_order_of_appearance(
        labels.codes.tolist()
    )
    assert again.shape == labels.shape == np.asarray(labels).shape
    np.testing.assert_array_equal(labels[10:20], np.asarray(labels)[10:20])
    np.testing.assert_array_equal(labels[[5, 3]], np.asarray(labels)[[5, 3]])


MODELS = [MLCCA(1), MVMLCCA(1, within="sample"), LGCFL(), JRL(n_neighbors=5)]


@of_forms
@pytest.mark.parametrize("model", MODELS)
def test_encoded_labels_give_the_model_of_the_labels_in_any_form(y, model):
    views, labels = planted(), Labels.of(y)
    some = np.flatnonzero(np.arange(N) % 3 > 0)  # a label vector is in none of them
    rows = [y[i] for i in some] if isinstance(y, list) else y[some]
    expected, found = (clone(model).fit(views[some], own) for own in (rows, labels[some]))
    assert found.n_components_ == expected.n_components_
    for name in views.names:
        np.testing.assert_allclose(found.weights_[name], expected.weights_[name], atol=1e-9)
    assert found.score(views, labels) == pytest.approx(expected.score(views, y))


def test_encoded_labels_of_each_view_give_the_model_of_labels_in_any_form():
    views, y = planted(), FORMS["classes"]
    blocks, parts = {"image": views["image"], "text": views["text"][:60]}, [y, y[:60]]
    model, encoded = MVMLCCA(1, within="sample"), list(map(Labels.of, parts))
    expected = model.fit(blocks, parts).eigenvalues_
    for given in (encoded, dict(zip(blocks, encoded, strict=True))):
        np.testing.assert_allclose(model.fit(blocks, given).eigenvalues_, expected)


@pytest.mark.parametrize("form", ["classes", "numbers", "sets", "indicators"])
def test_encoded_labels_define_the_relevant_items_of_the_labels_in_any_form(form):
    views, y = planted(), FORMS[form]
    expected = evaluate_retrieval(views, y, measures=("map", "ndcg@5")).mean()
    assert evaluate_retrieval(views, Labels.of(y), measures=("map", "ndcg@5")).mean() == expected


@pytest.mark.parametrize("form", ["classes", "sets"])
def test_the_tools_of_scikit_learn_split_encoded_labels(form):
    views, y = planted(), FORMS[form]
    labels, score = Labels.of(y), retrieval_scorer("map")
    search = {"reg": [0.01, 10.0]}
    expected = GridSearchCV(MLCCA(2), search, scoring=score, cv=3).fit(views, y)
    found = GridSearchCV(MLCCA(2), search, scoring=score, cv=3).fit(views, labels)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    _, held_out, _, own = train_test_split(views, labels, test_size=0.2, random_state=0)
    assert len(own) == len(held_out) == N // 5
    permutation_test_score(MLCCA(2), views, labels, scoring=score, cv=3, n_permutations=2)


def test_folds_are_stratified_by_encoded_classes():
    labels = Labels.of(FORMS["classes"])
    for _, test in StratifiedKFold(5).split(np.zeros(N), labels):
        assert np.bincount(labels.codes[test]).tolist() == [6, 6, 6]
    train, test = train_test_split(np.arange(N), stratify=labels, random_state=0)
    assert len(set(np.bincount(labels.codes[train]))) <= 2


def test_scikit_learn_learns_from_encoded_classes():
    views, labels = planted(), Labels.of(FORMS["classes"])
    model = LogisticRegression().fit(views["image"], labels)
    assert model.classes_.tolist() == ["ape", "bee", "cow"]
    assert model.score(views["image"], labels) > 0.5


def test_rows_of_encoded_labels_in_another_order_are_refused():
    ids = [f"row{i}" for i in range(N)]
    views = Views({name: pd.DataFrame(X, index=ids) for name, X in planted().items()})
    labels = Labels.of(pd.Series(FORMS["classes"], index=ids))
    MLCCA(2).fit(views[::-1], labels[::-1])
    with pytest.raises(ValueError, match="the same labels in a different order"):
        MLCCA(2).fit(views, labels[::-1])


@pytest.mark.slow
def test_a_comparison_encodes_labels_once(monkeypatch):
    encoded: list[Any] = []
    encode = module.encoded

    def counted(y: Any) -> Any:
        encoded.append(y)
        return encode(y)

    monkeypatch.setattr(module, "encoded", counted)
    for y in (FORMS["classes"], FORMS["sets"], Labels.of(FORMS["classes"])):
        encoded.clear()
        compare(["cca", "mlcca", "jrl"], planted(), y, cv=2)
        assert len(encoded) == (0 if isinstance(y, Labels) else 1)


@pytest.mark.parametrize("kind", [np.array, pd.Series, list])
def test_lists_written_as_texts_are_refused(kind):
    with pytest.raises(ValueError, match=r"lists written as texts, such as .*literal_eval"):
        Labels.of(kind(["['cat', 'dog']", "['dog']", "[]"]))
    assert Labels.of(kind(["['cat']", "dog"])).n_labels == 2


@pytest.mark.parametrize("method", [MLCCA, MVMLCCA])
def test_paired_views_that_are_labelled_differently_are_tuned_alike_in_any_order(method):
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(120, 3))
    own = {
        name: shared @ rng.normal(size=(3, p)) + rng.normal(size=(120, p))
        for name, p in zip("abc", (6, 5, 4), strict=True)
    }
    y = {name: list(np.where(shared[:, j] > 0, "p", name)) for j, name in enumerate("abc")}
    ridges = set()
    for names in ("abc", "cab", "bca"):
        views = Views({name: own[name] for name in names})
        ridges.add(str(method(1, reg="cv").fit(views, {name: y[name] for name in names}).reg_))
    assert len(ridges) == 1
