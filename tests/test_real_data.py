"""The data path a user walks, on real data, against published or independently measured figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.real import (
    data_home,
    fetch_coco_captions,
    fetch_coco_label_vectors,
    fetch_coco_labels,
    fetch_mfeat,
    fetch_mnist_halves,
    fetch_multi30k,
    fetch_multi30k_encoders,
    fetch_nottingham,
    fetch_nutrimouse,
    fetch_scene,
    fetch_spoken_digits,
    fetch_wikipedia,
)
from mvcca import (
    CCA,
    KCCA,
    MLCCA,
    MVCCA,
    MVMLCCA,
    AffineMap,
    PerView,
    Procrustes,
    Views,
    evaluate_retrieval,
)

LABEL_METHODS = [
    MLCCA(20, reg=1e-2),
    MLCCA(20, label_similarity="cosine", reg=1e-2),
    MVMLCCA(20, reg=1e-2, within="label"),
    MVMLCCA(20, reg=1e-2, within="sample"),
]


# ---- the files


@pytest.mark.needs_data("mnist.npz")
def test_mnist_halves_have_the_published_splits_and_varying_pixels():
    data = fetch_mnist_halves()
    for name, size in (("train", 50_000), ("valid", 10_000), ("test", 10_000)):
        part = data[name]
        assert part.views.is_paired
        assert len(part.views) == len(part.labels) == size
        assert part.views.widths == {"left": 392, "right": 392}
    train = data.train.views
    assert train["left"].dtype == np.float32
    assert (train["left"].min(), train["left"].max()) == (0, 1)
    assert [np.sum(np.ptp(train[name], axis=0) > 0) for name in train.names] == [353, 364]
    with np.load(data_home() / "mnist.npz") as stored:
        images = stored["X_test"] / 255
    halves = [
        data.test.views[side].reshape(-1, *data.image_shapes[side]) for side in ("left", "right")
    ]
    np.testing.assert_allclose(np.concatenate(halves, axis=2), images, rtol=1e-6)


@pytest.mark.needs_data("spoken_digits.npz")
def test_spoken_digits_are_logarithms_of_power_and_test_takes_are_balanced():
    data = fetch_spoken_digits()
    assert [len(data[name].views) for name in ("train", "test")] == [2700, 300]
    assert data.spectrogram_shape == (48, 40)
    speakers, takes = np.unique(data.test.speakers, return_counts=True)
    assert (len(speakers), set(takes)) == (6, {50})  # five takes of ten digits
    np.testing.assert_array_equal(np.bincount(data.test.labels), 30)
    with np.load(data_home() / "spoken_digits.npz") as stored:
        low, high = stored["log10_power_low"], stored["log10_power_high"]
        loudness = low + stored["logmel"][stored["is_test"]] / 255 * (high - low)
    sound = data.test.views["sound"].reshape(-1, *data.spectrogram_shape)
    assert sound.dtype == np.float32
    np.testing.assert_allclose(sound, loudness, rtol=0, atol=1e-5)


@pytest.mark.needs_data("wikipedia.npz")
def test_wikipedia_features_are_histograms_and_topic_shares_of_ten_classes():
    data = fetch_wikipedia()
    assert [len(data[name].views) for name in ("train", "test")] == [2173, 693]
    assert data.train.views.widths == {"sift": 128, "lda": 10}
    for name in ("sift", "lda"):
        np.testing.assert_allclose(data.test.views[name].sum(axis=1), 1, atol=1e-5)
    # Rasiwasia et al. 2010 count 347 and 104 articles on warfare, their largest class.
    counted = np.bincount(data.train.labels, minlength=10)
    warfare = list(data.label_names).index("warfare")
    assert (counted[warfare], np.bincount(data.test.labels)[warfare]) == (347, 104)
    assert fetch_wikipedia(("w2v", "deep")).test.views.names == ("w2v", "deep")


@pytest.mark.needs_data("coco2014_labels.npz")
def test_coco_labels_have_the_published_distribution():
    data = fetch_coco_labels()
    assert data.train.labels.shape == (82_783, 80)
    assert data.valid.labels.shape == (40_504, 80)
    assert data.train.labels.sum(axis=1).mean() == pytest.approx(2.9, abs=0.05)
    assert len(np.unique(np.packbits(data.train.labels, axis=1), axis=0)) == 18_956
    assert data.label_names[data.train.labels.sum(axis=0).argmax()] == "person"
    for name in ("karpathy_val", "karpathy_test", "val2017"):
        assert np.isin(data.subsets[name], data.valid.ids).all()


@pytest.mark.needs_data("coco_val2017_captions.npz")
def test_captions_of_one_image_share_more_words_than_captions_of_two():
    data = fetch_coco_captions()
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
    data = fetch_coco_label_vectors()
    for vectors in data.vectors.values():
        assert vectors.shape == (80, 300)
    coco, voc = data.vectors["glove_mlgcn"], data.voc_vectors["glove_mlgcn"]
    cosine = (voc @ coco.T) / np.linalg.norm(coco, axis=1)
    nearest = dict(zip(data.voc_label_names, data.label_names[cosine.argmax(axis=1)], strict=True))
    assert (nearest["aeroplane"], nearest["cow"], nearest["sofa"]) == ("airplane", "cow", "couch")


@pytest.mark.needs_data("multi30k.npz")
def test_rows_of_multi30k_describe_the_same_picture_in_every_language():
    data = fetch_multi30k()
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
    data = fetch_multi30k_encoders()
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
    data = fetch_scene()
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
    data = fetch_mfeat()
    assert data.views.widths == {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
    np.testing.assert_array_equal(data.labels, np.repeat(np.arange(10), 200))


@pytest.mark.needs_data("nutrimouse.npz")
def test_nutrimouse_is_balanced_over_diets_and_genotypes():
    data = fetch_nutrimouse()
    assert data.views.widths == {"gene": 120, "lipid": 21}
    np.testing.assert_array_equal(np.unique(data.labels, return_counts=True)[1], [8] * 5)
    genotype = fetch_nutrimouse("genotype").labels
    np.testing.assert_array_equal(np.unique(genotype, return_counts=True)[1], [20, 20])
    # The fatty acids are percentages of the total.
    np.testing.assert_allclose(data.views["lipid"].sum(axis=1), 100, atol=0.2)


@pytest.mark.needs_data("nottingham.npz")
def test_nottingham_rolls_sound_within_the_piano():
    data = fetch_nottingham()
    assert [len(data[name].rolls) for name in ("train", "valid", "test")] == [694, 173, 170]
    assert data.lowest_note == 21
    assert all(roll.shape[1] == 88 for roll in data.train.rolls)
    assert sum(map(len, data.train.rolls)) == 176_561
    assert 3.5 < np.vstack(data.test.rolls).sum(axis=1).mean() < 4.5


def test_a_missing_file_is_named_with_its_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MVCCA_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"No mfeat\.npz in {tmp_path}: set MVCCA_DATA"):
        fetch_mfeat()


# ---- figures


@pytest.mark.needs_data("wikipedia.npz")
def test_cca_on_wikipedia_reaches_the_measured_precision():
    data = fetch_wikipedia()
    with pytest.warns(UserWarning, match="'sift' is close to collinear for float32 rows"):
        model = CCA(7).fit(data.train.views)  # of histograms, which add up to 1
    table = evaluate_retrieval(
        model.transform(data.test.views), data.test.labels, measures=["map:relevant"]
    )
    found = [table["sift", "lda"]["map:relevant"], table["lda", "sift"]["map:relevant"]]
    np.testing.assert_allclose(found, [0.246, 0.201], atol=0.01)


@pytest.mark.needs_data("coco_val2017_captions.npz")
def test_cca_on_two_captions_reaches_the_measured_recall():
    data = fetch_coco_captions()
    names = ["cap0", "cap1"]
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(200, random_state=0)))
    model = make_pipeline(words, CCA(50)).fit(data.train.views.select(names))
    table = evaluate_retrieval(
        model.transform(data.test.views.select(names)), measures=["r@1", "r@10"]
    )
    assert table.mean()["r@1"] == pytest.approx(0.188, abs=0.02)
    assert table.mean()["r@10"] == pytest.approx(0.562, abs=0.02)


def caption_views() -> tuple[Views, np.ndarray, Views, np.ndarray]:
    data = fetch_coco_captions()
    words = PerView(make_pipeline(TfidfTransformer(), TruncatedSVD(50, random_state=0)))
    names = ["cap0", "cap1", "cap2"]
    train, test = (part.views.select(names) for part in (data.train, data.test))
    return words.fit_transform(train), data.train.labels, words.transform(test), data.test.labels


def scene_views() -> tuple[Views, np.ndarray, Views, np.ndarray]:
    data = fetch_scene()
    scale = PerView(StandardScaler()).fit(data.train.views)
    train, test = (scale.transform(part.views) for part in (data.train, data.test))
    return train, data.train.labels, test, data.test.labels


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*rows have no labels", "ignore:.*n_components")
@pytest.mark.filterwarnings("ignore:.*distinct label sets", "ignore:.*count for nothing")
@pytest.mark.parametrize("method", LABEL_METHODS)
@pytest.mark.parametrize(
    "load",
    [
        pytest.param(
            caption_views,
            marks=(pytest.mark.needs_data("coco_val2017_captions.npz"), pytest.mark.long),
        ),
        pytest.param(scene_views, marks=pytest.mark.needs_data("scene.npz")),
    ],
)
def test_shuffling_a_view_with_its_labels_moves_no_figure(load, method):
    train, y, test, y_test = load()
    order = np.random.default_rng(0).permutation(len(train))
    last = train.names[-1]
    blocks = {name: block[order] if name == last else block for name, block in train.items()}
    labels = dict.fromkeys(train.names, y) | {last: y[order]}
    figures = []
    for views, given in ((train, y), (Views.unpaired(blocks), labels)):
        scores = method.fit(views, given).transform(test)
        table = evaluate_retrieval(scores, y_test, measures=["map", "r@10"])
        figures.append(list(table.mean().values()))
    np.testing.assert_allclose(figures[0], figures[1], atol=1e-5)
    prevalence = (y_test @ y_test.T > 0).mean()  # what ranking at random would find
    assert figures[0][0] > prevalence


# ---- partly paired views -------------------------------------------------------------------------


@pytest.mark.needs_data("multi30k_encoders.npz")
@pytest.mark.parametrize("reg", [1.0, 0.03])
def test_unpaired_rows_take_nothing_from_few_pairs(reg):
    data, names = fetch_multi30k_encoders(), ["en_minilm", "de_e5"]
    views, test = data.train.views.select(names), data.test.views.select(names)
    rows = np.arange(len(views))
    index = np.column_stack([np.where(rows < 5100, rows, -1), rows])
    index[200:5100, 1] = -1
    model = MVCCA(100, reg=reg).fit(Views(dict(views.items()), index))
    assert model.eigenvalues_[0] <= 2
    pairs = MVCCA(100, reg=reg).fit(views[:200])
    found, expected = (evaluate_retrieval(test, estimator=m).mean()["r@1"] for m in (model, pairs))
    assert found == expected
    assert found > (0.85 if reg == 1 else 0.6)


@pytest.mark.needs_data("mfeat.npz")
@pytest.mark.parametrize(
    "pattern", [0.5, "400 complete", *(pytest.param(p, marks=pytest.mark.long) for p in (0.3, 0.7))]
)
@pytest.mark.parametrize(
    "estimator",
    [
        MVCCA(30, reg=0.1),
        KCCA(30, reg=0.1, approximation="fourier", n_landmarks=100, random_state=0),
        Procrustes(30),
        AffineMap(),
    ],
    ids=repr,
)
def test_partly_paired_views_are_never_worse_than_their_complete_objects(estimator, pattern):
    """Views of digits, each missing at random, or the third one seen with 400 of 1,500 objects."""
    rng = np.random.default_rng(0)
    views = fetch_mfeat().views.select(("fou", "kar", "zer"))[rng.permutation(2000)]
    train, test = views[:1500], views[1500:]
    if pattern == "400 complete":
        seen = np.column_stack([np.ones((1500, 2), bool), np.arange(1500) < 400])
    else:
        seen = rng.random((1500, 3)) >= pattern
    train = Views(dict(train.items()), np.where(seen, np.arange(1500)[:, None], -1))
    complete = train[seen.all(axis=1)]
    recalls = [
        evaluate_retrieval(test, estimator=clone(estimator).fit(rows), measures="r@1").mean()["r@1"]
        for rows in (train, complete)
    ]
    error = np.sqrt(recalls[1] * (1 - recalls[1]) / (6 * len(test)))
    assert recalls[0] > recalls[1] - 2 * error
