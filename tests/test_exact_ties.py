"""Rankings of rows of integers against exact arithmetic: equal similarities are ties."""

from __future__ import annotations

import operator
import pickle
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mvcca import evaluate_retrieval
from mvcca.retrieval import RetrievalIndex, per_query, ranks, score_blocks, top_k
from mvcca.retrieval.search import exact
from mvcca.retrieval.similarity import Euclidean

SIMILARITIES = ("cosine", "euclidean", "inner")
KINDS = ("small", "binary", "dense binary", "one-hot", "counts", "far from 0", "zeros too")


class Identity:
    """Projects nothing: rows are scores already."""

    def transform(self, X):
        return X


def integer_rows(kind: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    if kind == "binary":
        return rng.integers(0, 2, (n, d))
    if kind == "dense binary":
        return (rng.random((n, d)) < 0.85).astype(int)
    if kind == "one-hot":
        return np.eye(d, dtype=int)[rng.integers(0, d, n)]
    if kind == "counts":
        return rng.poisson(2, (n, d))
    shift = rng.choice([7, 300], d) if kind == "far from 0" else 0
    rows = rng.integers(-3, 4, (n, d)) + shift
    return rows * (rng.random((n, 1)) < 0.7) if kind == "zeros too" else rows


def similarity_of(q: list[int], g: list[int], similarity: str) -> Fraction:
    """A number that orders a gallery as the similarity does, in exact arithmetic."""
    if similarity == "euclidean":
        return Fraction(-sum((a - b) ** 2 for a, b in zip(q, g, strict=True)))
    product, square = sum(map(operator.mul, q, g)), sum(map(operator.mul, g, g))
    if similarity == "inner":
        return Fraction(product)
    return Fraction(product * abs(product), square) if square else Fraction(0)


def places(queries: np.ndarray, gallery: np.ndarray, similarity: str) -> np.ndarray:
    """Similarities replaced by their position among the different ones of all pairs."""
    table = [[similarity_of(q, g, similarity) for g in gallery.tolist()] for q in queries.tolist()]
    order = {value: i for i, value in enumerate(sorted({v for row in table for v in row}))}
    return np.array([[order[value] for value in row] for row in table])


def ranks_of(exact_places: np.ndarray) -> np.ndarray:
    own = np.diag(exact_places)[:, None]
    return 1 + (exact_places > own).sum(axis=1) + ((exact_places == own).sum(axis=1) - 1) / 2


def problems(kind: str, n_problems: int):
    for seed in range(n_problems):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 20))
        yield rng, *(integer_rows(kind, n, d, rng) for _ in range(2))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, dtype) for kind in KINDS for dtype in (np.float64, np.float32)]
    + [("counts", np.int8), ("dense binary", bool)],
)
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_ranks_and_lists_of_integer_rows_are_those_of_exact_arithmetic(similarity, kind, dtype):
    for rng, Q, G in problems(kind, 5):
        expected, k = places(Q, G, similarity), int(rng.integers(1, len(G) + 1))
        queries, gallery = Q.astype(dtype), G.astype(dtype)
        assert_array_equal(ranks(queries, gallery, similarity=similarity), ranks_of(expected))
        items = np.argsort(-expected, axis=1, kind="stable")[:, :k]
        assert_array_equal(top_k(queries, gallery, k, similarity)[1], items)


@pytest.mark.parametrize("k", [1, 2, 3, 6])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_tiles_keep_ties(similarity, dtype, k, monkeypatch):
    monkeypatch.setattr(exact, "TILE_ROWS", 7)
    monkeypatch.setattr(exact, "TILE_COLUMNS", 48)
    rng = np.random.default_rng(k)
    Q, G = rng.poisson(1.5, (20, 6)), rng.poisson(1.5, (150, 6))
    items = np.argsort(-places(Q, G, similarity), axis=1, kind="stable")[:, :k]
    found = top_k(Q.astype(dtype), G.astype(dtype), k, similarity)
    assert_array_equal(found[1], items)


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_door_sees_the_same_ties(kind, similarity):
    for _, Q, G in problems(kind, 3):
        scores = {"a": Q.astype(float), "b": G.astype(float)}
        expected, backward = places(Q, G, similarity), places(G, Q, similarity)
        table = evaluate_retrieval(scores, similarity=similarity, measures=["mean_rank", "r@1"])
        mean_ranks = [ranks_of(own).mean() for own in (expected, backward)]
        assert_allclose(table["a", "b"]["mean_rank"], mean_ranks[0], rtol=1e-14)
        assert_allclose(table["b", "a"]["mean_rank"], mean_ranks[1], rtol=1e-14)
        found = per_query(*scores.values(), measure="r@1", similarity=similarity)
        assert_array_equal(found, ranks_of(expected) <= 1)
        order = np.argsort(-expected, axis=1, kind="stable")
        index, n = RetrievalIndex(Identity(), similarity), len(G)
        for start in range(0, n, 7):  # later rows need not be like the first
            index.add({"b": scores["b"][start : start + 7]})
        for searched in (index, pickle.loads(pickle.dumps(index))):
            assert_array_equal(searched.search({"a": scores["a"]}, target="b", k=n)[1], order)
        [(_, values)] = score_blocks(*scores.values(), similarity)
        assert_array_equal(np.argsort(-values, axis=1, kind="stable"), order)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cosines_of_integers_are_cosines(dtype):
    rng = np.random.default_rng(0)
    G = rng.integers(-4, 5, (60, 7)).astype(dtype)
    for Q in (rng.integers(-4, 5, (20, 7)).astype(dtype), rng.normal(size=(20, 7)).astype(dtype)):
        lengths = [np.linalg.norm(X.astype(float), axis=1) for X in (Q, G)]
        expected = Q.astype(float) @ G.T.astype(float) / np.outer(*lengths)
        [(_, values)] = score_blocks(Q, G)
        assert values.dtype == dtype
        assert_allclose(values, expected, atol=4 * np.finfo(dtype).eps)
    assert top_k(G, G, 1)[0].tolist() == [[1.0]] * 60


def test_other_rows_may_follow_integers_in_an_index():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.integers(0, 3, (9, 4)), rng.normal(size=(200, 4))])
    rows[4] = 0
    index = RetrievalIndex(Identity()).add({"b": rows[:9]}).add({"b": rows[9:]})
    queries = rng.normal(size=(11, 4))
    scores, items = index.search({"a": queries}, target="b", k=209)
    expected = top_k(queries, rows, 209)
    assert_array_equal(items, expected[1])
    assert_allclose(scores, expected[0], atol=1e-15)
    lengths = np.concatenate(index._contents.views["b"].lengths.parts)
    assert_allclose(lengths[:4], np.linalg.norm(rows[:4], axis=1))


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_copies_of_a_row_tie_under_a_correction_for_hubs(similarity):
    rng = np.random.default_rng(0)
    G = rng.integers(0, 3, (40, 5)).astype(float) + (similarity == "euclidean") * 9
    gallery, bank = np.concatenate([G, G]), (G[::-1], G[5:])
    found = ranks(G, gallery, np.eye(40, 80), similarity=similarity, hubness="csls", bank=bank)
    once = ranks(G, G, np.eye(40), similarity=similarity, hubness="csls", bank=bank)
    assert_array_equal(found, 2 * once - 0.5)


@pytest.mark.skipif(not find_spec("faiss"), reason="needs faiss")
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_flat_faiss_index_has_the_scores_of_exact_search(similarity):
    rng = np.random.default_rng(0)
    G, Q = (rng.integers(0, 4, (n, 6)).astype(float) + 3 for n in (150, 20))
    flat, plain = (
        RetrievalIndex(Identity(), similarity, backend).add({"b": G})
        for backend in ("faiss:Flat", "exact")
    )
    found, expected = (one.search({"a": Q}, target="b", k=150) for one in (flat, plain))
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


@pytest.mark.skipif(not find_spec("torch"), reason="needs torch")
@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torch_tensors_keep_ties(similarity, dtype):
    import torch

    rng = np.random.default_rng(0)
    Q, G = rng.poisson(1, (20, 5)), rng.poisson(1, (90, 5))
    tensors = [torch.tensor(X, dtype=getattr(torch, dtype)) for X in (Q, G)]
    for k in (1, 4, 90):
        items = np.argsort(-places(Q, G, similarity), axis=1, kind="stable")[:, :k]
        assert_array_equal(top_k(*tensors, k, similarity)[1], items)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_distances_are_measured_from_about_the_mean(dtype):
    rng = np.random.default_rng(0)
    spreads = np.geomspace(1e-4, 1e4, 9)
    rows = (1e5 * rng.normal(size=9) + spreads * rng.normal(size=(2000, 9))).astype(dtype)
    origin = Euclidean().near(rows).origin
    mean, spread = (getattr(rows, name)(axis=0, dtype=float) for name in ("mean", "std"))
    far = np.abs(mean) > spread
    assert_array_equal(origin[~far], 0)
    assert (np.abs(origin - mean) <= 1.001 * spread)[far].all()
    assert_array_equal(Euclidean().near(np.full((50, 2), 7, dtype)).origin, 7)
