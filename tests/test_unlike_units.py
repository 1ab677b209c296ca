"""Columns of a view in unlike units are standardized or warn wherever their variances decide."""

from __future__ import annotations

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from estimators import LONG
from given_matrices import GivenMatrices
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_linnerud, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import StandardScaler

import mvcca
from mvcca import (
    CCA,
    CFA,
    CMOLRS,
    GCCA,
    JRL,
    KCCA,
    LGCFL,
    MLCCA,
    MVCCA,
    MVMLCCA,
    NCCA,
    PLS,
    AffineMap,
    FoldSearchCV,
    PerView,
    Procrustes,
    Views,
)

N = 120
RNG = np.random.default_rng(0)
SHARED = RNG.normal(size=(N, 2))
LABS = SHARED @ RNG.normal(size=(2, 6)) + RNG.normal(size=(N, 6))
LABS[:, 3] *= 300
COLUMNS = ["na", "k", "ca", "ldh", "alt", "crp"]
SCORES = SHARED @ RNG.normal(size=(2, 4)) + RNG.normal(size=(N, 4))
VIEWS = Views({"labs": pd.DataFrame(LABS, columns=COLUMNS), "scores": SCORES})
CLASSES = np.arange(N) % 4
SAYS = (
    "Unlike units: column 'ldh' of view 'labs' has over 100 times the median standard "
    "deviation of its columns. {}, or results depend on their units."
)
SET_SCALE, STANDARDIZE = (SAYS.format(own) for own in ("Set scale=True", "Standardize its columns"))
SCALED = {"labs": True, "scores": False}


def said(fit):
    """What is said of units by a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(own.message) for own in caught if "Unlike units" in str(own.message)]


UNITS_DECIDE = {
    SET_SCALE: [
        CCA(2, reg=0.1, scale=False),
        CCA(2, reg={"labs": 0.1, "scores": 0}, scale={"labs": False, "scores": "auto"}),
        CCA(2, reg="auto", scale=False),
        CCA(2, reg="cv", scale=False),
        CCA(2, reg=0.1, reg_unit="absolute"),
        MVCCA(2, scale=False),
        GCCA(2, scale=False),
        PLS(2),
        PLS("cv"),
        MLCCA(2, scale=False),
        MLCCA(2, reg="cv", scale=False),
        MVMLCCA(2, scale=False),
        AffineMap(scale=False),
        KCCA(2, scale=False),
        KCCA(2, reg="cv", scale=False),
        NCCA(2, scale=False),
        LGCFL(scale=False),
        JRL(scale={"labs": False, "scores": True}),
        CMOLRS(2, scale=False, n_epochs=1, random_state=0),
    ],
    STANDARDIZE: [
        CFA(2),
        Procrustes(),
        GivenMatrices(2),
    ],
}
STANDARDIZED = [
    CCA(2, reg=0.1),
    CCA(2, reg={"labs": 0.1, "scores": 0}),
    CCA(2, reg="auto"),
    CCA(2, reg=0.1, confounds="scores"),
    MVCCA(2),
    MVCCA(2, scale={"labs": "auto", "scores": False}),
    GCCA(2),
    MLCCA(2),
    MLCCA(2, weighting="means"),
    MVMLCCA(2),
    MVMLCCA(2, within="label"),
    AffineMap(),
    KCCA(2),
    KCCA(2, approximation="fourier", n_landmarks=20),
    NCCA(2),
    LGCFL(scale="auto"),
    JRL(scale="auto"),
    CMOLRS(2, n_epochs=1, random_state=0),
]
UNITS_DO_NOT = [
    CCA(2),
    CCA(2, reg={"labs": 0, "scores": 0.1}),
    CCA(2, reg="cv"),
    CCA(2, reg=0.1, scale=True, reg_unit="absolute"),
    MVCCA(2, reg=0),
    GCCA(2, reg=0),
    PLS(2, scale=True),
    JRL(),
    LGCFL(),
    KCCA(2, reg="cv"),
]


@pytest.mark.parametrize(
    ("model", "says"), [(own, says) for says, every in UNITS_DECIDE.items() for own in every]
)
def test_unlike_units_warn_once_where_they_decide(model, says):
    assert said(lambda: clone(model).fit(VIEWS, CLASSES)) == [says]


@pytest.mark.parametrize("model", STANDARDIZED, ids=repr)
def test_a_view_in_unlike_units_is_standardized_unasked(model):
    views, own = VIEWS, clone(model)
    if own.confounds:
        views = views.add("more", SCORES[:, :2] + RNG.normal(size=(N, 2)))
    assert not said(lambda: own.fit(views, CLASSES))
    assert own.scale_ == ({"labs": True, "more": False} if own.confounds else SCALED)


@pytest.mark.parametrize("model", UNITS_DO_NOT, ids=repr)
def test_unlike_units_do_not_warn_where_they_decide_nothing(model):
    assert not said(lambda: clone(model).fit(VIEWS, CLASSES))


def test_standardized_columns_do_not_warn():
    views = PerView(StandardScaler()).fit_transform(VIEWS)
    assert not said(lambda: MVCCA(2).fit(views))


@pytest.mark.parametrize("standardize", [False, True, "auto"])
def test_networks_warn_if_they_do_not_standardize(standardize):
    pytest.importorskip("torch")
    from mvcca.deep import DCCA

    options = {"hidden_layer_sizes": (4,), "batch_size": 60, "max_epochs": 1, "random_state": 0}
    model = DCCA(2, standardize=standardize, **options, start="random")
    assert said(lambda: model.fit(VIEWS)) == ([STANDARDIZE] if standardize is False else [])


def test_a_search_warns_once():
    search = FoldSearchCV(MVCCA(2, scale=False), {"reg": [0.01, 0.1]}, cv=3)
    assert said(lambda: search.fit(VIEWS)) == [SET_SCALE]


def test_a_comparison_says_it_in_one_note():
    result = mvcca.compare({"one": PLS(2), "other": PLS(2, algorithm="canonical")}, VIEWS, cv=3)
    assert str(result).count("Unlike units") == 1


def test_the_warning_can_be_silenced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Unlike units")
        PLS(2).fit(VIEWS)


STORED = {
    "float32": lambda X: X.astype(np.float32),
    "integers": lambda X: np.round(10 * X).astype(int),
    "csr": sp.csr_array,
    "fortran": np.asfortranarray,
    "dask": lambda X: da.from_array(X, chunks=(50, -1)),
    "many": lambda X: np.tile(X, (60, 1)),
    "large": lambda X: 1e150 * X,
    "small": lambda X: 1e-150 * X,
    "far from zero": lambda X: X + 1e6,
    "with constant columns": lambda X: np.hstack([X, np.ones((N, 20))]),
    "wide": lambda X: np.hstack([X, RNG.normal(size=(N, 400)) + SHARED[:, :1]]),
}


@pytest.mark.parametrize("storage", STORED)
def test_unlike_units_are_seen_in_every_storage(storage):
    X = STORED[storage](LABS)
    Y = np.tile(SCORES, (X.shape[0] // N, 1))
    (message,) = said(lambda: PLS(2).fit({"labs": X, "scores": Y}))
    assert message.startswith("Unlike units: column 3 of view 'labs' has ")
    model = MVCCA(2)
    assert not said(lambda: model.fit({"labs": X, "scores": Y}))
    assert model.scale_ == SCALED


@pytest.mark.parametrize("model", [MVCCA(2), CCA(2, reg=0.1), PLS(2), GCCA(2)], ids=repr)
def test_unlike_units_of_files_are_seen(model, tmp_path):
    for name, X, are_unlike in (("labs", LABS, True), ("alike", LABS[:, :3], False)):
        np.save(tmp_path / f"{name}.npy", X)
        opened, own = mvcca.open_matrix(tmp_path / f"{name}.npy"), clone(model)
        assert bool(said(lambda o=opened, m=own: m.fit({"x": o, "y": SCORES}))) == (
            are_unlike and isinstance(own, PLS)
        )
        assert isinstance(own, PLS) or own.scale_ == {"x": are_unlike, "y": False}


@pytest.mark.parametrize("missing", ["pairwise", "em"])
def test_unlike_units_are_seen_beside_missing_cells(missing):
    X = np.where(RNG.random(LABS.shape) < 0.1, np.nan, LABS)
    model = CCA(2, reg=0.1, missing=missing)
    assert not said(lambda: model.fit({"labs": X, "scores": SCORES}))
    assert model.scale_ == SCALED
    assert len(said(lambda: CCA(2, reg=0.1, missing=missing, scale=False).fit([X, SCORES]))) == 1


def test_all_batches_are_judged():
    model = MVCCA(2, scale=False)
    assert said(lambda: model.partial_fit(VIEWS[:60])) == [SET_SCALE]
    assert not said(lambda: model.partial_fit(VIEWS[60:]))
    model = MVCCA(2)
    assert not said(lambda: model.partial_fit(VIEWS[:60]).partial_fit(VIEWS[60:]))
    assert model.scale_ == SCALED


def test_confounds_may_have_any_units():
    views = Views({"x": SCORES, "y": SCORES[::-1].copy(), "labs": LABS})
    assert not said(lambda: CCA(2, reg=0.1, confounds="labs").fit(views))


def pca(X):
    return PCA(min(*X.shape, 60) - 1, random_state=0).fit_transform(X)


def word_counts():
    """Zipf's law: a few words in most texts, most words in a few."""
    rng = np.random.default_rng(1)
    return sp.csr_array(rng.poisson(5 / np.arange(1, 400), size=(300, 399)).astype(float))


def svd(counts):
    return TruncatedSVD(50, random_state=0).fit_transform(TfidfTransformer().fit_transform(counts))


CANCER, WINE, PIXELS = load_breast_cancer().data, load_wine().data, load_digits().data
MEANINGFUL = {
    "iris": load_iris().data,
    "exercises": load_linnerud().data,
    "pixels": PIXELS,
    "principal components of pixels": pca(PIXELS),
    "principal components of mixed units": pca(CANCER),
    "word counts": word_counts(),
    "TF-IDF": TfidfTransformer().fit_transform(word_counts()),
    "SVD of TF-IDF": svd(word_counts()),
    "independent columns": RNG.normal(size=(500, 8)) * [1, 1, 1, 1, 1, 1, 1, 1000],
    "two columns": LABS[:, 2:4],
}


@pytest.mark.parametrize("name", MEANINGFUL)
def test_deviations_that_mean_something_do_not_warn(name):
    X = MEANINGFUL[name]
    Y = np.random.default_rng(2).normal(size=(X.shape[0], 3))
    assert not said(lambda: MVCCA(1, reg=1.0, scale=False).fit([X, Y]))
    assert not MVCCA(1, reg=1.0).fit({"x": X, "y": Y}).scale_["x"]


MIXED = {"wine": WINE, "breast cancer": CANCER, "its means": CANCER[:, :10]}


@pytest.mark.parametrize("name", MIXED)
def test_tables_of_measurements_in_their_own_units_warn(name):
    X = MIXED[name]
    Y = np.random.default_rng(2).normal(size=(len(X), 3))
    assert len(said(lambda: MVCCA(1, reg=1.0, scale=False).fit([X, Y]))) == 1
    assert MVCCA(1, reg=1.0).fit({"x": X, "y": Y}).scale_ == {"x": True, "y": False}


def test_the_command_line_says_it(tmp_path, capsys):
    from mvcca.cli import main

    for name, block in VIEWS.items():
        pd.DataFrame(block).to_csv(tmp_path / f"{name}.csv", index=False)
    views = [f"--view={name}={tmp_path / name}.csv" for name in VIEWS.names]
    command = [
        "fit",
        *views,
        "--header=yes",
        "--method=mvcca",
        "--no-tune",
        "--param=scale=false",
        f"--output={tmp_path / 'm.mvcca'}",
    ]
    assert not main(command)
    assert (
        " ".join(capsys.readouterr().err.split()).count(
            SET_SCALE.replace("Set scale", "Set --param scale")
        )
        == 1
    )


# In both, a choice of one view after another depends on the order.
@pytest.mark.parametrize("seed", [3, pytest.param(1, marks=LONG)])
def test_folds_choose_the_same_in_any_order_of_the_views(seed):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(60, 2))
    views = {
        name: factors @ rng.normal(size=(2, p)) + rng.normal(size=(60, p))
        for name, p in {"a": 4, "b": 3, "c": 5, "d": 3}.items()
    }
    views["a"] *= 10.0 ** rng.uniform(-4, 4, 4)
    views["c"] *= 10.0 ** rng.uniform(-4, 4, 5)
    other = {name: views[name] for name in "cadb"}
    tuned = [MVCCA(None, reg="cv").fit(own) for own in (views, other)]
    assert tuned[0].scale_ == tuned[1].scale_
    assert tuned[0].reg_ == tuned[1].reg_
    found = [
        mvcca.RetrievalIndex(model).add({"d": views["d"]}).search(query, target="d", k=5)[0]
        for model in tuned
        for query in [{name: views[name] for name in "bca"}]
    ]
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)
    compared = [
        mvcca.compare(["mvcca"], own, cv=2, budget=None).choice("MVCCA", "object").params["scale"]
        for own in (views, other)
    ]
    assert compared[0] == compared[1]


@pytest.mark.parametrize("scale", [True, "auto"])
@pytest.mark.parametrize(
    "model",
    [
        MLCCA(2, reg=0.1),
        MLCCA(2, reg=0.1, label_similarity="equal", weighting="means"),
        MLCCA(2, reg=0.1, n_neighbors=30, random_state=0),
        MVMLCCA(2, reg=0.1),
        pytest.param(
            MVMLCCA(2, reg=0.1, within="label"),
            marks=pytest.mark.filterwarnings("ignore:.*too few label sets"),
        ),
    ],
    ids=repr,
)
def test_label_methods_have_the_units_of_all_rows_in_files_and_batches(model, scale, tmp_path):
    model = clone(model).set_params(scale=scale)
    rows = {"labs": LABS + CLASSES[:, None] * [0, 0, 1, 0, 2, 0], "scores": SCORES}
    expected = clone(model).fit(rows, CLASSES)
    for name, X in rows.items():
        np.save(tmp_path / f"{name}.npy", X)
    files = {name: mvcca.open_matrix(tmp_path / f"{name}.npy") for name in rows}
    with mvcca.config_context(block_rows=32):
        found = [clone(model).fit(files, CLASSES), clone(model)]
    for part in np.array_split(np.arange(N), 3):
        found[1].partial_fit({name: X[part] for name, X in rows.items()}, CLASSES[part])
    for own in found:
        assert own.scale_ == expected.scale_
        for name in rows:
            assert_close = np.testing.assert_allclose
            assert_close(own.weights_[name], expected.weights_[name], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        MLCCA(None, reg="cv", label_similarity="equal", weighting="means"),
        pytest.param(
            MVMLCCA(None, reg="cv", within="label"),
            marks=pytest.mark.filterwarnings("ignore:.*too few label sets"),
        ),
    ],
    ids=repr,
)
def test_folds_of_files_have_the_units_of_their_training_parts(model, tmp_path):
    rows = {"labs": LABS + CLASSES[:, None] * [0, 0, 1, 0, 2, 0], "scores": SCORES}
    for name, X in rows.items():
        np.save(tmp_path / f"{name}.npy", X)
    files = {name: mvcca.open_matrix(tmp_path / f"{name}.npy") for name in rows}
    with mvcca.config_context(block_rows=32):
        expected, found = (clone(model).fit(own, CLASSES) for own in (rows, files))
    assert (found.reg_, found.scale_) == (expected.reg_, expected.scale_)
    scores = (own.cv_results_["mean_test_score"] for own in (found, expected))
    np.testing.assert_allclose(*scores, rtol=1e-9)
