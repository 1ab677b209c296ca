"""`SparseDiscriminant`, judged by R's DIABLO, by scikit-learn's LDA, and by itself turned round."""

from __future__ import annotations

import os
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import RGCCA, PerView, SparseDiscriminant, Views, load, save
from mvcca.inspection import selection_stability

DATA = Path(os.environ.get("MVCCA_DATA", "")) / "breast_tcga.npz"
REAL = pytest.mark.skipif(not DATA.is_file(), reason="needs the private data")
PUBLISHED = {"mrna": (8, 25), "mirna": (14, 5), "protein": (10, 5)}
N = 120
rng = np.random.default_rng(0)
Y = np.array(["healthy", "mild", "severe"])[rng.permutation(np.arange(N) % 3)]
CODES = np.unique(Y, return_inverse=True)[1]


def blocks(seed=1, effect=1.0):
    """Three views of which the first five features, or the first two of the last, tell classes."""
    draw = np.random.default_rng(seed)
    found = {}
    for name, width, n_true in (("genes", 40, 5), ("lipids", 25, 5), ("clinic", 6, 2)):
        centres = np.zeros((3, width))
        centres[:, :n_true] = effect * draw.normal(size=(3, n_true)) * 1.5
        found[name] = centres[CODES] + draw.normal(size=(N, width)) + 10 * draw.normal(size=width)
    return found


BLOCKS = blocks()
VIEWS = Views(BLOCKS)
TRAIN, TEST = np.arange(80), np.arange(80, N)


def diablo():
    """Training and test rows of breast cancer, the latter without proteins."""
    data = np.load(DATA)
    train = {n: pd.DataFrame(data[f"{n}_train"], columns=data[f"{n}_names"]) for n in PUBLISHED}
    test = {
        n: pd.DataFrame(data[f"{n}_test"], columns=data[f"{n}_names"])
        for n in train
        if n != "protein"
    }
    return train, data["y_train"], test, data["y_test"]


def error(y, found):
    return 1 - balanced_accuracy_score(y, found)


@REAL
def test_weights_and_correlations_are_those_of_mixomics():
    train, y, test, y_test = diablo()
    model = SparseDiscriminant(2, n_features=PUBLISHED, shrink=True, start="own").fit(train, y)
    weights = {n: dict(zip(model.selected_[n][0], W[W != 0], strict=True))
               for n, W in ((n, W[:, 0]) for n, W in model.sparse_weights_.items())}  # fmt: skip
    assert weights["mrna"]["KDM4B"] == pytest.approx(0.479953382482, abs=1e-10)
    assert weights["protein"]["ER-alpha"] == pytest.approx(0.568130411075, abs=1e-10)
    found = np.array([model.class_correlations_[n] for n in PUBLISHED]).T
    expected = [[0.918410349991, 0.816912914206, 0.910252769384],
                [0.78319040437, 0.500038967479, 0.725019776223]]  # fmt: skip
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert [len(names) for names in model.selected_["mrna"]] == [8, 25]

    # Votes of the nearest centroids of each view, weighted by the correlations with the classes.
    scores, new = model.transform(train), model.transform(test)
    votes = sum(
        model.class_correlations_[n].mean()
        * (NearestCentroid().fit(scores[n], y).predict(new[n])[:, None] == model.classes_)
        for n in test
    )
    assert error(y_test, model.classes_[votes.argmax(axis=1)]) == pytest.approx(0.0683, abs=5e-5)
    assert error(y_test, model.predict(test)) == pytest.approx(0.0444, abs=5e-5)


@REAL
def test_numbers_of_features_by_folds_predict_breast_cancer_without_a_view():
    train, y, test, y_test = diablo()
    model = SparseDiscriminant(random_state=0).fit(train, y)
    assert error(y_test, model.predict(test)) < 0.07
    assert model.n_features_ <= 50


def test_without_any_limit_it_is_rgcca_with_the_indicators_as_a_view():
    indicators = (Y[:, None] == np.unique(Y)).astype(float)
    links = np.full((4, 4), 0.1)
    links[3] = links[:, 3] = 1
    np.fill_diagonal(links, 0)
    expected = RGCCA(design=links, scheme="horst", scale_views=False).fit(
        {**BLOCKS, "y": indicators}
    )
    found = SparseDiscriminant(1, n_features=None).fit(BLOCKS, Y)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    for name, W in found.weights_.items():
        other = expected.weights_[name]
        np.testing.assert_allclose(W * np.sign(W[0] * other[0]), other, atol=1e-7)


def test_a_single_view_gives_the_classes_of_lda_on_its_scores():
    X = BLOCKS["genes"]
    rows = np.concatenate([np.flatnonzero(c == CODES)[:25] for c in np.unique(CODES)])
    model = SparseDiscriminant(2, n_features=5).fit({"genes": X[rows]}, Y[rows])
    scores = model.transform({"genes": X})["genes"]
    expected = LinearDiscriminantAnalysis().fit(scores[rows], Y[rows]).predict(scores)
    np.testing.assert_array_equal(model.predict({"genes": X}), expected)
    lone = SparseDiscriminant(2, n_features=5).fit(X[rows], Y[rows])
    np.testing.assert_array_equal(lone.predict(X), expected)


def test_classes_are_alike_probable_however_many_rows_they_have():
    X = BLOCKS["genes"]
    rows = np.flatnonzero((CODES != 2) | (np.arange(N) % 4 == 0))
    model = SparseDiscriminant(2, n_features=5).fit({"genes": X[rows]}, Y[rows])
    scores = model.transform({"genes": X})["genes"]
    groups = [scores[rows][CODES[rows] == c] for c in range(3)]
    pooled = sum((len(own) - 1) * np.cov(own.T) for own in groups) / (len(rows) - 3)
    densities = [multivariate_normal(own.mean(axis=0), pooled).pdf(scores) for own in groups]
    expected = np.transpose(densities) / np.sum(densities, axis=0)[:, None]
    np.testing.assert_allclose(model.predict_proba({"genes": X}), expected, atol=1e-10)


def test_means_and_covariances_of_classes_are_those_of_the_scores():
    model = SparseDiscriminant(2, n_features=4).fit(BLOCKS, Y)
    for name, scores in model.transform(BLOCKS).items():
        lda = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(scores, Y)
        np.testing.assert_allclose(model.class_means_[name], lda.means_, atol=1e-10)
        within = lda.covariance_ * N / (N - 3)
        np.testing.assert_allclose(model.class_covariance_[name], within, atol=1e-10)


def test_views_that_objects_lack_drop_out_of_the_sum():
    model = SparseDiscriminant(2, n_features=5).fit(VIEWS[TRAIN], Y[TRAIN])
    new = VIEWS[TEST]
    alone = [np.log(model.predict_proba({n: new[n]})) for n in ("genes", "clinic")]
    both = np.exp(sum(alone))
    expected = both / both.sum(axis=1, keepdims=True)
    found = model.predict_proba({n: new[n] for n in ("genes", "clinic")})
    np.testing.assert_allclose(found, expected, atol=1e-10)
    index = np.tile(np.arange(len(TEST))[:, None], 3)
    index[::2, 1], index[0] = -1, -1  # every second object lacks lipids, and the first one all
    seen = index >= 0
    rows = {n: new[n][seen[:, j]] for j, n in enumerate(new.names)}
    places = np.where(seen, np.cumsum(seen, axis=0) - 1, -1)
    partly = model.predict_proba(Views(rows, places))
    whole, less = model.predict_proba(new), model.predict_proba(new.select(["genes", "clinic"]))
    np.testing.assert_allclose(partly[1::2], whole[1::2], atol=1e-12)
    np.testing.assert_allclose(partly[2::2], less[2::2], atol=1e-12)
    np.testing.assert_allclose(partly[0], 1 / 3)


STORAGES = {
    "float32": (lambda X: X.astype(np.float32), 1e-4),
    "DataFrame": (pd.DataFrame, 1e-9),
    "sparse": (sp.csr_array, 1e-9),
    "Dask": (lambda X: da.from_array(X, chunks=(50, -1)), 1e-9),
}


@pytest.mark.parametrize("form", STORAGES)
def test_the_storage_of_rows_does_not_matter(form):
    stored, tol = STORAGES[form]
    rounded = {n: np.where(abs(X) < 1, 0, X) for n, X in BLOCKS.items()}
    expected = SparseDiscriminant(2, n_features=5).fit(rounded, Y)
    found = SparseDiscriminant(2, n_features=5).fit({n: stored(X) for n, X in rounded.items()}, Y)
    np.testing.assert_allclose(
        found.predict_proba({n: stored(X) for n, X in rounded.items()}),
        expected.predict_proba(rounded),
        atol=tol,
    )


def test_batches_give_what_fit_gives_and_weights_are_repetitions():
    expected = SparseDiscriminant(2, n_features=5).fit(VIEWS, Y)
    batches = SparseDiscriminant(2, n_features=5)
    for rows in (slice(0, 50), slice(50, 51), slice(51, N)):
        batches.partial_fit(VIEWS[rows], Y[rows])
    weights = rng.integers(0, 3, N)
    repeated = np.repeat(np.arange(N), weights)
    pairs = [
        (batches, expected),
        (
            SparseDiscriminant(2, n_features=5).fit(VIEWS, Y, weights.astype(float)),
            SparseDiscriminant(2, n_features=5).fit(VIEWS[repeated], Y[repeated]),
        ),
    ]
    for found, other in pairs:
        np.testing.assert_allclose(
            found.predict_proba(VIEWS), other.predict_proba(VIEWS), atol=1e-9
        )
    by_class = SparseDiscriminant(2, n_features=5)  # each batch brings a class
    for name in np.unique(Y)[::-1]:
        by_class.partial_fit(VIEWS[name == Y], Y[name == Y])
    np.testing.assert_array_equal(by_class.classes_, np.unique(Y))
    np.testing.assert_allclose(
        by_class.predict_proba(VIEWS), expected.predict_proba(VIEWS), atol=1e-9
    )


def test_wide_views_are_solved_by_products_of_the_rows():
    noise = np.random.default_rng(5).normal(size=(N, 1500))
    wide = Views({**BLOCKS, "genes": np.hstack([BLOCKS["genes"], noise])})
    weights = np.linspace(1, 2, N)
    for model in (
        SparseDiscriminant(2, n_features=6),
        SparseDiscriminant(2, n_features=6, tau=0.5),
        SparseDiscriminant(2, n_features=None, tau=0.5),
        SparseDiscriminant(2, random_state=0),
    ):
        found = clone(model).fit(wide, Y, weights)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SparseDiscriminant, "takes_row_products", lambda *_: False)
            expected = clone(model).fit(wide, Y, weights)
        assert model.takes_row_products(clone(model)._open_rows(wide, Y, None))
        assert getattr(found, "n_features_", 0) == getattr(expected, "n_features_", 0)
        np.testing.assert_allclose(
            found.predict_proba(wide), expected.predict_proba(wide), atol=1e-6
        )


def test_every_distinct_label_set_is_a_class():
    sets = np.array([[1, 0], [0, 1], [1, 1]])
    found = SparseDiscriminant(2, n_features=5).fit(VIEWS, sets[CODES]).predict(VIEWS)
    expected = SparseDiscriminant(2, n_features=5).fit(VIEWS, CODES).predict(VIEWS)
    np.testing.assert_array_equal(found, sets[expected])


def test_training_objects_may_lack_views():
    index = np.tile(np.arange(N)[:, None], 3)
    index[:, 1] = np.where(np.arange(N) < 30, -1, np.arange(N) - 30)
    partly = Views({**BLOCKS, "lipids": BLOCKS["lipids"][30:]}, index)
    model = SparseDiscriminant(2, n_features=5).fit(partly, Y)
    scores = model.transform(BLOCKS)
    for name, rows in (("genes", slice(None)), ("lipids", slice(30, None))):
        means = [scores[name][rows][CODES[rows] == c].mean(axis=0) for c in range(3)]
        np.testing.assert_allclose(model.class_means_[name], means, atol=1e-10)
    batches = SparseDiscriminant(2, n_features=5)
    for rows in (slice(0, 40), slice(40, N)):
        batches.partial_fit(partly[rows], Y[rows])
    np.testing.assert_allclose(batches.predict_proba(VIEWS), model.predict_proba(VIEWS), atol=1e-9)


def test_the_fold_search_is_that_of_refits():
    model = SparseDiscriminant(2, random_state=3).fit(VIEWS, Y)
    folds = StratifiedKFold(5, shuffle=True, random_state=3)
    for number, mean in zip(
        model.cv_results_["param_n_features"], model.cv_results_["mean_test_score"], strict=True
    ):
        if number in (3, 14, 40):
            refits = cross_val_score(
                SparseDiscriminant(2, n_features=number), VIEWS, Y, cv=folds,
                scoring="balanced_accuracy",
            )  # fmt: skip
            assert mean == pytest.approx(refits.mean(), abs=1e-12)
    best = model.cv_results_["mean_test_score"].max()
    winners = model.cv_results_["param_n_features"][model.cv_results_["mean_test_score"] == best]
    assert model.n_features_ == min(winners)


def test_it_finds_the_features_that_tell_classes_apart():
    model = SparseDiscriminant(2, n_features=5).fit(VIEWS, Y)
    assert set(range(5)) <= set(np.concatenate(model.selected_["genes"]))
    found = selection_stability(model, VIEWS, Y, n_pairs=5, random_state=0)
    frequent = {
        one.feature for one in found.features if one.view == "genes" and one.frequency > 0.8
    }
    assert frequent <= set(range(5))
    assert found.scores.min() > 0.7  # accuracy on the other half


def test_it_is_a_classifier_in_pipelines_searches_and_files(tmp_path):
    model = make_pipeline(PerView(StandardScaler()), SparseDiscriminant(2))
    search = GridSearchCV(
        model, {"sparsediscriminant__n_features": [2, 5]}, cv=3, scoring="accuracy"
    )
    search.fit(VIEWS[TRAIN], Y[TRAIN])
    assert search.score(VIEWS[TEST], Y[TEST]) > 0.8
    assert search.predict(VIEWS[TEST]).dtype == Y.dtype
    fitted = SparseDiscriminant(2, n_features=5).fit(VIEWS, Y)
    save(fitted, tmp_path / "model.mvcca")
    loaded = load(tmp_path / "model.mvcca")
    np.testing.assert_array_equal(loaded.predict(VIEWS), fitted.predict(VIEWS))
    assert fitted.score(VIEWS, Y) == np.mean(fitted.predict(VIEWS) == Y)


def test_two_classes_of_numbers_in_few_rows_and_units_of_columns_do_not_matter():
    y = (CODES > 0).astype(int)
    expected = SparseDiscriminant(1, n_features=3).fit(VIEWS, y)
    scaled = {n: X * np.logspace(-6, 6, X.shape[1]) for n, X in BLOCKS.items()}
    found = SparseDiscriminant(1, n_features=3).fit(scaled, y)
    np.testing.assert_allclose(
        found.predict_proba(scaled), expected.predict_proba(VIEWS), atol=1e-7
    )
    for name, chosen in expected.selected_.items():
        np.testing.assert_array_equal(found.selected_[name][0], chosen[0])
    with pytest.warns(UserWarning, match="Few rows to select features from: 6, .* by 0.95"):
        few = SparseDiscriminant(2, n_features=2).fit(VIEWS[:6], Y[:6])
    assert np.isfinite(few.predict_proba(VIEWS)).all()


def test_constant_columns_are_never_selected_and_perfect_classes_are_finite():
    genes = np.column_stack([np.ones(N), CODES == 1, BLOCKS["genes"]])
    model = SparseDiscriminant(2, n_features=3).fit({**BLOCKS, "genes": genes}, Y)
    assert 0 not in np.concatenate(model.selected_["genes"])
    perfect = SparseDiscriminant(2, n_features=None).fit({"a": np.eye(3)[CODES]}, Y)
    assert (perfect.predict({"a": np.eye(3)[CODES]}) == Y).all()
    assert np.isfinite(perfect.predict_proba({"a": np.eye(3)[CODES]})).all()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (VIEWS, np.full(N, "one"), "All rows have the same labels"),
        (VIEWS, rng.normal(size=(N, 2)), "Unknown label type: .* got real label vectors"),
        (VIEWS, Y[:-1], "inconsistent numbers of samples"),
        (VIEWS, None, "requires y to be passed"),
        ({**BLOCKS, "classes": BLOCKS["genes"]}, Y, "The name 'classes' is taken"),
        ({**BLOCKS, "lipids": BLOCKS["lipids"] * np.nan}, Y, "NaN"),
    ],
)
def test_bad_input_says_what_to_do(X, y, message):
    with pytest.raises(ValueError, match=message):
        SparseDiscriminant(2, n_features=3).fit(X, y)


def test_folds_need_rows_of_every_class():
    with pytest.raises(ValueError, match='n_features="cv" holds out rows of every class'):
        SparseDiscriminant().fit(VIEWS[:5], ["a", "a", "a", "a", "b"])


def test_the_score_of_paired_views_refuses_labels_that_differ():
    y = np.arange(60) % 3
    X = np.eye(3)[y] + np.random.default_rng(0).normal(size=(60, 3))
    model = SparseDiscriminant(n_features=2).fit({"a": X, "b": X}, y)
    agreed, differs = {"a": y, "b": y}, {"a": y, "b": np.where(y == 0, 1, y)}
    for names in ("ab", "ba"):
        views = dict.fromkeys(names, X)
        assert model.score(views, agreed) == model.score(views, y)
        with pytest.raises(ValueError, match="views disagree about 20 of 60 objects"):
            model.score(views, differs)


def test_the_score_of_unpaired_views_takes_the_labels_of_each():
    rng, y = np.random.default_rng(0), np.arange(110) % 3
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(50, 4))
    X[:, 0] += y[:60]
    views, of_views = Views.unpaired({"a": X, "b": Z}), {"a": y[:60], "b": y[60:]}
    model = SparseDiscriminant(n_features=2).fit(views, of_views)
    assert model.score(views, of_views) == model.score(views, y) > 0.4
    assert model.score(views, of_views) == (model.predict(views) == y).mean()
