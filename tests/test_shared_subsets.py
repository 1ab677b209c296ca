"""Label subsets that sets share, and products with the squared exponential by them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from mvcca import config_context
from mvcca.similarity import LabelGram
from mvcca.similarity._shared_subsets import SharedSubsets
from mvcca.views import Labels


def label_sets(n: int, n_labels: int, mean: float, seed: int = 0) -> Labels:
    """Distinct label sets of a few frequent and many rare labels; the last of them is empty."""
    rng = np.random.default_rng(seed)
    shares = np.minimum(mean / np.arange(1, n_labels + 1) / np.log(n_labels + 1), 0.9)
    indicators = (rng.random((n, n_labels)) < shares).astype(np.uint8)
    indicators[-1] = 0
    return Labels.of(csr_array(indicators)).distinct


CASES = {
    "few labels": label_sets(60, 6, 2),
    "many labels": label_sets(80, 150, 5),
    "large sets": label_sets(50, 30, 25),
    "no set twice": Labels(csr_array(np.eye(9, dtype=np.uint8))),
    "nested sets": Labels(csr_array(np.tri(12, dtype=np.uint8))),
    "a label in all": Labels(csr_array(np.c_[np.ones(9), np.tri(9)].astype(np.uint8))),
    "one set": Labels(csr_array(np.ones((1, 3), np.uint8))),
    "only the empty set": Labels(csr_array((1, 3), dtype=np.uint8)),
    "no labels": Labels(csr_array((1, 0), dtype=np.uint8)),
}


def similarities_by_loops(labels: Labels, sigma: float) -> np.ndarray:
    """G by a loop over all pairs of sets."""
    sets = [set(np.flatnonzero(row)) for row in labels.dense()]
    return np.array([[np.exp(-len(a ^ b) / 2 / sigma) for b in sets] for a in sets])


def subsets_by_recursion(labels: Labels, odds: float) -> list[tuple[list[int], float]]:
    """The plain twin of the search: members and weight of every shared subset."""
    sets, found = labels.dense().astype(bool), []
    ranks = np.argsort(sets.sum(axis=0), kind="stable")

    def visit(members: np.ndarray, first: int, weight: float) -> None:
        for position in range(first, len(ranks)):
            having = members[sets[members, ranks[position]]]
            if len(having) == len(members):  # a label that all of them have adds no subset
                weight *= 1 + odds
            elif len(having) > 1:
                visit(having, position + 1, weight * odds)
        found.append((sorted(members.tolist()), weight))

    visit(np.arange(len(sets)), 0, 1.0)
    return found


@pytest.mark.parametrize("sigma", [0.3, 1.0, 50.0])
@pytest.mark.parametrize("labels", CASES.values(), ids=CASES)
def test_products_by_shared_subsets_equal_a_loop_over_pairs_of_sets(labels, sigma):
    S = np.random.default_rng(1).standard_normal((labels.n_distinct, 67))
    product = SharedSubsets.of(labels, sigma, at_most=np.inf).times(S)
    np.testing.assert_allclose(product, similarities_by_loops(labels, sigma) @ S, atol=1e-12)


@pytest.mark.parametrize("labels", CASES.values(), ids=CASES)
def test_the_search_finds_the_subsets_of_its_plain_twin(labels):
    found = SharedSubsets.of(labels, 1.0, at_most=np.inf)
    subsets = []
    for members, ends, weights in found:
        parts = zip(np.split(members, ends[:-1]), weights, strict=True)
        subsets += [(sorted(found.order[part].tolist()), weight) for part, weight in parts]
    expected = sorted(subsets_by_recursion(labels, np.e - 1))
    assert [members for members, _ in sorted(subsets)] == [members for members, _ in expected]
    weights = [[weight for _, weight in sorted(each)] for each in (subsets, expected)]
    np.testing.assert_allclose(*weights, rtol=1e-12)
    assert found.n_members == sum(len(members) for members, _ in expected)


def test_a_search_in_pieces_that_keeps_nothing_changes_no_bit(monkeypatch):
    labels = label_sets(300, 60, 5)
    S = np.random.default_rng(2).standard_normal((labels.n_distinct, 70))
    whole = SharedSubsets.of(labels, 1.0, at_most=np.inf)
    monkeypatch.setattr("mvcca.similarity._shared_subsets._MEMBERS_AT_ONCE", 1)
    monkeypatch.setattr("mvcca.similarity._shared_subsets._KEPT_BYTES", 0)
    pieces = SharedSubsets.of(labels, 1.0, at_most=np.inf)
    assert len(list(pieces)) > 10
    np.testing.assert_array_equal(pieces.times(S), whole.times(S))


def test_the_order_of_sets_and_of_labels_does_not_change_the_product():
    labels, rng = label_sets(200, 40, 5), np.random.default_rng(3)
    S = rng.standard_normal((labels.n_distinct, 5))
    sets, columns = rng.permutation(labels.n_distinct), rng.permutation(40)
    shuffled = Labels(csr_array(labels.vectors[sets][:, columns]))
    product = SharedSubsets.of(labels, 1.0, at_most=np.inf).times(S)
    again = SharedSubsets.of(shuffled, 1.0, at_most=np.inf).times(S[sets])
    np.testing.assert_allclose(again, product[sets], atol=1e-12)


def test_tiles_are_left_to_sets_that_share_too_much_or_weights_that_overflow():
    assert SharedSubsets.of(label_sets(200, 12, 6), 1.0) is None
    assert SharedSubsets.of(label_sets(2000, 300, 3), 1.0) is not None
    assert SharedSubsets.of(label_sets(2000, 300, 3), 1e-3) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_label_covariance_by_subsets_equals_that_by_tiles(dtype, monkeypatch):
    labels = label_sets(1500, 300, 3)
    S = np.random.default_rng(4).standard_normal((labels.n_distinct, 300)).astype(dtype)
    by_subsets = LabelGram(labels, "sqexp", 0.9)
    results = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            results.append((by_subsets.quadratic(S), by_subsets.times(S[:, :2])))
    assert len(by_subsets.stripes(300)) == 2  # of columns
    monkeypatch.setattr("mvcca.similarity._shared_subsets._ENTRIES_PER_MEMBER", np.inf)
    by_tiles = LabelGram(labels, "sqexp", 0.9, tile_rows=500)
    assert len(by_tiles.stripes(300)) > 2
    expected = by_tiles.quadratic(S), by_tiles.times(S[:, :2])
    tolerance = 1e-12 if dtype == np.float64 else 1e-6
    for found in results:
        for own, first, tiles in zip(found, results[0], expected, strict=True):
            np.testing.assert_array_equal(own, first)
            assert np.abs(own - tiles).max() <= tolerance * np.abs(tiles).max()
    np.testing.assert_array_equal(results[0][0], results[0][0].T)


@pytest.mark.parametrize(
    ("labels", "way"),
    [
        (label_sets(2000, 300, 3), r"sums over shared subsets with [\d,]+ members"),
        (label_sets(200, 12, 6), "tiles of similarities"),
    ],
)
def test_progress_tells_which_way_products_are_taken(labels, way, capsys):
    for progress in (False, True):
        with config_context(progress=progress):
            LabelGram(labels).times(np.ones((labels.n_distinct, 1)))
        written = capsys.readouterr().err
        assert bool(re.search(rf"[\d,]+ label sets: {way}", written)) == progress
