"""Blockwise ranking against whole similarity matrices, and against itself turned round."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_info, threadpool_limits

import mvcca
from mvcca import config_context, measures
from mvcca.machine.threads import each
from mvcca.retrieval import (
    by_labels,
    by_pairs,
    evaluate_retrieval,
    per_query,
    ranks,
    score_blocks,
    top_k,
)
from mvcca.retrieval.parallel_rows import merge_parallel
from mvcca.retrieval.search import Gallery, exact
from mvcca.retrieval.search.gallery import ChunkedRows, RemovedRows
from mvcca.retrieval.similarity import Cosine, similarity_of

SIMILARITIES = ("cosine", "euclidean", "inner")


@pytest.fixture
def small_tiles(monkeypatch):
    """Several tiles and blocks in a small problem."""
    monkeypatch.setattr(exact, "TILE_ROWS", 7)
    monkeypatch.setattr(exact, "TILE_COLUMNS", 48)


def rows(n, width=4, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).normal(size=(n, width)).astype(dtype)


def grid_rows(n, seed=0):
    """Rows of small integers: many equal scores, and none of them rounded."""
    return np.random.default_rng(seed).integers(-1, 2, size=(n, 3)).astype(float)


def whole_matrix(queries, gallery, similarity):
    if similarity == "inner":
        return queries @ gallery.T
    if similarity == "euclidean":
        return -cdist(queries, gallery)
    return 1 - cdist(queries, gallery, "cosine")


def label_sets(n, seed=0):
    return np.random.default_rng(seed).random((n, 5)) < 0.3  # some of them empty


# ---- the k best ---------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 4, 5, 9, 250])  # above a 64th of the gallery it takes whole rows
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.usefixtures("small_tiles")
def test_top_k_is_the_head_of_the_sorted_matrix(similarity, k):
    queries, gallery = rows(23), rows(300, seed=1)
    matrix = whole_matrix(queries, gallery, similarity)
    expected = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    scores, indices = top_k(queries, gallery, k, similarity)
    assert_array_equal(indices, expected)
    assert_allclose(scores, np.take_along_axis(matrix, expected, axis=1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("k", [1, 2, 3, 6, 60, 160])
@pytest.mark.parametrize("similarity", ["inner", "euclidean"])
@pytest.mark.usefixtures("small_tiles")
def test_of_equal_scores_the_lowest_index_comes_first(similarity, k):
    queries, gallery = grid_rows(20), grid_rows(160, seed=1)
    matrix = whole_matrix(queries, gallery, similarity)
    expected = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    assert_array_equal(top_k(queries, gallery, k, similarity)[1], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("k", "width"), [(1, 8), (3, 33), (50, 64), (100, 200), (130, 40)])
def test_merging_tiles_is_sorting_whole_rows(k, width, dtype):
    from mvcca.retrieval.search.merge_tile import merge_tile

    matrix = np.random.default_rng(k).integers(0, 60, size=(9, 400)).astype(dtype)
    scores = np.full((9, k), -np.inf, dtype=dtype)
    items = np.full((9, k), -1, dtype=np.int64)
    for first in range(0, 400, width):
        tile = np.ascontiguousarray(matrix[:, first : first + width])
        merge_tile(tile, first, scores, items)
    expected = measures.descending_order(matrix)[:, :k]
    assert_array_equal(items, expected)
    assert_array_equal(scores, np.take_along_axis(matrix, expected, axis=1))


@pytest.mark.parametrize("k", [2, 3, 40, 149])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.usefixtures("small_tiles")
def test_queries_that_exclude_themselves_find_all_others(similarity, k):
    gallery = rows(150)
    matrix = whole_matrix(gallery, gallery, similarity)
    np.fill_diagonal(matrix, -np.inf)
    expected = np.argsort(-matrix, axis=1, kind="stable")[:, :k]
    assert_array_equal(top_k(gallery, gallery, k, similarity, exclude_self=True)[1], expected)


def test_a_zero_row_has_cosine_zero_with_everything():
    queries = np.array([[0.0, 0], [1, 0]])
    gallery = np.array([[-1.0, 0], [0, 0], [2, 0]])
    scores, indices = top_k(queries, gallery, 3)
    assert scores.tolist() == [[0, 0, 0], [1, 0, -1]]
    assert indices.tolist() == [[0, 1, 2], [2, 1, 0]]


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_scores_have_the_precision_of_the_gallery(similarity):
    queries, gallery = rows(5), rows(20, seed=1)
    exact = top_k(queries, gallery, 4, similarity)
    single = top_k(queries, gallery.astype(np.float32), 4, similarity)
    assert exact[0].dtype == np.float64
    assert single[0].dtype == np.float32
    assert top_k(queries.astype(np.float32), gallery, 4, similarity)[0].dtype == np.float64
    assert_array_equal(single[1], exact[1])
    assert_allclose(single[0], exact[0], rtol=1e-5)


def test_distances_far_from_the_origin_order_as_they_do_near_it():
    gallery = (1e3 + rows(400)).astype(np.float32)
    queries = (1e3 + rows(20, seed=1)).astype(np.float32)
    expected = np.argsort(cdist(queries.astype(float), gallery.astype(float)), axis=1)
    assert_array_equal(top_k(queries, gallery, 5, "euclidean")[1], expected[:, :5])


def test_a_row_is_at_distance_zero_from_its_copy_even_far_from_the_origin():
    gallery = rows(50, dtype=np.float32) + np.float32(1e3)
    scores, indices = top_k(gallery, gallery, 1, "euclidean")
    assert_array_equal(indices[:, 0], np.arange(50))
    assert (scores == 0).all()


@pytest.mark.parametrize("dtype", ["<f4", ">f8", np.float16, np.int8, bool])
def test_any_numbers_in_any_layout_are_searched(dtype):
    queries, gallery = (
        np.asfortranarray(np.round(3 * rows(n, seed=n)).astype(dtype))[::-1] for n in (6, 20)
    )
    expected = top_k(queries.astype(float), gallery.astype(float), 3, "inner")
    scores, indices = top_k(queries, gallery, 3, "inner")
    assert_array_equal(indices, expected[1])
    assert_array_equal(scores, expected[0])


def test_inputs_are_not_written_to():
    queries, gallery = rows(5), rows(20, seed=1)
    before = queries.copy(), gallery.copy()
    for similarity in SIMILARITIES:
        top_k(queries, gallery, 3, similarity)
        ranks(queries, gallery, similarity=similarity)
    assert_array_equal(queries, before[0])
    assert_array_equal(gallery, before[1])


def rounds_by_place(dtype):
    """Whether the BLAS here rounds products of equal rows differently, by where they stand."""
    row = rows(1, 40, dtype=dtype)
    return len(np.unique(np.repeat(row, 48, axis=0) @ np.repeat(row, 96, axis=0).T)) > 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("similarity", [*SIMILARITIES, Cosine(np.linspace(1, 0.01, 40))])
def test_a_few_queries_find_what_they_find_among_many_bit_for_bit(similarity, dtype):
    is_exact = not rounds_by_place(dtype)
    queries, items = rows(30, 40, dtype=dtype), rows(9000, 40, 1, dtype)
    items[5000:] = items[:4000]  # ties
    similarity = similarity_of(similarity).near(items)
    vectors = similarity.items(items)
    for removed in (np.arange(1), np.arange(0, 9000, 3)):
        gallery = Gallery(
            similarity,
            ChunkedRows().plus(vectors),
            similarity.longest(vectors),
            RemovedRows().plus(removed),
        )
        asked = gallery.queries(queries)
        for k in (1, 20):
            many = exact.search(gallery, asked, k)
            assert not np.isin(many[1], removed).any()
            for n in (1, 4):
                few, expected = exact.search(gallery, asked[:n], k), [own[:n] for own in many]
                if is_exact:
                    assert_array_equal(few[0], expected[0])
                    assert_array_equal(few[1], expected[1])
                else:  # of equal rows, any; of their scores, all but the last digit
                    assert_array_equal(vectors[few[1]], vectors[expected[1]])
                    assert_allclose(few[0], expected[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [4, 90])
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.usefixtures("small_tiles")
def test_results_are_the_same_bit_for_bit_for_any_number_of_threads(similarity, k):
    queries, gallery = rows(100, dtype=np.float32), rows(100, seed=1, dtype=np.float32)
    relevance = by_labels(label_sets(100), label_sets(100, seed=1))

    def everything():
        return [
            *top_k(queries, gallery, k, similarity),
            ranks(queries, gallery, similarity=similarity),
            ranks(queries, gallery, relevance, similarity=similarity),
            per_query(queries, gallery, relevance, similarity=similarity),
        ]

    results = []
    with config_context(block_rows=9):
        for n_threads in (1, 2, 4):
            with threadpool_limits(n_threads):
                results.append(everything())
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            assert_array_equal(first, second)


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_blocks_run_side_by_side_with_one_thread_of_blas_each():
    barrier = Barrier(2, timeout=240)  # passed only by two at a time

    def look(rows):
        barrier.wait()
        return rows.start, min(blas_threads())

    with threadpool_limits(2):
        before = blas_threads()
        assert each(look, [slice(0, 1), slice(1, 2)]) == [(0, 1), (1, 1)]
        assert blas_threads() == before


def test_searches_in_concurrent_threads_agree():
    queries, gallery = rows(200), rows(300, seed=1)
    expected = top_k(queries, gallery, 5)
    with threadpool_limits(2):
        before = blas_threads()
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(top_k, queries, gallery, 5) for _ in range(8)]
        assert blas_threads() == before
    for job in jobs:
        assert_array_equal(job.result()[0], expected[0])
        assert_array_equal(job.result()[1], expected[1])


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(rows):
        raise RuntimeError(rows.start)

    with threadpool_limits(2), pytest.raises(RuntimeError, match="0"):
        each(fail, [slice(0, 1), slice(1, 2)])


# ---- ranks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", ["average", "optimistic", "pessimistic"])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_ranks_of_pairs_are_those_of_the_whole_matrix(similarity, ties):
    queries, gallery = rows(60), rows(60, seed=1)
    expected = measures.relevant_ranks(
        whole_matrix(queries, gallery, similarity), np.eye(60, dtype=bool), ties
    )
    with config_context(block_rows=7):
        assert_array_equal(ranks(queries, gallery, similarity=similarity, ties=ties), expected)


@pytest.mark.parametrize("ties", ["average", "optimistic", "pessimistic"])
def test_equal_scores_cost_what_the_whole_matrix_says(ties):
    queries, gallery = grid_rows(40), grid_rows(40, seed=1)
    expected = measures.relevant_ranks(queries @ gallery.T, np.eye(40, dtype=bool), ties)
    assert_array_equal(ranks(queries, gallery, similarity="inner", ties=ties), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_collapsed_model_is_ranked_at_the_middle(dtype):
    same = np.tile(rows(1, dtype=dtype), (333, 1))
    for similarity in SIMILARITIES:
        assert (ranks(same, same, similarity=similarity) == 167).all()
        assert_array_equal(top_k(same, same, 5, similarity)[1], np.tile(np.arange(5), (333, 1)))


def test_several_gallery_rows_per_query_are_ranked_by_their_best():
    queries, gallery = rows(10), rows(50, seed=1)
    matrix = whole_matrix(queries, gallery, "cosine")
    expected = [
        min(1 + (matrix[i] > matrix[i, j]).sum() for j in range(5 * i, 5 * i + 5))
        for i in range(10)
    ]
    assert_array_equal(ranks(queries, gallery), expected)


def test_several_queries_per_gallery_row_share_it():
    queries, gallery = rows(50), rows(10, seed=1)
    matrix = whole_matrix(queries, gallery, "cosine")
    expected = [1 + (matrix[i] > matrix[i, i // 5]).sum() for i in range(50)]
    assert_array_equal(ranks(queries, gallery), expected)


def test_an_orthogonal_map_does_not_change_ranks():
    queries, gallery = rows(40), rows(40, seed=1)
    rotation = np.linalg.qr(rows(4, seed=2))[0]
    for similarity in SIMILARITIES:
        assert_array_equal(
            ranks(queries @ rotation, gallery @ rotation, similarity=similarity),
            ranks(queries, gallery, similarity=similarity),
        )


# ---- relevance by labels ------------------------------------------------------------------------


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("k", [None, 1, 5, 20, 100])
@pytest.mark.parametrize("normalizer", ["relevant", "cutoff", "hits", "min"])
def test_average_precision_is_that_of_the_whole_matrix(normalizer, k, exclude_self):
    queries = rows(60)
    gallery = queries if exclude_self else rows(70, seed=1)
    y_q = label_sets(60)
    y_g = y_q if exclude_self else label_sets(70, seed=1)
    matrix, relevance = whole_matrix(queries, gallery, "cosine"), y_q.astype(int) @ y_g.T > 0
    if exclude_self:
        others = ~np.eye(60, dtype=bool)
        matrix, relevance = matrix[others].reshape(60, 59), relevance[others].reshape(60, 59)
    for rule in ("zero", "skip", "nan"):
        expected = measures.average_precision(matrix, relevance, k, normalizer, rule)
        with config_context(block_rows=11):
            actual = per_query(
                queries,
                gallery,
                by_labels(y_q, y_g),
                measure=f"map:{normalizer}" if k is None else f"map@{k}:{normalizer}",
                no_relevant=rule,
                exclude_self=exclude_self,
            )
        assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize("exclude_self", [False, True])
def test_ranks_by_labels_are_those_of_the_first_item_that_shares_one(exclude_self):
    gallery, y = rows(60), label_sets(60)
    matrix, relevance = whole_matrix(gallery, gallery, "cosine"), y.astype(int) @ y.T > 0
    expected = []
    for i in range(60):
        items = [j for j in np.argsort(-matrix[i]) if not (exclude_self and j == i)]
        hits = [position for position, j in enumerate(items, start=1) if relevance[i, j]]
        expected.append(min(hits, default=np.inf))
    actual = ranks(gallery, gallery, by_labels(y, y), exclude_self=exclude_self)
    assert_array_equal(actual, expected)


@pytest.mark.parametrize(
    "form",
    [
        lambda y: y.astype(int),
        csr_array,
        lambda y: [set(np.flatnonzero(row).tolist()) for row in y],
        lambda y: [{"abcde"[j] for j in np.flatnonzero(row)} for row in y],
    ],
)
def test_labels_in_any_form_mean_the_same(form):
    queries, gallery = rows(30), rows(40, seed=1)
    y_q, y_g = label_sets(30), label_sets(40, seed=1)
    assert_array_equal(
        per_query(queries, gallery, by_labels(form(y_q), form(y_g)), measure="map@5"),
        per_query(queries, gallery, by_labels(y_q, y_g), measure="map@5"),
    )


def test_equal_classes_are_relevant():
    y_q, y_g = np.array(["cat", "dog", "eel"]), np.array(["dog", "cat", "dog", "fox"])
    relevance = by_labels(y_q, y_g)
    assert_array_equal(relevance.of(slice(0, 3)), y_q[:, None] == y_g)
    hits, n_relevant = relevance.of_items(slice(0, 3), np.array([[0, 1], [2, 3], [1, 0]]))
    assert hits.tolist() == [[False, True], [True, False], [False, False]]
    assert n_relevant.tolist() == [1, 2, 0]


@pytest.mark.parametrize(("n_queries", "n_gallery"), [(6, 6), (6, 18), (18, 6)])
@pytest.mark.parametrize("form", ["pairs", "few labels", "many labels"])
def test_a_relevance_says_the_same_of_items_and_of_the_gallery(form, n_queries, n_gallery):
    items = np.random.default_rng(0).integers(0, n_gallery, size=(n_queries, 4))
    y_q, y_g = label_sets(n_queries), label_sets(n_gallery, seed=1)
    if form == "many labels":  # never used, but they are there
        y_q, y_g = (np.pad(y, ((0, 0), (0, 300))) for y in (y_q, y_g))
    relevance = by_pairs(n_queries, n_gallery) if form == "pairs" else by_labels(y_q, y_g)
    if form == "pairs":
        least = min(n_queries, n_gallery)
        codes = [np.arange(n) // (n // least) for n in (n_queries, n_gallery)]
        expected = codes[0][:, None] == codes[1]
    else:
        expected = y_q.astype(int) @ y_g.T > 0
    for block in (slice(0, n_queries), slice(2, 5)):
        matrix = relevance.of(block)
        assert_array_equal(matrix.toarray() if form == "pairs" else matrix, expected[block])
        hits, n_relevant = relevance.of_items(block, items[block])
        assert_array_equal(hits, np.take_along_axis(expected[block], items[block], axis=1))
        assert_array_equal(n_relevant, expected[block].sum(axis=1))


def test_score_blocks_cover_the_matrix():
    queries, gallery = rows(23), rows(30, seed=1)
    with config_context(block_rows=5):
        blocks = list(score_blocks(queries, gallery))
    assert [block.start for block, _ in blocks] == [0, 5, 10, 15, 20]
    matrix = np.concatenate([scores for _, scores in blocks])
    assert_allclose(matrix, whole_matrix(queries, gallery, "cosine"), atol=1e-12)


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: top_k(rows(2), rows(3), 4), ValueError, "from 1 to 3"),
        (lambda: top_k(rows(2), rows(3), 0), ValueError, "from 1 to 3"),
        (lambda: top_k(rows(2), rows(3), True), ValueError, "from 1 to 3"),
        (lambda: top_k(rows(3), rows(3), 3, exclude_self=True), ValueError, "from 1 to 2"),
        (lambda: top_k(rows(2), rows(3), 1, exclude_self=True), ValueError, "gallery's rows"),
        (lambda: top_k(rows(1), rows(1), 1, exclude_self=True), ValueError, "only the query"),
        (lambda: top_k(rows(2), rows(0), 1), ValueError, "gallery is empty"),
        (lambda: top_k(rows(2, 3), rows(3), 1), ValueError, "3 components, the gallery has 4"),
        (lambda: top_k(rows(2)[0], rows(3), 1), ValueError, r"reshape\(1, -1\)"),
        (lambda: top_k(rows(2), rows(3), 1, "manhattan"), ValueError, "similarity"),
        (lambda: top_k(rows(2) + 1j, rows(3), 1), ValueError, "real numbers"),
        (lambda: top_k(csr_array(rows(2)), rows(3), 1), TypeError, "dense"),
        (lambda: top_k(rows(2) * 1e200, rows(3) * 1e200, 1, "inner"), ValueError, "overflow"),
        (lambda: top_k(rows(2) * 1e300, rows(3), 1, "euclidean"), ValueError, "overflow"),
        (lambda: ranks(rows(2), rows(3)), ValueError, "a multiple"),
        (lambda: ranks(rows(2), rows(3), by_pairs(2, 2)), ValueError, "2 queries and 2 gallery"),
        (lambda: by_labels([0.5, 0.2], [0.1]), ValueError, "real-valued"),
        (lambda: by_labels([0, 1], np.eye(2)), ValueError, "kind"),
    ],
)
def test_errors_say_what_was_expected(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_with_their_row(value):
    bad = rows(5)
    bad[3, 1] = value
    with pytest.raises(ValueError, match="gallery to be finite, got NaN or infinity in row 3"):
        top_k(rows(2), bad, 1)
    with pytest.raises(ValueError, match="queries to be finite"):
        top_k(bad, rows(2), 1)


def test_no_queries_find_nothing():
    scores, indices = top_k(rows(0), rows(5), 2)
    assert scores.shape == indices.shape == (0, 2)
    assert ranks(rows(0), rows(5), by_labels(np.zeros((0, 2)), np.ones((5, 2)))).shape == (0,)


@pytest.mark.slow
def test_kernels_compile_without_a_cache_where_nothing_can_be_written():
    program = """
import numba, numpy
def refuse(*args, **kwargs):
    raise RuntimeError("cannot cache function: no locator available")
original = numba.njit
def njit(*args, cache=False, **kwargs):
    return refuse() if cache else original(*args, **kwargs)
numba.njit = njit
from mvcca.retrieval import top_k
print(top_k(numpy.eye(40), numpy.eye(40), 1)[1].ravel().tolist() == list(range(40)))
"""
    answer = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(mvcca.__file__).parents[1])},
    )
    assert answer.stdout.strip() == "True"


@pytest.mark.parametrize("form", [np.asarray, np.uint8, float, list, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("k", [None, 7])
def test_relevance_may_be_a_matrix(form, k):
    queries, gallery, given = rows(30), rows(40, seed=1), np.random.default_rng(2).random((30, 40))
    relevant = given < 0.1
    matrix = relevant.astype(float) if form is float else form(relevant)
    scores = queries @ gallery.T
    found = ranks(queries, gallery, matrix, similarity="inner")
    np.testing.assert_array_equal(found, measures.relevant_ranks(scores, relevant))
    name = "map" if k is None else f"map@{k}:relevant"
    found = per_query(queries, gallery, matrix, measure=name, similarity="inner")
    np.testing.assert_allclose(found, measures.average_precision(scores, relevant, k=k))


@pytest.mark.parametrize(
    ("relevance", "message"),
    [
        (np.full((3, 3), 0.5), r"boolean matrix of shape .*got float64 of shape"),
        (np.ones(3, dtype=bool), r"boolean matrix .*got bool of shape \(3,\)"),
        (np.ones((3, 2), dtype=bool), "of 3 queries and 2 gallery rows, got 3 and 3"),
        (np.ma.array(np.eye(3)), "Masked arrays are not supported"),
        ("labels", "boolean matrix"),
    ],
)
def test_what_is_no_relevance_is_refused(relevance, message):
    with pytest.raises(ValueError, match=message):
        ranks(rows(3), rows(3), relevance)


@pytest.mark.parametrize("measure", [ranks, per_query])
@pytest.mark.parametrize("relevance", [None, by_pairs(6, 6)], ids=["default", "by pairs"])
def test_pairs_leave_nothing_relevant_without_the_query_itself(measure, relevance):
    X = rows(6)
    with pytest.raises(ValueError, match=r"nothing is relevant by pairs.*by_labels"):
        measure(X, X, relevance, exclude_self=True)
    classes = [0, 0, 0, 1, 1, 1]
    assert np.isfinite(measure(X, X, by_labels(classes, classes), exclude_self=True)).all()


def test_labels_of_queries_and_gallery_without_a_name_in_common_are_refused():
    with pytest.raises(ValueError, match=r"'cat', 'dog'\) have nothing in common .*'Katze'"):
        by_labels(["cat", "dog"], ["Katze", "Hund", "Katze"])
    scores = {"image": rows(4), "text": rows(6, seed=1)}
    labels = {"image": ["cat", "dog"] * 2, "text": ["Katze", "Hund"] * 3}
    with pytest.raises(ValueError, match="have nothing in common"):
        evaluate_retrieval(scores, labels)
    assert evaluate_retrieval(scores, labels, directions="within").mean()["map@50"] > 0


def test_masked_scores_are_refused():
    with pytest.raises(ValueError, match="Masked arrays are not supported"):
        ranks(rows(3), np.ma.array(rows(3)))


def test_labels_of_other_objects_are_not_evaluated():
    ids = list("abcdef")
    scores = {name: pd.DataFrame(rows(6, seed=seed), index=ids) for seed, name in enumerate("pq")}
    labels = pd.Series([0, 0, 1, 1, 2, 2], index=ids)
    expected = evaluate_retrieval(scores, labels).mean()
    assert evaluate_retrieval(scores, labels.to_numpy()).mean() == expected
    turned = labels.iloc[::-1]
    for y in (turned, {"p": labels, "q": turned}):
        with pytest.raises(ValueError, match="have the same labels in a different order"):
            evaluate_retrieval(scores, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [100, 3000])
def test_parallel_rows_are_ties_under_the_cosine(dtype, n):
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(7)
    rows = np.outer(np.exp(rng.standard_normal(n)), direction).astype(dtype)
    assert_array_equal(ranks(rows, rows), (n + 1) / 2)
    _, items = top_k(rows[:5], rows, 4)
    assert_array_equal(items, [[0, 1, 2, 3]] * 5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_only_rows_within_rounding_of_each_other_are_made_equal(dtype):
    rng = np.random.default_rng(1)
    eps = np.finfo(dtype).eps
    U = measures.unit_rows(rng.standard_normal((5000, 3)).astype(dtype))
    U[1000:1010] = U[:10] * (1 + 40 * eps * rng.choice([-1, 1], (10, 3)))  # near, yet distinct
    U[2000:2010] = measures.unit_rows((U[:10] * dtype(3)).astype(dtype))
    U[3000:3010] = U[10:20]
    merged = merge_parallel(U)
    assert_array_equal(merged[2000:2010], U[:10])
    rest = np.r_[:2000, 2010:5000]
    assert_array_equal(merged[rest], U[rest])


def test_a_chain_of_near_rows_is_not_drawn_together():
    eps = np.finfo(float).eps
    angles = 0.5 + 4 * eps * np.arange(1000)  # each parallel to the next, not to the last
    U = np.column_stack([np.cos(angles), np.sin(angles)])
    assert np.abs(merge_parallel(U) - U).max() <= 8 * eps
