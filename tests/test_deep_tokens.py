"""Texts in pipelines before deep estimators: words are counted, and networks learn from them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import mvcca  # noqa: E402
from mvcca import PerView, RetrievalIndex, Tokens, Views  # noqa: E402
from mvcca.deep import CCAL, MSDS, SAM, EncoderCCA  # noqa: E402
from mvcca.deep.encoders import WCNN, WordCNN, WordCNNRNN  # noqa: E402
from mvcca.deep.functional import trace_norm  # noqa: E402
from mvcca.model_selection import retrieval_scorer  # noqa: E402

RNG = np.random.default_rng(0)
TOPICS = RNG.integers(0, 6, 240)
NAMES = np.array(["red", "blue", "green", "grey", "pink", "black"])
OTHERS = np.array(["a", "the", "is", "has", "was", "of", "and", "in", "at", "by"])
TEXTS = [
    " ".join(RNG.permutation([NAMES[topic], *RNG.choice(OTHERS, RNG.integers(2, 7))]))
    for topic in TOPICS
]
VIEWS = Views(
    {
        "image": np.eye(6)[TOPICS] + 0.1 * RNG.normal(size=(240, 6)),
        "text": np.array(TEXTS, dtype=object)[:, None],
    }
)
TRAIN, TEST = slice(0, 160), slice(160, 240)
TRAINED = {"max_epochs": 25, "batch_size": 40, "random_state": 0}


def correlation(scores, batch):  # noqa: ARG001, the signature of objectives
    return -trace_norm(*scores.values(), reg=1e-3)


def networks():
    torch.manual_seed(0)
    words = WCNN(widths=(1, 2), n_filters=8, embedding_size=8)
    return {"image": nn.Linear(6, 5), "text": nn.Sequential(words, nn.Linear(16, 5))}


def before(model, **parameters):
    return make_pipeline(PerView({"image": "passthrough", "text": Tokens(**parameters)}), model)


METHODS = {
    "MSDS": lambda: MSDS(
        5,
        tokens="text",
        gamma=5.0,
        optimizer="adam",
        **TRAINED | {"learning_rate": 0.005},
        start="random",
    ),
    "MSDS with encoders": lambda: MSDS(
        5, encoders=networks(), gamma=5.0, optimizer="adam", **TRAINED | {"learning_rate": 0.01}
    ),
    "SAM": lambda: SAM(5, encoders=networks(), **TRAINED | {"learning_rate": 0.05}),
    "CCAL": lambda: CCAL(5, encoders=networks(), **TRAINED | {"learning_rate": 0.01}),
    "EncoderCCA": lambda: EncoderCCA(
        5, objective=correlation, encoders=networks(), **TRAINED | {"learning_rate": 0.01}
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("build", METHODS.values(), ids=METHODS)
def test_texts_find_images_of_their_topic(build):
    model = before(build()).fit(VIEWS[TRAIN], TOPICS[TRAIN])
    index = RetrievalIndex(model).add({"image": VIEWS[TEST]["image"]})
    _, ids = index.search({"text": VIEWS[TEST]["text"]}, target="image", k=1)
    same = TOPICS[TEST][ids[:, 0]] == TOPICS[TEST]
    assert same.mean() > 0.7, same.mean()  # chance is 1/6
    assert model[-1].encoders_["text"][0].n_words == model[0].transformers_["text"].n_words_


@pytest.mark.slow
def test_the_size_of_the_vocabulary_follows_the_step_in_a_search():
    model = before(METHODS["EncoderCCA"]())
    parameters = {"perview__text__max_words": [2, 16]}
    search = GridSearchCV(model, parameters, cv=2, scoring=retrieval_scorer("map"))
    search.fit(VIEWS, TOPICS)
    assert search.best_params_ == {"perview__text__max_words": 16}
    assert search.best_estimator_[-1].encoders_["text"][0].n_words == 18
    assert search.estimator[-1].encoders["text"][0].n_words is None


def test_lists_of_texts_go_through_searches_files_and_comparisons(tmp_path):
    model = before(MSDS(5, tokens="text", gamma=5.0, **TRAINED | {"max_epochs": 2}, start="random"))
    views = Views({"image": VIEWS["image"], "text": TEXTS})
    scorer = retrieval_scorer("mrr")
    searches = [
        GridSearchCV(model, {"perview__text__min_count": [1, 20]}, cv=2, scoring=scorer).fit(X)
        for X in (views, VIEWS)
    ]
    found, expected = (search.cv_results_["mean_test_score"] for search in searches)
    np.testing.assert_array_equal(found, expected)
    mvcca.save(searches[0], tmp_path / "search.mvcca")
    back = mvcca.load(tmp_path / "search.mvcca")
    scores = [each.transform({"text": TEXTS[:9]})["text"] for each in (back, searches[1])]
    np.testing.assert_array_equal(*scores)

    figures = [
        mvcca.evaluate_retrieval(X, estimator=searches[1], measures="mrr").mean()["mrr"]
        for X in (views, VIEWS)
    ]
    assert figures[0] == figures[1]
    result = mvcca.compare({"MSDS": model}, views, cv=2, measures="mrr")
    assert result.successes == ["MSDS"]
    assert 0 < result.mean("MSDS", "mrr") <= 1
    nets = {name: value for name, value in TRAINED.items() if name != "random_state"}
    named = mvcca.compare("msds", views, cv=2, measures="mrr", params=nets | {"max_epochs": 2})
    assert named.successes == ["MSDS"]
    assert named.estimators("MSDS")[0].tokens == ["text"]


def test_the_initial_vectors_of_words_are_those_of_random_state():
    rows = Tokens().fit_transform(TEXTS)
    X = {"image": VIEWS["image"], "text": rows}
    scores = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = METHODS["EncoderCCA"]().set_params(max_epochs=2).fit(X)
        scores.append(model.transform(X)["text"])
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize("name", ["MSDS", "EncoderCCA"])
def test_later_batches_have_the_words_of_the_first(name):
    rows = Tokens().fit_transform(TEXTS)
    fewer, more = np.minimum(rows, 3), rows + (rows == rows.max()) * 5
    model = METHODS[name]().set_params(max_epochs=2)
    model.partial_fit({"image": VIEWS["image"], "text": rows})
    for later in (fewer, more):
        model.partial_fit({"image": VIEWS["image"], "text": later})
    assert model.encoders_["text"][0].n_words == 1 + rows.max()
    unknown = np.where(rows > rows.max() - 1, 1, rows)
    raised = np.where(rows > rows.max() - 1, rows.max() + 9, rows)
    np.testing.assert_array_equal(
        model.transform({"text": unknown})["text"], model.transform({"text": raised})["text"]
    )
    model.fit({"image": VIEWS["image"], "text": fewer})
    assert model.encoders_["text"][0].n_words == 4


def test_words_are_counted_in_files(tmp_path):
    rows = Tokens().fit_transform(TEXTS)
    np.save(tmp_path / "text.npy", rows)
    mapped = np.load(tmp_path / "text.npy", mmap_mode="r")
    model = METHODS["MSDS"]().set_params(max_epochs=2)
    models = [clone(model).fit({"image": VIEWS["image"], "text": text}) for text in (rows, mapped)]
    one, other = (model.transform({"text": rows})["text"] for model in models)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("network", [WCNN, WordCNN, WordCNNRNN])
def test_networks_whose_words_are_not_counted_say_so(network):
    with pytest.raises(RuntimeError, match=r"does not know the size .*Give n_words"):
        network().eval()(torch.ones((2, 30), dtype=torch.int64))


@pytest.mark.parametrize("network", [WCNN, WordCNN, WordCNNRNN])
def test_words_beyond_the_vocabulary_are_unknown(network):
    model = network(7).eval()
    rows = torch.tensor([[3, 6, 9, 7, 2] * 6, [1, 6, 8, 0, 0] * 6])
    torch.testing.assert_close(model(rows), model(torch.where(rows > 6, 1, rows)))


def test_networks_of_the_user_are_told_the_number_of_words():
    class Bag(nn.Module):
        takes_integers = True

        def __init__(self):
            super().__init__()
            self.n_words, self.mean = None, None

        def set_n_words(self, n_words, generator=None):
            self.n_words = n_words
            self.mean = nn.EmbeddingBag(n_words, 5, padding_idx=0)
            nn.init.normal_(self.mean.weight, generator=generator)

        def forward(self, tokens):
            return self.mean(tokens)

    encoders = networks() | {"text": Bag()}
    model = EncoderCCA(5, objective=correlation, encoders=encoders, **TRAINED)
    pipeline = before(model, min_count=2).fit(VIEWS)
    assert pipeline[-1].encoders_["text"].n_words == pipeline[0].transformers_["text"].n_words_


def test_a_file_holds_texts_words_and_networks(tmp_path):
    method = METHODS["MSDS with encoders"]().set_params(max_epochs=2)
    unfitted = before(clone(method), min_count=2)
    for model in (unfitted, before(method).fit(VIEWS)):
        mvcca.save(model, tmp_path / "model.mvcca")
        back = mvcca.load(tmp_path / "model.mvcca", encoders=model[-1].encoders)
        assert back[-1].encoders["text"][0].n_words is None
        fitted = model if model is not unfitted else model.fit(VIEWS)
        again = back if model is not unfitted else back.fit(VIEWS)
        np.testing.assert_array_equal(
            again.transform({"text": VIEWS["text"]})["text"],
            fitted.transform({"text": VIEWS["text"]})["text"],
        )
