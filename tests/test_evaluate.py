"""Evaluation over all pairs of views against measures taken by hand, direction by direction."""

from __future__ import annotations

import itertools
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from mvcca import Views, measures
from mvcca.retrieval import evaluate_retrieval
from mvcca.retrieval.evaluate import expected_at_random

ALL_MEASURES = (
    "map",
    "map:hits",
    "map@5",
    "map@5:cutoff",
    "map@5:hits",
    "map@5:relevant",
    "map@3:min",
    "p@4",
    "r@1",
    "r@5",
    "r@5:optimistic",
    "mr",
    "mr:pessimistic",
    "mean_rank",
    "mrr",
)


def projected(n=40, names=("image", "text", "sound"), noise=1.0, seed=0):
    """Noisy copies of the same points, one per view."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 4))
    return {name: points + noise * rng.normal(size=(n, 4)) for name in names}


def label_sets(n=40, seed=0):
    return np.random.default_rng(seed).random((n, 5)) < 0.25


def cosines(queries, gallery):
    norms = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(gallery, axis=1))
    return queries @ gallery.T / norms


def by_hand(scores, of_pairs, of_labels):
    """Every measure of `ALL_MEASURES`, from a whole matrix of scores."""
    ap = lambda k, n: measures.average_precision(scores[1], of_labels, k, n).mean()  # noqa: E731
    ranks = {
        ties: measures.relevant_ranks(scores[0], of_pairs, ties)
        for ties in ("average", "optimistic", "pessimistic")
    }
    first = np.take_along_axis(of_labels, measures.descending_order(scores[1])[:, :4], axis=1)
    return {
        "map": ap(None, "relevant"),
        "map:hits": ap(None, "hits"),
        "map@5": ap(5, "min"),
        "map@5:cutoff": ap(5, "cutoff"),
        "map@5:hits": ap(5, "hits"),
        "map@5:relevant": ap(5, "relevant"),
        "map@3:min": ap(3, "min"),
        "p@4": first.mean(),
        "r@1": np.mean(ranks["average"] <= 1),
        "r@5": np.mean(ranks["average"] <= 5),
        "r@5:optimistic": np.mean(ranks["optimistic"] <= 5),
        "mr": np.median(ranks["average"]),
        "mr:pessimistic": np.median(ranks["pessimistic"]),
        "mean_rank": np.mean(ranks["average"]),
        "mrr": np.mean(1 / ranks["average"]),
    }


def assert_same_values(actual, expected):
    assert list(actual) == list(expected)
    assert_allclose(list(actual.values()), list(expected.values()), rtol=1e-12)


# ---- which relevance, which queries, which gallery ----------------------------------------------


@pytest.mark.parametrize("form", ["mapping", "Views", "DataFrame"])
def test_labels_decide_precision_and_pairs_decide_ranks(form):
    scores, y = projected(), label_sets()
    given = {
        "mapping": lambda: scores,
        "Views": lambda: Views(scores),
        "DataFrame": lambda: {name: pd.DataFrame(block) for name, block in scores.items()},
    }[form]()
    table = evaluate_retrieval(given, y, measures=ALL_MEASURES)
    directions = list(itertools.permutations(scores, 2))
    assert [(row.query, row.target) for row in table] == directions
    share = y.astype(int) @ y.T > 0
    for row, (query, target) in zip(table, directions, strict=True):
        matrix = cosines(scores[query], scores[target])
        expected = by_hand((matrix, matrix), np.eye(40, dtype=bool), share)
        assert_same_values(row.values, expected)
        assert (row.n_queries, row.n_paired, row.n_gallery) == (40, 40, 40)


def test_without_labels_everything_goes_by_pairs():
    scores = projected(names=("image", "text"))
    pairs = np.eye(40, dtype=bool)
    table = evaluate_retrieval(scores, measures=ALL_MEASURES)
    matrix = cosines(scores["image"], scores["text"])
    assert_same_values(table["image", "text"], by_hand((matrix, matrix), pairs, pairs))
    # With one relevant item the precision at its position is the reciprocal rank.
    table = evaluate_retrieval(scores, measures=["map", "mrr"])
    assert_allclose(table.mean()["map"], table.mean()["mrr"])


def test_one_relevance_can_be_asked_for():
    scores, y = projected(names=("image", "text")), label_sets()
    share = y.astype(int) @ y.T > 0
    matrix = cosines(scores["image"], scores["text"])
    for relevance, relevant in (("pairs", np.eye(40, dtype=bool)), ("labels", share)):
        table = evaluate_retrieval(scores, y, measures=ALL_MEASURES, relevance=relevance)
        assert_same_values(table["image", "text"], by_hand((matrix, matrix), relevant, relevant))


def test_unpaired_views_are_ranked_by_labels_and_the_table_says_so():
    rng = np.random.default_rng(0)
    scores = {"image": rng.normal(size=(30, 3)), "text": rng.normal(size=(21, 3))}
    y = {"image": label_sets(30), "text": label_sets(21, seed=1)}
    share = y["image"].astype(int) @ y["text"].T > 0
    matrix = cosines(scores["image"], scores["text"])
    stacked = np.concatenate([y["image"], y["text"]])
    for given, labels in (
        (scores, y),
        (Views.unpaired(scores), y),
        (Views.unpaired(scores), stacked),
    ):
        table = evaluate_retrieval(given, labels, measures=ALL_MEASURES)
        assert_same_values(table["image", "text"], by_hand((matrix, matrix), share, share))
        assert table.rows[0].n_paired == 0
        assert any(
            "mrr" in note and "first item with a shared label" in note for note in table.notes
        )


def test_labels_by_view_mean_unpaired_rows_whatever_their_number():
    rng = np.random.default_rng(0)
    for n_text in (12, 24):
        scores = {"image": rng.normal(size=(12, 3)), "text": rng.normal(size=(n_text, 3))}
        y = {"image": label_sets(12), "text": label_sets(n_text, seed=1)}
        share = y["image"].astype(int) @ y["text"].T > 0
        ranks = measures.relevant_ranks(cosines(scores["image"], scores["text"]), share)
        table = evaluate_retrieval(scores, y, measures="mrr")
        assert table["image", "text"]["mrr"] == np.mean(1 / ranks)


def test_partly_paired_views_ask_only_about_objects_seen_in_both():
    rng = np.random.default_rng(0)
    index = np.array([[0, -1], [1, 0], [2, 2], [-1, 1], [3, 3], [4, -1], [-1, 4]])
    blocks = {"image": rng.normal(size=(5, 3)), "text": rng.normal(size=(5, 3))}
    y = label_sets(7)
    table = evaluate_retrieval(Views(blocks, index), y, measures=ALL_MEASURES)
    images, texts = np.flatnonzero(index[:, 0] >= 0), np.flatnonzero(index[:, 1] >= 0)
    both = np.isin(images, texts)
    matrix = cosines(blocks["image"][index[images, 0]], blocks["text"][index[texts, 1]])
    pairs, share = images[:, None] == texts, y[images].astype(int) @ y[texts].T > 0
    expected = by_hand((matrix[both], matrix), pairs[both], share)
    assert_same_values(table["image", "text"], expected)
    row = table.rows[0]
    assert (row.n_queries, row.n_paired, row.n_gallery) == (5, 3, 5)


def test_several_captions_of_an_image_are_a_group():
    rng = np.random.default_rng(0)
    scores = {"image": rng.normal(size=(8, 3)), "text": rng.normal(size=(24, 3))}
    table = evaluate_retrieval(scores, measures=["mean_rank"])
    matrix, pairs = cosines(*scores.values()), np.arange(8)[:, None] == np.arange(24) // 3
    assert table["image", "text"]["mean_rank"] == measures.relevant_ranks(matrix, pairs).mean()
    assert table["text", "image"]["mean_rank"] == measures.relevant_ranks(matrix.T, pairs.T).mean()
    y = label_sets(8)
    table = evaluate_retrieval(scores, y, measures="map")
    share = (y.astype(int) @ y.T > 0)[:, np.arange(24) // 3]
    expected = measures.average_precision(matrix, share).mean()
    assert_allclose(table["image", "text"]["map"], expected)


@pytest.mark.parametrize("exclude_self", [True, False])
def test_within_a_view_the_query_itself_is_left_out_unless_asked_for(exclude_self):
    scores, y = projected(names=("image", "text")), label_sets()
    table = evaluate_retrieval(
        scores, y, measures=ALL_MEASURES, directions="within", exclude_self=exclude_self
    )
    matrix, share = cosines(scores["text"], scores["text"]), y.astype(int) @ y.T > 0
    if exclude_self:
        others = ~np.eye(40, dtype=bool)
        matrix, share = (m[others].reshape(40, 39) for m in (matrix, share))
    assert_same_values(table["text", "text"], by_hand((matrix, matrix), share, share))
    labelled = y.any(axis=1).mean()
    r_at_1 = evaluate_retrieval(
        scores, y, measures="r@1", directions="within", exclude_self=False
    ).mean()["r@1"]
    assert r_at_1 == labelled  # a query with labels finds itself


def test_a_joint_query_is_the_sum_of_its_views():
    scores, y = projected(), label_sets()
    table = evaluate_retrieval(
        scores, y, measures=["map@5", "mr"], directions=[(("image", "sound"), "text")]
    )
    summed = {"both": scores["image"] + scores["sound"], "text": scores["text"]}
    expected = evaluate_retrieval(
        summed, y, measures=["map@5", "mr"], directions=[("both", "text")]
    )
    assert table["image+sound", "text"] == expected["both", "text"]


def cosine_loop(queries, gallery):
    """cos(Σ_p x_p, Σ_q y_q) of every pair of objects, written from P4's remark (b)."""
    n = len(queries[0])
    matrix = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            x = sum(rows[a] for rows in queries)
            y = sum(rows[b] for rows in gallery)
            matrix[a, b] = sum(x * y) / (sum(x * x) * sum(y * y)) ** 0.5
    return matrix


@pytest.mark.parametrize(
    ("query", "target"),
    [
        (("image", "sound"), ("text", "smell")),
        ("image", ("text", "smell")),
        (("image", "sound", "smell"), "text"),
    ],
)
def test_many_to_many_retrieval_is_that_of_the_double_loop(query, target):
    scores, y = projected(names=("image", "text", "sound", "smell")), label_sets()
    table = evaluate_retrieval(scores, y, measures=ALL_MEASURES, directions=[(query, target)])
    names = [(side,) if isinstance(side, str) else side for side in (query, target)]
    matrix = cosine_loop(*([scores[name] for name in side] for side in names))
    expected = by_hand((matrix, matrix), np.eye(40, dtype=bool), y.astype(int) @ y.T > 0)
    assert_same_values(table["+".join(names[0]), "+".join(names[1])], expected)


def test_a_joint_query_for_the_same_views_leaves_itself_out():
    scores, y = projected(), label_sets()
    table = evaluate_retrieval(
        scores, y, measures="map", directions=[(("image", "text"), ("text", "image"))]
    )
    both = [scores["image"], scores["text"]]
    others = ~np.eye(40, dtype=bool)
    matrix = cosine_loop(both, both)[others].reshape(40, 39)
    share = (y.astype(int) @ y.T > 0)[others].reshape(40, 39)
    expected = measures.average_precision(matrix, share).mean()
    assert_allclose(table["image+text", "text+image"]["map"], expected, rtol=1e-12)


def test_joint_targets_are_the_objects_seen_in_all_their_views():
    blocks = {name: np.eye(4) for name in ("image", "text", "sound")}
    index = np.array([[0, -1, 0], [1, 0, -1], [2, 1, 1], [3, 2, 2], [-1, 3, 3]])
    table = evaluate_retrieval(
        Views(blocks, index), measures="r@1", directions=[("image", ("text", "sound"))]
    )
    row = table.rows[0]
    assert (row.n_queries, row.n_paired, row.n_gallery) == (4, 2, 3)


def test_labels_per_object_may_be_sets_classes_or_sparse():
    scores, y = projected(names=("image", "text")), label_sets()
    expected = evaluate_retrieval(scores, y).mean()
    sets = [set(np.flatnonzero(row).tolist()) for row in y]
    assert evaluate_retrieval(scores, sets).mean() == expected
    assert evaluate_retrieval(scores, csr_array(y)).mean() == expected
    classes = np.arange(40) % 3
    one_hot = np.eye(3)[classes]
    assert evaluate_retrieval(scores, classes).mean() == evaluate_retrieval(scores, one_hot).mean()


def test_the_order_of_objects_does_not_matter():
    scores, y = projected(names=("image", "text")), label_sets()
    order = np.random.default_rng(5).permutation(40)
    shuffled = {name: block[order] for name, block in scores.items()}
    expected = evaluate_retrieval(scores, y, measures=ALL_MEASURES).mean()
    actual = evaluate_retrieval(shuffled, y[order], measures=ALL_MEASURES).mean()
    assert_allclose(list(actual.values()), list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("similarity", ["euclidean", "inner"])
def test_other_similarities_order_as_they_say(similarity):
    scores = projected(names=("image", "text"))
    a, b = scores["image"], scores["text"]
    matrix = a @ b.T if similarity == "inner" else -np.linalg.norm(a[:, None] - b, axis=2)
    expected = measures.mean_rank(measures.relevant_ranks(matrix, np.eye(40, dtype=bool)))
    table = evaluate_retrieval(scores, measures="mean_rank", similarity=similarity)
    assert table["image", "text"]["mean_rank"] == expected


def test_queries_without_relevant_items_can_be_skipped():
    scores, y = projected(names=("image", "text")), label_sets()
    y[:10] = False
    zero = evaluate_retrieval(scores, y, measures="map")["image", "text"]["map"]
    skip = evaluate_retrieval(scores, y, measures="map", no_relevant="skip")["image", "text"]["map"]
    assert_allclose(skip * y.any(axis=1).mean(), zero)


def test_the_recall_curve_is_recall_at_every_cut_off():
    scores = projected()
    curves = evaluate_retrieval(scores, measures=["mrr", "mean_rank"]).recall_curves(10)
    table = evaluate_retrieval(scores, measures=[f"r@{k}" for k in range(1, 11)])
    for row in table:
        assert_allclose(curves[row.query, row.target], list(row.values.values()))
    with pytest.raises(ValueError, match=r'pass measures="mr"'):
        table.recall_curves()


# ---- the table ----------------------------------------------------------------------------------


def test_the_mean_is_over_directions():
    table = evaluate_retrieval(projected(), label_sets(), measures=["map@5", "r@1"])
    for name, value in table.mean().items():
        assert_allclose(value, np.mean([row.values[name] for row in table]))


def test_the_table_prints_aligned_and_says_what_its_numbers_are():
    table = evaluate_retrieval(projected(), label_sets(), measures=["map@5", "map", "r@1", "mr"])
    lines = str(table).splitlines()
    numbers = [line for line in lines if "->" not in line][: len(table) + 2]
    assert len({len(line) for line in numbers}) == 1
    assert lines[0].split() == [
        "query",
        "target",
        "queries",
        "gallery",
        "map@5",
        "map",
        "r@1",
        "mr",
    ]
    assert f"{table['image', 'text']['map@5']:.4f}" in lines[1]
    assert lines[len(table) + 1].startswith("mean")
    assert "map@5: sum of precisions / min(K, R); R items with a shared label; cosine" in lines


def test_the_html_table_holds_the_same_cells():
    table = evaluate_retrieval({"a<b": np.eye(3), "c": np.eye(3)}, measures="r@1")
    page = ET.fromstring(f"<body>{table._repr_html_()}</body>")
    lines = [[cell.text for cell in line] for line in page.iter("tr")]
    assert lines[0] == ["query", "target", "queries", "gallery", "r@1"]
    assert lines[1] == ["a<b", "c", "3", "3", "1.0000"]
    assert page.findtext("p").startswith("r@1: ")


def test_the_frame_is_indexed_by_direction():
    table = evaluate_retrieval(projected(), label_sets(), measures=["map@5", "r@1"])
    frame = table.to_frame()
    assert list(frame.columns) == ["map@5", "r@1"]
    assert frame.index.names == ["query", "target"]
    for row in table:
        assert frame.loc[(row.query, row.target)].to_dict() == row.values


def test_a_missing_pandas_is_named(monkeypatch):
    table = evaluate_retrieval(projected(), measures="r@1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        table.to_frame()


def test_an_unknown_direction_names_the_known_ones():
    with pytest.raises(KeyError, match="no direction"):
        evaluate_retrieval(projected(), measures="r@1")["text", "video"]


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"measures": "auc"}, "Unknown measure 'auc'"),
        ({"measures": "r"}, "needs a cut-off"),
        ({"measures": "mrr@5"}, "takes no cut-off"),
        ({"measures": "map@0"}, "Unknown measure"),
        ({"measures": "map@5:average"}, "variant"),
        ({"measures": "mrr:hits"}, "variant"),
        ({"measures": []}, "at least one measure"),
        ({"similarity": "manhattan"}, "similarity"),
        ({"relevance": "objects"}, "relevance"),
        ({"relevance": "labels"}, "needs labels"),
        ({"directions": "both"}, "directions"),
        ({"directions": [("image", "video")]}, "Unknown view 'video'"),
        ({"directions": [("video", "image")]}, "Unknown view 'video'"),
        ({"directions": [(("image", "image"), "text")]}, "different views to join"),
        ({"directions": [("image", ())]}, "at least one view to join"),
        ({"directions": []}, "no direction"),
        ({"directions": "within"}, "nothing is relevant"),
        ({"labels": np.zeros(39)}, "40 objects, got 39"),
        ({"labels": np.random.default_rng(0).normal(size=(40, 2))}, "real-valued"),
        ({"labels": {"image": np.zeros(40)}}, "labels of the views"),
        ({"no_relevant": "one"}, "no_relevant"),
    ],
)
def test_errors_say_what_was_expected(arguments, message):
    with pytest.raises(ValueError, match=message):
        evaluate_retrieval(projected(), **arguments)


def test_views_of_different_spaces_are_refused():
    with pytest.raises(ValueError, match="one space"):
        evaluate_retrieval({"image": np.eye(3), "text": np.ones((3, 2))})


def test_a_single_view_needs_a_direction():
    with pytest.raises(ValueError, match="within"):
        evaluate_retrieval({"image": np.eye(3)}, [0, 1, 1])


def test_not_a_number_is_refused_with_its_view_and_row():
    scores = projected()
    scores["text"][7, 2] = np.nan
    with pytest.raises(ValueError, match="view 'text' to be finite, got NaN or infinity in row 7"):
        evaluate_retrieval(scores)


def test_every_query_has_its_value_and_its_object():
    rng = np.random.default_rng(0)
    index = np.array([[0, -1], [1, 0], [-1, 1], [2, 2], [3, 3]])  # object 0 is not seen in b
    views = Views({"a": rng.normal(size=(4, 3)), "b": rng.normal(size=(4, 3))}, index)
    scores = measures.unit_rows(views["a"]) @ measures.unit_rows(views["b"]).T
    pairs = {1: 0, 3: 2, 4: 3}  # object -> row in b; its row in a is one of 1, 2, 3
    found = evaluate_retrieval(views, measures=["mrr", "r@1", "mr"], directions=[("a", "b")])
    (row,) = found
    assert_array_equal(row.query_objects["mrr"], list(pairs))
    for of_a, (place, of_b) in zip((1, 2, 3), enumerate(pairs.values()), strict=True):
        rank = 1 + sum(scores[of_a, j] > scores[of_a, of_b] for j in range(4))
        assert row.per_query["mr"][place] == rank
        assert row.per_query["mrr"][place] == 1 / rank
        assert row.per_query["r@1"][place] == (rank == 1)


def test_queries_that_are_skipped_have_no_value():
    scores = {"a": np.eye(3), "b": np.eye(3)}
    labels = {"a": ["x", "y", "z"], "b": ["x", "y", "y"]}
    table = evaluate_retrieval(
        scores, labels, measures=["map", "p@1"], directions=[("a", "b")], no_relevant="skip"
    )
    (row,) = table
    assert_array_equal(row.query_objects["map"], [0, 1])
    assert len(row.per_query["map"]) == 2
    assert len(row.per_query["p@1"]) == 3


# ---- chance -------------------------------------------------------------------------------------

OF_CHANCE = (
    *("map", "map@5", "map@5:hits", "map@5:cutoff", "map@99", "ndcg", "ndcg@7:exponential"),
    *("p@5", "recall@5", "r@1", "r@5:optimistic", "mrr", "mr", "wmap", "wmap@7:weighted"),
)


@pytest.mark.parametrize(
    ("directions", "relevance"),
    [
        ("cross", "labels"),
        pytest.param("cross", None, marks=pytest.mark.slow),
        pytest.param("within", None, marks=pytest.mark.slow),
        pytest.param([(("a", "b"), "c")], "pairs", marks=pytest.mark.slow),
    ],
)
def test_expected_measures_are_those_of_random_scores(directions, relevance):
    """Partly paired views, and label sets of any size; 30 draws."""
    rng = np.random.default_rng(0)
    seen = rng.random((30, 3)) < 0.8
    seen[~seen.any(axis=1)] = True
    index = np.where(seen, np.cumsum(seen, axis=0) - 1, -1)
    labels = [set(rng.choice(list("cdefg"), rng.integers(0, 4), replace=False)) for _ in seen]
    given = {
        "measures": OF_CHANCE,
        "relevance": relevance,
        "directions": directions,
        "label_vectors": {name: rng.standard_normal(4) for name in "cdefg"},
    }

    def noise():
        blocks = {
            name: rng.standard_normal((n, 20))
            for name, n in zip("abc", seen.sum(axis=0), strict=True)
        }
        return Views(blocks, index)

    expected = expected_at_random(noise(), labels, **given)
    draws = [evaluate_retrieval(noise(), labels, **given) for _ in range(30)]
    for place, row in enumerate(expected):
        assert (row.query, row.target) == (draws[0].rows[place].query, draws[0].rows[place].target)
        assert row.n_queries == draws[0].rows[place].n_queries
        for name, value in row.values.items():
            values = np.array([table.rows[place].values[name] for table in draws])
            error = values.std() / np.sqrt(len(values)) + 1e-9
            assert abs(value - values.mean()) < 4.5 * error, name


def test_chance_of_pairs_has_closed_forms():
    views = Views({"a": np.zeros((60, 1)), "b": np.zeros((60, 1))})
    table = expected_at_random(views, measures=["r@1", "r@10", "mr", "mean_rank", "mrr", "map"])
    harmonic = np.sum(1 / np.arange(1, 61))
    expected = {"r@1": 1 / 60, "r@10": 1 / 6, "mr": 30.5, "mean_rank": 30.5}
    expected |= {"mrr": harmonic / 60, "map": harmonic / 60}
    assert table.mean() == pytest.approx(expected)


def test_chance_of_class_means_and_of_hubs():
    classes = np.repeat(np.arange(3), 10)
    views = Views({"a": np.zeros((30, 1)), "b": np.zeros((30, 1))})
    names = ["p@5:class_means", "hubness@3"]
    found = expected_at_random(views, classes, measures=names).mean()
    assert found["p@5:class_means"] == pytest.approx(1 / 3)
    assert found["hubness@3"] == pytest.approx((1 - 0.2) / np.sqrt(30 * 0.1 * 0.9))
