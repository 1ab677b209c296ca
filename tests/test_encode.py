"""Frozen encoders in pipelines, judged by the same embeddings computed beforehand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils._param_validation import InvalidParameterError

import mvcca
from benchmarks.real import fetch_multi30k_encoders
from mvcca import CCA, PerView, RetrievalIndex, Views
from mvcca.compose import Encode


class Stored:
    """An encoder with the interface of sentence-transformers and model2vec; it knows some texts."""

    def __init__(self, texts, vectors):
        self.vectors = dict(zip(texts, vectors, strict=True))

    def encode(self, sentences, **options):
        return np.stack([self.vectors[sentence] for sentence in sentences])

    def __deepcopy__(self, memo):
        raise AssertionError("a frozen encoder was copied")


RNG = np.random.default_rng(0)
TEXTS = [f"sentence {number}" for number in range(60)]
SHARED = RNG.normal(size=(60, 3))
VECTORS = {
    name: (SHARED @ RNG.normal(size=(3, d)) + 0.1 * RNG.normal(size=(60, d))).astype("f4")
    for name, d in (("en", 5), ("de", 4))
}
ENCODERS = {name: Stored(TEXTS, vectors) for name, vectors in VECTORS.items()}
COLUMN = np.array(TEXTS)[:, None]


@pytest.mark.parametrize(
    "items",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), COLUMN,
     pd.DataFrame({"text": TEXTS}), pd.Series(TEXTS)],
    ids=["list", "tuple", "array", "objects", "column", "frame", "series"],
)  # fmt: skip
def test_items_of_any_container_are_embedded(items):
    found = Encode(ENCODERS["en"]).fit_transform(items)
    np.testing.assert_array_equal(found, VECTORS["en"])
    assert found.dtype == np.float32


def test_a_pipeline_on_texts_is_the_method_on_their_embeddings():
    texts = Views({"en": COLUMN, "de": COLUMN})
    encoders = {name: Encode(encoder) for name, encoder in ENCODERS.items()}
    model = make_pipeline(PerView(encoders), CCA(2, reg=0.1)).fit(texts[:50])
    expected = CCA(2, reg=0.1).fit(Views(VECTORS)[:50])
    scores = model.transform({"en": COLUMN[50:]})["en"]
    np.testing.assert_allclose(scores, expected.transform({"en": VECTORS["en"][50:]})["en"])
    index = RetrievalIndex(model).add(texts)
    _, found = index.search({"en": np.array([["sentence 7"]])}, target="de", k=3)
    _, wanted = RetrievalIndex(expected).add(VECTORS).search({"en": VECTORS["en"][7:8]}, "de", k=3)
    np.testing.assert_array_equal(found, wanted)


def test_clones_and_cross_validation_share_the_encoder():
    encode = Encode(ENCODERS["en"])
    assert clone(encode).encoder is ENCODERS["en"]
    texts = Views({"en": COLUMN, "de": COLUMN})
    encoders = {name: Encode(encoder) for name, encoder in ENCODERS.items()}
    model = make_pipeline(PerView(encoders), CCA(2, reg=0.1))
    assert cross_validate(model, texts, cv=3)["test_score"].min() > 0.8


def test_a_function_is_an_encoder_too():
    function = ENCODERS["de"].encode
    np.testing.assert_array_equal(Encode(function).transform(TEXTS), VECTORS["de"])


def test_torch_tensors_become_arrays():
    torch = pytest.importorskip("torch")
    encode = Encode(lambda texts: torch.asarray(ENCODERS["de"].encode(texts)))
    np.testing.assert_array_equal(encode.transform(TEXTS), VECTORS["de"])


@pytest.mark.parametrize(
    ("encoder", "items", "message"),
    [
        (ENCODERS["en"], np.array([TEXTS, TEXTS]), r"one column of them, got \(2, 60\)"),
        (lambda _: np.zeros((3, 2)), TEXTS, r"each of 60 items .* shape \(3, 2\)"),
        (lambda _: np.zeros(60), TEXTS, r"array of shape \(60,\)"),
        (lambda _: np.full((60, 2), np.nan), TEXTS, "embeddings contains NaN"),
    ],
)
def test_what_is_not_one_vector_per_item_is_refused(encoder, items, message):
    with pytest.raises(ValueError, match=message):
        Encode(encoder).transform(items)


def test_what_cannot_encode_is_refused():
    with pytest.raises(InvalidParameterError, match="'encoder' parameter"):
        Encode(3).fit(TEXTS)
    with pytest.raises(ValueError, match="a loaded model, got the name 'all-MiniLM-L6-v2'"):
        Encode("all-MiniLM-L6-v2").transform(TEXTS)


def test_a_model_file_holds_the_steps_after_the_encoder(tmp_path):
    encoders = {name: Encode(encoder) for name, encoder in ENCODERS.items()}
    model = make_pipeline(PerView(encoders), CCA(2, reg=0.1)).fit({"en": COLUMN, "de": COLUMN})
    with pytest.raises(TypeError):
        mvcca.save(model, tmp_path / "model.mvcca")
    mvcca.save(model[1:], tmp_path / "model.mvcca")
    scores = mvcca.load(tmp_path / "model.mvcca").transform({"en": VECTORS["en"]})
    np.testing.assert_array_equal(scores["en"], model.transform({"en": COLUMN})["en"])


@pytest.mark.needs_data("multi30k_encoders.npz")
def test_queries_through_frozen_encoders_find_their_translation():
    data = fetch_multi30k_encoders()
    pair, columns = ("en_minilm", "de_e5"), {}
    encoders = {}
    for name in pair:
        rows = np.concatenate([data.train.views[name][:3000], data.test.views[name]])
        texts = [f"{name} {number}" for number in range(len(rows))]
        encoders[name] = Encode(Stored(texts, rows))
        columns[name] = np.array(texts)[:, None]
    texts = Views(columns)
    model = make_pipeline(PerView(encoders), CCA(200, reg=0.1)).fit(texts[:3000])
    index = RetrievalIndex(model).add(texts[3000:].select(["de_e5"]))
    _, found = index.search({"en_minilm": columns["en_minilm"][3000:]}, target="de_e5", k=1)
    assert np.mean(found[:, 0] == np.arange(1000)) > 0.95
