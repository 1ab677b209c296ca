"""`Views` against plain indexing of its matrices: rows, pairing, containers, what it refuses."""

from __future__ import annotations

import pickle
import re
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split
from sklearn.utils import resample, shuffle

from mvcca import CCA, MLCCA, Views, open_matrix
from mvcca.interop.migration import fit_migration
from mvcca.views import as_views, holds_views, in_same_container

RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((6, 3))
TEXT = np.round(RNG.standard_normal((6, 4)))
# Objects 0 to 4: seen in both, image only, text only, both, neither.
INDEX = np.array([[5, 0], [2, -1], [-1, 3], [0, 1], [-1, -1]])
KINDS = {
    "array": np.asarray,
    "csr": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, orient="row"),
    "read-only": lambda X: (X.setflags(write=False), X)[1],
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def dense(block) -> np.ndarray:
    return block.toarray() if sp.issparse(block) else np.asarray(block)


def rows_by_hand(index: np.ndarray, objects: list[int]) -> dict[str, np.ndarray]:
    """The rows of the objects in each view, one by one from the index."""
    return {
        name: np.array([X[index[i, v]] for i in objects if index[i, v] >= 0]).reshape(
            -1, X.shape[1]
        )
        for v, (name, X) in enumerate({"image": IMAGE, "text": TEXT}.items())
    }


# ---- what it is ----------------------------------------------------------------------------------


def test_paired_views_say_what_they_hold():
    views = Views({"image": IMAGE, "text": TEXT})
    assert len(views) == 6
    assert views.shape == (6, 7)
    assert views.names == ("image", "text")
    assert views.widths == {"image": 3, "text": 4}
    assert views.seen.all()
    assert views.seen.shape == (6, 2)
    assert views.is_paired
    assert list(views.pattern) == ["image+text"] * 6
    assert "text" in views
    assert "sound" not in views
    assert repr(views) == "Views(6 objects, image: 3, text: 4)"


def test_a_view_is_the_matrix_that_was_passed_in():
    views = Views({"image": IMAGE, "text": TEXT})
    assert views["image"] is IMAGE
    assert dict(views.items())["text"] is TEXT


VECTORS = {
    "Series": lambda X: pd.Series(list(X), [f"s{i}" for i in range(len(X))]),
    "Series of lists": lambda X: pd.Series(X.tolist()),
    "objects": lambda X: pd.Series(list(X)).to_numpy(),
    "polars": lambda X: pl.Series(X.tolist()),
    "polars of one length": lambda X: pl.Series(X),
}


@pytest.mark.parametrize("kind", VECTORS)
def test_a_column_of_vectors_is_a_matrix(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    Y = X[:, :3] + 0.1 * rng.normal(size=(40, 3))
    own = VECTORS[kind](X)
    plain = CCA(1, reg=0.1).fit({"a": X, "b": Y})
    model = CCA(1, reg=0.1).fit({"a": own, "b": Y})
    np.testing.assert_array_equal(model.weights_["a"], plain.weights_["a"])
    np.testing.assert_array_equal(
        np.asarray(model.transform({"a": own[:5]})["a"]), plain.transform({"a": X[:5]})["a"]
    )
    migration = fit_migration(own, Y)
    there, plain = (
        one.transform({"old": rows})["old"]
        for one, rows in ((migration, own), (fit_migration(X, Y), X))
    )
    np.testing.assert_array_equal(there, plain)
    if kind == "Series":
        other = pd.DataFrame(Y, own.index[::-1])
        with pytest.raises(ValueError, match="the same labels in a different order"):
            model.fit({"a": own, "b": other})


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series])
def test_texts_are_a_single_column(kind):
    texts = ["a dog", "a cat that is much longer", "", "e"]
    views = Views({"image": np.eye(4), "text": kind(texts)})
    assert views.widths == {"image": 4, "text": 1}
    assert np.asarray(views[[3, 1]]["text"]).tolist() == [["e"], ["a cat that is much longer"]]
    assert views.replace({"text": kind(texts[::-1])}).widths == {"text": 1}


def test_a_list_gets_names_by_position():
    assert Views([IMAGE, TEXT]).names == Views((IMAGE, TEXT)).names == ("view0", "view1")


def test_unpaired_views_stack_their_objects_view_after_view():
    views = Views.unpaired({"image": IMAGE, "text": TEXT[:4]})
    assert len(views) == 10
    assert views.shape == (10, 7)
    np.testing.assert_array_equal(views.seen, [[True, False]] * 6 + [[False, True]] * 4)
    assert list(views.pattern) == ["image"] * 6 + ["text"] * 4
    np.testing.assert_array_equal(views.objects("text"), [6, 7, 8, 9])
    assert not views.is_paired


@every_kind
def test_partly_paired_views_hold_the_rows_that_the_index_names(kind):
    views = Views({"image": kind(IMAGE), "text": kind(TEXT)}, INDEX)
    assert len(views) == 5
    np.testing.assert_array_equal(views.seen, INDEX >= 0)
    assert list(views.pattern) == ["image+text", "image", "text", "image+text", ""]
    for name, rows in rows_by_hand(INDEX, [0, 1, 2, 3, 4]).items():
        np.testing.assert_array_equal(dense(views[name]), rows)
    np.testing.assert_array_equal(views.objects("image"), [0, 1, 3])
    np.testing.assert_array_equal(views.objects("text"), [0, 2, 3])


def test_an_index_that_names_each_row_is_paired():
    views = Views({"image": IMAGE, "text": TEXT}, np.c_[np.arange(6), np.arange(6)])
    assert views.is_paired
    np.testing.assert_array_equal(views["text"], TEXT)


def test_a_row_may_belong_to_several_objects():
    views = Views({"image": IMAGE, "text": TEXT}, [[0, 0], [0, 1], [0, 2]])
    np.testing.assert_array_equal(views["image"], IMAGE[[0, 0, 0]])


# ---- rows ----------------------------------------------------------------------------------------

KEYS = {
    "positions": np.array([3, 0, 2]),
    "a list": [4, 1],
    "repeated": [2, 2, 0, 2],
    "negative": [-1, -3],
    "one": 2,
    "numpy integer": np.int64(2),
    "a slice": slice(1, 4),
    "a slice with a step": slice(None, None, -2),
    "an open slice": slice(None),
    "a mask": np.array([True, False, True, True, False]),
    "a mask as a list": [False, False, True, False, True],
    "none": np.array([], dtype=int),
    "nowhere in a mask": np.zeros(5, dtype=bool),
    "unsigned": np.array([1, 2], dtype=np.uint8),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@every_kind
def test_rows_of_partly_paired_views_are_those_of_the_objects(kind, key):
    views = Views({"image": kind(IMAGE), "text": kind(TEXT)}, INDEX)
    objects = np.arange(5)[key].reshape(-1).tolist()
    for part in (views[key], views[key, ...], views[key, Ellipsis]):
        assert isinstance(part, Views)
        assert len(part) == len(objects)
        np.testing.assert_array_equal(part.seen, (INDEX >= 0)[objects])
        for name, rows in rows_by_hand(INDEX, objects).items():
            np.testing.assert_array_equal(dense(part[name]), rows)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@every_kind
def test_rows_of_paired_views_are_rows_of_every_matrix(kind, key):
    views = Views({"image": kind(IMAGE[:5]), "text": kind(TEXT[:5])})
    objects = np.arange(5)[key].reshape(-1)
    for part in (views[key], views[key, ...]):
        np.testing.assert_array_equal(dense(part["image"]), IMAGE[objects])
        np.testing.assert_array_equal(dense(part["text"]), TEXT[objects])
        assert part.seen.shape == (len(objects), 2)


@every_kind
def test_matrices_keep_their_kind_when_rows_are_taken(kind):
    for views in (
        Views({"image": kind(IMAGE)}),
        Views({"image": kind(IMAGE), "text": kind(TEXT)}, INDEX),
        Views.unpaired({"image": kind(IMAGE), "text": kind(TEXT)}),
    ):
        assert type(views[[1, 0]]["image"]) is type(kind(IMAGE))


def test_rows_of_a_dataframe_keep_their_index_and_columns():
    frame = pd.DataFrame(IMAGE, columns=["a", "b", "c"], index=list("uvwxyz"))
    part = Views({"image": frame})[[4, 1]]["image"]
    assert list(part.index) == ["y", "v"]
    assert list(part.columns) == ["a", "b", "c"]


def test_a_slice_of_paired_arrays_copies_nothing():
    assert np.shares_memory(Views({"image": IMAGE})[1:4]["image"], IMAGE)


def test_rows_of_rows_are_rows():
    views = Views({"image": IMAGE, "text": TEXT}, INDEX)
    twice = views[[3, 2, 0]][[2, 1]]
    for name, rows in rows_by_hand(INDEX, [0, 2]).items():
        np.testing.assert_array_equal(twice[name], rows)


@pytest.mark.parametrize(
    "key", [(slice(0, 2), 0), (0, 1), (slice(None), slice(None)), (), (..., 0)]
)
def test_columns_are_not_indexed_here(key):
    with pytest.raises(TypeError, match=r"Select columns with views\[name\]"):
        Views({"image": IMAGE})[key]


@pytest.mark.parametrize("key", [[6], [-7], 17, np.ones(5, dtype=bool), np.ones(7, dtype=bool)])
def test_objects_that_are_not_there_are_an_index_error(key):
    with pytest.raises(IndexError):
        Views({"image": IMAGE, "text": TEXT})[key]


def test_positions_must_be_whole_numbers():
    with pytest.raises(IndexError):
        Views({"image": IMAGE})[[0.0, 1.0]]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(KeyError, match=r"no view named 'sound'; the views are \['image', 'text'\]"):
        Views({"image": IMAGE, "text": TEXT})["sound"]


def test_iterating_is_refused_since_it_could_mean_objects_or_views():
    assert Views.__iter__ is None
    with pytest.raises(TypeError, match="not iterable"):
        iter(Views([IMAGE]))


@pytest.mark.parametrize("convert", [np.asarray, np.array, lambda v: np.asarray(v, dtype=float)])
def test_one_array_of_several_matrices_is_refused_with_advice(convert):
    with pytest.raises(TypeError, match=r"not one array.*views\[name\].*JoinViews"):
        convert(Views([IMAGE, TEXT]))


# ---- making views of views -----------------------------------------------------------------------


def test_selected_views_keep_order_rows_and_pairing():
    views = Views({"image": IMAGE, "text": TEXT}, INDEX)
    turned = views.select(["text", "image"])
    assert turned.names == ("text", "image")
    np.testing.assert_array_equal(turned.seen, views.seen[:, ::-1])
    np.testing.assert_array_equal(turned[[2, 0]]["text"], TEXT[[3, 0]])
    with pytest.raises((KeyError, ValueError), match="sound"):
        views.select(["sound"])


def test_replaced_matrices_keep_the_pairing():
    views = Views({"image": IMAGE, "text": TEXT}, INDEX)
    scores = views.replace({"text": np.arange(3.0).reshape(3, 1)})
    assert scores.names == ("text",)
    np.testing.assert_array_equal(scores.seen[:, 0], views.seen[:, 1])
    np.testing.assert_array_equal(scores[[3]]["text"], [[2.0]])
    with pytest.raises(ValueError, match="View 'text' has 3 rows, got 6"):
        views.replace({"text": TEXT})


def test_an_added_view_is_seen_for_all_objects():
    views = Views({"image": IMAGE, "text": TEXT}, INDEX).add("labels", np.eye(5))
    assert views.names == ("image", "text", "labels")
    assert views.seen[:, 2].all()
    np.testing.assert_array_equal(views[[1]]["labels"], np.eye(5)[[1]])


@pytest.mark.parametrize("rows", [4, 6])
def test_an_added_view_has_a_row_for_every_object(rows):
    with pytest.raises(ValueError, match=f"'labels' .* {rows} rows.* 5 objects"):
        Views({"image": IMAGE, "text": TEXT}, INDEX).add("labels", np.eye(6)[:rows])


def test_a_view_that_is_there_is_not_added_over():
    with pytest.raises(ValueError, match="A view named 'text' exists already"):
        Views({"image": IMAGE, "text": TEXT}).add("text", TEXT)


@pytest.mark.parametrize("cut", [0, 2, 5])
@every_kind
def test_parts_put_together_are_the_whole(kind, cut):
    views = Views({"image": kind(IMAGE), "text": kind(TEXT)}, INDEX)
    whole = Views.concatenate([views[:cut], views[cut:]])
    np.testing.assert_array_equal(whole.seen, views.seen)
    for name in views.names:
        np.testing.assert_array_equal(dense(whole[name]), dense(views[name]))


def test_a_sparse_part_makes_the_whole_sparse():
    whole = Views.concatenate([Views({"text": TEXT}), Views({"text": sp.csr_array(TEXT)})])
    assert sp.issparse(whole["text"])
    np.testing.assert_array_equal(whole["text"].toarray(), np.r_[TEXT, TEXT])


def test_parts_of_other_views_do_not_go_together():
    with pytest.raises(ValueError, match=r"Expected views \['image'\], got \['text'\]"):
        Views.concatenate([Views({"image": IMAGE}), Views({"text": TEXT})])


def test_a_pickle_holds_the_same():
    views = Views({"image": IMAGE, "text": sp.csr_array(TEXT)}, INDEX)
    copied = pickle.loads(pickle.dumps(views))
    np.testing.assert_array_equal(copied.seen, views.seen)
    np.testing.assert_array_equal(copied["image"], views["image"])


def test_nothing_here_writes_into_the_matrices():
    image, text = IMAGE.copy(), sp.csr_array(TEXT)
    before = text.toarray()
    views = Views({"image": image, "text": text}, INDEX)
    views[[0, 1]]["image"][...] = 0
    views.concatenate([views, views])
    np.testing.assert_array_equal(image, IMAGE)
    np.testing.assert_array_equal(text.toarray(), before)


# ---- row labels ----------------------------------------------------------------------------------

NAMED = pd.DataFrame(IMAGE, index=list("uvwxyz"))


def test_aligned_views_pair_rows_by_label_and_keep_what_is_seen_once():
    text = pd.DataFrame(TEXT[:4], index=list("xaub"))
    with pytest.warns(UserWarning, match="2 in both views.* 4 of 6 of 'image'.* 2 of 4 of 'text'"):
        views = Views.aligned({"image": NAMED, "text": text})
    assert views.ids.tolist() == list("uvwxyzab")
    for label, pattern in zip(views.ids, views.pattern, strict=True):
        names = [name for name, frame in (("image", NAMED), ("text", text)) if label in frame.index]
        assert pattern == "+".join(names)
    both = views[views.seen.all(axis=1)]
    assert both.ids.tolist() == ["u", "x"]
    np.testing.assert_array_equal(both["image"], NAMED.loc[["u", "x"]])
    np.testing.assert_array_equal(both["text"], text.loc[["u", "x"]])


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, lambda columns: pl.DataFrame(columns)], ids=["pandas", "polars"]
)
@pytest.mark.parametrize("ids", [["p", "q", "r"], [7, 3, 5]], ids=["names", "numbers"])
def test_views_are_aligned_on_a_column_that_is_no_feature(frame, ids):
    image = frame({"id": ids, "red": [1.0, 2.0, 3.0]})
    text = frame({"length": [30.0, 10.0, 20.0], "id": [ids[2], ids[0], ids[1]]})
    views = Views.aligned([image, text], on="id")
    assert views.ids.tolist() == ids
    assert views.widths == {"view0": 1, "view1": 1}
    np.testing.assert_array_equal(np.asarray(views["view1"]), [[10.0], [20.0], [30.0]])


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]),
        pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"]),
        pd.CategoricalIndex(["x", "z", "y"]),
        pd.Index([2.5, 0.5, 1.5]),
    ],
    ids=lambda index: type(index).__name__,
)
def test_row_labels_of_every_type_are_compared_and_aligned(index):
    image = pd.DataFrame({"red": [1.0, 2.0, 3.0]}, index=index)
    text = pd.DataFrame({"length": [10.0, 20.0, 30.0]}, index=index).iloc[[2, 0, 1]]
    with pytest.raises(ValueError, match="the same labels in a different order: row 0 is "):
        Views([image, text])
    views = Views.aligned([image, text])
    np.testing.assert_array_equal(views["view1"], [[10.0], [20.0], [30.0]])
    y = pd.Series([1, 2, 3], index=index)
    assert MLCCA(1).fit(views, y.loc[image.index]).n_components_ == 1
    with pytest.raises(ValueError, match="y and the views have the same labels"):
        MLCCA(1).fit(views, y.iloc[::-1])


@pytest.mark.parametrize(
    ("blocks", "on", "message"),
    [
        ([NAMED, TEXT], None, "View 'view1' has no row labels to align by.*got ndarray.*on="),
        ([pl.DataFrame({"a": [1.0]})], None, "View 'view0' has no row labels to align by"),
        ([NAMED.rename({"v": "u"})], None, "View 'view0' has several rows with the label 'u'"),
        ([NAMED.rename({"v": None})], None, "no row labels.*without missing labels"),
        ([NAMED], "id", "View 'view0' has no column 'id'"),
        ([TEXT], "id", "View 'view0' has no column 'id'"),
        ([pl.DataFrame({"id": ["a", None]})], "id", "rows without a label in column 'id'"),
    ],
)
def test_what_cannot_be_aligned_is_refused(blocks, on, message):
    with pytest.raises(ValueError, match=message):
        Views.aligned(blocks, on)


def test_row_labels_go_with_the_objects():
    views = Views({"image": NAMED, "text": TEXT})
    assert views.ids.tolist() == list("uvwxyz")
    kept = views.select(["text"]).replace({"text": TEXT[:, :1]}).add("more", IMAGE).in_memory()
    assert kept[[4, 1]].ids.tolist() == ["y", "v"]
    assert Views.concatenate([views[:2], views[4:]]).ids.tolist() == list("uvyz")
    assert Views.unpaired([NAMED, NAMED[2:]]).ids.tolist() == list("uvwxyzwxyz")
    assert pickle.loads(pickle.dumps(views)).ids.tolist() == list("uvwxyz")
    assert Views([IMAGE]).ids is Views([NAMED, NAMED], np.c_[:6, :6]).ids is None
    turned = NAMED.iloc[::-1]
    for change in (lambda: views.add("more", turned), lambda: views.replace({"text": turned})):
        with pytest.raises(ValueError, match="the objects have the same labels in a different"):
            change()


def test_default_row_labels_are_positions_and_go_with_any_others():
    default = pd.DataFrame(IMAGE)
    assert Views([default, NAMED]).ids.tolist() == list("uvwxyz")
    views = Views([default, default.copy()])
    assert views[[3, 1]].ids is None
    halves = default.iloc[3:], default.iloc[:3]
    np.testing.assert_array_equal(Views(list(halves))["view0"], IMAGE[3:])
    with pytest.raises(ValueError, match="different labels: row 0 is '3' and '4'"):
        Views([default.iloc[3:5], default.iloc[4:]])


@pytest.mark.parametrize(
    ("shapes", "advice"),
    [
        ([(9, 2), (3, 9)], "Objects are rows, but likely columns in 'view1': transpose"),
        ([(2, 9), (3, 9)], "Objects are rows, but likely columns in 'view0', 'view1'"),
        ([(9, 4), (4, 3)], "Use Views.unpaired if"),
        ([(9, 4), (8, 9)], "Objects are rows, but likely columns in 'view1'"),
    ],
)
def test_transposed_matrices_are_told_so(shapes, advice):
    with pytest.raises(ValueError, match=advice):
        Views([np.ones(shape) for shape in shapes])


# ---- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize("container", [dict, lambda blocks: list(blocks.values())])
def test_paired_views_of_different_heights_are_refused_with_both_heights(container):
    blocks = container({"view0": IMAGE, "view1": TEXT[:4]})
    message = "same number of rows, got view0: 6, view1: 4. Use Views.unpaired if no object"
    with pytest.raises(ValueError, match=message):
        Views(blocks)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([[0, 6]], "rows 6 to 6 of view 'text', which has rows 0 to 5"),
        ([[0, 0], [-2, 0]], "rows -2 to 0 of view 'image'.*use -1 for objects not seen"),
        ([[0.0, 1.0]], r"integer array of shape \(n_objects, 2\).*got float64"),
        ([0, 1], r"integer array of shape \(n_objects, 2\).*got int.* of shape \(2,\)"),
        ([[0, 1, 2]], r"of shape \(1, 3\)"),
        ([[True, False]], "got bool"),
    ],
)
def test_an_index_that_does_not_fit_is_refused(index, message):
    with pytest.raises(ValueError, match=message):
        Views({"image": IMAGE, "text": TEXT}, np.array(index))


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        ({}, ValueError, "Expected at least one view, got none"),
        ([], ValueError, "Expected at least one view, got none"),
        ({1: IMAGE}, TypeError, "Names of views must be strings, got 1"),
        (IMAGE, TypeError, "mapping of view names to matrices or a list of matrices, got ndarray"),
        (sp.dok_array(TEXT), TypeError, "or a list of matrices, got dok_array"),
        (3, TypeError, "got int"),
        ({"a": IMAGE[0]}, ValueError, r"2-D matrix, got shape \(3,\) for 'a'.*Reshape"),
        ({"a": IMAGE[None]}, ValueError, r"2-D matrix, got shape \(1, 6, 3\) for 'a'"),
        pytest.param(
            {"a": sp.coo_array(IMAGE[0])},
            ValueError,
            r"2-D matrix, got shape \(3,\) for 'a'",
            marks=pytest.mark.skipif(
                sp.coo_array(IMAGE[0]).ndim == 2,
                reason="SciPy < 1.13 has no 1-D sparse",
            ),
        ),
        ({"a": "text"}, ValueError, r"2-D matrix, got shape \(\) for 'a'"),
        ({"a": None}, ValueError, r"2-D matrix, got shape \(\) for 'a'"),
    ],
    ids=repr,
)
def test_what_is_no_views_is_refused(blocks, error, message):
    with pytest.raises(error, match=message):
        Views(blocks)


# ---- containers that users pass ------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sparse_views_of_every_format_are_indexed_by_row(form):
    matrix = getattr(sp, f"{form}_array")(TEXT)
    np.testing.assert_array_equal(Views({"text": matrix})[[4, 0]]["text"].toarray(), TEXT[[4, 0]])


def test_lists_of_rows_are_matrices():
    np.testing.assert_array_equal(Views([IMAGE.tolist()])["view0"], IMAGE)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (Views([IMAGE]), True),
        ({"image": IMAGE}, True),
        ([IMAGE, TEXT], True),
        ((IMAGE, sp.csr_array(TEXT)), True),
        ([IMAGE.tolist(), TEXT], True),
        ([pd.DataFrame(IMAGE)], True),
        (IMAGE, False),
        (IMAGE.tolist(), False),
        ([[1, 2], [3, 4]], False),
        (sp.csr_array(TEXT), False),
        (sp.dok_array(TEXT), False),  # a dictionary by inheritance, not a mapping of views
        (sp.dok_matrix(TEXT), False),
        (pd.DataFrame(IMAGE), False),
        (pl.DataFrame(IMAGE), False),
        ([], False),
        ("text", False),
        (None, False),
    ],
    ids=lambda X: type(X).__name__,
)
def test_containers_of_views_are_told_from_matrices(X, expected):
    assert holds_views(X) is expected


def test_views_are_taken_as_they_are():
    views = Views([IMAGE])
    assert as_views(views) is views


def test_a_list_takes_the_names_it_is_given():
    views = as_views([IMAGE, TEXT], ("image", "text"))
    assert views.names == ("image", "text")
    with pytest.raises(ValueError, match=r"list of 2 views \['image', 'text'\], got 1"):
        as_views([IMAGE], ("image", "text"))


def test_matrices_go_back_in_the_container_they_came_in():
    blocks = {"image": IMAGE, "text": TEXT}
    scores = {"image": IMAGE[:, :1], "text": TEXT[:, :1]}
    for container in (blocks, list(blocks.values()), tuple(blocks.values()), Views(blocks)):
        views = as_views(container)
        named = dict(zip(views.names, scores.values(), strict=True))
        back = in_same_container(container, views, named)
        assert type(back) is type(container)
        assert [X.shape for _, X in as_views(back).items()] == [(6, 1), (6, 1)]


# ---- scikit-learn's ways with rows ---------------------------------------------------------------


@every_kind
def test_train_test_split_splits_objects_and_not_views(kind):
    views = Views({"image": kind(IMAGE), "text": kind(TEXT)}, INDEX)
    labels = np.arange(5)
    train, test, y_train, y_test = train_test_split(views, labels, test_size=2, random_state=0)
    for part, objects in ((train, y_train), (test, y_test)):
        for name, rows in rows_by_hand(INDEX, objects.tolist()).items():
            np.testing.assert_array_equal(dense(part[name]), rows)


def test_shuffle_and_resample_take_objects():
    views = Views({"image": IMAGE, "text": sp.csr_array(TEXT)})
    for take in (shuffle, resample):
        part, order = take(views, np.arange(6), random_state=0)
        np.testing.assert_array_equal(part["image"], IMAGE[order])
        np.testing.assert_array_equal(part["text"].toarray(), TEXT[order])


def test_folds_stratified_by_pattern_hold_every_view():
    views = Views.unpaired({"image": IMAGE, "text": TEXT})
    for train, test in StratifiedKFold(3).split(views, views.pattern):
        assert views[train].seen.any(axis=0).all()
        assert views[test].seen.any(axis=0).all()
    kinds = [set(views.pattern[test]) for _, test in KFold(3).split(views)]
    assert {"image"} in kinds  # unlike folds of consecutive rows


def test_pattern_names_are_strings_even_of_no_objects():
    pattern = Views({"image": IMAGE})[:0].pattern
    assert pattern.shape == (0,)
    assert pattern.dtype.kind == "U"


def test_advice_on_heights_is_one_sentence():
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Views([IMAGE, TEXT[:2]])
    assert not re.search(r"\n", str(caught.value))


def test_notebook_shows_rows_types_storage_and_the_patterns_of_partly_seen_objects(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((3, 7), np.float32))
    views = Views(
        {"<image>": open_matrix(tmp_path / "X.npy"), "text": sp.csr_array(np.eye(4))},
        [[0, 0], [1, 1], [2, -1], [-1, 2], [-1, 3]],
    )
    html = views._repr_html_()
    lines = ET.fromstring(f"<body>{html}</body>").findall(".//tbody/tr")
    assert [[cell.text for cell in line] for line in lines] == [
        ["<image>", "3 (60%)", "7", "float32", "file"],
        ["text", "4 (80%)", "4", "float64", "sparse csr"],
    ]
    assert "&lt;image&gt;+text: 2" in html
    assert "<p>" not in Views({"a": np.eye(2)})._repr_html_()  # all seen


def test_views_complete_and_convert_like_a_mapping():
    views = Views({"image": np.eye(2), "text": np.ones((2, 1))})
    assert views._ipython_key_completions_() == views.keys() == ("image", "text")
    assert list(dict(views)) == ["image", "text"]
