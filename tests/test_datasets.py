"""Planted models give the answer they promise, and data files arrive as they were stored.

The judges of the planted models are scipy's decompositions of samples and covariances; of what is
read, files written here by hand and figures published about the data.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh, sqrtm, svdvals
from scipy.sparse import csr_array, issparse
from sklearn.datasets import load_digits

from mvcca import datasets
from mvcca.datasets import _coco, _real, _spoken_digits
from mvcca.views import Views


def empirical_correlations(x, y):
    """Canonical correlations: singular values of Qx' Qy (Björck & Golub 1973)."""
    q = [np.linalg.qr(block - block.mean(axis=0))[0] for block in (x, y)]
    return svdvals(q[0].T @ q[1])


def same_views(a, b):
    return a.names == b.names and all(np.array_equal(a[name], b[name]) for name in a.names)


# ---- digits


@pytest.mark.parametrize("parts", ["halves", "quadrants"])
def test_parts_of_a_digit_put_together_are_the_image(parts):
    data = datasets.load_digits_views(parts)
    drawn = {
        name: data.views[name].reshape(-1, *data.image_shapes[name]) for name in data.views.names
    }
    if parts == "halves":
        whole = np.concatenate([drawn["left"], drawn["right"]], axis=2)
    else:
        rows = [
            np.concatenate([drawn[f"{row}_left"], drawn[f"{row}_right"]], axis=2)
            for row in ("top", "bottom")
        ]
        whole = np.concatenate(rows, axis=1)
    np.testing.assert_array_equal(whole, load_digits().images)


def test_digits_are_the_labels_of_digits_views():
    data = datasets.load_digits_views()
    np.testing.assert_array_equal(data.labels, load_digits().target)
    assert data.views.is_paired
    assert {data.views[name].dtype for name in data.views.names} == {np.dtype(float)}


def test_segments_draw_the_digit_of_a_seven_segment_display():
    drawings = (
        " _       _   _       _   _   _   _   _  ",
        "| |   |  _|  _| |_| |_  |_    | |_| |_| ",
        "|_|   | |_   _|   |  _| |_|   | |_|  _| ",
    )
    # Place of each segment in a drawing of 3 x 3 characters.
    places = {
        "a": (0, 1),
        "f": (1, 0),
        "g": (1, 1),
        "b": (1, 2),
        "e": (2, 0),
        "d": (2, 1),
        "c": (2, 2),
    }
    data = datasets.load_digits_views(labels="segments")
    for digit in range(10):
        start = 4 * digit
        lit = {
            segment
            for segment, (row, column) in places.items()
            if drawings[row][start + column] != " "
        }
        assert {
            labels for labels, d in zip(data.labels, data.digits, strict=True) if d == digit
        } == {frozenset(lit)}


@pytest.mark.parametrize("arguments", [{"parts": "thirds"}, {"labels": "letters"}])
def test_digits_views_name_what_they_know(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"{name} must be"):
        datasets.load_digits_views(**arguments)


# ---- planted models

PLANTED = [
    (datasets.make_gaussian_views, {"n_features": (4, 3, 2), "correlations": (0.9, 0.5)}),
    (datasets.make_sparse_views, {"n_features": (30, 20)}),
    (datasets.make_nonlinear_views, {"noise": 0.1}),
    (datasets.make_multilabel_views, {"paired": 0.3}),
]


@pytest.mark.parametrize(("make", "arguments"), PLANTED)
def test_the_seed_decides_every_draw(make, arguments):
    first, again, other = (make(50, random_state=seed, **arguments) for seed in (0, 0, 1))
    assert same_views(first.views, again.views)
    assert not same_views(first.views, other.views)
    assert make(50, random_state=np.random.RandomState(0), **arguments).views.shape == (
        first.views.shape
    )


@pytest.mark.parametrize("rho", [(0.9, 0.7, 0.5), (0.8, 0.8, 0.8), (1.0, 0.3), (0.5, 0.9)])
def test_two_gaussian_views_have_the_planted_correlations(rho):
    data = datasets.make_gaussian_views(
        100_000, n_features=(6, 5), correlations=rho, random_state=0
    )
    found = empirical_correlations(data.views["view0"], data.views["view1"])
    np.testing.assert_allclose(found[: len(rho)], sorted(rho, reverse=True), atol=0.01)
    np.testing.assert_allclose(found[len(rho) :], 0, atol=0.02)
    np.testing.assert_array_equal(data.correlations, sorted(rho, reverse=True))


def test_planted_weights_give_uncorrelated_variates_with_the_planted_correlations():
    data = datasets.make_gaussian_views(100_000, n_features=(6, 5, 4), random_state=1)
    variates = [
        (data.views[name] - data.means[name]) @ data.weights[name] for name in data.views.names
    ]
    for p, x in enumerate(variates):
        np.testing.assert_allclose(x.T @ x / len(x), np.eye(3), atol=0.02)
        for y in variates[:p]:
            np.testing.assert_allclose(x.T @ y / len(x), np.diag(data.correlations), atol=0.02)


def test_many_gaussian_views_have_the_planted_eigenvalues():
    data = datasets.make_gaussian_views(100_000, n_features=(6, 5, 4, 3), random_state=2)
    joint = np.cov(np.hstack([data.views[name] for name in data.views.names]).T)
    ends = np.cumsum([0, *data.views.widths.values()])
    within = block_diag(*(joint[a:b, a:b] for a, b in pairwise(ends)))
    found = eigh(joint, within, eigvals_only=True)[::-1]
    np.testing.assert_allclose(found[:3], data.eigenvalues, atol=0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": (4,)}, "at least two views"),
        ({"correlations": (1.2,)}, "between 0 and 1"),
        ({"correlations": (np.nan,)}, "between 0 and 1"),
        ({"n_features": (4, 2)}, "views of at least 3 features"),
    ],
)
def test_gaussian_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_gaussian_views(10, **arguments)


@pytest.mark.parametrize("covariance", ["identity", "toeplitz", "sparse_inverse"])
def test_the_sparse_population_has_one_canonical_correlation_and_it_is_the_planted_one(covariance):
    data = datasets.make_sparse_views(
        2, n_features=(60, 40), correlation=0.8, covariance=covariance, random_state=0
    )
    xx, xy, yy = data.covariance[:60, :60], data.covariance[:60, 60:], data.covariance[60:, 60:]
    coherence = np.linalg.solve(sqrtm(xx), np.linalg.solve(sqrtm(yy), xy.T).T)
    np.testing.assert_allclose(svdvals(coherence), [0.8] + [0] * 39, atol=1e-9)
    np.testing.assert_allclose(np.diag(data.covariance), 1)
    phi, eta = data.weights["view0"], data.weights["view1"]
    np.testing.assert_allclose(
        [(phi.T @ xy @ eta).item(), (phi.T @ xx @ phi).item(), (eta.T @ yy @ eta).item()],
        [0.8, 1, 1],
    )


@pytest.mark.parametrize("covariance", ["identity", "toeplitz", "sparse_inverse"])
def test_sparse_views_are_drawn_with_the_covariance_they_state(covariance):
    data = datasets.make_sparse_views(
        200_000, n_features=(7, 6), n_nonzero=3, covariance=covariance, random_state=0
    )
    joint = np.hstack([data.views["view0"], data.views["view1"]])
    np.testing.assert_allclose(joint.T @ joint / len(joint), data.covariance, atol=0.015)


def test_the_inverse_of_the_sparse_inverse_covariance_has_five_diagonals():
    data = datasets.make_sparse_views(2, n_features=(20, 20), covariance="sparse_inverse")
    inverse = np.linalg.inv(data.covariance[:20, :20])
    distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    np.testing.assert_allclose(inverse[distance > 2], 0, atol=1e-10)
    assert np.all(inverse[distance <= 2] > 0.1)


def test_sparse_weights_live_on_their_support():
    data = datasets.make_sparse_views(random_state=0)
    assert data.views.shape == (400, 1600)
    for name, weights in data.weights.items():
        np.testing.assert_array_equal(np.flatnonzero(weights), data.support[name])
        np.testing.assert_allclose(weights[data.support[name]], 5**-0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_features": (8, 8, 8)}, "two views"),
        ({"n_features": (8, 4), "n_nonzero": 5}, "between 1 and 4"),
        ({"correlation": -0.1}, "between 0 and 1"),
        ({"covariance": "full"}, "one of"),
    ],
)
def test_sparse_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_sparse_views(10, **{"n_features": (8, 8), **arguments})


def test_a_variable_and_its_square_are_linearly_uncorrelated():
    views = datasets.make_nonlinear_views(100_000, random_state=0).views
    assert abs(np.corrcoef(views["view0"].ravel(), views["view1"].ravel())[0, 1]) < 0.01
    np.testing.assert_allclose(views["view1"], views["view0"] ** 2)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
def test_squaring_finds_the_nonlinear_correlation(noise):
    data = datasets.make_nonlinear_views(100_000, noise=noise, random_state=0)
    x, y = data.views["view0"].ravel(), data.views["view1"].ravel()
    assert np.corrcoef(x**2, y)[0, 1] == pytest.approx(data.nonlinear_correlation, abs=0.01)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="cannot be negative"):
        datasets.make_nonlinear_views(10, noise=-1)
    with pytest.raises(ValueError, match="cannot be negative"):
        datasets.make_multilabel_views(10, noise=-1)


def test_labels_explain_noiseless_multilabel_views_entirely():
    data = datasets.make_multilabel_views(200, paired=0.5, noise=0.0, random_state=0)
    for name, block in data.views.items():
        design = np.hstack([np.ones((200, 1)), data.indicator])[data.views.objects(name)]
        _, residual, rank, _ = np.linalg.lstsq(design, block, rcond=None)
        assert rank == 7
        np.testing.assert_allclose(residual, 0, atol=1e-20)


def test_the_latent_vector_can_be_read_off_every_view():
    data = datasets.make_multilabel_views(5000, noise=0.1, random_state=0)
    for name, block in data.views.items():
        read = (block - data.means[name]) @ np.linalg.pinv(data.mixing[name])
        error = read - data.latent[data.views.objects(name)]
        np.testing.assert_allclose(error.std(axis=0), 0.1, rtol=0.05)
        np.testing.assert_allclose(error.mean(axis=0), 0, atol=0.01)


@pytest.mark.parametrize("paired", [0.0, 0.25, 1.0])
def test_the_given_share_of_objects_is_paired_and_the_rest_seen_once(paired):
    views = datasets.make_multilabel_views(
        100, n_features=(9, 8, 7), paired=paired, random_state=0
    ).views
    times = views.seen.sum(axis=1)
    assert np.sum(times == 3) == 100 * paired
    assert np.sum(times == 1) == 100 * (1 - paired)
    alone = views.seen[times == 1].sum(axis=0)
    assert alone.max() - alone.min() <= 1


def test_views_without_a_pair_are_stacked_like_unpaired_ones():
    views = datasets.make_multilabel_views(31, random_state=0).views
    stacked = Views.unpaired(dict(views.items()))
    np.testing.assert_array_equal(views.seen, stacked.seen)


def test_label_sets_and_indicator_say_the_same_and_no_set_is_empty():
    data = datasets.make_multilabel_views(2000, n_classes=5, max_labels=4, random_state=0)
    for labels, row in zip(data.labels, data.indicator, strict=True):
        assert labels == {label for label in range(5) if row[label]}
    np.testing.assert_array_equal(np.unique(data.indicator.sum(axis=1)), [1, 2, 3, 4])
    np.testing.assert_allclose(data.indicator.mean(axis=0), 2.5 / 5, atol=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_labels": 7}, "between 1 and n_classes=6"),
        ({"paired": 1.5}, "between 0 and 1"),
        ({"n_features": (20, 5)}, "at least n_latent=6"),
        ({"n_samples": 1}, "leave a view empty"),
    ],
)
def test_multilabel_views_refuse_what_has_no_answer(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_multilabel_views(**arguments)


# ---- finding and reading files

FETCHERS = [getattr(datasets, name) for name in datasets.__all__ if name.startswith("fetch_")]
SOURCES = {
    datasets.fetch_mnist_halves: _real.MNIST,
    datasets.fetch_wikipedia: _real.WIKIPEDIA,
    datasets.fetch_coco_labels: _coco.COCO_LABELS,
    datasets.fetch_coco_captions: _coco.COCO_CAPTIONS,
    datasets.fetch_coco_label_vectors: _coco.COCO_LABEL_VECTORS,
    datasets.fetch_multi30k: _real.MULTI30K,
    datasets.fetch_multi30k_encoders: _real.MULTI30K_ENCODERS,
    datasets.fetch_scene: _real.SCENE,
    datasets.fetch_mfeat: _real.MFEAT,
    datasets.fetch_nutrimouse: _real.NUTRIMOUSE,
    datasets.fetch_nottingham: _real.NOTTINGHAM,
    datasets.fetch_spoken_digits: _spoken_digits.SPOKEN_DIGITS,
}


def nutrimouse_arrays():
    rng = np.random.default_rng(0)
    return {
        "gene": rng.normal(size=(40, 120)),
        "lipid": rng.normal(size=(40, 21)),
        "diet": np.repeat(["coc", "fish", "lin", "ref", "sun"], 8),
        "genotype": np.tile(["wt", "ppar"], 20),
        "gene_names": np.array([f"gene{number}" for number in range(120)]),
        "lipid_names": np.array([f"lipid{number}" for number in range(21)]),
    }


def caption_arrays():
    """A file of captions over seven words, and the dense counts and labels it stands for."""
    rng = np.random.default_rng(0)
    counts = {f"cap{number}": rng.poisson(0.3, size=(5000, 7)) for number in range(5)}
    labels = rng.integers(2, size=(5000, 80), dtype=np.uint8)
    arrays = {
        "label_names": np.array([f"label{number}" for number in range(80)]),
        "vocab": np.array(list("abcdefg")),
        "ids": np.arange(5000, dtype=np.int32),
        "is_test": (np.arange(5000) % 5 == 0).astype(np.uint8),
        "labels": np.packbits(labels, axis=1),
    }
    for name, dense in counts.items():
        matrix = csr_array(dense)
        arrays[f"{name}_data"] = matrix.data.astype(np.uint8)
        arrays[f"{name}_indices"] = matrix.indices.astype(np.uint16)
        arrays[f"{name}_indptr"] = matrix.indptr
        arrays[f"{name}_shape"] = np.array(matrix.shape)
    return arrays, counts, labels


def test_every_fetcher_has_a_source():
    assert set(SOURCES) == set(FETCHERS)


@pytest.mark.parametrize("fetch", FETCHERS)
def test_a_missing_file_is_named_with_its_place_origin_and_form(fetch, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(data_home=tmp_path)
    message = str(caught.value)
    source = SOURCES[fetch]
    assert source.filename in message
    assert str(tmp_path) in message
    assert "MVCCA_DATA" in message
    assert source.origin in message
    for key in source.forms:
        assert f"\n  {key}" in message


def test_the_data_home_is_the_argument_then_the_environment_then_the_users_folder(
    monkeypatch, tmp_path
):
    monkeypatch.setenv("MVCCA_DATA", str(tmp_path / "environment"))
    assert datasets.get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert datasets.get_data_home() == tmp_path / "environment"
    monkeypatch.delenv("MVCCA_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.get_data_home() == tmp_path / "mvcca_data"


@pytest.mark.parametrize("labels", ["diet", "genotype"])
def test_views_are_read_as_they_were_written(labels, tmp_path):
    arrays = nutrimouse_arrays()
    np.savez_compressed(tmp_path / "nutrimouse.npz", **arrays)
    data = datasets.fetch_nutrimouse(labels, data_home=tmp_path)
    assert same_views(data.views, Views({"gene": arrays["gene"], "lipid": arrays["lipid"]}))
    np.testing.assert_array_equal(data.labels, arrays[labels])


def test_packed_labels_and_sparse_counts_are_read_as_they_were_written(tmp_path):
    arrays, counts, labels = caption_arrays()
    np.savez_compressed(tmp_path / "coco_val2017_captions.npz", **arrays)
    data = datasets.fetch_coco_captions(data_home=tmp_path)
    for part, is_test in ((data.train, 0), (data.test, 1)):
        rows = arrays["is_test"] == is_test
        np.testing.assert_array_equal(part.labels, labels[rows])
        np.testing.assert_array_equal(part.ids, arrays["ids"][rows])
        for name, dense in counts.items():
            np.testing.assert_array_equal(part.views[name].toarray(), dense[rows])


def test_counts_do_not_wrap_around_in_products(tmp_path):
    arrays, counts, _ = caption_arrays()
    np.savez_compressed(tmp_path / "coco_val2017_captions.npz", **arrays)
    block = datasets.fetch_coco_captions(data_home=tmp_path).train.views["cap0"]
    dense = counts["cap0"][arrays["is_test"] == 0]
    np.testing.assert_array_equal((block.T @ block).toarray(), dense.T @ dense)


def without(arrays, key):
    return {name: array for name, array in arrays.items() if name != key}


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda a: without(a, "lipid"), "array 'lipid' is missing"),
        (lambda a: {**a, "gene": a["gene"][:39]}, r"expected gene: float64 \(40, 120\), got"),
        (lambda a: {**a, "gene": a["gene"].astype("f4")}, r"got float32 \(40, 120\)"),
        (lambda a: {**a, "diet": a["diet"].astype(object)}, "allow_pickle"),
        (lambda a: {**a, "diet": np.arange(40)}, r"expected diet: str \(40,\)"),
    ],
)
def test_a_file_of_another_form_is_told_what_is_wrong_with_it(spoil, complaint, tmp_path):
    np.savez_compressed(tmp_path / "nutrimouse.npz", **spoil(nutrimouse_arrays()))
    with pytest.raises(OSError, match=complaint):
        datasets.fetch_nutrimouse(data_home=tmp_path)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda a: {**a, "vocab": a["vocab"][:6]}, "expected cap0_data"),
        (lambda a: {**a, "cap3_indices": a["cap3_indices"] + 7}, "indices"),
        (lambda a: {**a, "cap4_indptr": a["cap4_indptr"][:-1]}, "index pointer|indptr"),
        (lambda a: {**a, "cap1_data": a["cap1_data"].astype(float)}, "as integers"),
        (lambda a: {**a, "labels": a["labels"][:, :9]}, "got uint8"),
    ],
)
def test_parts_that_do_not_fit_each_other_are_told(spoil, complaint, tmp_path):
    np.savez_compressed(tmp_path / "coco_val2017_captions.npz", **spoil(caption_arrays()[0]))
    with pytest.raises(OSError, match=complaint):
        datasets.fetch_coco_captions(data_home=tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:0],
        lambda content: content[: len(content) // 2],
        lambda content: b"<html>" + content,
        lambda content: content[:5000] + bytes(100) + content[5100:],
    ],
    ids=["empty", "cut short", "a web page", "overwritten"],
)
def test_a_damaged_file_is_one_clear_error(spoil, tmp_path):
    path = tmp_path / "nutrimouse.npz"
    np.savez_compressed(path, **nutrimouse_arrays())
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(OSError, match=r"nutrimouse\.npz is damaged or not in the expected format"):
        datasets.fetch_nutrimouse(data_home=tmp_path)


def test_wrong_bytes_are_noticed_even_where_the_directory_hides_the_checksum(tmp_path):
    path = tmp_path / "nutrimouse.npz"
    np.savez_compressed(path, **nutrimouse_arrays())
    content = bytearray(path.read_bytes())
    size = content.index(b"PK\x01\x02") + 24  # of gene.npy, as the directory states it
    content[size] += 1
    for position in range(2000, 12_000, 200):
        content[position] ^= 1
        path.write_bytes(content)
        with pytest.raises(OSError, match="is damaged"):
            datasets.fetch_nutrimouse(data_home=tmp_path)
        content[position] ^= 1


def test_one_array_in_place_of_an_archive_is_told(tmp_path):
    with open(tmp_path / "nutrimouse.npz", "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(OSError, match="not a zip file"):
        datasets.fetch_nutrimouse(data_home=tmp_path)


@pytest.mark.parametrize("views", ["sift", (), ("sift", "bow")])
def test_wikipedia_names_the_views_it_has(views, tmp_path):
    with pytest.raises(ValueError, match="views must name some of"):
        datasets.fetch_wikipedia(views, data_home=tmp_path)


def test_nutrimouse_names_the_labels_it_has(tmp_path):
    with pytest.raises(ValueError, match="labels must be 'diet' or 'genotype'"):
        datasets.fetch_nutrimouse("sex", data_home=tmp_path)


# ---- the real files


@pytest.mark.needs_data("mnist.npz")
def test_mnist_halves_have_the_published_splits_and_varying_pixels():
    data = datasets.fetch_mnist_halves()
    for name, size in (("train", 50_000), ("valid", 10_000), ("test", 10_000)):
        part = data[name]
        assert part.views.is_paired
        assert len(part.views) == len(part.labels) == size
        assert part.views.widths == {"left": 392, "right": 392}
    train = data.train.views
    assert train["left"].dtype == np.float32
    assert (train["left"].min(), train["left"].max()) == (0, 1)
    assert [np.sum(np.ptp(train[name], axis=0) > 0) for name in train.names] == [353, 364]
    with np.load(datasets.get_data_home() / "mnist.npz") as stored:
        images = stored["X_test"] / 255
    halves = [
        data.test.views[side].reshape(-1, *data.image_shapes[side]) for side in ("left", "right")
    ]
    np.testing.assert_allclose(np.concatenate(halves, axis=2), images, rtol=1e-6)


@pytest.mark.needs_data("spoken_digits.npz")
def test_spoken_digits_are_logarithms_of_power_and_test_takes_are_balanced():
    data = datasets.fetch_spoken_digits()
    assert [len(data[name].views) for name in ("train", "test")] == [2700, 300]
    assert data.spectrogram_shape == (48, 40)
    speakers, takes = np.unique(data.test.speakers, return_counts=True)
    assert (len(speakers), set(takes)) == (6, {50})  # five takes of ten digits
    np.testing.assert_array_equal(np.bincount(data.test.labels), 30)
    with np.load(datasets.get_data_home() / "spoken_digits.npz") as stored:
        low, high = stored["log10_power_low"], stored["log10_power_high"]
        loudness = low + stored["logmel"][stored["is_test"]] / 255 * (high - low)
    sound = data.test.views["sound"].reshape(-1, *data.spectrogram_shape)
    assert sound.dtype == np.float32
    np.testing.assert_allclose(sound, loudness, rtol=0, atol=1e-5)


@pytest.mark.needs_data("wikipedia.npz")
def test_wikipedia_features_are_histograms_and_topic_shares_of_ten_classes():
    data = datasets.fetch_wikipedia()
    assert [len(data[name].views) for name in ("train", "test")] == [2173, 693]
    assert data.train.views.widths == {"sift": 128, "lda": 10}
    for name in ("sift", "lda"):
        np.testing.assert_allclose(data.test.views[name].sum(axis=1), 1, atol=1e-5)
    # Rasiwasia et al. 2010 count 347 and 104 articles on warfare, their largest class.
    counted = np.bincount(data.train.labels, minlength=10)
    warfare = list(data.label_names).index("warfare")
    assert (counted[warfare], np.bincount(data.test.labels)[warfare]) == (347, 104)
    assert datasets.fetch_wikipedia(("w2v", "deep")).test.views.names == ("w2v", "deep")


@pytest.mark.needs_data("coco2014_labels.npz")
def test_coco_labels_have_the_published_distribution():
    data = datasets.fetch_coco_labels()
    assert data.train.labels.shape == (82_783, 80)
    assert data.valid.labels.shape == (40_504, 80)
    assert data.train.labels.sum(axis=1).mean() == pytest.approx(2.9, abs=0.05)
    assert len(np.unique(np.packbits(data.train.labels, axis=1), axis=0)) == 18_956
    assert data.label_names[data.train.labels.sum(axis=0).argmax()] == "person"
    for name in ("karpathy_val", "karpathy_test", "val2017"):
        assert np.isin(data.subsets[name], data.valid.ids).all()


@pytest.mark.needs_data("coco_val2017_captions.npz")
def test_captions_of_one_image_share_more_words_than_captions_of_two():
    data = datasets.fetch_coco_captions()
    assert [len(data[name].views) for name in ("train", "test")] == [4000, 1000]
    first, second = data.test.views["cap0"], data.test.views["cap1"]
    shared = (first @ second.T).toarray()
    assert np.diag(shared).mean() > 2 * shared.mean()
    # An image labelled "dog" is described with the word more often than not.
    dogs = data.train.labels[:, list(data.label_names).index("dog")] == 1
    word = data.train.views["cap0"][:, [list(data.vocabulary).index("dog")]].toarray().ravel() > 0
    assert word[dogs].mean() > 0.5 > 0.05 > word[~dogs].mean()


@pytest.mark.needs_data("coco_label_vectors.npz")
def test_vectors_of_the_same_thing_are_nearest_over_both_vocabularies():
    data = datasets.fetch_coco_label_vectors()
    for vectors in data.vectors.values():
        assert vectors.shape == (80, 300)
    coco, voc = data.vectors["glove_mlgcn"], data.voc_vectors["glove_mlgcn"]
    cosine = (voc @ coco.T) / np.linalg.norm(coco, axis=1)
    nearest = dict(zip(data.voc_label_names, data.label_names[cosine.argmax(axis=1)], strict=True))
    assert (nearest["aeroplane"], nearest["cow"], nearest["sofa"]) == ("airplane", "cow", "couch")


@pytest.mark.needs_data("multi30k.npz")
def test_rows_of_multi30k_describe_the_same_picture_in_every_language():
    data = datasets.fetch_multi30k()
    sizes = {"train": 29_000, "valid": 1014, "test": 1000, "coco": 461}
    assert {name: len(data[name].views) for name in sizes} == sizes
    for name in sizes:
        for language, block in data[name].views.items():
            assert issparse(block)
            assert block.shape[1] == len(data.vocabularies[language])
    words = {"en": "dog", "de": "hund", "fr": "chien", "cs": "pes"}
    says = {
        language: data.train.views[language][:, [list(data.vocabularies[language]).index(word)]]
        .toarray()
        .ravel()
        > 0
        for language, word in words.items()
    }
    for language in ("de", "fr", "cs"):
        assert np.corrcoef(says["en"], says[language])[0, 1] > 0.5
    assert data.train.labels is None
    assert data.coco.views.names == ("en", "de", "fr")
    assert data.coco.labels[:, 0].mean() > 0.99


@pytest.mark.needs_data("multi30k_encoders.npz")
def test_embeddings_have_length_one_and_know_the_sentence():
    data = datasets.fetch_multi30k_encoders()
    sizes = {"train": 10_000, "valid": 1014, "test": 1000}
    assert {name: len(data[name].views) for name in sizes} == sizes
    assert data.test.views.widths == {"en_minilm": 384, "en_wordllama": 256, "de_e5": 384}
    similar = []
    for _, block in data.test.views.items():
        assert block.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1, atol=0.02)
        centred = block - block.mean(axis=0)
        similar.append((centred @ centred.T)[np.triu_indices(1000, 1)])
    # Sentences that are similar for one encoder are similar for the others.
    assert np.corrcoef(similar)[np.triu_indices(3, 1)].min() > 0.5


@pytest.mark.needs_data("scene.npz")
def test_scene_channels_are_named_after_what_they_measure():
    data = datasets.fetch_scene()
    assert [len(data[name].views) for name in ("train", "test")] == [1211, 1196]
    assert data.train.views.widths == {"L": 98, "u": 98, "v": 98}
    assert set(np.unique(data.train.labels)) == {0, 1}
    mean_of = {
        (label, channel): data.train.views[channel][data.train.labels[:, column] == 1, :49].mean()
        for column, label in enumerate(data.label_names)
        for channel in ("L", "u", "v")
    }
    assert mean_of["Beach", "L"] > mean_of["Sunset", "L"]  # brighter
    assert mean_of["Sunset", "u"] > mean_of["Field", "u"]  # red against green
    assert mean_of["FallFoliage", "v"] > mean_of["Beach", "v"]  # yellow against blue


@pytest.mark.needs_data("mfeat.npz")
def test_mfeat_has_six_views_of_two_hundred_images_per_digit():
    data = datasets.fetch_mfeat()
    assert data.views.widths == {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
    np.testing.assert_array_equal(data.labels, np.repeat(np.arange(10), 200))


@pytest.mark.needs_data("nutrimouse.npz")
def test_nutrimouse_is_balanced_over_diets_and_genotypes():
    data = datasets.fetch_nutrimouse()
    assert data.views.widths == {"gene": 120, "lipid": 21}
    np.testing.assert_array_equal(np.unique(data.labels, return_counts=True)[1], [8] * 5)
    genotype = datasets.fetch_nutrimouse("genotype").labels
    np.testing.assert_array_equal(np.unique(genotype, return_counts=True)[1], [20, 20])
    # The fatty acids are percentages of the total.
    np.testing.assert_allclose(data.views["lipid"].sum(axis=1), 100, atol=0.2)


@pytest.mark.needs_data("nottingham.npz")
def test_nottingham_rolls_sound_within_the_piano():
    data = datasets.fetch_nottingham()
    assert [len(data[name].rolls) for name in ("train", "valid", "test")] == [694, 173, 170]
    assert data.lowest_note == 21
    assert all(roll.shape[1] == 88 for roll in data.train.rolls)
    assert sum(map(len, data.train.rolls)) == 176_561
    assert 3.5 < np.vstack(data.test.rolls).sum(axis=1).mean() < 4.5
