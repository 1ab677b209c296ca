"""Graded gains, weighted mAP and class means: double loops written from the equations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from mvcca import CCA, Views, measures, retrieval_scorer
from mvcca.machine.config import config_context
from mvcca.retrieval import evaluate_retrieval

RNG = np.random.default_rng(0)
N = 30
SCORES = {name: RNG.normal(size=(N, 3)) for name in ("image", "text")}
Y = RNG.random((N, 6)) < 0.3
Y[:3] = False


def cosine(x, y):
    return sum(x * y) / (sum(x * x) * sum(y * y)) ** 0.5


def lists(queries, gallery, exclude_self=False):
    """Items of every query's list, best first."""
    for q in range(len(queries)):
        items = [i for i in range(len(gallery)) if not (exclude_self and i == q)]
        yield q, sorted(items, key=lambda i: (-cosine(queries[q], gallery[i]), i))


def ndcg_loop(queries, gallery, gain, k, exclude_self=False):
    """Järvelin and Kekäläinen's quotient, position by position."""
    values = []
    for q, ranked in lists(queries, gallery, exclude_self):
        k_ = len(ranked) if k is None else k
        dcg = sum(gain(q, i) / np.log2(j + 1) for j, i in enumerate(ranked[:k_], start=1))
        best = sorted((gain(q, i) for i in ranked), reverse=True)[:k_]
        ideal = sum(g / np.log2(j + 1) for j, g in enumerate(best, start=1))
        values.append(dcg / ideal if ideal else 0.0)
    return values


def shared(q, i):
    return float((Y[q] & Y[i]).sum())


# ---- nDCG ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 1, 4, 100])
def test_ndcg_is_the_quotient_of_the_formula(k):
    gains = RNG.integers(0, 4, size=(N, N)).astype(float)
    gains[0] = 0
    matrix = np.array([[cosine(x, y) for y in SCORES["text"]] for x in SCORES["image"]])
    expected = ndcg_loop(SCORES["image"], SCORES["text"], lambda q, i: gains[q, i], k)
    assert_allclose(measures.ndcg(matrix, gains, k), expected, rtol=1e-12)
    assert len(measures.ndcg(matrix, gains, k, no_relevant="skip")) == N - 1
    assert np.isnan(measures.ndcg(matrix, gains, k, no_relevant="nan")[0])


@pytest.mark.parametrize("k", [None, 1, 5, 200])
@pytest.mark.parametrize("direction", [("image", "text"), ("text", "text")])
@pytest.mark.parametrize(
    ("variant", "of"),
    [("", lambda g: g), (":exponential", lambda g: 2**g - 1), (":binary", lambda g: float(g > 0))],
)
@pytest.mark.parametrize("form", ["dense", "many labels"])
def test_gains_are_the_numbers_of_shared_labels(k, direction, variant, of, form):
    labels = Y if form == "dense" else np.hstack([Y, np.zeros((N, 300), dtype=bool)])
    name = f"ndcg{'' if k is None else f'@{k}'}{variant}"
    query, target = direction
    with config_context(block_rows=7):
        table = evaluate_retrieval(SCORES, labels, measures=name, directions=[direction])
    expected = ndcg_loop(
        SCORES[query], SCORES[target], lambda q, i: of(shared(q, i)), k, query == target
    )
    assert_allclose(table.rows[0].per_query[name], expected, rtol=1e-12)
    assert_allclose(table[direction][name], np.mean(expected), rtol=1e-12)


def test_without_labels_gains_are_one_for_the_same_object():
    table = evaluate_retrieval(SCORES, measures=["ndcg@7", "ndcg"])
    for k in (7, None):
        expected = ndcg_loop(*SCORES.values(), lambda q, i: float(q == i), k)
        name = f"ndcg{'' if k is None else f'@{k}'}"
        assert_allclose(table["image", "text"][name], np.mean(expected), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, csr_array, "function"])
@pytest.mark.parametrize("exclude_self", [True, False])
def test_given_gains_are_of_objects(form, exclude_self):
    gains = RNG.integers(0, 5, size=(N, N)) * 0.5
    given = (lambda a, b: gains[np.ix_(a, b)]) if form == "function" else form(gains)
    with config_context(block_rows=7):
        table = evaluate_retrieval(
            SCORES,
            Y,
            gains=given,
            measures=["ndcg@6", "ndcg", "map"],
            directions="all",
            exclude_self=exclude_self,
        )
    for query, target in (("image", "text"), ("text", "text")):
        own = exclude_self and query == target
        for k, name in ((6, "ndcg@6"), (None, "ndcg")):
            expected = ndcg_loop(SCORES[query], SCORES[target], lambda q, i: gains[q, i], k, own)
            assert_allclose(table[query, target][name], np.mean(expected), rtol=1e-12)
    by_labels = evaluate_retrieval(SCORES, Y, measures="map").mean()["map"]
    assert_allclose(
        np.mean([table[d]["map"] for d in (("image", "text"), ("text", "image"))]), by_labels
    )


def test_relevance_by_gains_is_a_gain_above_zero():
    gains = RNG.integers(0, 3, size=(N, N))
    matrix = np.array([[cosine(x, y) for y in SCORES["text"]] for x in SCORES["image"]])
    table = evaluate_retrieval(
        SCORES, gains=gains, relevance="gains", measures=["map", "p@4", "recall@4", "r@2"]
    )
    relevant = gains > 0
    first = np.take_along_axis(relevant, measures.descending_order(matrix)[:, :4], axis=1)
    ranks = measures.relevant_ranks(matrix, relevant)
    expected = {
        "map": measures.average_precision(matrix, relevant).mean(),
        "p@4": first.mean(),
        "recall@4": np.mean([hits.sum() / max(row.sum(), 1) for hits, row in zip(first, relevant)]),  # noqa: B905
        "r@2": np.mean(ranks <= 2),
    }
    values = table["image", "text"]
    assert_allclose([values[name] for name in expected], list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        (np.ones((3, 3)), r"gains of shape \(30, 30\)"),
        (-np.ones((N, N)), "at least 0, got -1"),
        (np.full((N, N), np.nan), "finite"),
        (lambda a, b: np.ones((len(b), len(a) + 1)), "gains of shape"),
    ],
)
def test_wrong_gains_are_refused(gains, message):
    with pytest.raises(ValueError, match=message):
        evaluate_retrieval(SCORES, gains=gains, measures="ndcg@5")


# ---- weighted mAP -------------------------------------------------------------------------------

ENGLISH, GERMAN = ["ape", "bee", "cat", "dog"], ["Affe", "Biene", "Katze", "Hund", "Pferd"]
WORDS = {name: RNG.normal(size=8) for name in (*ENGLISH, *GERMAN)}
TAGS = {
    "image": [{n for n in ENGLISH if RNG.random() < 0.4} for _ in range(25)],
    "text": [{n for n in GERMAN if RNG.random() < 0.4} for _ in range(20)],
}
TAGS["image"][0] = TAGS["text"][1] = set()
UNPAIRED = {"image": RNG.normal(size=(25, 3)), "text": RNG.normal(size=(20, 3))}


def wmap_loop(query, target, k, precision):
    """Eq. (8), with P(k) = 1 or the mean of h so far."""
    values = []
    for q, ranked in lists(UNPAIRED[query], UNPAIRED[target], query == target):
        h = [
            max(
                (cosine(WORDS[a], WORDS[b]) for a in TAGS[query][q] for b in TAGS[target][i]),
                default=0.0,
            )
            for i in ranked[:k]
        ]
        total = 0.0
        for j in range(1, len(h) + 1):
            p = 1.0 if precision == "binary" else sum(h[:j]) / j
            total += h[j - 1] * p
        values.append(total / len(h))
    return values


def indicators(view):
    names = sorted({name for tags in TAGS[view] for name in tags})
    return np.array([[name in tags for name in names] for tags in TAGS[view]]), names


@pytest.mark.parametrize("k", [5, 50, None])
@pytest.mark.parametrize("precision", ["binary", "weighted"])
@pytest.mark.parametrize("form", ["sets", "frames", "indicators"])
def test_weighted_map_is_that_of_the_double_loop(k, precision, form):
    labels, vectors = TAGS, WORDS
    if form == "frames":
        labels = {
            view: pd.DataFrame(indicators(view)[0], columns=indicators(view)[1]) for view in TAGS
        }
    if form == "indicators":
        labels = {view: indicators(view)[0] for view in TAGS}
        vectors = {view: np.stack([WORDS[n] for n in indicators(view)[1]]) for view in TAGS}
    name = f"wmap{'' if k is None else f'@{k}'}:{precision}"
    with config_context(block_rows=6):
        table = evaluate_retrieval(
            UNPAIRED, labels, label_vectors=vectors, measures=name, directions="all"
        )
    for row in table:
        expected = wmap_loop(row.query, row.target, k, precision)
        assert_allclose(row.per_query[name], expected, rtol=1e-10, atol=1e-14)
        assert_allclose(row.values[name], np.mean(expected), rtol=1e-10)


def test_labels_of_objects_have_word_vectors_too():
    scores, y = SCORES, RNG.integers(4, size=N)
    words = np.stack([WORDS[name] for name in ENGLISH])
    expected = np.mean(
        [
            np.mean([cosine(words[y[q]], words[y[i]]) for i in ranked[:9]])
            for q, ranked in lists(scores["image"], scores["text"])
        ]
    )
    for labels, vectors in (
        (y, words),
        (np.eye(4, dtype=int)[y], words),
        ([{ENGLISH[c]} for c in y], WORDS),
        ([ENGLISH[c] for c in y], dict(zip(ENGLISH, words, strict=True))),
    ):
        table = evaluate_retrieval(scores, labels, label_vectors=vectors, measures="wmap@9")
        assert_allclose(table["image", "text"]["wmap@9"], expected)


def test_weighted_map_is_one_where_all_labels_are_the_same():
    table = evaluate_retrieval(
        SCORES, ["cat"] * N, label_vectors=WORDS, measures=["wmap@50", "wmap@9:weighted", "map"]
    )
    assert_allclose(list(table.mean().values()), 1)


def test_vocabularies_that_differ_have_no_shared_labels():
    labels = {view: indicators(view)[0][:, :4] for view in TAGS}
    vectors = {view: RNG.normal(size=(4, 8)) for view in TAGS}
    with pytest.raises(ValueError, match=r"column i.*is another label.*wmap@50"):
        evaluate_retrieval(UNPAIRED, labels, label_vectors=vectors, measures=["wmap@50", "map"])
    with pytest.raises(ValueError, match=r"nothing in common.*wmap@50"):
        evaluate_retrieval(UNPAIRED, TAGS, label_vectors=WORDS, measures=["wmap@50", "map"])
    with pytest.raises(ValueError, match=r"nothing in common.*wmap@50"):
        evaluate_retrieval(UNPAIRED, TAGS, measures="map")
    same = dict.fromkeys(TAGS, vectors["image"])
    table = evaluate_retrieval(UNPAIRED, labels, label_vectors=same, measures=["wmap@50", "map"])
    expected = evaluate_retrieval(UNPAIRED, labels, measures="map")
    assert table.mean()["map"] == expected.mean()["map"]


def test_columns_without_names_are_matched_by_position_and_the_table_says_so():
    labels = {view: indicators(view)[0][:, :4] for view in TAGS}
    assert any("by position" in note for note in evaluate_retrieval(UNPAIRED, labels).notes)
    named = {
        view: pd.DataFrame(RNG.random((n, 6)) < 0.4, columns=list("abcdef"))
        for view, n in (("image", 25), ("text", 20))
    }
    assert not any("by position" in note for note in evaluate_retrieval(UNPAIRED, named).notes)
    assert not any("by position" in note for note in evaluate_retrieval(SCORES, Y).notes)


@pytest.mark.parametrize(
    ("labels", "vectors", "error", "message"),
    [
        (TAGS, None, ValueError, "wmap@50 needs label_vectors"),
        (TAGS, {"cat": [1.0, 2.0]}, KeyError, "no word vector.*'ape'"),
        (TAGS, {"image": WORDS}, ValueError, "label_vectors of the views"),
        (TAGS, np.eye(3), ValueError, "one word vector per label of view 'image', got 3 for 4"),
        (
            {view: indicators(view)[0] for view in TAGS},
            WORDS,
            ValueError,
            "columns without names",
        ),
        (
            {view: indicators(view)[0] for view in TAGS},
            {"image": np.ones((4, 2)), "text": np.ones((5, 3))},
            ValueError,
            "word vectors of one length",
        ),
    ],
)
def test_wrong_label_vectors_are_refused(labels, vectors, error, message):
    with pytest.raises(error, match=message):
        evaluate_retrieval(UNPAIRED, labels, label_vectors=vectors, measures="wmap@50")


def test_label_vectors_without_labels_are_refused():
    with pytest.raises(ValueError, match="label_vectors need labels"):
        evaluate_retrieval(SCORES, label_vectors=WORDS, measures="wmap@50")


# ---- class means --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*cannot reach a precision")
def test_zero_shot_precision_is_that_of_class_means():
    y = RNG.integers(4, size=N)
    table = evaluate_retrieval(SCORES, y, measures=["p@6:class_means", "p@6"])
    values = []
    for c in np.unique(y):
        query = sum(row for row, own in zip(SCORES["text"], y, strict=True) if own == c) / sum(
            y == c
        )
        order = sorted(range(N), key=lambda i: (-cosine(query, SCORES["image"][i]), i))
        values.append(sum(y[i] == c for i in order[:6]) / 6)
    row = table.rows[1]
    assert (row.query, row.target) == ("text", "image")
    assert_allclose(row.values["p@6:class_means"], np.mean(values))
    assert len(row.per_query["p@6:class_means"]) == 4
    assert len(row.per_query["p@6"]) == N


def test_small_classes_and_several_labels_are_named():
    y = np.repeat(np.arange(5), 6)
    with pytest.warns(UserWarning, match="5 of 5 classes have fewer than 50 items"):
        evaluate_retrieval(SCORES, y, measures="p@50:class_means")
    with pytest.raises(ValueError, match="exactly one class per query, got rows with 0 to"):
        evaluate_retrieval(SCORES, Y, measures="p@5:class_means")
    with pytest.raises(ValueError, match="needs labels"):
        evaluate_retrieval(SCORES, measures="p@5:class_means")


# ---- scorer -------------------------------------------------------------------------------------


def test_the_scorer_takes_label_vectors():
    X = RNG.normal(size=(60, 4))
    views = Views({"image": X, "text": X[:, :3] + 0.1 * RNG.normal(size=(60, 3))})
    y = RNG.integers(4, size=60)
    model = CCA(2).fit(views)
    words = RNG.normal(size=(4, 5))
    scorer = retrieval_scorer("wmap@50", label_vectors=words)
    table = evaluate_retrieval(views, y, estimator=model, measures="wmap@50", label_vectors=words)
    assert scorer(model, views, y) == table.mean()["wmap@50"]
    expected = evaluate_retrieval(views, y, estimator=model, measures="ndcg@10").mean()["ndcg@10"]
    assert retrieval_scorer("ndcg@10")(model, views, y) == expected
