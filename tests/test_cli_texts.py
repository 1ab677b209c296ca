"""Views of texts on the command line, judged by pipelines made of scikit-learn's transformers."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import fail, run, succeed
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import mvcca
from mvcca import CCA, PerView, Tokens, Views
from mvcca.cli import options
from mvcca.comparison import texts

RNG = np.random.default_rng(0)
TOPICS = RNG.integers(0, 4, 120)
NAMES, OTHERS = ["red", "blue", "grün", "grey"], ["a", "the", "is", "of", "and"]
TEXTS = [
    " ".join(RNG.permutation([NAMES[topic], *RNG.choice(OTHERS, RNG.integers(1, 5))]))
    for topic in TOPICS
]
IMAGES = np.eye(4, 5)[TOPICS] + 0.1 * RNG.standard_normal((120, 5))
VIEWS = ("--view", "image=image.npy", "--view", "text=text.txt")
CCA_2 = ("--method", "cca", "--param", "n_components=2", "--param", "reg=0.01")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The directory that commands run in: images, and a text for each."""
    monkeypatch.chdir(tmp_path)
    np.save("image.npy", IMAGES)
    write("text.txt", TEXTS)
    write("query.txt", ["some red thing", "grün and blue"])


def write(name, texts, end="\n"):
    Path(name).write_bytes("".join(text + end for text in texts).encode())


def by_hand(n_words, **parameters):
    lsa = make_pipeline(TfidfVectorizer(**parameters), TruncatedSVD(n_words, random_state=0))
    steps = PerView({"image": "passthrough", "text": lsa}), CCA(2, reg=0.01)
    return make_pipeline(*steps).fit(Views({"image": IMAGES, "text": TEXTS}))


def test_texts_become_tf_idf_features_and_the_model_keeps_them(capsys):
    found = json.loads(succeed(capsys, "fit", *VIEWS, *CCA_2, "-o", "model.mvcca", "--json"))
    expected = by_hand(8, min_df=2)
    assert found["views"] == {"image": 5, "text": 8}
    succeed(capsys, "transform", "model.mvcca", "--view", "text=query.txt", "-o", "scores.npy")
    queries = {"text": ["some red thing", "grün and blue"]}
    np.testing.assert_allclose(np.load("scores.npy"), expected.transform(queries)["text"])

    out = succeed(
        capsys, "search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=query.txt"
    )
    index = mvcca.RetrievalIndex(expected).add({"image": IMAGES})
    _, items = index.search(queries, target="image", k=10)
    found = [int(row["item"]) for row in csv.DictReader(out.splitlines())]
    assert found == items.ravel().tolist()


def test_options_bound_the_vocabulary_and_the_number_of_features(capsys):
    options = ("--min-count", 20, "--text-components", 3)
    succeed(capsys, "fit", *VIEWS, *CCA_2, *options, "-o", "model.mvcca")
    model, expected = mvcca.load("model.mvcca"), by_hand(3, min_df=20)
    scores = (each.transform({"text": TEXTS})["text"] for each in (model, expected))
    np.testing.assert_allclose(*scores)


def test_a_matrix_in_a_file_is_still_read_in_blocks(capsys):
    model = by_hand(8, min_df=2)
    succeed(capsys, "fit", *VIEWS, *CCA_2, "--block-rows", 7, "-o", "model.mvcca")
    scores = mvcca.load("model.mvcca").transform({"image": IMAGES})["image"]
    np.testing.assert_allclose(scores, model.transform({"image": IMAGES})["image"], atol=1e-9)
    view = mvcca.open_matrix("image.npy")
    step = model[0].fit({"image": view, "text": TEXTS})
    assert step.transform({"image": view})["image"] is view
    assert step.fit_transform({"image": view, "text": TEXTS})["image"] is view


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_end_at_newlines_only_and_may_follow_a_byte_order_mark(capsys, end):
    odd = ["\ufeffred\u2028blue", "grün\x0cgrey \x85", *TEXTS[2:]]
    write("text.txt", odd, end)
    succeed(capsys, "fit", *VIEWS, *CCA_2, "--min-count", 1, "-o", "model.mvcca")
    vectorizer = mvcca.load("model.mvcca")[0].transformers_["text"][0]
    expected = TfidfVectorizer().fit([odd[0].removeprefix("\ufeff"), *odd[1:]])
    assert vectorizer.vocabulary_ == expected.vocabulary_


def make_bytes(name, content):
    Path(name).write_bytes(content)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: write("text.txt", TEXTS[:7]), r"same number of rows, .*120 .*text 7 \(text.txt\)"),
        (
            lambda: make_bytes("text.txt", b"red\nblue\ngr\xfcn\n"),
            r"text.txt: got the byte 0xfc in line 3; give --encoding cp1252",
        ),
        (
            lambda: write("text.txt", ["red", " ", "blue"]),
            r"text in line 2, it is empty; leave out the object",
        ),
        (lambda: write("text.txt", []), r"text.txt: it is empty"),
        (lambda: Path("text.txt").unlink(), r"text.txt: no such file"),
        (
            lambda: write("text.txt", map(str.swapcase, "ab" * 60)),
            r"'text': no word is left.*Lower",
        ),
    ],
)
def test_files_without_texts_say_what_was_expected(capsys, make, message):
    make()
    assert re.search(message, fail(capsys, "fit", *VIEWS, *CCA_2, "-o", "model.mvcca"))
    assert not Path("model.mvcca").exists()


def test_numbers_where_texts_were_and_texts_where_numbers_were_are_refused(capsys):
    succeed(capsys, "fit", *VIEWS, *CCA_2, "-o", "model.mvcca")
    for view, message in [
        ("text=image.npy", "takes one column of texts, got numbers"),
        ("image=query.txt", "1 features, but CCA is expecting 5"),
    ]:
        err = fail(capsys, "transform", "model.mvcca", "--view", view, "-o", "scores.npy")
        assert message in err
    np.save("text.npy", IMAGES)
    views = ("--view", "image=image.npy", "--view", "text=text.npy")
    code, _, err = run(capsys, "fit", *views, *CCA_2, "--min-count", 2, "-o", "model.mvcca")
    assert code == 2
    assert "--min-count is for views of texts, in .txt files; there are none" in err


def test_a_network_of_words_takes_sequences(capsys):
    pytest.importorskip("torch")
    from mvcca.deep import MSDS

    nets = {"max_epochs": 2, "batch_size": 40, "random_state": 0}
    fit = ("fit", *VIEWS, "--method", "msds", "--param", "n_components=3", "-o", "model.mvcca")
    succeed(capsys, *fit, "--epochs", 2, "--batch-size", 40, "--device", "cpu", "--min-count", 9)
    step = PerView({"image": "passthrough", "text": Tokens(min_count=9)})
    expected = make_pipeline(step, MSDS(3, tokens=["text"], **nets, start="random"))
    expected.fit(Views({"image": IMAGES, "text": TEXTS}))
    model = mvcca.load("model.mvcca")
    queries = {"text": ["some red thing", "grün and blue"]}
    np.testing.assert_array_equal(*(m.transform(queries)["text"] for m in (model, expected)))

    write("text.txt", ["it"] * 120)
    assert "No word is left" in fail(capsys, *fit, "--min-count", 121)
    write("text.txt", TEXTS)
    both = ("--view", "de=text.txt", "--view", "text=text.txt", "--epochs", 1, "-o", "both.mvcca")
    succeed(capsys, "fit", *both, "--method", "msds")
    encoders = mvcca.load("both.mvcca")[-1].encoders_
    assert [encoders[name][0].n_words for name in ("de", "text")] == [2 + len(NAMES) + 5] * 2
    succeed(capsys, "fit", *both, "--method", "msds", "--param", "tokens=de")
    assert mvcca.load("both.mvcca")[-1]._widths["text"] == 8


def test_compare_reads_texts_in_each_fold(capsys):
    out = succeed(
        capsys, "compare", "--verbose", *VIEWS, "--methods", "cca", "--n-components", 2,
        "--reg", 0.1, "--cv", 0.5, "--measures", "mrr",
    )  # fmt: skip
    figure = float(re.search(r"^CCA .* ([\d.]+)±", out, re.M)[1])
    data = Views({"image": IMAGES, "text": TEXTS})
    lsa = make_pipeline(TfidfVectorizer(min_df=2), TruncatedSVD(8, random_state=0))
    step = PerView({"image": "passthrough", "text": lsa})
    expected = mvcca.compare(
        {"CCA": make_pipeline(step, CCA(2, reg=0.1))}, data, cv=0.5, measures="mrr"
    )
    assert figure == pytest.approx(expected.mean("CCA", "mrr"), abs=6e-4)
    assert "--view text=text.txt --method cca" in out


def test_the_defaults_that_the_help_shows_are_those_of_the_step():
    assert (options.MIN_COUNT, options.TEXT_COMPONENTS) == (
        texts.MIN_COUNT,
        texts.TEXT_COMPONENTS,
    )
