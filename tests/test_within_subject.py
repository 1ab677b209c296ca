"""`WithinSubject`, judged by loops over subjects, by mixOmics' definition and inside folds."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from mvcca import CCA, Views
from mvcca.compose import WithinSubject

rng = np.random.default_rng(0)
N = 60
NUMBERS = rng.permutation(np.repeat(np.arange(15), 4))
NAMES = np.array([f"s{i}" for i in NUMBERS])
BETWEEN = rng.normal(size=(15, 2))[NUMBERS]
EFFECT = rng.normal(size=(N, 1))
GENES = 5 + 3 * BETWEEN[:, :1] + EFFECT + 0.5 * rng.normal(size=(N, 4))
LIPIDS = -2 + 3 * BETWEEN[:, 1:] + EFFECT + 0.5 * rng.normal(size=(N, 3))


def views(subjects=NUMBERS[:, None], **changes):
    return Views({"genes": GENES, "lipids": LIPIDS, "subject": subjects, **changes})


def less_means(X, subjects=NUMBERS):
    found = np.array(X, dtype=float)
    for subject in np.unique(subjects):
        rows = subjects == subject
        found[rows] -= np.nanmean(found[rows], axis=0)
    return found


SUBJECTS = {
    "numbers": NUMBERS[:, None],
    "float numbers": NUMBERS[:, None] + 0.5,
    "table of text": pd.DataFrame({"who": NAMES}),
    "categories": pd.DataFrame({"who": pd.Categorical(NAMES)}),
}


@pytest.mark.parametrize("form", SUBJECTS)
def test_rows_lose_the_mean_of_their_subject(form):
    found = WithinSubject("subject").fit_transform(views(SUBJECTS[form]))
    assert found.names == ("genes", "lipids")
    np.testing.assert_allclose(found["genes"], less_means(GENES), atol=1e-13)
    np.testing.assert_allclose(found["lipids"], less_means(LIPIDS), atol=1e-13)


@pytest.mark.parametrize(
    "stored",
    [
        lambda X: X.astype(np.float32),
        pd.DataFrame,
        lambda X: da.from_array(X, chunks=(25, -1)),
        np.asfortranarray,
    ],
    ids=["float32", "DataFrame", "Dask", "Fortran"],
)
def test_the_storage_of_rows_does_not_matter(stored):
    found = WithinSubject("subject").fit_transform(views(genes=stored(GENES)))
    np.testing.assert_allclose(found["genes"], less_means(GENES), atol=1e-5)


def test_new_subjects_are_transformed_by_their_own_means_and_need_every_row():
    step = WithinSubject("subject").fit(views()[NUMBERS < 10])
    new = NUMBERS >= 10
    found = step.transform(views()[new])
    np.testing.assert_allclose(found["genes"], less_means(GENES)[new], atol=1e-13)
    one = step.transform({"lipids": LIPIDS[new], "subject": NUMBERS[new, None]})
    np.testing.assert_allclose(one["lipids"], less_means(LIPIDS)[new], atol=1e-13)


def test_differences_between_subjects_are_gone_and_effects_within_are_found():
    train, test = views()[NUMBERS < 10], views()[NUMBERS >= 10]
    plain = CCA(1).fit(train.select(["genes", "lipids"]))
    model = make_pipeline(WithinSubject("subject"), CCA(1)).fit(train)
    assert model.score(test) > 0.6
    moved = test.replace(
        {**dict(test.items()), "genes": test["genes"] + 100.0 * (test["subject"] % 3)}
    )
    assert model.score(moved) == pytest.approx(model.score(test), abs=1e-9)
    assert plain.score(moved.select(["genes", "lipids"])) < 0.5


def test_it_works_in_searches_whose_folds_keep_subjects_together():
    model = make_pipeline(WithinSubject("subject"), CCA(1))
    search = GridSearchCV(model, {"cca__reg": [0.0, 0.1]}, cv=GroupKFold(5), error_score="raise")
    search.fit(views(), groups=NUMBERS)
    scores = []
    for train, test in GroupKFold(5).split(NUMBERS, groups=NUMBERS):
        blocks = [(less_means(GENES)[rows], less_means(LIPIDS)[rows]) for rows in (train, test)]
        scores.append(CCA(1).fit(*blocks[0]).score(*blocks[1]))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(scores), abs=1e-9)
    with pytest.raises(ValueError, match="Keep all rows of a subject together, as folds of Group"):
        GridSearchCV(model, {"cca__reg": [0.1]}, cv=KFold(30), error_score="raise").fit(views())


def test_missing_cells_and_missing_views_do_not_count():
    genes = np.where(rng.random(GENES.shape) < 0.1, np.nan, GENES)
    found = WithinSubject("subject").fit_transform(views(genes=genes))
    np.testing.assert_allclose(found["genes"], less_means(genes), atol=1e-13)
    index = np.tile(np.arange(N)[:, None], 3)
    index[:, 1] = np.where(NUMBERS < 3, -1, 0)
    index[NUMBERS >= 3, 1] = np.arange((NUMBERS >= 3).sum())
    partly = Views(
        {"genes": GENES, "lipids": LIPIDS[NUMBERS >= 3], "subject": NUMBERS[:, None]}, index
    )
    own = WithinSubject("subject").fit_transform(partly)
    np.testing.assert_allclose(own["lipids"], less_means(LIPIDS)[NUMBERS >= 3], atol=1e-13)
    assert own.removed["lipids"] == (11, 48.0)


def test_the_next_step_counts_what_subjects_took():
    found = WithinSubject("subject").fit_transform(views())
    assert found.removed == {"genes": (14, 60.0), "lipids": (14, 60.0)}
    model = CCA(1).fit(found)
    as_confounds = views(np.eye(15)[NUMBERS])
    expected = CCA(1, confounds="subject").fit(as_confounds)  # the same residuals
    np.testing.assert_allclose(
        model.expected_correlations_, expected.expected_correlations_, atol=1e-10
    )
    assert model.expected_correlations_ < CCA(1).fit(dict(found.items())).expected_correlations_


def test_columns_that_vary_between_subjects_only_become_exact_zeros():
    genes = np.column_stack([GENES, 1e6 / 3 + BETWEEN[:, 0]])
    found = WithinSubject("subject").fit_transform(views(genes=genes))
    assert not found["genes"][:, -1].any()
    np.testing.assert_allclose(found["genes"][:, :-1], less_means(GENES), atol=1e-12)


def test_subjects_are_kept_on_request_and_frames_keep_their_names():
    genes = pd.DataFrame(GENES, columns=list("abcd"))
    step = WithinSubject("subject", drop=False).set_output(transform="pandas")
    found = step.fit_transform(views(genes=genes))
    assert found.names == ("genes", "lipids", "subject")
    assert list(found["genes"].columns) == list("abcd")
    assert list(found["lipids"].columns) == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"genes": sp.csr_array(GENES)}, "View 'genes' is sparse, and its differences"),
        ({"subject": np.c_[NUMBERS, NUMBERS]}, "one column of subjects for all 60 objects"),
        ({"subject": np.where(NUMBERS == 3, np.nan, NUMBERS)[:, None]}, "got a missing value"),
        ({"subject": np.arange(N)[:, None]}, "View 'genes' has a single row of 60 of 60 subjects"),
        ({"genes": np.where(GENES > 9, np.inf, GENES)}, "View 'genes': Input contains infinity"),
    ],
)
def test_bad_input_says_what_to_do(change, message):
    with pytest.raises(ValueError, match=message):
        WithinSubject("subject").fit_transform(views(**change))


def test_subjects_are_needed_whenever_rows_are_transformed():
    step = WithinSubject("subject").fit(views())
    with pytest.raises(ValueError, match="needs the view 'subject' beside the others"):
        step.transform({"genes": GENES})
    with pytest.raises(ValueError, match="is expecting 4 features"):
        step.transform(views(genes=GENES[:, :3]))
    with pytest.raises(ValueError, match="Unknown view 'more'"):
        step.transform(views(more=GENES))
