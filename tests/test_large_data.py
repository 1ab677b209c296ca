"""Data that is not in memory, or comes in pieces: the same model, and nothing lost on the way."""

from __future__ import annotations

import re
import tracemalloc
from functools import reduce
from itertools import product
from operator import add

import dask.array as da
import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from sklearn.base import clone

import mvcca.base.statistic_estimator as base
import mvcca.problem.route as routing
from mvcca import (
    CCA,
    CFA,
    GCCA,
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
    open_matrix,
)
from mvcca.blocks._checked_rows import CheckedRows
from mvcca.machine import config
from mvcca.problem import Rows
from mvcca.statistics import LabelSums, Moments
from mvcca.statistics.moments import moments_of_block
from mvcca.statistics.passes import _accumulate, _blocks, _checkpoint

N_ROWS = 1000

ADDING = [
    CCA(3),
    CCA(3, reg=0.1),
    MVCCA(3, reg=0.1),
    GCCA(3, reg=0.1),
    PLS(3),
    CFA(3),
    Procrustes(3),
    AffineMap(3),
    MLCCA(3),
    MVMLCCA(3, within="sample"),
    MVMLCCA(3, within="sample", label_features="nystroem", n_label_features=4, random_state=0),
    KCCA(3, approximation="nystroem", n_landmarks=30, random_state=0),
    KCCA(3, approximation="fourier", n_landmarks=30, random_state=0),
]


def over(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=repr)


@pytest.fixture(scope="module")
def blocks():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((N_ROWS, 4)) * [2, 1.5, 1.2, 1]
    return {
        name: shared @ rng.standard_normal((4, width)) + rng.standard_normal((N_ROWS, width))
        for name, width in (("image", 12), ("text", 8))
    }


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).integers(0, 4, N_ROWS)


def y_of(estimator, labels):
    return labels if estimator.requires.labels else None


def saved(folder, blocks, kind):
    """The matrices in files of a kind, opened as a user would."""
    opened = {}
    for name, block in blocks.items():
        path = folder / f"{name}.{kind}"
        if kind == "npy":
            np.save(path, block)
            opened[name] = np.load(path, mmap_mode="r")
        elif kind == "h5":
            with h5py.File(path, "w") as file:
                file.create_dataset("x", data=block, chunks=(90, block.shape[1]))
            opened[name] = h5py.File(path)["x"]
        elif kind == "zarr":
            chunks = (130 if name == "image" else 70, block.shape[1])
            opened[name] = zarr.create_array(path, data=block, chunks=chunks)
        else:
            chunks = (130 if name == "image" else 70, 5)
            opened[name] = da.from_array(block, chunks=chunks)
    return opened


def assert_same_model(ours, reference, tolerance=1e-9):
    """Equal correlations, and equal scores up to the accuracy asked for."""
    np.testing.assert_allclose(ours.eigenvalues_, reference.eigenvalues_, atol=tolerance)
    for name, weights in reference.weights_.items():
        size = np.abs(weights).max()
        np.testing.assert_allclose(ours.weights_[name], weights, atol=10 * tolerance * size)
        np.testing.assert_allclose(ours.means_[name], reference.means_[name], rtol=tolerance)


WAYS = [("npy", 1), *product(["npy", "h5", "zarr", "dask"], [None, 7, 400])]
# Every format on one estimator, one format on all; slow tests add other ways to cut blocks.
OF_ALL = {
    ("npy", 400): (),
    ("zarr", None): pytest.mark.slow,
    ("dask", 7): pytest.mark.slow,
    ("npy", 1): pytest.mark.long,
}


@pytest.mark.parametrize(
    ("estimator", "kind", "block_rows"),
    [
        pytest.param(ADDING[0], *WAYS[0], marks=pytest.mark.slow),
        *((ADDING[0], *way) for way in WAYS[1:]),
        *(
            pytest.param(estimator, *way, marks=marks)
            for estimator in ADDING[1:]
            for way, marks in OF_ALL.items()
        ),
    ],
    ids=repr,
)
def test_files_give_the_model_of_the_arrays(
    estimator, kind, block_rows, blocks, labels, tmp_path, request
):
    opened = saved(tmp_path, blocks, kind)
    if kind == "h5":
        request.addfinalizer(lambda: [data.file.close() for data in opened.values()])
    y = y_of(estimator, labels)
    reference = estimator.fit(blocks, y)
    weights, values = reference.weights_, reference.eigenvalues_
    with config_context(block_rows=block_rows):
        ours = estimator.fit(opened, y)
    np.testing.assert_allclose(ours.eigenvalues_, values, atol=1e-9)
    for name in weights:
        np.testing.assert_allclose(ours.weights_[name], weights[name], atol=1e-7)


@pytest.mark.parametrize("n_blocks", [1, 3, 50, 1000])
@pytest.mark.parametrize("offset", [0, 1e6])
def test_moments_add_up_in_any_order(n_blocks, offset, blocks):
    views = Views({name: block + offset for name, block in blocks.items()})
    whole = Moments.of(Views(blocks)).covariance()
    parts = np.array_split(np.random.default_rng(3).permutation(N_ROWS), n_blocks)
    moments = reduce(add, (moments_of_block(views[rows], None, np.float64) for rows in parts))
    np.testing.assert_allclose(moments.covariance(), whole, atol=1e-9 * np.abs(whole).max())


@pytest.mark.parametrize("offset", [0, 1e6])
@pytest.mark.parametrize("block_rows", [1, 37, None])
def test_float32_rows_far_from_zero_keep_five_digits_of_correlations(offset, block_rows, blocks):
    rng = np.random.default_rng(4)
    # Whole numbers far from zero are exact in float32, so that only our rounding is judged.
    whole = {n: np.round(8 * b + rng.standard_normal(b.shape[1])) for n, b in blocks.items()}
    reference = CCA(3).fit(whole)
    with config_context(block_rows=block_rows):
        ours = CCA(3).fit({n: (b + offset).astype(np.float32) for n, b in whole.items()})
    np.testing.assert_allclose(ours.eigenvalues_, reference.eigenvalues_, atol=1e-5)
    for name, weights in reference.weights_.items():
        size = np.abs(weights).max()
        np.testing.assert_allclose(ours.weights_[name], weights, atol=2e-4 * size)


def few_of_many(folder, n_columns, n_entries):
    """Sparse rows, twice: in memory and in files."""
    rng = np.random.default_rng(8)
    columns = rng.integers(n_columns, size=(2, N_ROWS, n_entries))
    columns[1, :, 0] = columns[0, :, 0]  # what views have in common
    rows = np.repeat(np.arange(N_ROWS), n_entries)
    entries = 1 + rng.random((2, N_ROWS * n_entries))
    held, opened = {}, {}
    for name, own, values in zip("ab", columns, entries, strict=True):
        held[name] = sp.csr_array((values, (rows, own.ravel())), shape=(N_ROWS, n_columns))
        sp.save_npz(folder / f"{name}.npz", held[name])
        opened[name] = open_matrix(folder / f"{name}.npz")
    return held, opened


def test_rows_of_many_columns_and_few_entries_are_not_read_in_crumbs(labels, tmp_path, monkeypatch):
    held, opened = few_of_many(tmp_path, 30_000, 20)
    seen = rows_read(monkeypatch)
    encoded = Labels.of(labels)
    sums = LabelSums.of(Views(opened), encoded).sums
    assert seen == [N_ROWS, N_ROWS]  # a row takes 244 bytes, and would take 240,000 if dense
    expected = [
        sp.hstack(list(held.values())).tocsr()[encoded.codes == c].sum(axis=0) for c in (0, 1)
    ]
    np.testing.assert_allclose(sums[:2], np.vstack(expected), rtol=1e-12)


@over([CCA(2), MLCCA(2), MVMLCCA(2, within="sample")])
def test_blocks_of_sparse_files_go_by_entries_and_give_the_same_model(
    estimator, labels, tmp_path, monkeypatch
):
    held, opened = few_of_many(tmp_path, 40, 3)
    y = y_of(estimator, labels)
    reference = estimator.fit({name: rows.toarray() for name, rows in held.items()}, y)
    monkeypatch.setattr(config, "_BLOCK_BYTES", 2**14)
    seen = rows_read(monkeypatch)
    ours = estimator.fit(Views(opened), y)
    # A row takes 40 bytes of the 8,192 of a block, and 320 if dense; views are read alone, or both.
    assert 8192 / 80 - 1 <= max(seen) <= 8192 / 40
    np.testing.assert_allclose(ours.eigenvalues_, reference.eigenvalues_, atol=1e-9)
    scores, expected = ours.transform(opened), reference.transform(held)
    for name, of_view in expected.items():
        np.testing.assert_allclose(scores[name], of_view, atol=1e-8)


@over([CCA(2), MVMLCCA(2, within="sample"), MLCCA(2)])
def test_unpaired_and_partly_paired_files_fit_as_arrays_do(estimator, blocks, labels, tmp_path):
    opened = saved(tmp_path, blocks, "npy")
    index = np.column_stack([np.arange(N_ROWS), np.arange(N_ROWS)[::-1]])
    index[::3, 0] = -1
    index[1::3, 1] = -1
    y = y_of(estimator, labels)
    reference = estimator.fit(Views(blocks, index), y).eigenvalues_
    with config_context(block_rows=64):
        np.testing.assert_allclose(
            estimator.fit(Views(opened, index), y).eigenvalues_, reference, atol=1e-9
        )
    if y is not None:
        tall = {"image": blocks["image"], "text": blocks["text"][:600]}
        lazy = {"image": opened["image"], "text": opened["text"][:600]}
        per_view = {"image": labels, "text": labels[:600]}
        reference = estimator.fit(tall, per_view).eigenvalues_
        with config_context(block_rows=64):
            ours = estimator.fit(lazy, per_view).eigenvalues_
        np.testing.assert_allclose(ours, reference, atol=1e-9)


def test_two_lone_files_are_two_views_as_two_matrices_are(blocks, tmp_path):
    opened = saved(tmp_path, blocks, "npy")
    reference = CCA(2).fit(*blocks.values())
    with config_context(block_rows=100):
        ours = CCA(2).fit(*opened.values())
        scores = ours.transform(*opened.values())
    assert_same_model(ours, reference)
    assert ours.n_features_in_ == reference.n_features_in_
    for a, b in zip(scores, reference.transform(*blocks.values()), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert ours.score(*opened.values()) == pytest.approx(reference.score(*blocks.values()))


def test_methods_that_need_all_rows_read_them(blocks, tmp_path):
    blocks = {name: X[:400] for name, X in blocks.items()}
    opened = saved(tmp_path, blocks, "npy")
    for estimator in (KCCA(2, gamma=0.01), NCCA(2), CCA(2, reg="auto")):
        reference = estimator.fit(blocks).transform(blocks)
        with config_context(block_rows=120):
            ours = estimator.fit(opened).transform(opened)
        for name, scores in reference.items():
            np.testing.assert_allclose(ours[name], scores, atol=1e-6)


def rows_read(monkeypatch):
    """Heights of the blocks that statistics are added up of, as they are read."""
    read, seen = _accumulate.blocks_read_ahead, []

    def counted(*args):
        for block in read(*args):
            seen.append(len(block[0]))
            yield block

    monkeypatch.setattr(_accumulate, "blocks_read_ahead", counted)
    return seen


def test_no_more_than_a_block_of_a_file_is_read_at_once(blocks, tmp_path, monkeypatch):
    opened = saved(tmp_path, blocks, "npy")
    seen = rows_read(monkeypatch)
    with config_context(block_rows=64):
        CCA(2).fit(opened)
    assert max(seen) == 64
    assert sum(seen) == N_ROWS


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_number_in_a_file_is_named_by_view_and_rows(value, blocks, tmp_path):
    bad = {**blocks, "text": blocks["text"].copy()}
    bad["text"][520, 3] = value
    opened = saved(tmp_path, bad, "npy")
    with (
        config_context(block_rows=100),
        pytest.raises(ValueError, match=r"View 'text', rows 500 to 600: Input contains"),
    ):
        CCA(2).fit(opened)


@pytest.mark.parametrize("kind", ["npy", "hdf5", "dask", "sparse"])
def test_a_bad_number_among_rows_that_count_is_named_by_its_place_among_all(kind, blocks, tmp_path):
    bad = {**blocks, "text": blocks["text"].copy()}
    bad["text"][520, 3] = np.nan
    if kind == "sparse":
        sp.save_npz(tmp_path / "text.npz", sp.csr_array(bad["text"]))
        opened = {**bad, "text": open_matrix(tmp_path / "text.npz")}
    else:
        opened = saved(tmp_path, bad, kind)
    weights = np.ones(N_ROWS)
    weights[1::2] = 0
    with (
        config_context(block_rows=100),
        pytest.raises(ValueError, match=r"View 'text', row 520: Input contains NaN"),
    ):
        CCA(2).fit(opened, sample_weight=weights)


@pytest.mark.parametrize(
    "first", [slice(700, 40, -3), np.random.default_rng(6).permutation(900)[:220]]
)
@pytest.mark.parametrize("second", [slice(5, 200), np.arange(199, -1, -1), np.arange(220) % 2 == 0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_errors_name_the_places_that_numpy_selects(first, second, form, tmp_path):
    places = np.arange(900)[first][second]
    X = np.zeros((900, 3))
    X[places[[3, 40]], 1] = np.inf
    if form is np.asarray:
        np.save(tmp_path / "X.npy", X)
        source = open_matrix(tmp_path / "X.npy")
    else:
        sp.save_npz(tmp_path / "X.npz", form(X))
        source = open_matrix(tmp_path / "X.npz")
    chosen = CheckedRows(source, "a", "CCA")[first][second]
    with pytest.raises(ValueError, match=f"View 'a', rows {places[3]}, {places[40]}: "):
        chosen.read(2, 60)
    with pytest.raises(ValueError, match=f"View 'a', row {places[40]}: "):
        chosen.read(4, 60)
    assert not chosen.read(41, 60).sum()


def test_blocks_end_where_chunks_do():
    cut = _blocks._whole_chunks
    assert list(cut((0, 100, 200, 300), 250)) == [slice(0, 200), slice(200, 300)]
    assert list(cut((0, 1000), 250)) == [slice(0, 1000)]
    assert list(cut((0, 10, 500, 510), 100)) == [slice(0, 10), slice(10, 500), slice(500, 510)]


# ---- interruption -------------------------------------------------------------------------------


class Stop(BaseException):
    """As Ctrl-C is, no Exception."""


def interrupt(fit, n_blocks):
    """Stop a fit when it asks for one block more."""
    read, count = _accumulate.blocks_read_ahead, iter(range(10**9))

    def counted(*args):
        for block in read(*args):
            if next(count) == n_blocks:
                raise Stop
            yield block

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_accumulate, "blocks_read_ahead", counted)
        with pytest.raises(Stop):
            fit()


def blocks_read(fit):
    """Fit, and count the blocks."""
    with pytest.MonkeyPatch.context() as patch:
        seen = rows_read(patch)
        fit()
    return seen


RESUMED = [
    CCA(2),
    MLCCA(2),
    MVMLCCA(2, within="sample"),
    MVMLCCA(2, within="sample", label_features="fourier", n_label_features=20, random_state=0),
    PLS(2),
    KCCA(2, approximation="fourier", n_landmarks=20, random_state=0),
]


@over(RESUMED)
@pytest.mark.parametrize(
    "part", [0.5, *(pytest.param(p, marks=pytest.mark.long) for p in (0.2, 0.9))]
)
def test_an_interrupted_fit_resumes_from_its_checkpoint_bit_for_bit(
    estimator, part, blocks, labels, tmp_path, monkeypatch
):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    opened, y = saved(tmp_path, blocks, "npy"), y_of(estimator, labels)
    with config_context(block_rows=90, checkpoint=tmp_path / "whole"):
        n_blocks = len(blocks_read(lambda: estimator.fit(opened, y)))
        reference = estimator.weights_
    with config_context(block_rows=90, checkpoint=tmp_path / "kept"):
        interrupt(lambda: estimator.fit(opened, y), int(part * n_blocks))
        left = len(blocks_read(lambda: estimator.fit(opened, y)))
    for name, weights in reference.items():
        np.testing.assert_array_equal(estimator.weights_[name], weights)
    # The block being read ahead is lost; passes that take a sample of rows take it again.
    assert left <= (1 - part) * n_blocks + 4
    assert not list((tmp_path / "kept").iterdir())


def test_a_checkpoint_of_other_data_is_refused(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    opened = saved(tmp_path, blocks, "npy")
    other = saved(tmp_path, blocks, "h5")
    with config_context(block_rows=100, checkpoint=tmp_path / "kept"):
        interrupt(lambda: CCA(2).fit(opened), 5)
        with pytest.raises(ValueError, match=r"a fit (of|with) other data"):
            CCA(2).fit(other)
        with config_context(block_rows=50), pytest.raises(ValueError, match="block_rows"):
            CCA(2).fit(opened)
        assert len(blocks_read(lambda: CCA(2).fit(opened))) < 8  # it is still there for its own
    for data in other.values():
        data.file.close()


@over(
    [
        CCA(2),
        KCCA(2, approximation="nystroem", n_landmarks=20, random_state=0),
        MLCCA(2),
        MVMLCCA(2, within="sample"),
        PLS(2),
    ]
)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(estimator, blocks, labels, tmp_path):
    estimator = clone(estimator)
    opened, y = saved(tmp_path, blocks, "npy"), y_of(estimator, labels)
    for narrow in ({}, {name: block[:, :6] for name, block in blocks.items()}):
        if narrow:
            estimator.fit(narrow, y)
        before = dict(vars(estimator))
        with config_context(block_rows=100):
            interrupt(lambda: estimator.fit(opened, y), 4)
        assert vars(estimator) == before


def test_progress_is_shown_on_standard_error_when_asked_for(blocks, tmp_path, capsys):
    opened = saved(tmp_path, blocks, "npy")
    with config_context(block_rows=100):
        CCA(2).fit(opened)
        assert capsys.readouterr() == ("", "")
        with config_context(progress=True):
            CCA(2).fit(opened)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"100%.*1.00k/1.00k .*rows/s", err)


def test_features_drawn_anew_do_not_go_on_from_others(blocks, tmp_path, monkeypatch):
    monkeypatch.setattr(_checkpoint, "_SECONDS", 0)
    opened = saved(tmp_path, blocks, "npy")
    model = KCCA(2, approximation="fourier", n_landmarks=20, random_state=None)
    with config_context(block_rows=100, checkpoint=tmp_path / "kept"):
        interrupt(lambda: model.fit(opened), 9)
        with pytest.raises(ValueError, match="random_state=None has drawn anew"):
            model.fit(opened)


# ---- what does not fit ---------------------------------------------------------------------------

REFUSED = {
    "CCA": (CCA(2), "set n_components and reg > 0"),
    "CCA with all components": (CCA(None, reg=1.0), "set n_components and reg > 0"),
    "CCA by folds": (CCA(2, reg="cv"), "set n_components and reg > 0"),
    "GCCA": (GCCA(2, reg=1.0), r"PerView\(TruncatedSVD"),
    "Procrustes": (Procrustes(2), r"CFA\(n_components\)"),
    "LGCFL": (LGCFL(max_iter=3), "MLCCA or MVMLCCA"),
}


def wide_views(width=600):
    rng = np.random.default_rng(0)
    return {n: sp.random_array((200, width), density=0.05, rng=rng, format="csr") for n in "ab"}


@pytest.mark.parametrize("which", REFUSED)
def test_views_whose_matrices_do_not_fit_are_refused_before_any_work(which, monkeypatch):
    estimator, remedy = REFUSED[which]
    monkeypatch.setattr(base, "available_bytes", lambda: 1.5e6)
    monkeypatch.setattr(type(estimator), "statistic_of", None)
    monkeypatch.setattr(Rows, "in_row_space", None)
    message = rf"of views 'a' 200 x 600, 'b' 200 x 600 needs about .*GB.* available\. .*{remedy}"
    with pytest.raises(MemoryError, match=message):
        estimator.fit(wide_views(), np.arange(200) % 3)


def peak_of(function):
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [model for model, _ in REFUSED.values()], ids=repr)
@pytest.mark.filterwarnings("ignore")  # of few rows
def test_no_fit_is_refused_that_would_have_taken_less_memory_than_counted(estimator):
    views, y = wide_views(), np.arange(200) % 3
    peak = peak_of(lambda: clone(estimator).fit(views, y))
    counted = estimator._bytes_of_matrices(Views(views))
    assert counted <= peak


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        CCA(3, reg=0.1),
        MVMLCCA(3, reg=0.1),
        *(
            pytest.param(estimator, marks=pytest.mark.slow)
            for estimator in (
                CCA(3, reg="auto"),
                CCA(3, missing="pairwise", reg=0.1),
                CCA(3, confounds="sound"),
                MVCCA(3, reg=0.1, scale=True),
                PLS(3),
                MLCCA(3, reg=0.1),
                AffineMap(reg=0.1, scale=True),
                KCCA(3, approximation="nystroem", n_landmarks=50, random_state=0),
            )
        ),
    ],
    ids=repr,
)
def test_rows_in_memory_are_not_copied(estimator):
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((60_000, 3), dtype=np.float32)
    views = {
        name: latent @ rng.standard_normal((3, width), dtype=np.float32)
        + rng.standard_normal((len(latent), width), dtype=np.float32)
        for name, width in (("image", 60), ("text", 50), ("sound", 2))
    }
    if getattr(estimator, "confounds", None) is None:
        del views["sound"]
    labels = np.arange(len(latent)) % 10
    peaks = []
    with config_context(block_rows=1_000):
        for n in (1_000, 20_000, 60_000):  # the first one imports and compiles
            part = {name: X[:n] for name, X in views.items()}
            peaks.append(peak_of(lambda part=part, n=n: estimator.fit(part, labels[:n])))
    rows = 40_000 * sum(X.shape[1] for X in views.values()) * 4
    assert peaks[2] - peaks[1] < rows / 4


def test_products_with_rows_and_sums_by_label_need_no_matrices(monkeypatch):
    monkeypatch.setattr(base, "available_bytes", lambda: 1.5e6)
    monkeypatch.setattr(routing, "cheapest", lambda routes: routes["operator"])
    views, y = wide_views(), np.arange(200) % 3
    assert CCA(2, reg=1.0).fit(views).n_components_ == 2
    assert MLCCA(2, weighting="means").fit(wide_views(1100), y).n_components_ == 2
    assert CFA(2).fit(views).n_components_ == 2
