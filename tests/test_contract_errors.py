"""Errors of all estimators: one clear message that names the view, what came, and the remedy.

What is refused leaves the input and the model as they were. The table is tests/estimators.py.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimators import (
    COMPONENTS,
    DEEP,
    DOORS,
    ESTIMATORS,
    HOLES,
    LABELS,
    LABELS_NEEDED,
    LINEAR_VARIANTS,
    NO_EIGENVALUES,
    PAIRED_NETWORK,
    PAIRS_NEEDED,
    REPEATING,
    RIDGE,
    STORAGES,
    VARIANTS,
    N,
    assert_same_model,
    assert_same_scores,
    blocks_for,
    crossed,
    fitted,
    in_chunks,
    in_file,
    over,
    partly_seen,
    rounding,
    strengths,
    untouched,
)
from sklearn.base import clone
from sklearn.utils._param_validation import InvalidParameterError

import mvcca
from mvcca import (
    CCA,
    MLCCA,
    MVCCA,
    NCCA,
    Views,
    evaluate_retrieval,
    retrieval_scorer,
)
from mvcca.cli import main

# ---- bad matrices: one clear error that names the view -------------------------------------------


def with_entry(value: Any, dtype: Any = float) -> Callable[[np.ndarray], np.ndarray]:
    def change(X: np.ndarray) -> np.ndarray:
        X = X.astype(dtype)
        X[3, 1] = value
        return X

    return change


def sparse_with_nan(X: np.ndarray) -> Any:
    return sp.csr_array(with_entry(np.nan)(X))


BAD_MATRICES = {
    "NaN": (with_entry(np.nan), "View 'text': Input contains NaN."),
    "NaN in float32": (with_entry(np.nan, np.float32), "View 'text': Input contains NaN."),
    "NaN in sparse": (sparse_with_nan, "View 'text': Input contains NaN."),
    "NaN in a file": (
        lambda X: in_file(with_entry(np.nan)(X)),
        "View 'text'.*NaN",
    ),
    "infinity in a file": (
        lambda X: in_file(with_entry(np.inf)(X)),
        "View 'text'.*infinity",
    ),
    "NaN in Dask chunks": (
        lambda X: in_chunks(with_entry(np.nan)(X)),
        "View 'text'.*NaN",
    ),
    "NaN in DataFrame": (
        lambda X: pd.DataFrame(with_entry(np.nan)(X)),
        "View 'text': Input contains NaN.",
    ),
    "NA in DataFrame": (
        lambda X: pd.DataFrame(with_entry(pd.NA, object)(X)).convert_dtypes(),
        "View 'text': Input contains NaN.",
    ),
    "infinity": (with_entry(np.inf), "View 'text': Input contains infinity"),
    "minus infinity": (with_entry(-np.inf), "View 'text': Input contains infinity"),
    "a string among objects": (with_entry("1.5", object), "View 'text': Expected numbers, got str"),
    "numeric strings": (lambda X: X.astype(str), "View 'text': Expected numbers, got strings"),
    "bytes": (lambda X: X.astype("S"), "View 'text': Expected numbers, got strings"),
    "strings in lists": (
        lambda X: X.astype(str).tolist(),
        "View 'text': Expected numbers, got strings",
    ),
    "strings in a DataFrame": (
        lambda X: pd.DataFrame(X.astype(str)),
        "View 'text': Expected numbers, got strings",
    ),
    "dates": (
        lambda X: pd.DataFrame(X).rename(columns=str).assign(**{"1": pd.to_datetime("2020-01-01")}),
        "View 'text': Expected numbers, got dates in column '1'",
    ),
    "dates only": (
        lambda X: (1e6 * X).astype("M8[s]"),
        "View 'text': Expected numbers, got dates in columns 0, 1, 2",
    ),
    "dates in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=date(2020, 1, 1)),
        "View 'text': Expected numbers, got dates in column 'column_1'",
    ),
    "dates among objects": (
        with_entry(date(2020, 1, 1), object),
        "View 'text': Expected numbers, got dates in column",
    ),
    "durations": (
        lambda X: pd.DataFrame((1e6 * X).astype("m8[s]")),
        "View 'text': Expected numbers, got durations in columns 0, 1, 2",
    ),
    "durations in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=timedelta(1)),
        "View 'text': Expected numbers, got durations in column 'column_1'",
    ),
    "periods": (
        lambda X: pd.DataFrame(
            {j: pd.period_range("2020", periods=len(X)) for j in range(X.shape[1])}
        ),
        "View 'text': Expected numbers, got dates in columns 0, 1, 2",
    ),
    "a category": (
        lambda X: pd.DataFrame(X.astype(str)).astype("category"),
        "View 'text': Expected numbers, got strings in columns 0, 1, 2",
    ),
    "complex in a DataFrame": (
        lambda X: pd.DataFrame(X + 1j),
        "View 'text': Complex data not supported in columns 0, 1, 2",
    ),
    "lists in polars": (
        lambda X: pl.DataFrame(X).with_columns(column_1=pl.Series(X[:, :2].tolist())),
        "View 'text': Expected numbers, got lists in column 'column_1'",
    ),
    "a column of vectors": (
        lambda X: pd.DataFrame({name: list(X) if name == "v" else X[:, 0] for name in "abvde"}),
        "Expected numbers, got lists in column 'v'. A column of vectors is a view by itself",
    ),
    "vectors that differ in length": (
        lambda X: pd.Series([X[0], X[1, :-1], *X[2:]]),
        r"View 'text': Row 1 has \d numbers, another one \d",
    ),
    "vectors of which one is missing": (
        lambda X: pd.Series([None, *X[1:]]),
        r"View 'text': Row 0 has 0 numbers, another one \d",
    ),
    "names of two types": (
        lambda X: pd.DataFrame(X, columns=["a", *range(X.shape[1] - 1)]),
        "View 'text': Expected column names of one type, got the string 'a' beside 0",
    ),
    "a dict among objects": (with_entry({"a": 1}, object), "View 'text': .*number"),
    "complex": (lambda X: X + 1j, "View 'text': Complex data not supported"),
    "complex sparse": (lambda X: sp.csr_array(X + 1j), "View 'text': Complex data not supported"),
    "np.matrix": (np.asmatrix, "View 'text': np.matrix is not supported"),
    "masked": (
        lambda X: np.ma.masked_where(X > 3, X),
        "View 'text': Masked arrays are not supported.*Fill or drop",
    ),
    "masked nowhere": (np.ma.array, "View 'text': Masked arrays are not supported"),
    "3-D": (lambda X: X[None], "2-D matrix, got shape .* for 'text'"),
    "1-D": (lambda X: X[:, 0], "2-D matrix, got shape .* for 'text'.*Reshape"),
    "1-D sparse": (lambda X: sp.coo_array(X[:, 0]), "2-D matrix, got shape .* for 'text'"),
    "0-D": (lambda _: 3.0, "2-D matrix, got shape .* for 'text'"),
    "no columns": (lambda X: X[:, :0], r"View 'text': Found array with 0 feature\(s\)"),
    "no columns, sparse": (
        lambda X: sp.csr_array(X[:, :0]),
        r"View 'text': Found array with 0 feature\(s\)",
    ),
}
NOT_MISSING = {name: case for name, case in BAD_MATRICES.items() if "NaN" not in case[1]}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@crossed("change, message", BAD_MATRICES, DOORS)
def test_a_bad_matrix_is_one_clear_error_that_names_the_view(estimator, change, message):
    good = blocks_for(estimator)
    bad = {**good, "text": change(good["text"])}
    model, known = fitted(estimator), message
    if "0 feature" in message:
        known = "View 'text' has 0 features, but .* is expecting 5 features as input"
    new, batches = clone(estimator), clone(estimator)
    calls = [
        (partial(new.fit, y=LABELS), message),
        (lambda bad: list(map(np.asarray, model.transform(bad).values())), known),
        (partial(model.score, y=LABELS), known),
    ]
    if hasattr(estimator, "partial_fit"):
        calls.append((partial(batches.partial_fit, y=LABELS), message))
    for call, words in calls:
        with untouched(bad, LABELS), pytest.raises((ValueError, TypeError), match=words):
            call(bad)
    for refused in (new, batches):
        assert not {"encoders_", "maps_", "weights_"} & vars(refused).keys()


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@crossed("change, message", NOT_MISSING, LINEAR_VARIANTS, needs=[HOLES])
def test_where_cells_may_be_missing_other_bad_matrices_are_refused(estimator, change, message):
    test_a_bad_matrix_is_one_clear_error_that_names_the_view(estimator, change, message)


FEW_FORMS = STORAGES | {"DataFrame": pd.DataFrame}


@crossed("form", FEW_FORMS, DOORS)
def test_too_few_rows_are_refused_in_scikit_learns_words(estimator, form):
    for rows in (0, 1):
        few = {name: form(X[:rows]) for name, X in blocks_for(estimator).items()}
        message = (
            rf"View 'image': Found array with {rows} sample\(s\) \(shape=\({rows}, 6\)\) while a "
            f"minimum of 2 is required by {type(estimator).__name__}."
        )
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(few, LABELS[:rows])


@over(DEEP)
def test_values_beyond_float32_are_refused_by_networks(estimator):
    blocks = blocks_for(estimator)
    blocks["text"][3, 1] = 1e60
    with pytest.raises(ValueError, match="'text' has values beyond the largest float32"):
        clone(estimator).fit(blocks, LABELS)


BAD_QUERIES = {
    "of another width": (
        lambda X: {"text": X["text"][:, :4]},
        "View 'text' has 4 features, but .* is expecting 5",
    ),
    "of a view that was not fitted": (
        lambda X: {"smell": X["text"]},
        r"Unknown view 'smell'.*fitted on the views \['image'",
    ),
    "without rows": (
        lambda X: {"text": X["text"][:0]},
        r"View 'text': Found array with 0 sample\(s\)",
    ),
    "a list of another length": (
        lambda X: [X["image"]],
        r"list of \d views .* got 1\. .* use a mapping by name",
    ),
    "a lone matrix": (lambda X: X["image"], r"name the view of a lone matrix: {'image': X}"),
    "a lone row": (
        lambda X: {"text": X["text"][0]},
        r"a single row with x\.reshape\(1, -1\)",
    ),
}


@crossed("form", STORAGES, ESTIMATORS)
def test_a_bad_query_is_one_clear_error(estimator, form):
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    for query, message in BAD_QUERIES.values():
        if query is BAD_QUERIES["a lone row"][0] and form not in (np.asarray, np.float32):
            continue
        with pytest.raises(ValueError, match=message):
            fitted(estimator).transform(query(blocks))
    with pytest.raises(ValueError, match="takes y only as the second view"):
        fitted(estimator).transform(blocks, LABELS)
    wrong = with_entry(np.nan)(blocks_for(estimator)["text"])
    with pytest.raises(ValueError, match="NaN"):
        fitted(estimator).transform({"text": wrong})


@crossed("form", STORAGES, ESTIMATORS)
def test_views_of_different_heights_are_named_with_their_rows(estimator, form):
    blocks = {name: form(X) for name, X in blocks_for(estimator).items()}
    blocks["text"] = blocks["text"][:10]
    with pytest.raises(ValueError, match=r"image: 90, text: 10.*Use Views\.unpaired"):
        clone(estimator).fit(blocks, LABELS)


CHANGED_COLUMNS = {
    "names of pandas": (
        lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        lambda frame: frame.iloc[:, ::-1],
        "column 0 is 'c4', not 'c0'",
    ),
    "names of polars": (
        lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])], orient="row"),
        lambda frame: frame[:, ::-1],
        "column 0 is 'c4', not 'c0'",
    ),
    "default numbers": (
        pd.DataFrame,
        lambda frame: frame[[1, 0, 2, 3, 4]],
        "column 0 is 1, not 0",
    ),
    "other names": (
        lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
        lambda frame: frame.rename(columns=lambda name: f"new_{name}"),
        r"missing: 'c0', 'c1', 'c2', \.\.\. \(5 in all\); unknown: 'new_c0', 'new_c1'",
    ),
}


@crossed("form, change, message", CHANGED_COLUMNS, DOORS)
def test_columns_are_those_of_the_fit_in_later_batches_and_rows(estimator, form, change, message):
    frames = {name: form(X) for name, X in blocks_for(estimator).items()}
    changed = {**frames, "text": change(frames["text"])}
    message = f"View 'text': the feature names should match.*{message}"
    model = clone(estimator).fit(frames, LABELS)
    with pytest.raises(ValueError, match=message):
        model.transform({"text": changed["text"]})
    if hasattr(estimator, "partial_fit"):
        model = clone(estimator).partial_fit(frames, LABELS)
        with pytest.raises(ValueError, match=message):
            model.partial_fit(changed, LABELS)
    if not estimator.requires.labels:  # the second of two lone matrices
        model = clone(estimator).fit(frames["image"], frames["text"])
        with pytest.raises(ValueError, match=message.replace("'text'", "'y'")):
            model.transform(frames["image"], changed["text"])


# ---- weights, pairs and numbers of views ---------------------------------------------------------

BAD_WEIGHTS = {
    "too few": (np.ones(N - 1), "sample_weight.shape"),
    "two-dimensional": (np.ones((N, 2)), "1D array"),
    "negative": (np.r_[-1.0, np.ones(N - 1)], "Negative values"),
    "NaN": (np.r_[np.nan, np.ones(N - 1)], "contains NaN"),
    "all zero": (np.zeros(N), "zero|more than 1, got 0"),
    "that add up to one": (np.full(N, 1 / N), "must sum to more than 1, got 1"),
    "masked": (
        np.ma.array(np.ones(N), mask=np.arange(N) < 3),
        "Masked arrays are not supported",
    ),
}


@crossed("weights, message", BAD_WEIGHTS, ESTIMATORS)
def test_bad_sample_weights_are_refused(estimator, weights, message):
    with untouched(weights), pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), LABELS, sample_weight=weights)


@over(ESTIMATORS, but=[PAIRED_NETWORK])
def test_weights_that_leave_a_view_without_objects_name_it(estimator):
    views = partly_seen(blocks_for(estimator), text=slice(40))
    weights = (np.arange(N) < 40).astype(float)
    with pytest.raises(
        ValueError, match="the weights of view 'text' must sum to more than 1, got 0"
    ):
        clone(estimator).fit(views, LABELS, sample_weight=weights)


@over(REPEATING)
def test_methods_without_a_weighted_form_refuse_fractions(estimator):
    weights = np.full(N, 1.5)
    message = f"whole numbers, got 1.5: {type(estimator).__name__} learns from whole rows. Round"
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), LABELS, sample_weight=weights)


@over([*ESTIMATORS, NCCA()], needs=[PAIRS_NEEDED])
def test_learning_from_pairs_says_so_if_there_are_none_or_one(estimator):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    message = r"no object is in two views.*MLCCA .* take labels"
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(Views.unpaired(blocks))
    with pytest.raises(ValueError, match=r"pairs|in (all|two) views"):
        clone(estimator).fit(partly_seen(blocks, image=slice(45), text=slice(46, None)))


@over([CCA(), MVCCA(), *DEEP])
def test_a_single_view_is_too_few_for_methods_that_learn_from_pairs(estimator):
    X = blocks_for(estimator)["image"]
    with pytest.raises(ValueError, match="takes at least 2 views, got 1"):
        clone(estimator).fit({"image": X}, LABELS)
    expected = "learns from labels" if estimator.requires.labels else "second view"
    with pytest.raises(ValueError, match=rf"requires y to be passed.*{expected}"):
        clone(estimator).fit(X)


@over([CCA(), MVCCA(), *DEEP[:1]])
def test_two_lone_matrices_of_different_heights_are_refused(estimator):
    X, Y = list(blocks_for(estimator).values())[:2]
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[90, 80\]"):
        clone(estimator).fit(X, Y[:80])
    model = clone(estimator).fit(X, Y)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[80, 90\]"):
        model.transform(X[:80], Y)


def test_cca_of_three_views_points_to_mvcca():
    with pytest.raises(ValueError, match=r"CCA takes 2 views, got 3.*Use MVCCA"):
        CCA().fit(blocks_for(MVCCA()))


@over(ESTIMATORS)
def test_no_views_at_all_are_refused(estimator):
    with pytest.raises(ValueError, match=r"Expected at least one view"):
        clone(estimator).fit({}, LABELS)


# ---- rows that say which objects they are of -----------------------------------------------------

IDS = np.array([f"id{i:02}" for i in range(N)], dtype=object)


def labelled_rows(X: Any, ids: Any = IDS) -> pd.DataFrame:
    return pd.DataFrame(X, index=ids)


@crossed("ids", {"names": IDS, "default numbers": np.arange(N)}, DOORS)
def test_frames_with_the_same_row_labels_in_another_order_are_refused_or_aligned(estimator, ids):
    blocks = blocks_for(estimator)
    order = np.random.default_rng(0).permutation(N)
    frames = {name: labelled_rows(X, ids) for name, X in blocks.items()}
    frames["text"] = frames["text"].iloc[order]
    message = (
        "view 'image' and view 'text' have the same labels in a different order.*Views.aligned"
    )
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(frames, LABELS)
    if not estimator.requires.labels:
        with pytest.raises(ValueError, match="X and y have the same labels in a different order"):
            clone(estimator).fit(frames["image"], frames["text"])
    model = clone(estimator).fit(Views.aligned(frames), LABELS)
    assert_same_model(model, fitted(estimator))
    scores = model.transform(frames)  # by view, so that the order of rows is each view's own
    wanted = fitted(estimator).transform(blocks)["text"][order]
    assert_same_scores(scores["text"], wanted, rounding(estimator))


@over(DOORS)
def test_frames_with_other_row_labels_are_refused_unless_those_are_default(estimator):
    blocks = blocks_for(estimator)
    frames = {name: labelled_rows(X) for name, X in blocks.items()}
    other = {**frames, "text": frames["text"].rename(lambda label: f"other {label}")}
    with pytest.raises(ValueError, match="have different labels: row 0 is 'id00' and 'other id00'"):
        clone(estimator).fit(other, LABELS)
    default = {**frames, "text": pd.DataFrame(blocks["text"])}
    assert_same_model(clone(estimator).fit(default, LABELS), fitted(estimator))


LABELS_WITH_ROWS = {
    "Series": lambda ids: pd.Series(LABELS @ [1, 2, 4, 8], index=ids),
    "DataFrame": lambda ids: pd.DataFrame(LABELS, index=ids),
}


@crossed("form", LABELS_WITH_ROWS, VARIANTS, needs=[LABELS_NEEDED])
def test_labels_of_other_rows_are_refused(estimator, form):
    frames = {name: labelled_rows(X) for name, X in blocks_for(estimator).items()}
    expected = clone(estimator).fit(frames, form(IDS))
    turned = form(IDS[::-1])
    for X, y in (
        (frames, turned),
        (Views(frames)[5:80], turned.iloc[5:80]),
        (frames["image"], turned),
        (frames, dict.fromkeys(frames, form(IDS)) | {"text": turned}),
        (Views.unpaired(frames), dict.fromkeys(frames, form(IDS)) | {"text": turned}),
    ):
        with pytest.raises(ValueError, match=r"Rows are paired by position, but .* different"):
            clone(estimator).fit(X, y)
        if hasattr(estimator, "partial_fit"):
            with pytest.raises(ValueError, match="Rows are paired by position, but"):
                clone(estimator).partial_fit(X, y)
    assert_same_model(clone(estimator).fit(frames, form(range(N))), expected, 1e-12)


@over(ESTIMATORS)
def test_weights_of_other_rows_are_refused(estimator):
    frames = {name: labelled_rows(X) for name, X in blocks_for(estimator).items()}
    weights = pd.Series(np.arange(N) % 2 + 1, index=IDS[::-1])
    with pytest.raises(ValueError, match="sample_weight and the views have the same labels"):
        clone(estimator).fit(frames, LABELS, sample_weight=weights)
    model = clone(estimator).fit(frames, LABELS, sample_weight=weights.iloc[::-1])
    plain = clone(estimator).fit(
        blocks_for(estimator), LABELS, sample_weight=weights.to_numpy()[::-1]
    )
    assert_same_model(model, plain, 1e-10)


# ---- labels --------------------------------------------------------------------------------------

BAD_LABELS = {
    "none": (None, "requires y to be passed, but the target y is None"),
    "all the same": (np.zeros(N, int), "All rows have the same labels"),
    "an indicator without ones": (np.zeros((N, 4)), "All rows have the same labels"),
    "a sparse indicator without ones": (sp.csr_array((N, 4)), "All rows have the same labels"),
    "no labels in any set": ([set()] * N, "All rows have the same labels"),
    "the same class everywhere": (np.ones(N, int), "All rows have the same labels"),
    "NaN in a class vector": (np.r_[np.nan, np.ones(N - 1)], "Labels contain NaN or infinity"),
    "infinity in a matrix": (with_entry(np.inf)(LABELS), "Labels contain NaN or infinity"),
    "NaN in a sparse matrix": (
        sp.csr_array(with_entry(np.nan)(LABELS)),
        "Labels contain NaN or infinity",
    ),
    "None among names": (["a", None] * (N // 2), "Labels contain None"),
    "complex": (np.arange(N) * 1j, "Complex data not supported"),
    "three-dimensional": (LABELS[None], r"Labels must be .* got an array of shape \(1, 90, 4\)"),
    "a number": (3, "Labels must be .* got an array of shape"),
    "a name": ("cat", "Labels must be .* got an array of shape"),
    "a matrix of names": (np.full((N, 2), "cat"), "must hold numbers"),
}


@crossed("labels, message", BAD_LABELS, VARIANTS, needs=[LABELS_NEEDED])
def test_bad_labels_are_one_clear_error(estimator, labels, message):
    with untouched(labels), pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks_for(estimator), labels)


@over(VARIANTS, needs=[LABELS_NEEDED])
def test_labels_that_do_not_fit_the_views_name_them(estimator):
    blocks = blocks_for(estimator)
    of_each = dict.fromkeys(blocks, LABELS)
    heights = of_each | {"text": LABELS[:80]}
    masked = np.ma.array(LABELS)
    for X, y, message in (
        (blocks, LABELS[:80], r"inconsistent numbers of samples: \[90, 80\]"),
        (blocks, heights, "View 'text' has 90 rows but 80 labels"),
        (list(blocks.values()), [*heights.values()], "View 'view1' has 90 rows but 80 labels"),
        (blocks, of_each | {"text": with_entry(np.nan)(LABELS)}, "View 'text': Labels contain NaN"),
        (blocks, of_each | {"smell": LABELS}, r"Expected labels of the views \['image'"),
        (blocks, np.ma.masked_equal(LABELS[:, 0], 0), "Masked arrays are not supported"),
        (blocks, np.ma.masked_equal(LABELS, 1), "Masked arrays are not supported"),
        (blocks, of_each | {"text": masked}, "Masked arrays are not supported"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(X, y)


@pytest.mark.filterwarnings("ignore:The labels of 7 rows .* are like none")  # under cosine
@over(VARIANTS, needs=[LABELS_NEEDED])
def test_rows_without_labels_are_counted_in_a_warning(estimator):
    labels = LABELS.copy()
    labels[:7] = 0
    blocks = list(blocks_for(estimator).values())[: estimator.requires.views[0]]
    with pytest.warns(UserWarning, match="7 rows have no labels"):
        clone(estimator).fit(blocks, labels)


# Labels of two views that cannot be the same, and what is said of them.
_COLUMNS = np.eye(4, dtype=int)[np.arange(N) % 4]


def _frame(names: str) -> pd.DataFrame:
    return pd.DataFrame(_COLUMNS, columns=list(names))


APART = "nothing in common"
UNLINKED = {
    "label sets": (
        [[{f"{word}{j}" for j in np.flatnonzero(row)} for row in LABELS] for word in "ab"],
        rf"labels of (view 'image'|the queries) \('a\d', .* {APART} .*'b\d', ",
    ),
    "classes": (
        [[f"{word}{row.sum()}" for row in LABELS] for word in "ab"],
        rf"labels of (view 'image'|the queries) \('a\d', .* {APART} .*'b\d', ",
    ),
    "numbers of classes": ([np.arange(N) % 4, np.arange(N) % 4 + 4], APART),
    "columns": ([_frame("abcd"), _frame("efgh")], rf"'a', 'b'.* {APART} .*'e', 'f'"),
    "positions": (
        [np.c_[LABELS, 0 * LABELS], np.c_[0 * LABELS, LABELS]],
        rf"'column 0', 'column 1'.* {APART} .*'column 4', 'column 5'",
    ),
    "columns with and without names": (
        [_frame("abcd"), _COLUMNS],
        "all or none with column names",
    ),
    "more columns in one view": ([_COLUMNS, _COLUMNS[:, :3]], "same length, got 4 and 3"),
}


@crossed("labels, message", UNLINKED, VARIANTS, needs=[LABELS_NEEDED])
def test_views_without_a_label_in_common_are_refused_by_name(estimator, labels, message):
    blocks = dict(list(blocks_for(estimator).items())[:2])
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(blocks, dict(zip(blocks, labels, strict=True)))
    if estimator not in DEEP:
        short = {"image": blocks["image"], "text": blocks["text"][:80]}
        y = [labels[0], labels[1][:80]]
        with pytest.raises(ValueError, match=message.replace("image", "view0")):
            clone(estimator).fit(list(short.values()), y)


# Doors that take labels of views, beside fits.
SPACE = {name: X[:, :4] for name, X in list(blocks_for(CCA()).items())}  # of one space
MODEL = MLCCA(2).fit(SPACE, LABELS)
LABEL_DOORS: dict[str, Callable[[Any], Any]] = {
    "evaluate, map": lambda y: evaluate_retrieval(SPACE, y, measures="map"),
    "evaluate, ndcg": lambda y: evaluate_retrieval(SPACE, y, measures="ndcg@5"),
    "evaluate, ranks": lambda y: evaluate_retrieval(SPACE, y, measures="r@1"),
    "scorer": lambda y: retrieval_scorer("map", "image", "text")(MODEL, SPACE, y),
}


@pytest.mark.parametrize("case", UNLINKED)
@pytest.mark.parametrize("door", LABEL_DOORS)
def test_evaluations_refuse_labels_that_cannot_be_the_same(door, case):
    labels, message = UNLINKED[case]
    with pytest.raises(ValueError, match=message):
        LABEL_DOORS[door](dict(zip(SPACE, labels, strict=True)))


@pytest.mark.parametrize("case", ["classes", "label sets"])
def test_comparisons_refuse_labels_that_cannot_be_the_same(case):
    labels, message = UNLINKED[case]
    y = [label for rows in labels for label in rows]
    with pytest.raises(ValueError, match=message):
        mvcca.compare({"MLCCA": MLCCA(2, reg=0.1)}, Views.unpaired(SPACE), y, cv=2)


@pytest.mark.parametrize("command", ["fit", "compare"])
@pytest.mark.parametrize("case", ["classes", "positions", "more columns in one view"])
def test_commands_refuse_labels_that_cannot_be_the_same(
    command, case, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    arguments = []
    for name, labels in zip(SPACE, UNLINKED[case][0], strict=True):
        np.save(f"{name}.npy", SPACE[name])
        np.save(f"y_{name}.npy", labels)
        arguments += ["--view", f"{name}={name}.npy", "--labels", f"{name}=y_{name}.npy"]
    one = ["--method", "mlcca", "-o", "model.mvcca"]
    many = ["--methods", "mlcca", "--cv", "2"]
    assert main([command, *arguments, *(one if command == "fit" else many)]) == 1
    assert APART in (err := capsys.readouterr().err) or "same length" in err


def test_names_match_columns_in_any_order():
    labels = {"image": _frame("abcd"), "text": _frame("abcd")}
    moved = labels | {"text": labels["text"][list("dbca")]}
    for door in ("evaluate, map", "scorer"):
        first, second = (LABEL_DOORS[door](y) for y in (labels, moved))
        assert getattr(first, "rows", first) == getattr(second, "rows", second)


# ---- errors that say where and what to do --------------------------------------------------------


@crossed("form", {name: STORAGES[name] for name in ("dense", "csr", "float32")}, DOORS)
def test_missing_values_are_located_and_the_remedy_named(estimator, form):
    blocks = blocks_for(estimator)
    text = blocks["text"].copy()
    text[7, 2] = text[7, 4] = text[50, 0] = np.nan
    message = (
        r"View 'text': Input contains NaN: first in row 7, column 2; 3 such values in 2 of 90 rows"
        r"\. Fill in missing values with mvcca\.PerView\(SimpleImputer\(\)\)"
    )
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit({**blocks, "text": form(text)}, LABELS)
    text[[50, 51]] = np.nan
    with pytest.raises(ValueError, match=r"2 rows contain only NaN: .*Views\(blocks, index="):
        clone(estimator).fit({**blocks, "text": form(text)}, LABELS)
    named = pd.DataFrame(text, columns=list("abcde"))
    with pytest.raises(ValueError, match="contains NaN: first in row 7, column 'c'"):
        clone(estimator).fit({**blocks, "text": named}, LABELS)
    with pytest.raises(ValueError, match="contains NaN: first in row 7, column 'c'"):
        clone(estimator).fit(named, LABELS)


@over(DOORS)
def test_strings_and_masks_are_located(estimator):
    blocks = blocks_for(estimator)
    text = pd.DataFrame(blocks["text"], columns=list("abcde")).astype({"b": str, "e": str})
    whole = da.from_array(np.ma.masked_greater(blocks["text"], 3), chunks=(30, -1))
    hidden = da.from_array(blocks["text"], chunks=(30, -1)).map_blocks(
        lambda X: np.ma.masked_greater(X, 3), meta=np.empty((0, 0))
    )
    for bad, message in (
        (text, r"View 'text': .*got strings in columns 'b', 'e'"),
        (text.to_numpy(), "got strings in columns 1, 4"),
        (whole, "Masked arrays are not supported"),
        (hidden, "Masked arrays are not supported"),
    ):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit({**blocks, "text": bad}, LABELS)


def test_a_masked_index_is_refused():
    index = np.ma.array(np.zeros((3, 2), dtype=int), mask=[[0, 1]] * 3)
    with pytest.raises(ValueError, match="Masked arrays are not supported"):
        Views({"image": np.ones((3, 2)), "text": np.ones((3, 2))}, index)


# ---- parameters ----------------------------------------------------------------------------------

BAD_VALUES = [
    *(("n_components", value) for value in (0, -1, 2.0, np.nan, "2", None)),
    *(("reg", value) for value in (-1e-9, np.nan, np.inf, "Auto", None)),
    *(("power", value) for value in (-1.0, np.nan, np.inf)),
    *(("sigma", value) for value in (0, 0.0, -1.0, np.nan, np.inf, "1")),
    *(("similarity", value) for value in ("euclid", None)),
    *(("within", value) for value in ("labels", None)),
    *(("kernel", value) for value in ("gauss",)),
    *(("gamma", value) for value in (0.0, "mean", np.inf)),
    *(("degree", value) for value in (-1,)),
    *(("coef0", value) for value in (np.nan,)),
    *(("approximation", value) for value in ("nystrom",)),
    *(("n_landmarks", value) for value in (0,)),
    *(("weighting", value) for value in ("rows", None)),
    *(("n_neighbors", value) for value in (0, -3, 2.5)),
    *(("hidden_layer_sizes", value) for value in (16, None)),
    *(("encoders", value) for value in (3, "mlp")),
    *(("batch_size", value) for value in (0, 2.5, None)),
    *(("max_epochs", value) for value in (0, 1.5, None)),
    *(("optimizer", value) for value in ("newton", None)),
    *(("learning_rate", value) for value in (0, -1e-3, np.nan, np.inf)),
    *(("weight_decay", value) for value in (-1e-3, np.nan)),
    *(("validation_fraction", value) for value in (0.0, 1.0, np.nan)),
    *(("patience", value) for value in (0, 1.5)),
    *(("monitor", value) for value in ("accuracy",)),
    *(("random_state", value) for value in ("seed",)),
    *(("callbacks", value) for value in (None, 3)),
    *(("mixed_precision", value) for value in (None, "yes")),
    *(("objective", value) for value in (None, "mse")),
    *(("reconstruction", value) for value in (-1.0, np.nan)),
    *(("correlation", value) for value in (-1.0, np.nan)),
    *(("gate_penalty", value) for value in (-1.0, np.nan)),
    *(("warm_up", value) for value in (-1, 1.5)),
    *(("decorrelation", value) for value in (-1.0, np.nan)),
]


@over(ESTIMATORS)
def test_a_parameter_out_of_its_range_is_an_invalid_parameter(estimator):
    blocks, constraints = blocks_for(estimator), estimator._parameter_constraints
    for name, value in BAD_VALUES:
        if name not in vars(estimator) or (value is None and None in constraints[name]):
            continue
        model = clone(estimator).set_params(**{name: value})
        for fit in (model.fit, getattr(model, "partial_fit", model.fit)):
            with pytest.raises(ValueError, match=name) as refused:
                fit(blocks, LABELS)
            if value not in ("accuracy", "abacus"):  # known to torch, or to the history, only
                assert isinstance(refused.value, InvalidParameterError)
                assert f"The {name!r} parameter" in str(refused.value)


BAD_RIDGES = [
    ({"image": 0.1}, r"reg names the views \['image'\], expected \['image', 'text'"),
    (
        {"image": 0.1, "text": -1, "sound": 0},
        "reg of view 'text' must be a number >= 0, got -1",
    ),
    ({"image": 0.1, "text": "a", "sound": 0}, "reg of view 'text' must be a number >= 0"),
    ({"image": 0.1, "text": np.nan, "sound": 0}, "reg of view 'text' must be a number >= 0"),
]


@over(ESTIMATORS, needs=[RIDGE])
def test_a_ridge_for_other_views_or_out_of_range_names_the_view(estimator):
    blocks = blocks_for(estimator)
    for reg, message in BAD_RIDGES:
        known = {name: reg[name] for name in blocks} if "text" in reg else reg
        with pytest.raises(ValueError, match=message):
            clone(estimator).set_params(reg=known).fit(blocks, LABELS)


@over(VARIANTS, needs=[LABELS_NEEDED, COMPONENTS], but=[NO_EIGENVALUES])
def test_too_many_neighbours_or_too_many_components_say_how_many_there_are(estimator):
    with pytest.warns(UserWarning, match="n_components=50 is more than these data have"):
        model = clone(estimator).set_params(n_components=50).fit(blocks_for(estimator), LABELS)
    assert model.n_components_ == len(strengths(model)) < 50
