"""Queries in which a model knows nothing: they have no hits, and count as not found."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from mvcca import (
    CCA,
    PerView,
    RetrievalIndex,
    Tokens,
    Views,
    compare,
    evaluate_retrieval,
    open_matrix,
    retrieval_scorer,
    save,
)
from mvcca.cli import main
from mvcca.retrieval import calibrate_matches, retrieval_vectors

WORDS = np.array(["red", "green", "blue", "small", "big", "dog", "cat", "bird", "runs", "sits"])
RNG = np.random.default_rng(0)
CHOSEN = RNG.integers(0, 10, size=(150, 3))
TEXTS = [" ".join(row) for row in WORDS[CHOSEN]]
COUNTS = np.eye(10)[CHOSEN].sum(axis=1)
IMAGES = COUNTS @ RNG.normal(size=(10, 8)) + 0.1 * RNG.normal(size=(150, 8))
LABELS = (COUNTS > 0).astype(int)
VIEWS = Views({"image": IMAGES, "text": TEXTS})
LSA = make_pipeline(TfidfVectorizer(), TruncatedSVD(6, random_state=0))
TRANSFORMERS = {
    "words": TfidfVectorizer(),
    "characters": CountVectorizer(analyzer="char", ngram_range=(3, 4)),
    "reduced": LSA,
    "reduced and scaled": make_pipeline(LSA, "passthrough", StandardScaler()),
    "positions": Tokens(),
}
EMPTY = pytest.mark.filterwarnings("ignore:.* queries empty")


def fitted(transformer=LSA):
    step = PerView({"image": "passthrough", "text": transformer})
    return make_pipeline(step, CCA(3, reg=0.1)).fit(VIEWS[:100])


def index_of(model, **options):
    return RetrievalIndex(model, **options).add({"image": IMAGES})


@pytest.mark.parametrize("transformer", TRANSFORMERS.values(), ids=TRANSFORMERS)
def test_a_text_of_unknown_words_has_no_hits(transformer):
    index = index_of(fitted(transformer))
    with pytest.warns(UserWarning, match="^2 of 4 queries empty.*no known word.*: no hits"):
        scores, ids = index.search({"text": ["zzz qqq", TEXTS[3], "", "dog zzz"]}, "image", k=3)
    assert np.isnan(scores[[0, 2]]).all()
    assert (ids[[0, 2]] == -1).all()
    known = index.search({"text": [TEXTS[3], "dog zzz"]}, "image", k=3)
    np.testing.assert_allclose(scores[[1, 3]], known[0])
    np.testing.assert_array_equal(ids[[1, 3]], known[1])


def test_what_a_text_becomes_decides_and_not_what_a_number_is():
    zeros = np.zeros((1, 8))
    index = index_of(CCA(3).fit({"image": IMAGES[:100], "text": COUNTS[:100]}))
    for queries in ({"image": zeros}, {"text": np.zeros((1, 10))}):  # a black image, perhaps
        assert np.isfinite(index.search(queries, "image", k=2)[0]).all()


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_a_sparse_row_of_zeros_has_no_hits(make, tmp_path):
    model = CCA(3, reg=0.1).fit({"image": IMAGES[:100], "text": sp.csr_array(COUNTS[:100])})
    rows = COUNTS[:3].copy()
    rows[1] = 0
    queries = sp.csr_array(rows)
    queries.data[queries.indptr[2] :] = 0  # stored zeros
    with pytest.warns(UserWarning, match="2 of 3 queries empty.*only zeros"):
        scores, ids = index_of(model).search({"text": make(queries)}, "image", k=2)
    assert np.isnan(scores).all(axis=1).tolist() == [False, True, True]
    assert (ids[1:] == -1).all()
    sp.save_npz(tmp_path / "rows.npz", queries)
    with pytest.warns(UserWarning, match="2 of 3 queries empty"):
        found = index_of(model).search({"text": open_matrix(tmp_path / "rows.npz")}, "image", k=2)
    np.testing.assert_array_equal(found[1], ids)


def test_unknown_categories_are_empty_too():
    colours = np.array(["red", "blue", "green"], dtype=object)[CHOSEN[:, :1] % 3]
    step = PerView({"image": "passthrough", "text": OneHotEncoder(handle_unknown="ignore")})
    model = make_pipeline(step, CCA(2, reg=0.1)).fit(Views({"image": IMAGES, "text": colours}))
    queries = {"text": np.array([["pink"], ["red"]], dtype=object)}
    with pytest.warns(UserWarning, match="1 of 2 queries empty"):
        _, ids = index_of(model).search(queries, "image", k=1)
    assert (ids[:, 0] == -1).tolist() == [True, False]


@EMPTY
@pytest.mark.parametrize(
    ("ids", "missing"),
    [
        (np.char.add("item ", np.arange(150).astype(str)), ""),
        (np.arange(150, dtype=np.uint64), -1),
        (np.arange(150, dtype=np.uint8), -1),
        (np.arange(150, dtype=np.int16), -1),
    ],
    ids=["strings", "uint64", "uint8", "int16"],
)
def test_ids_of_any_type_say_that_there_is_none(ids, missing):
    index = RetrievalIndex(fitted()).add({"image": IMAGES}, ids=ids)
    queries = {"text": ["zzz", *TEXTS[:2]]}
    found = index.search(queries, "image", k=2)[1]
    assert (found[0] == missing).all()
    assert found[1:].tolist() == index.search({"text": TEXTS[:2]}, "image", k=2)[1].tolist()
    only = index.search({"text": ["zzz"]}, "image", k=2)
    assert np.isnan(only[0]).all()
    assert (only[1] == missing).all()


@pytest.mark.parametrize("weighting", ["auto", "likelihood", None])
@pytest.mark.parametrize("hubness", [None, "csls"])
def test_a_joint_query_is_asked_by_the_views_that_say_something(weighting, hubness):
    options = {"hubness": hubness, "bank": VIEWS[:100] if hubness else None}
    index = index_of(fitted(), weighting=weighting, **options)
    both = {"image": IMAGES[:2] + 0.5, "text": ["zzz", TEXTS[1]]}
    scores, ids = index.search(both, "image", k=4)
    alone = index_of(fitted(), weighting=weighting)
    if hubness is None:
        expected = alone.search({"image": both["image"][:1]}, "image", k=4)
        np.testing.assert_allclose(scores[:1], expected[0])
        np.testing.assert_array_equal(ids[:1], expected[1])
    table = evaluate_retrieval(
        both,
        measures="mrr",
        estimator=fitted(),
        weighting=weighting,
        directions=[(("image", "text"), "image")],
        **options,
    )
    assert not any("empty" in note for note in table.notes)
    small = RetrievalIndex(fitted(), weighting=weighting, **options).add({"image": both["image"]})
    lists = small.search(both, "image", k=2)[1]
    places = (lists == [[0], [1]]).argmax(axis=1) + 1
    np.testing.assert_allclose(table.rows[0].per_query["mrr"], 1 / places)


MEASURES = ["map", "map@5", "ndcg", "ndcg@5", "p@5", "recall@5", "r@1", "mrr", "mean_rank"]


@pytest.mark.parametrize("labels", [None, LABELS[100:]], ids=["pairs", "labels"])
def test_evaluation_counts_them_as_not_found(labels):
    model, test = fitted(), VIEWS[100:]
    texts = list(TEXTS[100:])
    texts[7], texts[20] = "zzz", ""
    changed = Views({"image": IMAGES[100:], "text": texts})
    options = {"measures": MEASURES, "estimator": model, "directions": [("text", "image")]}
    expected, found = (
        evaluate_retrieval(views, labels, **options).rows[0] for views in (test, changed)
    )
    asked = np.delete(np.arange(50), [7, 20])
    for measure in MEASURES:
        values = found.per_query[measure]
        np.testing.assert_allclose(values[asked], expected.per_query[measure][asked])
        assert set(values[[7, 20]]) == {np.inf if measure == "mean_rank" else 0}
    assert found.n_queries == 50


def test_the_table_says_how_many_there_are():
    changed = Views({"image": IMAGES[100:103], "text": ["zzz", *TEXTS[101:103]]})
    table = evaluate_retrieval(changed, estimator=fitted(), measures="r@1")
    assert table.notes[-1].startswith("text: 1 of 3 queries empty")
    assert "not found" in table.notes[-1]


@EMPTY
def test_all_doors_agree_on_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [*TEXTS[:100], "zzz", *TEXTS[101:130], "qqq zzz", *TEXTS[131:]]
    views = Views({"image": IMAGES, "text": texts})
    train, test = np.arange(100), np.arange(100, 150)
    model, held_out = fitted(), views[test]
    table = evaluate_retrieval(held_out, measures="r@1", estimator=model)
    figure, mean = table["text", "image"]["r@1"], table.mean()["r@1"]
    ids = (
        RetrievalIndex(model)
        .add({"image": held_out["image"]})
        .search({"text": held_out["text"]}, "image", k=1)[1]
    )
    assert np.mean(ids[:, 0] == np.arange(50)) == figure
    assert retrieval_scorer("r@1", "text", "image")(model, held_out) == figure
    table = evaluate_retrieval(held_out, measures="mr", estimator=model)
    curve = table.recall_curves(50)["text", "image"]
    assert curve[0] == figure
    assert curve[-1] == 48 / 50
    result = compare({"it": model}, views, cv=[(train, test)], measures="r@1")
    assert result.fold_values("it", "r@1") == pytest.approx(mean)
    save(model, "model.mvcca")
    np.save("image.npy", held_out["image"])
    (tmp_path / "text.txt").write_text("\n".join(texts[100:]) + "\n")
    search = ("search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=text.txt")
    assert main([*search, "-k", "1", "-o", "hits.npy"]) == 0
    assert np.mean(np.load("hits.npy")[:, 0] == np.arange(50)) == figure


def test_methods_compared_by_name_see_the_texts_that_a_saved_pipeline_sees():
    texts = [*TEXTS[:100], *["zzz"] * 25, *TEXTS[125:]]
    views = Views({"image": IMAGES, "text": texts})
    cv = [(np.arange(100), np.arange(100, 150))]
    found = compare(["cca"], views, cv=cv, measures=["r@1", "mrr"]).per_query("mrr")
    by_texts = found[found["direction"] == "text -> image"].set_index("object")["value"]
    assert not by_texts[np.arange(100, 125)].any()
    assert by_texts[np.arange(125, 150)].all()


def test_the_command_writes_no_lines_for_them_and_says_so(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(fitted(), "model.mvcca")
    np.save("image.npy", IMAGES)
    (tmp_path / "text.txt").write_text(f"zzz qqq\n{TEXTS[5]}\nqqq\n")
    search = ("search", "model.mvcca", "--gallery", "image=image.npy", "--query", "text=text.txt")
    assert main([*search, "-k", "3"]) == 0
    out, err = capsys.readouterr()
    assert [row["query"] for row in csv.DictReader(out.splitlines())] == ["1"] * 3
    assert "2 of 3 queries empty" in err
    assert main([*search, "-k", "3", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["query"] for line in lines] == [1] * 3
    both = ("--gallery", "text=text.txt")
    for gallery in ((), both):
        assert main([*search, *gallery, "-k", "3", "-o", "hits.npz"]) == 0
        with np.load("hits.npz") as hits:
            assert np.isnan(hits["scores"]).all(axis=1).tolist() == [True, False, True]
            assert (hits["items"] == -1).all(axis=1).tolist() == [True, False, True]
    assert main([*search, "-k", "3", "-o", "hits.trec"]) == 0
    lines = (tmp_path / "hits.trec").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["1"] * 3


def test_runs_hold_no_items_for_them_and_judgements_still_do():
    changed = Views({"image": IMAGES[100:103], "text": ["zzz", *TEXTS[101:103]]})
    table = evaluate_retrieval(changed, estimator=fitted(), measures="r@1", keep_run=2)
    run, qrels = table.to_run("text", "image"), table.to_qrels("text", "image")
    assert [len(run[query]) for query in "012"] == [0, 2, 2]
    assert list(qrels) == ["0", "1", "2"]


def test_matches_are_calibrated_without_them():
    texts = ["zzz", *TEXTS[101:]]
    views = Views({"image": IMAGES[100:], "text": texts})
    calibration = calibrate_matches(views, "text", "image", estimator=fitted())
    assert len(calibration.thresholds) == 49


def test_vectors_of_them_are_zero():
    with pytest.warns(UserWarning, match="'text': 1 of 2 queries empty.*vectors are 0"):
        vectors = retrieval_vectors(fitted(), {"text": ["zzz", TEXTS[0]]}, role="query")["text"]
    assert not vectors[0].any()
    assert vectors[1].any()


@EMPTY
def test_networks_of_words_know_the_words_of_their_vocabulary():
    deep = pytest.importorskip("mvcca.deep", reason="pip install 'mvcca[deep]'")
    small = {"max_epochs": 1, "hidden_layer_sizes": (8,), "random_state": 0}
    tokens = Tokens(min_length=7).fit(TEXTS[:100])
    rows = tokens.transform(["zzz qqq", TEXTS[0], "dog"])
    model = deep.MSDS(3, tokens=["text"], **small, start="random")
    model.fit({"image": IMAGES[:100], "text": tokens.transform(TEXTS[:100])})
    index = RetrievalIndex(model).add({"image": IMAGES})
    ids = index.search({"text": rows}, "image", k=2)[1]
    assert (ids[:, 0] == -1).tolist() == [True, False, False]
    beyond = np.where(rows > 1, 10**6, rows)  # no position of the vocabulary
    assert (index.search({"text": beyond}, "image", k=2)[1] == -1).all()
