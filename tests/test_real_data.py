"""The data path a user walks, on real data, against published or independently measured figures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
from mvcca.datasets import (
    fetch_coco_captions,
    fetch_mfeat,
    fetch_multi30k_encoders,
    fetch_scene,
    fetch_wikipedia,
)

LABEL_METHODS = [
    MLCCA(20, reg=1e-2),
    MLCCA(20, label_similarity="cosine", reg=1e-2),
    MVMLCCA(20, reg=1e-2),
    MVMLCCA(20, reg=1e-2, within="sample"),
]


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
        pytest.param(caption_views, marks=pytest.mark.needs_data("coco_val2017_captions.npz")),
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
@pytest.mark.parametrize("pattern", [0.3, 0.5, 0.7, "400 complete"])
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
