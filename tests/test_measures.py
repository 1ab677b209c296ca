"""Measures against double loops written from their formulas, scikit-learn and SciPy."""

from __future__ import annotations

import itertools
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import coo_array, csr_array
from scipy.stats import pearsonr, rankdata
from sklearn.metrics import average_precision_score

from mvcca import measures
from mvcca.measures import (
    average_precision,
    chance,
    class_means,
    column_correlations,
    descending_order,
    label_set_similarity,
    mean_rank,
    mean_reciprocal_rank,
    median_rank,
    precision_at_k,
    precision_recall_curve,
    recall_at_k,
    relevant_ranks,
    total_correlation,
    unit_rows,
    weighted_average_precision,
)

NORMALIZERS = ("relevant", "cutoff", "hits", "min")
OF_ORDERS = {"optimistic": min, "average": np.mean, "pessimistic": max}


def ranked_lists(seed=0, n_queries=12, n_gallery=30, share=0.3, dtype=float):
    """Scores with many ties, and relevance; query 0 has nothing relevant."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 5, size=(n_queries, n_gallery)).astype(dtype)
    relevance = rng.random((n_queries, n_gallery)) < share
    relevance[0] = False
    return scores, relevance


def stable_list(row):
    return sorted(range(len(row)), key=lambda j: (-row[j], j))


def looped_ranks(scores, relevance, of_orders):
    """Rank of the first relevant item: `of_orders` of those in all orders of equal scores."""
    ranks = []
    for row, relevant in zip(scores, relevance, strict=True):
        if not relevant.any():
            ranks.append(np.inf)
            continue
        best = row[relevant].max()
        n_tied, n_own = (row == best).sum(), (row[relevant] == best).sum()
        firsts = [min(own) for own in combinations(range(n_tied), n_own)]
        ranks.append(1 + (row > best).sum() + of_orders(firsts))
    return np.array(ranks)


def looped_average_precision(scores, relevance, k, normalizer):
    values = []
    for row, relevant in zip(scores, relevance, strict=True):
        length = len(row) if k is None else k
        items = stable_list(row)[:length]
        n_hits, total = 0, 0.0
        for position, item in enumerate(items, start=1):
            if relevant[item]:
                n_hits += 1
                total += n_hits / position
        n_relevant = int(sum(relevant))
        divisor = {
            "relevant": n_relevant,
            "cutoff": length,
            "hits": n_hits,
            "min": min(length, n_relevant),
        }[normalizer]
        values.append(total / divisor if divisor else 0.0)
    return np.array(values)


# ---- ranks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("ties", OF_ORDERS)
def test_ranks_are_those_of_the_formula(ties, dtype):
    scores, relevance = ranked_lists(dtype=dtype)
    expected = looped_ranks(scores, relevance, OF_ORDERS[ties])
    np.testing.assert_allclose(relevant_ranks(scores, relevance, ties), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("ties", "method"), [("optimistic", "min"), ("average", "average"), ("pessimistic", "max")]
)
def test_ranks_of_a_single_relevant_item_are_those_of_scipy(ties, method):
    scores, _ = ranked_lists(n_queries=30)
    expected = [rankdata(-row, method=method)[i] for i, row in enumerate(scores)]
    np.testing.assert_array_equal(relevant_ranks(scores, np.eye(30, dtype=bool), ties), expected)


@pytest.mark.parametrize("container", [csr_array, coo_array])
def test_sparse_relevance_gives_the_same_ranks_and_precisions(container):
    scores, relevance = ranked_lists()
    sparse = container(relevance)
    np.testing.assert_array_equal(relevant_ranks(scores, sparse), relevant_ranks(scores, relevance))
    np.testing.assert_array_equal(
        average_precision(scores, sparse, 7), average_precision(scores, relevance, 7)
    )


def test_zeros_stored_in_a_sparse_relevance_are_not_relevant():
    stored = csr_array((np.array([0, 1]), (np.array([0, 0]), np.array([0, 2]))), shape=(1, 3))
    assert relevant_ranks([[3.0, 2.0, 1.0]], stored) == [3]


@pytest.mark.parametrize("dtype", [bool, np.uint8])
def test_sparse_relevance_may_repeat_entries_and_is_left_as_it_was(dtype):
    relevance = np.array([[1, 0, 1, 1], [0, 1, 0, 1]], dtype=bool)
    scores = np.array([[0.3, 0.9, 0.1, 0.5], [0.2, 0.8, 0.4, 0.6]])
    once = csr_array(relevance, dtype=dtype)
    columns = np.repeat(np.r_[once.indices, 0], 2)[::-1].copy()  # each twice, and a stored zero
    data = np.repeat(np.r_[once.data, 0], 2).astype(dtype)[::-1].copy()
    rows = np.repeat(np.r_[0, 0, 0, 1, 1, 1], 2)[::-1]
    order = np.argsort(rows, kind="stable")
    stored = csr_array((data[order], columns[order], [0, 6, 12]), shape=relevance.shape)
    before = [part.copy() for part in (stored.data, stored.indices, stored.indptr)]
    found = average_precision(scores, stored)
    assert precision_at_k(scores, stored, 2).tolist() == [0.5, 1]
    np.testing.assert_array_equal(found, average_precision(scores, relevance))
    for part, value in zip(before, (stored.data, stored.indices, stored.indptr), strict=True):
        np.testing.assert_array_equal(part, value)


def test_a_collapsed_model_ranks_at_the_middle_and_recalls_nothing():
    ranks = relevant_ranks(np.ones((101, 101)), np.eye(101))
    assert (ranks == 51).all()
    assert recall_at_k(ranks, 50) == 0
    assert recall_at_k(ranks, 51) == 1


def test_equal_items_of_the_query_are_no_reason_for_a_miss():
    ranks = relevant_ranks([[2.0, 2.0, 1.0], [1.0, 1.0, 1.0]], [[1, 1, 0], [1, 1, 0]])
    np.testing.assert_allclose(ranks, [1, 4 / 3])  # (n + 1) / (R + 1) where all are equal
    assert chance.expected_rank(3, np.array([2])) == ranks[1]


def test_row_order_does_not_change_ranks():
    scores, relevance = ranked_lists()
    columns = np.random.default_rng(1).permutation(scores.shape[1])
    np.testing.assert_array_equal(
        relevant_ranks(scores[:, columns], relevance[:, columns]),
        relevant_ranks(scores, relevance),
    )


def test_rank_measures_of_known_ranks():
    ranks = np.array([1, 2, 2.5, 10])
    assert recall_at_k(ranks, 1) == 0.25
    assert recall_at_k(ranks, 2) == 0.5  # 2.5 is a miss at 2
    assert recall_at_k(ranks, 3) == 0.75
    assert median_rank(ranks) == 2.25
    assert mean_rank(ranks) == 15.5 / 4
    assert mean_reciprocal_rank(ranks) == pytest.approx((1 + 1 / 2 + 1 / 2.5 + 1 / 10) / 4)


def test_a_query_without_relevant_items_is_never_found():
    ranks = relevant_ranks([[1.0, 2.0], [1.0, 2.0]], [[False, False], [False, True]])
    assert ranks.tolist() == [np.inf, 1]
    assert recall_at_k(ranks, 10**9) == 0.5
    assert mean_reciprocal_rank(ranks) == 0.5
    assert median_rank([1, 1, np.inf]) == 1
    assert mean_rank(ranks) == np.inf


# ---- average precision --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("k", [None, 1, 5, 30, 40])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_average_precision_is_that_of_the_formula(normalizer, k, dtype):
    scores, relevance = ranked_lists(dtype=dtype)
    np.testing.assert_allclose(
        average_precision(scores, relevance, k, normalizer),
        looped_average_precision(scores, relevance, k, normalizer),
        rtol=1e-14,
    )


def test_average_precision_of_whole_lists_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    scores, relevance = rng.normal(size=(20, 50)), rng.random((20, 50)) < 0.2
    relevance[:, 3] = True
    expected = [average_precision_score(r, s) for r, s in zip(relevance, scores, strict=True)]
    np.testing.assert_allclose(average_precision(scores, relevance), expected, rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 25), st.floats(0.02, 0.98))
def test_divisors_are_ordered_and_agree_on_whole_lists(seed, k, share):
    scores, relevance = ranked_lists(seed, n_queries=5, n_gallery=20, share=share)
    ap = {name: average_precision(scores, relevance, k, name) for name in NORMALIZERS}
    for larger, smaller in itertools.pairwise(["hits", "min", "relevant"]):
        assert (ap[larger] >= ap[smaller] - 1e-15).all()
    assert (ap["min"] >= ap["cutoff"] - 1e-15).all()
    assert all(((values >= 0) & (values <= 1 + 1e-15)).all() for values in ap.values())
    if k >= 20:
        np.testing.assert_allclose(ap["relevant"], ap["hits"])
        np.testing.assert_allclose(ap["relevant"], ap["min"])


def test_a_perfect_ranking_has_average_precision_one_but_by_cutoff():
    scores = -np.arange(20.0)[None, :]
    relevance = np.arange(20)[None, :] < 6
    for name in ("relevant", "hits", "min"):
        assert average_precision(scores, relevance, None, name) == 1
    assert average_precision(scores, relevance, 10, "min") == 1
    assert average_precision(scores, relevance, 4, "hits") == 1
    assert average_precision(scores, relevance, 10, "cutoff") == 6 / 10
    assert average_precision(scores, relevance, 3, "relevant") == 3 / 6


def test_queries_without_relevant_items_count_zero_are_skipped_or_are_nan():
    scores, relevance = ranked_lists()
    zero, skip, nan = (
        average_precision(scores, relevance, no_relevant=rule) for rule in ("zero", "skip", "nan")
    )
    assert zero[0] == 0
    np.testing.assert_array_equal(skip, zero[1:])
    assert np.isnan(nan[0])
    np.testing.assert_array_equal(nan[1:], zero[1:])


def test_a_list_without_hits_has_average_precision_zero():
    assert average_precision([[2.0, 1.0]], [[False, True]], 1, "hits", "nan") == 0


def test_equal_scores_are_listed_by_index():
    assert average_precision(np.zeros((1, 4)), [[True, False, False, False]]) == 1
    assert average_precision(np.zeros((1, 4)), [[False, False, False, True]]) == 1 / 4


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.floats(width=32, allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0]),
        min_size=1,
        max_size=40,
    )
)
def test_the_order_of_float32_is_the_stable_order(values):
    row = np.array([values + values], dtype=np.float32)
    np.testing.assert_array_equal(descending_order(row)[0], stable_list(row[0]))
    np.testing.assert_array_equal(descending_order(row.astype(float))[0], stable_list(row[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 4, 29, 30, 31, None])
def test_the_order_of_the_first_k_is_the_head_of_the_whole_order(k, dtype):
    scores, _ = ranked_lists(dtype=dtype)
    expected = [stable_list(row)[:k] for row in scores]
    np.testing.assert_array_equal(descending_order(scores, k), expected)


# ---- weighted average precision -----------------------------------------------------------------


@pytest.mark.parametrize("precision", ["binary", "weighted"])
@pytest.mark.parametrize("k", [1, 8, 50, None])
def test_weighted_average_precision_is_that_of_the_formula(precision, k):
    scores, _ = ranked_lists()
    h = np.random.default_rng(2).uniform(-1, 1, scores.shape)
    expected = []
    for row, similar in zip(scores, h, strict=True):
        items = stable_list(row)[:k]
        total = 0.0
        for position, item in enumerate(items, start=1):
            seen = sum(similar[j] for j in items[:position]) / position
            total += similar[item] * (1 if precision == "binary" else seen)
        expected.append(total / len(items))
    actual = weighted_average_precision(scores, h, k, precision)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_weighted_average_precision_is_one_where_all_items_share_a_label():
    scores, _ = ranked_lists()
    for precision in ("binary", "weighted"):
        values = weighted_average_precision(scores, np.ones(scores.shape), precision=precision)
        np.testing.assert_allclose(values, 1)


def test_label_set_similarity_is_the_largest_cosine_of_two_labels():
    rng = np.random.default_rng(0)
    queries, gallery = rng.random((7, 4)) < 0.4, rng.random((9, 5)) < 0.4
    queries[0], gallery[0] = False, False
    w_q, w_g = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    w_g[2] = 0
    expected = np.zeros((7, 9))
    for i, j in itertools.product(range(7), range(9)):
        cosines = [
            w_q[a] @ w_g[b] / np.linalg.norm(w_q[a]) / np.linalg.norm(w_g[b]) if b != 2 else 0
            for a in np.flatnonzero(queries[i])
            for b in np.flatnonzero(gallery[j])
        ]
        expected[i, j] = max(cosines, default=0)
    for form in (np.asarray, csr_array):
        actual = label_set_similarity(form(queries), form(gallery), w_q, w_g)
        np.testing.assert_allclose(actual, expected, atol=1e-14)


def test_sets_that_share_a_label_are_wholly_alike():
    words = np.random.default_rng(0).normal(size=(3, 4))
    h = label_set_similarity([[1, 1, 0]], [[0, 1, 0], [0, 0, 1], [1, 0, 1]], words, words)
    np.testing.assert_allclose(h[0, [0, 2]], 1)
    assert h[0, 1] < 1


# ---- precision ----------------------------------------------------------------------------------


def test_precision_at_k_counts_the_first_k():
    scores, relevance = ranked_lists(share=0.6)
    expected = [
        sum(relevant[j] for j in stable_list(row)[:5]) / 5
        for row, relevant in zip(scores, relevance, strict=True)
    ]
    with pytest.warns(UserWarning, match="1 of 12 queries have fewer than 5 relevant"):
        np.testing.assert_allclose(precision_at_k(scores, relevance, 5), expected)


def test_precision_divides_by_k_even_where_there_is_less_to_find():
    with pytest.warns(UserWarning, match="cannot reach"):
        assert precision_at_k([[3.0, 2.0, 1.0]], [[True, True, True]], 50) == 3 / 50


def test_class_means_average_rows_of_a_class():
    rows = np.random.default_rng(0).normal(size=(20, 3))
    y = np.array(list("abca" * 5))
    means, classes = class_means(rows, y)
    assert classes.tolist() == ["a", "b", "c"]
    for mean, name in zip(means, classes, strict=True):
        np.testing.assert_allclose(mean, rows[y == name].mean(axis=0))


def test_interpolated_precision_is_the_best_from_that_recall_on():
    scores, relevance = ranked_lists()
    levels = np.array([0, 0.1, 0.3, 0.5, 0.75, 1])
    curves = precision_recall_curve(scores, relevance, levels)
    for curve, row, relevant in zip(curves, scores, relevance, strict=True):
        hits = relevant[stable_list(row)]
        precision = [hits[:j].mean() for j in range(1, len(hits) + 1)]
        recall = [hits[:j].sum() / max(1, hits.sum()) for j in range(1, len(hits) + 1)]
        for value, level in zip(curve, levels, strict=True):
            reached = [p for p, r in zip(precision, recall, strict=True) if r >= level - 1e-12]
            assert value == pytest.approx(max(reached, default=0))


# ---- correlation --------------------------------------------------------------------------------


def test_column_correlations_are_pearsons():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    Y = X * [1, -2, 0.1, 3] + rng.normal(size=(50, 4))
    expected = [pearsonr(x, y).statistic for x, y in zip(X.T, Y.T, strict=True)]
    np.testing.assert_allclose(column_correlations(X, Y), expected, rtol=1e-12)
    assert total_correlation(X, Y) == pytest.approx(sum(expected))
    assert total_correlation(X, Y, absolute=True) == pytest.approx(np.abs(expected).sum())
    assert total_correlation(X, Y) < total_correlation(X, Y, absolute=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_has_correlation_zero(dtype):
    X = np.full((10, 2), 0.1, dtype=dtype)
    X[:, 1] = np.arange(10)
    assert column_correlations(X, X).tolist() == [0, pytest.approx(1)]


@pytest.mark.parametrize("scale", [1e-160, 1e160])
def test_correlations_do_not_depend_on_scale_or_offset(scale):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 30, 3))
    expected = column_correlations(X, Y)
    np.testing.assert_allclose(column_correlations(X * scale, Y / scale), expected, rtol=1e-12)
    np.testing.assert_allclose(column_correlations(X + 1e5, Y), expected, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-30, 0, 30])
def test_unit_rows_have_length_one_whatever_their_scale(dtype, exponent):
    rows = np.random.default_rng(0).normal(size=(5, 3)).astype(dtype)
    expected = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    unit = unit_rows(rows * dtype(10.0**exponent))
    assert unit.dtype == dtype
    np.testing.assert_allclose(unit, expected, rtol=1e-6 if dtype is np.float32 else 1e-14)
    assert (unit_rows(np.zeros((2, 3))) == 0).all()


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("measure", [relevant_ranks, average_precision, precision_at_k])
def test_scores_that_are_not_finite_are_refused(measure, value):
    scores = np.zeros((2, 3))
    scores[1, 1] = value
    with pytest.raises(ValueError, match="finite"):
        measure(scores, np.ones((2, 3), dtype=bool))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: relevant_ranks(np.zeros((2, 3)), np.ones((3, 2))),
            r"shape \(2, 3\), got \(3, 2\)",
        ),
        (lambda: relevant_ranks(np.zeros((0, 3)), np.ones((0, 3))), "not empty"),
        (lambda: relevant_ranks(np.zeros(3), np.ones(3)), "matrix"),
        (lambda: relevant_ranks(np.zeros((1, 1)), [["yes"]]), "boolean"),
        (lambda: relevant_ranks(np.zeros((1, 1)), np.ma.ones((1, 1))), "Masked arrays"),
        (lambda: relevant_ranks(np.zeros((1, 1)), [[1]], ties="random"), "ties"),
        (lambda: average_precision(np.zeros((1, 1)), [[1]], normalizer="n"), "normalizer"),
        (lambda: average_precision(np.zeros((1, 1)), [[1]], no_relevant="one"), "no_relevant"),
        (lambda: average_precision(np.zeros((1, 1)), [[1]], k=0), "at least 1"),
        (lambda: weighted_average_precision(np.zeros((1, 2)), np.ones((1, 3))), "label_similarity"),
        (lambda: weighted_average_precision(np.zeros((1, 1)), [[1]], precision="x"), "precision"),
        (lambda: label_set_similarity([[1]], [[1]], [[1.0]], [[1.0], [2.0]]), "one word vector"),
        (lambda: recall_at_k([], 1), "at least one query"),
        (lambda: recall_at_k([1.0, np.nan], 1), "NaN"),
        (lambda: recall_at_k([0.5], 1), "1 and above"),
        (lambda: recall_at_k([1], 1.5), "integer"),
        (lambda: precision_recall_curve(np.zeros((1, 1)), [[1]], [1.5]), "between 0 and 1"),
        (lambda: column_correlations(np.zeros((3, 2)), np.zeros((3, 1))), "shape"),
        (lambda: column_correlations(np.zeros((1, 2)), np.zeros((1, 2))), "two rows"),
        (lambda: class_means(np.zeros((3, 2)), [0, 1]), "one per row"),
    ],
)
def test_errors_say_what_was_expected(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---- chance -------------------------------------------------------------------------------------


def every_order(n, n_relevant):
    """Scores of all n! orders of a gallery whose first items are relevant."""
    orders = np.array(list(permutations(range(n))), dtype=float)
    return orders, np.tile(np.arange(n) < n_relevant, (len(orders), 1))


@pytest.mark.parametrize("n_relevant", range(7))
@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_expectations_are_means_over_all_orders(n_relevant, k):
    n, relevant = 6, np.array([n_relevant])
    scores, relevance = every_order(n, n_relevant)
    for normalizer in ("relevant", "cutoff", "hits", "min"):
        expected = measures.average_precision(scores, relevance, k, normalizer).mean()
        found = chance.expected_average_precision(n, relevant, k, normalizer)
        assert_allclose(found, expected, rtol=1e-12)
    whole = measures.average_precision(scores, relevance).mean()
    found = chance.expected_average_precision(n, relevant, None, "relevant")
    assert_allclose(found, whole, rtol=1e-12)
    ranks = measures.relevant_ranks(scores, relevance)
    assert_allclose(chance.hit_probability(n, relevant, k), np.mean(ranks <= k), atol=1e-15)
    assert_allclose(chance.expected_reciprocal_rank(n, relevant), np.mean(1 / ranks))
    assert_allclose(chance.expected_rank(n, relevant), np.mean(ranks))
    first = np.take_along_axis(relevance, np.argsort(-scores, axis=1), axis=1)[:, :k]
    assert_allclose(chance.expected_hits(n, relevant, k), first.sum(axis=1).mean())


@pytest.mark.parametrize(
    "n_relevant",
    [
        *([1], [1, 1], [2, 2, 2], [1, 2], [1, 3, 2], [0, 1, 4], [2, 0, 0], [1, 1, 3, 3]),
        *([0, 1], [0, 0, 1, 1], [0, 1, 1, 2], [0], [0, 0]),  # too few, or just enough
    ],
)
def test_the_expected_median_is_the_mean_over_all_orders_of_all_queries(n_relevant):
    n = 4
    ranks = [measures.relevant_ranks(*every_order(n, r)) for r in n_relevant]
    values = [np.median(rows) for rows in product(*(np.unique(own) for own in ranks))]
    shares = [
        np.prod([np.mean(own == rank) for own, rank in zip(ranks, rows, strict=True)])
        for rows in product(*(np.unique(own) for own in ranks))
    ]
    expected = np.dot(values, shares) if np.isfinite(values).all() else np.inf
    assert_allclose(chance.expected_median_rank(n, np.array(n_relevant)), expected)


def test_no_queries_have_no_expected_median():
    assert np.isnan(chance.expected_median_rank(4, np.array([], dtype=int)))


@pytest.mark.parametrize("n_queries", [1, 2, 51, 1000])
def test_the_expected_median_of_pairs_is_the_middle_of_the_gallery(n_queries):
    """Ranks are symmetric about (n + 1) / 2, and so is their median."""
    found = chance.expected_median_rank(700, np.ones(n_queries, dtype=int))
    assert found == pytest.approx(350.5, rel=1e-12)


def test_the_expected_median_of_many_kinds_of_queries_is_that_of_draws():
    rng = np.random.default_rng(0)
    n, n_relevant = 300, rng.integers(1, 60, size=401)
    found = chance.expected_median_rank(n, n_relevant)
    left = n - np.arange(n)
    later = np.cumprod(np.maximum(left - n_relevant[:, None], 0) / left, axis=1)  # P(rank > r)
    medians = [np.median(1 + (later > rng.random((401, 1))).sum(axis=1)) for _ in range(300)]
    assert found == pytest.approx(np.mean(medians), abs=4 * np.std(medians) / np.sqrt(300))


def test_the_expected_moments_of_counts_give_their_skewness():
    n_items, n_queries, k = 5, 3, 2
    lists = [set(one) for one in combinations(range(n_items), k)]
    counts = np.array(
        [[sum(item in one for one in chosen) for item in range(n_items)]
         for chosen in product(lists, repeat=n_queries)]
    )  # fmt: skip
    deviations = counts - counts.mean()
    skewness = np.mean(deviations**3) / np.mean(deviations**2) ** 1.5
    assert chance.expected_hubness(n_items, n_queries, k) == pytest.approx(skewness)
    assert chance.expected_hubness(n_items, n_queries, 9) == 0
