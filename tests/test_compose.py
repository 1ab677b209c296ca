"""`PerView`, `SplitViews` and `JoinViews` against the same steps done view by view by hand."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import config_context as sklearn_config
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils._param_validation import InvalidParameterError

from mvcca import MVCCA, JoinViews, PerView, SplitViews, Views
from mvcca.blocks.sources import read_whole
from mvcca.compose import Encode, MomentPCA, RankGaussian, Tokens

RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((30, 4))
TEXT = np.maximum(np.round(3 * RNG.standard_normal((30, 5))), 0)
LABELS = np.arange(30) % 3
BLOCKS = {"image": IMAGE, "text": TEXT}
INDEX = np.c_[np.r_[np.arange(20), np.full(10, -1)], np.r_[np.full(5, -1), np.arange(25)]]
CONTAINERS = {
    "Views": Views,
    "mapping": dict,
    "list": lambda blocks: list(blocks.values()),
    "tuple": lambda blocks: tuple(blocks.values()),
    "unpaired Views": Views.unpaired,
}
every_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)


def matrices(container) -> list[np.ndarray]:
    """The matrices of any container, dense."""
    parts = container if isinstance(container, list | tuple) else [X for _, X in container.items()]
    return [X.toarray() if sp.issparse(X) else np.asarray(X) for X in parts]


# ---- PerView -------------------------------------------------------------------------------------


@every_container
def test_each_view_is_transformed_on_its_own_and_the_container_comes_back(container):
    views = container(BLOCKS)
    expected = [StandardScaler().fit_transform(X) for X in BLOCKS.values()]
    step = PerView(StandardScaler())
    for scaled in (step.fit(views).transform(views), clone(step).fit_transform(views)):
        assert type(scaled) is type(views)
        for found, wanted in zip(matrices(scaled), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_partly_paired_views_keep_their_pairing():
    views = Views(BLOCKS, INDEX)
    scaled = PerView(StandardScaler()).fit_transform(views)
    np.testing.assert_array_equal(scaled.seen, views.seen)
    np.testing.assert_array_equal(scaled["image"], StandardScaler().fit_transform(IMAGE[:20]))


def test_each_view_has_its_own_clone():
    scaler = StandardScaler()
    step = PerView(scaler).fit(BLOCKS)
    assert step.transformers_["image"] is not step.transformers_["text"]
    assert not hasattr(scaler, "mean_")


def test_a_mapping_gives_each_view_its_own_transformer():
    step = PerView({"text": TruncatedSVD(2, random_state=0), "image": "passthrough"})
    found = step.fit_transform({"image": IMAGE, "text": sp.csr_array(TEXT)})
    assert list(found) == ["image", "text"]
    np.testing.assert_array_equal(found["image"], IMAGE)
    svd = TruncatedSVD(2, random_state=0).fit_transform(sp.csr_array(TEXT))
    np.testing.assert_array_equal(found["text"], svd)


@pytest.mark.parametrize(
    "form", [sp.csr_array, sp.csc_matrix, sp.dok_array, pd.DataFrame, pl.DataFrame]
)
def test_views_that_pass_through_keep_their_kind(form):
    passed = PerView().fit_transform({"text": form(TEXT)})["text"]
    assert sp.issparse(passed) == sp.issparse(form(TEXT))
    if not sp.issparse(passed):
        assert type(passed) is form
    np.testing.assert_array_equal(matrices([passed])[0], TEXT)


def test_sparse_views_stay_sparse_where_their_transformer_keeps_them_so():
    step = PerView({"image": StandardScaler(), "text": TfidfTransformer()})
    found = step.fit_transform({"image": IMAGE, "text": sp.csr_array(TEXT)})
    assert sp.issparse(found["text"])


@pytest.mark.parametrize("form", [np.array, lambda column: pd.DataFrame({"words": column[:, 0]})])
def test_transformers_of_texts_get_a_sequence(form):
    texts = [["a dog runs"], ["the dog"], ["a cat"]]
    expected = TfidfVectorizer().fit_transform([text for (text,) in texts])
    for transformer in (TfidfVectorizer(), make_pipeline(TfidfVectorizer(), "passthrough")):
        step = PerView({"text": transformer}).fit({"text": form(np.array(texts))})
        found = step.transform({"text": form(np.array(texts))})["text"]
        np.testing.assert_array_equal(found.toarray(), expected.toarray())
    for rows in (np.ones((3, 1)), np.array(texts * 2).reshape(3, 2)):
        with pytest.raises(ValueError, match=r"'text': TfidfVectorizer takes one column of texts"):
            step.fit({"text": rows})


def test_any_subset_of_the_fitted_views_is_transformed():
    step = PerView(StandardScaler()).fit(BLOCKS)
    alone = step.transform({"text": TEXT[:3]})
    assert list(alone) == ["text"]
    np.testing.assert_array_equal(alone["text"], StandardScaler().fit(TEXT).transform(TEXT[:3]))
    queries = step.transform(Views({"image": IMAGE[:2]}))
    assert queries.names == ("image",)


def test_transformers_that_learn_from_labels_get_those_of_their_rows():
    views = Views(BLOCKS, INDEX)
    step = PerView(LinearDiscriminantAnalysis()).fit(views, LABELS)
    for v, name in enumerate(views.names):
        own = LABELS[INDEX[:, v] >= 0]
        expected = LinearDiscriminantAnalysis().fit(views[name], own)
        np.testing.assert_array_equal(step.transformers_[name].coef_, expected.coef_)


@pytest.mark.parametrize(
    "labels", [{"image": LABELS, "text": LABELS[::-1]}, [LABELS, LABELS[::-1]]]
)
def test_labels_of_each_view_go_to_its_transformer(labels):
    step = PerView(SelectKBest(k=2)).fit(BLOCKS, labels)
    for name, own in (("image", LABELS), ("text", LABELS[::-1])):
        expected = SelectKBest(k=2).fit(BLOCKS[name], own)
        np.testing.assert_array_equal(step.transformers_[name].scores_, expected.scores_)


def test_views_of_different_heights_with_their_labels_are_fitted():
    uneven = [IMAGE, TEXT[:20]]
    scaled = PerView(LinearDiscriminantAnalysis()).fit_transform(uneven, [LABELS, LABELS[:20]])
    assert [len(X) for X in scaled] == [30, 20]


def test_a_lone_matrix_is_one_view():
    step = PerView(PCA(2)).fit(IMAGE)
    np.testing.assert_array_equal(step.transform(IMAGE), PCA(2).fit(IMAGE).transform(IMAGE))
    np.testing.assert_array_equal(step.get_feature_names_out(), ["pca0", "pca1"])
    assert list(step.transformers_) == ["X"]
    frame = pd.DataFrame(IMAGE, columns=list("abcd"))
    named = PerView(StandardScaler()).fit(frame)
    np.testing.assert_array_equal(named.feature_names_in_, list("abcd"))
    np.testing.assert_array_equal(named.get_feature_names_out(), list("abcd"))


class OnlyFitTransform(BaseEstimator):
    """A transformer whose fit_transform is not fit and then transform, as that of TargetEncoder."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X) + 1

    def transform(self, X):
        return np.asarray(X)


def test_fit_transform_asks_for_fit_transform():
    np.testing.assert_array_equal(PerView(OnlyFitTransform()).fit_transform([TEXT])[0], TEXT + 1)


def test_names_of_several_outputs_are_asked_of_each_transformer():
    step = PerView(PCA(2)).fit(BLOCKS)
    with pytest.raises(ValueError, match=r"several matrices. Ask transformers_\[name\]"):
        step.get_feature_names_out()
    np.testing.assert_array_equal(
        step.transformers_["text"].get_feature_names_out(), ["pca0", "pca1"]
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_reaches_every_view(kind):
    before = PerView(PCA(2)).set_output(transform=kind).fit(BLOCKS)
    after = PerView(PCA(2)).fit(BLOCKS).set_output(transform=kind)
    copied = clone(before).fit(BLOCKS)
    with sklearn_config(transform_output=kind):
        everywhere = PerView(PCA(2)).fit(BLOCKS)
        frames = [everywhere.transform(BLOCKS)]
    frames += [step.transform(BLOCKS) for step in (before, after, copied)]
    for frame in (X for part in frames for X in part.values()):
        assert type(frame).__module__.startswith(kind)
        assert list(frame.columns) == ["pca0", "pca1"]
    assert isinstance(after.set_output(transform="default").transform(BLOCKS)["text"], np.ndarray)
    assert PerView(PCA(2)).set_output() is not None


def test_parameters_are_reached_through_the_transformer_or_the_view():
    one = PerView(PCA(2))
    assert one.get_params()["transformer__n_components"] == 2
    assert one.set_params(transformer__n_components=3).transformer.n_components == 3
    mapping = {"image": PCA(2), "text": "passthrough"}
    several = PerView(mapping)
    assert several.get_params()["image__n_components"] == 2
    assert several.get_params()["text"] == "passthrough"
    assert several.get_params(deep=False) == {"transformer": mapping}
    scaler = StandardScaler()
    several.set_params(image__n_components=3, text=scaler)
    assert several.transformer["image"].n_components == 3
    assert several.transformer["text"] is scaler
    assert mapping["text"] == "passthrough"  # the caller's own stays as it was
    several.set_params(transformer={"sound": PCA(1)}, sound__n_components=4)
    assert several.get_params()["sound__n_components"] == 4
    with pytest.raises(ValueError, match="Invalid parameter 'smell'"):
        several.set_params(smell=PCA())


def test_clone_and_pickle_of_nested_transformers():
    step = PerView({"image": PCA(2), "text": make_pipeline(StandardScaler(), PCA(1))})
    copied = clone(step)
    assert copied.get_params()["text__pca__n_components"] == 1
    assert copied.transformer["image"] is not step.transformer["image"]
    fitted = pickle.loads(pickle.dumps(step.fit(BLOCKS)))
    np.testing.assert_array_equal(fitted.transform(BLOCKS)["text"], step.transform(BLOCKS)["text"])


@pytest.mark.parametrize(
    ("step", "shown"),
    [
        (PerView(PCA(7)), ["every view", "PCA"]),
        (PerView({"image": PCA(7), "text": StandardScaler()}), ["image", "text", "StandardScaler"]),
        (PerView(), ["every view", "passthrough"]),
        (make_pipeline(SplitViews({"a": [0]}), PerView({"a": PCA(7)}), JoinViews()), ["PCA", "a"]),
        (PerView(3), ["PerView"]),
    ],
    ids=repr,
)
def test_the_picture_of_an_estimator_shows_what_is_inside(step, shown):
    text = re.sub(
        r"<style>.*?</style>|<script>.*?</script>", "", estimator_html_repr(step), flags=re.S
    )
    for word in shown:
        assert word in text


@pytest.mark.parametrize("transformer", [3, "pass", None, LogisticRegression, LogisticRegression()])
def test_what_does_not_transform_is_refused(transformer):
    with pytest.raises(InvalidParameterError, match="The 'transformer' parameter of PerView"):
        PerView(transformer).fit(BLOCKS)


PER_VIEW_ERRORS = {
    "other views": (
        PerView({"image": PCA()}),
        BLOCKS,
        r"transformer names the views \['image'\], expected \['image', 'text'\].*\"passthrough\"",
    ),
    "a lone matrix": (PerView({"image": PCA()}), IMAGE, r"names the views \['image'\], expected"),
    "what the transformer refuses": (
        PerView(PCA(9)),
        BLOCKS,
        "View 'image': n_components=9 must be between",
    ),
    "NaN": (
        PerView(PCA()),
        {**BLOCKS, "text": np.where(TEXT == 3, np.nan, TEXT)},
        "View 'text': Input X contains NaN",
    ),
    "masks": (
        PerView(),
        {**BLOCKS, "text": np.ma.masked_equal(TEXT, 3)},
        "View 'text': Masked arrays are not supported",
    ),
    "a lone mask": (
        PerView(StandardScaler()),
        np.ma.masked_equal(TEXT, 3),
        "Masked arrays are not",
    ),
    "different heights": (PerView(), [IMAGE, TEXT[:4]], "Use Views.unpaired"),
    "three dimensions": (PerView(), IMAGE[None], r"2-D matrix, got shape \(1, 30, 4\)"),
}


@pytest.mark.parametrize(
    ("step", "X", "message"), PER_VIEW_ERRORS.values(), ids=PER_VIEW_ERRORS.keys()
)
def test_errors_of_a_transformer_name_its_view(step, X, message):
    for fit in (clone(step).fit, clone(step).fit_transform):
        with pytest.raises(ValueError, match=message):
            fit(X)


def test_a_failed_fit_leaves_what_was_fitted():
    step = PerView(StandardScaler()).fit(BLOCKS)
    with pytest.raises(ValueError, match="View 'text'"):
        step.fit({"image": IMAGE, "text": np.full((30, 2), np.inf)})
    np.testing.assert_array_equal(step.transform(BLOCKS)["image"].std(axis=0).round(9), np.ones(4))


@pytest.mark.parametrize(
    ("fitted", "X", "message"),
    [
        (
            BLOCKS,
            {"sound": IMAGE},
            r"Unknown view 'sound'; PerView was fitted on the views \['image",
        ),
        (BLOCKS, IMAGE, "name the view of a single matrix: {'image': X}"),
        (BLOCKS, [IMAGE], r"list of 2 views \['image', 'text'\], got 1"),
        (
            BLOCKS,
            {"text": IMAGE},
            "View 'text': X has 4 features, but StandardScaler is expecting 5",
        ),
        (IMAGE, BLOCKS, r"Unknown view 'image'; PerView was fitted on the views \['X'\]"),
        (IMAGE, TEXT, "X has 5 features, but PerView is expecting 4"),
    ],
    ids=["unknown", "lone", "short list", "width", "views for one", "lone width"],
)
def test_views_that_were_not_fitted_are_refused(fitted, X, message):
    step = PerView(StandardScaler()).fit(fitted)
    with pytest.raises(ValueError, match=message):
        step.transform(X)


def test_tags_are_those_of_the_transformers():
    tags = PerView({"a": SimpleImputer(), "b": StandardScaler()}).__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert not PerView({"a": SimpleImputer(), "b": PCA()}).__sklearn_tags__().input_tags.allow_nan
    assert PerView(LinearDiscriminantAnalysis()).__sklearn_tags__().target_tags.required
    assert not PerView(PCA()).__sklearn_tags__().target_tags.required


def test_views_of_files_with_column_names_pass_through(tmp_path):
    rows = np.arange(12.0).reshape(4, 3)
    (tmp_path / "a.csv").write_text("x,y,z\n" + "\n".join(",".join(map(str, r)) for r in rows))
    block = read_whole(str(tmp_path / "a.csv")).matrix
    assert block.columns == ("x", "y", "z")
    for step in ("passthrough", FunctionTransformer(feature_names_out="one-to-one")):
        np.testing.assert_array_equal(PerView(step).fit_transform({"a": block})["a"], rows)


# ---- SplitViews ----------------------------------------------------------------------------------

TABLE = pd.DataFrame(
    {
        "height": RNG.standard_normal(6),
        "weight": RNG.standard_normal(6),
        "kind": list("aababb"),
        "count": np.arange(6),
    },
    index=list("uvwxyz"),
)
WIDE = np.arange(24.0).reshape(6, 4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, sp.coo_array, list])
@pytest.mark.parametrize(
    ("columns", "positions"),
    [
        (slice(0, 2), [0, 1]),
        (slice(None, None, 2), [0, 2]),
        (slice(-2, None), [2, 3]),
        ([3, 1], [3, 1]),
        ((0, 2), [0, 2]),
        (np.array([2]), [2]),
        (1, [1]),
        (-1, [3]),
        ([True, False, False, True], [0, 3]),
        (range(1, 3), [1, 2]),
        (lambda X: [X.shape[1] - 1], [3]),
        ([1, 1], [1, 1]),
    ],
)
def test_columns_of_a_matrix_are_chosen_as_numpy_chooses_them(form, columns, positions):
    X = WIDE.tolist() if form is list else form(WIDE)
    views = SplitViews({"part": columns, "all": slice(None)}).fit_transform(X)
    assert isinstance(views, Views)
    assert views.names == ("part", "all")
    np.testing.assert_array_equal(matrices([views["part"]])[0], WIDE[:, positions])
    assert sp.issparse(views["part"]) == sp.issparse(X)


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_columns_of_a_frame_are_chosen_by_name_and_stay_a_frame(form):
    frame = form(TABLE.to_dict("list"))
    split = SplitViews({"size": ["weight", "height"], "kind": "kind", "last": -1})
    views = split.fit(frame).transform(frame)
    assert {type(X) for _, X in views.items()} == {form}
    assert list(views["size"].columns) == ["weight", "height"]
    assert list(views["kind"]["kind"]) == list("aababb")
    assert views.widths == {"size": 2, "kind": 1, "last": 1}


def test_columns_are_chosen_by_a_selector_at_fit():
    split = SplitViews(
        {
            "numbers": make_column_selector(dtype_include=np.number),
            "rest": make_column_selector(dtype_exclude=np.number),
        }
    )
    views = split.fit_transform(TABLE)
    assert list(views["numbers"].columns) == ["height", "weight", "count"]
    assert list(views["rest"].columns) == ["kind"]
    assert list(views["rest"].index) == list("uvwxyz")


def test_consecutive_columns_are_not_copied():
    views = SplitViews({"a": slice(0, 2), "b": [2, 3]}).fit_transform(WIDE)
    assert np.shares_memory(views["a"], WIDE)
    assert np.shares_memory(views["b"], WIDE)


def test_values_are_passed_on_whatever_they_are():
    odd = np.array([[1.0, np.nan, np.inf], [2.0, 3.0, 4.0]])
    np.testing.assert_array_equal(SplitViews({"a": [1, 2]}).fit_transform(odd)["a"], odd[:, 1:])
    words = np.array([["a", "b"], ["c", "d"]], dtype=object)
    np.testing.assert_array_equal(SplitViews({"a": [1]}).fit_transform(words)["a"], words[:, 1:])


def test_without_columns_the_matrix_stays_one_array():
    np.testing.assert_array_equal(SplitViews().fit_transform(WIDE), WIDE)
    np.testing.assert_array_equal(
        SplitViews().fit(TABLE).get_feature_names_out(), list(TABLE.columns)
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_of_a_split_makes_frames_with_the_columns_names(kind):
    split = SplitViews({"a": [0, 2], "b": [3]}).set_output(transform=kind)
    views = split.fit_transform(WIDE)
    assert list(views["a"].columns) == ["x0", "x2"]
    assert list(views["b"].columns) == ["x3"]
    assert type(views["a"]).__module__.startswith(kind)
    np.testing.assert_array_equal(np.asarray(views["a"]), WIDE[:, [0, 2]])
    with pytest.raises(ValueError, match="output does not support sparse data"):
        split.fit_transform(sp.csr_array(WIDE))


SPLIT_ERRORS = {
    "a position": ({"a": [0, 4]}, WIDE, r"View 'a': no columns \[0, 4\] in X, which has 4"),
    "a name of an array": ({"a": ["height"]}, WIDE, "View 'a': columns are chosen by name, but X"),
    "a name": (
        {"a": ["height", "length"]},
        TABLE,
        r"View 'a': X has no columns \['length'\]; it has \['height', 'weight'",
    ),
    "a short mask": ({"a": [True, False]}, WIDE, r"View 'a': no columns \[True, False\] in X"),
    "nothing": ({"a": []}, WIDE, r"View 'a' has no columns: \[\] selects no column of X"),
    "an empty slice": ({"a": slice(4, None)}, WIDE, "View 'a' has no columns"),
    "no views": ({}, WIDE, "Expected at least one view, got none"),
    "views": ({"a": [0]}, BLOCKS, "SplitViews takes one matrix to split, got a dict of views"),
    "a vector": ({"a": [0]}, WIDE[0], "Expected 2D array, got 1D array"),
    "complex": ({"a": [0]}, WIDE * 1j, "Complex data not supported"),
    "a mask": ({"a": [0]}, np.ma.masked_equal(WIDE, 3), "Masked arrays are not supported"),
}


@pytest.mark.parametrize("step", [RankGaussian(), MomentPCA(), Tokens(), Encode(np.asarray)])
@pytest.mark.parametrize("views", [{"a": WIDE}, Views({"a": WIDE})], ids=["mapping", "Views"])
def test_steps_of_one_matrix_refuse_views(step, views):
    with pytest.raises(ValueError, match=r"takes one matrix, got a \w+ of views. Use PerView\("):
        step.fit_transform(views)


@pytest.mark.parametrize(
    ("columns", "X", "message"), SPLIT_ERRORS.values(), ids=SPLIT_ERRORS.keys()
)
def test_columns_that_are_not_there_name_the_view(columns, X, message):
    with pytest.raises(ValueError, match=message):
        SplitViews(columns).fit(X).transform(X)


def test_a_split_checks_the_columns_it_was_fitted_on():
    split = SplitViews({"size": ["height", "weight"]}).fit(TABLE)
    with pytest.raises(ValueError, match="feature names should match"):
        split.transform(TABLE.iloc[:, ::-1])
    with pytest.raises(ValueError, match="X has 3 features, but SplitViews is expecting 4"):
        SplitViews({"a": [0]}).fit(WIDE).transform(WIDE[:, :3])
    with pytest.raises(ValueError, match="output of SplitViews is several matrices"):
        split.get_feature_names_out()


# ---- JoinViews -----------------------------------------------------------------------------------


@every_container
def test_joined_views_stand_side_by_side(container):
    views = container(BLOCKS)
    if isinstance(views, Views) and not views.is_paired:
        with pytest.raises(ValueError, match="60 of 60 objects are missing from some view"):
            JoinViews().fit(views)
        return
    np.testing.assert_array_equal(JoinViews().fit_transform(views), np.hstack([IMAGE, TEXT]))


@pytest.mark.parametrize(("how", "expected"), [("sum", IMAGE + 2 * IMAGE), ("mean", IMAGE * 1.5)])
@pytest.mark.parametrize(
    "forms", [(np.asarray, np.asarray), (sp.csr_matrix, np.asarray), (sp.csr_array, sp.coo_matrix)]
)
def test_views_of_one_space_are_added_or_averaged(how, expected, forms):
    views = [forms[0](IMAGE), forms[1](2 * IMAGE)]
    joined = JoinViews(how).fit_transform(views)
    assert sp.issparse(joined) == all(map(sp.issparse, views))
    assert type(joined) in (np.ndarray, sp.csr_array)
    np.testing.assert_allclose(matrices([joined])[0], expected, rtol=1e-15)


def test_a_sparse_view_makes_the_join_sparse():
    joined = JoinViews().fit_transform({"image": IMAGE, "text": sp.csc_array(TEXT)})
    assert isinstance(joined, sp.csr_array)
    np.testing.assert_array_equal(joined.toarray(), np.hstack([IMAGE, TEXT]))


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((np.float32, np.float32), np.float32),
        ((np.float32, np.float64), np.float64),
        ((np.uint8, np.uint8), np.float64),
        ((bool, np.float32), np.float64),
    ],
)
@pytest.mark.parametrize("how", ["concat", "mean", "sum"])
def test_joining_loses_no_digits_and_small_integers_do_not_wrap(how, dtypes, expected):
    views = [np.full((3, 2), 200).astype(dtype) for dtype in dtypes]
    joined = JoinViews(how).fit_transform(views)
    assert joined.dtype == expected
    if how == "sum":
        np.testing.assert_array_equal(joined, sum(X.astype(float) for X in views))


def test_views_are_joined_in_their_fitted_order():
    join = JoinViews().fit(BLOCKS)
    turned = dict(reversed(BLOCKS.items()))
    np.testing.assert_array_equal(join.transform(turned), np.hstack([IMAGE, TEXT]))


def test_missing_values_are_passed_on():
    odd = IMAGE.copy()
    odd[0, 0] = np.nan
    joined = JoinViews().fit_transform([odd, TEXT])
    assert np.isnan(joined[0, 0])


def test_a_lone_matrix_is_joined_already():
    np.testing.assert_array_equal(JoinViews().fit_transform(IMAGE), IMAGE)
    frame = pd.DataFrame(IMAGE, columns=list("abcd"))
    np.testing.assert_array_equal(JoinViews().fit(frame).get_feature_names_out(), list("abcd"))


def named(names: str, index: list[str] | None = None) -> pd.DataFrame:
    return pd.DataFrame(WIDE[:, : len(names)], columns=list(names), index=index)


@pytest.mark.parametrize(
    ("how", "views", "expected"),
    [
        ("concat", {"u": WIDE[:, :2], "v": WIDE[:, :1]}, ["u__x0", "u__x1", "v__x0"]),
        ("concat", {"u": named("ab"), "v": WIDE[:, :1]}, ["u__a", "u__b", "v__x0"]),
        ("mean", {"u": WIDE[:, :2], "v": WIDE[:, :2]}, ["x0", "x1"]),
        ("sum", {"u": named("ab"), "v": named("ab")}, ["a", "b"]),
        ("mean", {"u": named("ab"), "v": named("ac")}, ["joinviews0", "joinviews1"]),
    ],
)
def test_joined_columns_have_names(how, views, expected):
    join = JoinViews(how).fit(views)
    assert join.get_feature_names_out().dtype == object
    np.testing.assert_array_equal(join.get_feature_names_out(), expected)


def test_joined_columns_take_names_from_the_step_before():
    model = make_pipeline(MVCCA(2), JoinViews()).fit(BLOCKS)
    names = ["image__mvcca0", "image__mvcca1", "text__mvcca0", "text__mvcca1"]
    np.testing.assert_array_equal(model.get_feature_names_out(), names)
    mean = make_pipeline(MVCCA(2), JoinViews("mean")).fit(BLOCKS)
    np.testing.assert_array_equal(mean.get_feature_names_out(), ["mvcca0", "mvcca1"])
    with pytest.raises(ValueError, match="name the 4 columns of view 'image', got 2 names"):
        JoinViews().fit(BLOCKS).get_feature_names_out(["a", "b"])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_of_a_join_is_one_frame(kind):
    index = list("uvwxyz")
    views = {"u": named("ab", index), "v": named("c", index)}
    for frame in (
        JoinViews().set_output(transform=kind).fit_transform(views),
        clone(JoinViews().set_output(transform=kind)).fit(views).transform(Views(views)),
    ):
        assert type(frame).__module__.startswith(kind)
        assert list(frame.columns) == ["u__a", "u__b", "v__c"]
        if kind == "pandas":
            assert list(frame.index) == index
    with sklearn_config(transform_output=kind):
        assert type(JoinViews().fit_transform(views)).__module__.startswith(kind)
    with pytest.raises(ValueError, match="output does not support sparse data"):
        JoinViews().set_output(transform=kind).fit_transform([sp.csr_array(TEXT)])


JOIN_ERRORS = {
    "partly paired": (
        "concat",
        Views(BLOCKS, INDEX),
        "15 of 30 objects are missing from some view",
    ),
    "different widths": ("mean", BLOCKS, "views of equal width, got image: 4, text: 5.*MVCCA"),
    "different heights": ("concat", [IMAGE, TEXT[:3]], "same number of rows"),
    "strings": ("concat", [IMAGE, np.full((30, 1), "a")], "View 'view1': .*numeric|.*string"),
    "masks": ("concat", [IMAGE, np.ma.masked_equal(TEXT, 3)], "View 'view1': Masked arrays"),
    "complex": ("concat", [IMAGE, TEXT * 1j], "View 'view1': Complex data not supported"),
    "a lone vector": ("concat", IMAGE[0], "Expected 2D array"),
}


@pytest.mark.parametrize(("how", "X", "message"), JOIN_ERRORS.values(), ids=JOIN_ERRORS.keys())
def test_what_cannot_be_joined_is_refused(how, X, message):
    with pytest.raises(ValueError, match=message):
        JoinViews(how).fit_transform(X)


@pytest.mark.parametrize(
    ("fitted", "X", "message"),
    [
        (BLOCKS, {"image": IMAGE}, r"fitted on the views \['image', 'text'\], got \['image'\]"),
        (BLOCKS, {**BLOCKS, "c": IMAGE}, r"got \['image', 'text', 'c'\]"),
        (BLOCKS, [IMAGE], r"list of 2 views"),
        (BLOCKS, IMAGE, r"fitted on the views \['image', 'text'\], got one matrix"),
        (
            BLOCKS,
            {"image": TEXT, "text": TEXT},
            "View 'image' has 5 features, but JoinViews is exp",
        ),
        (BLOCKS, Views(BLOCKS, INDEX), "are missing from some view"),
        (IMAGE, TEXT, "X has 5 features, but JoinViews is expecting 4"),
        (IMAGE, BLOCKS, "fitted on one matrix"),
        ({"a": named("ab")}, {"a": named("ba")}, "View 'a': the feature names should match"),
    ],
    ids=[
        "missing",
        "unknown",
        "short list",
        "lone",
        "width",
        "partly",
        "lone width",
        "views",
        "names",
    ],
)
def test_other_views_than_were_fitted_are_not_joined(fitted, X, message):
    join = JoinViews().fit(fitted)
    with pytest.raises(ValueError, match=message):
        join.transform(X)


@pytest.mark.parametrize("step", [PerView(PCA()), SplitViews({"a": [0]}), JoinViews()])
def test_steps_that_are_not_fitted_say_so(step):
    for method in (step.transform, lambda _, step=step: step.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            method(WIDE)


# ---- all together --------------------------------------------------------------------------------


def test_a_table_goes_through_views_to_a_class():
    rng = np.random.default_rng(1)
    classes = np.arange(60) % 2
    table = pd.DataFrame(rng.standard_normal((60, 3)) + classes[:, None], columns=list("abc"))
    table["kind"] = np.where(rng.random(60) < 0.2 + 0.6 * classes, "x", "y")
    model = make_pipeline(
        SplitViews({"numbers": ["a", "b", "c"], "kind": ["kind"]}),
        PerView({"numbers": StandardScaler(), "kind": OneHotEncoder(sparse_output=False)}),
        JoinViews(),
        LogisticRegression(),
    )
    by_hand = np.hstack(
        [
            StandardScaler().fit_transform(table[["a", "b", "c"]]),
            OneHotEncoder(sparse_output=False).fit_transform(table[["kind"]]),
        ]
    )
    expected = LogisticRegression().fit(by_hand, classes).predict_proba(by_hand)
    np.testing.assert_allclose(model.fit(table, classes).predict_proba(table), expected)
    frame = model.set_output(transform="pandas")[:-1].fit(table).transform(table)
    assert list(frame.columns)[:3] == ["numbers__a", "numbers__b", "numbers__c"]
    assert list(frame.columns)[3:] == ["kind__kind_x", "kind__kind_y"]


def test_splitting_and_joining_is_where_it_began():
    there_and_back = make_pipeline(
        SplitViews({"a": [0, 2], "b": [1, 3]}), PerView(MinMaxScaler((0, 1))), JoinViews()
    )
    expected = MinMaxScaler().fit_transform(WIDE)[:, [0, 2, 1, 3]]
    np.testing.assert_allclose(there_and_back.fit_transform(WIDE), expected)
