"""The data path a user walks, on real data, against published or independently measured figures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mvcca import CCA, MLCCA, MVMLCCA, PerView, Views, evaluate_retrieval
from mvcca.datasets import fetch_coco_captions, fetch_scene, fetch_wikipedia

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
