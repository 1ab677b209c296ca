"""Rows on a device (torch, CuPy, a strict array library) against the same rows in NumPy."""

from __future__ import annotations

import pickle
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from sklearn.base import clone

from mvcca import (
    CCA,
    CFA,
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
    Labels,
    Procrustes,
    Views,
    config_context,
)
from mvcca.blocks import as_block, namespace, to_host
from mvcca.machine import devices as _devices
from mvcca.problem import _on_device
from mvcca.retrieval import RetrievalIndex, evaluate_retrieval, top_k
from mvcca.similarity import LabelGram
from mvcca.statistics import LabelSums, Moments
from mvcca.statistics import moments as of_rows

# ---- places where rows may be: where there is no GPU, one skipped test says so -------------------


def on_torch(rows):
    return pytest.importorskip("torch").asarray(rows)


def on_strict(rows):
    strict = pytest.importorskip("array_api_strict")
    return strict.asarray(rows, device=strict.Device("device1"))  # which NumPy cannot read


def on_torch_cuda(rows):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no GPU")
    return torch.asarray(rows, device="cuda")


def on_cupy(rows):
    cupy = pytest.importorskip("cupy")
    try:
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDARuntimeError
        pytest.skip(f"CuPy finds no GPU: {error}")
    return cupy.asarray(rows)


def has_gpu():
    torch = find_spec("torch") and import_module("torch")
    return bool(find_spec("cupy") or (torch and torch.cuda.is_available()))


CPU = [  # CI tries both
    pytest.param(on_torch, id="torch", marks=pytest.mark.slow),
    pytest.param(on_strict, id="strict"),
]
GPU = [
    pytest.param(on_torch_cuda, id="torch-cuda", marks=pytest.mark.gpu),
    pytest.param(on_cupy, id="cupy", marks=pytest.mark.gpu),
]
everywhere = pytest.mark.parametrize("place", CPU + (GPU if has_gpu() else []))

N = 400
RNG = np.random.default_rng(0)
LABELS = (RNG.random((N, 6)) < 0.3).astype(int)
LABELS[LABELS.sum(axis=1) == 0, 0] = 1
REAL_LABELS = LABELS @ RNG.normal(size=(6, 3)) + 0.1 * RNG.normal(size=(N, 3))
CLASSES = LABELS[:, 0] + 2 * LABELS[:, 1]
WEIGHTS = RNG.integers(1, 4, N).astype(float)


def blocks(dtype=np.float64, mean=0.0):
    rng = np.random.default_rng(1)
    return {
        name: (LABELS @ rng.normal(size=(6, d)) + rng.normal(size=(N, d)) / 2 + mean).astype(dtype)
        for name, d in (("a", 5), ("b", 4))
    }


def partly_paired(parts):
    index = np.where(np.random.default_rng(2).random((N, 2)) < 0.8, np.arange(N)[:, None], -1)
    return Views(parts, index)


def moved(views, place):
    return views.replace({name: place(block) for name, block in views.items()})


ESTIMATORS = {
    "CCA": (CCA(3), None),
    "MVCCA": (MVCCA(3, reg="auto", power=1), None),
    "GCCA": (GCCA(3, reg=0.1), None),
    "PLS": (PLS(3), None),
    "PLS regression": (PLS(3, algorithm="regression", scale=True), None),
    "CFA": (CFA(3), None),
    "Procrustes": (Procrustes(3), None),
    "AffineMap": (AffineMap(3), None),
    "KCCA fourier": (KCCA(3, approximation="fourier", n_landmarks=40, random_state=0), None),
    "KCCA nystroem": (KCCA(3, approximation="nystroem", n_landmarks=40, random_state=0), None),
    "NCCA": (NCCA(2, bandwidth=1.0, random_state=0), None),
    "MVMLCCA sets": (MVMLCCA(3, within="label"), LABELS),
    "MVMLCCA exp": (MVMLCCA(3, label_similarity="exp", within="sample"), LABELS),
    "MVMLCCA real": (MVMLCCA(3, sigma=2.0, within="label"), REAL_LABELS),
    "MVMLCCA exp real": (MVMLCCA(3, label_similarity="exp", within="label"), REAL_LABELS),
    "MVMLCCA cosine": (MVMLCCA(3, label_similarity="cosine", within="sample"), LABELS),
    "MVMLCCA features": (
        MVMLCCA(3, label_features="fourier", within="sample", random_state=0),
        LABELS,
    ),
    "MLCCA": (MLCCA(3), LABELS),
    "MLCCA equal": (MLCCA(3, label_similarity="equal"), CLASSES),
    "MLCCA callable": (MLCCA(3, label_similarity=lambda A, B: (A @ B.T + 1) / 7), LABELS),
    "MLCCA means": (MLCCA(3, weighting="means"), LABELS),
    "MLCCA neighbours": (MLCCA(3, n_neighbors=5, random_state=0), LABELS),
    "LGCFL": (LGCFL(reg=0.1), CLASSES),
    "JRL": (JRL(reg=0.05), CLASSES),
}
NO_WEIGHTS = ("NCCA", "JRL")
all_estimators = pytest.mark.parametrize("which", ESTIMATORS)


def fitted(which, views, **more):
    estimator, y = ESTIMATORS[which]
    return clone(estimator).fit(views, y, **more)


def found(model):
    if hasattr(model, "eigenvalues_"):
        return model.eigenvalues_
    return getattr(model, "canonical_correlations_", np.zeros(1))


def assert_same_model(model, expected, views, rtol, angle):
    values = found(expected)
    np.testing.assert_allclose(found(model), values, rtol=rtol, atol=rtol * np.abs(values).max())
    for name, block in views.items():
        ours, theirs = (m.transform({name: block})[name] for m in (model, expected))
        assert ours.shape == theirs.shape
        if np.any(theirs):
            assert subspace_angles(ours.astype(float), theirs.astype(float)).max() < angle


# ---- the same model ------------------------------------------------------------------------------


@everywhere
@all_estimators
def test_rows_on_a_device_give_the_model_of_numpy_rows(which, place):
    for mean in (0.0, 1e6):
        views = Views(blocks(mean=mean))
        model = fitted(which, moved(views, place))
        assert_same_model(model, fitted(which, views), views, rtol=1e-9, angle=1e-6)


@everywhere
@all_estimators
def test_single_precision_on_a_device_is_as_good_as_in_numpy(which, place):
    for mean in (0.0, 1e6):
        views = Views(blocks(np.float32, mean))
        model = fitted(which, moved(views, place))
        assert_same_model(model, fitted(which, views), views, rtol=1e-5, angle=2e-3)


@everywhere
@pytest.mark.parametrize("which", [name for name in ESTIMATORS if name not in NO_WEIGHTS])
def test_weights_count_on_a_device(which, place):
    views = Views(blocks())
    model = fitted(which, moved(views, place), sample_weight=place(WEIGHTS))
    expected = fitted(which, views, sample_weight=WEIGHTS)
    assert_same_model(model, expected, views, rtol=1e-9, angle=1e-6)


@everywhere
@pytest.mark.parametrize("which", ["MVCCA", "KCCA fourier", "MVMLCCA exp", "MLCCA"])
def test_partly_paired_views_on_a_device_give_the_model_of_numpy_rows(which, place):
    views = partly_paired(blocks())
    model = fitted(which, moved(views, place))
    assert_same_model(model, fitted(which, views), views, rtol=1e-9, angle=1e-6)


@everywhere
@pytest.mark.parametrize("make", [Views, partly_paired])
@pytest.mark.parametrize("which", ["MVCCA", "MVMLCCA exp", "MLCCA"])
def test_views_on_a_device_and_on_the_host_go_together(which, make, place):
    views = make(blocks())
    mixed = views.replace({"a": place(views["a"]), "b": views["b"]})
    beside_sparse = views.replace({"a": place(views["a"]), "b": csr_array(views["b"])})
    expected = fitted(which, views)
    for together in (mixed, beside_sparse):
        assert_same_model(fitted(which, together), expected, views, rtol=1e-9, angle=1e-6)


@everywhere
def test_more_features_than_rows_on_a_device_give_the_model_of_numpy_rows(place):
    rng = np.random.default_rng(3)
    shared = rng.normal(size=(30, 3))
    parts = [shared @ rng.normal(size=(3, d)) + rng.normal(size=(30, d)) for d in (80, 50)]
    views = Views(parts)
    model, expected = CCA(2, reg=0.1).fit(moved(views, place)), CCA(2, reg=0.1).fit(views)
    assert_same_model(model, expected, views, rtol=1e-9, angle=1e-6)


@everywhere
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (CCA(3), None),
        (KCCA(3, approximation="fourier", gamma=0.1, n_landmarks=40, random_state=0), None),
        (MVMLCCA(3, within="sample"), LABELS),
        (MLCCA(3), LABELS),
    ],
    ids=["CCA", "KCCA", "MVMLCCA", "MLCCA"],
)
def test_batches_on_a_device_give_what_fit_gives(estimator, y, place):
    views = Views(blocks())
    batched = clone(estimator)
    for rows in (slice(0, 150), slice(150, N)):
        batched.partial_fit(moved(views[rows], place), None if y is None else y[rows])
    expected = clone(estimator).fit(views, y)
    assert_same_model(batched, expected, views, rtol=1e-9, angle=1e-6)


@pytest.mark.parametrize("place", CPU + GPU)
def test_models_are_numpy_wherever_the_rows_are(place):
    model = MVMLCCA(3, within="label").fit(moved(Views(blocks()), place), LABELS)
    learned = [*model.weights_.values(), *model.means_.values(), model.eigenvalues_]
    assert all(type(array) is np.ndarray and array.dtype == np.float64 for array in learned)


# ---- statistics ----------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("make", [Views, partly_paired])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("rows", [None, 1, 7])
def test_moments_on_a_device_are_those_of_numpy_rows(rows, weights, make, place):
    views = make(blocks(mean=100.0))
    with config_context(block_rows=rows):
        moments = Moments.of(moved(views, place), weights)
    expected = Moments.of(views, weights)
    np.testing.assert_allclose(moments.counts, expected.counts)
    np.testing.assert_allclose(moments.covariance(), expected.covariance(), atol=1e-10)
    for name, mean in expected.mean().items():
        np.testing.assert_allclose(moments.mean()[name], mean, rtol=1e-12)


@everywhere
def test_many_rows_in_single_precision_far_from_zero_keep_their_covariance(place):
    rows = (np.random.default_rng(0).normal(size=(10_000, 3)) + 1e6).astype(np.float32)
    expected = np.cov(rows.astype(np.float64).T)
    for views in (Views([rows]), Views([place(rows)])):
        np.testing.assert_allclose(Moments.of(views).covariance(), expected, atol=1e-5)


@everywhere
@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_on_a_device_has_no_variance(dtype, value, place):
    rows = blocks(dtype)["a"].copy()
    rows[:, 1] = value
    covariance = Moments.of(Views([place(rows)])).covariance()
    assert not covariance[1].any()
    assert not covariance[:, 1].any()


@everywhere
@pytest.mark.parametrize("similarity", ["sqexp", "exp", "cosine", "equal"])
@pytest.mark.parametrize("labels", [LABELS, REAL_LABELS], ids=["sets", "real"])
def test_label_sums_on_a_device_are_those_of_numpy_rows(labels, similarity, place):
    views = Views(blocks())
    encoded = Labels.of(labels)
    expected = LabelSums.of(views, encoded, WEIGHTS)
    gram = LabelGram(encoded, similarity)
    for block_rows in (None, 13):
        with config_context(block_rows=block_rows):
            sums = LabelSums.of(moved(views, place), encoded, WEIGHTS)
        np.testing.assert_allclose(sums.sums, expected.sums, atol=1e-11)
        np.testing.assert_allclose(
            sums.covariance(gram), expected.covariance(gram), rtol=1e-10, atol=1e-12
        )
        np.testing.assert_allclose(sums.row_weights(gram), expected.row_weights(gram), rtol=1e-11)


@everywhere
def test_label_sums_of_a_device_add_and_travel_as_numpy(place):
    views = Views(blocks())
    there, here = (LabelSums.of(v, Labels.of(LABELS)) for v in (moved(views, place), views))
    for sums in (pickle.loads(pickle.dumps(there)), there + here):
        assert type(sums) is LabelSums
        assert type(sums.sums) is np.ndarray
    np.testing.assert_allclose((there + here).sums, 2 * here.sums, atol=1e-11)


@everywhere
def test_a_fit_of_rows_on_a_device_resumes_from_its_checkpoint(place, tmp_path):
    views = Views(blocks())
    with config_context(checkpoint=tmp_path, block_rows=50):
        model = MVMLCCA(3, within="label").fit(moved(views, place), LABELS)
    assert_same_model(
        model, MVMLCCA(3, within="label").fit(views, LABELS), views, rtol=1e-9, angle=1e-6
    )


# ---- what comes out ------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@all_estimators
def test_scores_are_where_the_rows_are_and_in_their_precision(which, dtype, place):
    views = Views(blocks(dtype))
    model = fitted(which, views)
    there = moved(views, place)
    scores = model.transform(there)
    assert isinstance(scores, Views)
    for name, expected in model.transform(views).items():
        assert type(scores[name]) is type(there[name])
        assert scores[name].dtype == there[name].dtype
        assert scores[name].device == there[name].device
        tolerance = 1e-9 if dtype == np.float64 else 1e-3
        np.testing.assert_allclose(
            to_host(scores[name]), expected, atol=tolerance * np.abs(expected).max()
        )


@everywhere
def test_scores_come_in_the_container_of_the_rows(place):
    parts = blocks()
    there = {name: place(block) for name, block in parts.items()}
    model = CCA(2).fit(parts)
    assert list(model.transform(there)) == ["a", "b"]
    assert isinstance(model.transform(list(there.values())), list)
    assert isinstance(model.transform({"b": there["b"]})["b"], type(there["b"]))


@everywhere
def test_two_lone_matrices_on_a_device_are_two_views(place):
    X, Y = blocks().values()
    model, expected = CCA(2).fit(place(X), place(Y)), CCA(2).fit(X, Y)
    np.testing.assert_allclose(
        model.canonical_correlations_, expected.canonical_correlations_, rtol=1e-9
    )
    scores = model.transform(place(X), place(Y))
    assert [type(block) for block in scores] == [type(place(X))] * 2
    assert model.n_features_in_ == X.shape[1]
    one_column = CCA(1).fit(place(X), place(Y[:, 0]))
    np.testing.assert_allclose(
        one_column.canonical_correlations_,
        CCA(1).fit(X, Y[:, 0]).canonical_correlations_,
        rtol=1e-9,
    )


@everywhere
@all_estimators
def test_score_of_rows_on_a_device_is_that_of_numpy_rows(which, place):
    views, y = Views(blocks()), ESTIMATORS[which][1]
    model = fitted(which, views)
    score = model.score(moved(views, place), y)
    assert isinstance(score, float)
    assert score == pytest.approx(model.score(views, y), abs=1e-9)


@everywhere
def test_labels_may_be_on_a_device(place):
    parts = blocks()
    model = MVMLCCA(3, within="label").fit(parts, place(LABELS))
    np.testing.assert_allclose(
        model.eigenvalues_, MVMLCCA(3, within="label").fit(parts, LABELS).eigenvalues_
    )
    unpaired = {"a": parts["a"][:200], "b": parts["b"][150:]}
    labels = {"a": LABELS[:200], "b": LABELS[150:]}
    there = {name: place(part) for name, part in labels.items()}
    assert model.score(unpaired, there) == pytest.approx(model.score(unpaired, labels))
    tables = [
        evaluate_retrieval(unpaired, y, measures="map", estimator=model) for y in (there, labels)
    ]
    assert tables[0].mean() == tables[1].mean()


@everywhere
def test_frames_are_made_of_scores_from_a_device(place):
    pandas = pytest.importorskip("pandas")
    parts = blocks()
    model = CCA(2).fit(parts).set_output(transform="pandas")
    frame = model.transform({"a": place(parts["a"])})["a"]
    pandas.testing.assert_frame_equal(frame, model.transform({"a": parts["a"]})["a"])


def test_tensors_that_ask_for_gradients_are_data_like_any_other():
    torch = pytest.importorskip("torch")
    views = Views({n: torch.asarray(b).requires_grad_() for n, b in blocks().items()})
    model = CCA(2).fit(views)
    assert not model.transform(views)["a"].requires_grad
    assert model.score(views) == pytest.approx(CCA(2).fit(blocks()).score(blocks()))


# ---- Views ---------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("make", [Views, partly_paired])
@pytest.mark.parametrize(
    "rows",
    [slice(3, 50), slice(None, None, 7), slice(None, None, -1), slice(10, 5), slice(390, 999),
     np.array([5, 5, 0]), np.array([-1, 2]), np.arange(N) % 3 == 0, np.array([], dtype=int)],
    ids=["slice", "step", "backwards", "none", "beyond", "positions", "negative", "mask", "empty"],
)  # fmt: skip
def test_rows_are_taken_on_a_device_as_in_numpy(rows, make, place):
    views = make(blocks())
    there = moved(views, place)
    taken, expected = there[rows], views[rows]
    np.testing.assert_array_equal(taken.seen, expected.seen)
    for name, block in expected.items():
        assert taken[name].device == there[name].device
        np.testing.assert_array_equal(to_host(taken[name]), block)


@everywhere
def test_views_on_a_device_are_put_together_there(place):
    views = moved(Views(blocks()), place)
    joined = Views.concatenate([views[:100], views[100:]])
    assert type(joined["a"]) is type(views["a"])
    np.testing.assert_array_equal(to_host(joined["a"]), blocks()["a"])


# ---- the door ------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: np.where(X[3, 1] == X, np.nan, X), "View 'a': Input contains NaN"),
        (lambda X: np.where(X[3, 1] == X, np.inf, X), "View 'a': Input contains infinity"),
        (lambda X: X + 1j, "View 'a': Complex data not supported"),
        (lambda X: X[:, :0], r"View 'a': Found array with 0 feature\(s\)"),
        (lambda X: X[:, 0], "must be a 2-D matrix"),
        (lambda X: X[:, :, None], "must be a 2-D matrix"),
    ],
    ids=["nan", "infinity", "complex", "no features", "1-D", "3-D"],
)
def test_bad_rows_on_a_device_are_refused_as_numpy_rows_are(spoil, message, place):
    parts = blocks()
    spoilt = spoil(parts["a"])
    for rows in (place(spoilt), spoilt):
        with pytest.raises(ValueError, match=message):
            CCA(2).fit({"a": rows, "b": parts["b"]})


@everywhere
def test_too_few_rows_on_a_device_are_refused(place):
    parts = {name: place(block[:1]) for name, block in blocks().items()}
    with pytest.raises(ValueError, match=r"Found array with 1 sample\(s\).* minimum of 2"):
        CCA(2).fit(parts)


@everywhere
def test_a_lone_vector_on_a_device_is_refused(place):
    X, Y = blocks().values()
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array instead"):
        CCA(2).fit(place(X[:, 0]), place(Y))


@everywhere
def test_a_width_that_was_not_fitted_is_refused_on_a_device(place):
    parts = blocks()
    with pytest.raises(ValueError, match=r"'a' has 3 features.* expecting 5"):
        CCA(2).fit(parts).transform({"a": place(parts["a"][:, :3])})


@everywhere
@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.float16])
def test_whole_numbers_and_half_precision_become_doubles_on_a_device(dtype, place):
    if dtype is np.float16 and place is on_strict:
        pytest.skip("the array API standard has no half precision")
    scale = 1 if dtype is np.bool_ else 4
    parts = {name: np.maximum(scale * block, 0) for name, block in blocks().items()}
    views = Views({name: block.astype(dtype) for name, block in parts.items()})
    model = CCA(2).fit(moved(views, place))
    np.testing.assert_allclose(
        model.canonical_correlations_, CCA(2).fit(views).canonical_correlations_, rtol=1e-9
    )
    scores = model.transform(moved(views, place))["a"]
    assert scores.dtype == namespace(scores).float64


def test_sparse_tensors_are_refused():
    torch = pytest.importorskip("torch")
    parts = blocks()
    with pytest.raises(TypeError, match="Pass a sparse matrix of SciPy"):
        CCA(2).fit({"a": torch.asarray(parts["a"]).to_sparse(), "b": parts["b"]})


def test_numpy_rows_are_no_device_blocks():
    rows = np.ones((2, 2))
    values = [rows, rows[0, 0], csr_array(rows), [[1.0]], None]
    assert not any(as_block(value).on_device for value in values)


# ---- wide views, which are solved on the device --------------------------------------------------

LACKING = {  # columns in place of those of the first view
    "full rank": lambda X: X,
    "collinear": lambda X: np.hstack([X, X[:, :1] - 2 * X[:, 1:2]]),
    "constant": lambda X: np.hstack([X, np.full((N, 1), 3.0)]),
}


@everywhere
@pytest.mark.parametrize("lacking", LACKING)
@pytest.mark.parametrize("which", ["CCA", "MVCCA", "GCCA", "MVMLCCA sets", "MVMLCCA exp", "MLCCA"])
def test_wide_views_on_a_device_are_solved_there(which, lacking, place, monkeypatch):
    parts = blocks()
    parts["a"] = LACKING[lacking](parts["a"])
    if which == "MVCCA":
        parts["c"] = parts["b"] @ RNG.normal(size=(4, 3)) + RNG.normal(size=(N, 3))
    views = Views(parts)
    expected = fitted(which, views)
    seen = []

    class Spy(_on_device.DeviceWhitener):
        @classmethod
        def beside(cls, like, B, rounding=0.0):
            seen.append(len(B))
            return super().beside(like, B, rounding)

    monkeypatch.setattr(_on_device, "WIDE", 5)
    monkeypatch.setattr("mvcca.problem._problem.DeviceWhitener", Spy)
    model = fitted(which, moved(views, place))
    assert seen[: len(views.names)] == list(views.widths.values())
    assert model.ranks_ == expected.ranks_
    assert_same_model(model, expected, views, rtol=1e-9, angle=1e-6)
    if hasattr(expected, "expected_correlations_"):
        np.testing.assert_allclose(
            model.expected_correlations_, expected.expected_correlations_, rtol=1e-8
        )


@everywhere
@pytest.mark.parametrize("n_components", [1, 4, None])
def test_any_number_of_components_is_found_on_a_device(n_components, place, monkeypatch):
    wide = {"a": RNG.normal(size=(N, 12)), "b": RNG.normal(size=(N, 9))}
    wide["b"][:, :6] += wide["a"][:, 3:9]
    expected = CCA(n_components, reg=0.01).fit(wide)
    monkeypatch.setattr(_on_device, "WIDE", 5)
    model = CCA(n_components, reg=0.01).fit(moved(Views(wide), place))
    assert_same_model(model, expected, Views(wide), rtol=1e-9, angle=1e-6)


@everywhere
def test_a_ridge_is_chosen_by_folds_on_a_device(place):
    expected = CCA(2, reg="cv").fit(blocks())
    model = CCA(2, reg="cv").fit(moved(Views(blocks()), place))
    assert model.reg_ == expected.reg_
    assert_same_model(model, expected, Views(blocks()), rtol=1e-9, angle=1e-6)


@everywhere
def test_sums_on_a_device_stay_there_until_the_pass_ends_or_a_checkpoint_holds_them(
    place, tmp_path, monkeypatch
):
    views, copied = moved(Views(blocks()), place), []
    whole = of_rows.DeviceMoments.to_host

    def spy(self):
        copied.append(self)
        return whole(self)

    monkeypatch.setattr(of_rows.DeviceMoments, "to_host", spy)
    with config_context(block_rows=50):
        moments = Moments.of(views)
    assert len(copied) == 1
    np.testing.assert_allclose(moments.scatter, Moments.of(Views(blocks())).scatter, rtol=1e-9)
    with config_context(block_rows=50, checkpoint=tmp_path / "pass"):
        model = CCA(3).fit(views)
    assert_same_model(model, fitted("CCA", Views(blocks())), Views(blocks()), 1e-9, 1e-6)


# ---- rows on the host, a device by name ----------------------------------------------------------

DEVICES = [
    pytest.param("torch:cpu", id="torch:cpu"),
    pytest.param("torch:cuda", marks=pytest.mark.gpu),
    pytest.param("cupy", marks=pytest.mark.gpu),
    pytest.param("cuda", marks=pytest.mark.gpu),
]
each_device = pytest.mark.parametrize("device", DEVICES if has_gpu() else DEVICES[:1])


def skip_without(device):
    try:
        _devices.check_device(device)
    except (ImportError, RuntimeError) as error:
        pytest.skip(str(error))


@each_device
@pytest.mark.parametrize("which", ["CCA", "MVMLCCA sets", "MVMLCCA exp", "MLCCA", "KCCA fourier",
                                   "KCCA nystroem", "LGCFL", "JRL"])  # fmt: skip
@pytest.mark.parametrize("make", [Views, partly_paired])
def test_a_named_device_gives_the_model_computed_on_the_host(make, which, device):
    skip_without(device)
    if which in ("JRL", "LGCFL") and make is partly_paired:
        pytest.skip("these methods need paired views")
    views = make(blocks())
    expected = fitted(which, views)
    for block_rows in (None, 60):
        with config_context(device=device, block_rows=block_rows):
            model = fitted(which, views)
        assert_same_model(model, expected, views, rtol=1e-9, angle=1e-6)


@each_device
@pytest.mark.parametrize("which", ["CCA", "MVMLCCA sets"])
def test_rows_in_a_file_are_copied_to_a_named_device_block_by_block(which, device, tmp_path):
    skip_without(device)
    views = Views(blocks(np.float32))
    in_files = {}
    for name, block in views.items():
        np.save(tmp_path / f"{name}.npy", block)
        in_files[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    with config_context(device=device, block_rows=37):
        model = fitted(which, Views(in_files))
    assert_same_model(model, fitted(which, views), views, rtol=1e-5, angle=2e-3)


@each_device
def test_products_of_dense_rows_are_taken_on_the_named_device(device, monkeypatch):
    skip_without(device)
    seen = []
    compute = of_rows._scatter_on_device

    def spy(left, *others):
        seen.append(left[0].shape[0])
        return compute(left, *others)

    monkeypatch.setattr(of_rows, "_scatter_on_device", spy)
    with config_context(device=device, block_rows=100):
        CCA(2).fit(blocks())
    assert sum(seen) == N
    seen.clear()
    with config_context(device=device, block_rows=100):
        CCA(2).fit({name: csr_array(block) for name, block in blocks().items()})
    CCA(2).fit(blocks())
    assert not seen


@each_device
def test_rows_that_are_read_only_or_run_backwards_are_copied_to_a_device(device):
    skip_without(device)
    parts = blocks()
    backwards = {name: block[::-1] for name, block in parts.items()}
    for block in backwards.values():
        block.flags.writeable = False
    with config_context(device=device):
        model = CCA(2).fit(backwards)
    np.testing.assert_allclose(
        model.canonical_correlations_, CCA(2).fit(parts).canonical_correlations_, rtol=1e-9
    )


@pytest.mark.parametrize("rows", [RNG.random((1, 3))[::-1], RNG.random((3, 1))[:, ::-1]])
def test_an_axis_of_length_one_may_run_backwards(rows):
    there = pytest.importorskip("torch").asarray(_devices.writable(rows))
    np.testing.assert_array_equal(to_host(there), rows)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize(
    "rows",
    [
        RNG.random((777, 13)),
        RNG.random((777, 26)).astype(np.float32)[::-1, ::2],
        RNG.random((2, 3000)),
        np.zeros((0, 3)),
        np.zeros((4, 0)),
    ],
    ids=lambda rows: str(rows.shape),
)
def test_rows_pass_through_two_pinned_buffers_per_thread(rows, n_threads, monkeypatch):
    monkeypatch.setattr(_devices, "_PIECE_BYTES", 5_000)
    monkeypatch.setattr(_devices, "n_threads_of_blocks", lambda: n_threads)
    made, waited = [], []

    def buffer(n_bytes):
        event = SimpleNamespace(synchronize=lambda: waited.append(n_bytes))
        made.append((np.empty(n_bytes, np.uint8), event))
        return made[-1]

    def send(part, staged, event):
        assert event is made[len(sent) % 2][1]
        sent.append(part)
        there[part] = staged

    staging = _devices._Staging(buffer)
    for _ in range(2):
        there, sent = np.full(rows.shape, np.nan, rows.dtype), []
        staging.copy(rows, send)
        np.testing.assert_array_equal(there, rows)
    assert len(made) == (2 if rows.size else 0)
    assert len(waited) == (2 * (len(sent) + 2) if rows.size else 0)


@pytest.fixture
def _no_device_known():
    _devices._find.cache_clear()
    yield
    _devices._find.cache_clear()


def failing_count():
    raise RuntimeError("cudaErrorInsufficientDriver")


WITHOUT_GPU = {
    "cupy": SimpleNamespace(
        cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=failing_count))
    ),
    "torch": SimpleNamespace(
        cuda=SimpleNamespace(device_count=lambda: 0), version=SimpleNamespace(cuda="12.8")
    ),
}


def importer(libraries):
    def import_module(name):
        library = name.split(".")[-1]
        if library not in libraries:
            raise ImportError(f"No module named {library!r}")
        return WITHOUT_GPU[library]

    return import_module


@pytest.mark.usefixtures("_no_device_known")
@pytest.mark.parametrize(
    ("libraries", "device", "kind", "message"),
    [
        ((), "cuda", RuntimeError,
         r"CuPy cannot be imported \(No module named 'cupy'\); torch cannot be imported .*"
         r"pip install 'mvcca\[gpu\]'"),
        (("cupy", "torch"), "cuda", RuntimeError,
         r"CuPy finds no GPU \(cudaErrorInsufficientDriver\); torch finds no GPU.*mvcca\[gpu\]"),
        (("torch",), "cuda:1", RuntimeError, "'cuda:1' needs an NVIDIA GPU"),
        (("torch",), "torch:cuda:0", RuntimeError, "'torch:cuda:0' needs .*torch finds no GPU"),
        (("torch",), "cupy:0", ImportError, r"CuPy cannot be imported.*'mvcca\[gpu\]'"),
        (("cupy",), "torch:cpu", ImportError, r"torch cannot be imported.*'mvcca\[deep\]'"),
    ],
)  # fmt: skip
def test_a_device_that_is_not_there_is_refused_by_what_is_missing(
    libraries, device, kind, message, monkeypatch
):
    monkeypatch.setattr(_devices, "import_module", importer(libraries))
    with pytest.raises(kind, match=message), config_context(device=device):
        pass


@pytest.mark.parametrize("device", ["gpu", "cuda:one", "torch", "torch:cpu:0", "", "CUDA"])
def test_a_name_that_is_no_device_is_refused(device):
    with (
        pytest.raises(ValueError, match="Expected device to be None, 'cuda'"),
        config_context(device=device),
    ):
        pass


def test_a_device_is_named_by_a_string():
    with pytest.raises(TypeError, match="device must be a string"), config_context(device=0):
        pass


# ---- retrieval -----------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("similarity", ["inner", "cosine", "euclidean"])
@pytest.mark.parametrize("values", ["ties", "reals"])
@pytest.mark.parametrize("exclude_self", [False, True])
def test_a_gallery_on_a_device_is_ranked_as_in_numpy(exclude_self, values, similarity, place):
    rng = np.random.default_rng(0)
    draw = rng.normal if values == "reals" else lambda size: rng.integers(-2, 3, size).astype(float)
    gallery = draw(size=(91, 3))
    queries = gallery if exclude_self else draw(size=(40, 3))
    for k, block_rows in product((1, 5, 90), (None, 7)):
        scores, items = top_k(queries, gallery, k, similarity, exclude_self)
        with config_context(block_rows=block_rows):
            there = top_k(place(queries), place(gallery), k, similarity, exclude_self)
        assert all(type(array) is np.ndarray for array in there)
        np.testing.assert_array_equal(there[1], items)
        np.testing.assert_allclose(there[0], scores, atol=1e-12)


@everywhere
def test_queries_and_gallery_need_not_be_in_one_place(place):
    rng = np.random.default_rng(0)
    queries, gallery = rng.normal(size=(9, 3)), rng.normal(size=(50, 3))
    _, items = top_k(queries, gallery, 5)
    for q, g in ((place(queries), gallery), (queries, place(gallery))):
        np.testing.assert_array_equal(top_k(q, g, 5)[1], items)


@everywhere
def test_scores_from_a_device_are_evaluated_as_numpy_scores_are(place):
    views = Views(blocks())
    scores = CCA(3).fit(views).transform(views)
    there = moved(scores, place)
    assert str(evaluate_retrieval(there, LABELS)) == str(evaluate_retrieval(scores, LABELS))


@everywhere
def test_an_index_answers_queries_from_a_device(place):
    parts = blocks()
    model = CCA(3).fit(parts)
    index = RetrievalIndex(model).add({name: place(block) for name, block in parts.items()})
    expected = RetrievalIndex(model).add(parts).search({"a": parts["a"][:9]}, target="b", k=4)
    found = index.search({"a": place(parts["a"][:9])}, target="b", k=4)
    np.testing.assert_array_equal(found[1], expected[1])
