"""Texts as rows of positions, judged by scikit-learn's word counts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

import mvcca
from mvcca import ModelFileError, PerView, Tokens, Views
from mvcca.machine.archive import read_archive, write_archive

RNG = np.random.default_rng(0)
WORDS = [f"{a}{b}" for a in "bdfgklmnp" for b in ("a", "ei", "o")]
TEXTS = [
    " ".join(RNG.choice(WORDS, size, p=np.arange(27, 0, -1) / 378)).capitalize() + "."
    for size in RNG.integers(1, 12, 60)
]
COLUMN = np.array(TEXTS, dtype=object)[:, None]


@pytest.mark.parametrize(
    "items",
    [TEXTS, tuple(TEXTS), np.array(TEXTS), np.array(TEXTS, dtype=object), COLUMN,
     pd.DataFrame({"text": TEXTS}), pd.Series(TEXTS, index=range(60, 120))],
    ids=["list", "tuple", "array", "objects", "column", "frame", "series"],
)  # fmt: skip
def test_rows_hold_the_words_that_scikit_learn_counts(items):
    tokens = Tokens()
    rows = tokens.fit_transform(items)
    np.testing.assert_array_equal(rows, tokens.transform(items))
    counter = CountVectorizer(vocabulary=list(tokens.vocabulary_))
    counts = np.array([np.bincount(row, minlength=tokens.n_words_)[2:] for row in rows])
    np.testing.assert_array_equal(counts, counter.transform(TEXTS).toarray())
    totals = counts.sum(axis=0)
    assert (np.diff(totals) <= 0).all()  # the most frequent words first
    assert set(tokens.vocabulary_) == set(CountVectorizer().fit(TEXTS).vocabulary_)


def test_words_keep_their_order_and_padding_is_at_the_end():
    tokens = Tokens().fit(TEXTS)
    names = {position: word for word, position in tokens.vocabulary_.items()}
    for text, row in zip(TEXTS, tokens.transform(TEXTS), strict=True):
        words = text.lower().rstrip(".").split()
        assert [names[position] for position in row[: len(words)]] == words
        assert (row[len(words) :] == 0).all()


def test_rare_and_new_words_are_unknown():
    tokens = Tokens(min_count=2).fit(["a a b", "c c c b", "d"])
    assert tokens.vocabulary_ == {"c": 2, "a": 3, "b": 4}
    assert tokens.n_words_ == 5
    assert tokens.transform(["d a z", "", "b"]).tolist() == [
        [1, 3, 1, 0],
        [0, 0, 0, 0],
        [4, 0, 0, 0],
    ]
    most = Tokens(max_words=1).fit(["a a b", "c c c b", "d"])
    assert most.vocabulary_ == {"c": 2}


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [({}, 4), ({"min_length": 6}, 6), ({"max_length": 2}, 2), ({"max_length": 9}, 4)],
)
def test_lengths_bound_the_rows_of_all_texts(lengths, expected):
    tokens = Tokens(**lengths).fit(["a b c d", "b"])
    rows = tokens.transform(["d c b a d c b a d c b a", "c"])
    assert rows.shape == (2, expected)
    assert rows.dtype == np.int32
    assert rows[0, :2].tolist() == [5, 4]
    assert rows[1].tolist() == [4] + [0] * (expected - 1)


def test_case_and_pattern_decide_what_a_word_is():
    assert set(Tokens(lowercase=False).fit(["A a I'm"]).vocabulary_) == {"A", "a", "I", "m"}
    assert set(Tokens(token_pattern=r"[a-z']+").fit(["A a I'm"]).vocabulary_) == {"a", "i'm"}


def test_lists_of_words_are_taken_as_they_are():
    column = np.empty((2, 1), dtype=object)
    column[:, 0] = [["New York", "is"], ("is", "Here")]
    tokens = Tokens().fit(column)
    assert tokens.vocabulary_ == {"is": 2, "Here": 3, "New York": 4}
    assert tokens.transform(["is here"]).tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("parameters", "items", "message"),
    [
        ({}, ["a", None], r"Expected strings or lists of words, got None in row 1"),
        ({}, ["a", float("nan")], r"got nan in row 1.*missing texts by"),
        ({}, [["a", 3]], r"got \['a', 3\] in row 0"),
        ({}, "a text", r"takes a sequence of items, got a single str"),
        ({}, np.array([["a", "b"]]), r"one column of them, got \(1, 2\)"),
        ({}, np.arange(6), r"got .*0.* in row 0"),
        ({}, ["", "  "], r"No word is left: 2 texts have 0 different words"),
        ({"min_count": 3}, ["a a", "b"], r"have 2 different words.* Lower min_count"),
        ({"token_pattern": "("}, ["a"], r"token_pattern='\(' is not a regular expression"),
        ({"min_length": 5, "max_length": 4}, ["a"], r"max_length=4 is smaller than min_length=5"),
        ({"min_count": 0}, ["a"], r"min_count"),
        ({"max_words": "all"}, ["a"], r"max_words"),
    ],
)
def test_what_is_no_text_or_gives_no_words_raises(parameters, items, message):
    with pytest.raises(ValueError, match=message):
        Tokens(**parameters).fit(items)


def test_scikit_learns_containers_and_clones_take_it():
    assert clone(Tokens(min_count=3)).min_count == 3
    frame = Tokens().set_output(transform="pandas").fit_transform(TEXTS)
    assert list(frame.columns[:2]) == ["tokens0", "tokens1"]


def test_integers_stay_integers_beside_other_views():
    views = Views({"image": RNG.normal(size=(60, 3)), "text": COLUMN})
    step = PerView({"image": "passthrough", "text": Tokens()}).fit(views[:50])
    rows = step.transform(views[50:])
    assert rows["text"].dtype == np.int32
    np.testing.assert_array_equal(rows["image"], views["image"][50:])
    with pytest.raises(ValueError, match=r"'text'.*got 3 in row 0"):
        step.transform({"text": np.array([[3]], dtype=object)})


def saved(tmp_path, model):
    mvcca.save(model, tmp_path / "tokens.mvcca")
    return tmp_path / "tokens.mvcca"


def test_a_file_holds_the_vocabulary(tmp_path):
    step = PerView({"text": Tokens(min_count=2, max_length=5)}).fit({"text": COLUMN})
    back = mvcca.load(saved(tmp_path, step))
    np.testing.assert_array_equal(
        back.transform({"text": COLUMN})["text"], step.transform({"text": COLUMN})["text"]
    )
    assert back.transformers_["text"].vocabulary_ == step.transformers_["text"].vocabulary_


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("length_", 10**13),
        ("length_", -1),
        ("length_", "4"),
        ("n_words_", 3),
        ("n_words_", 10**13),
        ("vocabulary_", {"is": "dict", "items": {"a": -5}}),
        ("vocabulary_", {"is": "dict", "items": {"a": 10**9}}),
        ("vocabulary_", {"is": "dict", "items": {"a": 2.0, "b": 3}}),
        ("vocabulary_", ["a", "b"]),
    ],
)
def test_a_forged_vocabulary_is_refused(name, value, tmp_path):
    path = saved(tmp_path, PerView({"text": Tokens()}).fit({"text": COLUMN}))
    arrays, content = read_archive(path)
    parts = content["model"]["parts"]["transformers_"]["items"]["text"]["parts"]
    assert name in parts
    parts[name] = value
    write_archive(path, arrays, content)
    with pytest.raises(ModelFileError, match="cannot be put together"):
        mvcca.load(path)


def test_weights_count_texts():
    texts, weights = ["a dog", "the cat runs away", "a cat", "cat"], [2, 0, 3, 1]
    repeated = [text for text, weight in zip(texts, weights, strict=True) for _ in range(weight)]
    found = Tokens(min_count=3).fit(texts, sample_weight=weights)
    expected = Tokens(min_count=3).fit(repeated)
    assert found.vocabulary_ == expected.vocabulary_ == {"a": 2, "cat": 3}
    assert found.length_ == expected.length_ == 2
    with pytest.raises(ValueError, match="Negative values"):
        Tokens().fit(texts, sample_weight=[-1, 1, 1, 1])
