"""Statistics against double loops over rows, and against themselves cut into blocks."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np
import pytest
from scipy.sparse import csr_array

from mvcca import Labels, Views, config_context
from mvcca.similarity import LabelGram, squared_exponential
from mvcca.statistics import LabelSums, Moments, PairMoments


def partly_paired(n: int = 41, seed: int = 0) -> Views:
    rng = np.random.default_rng(seed)
    index = np.where(rng.random((n, 3)) < 0.7, np.arange(n)[:, None], -1)
    index[:4] = np.arange(4)[:, None]  # some objects are seen in all views
    return Views(
        {name: rng.standard_normal((n, d)) + 3 for name, d in zip("abc", (3, 2, 4), strict=True)},
        index,
    )


def paired(n: int = 41, seed: int = 0, dtype: type = np.float64, mean: float = 3.0) -> Views:
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((4, 6))
    latent = rng.standard_normal((n, 4))
    X = latent @ mixing + rng.standard_normal((n, 6))
    return Views({"a": (X[:, :4] + mean).astype(dtype), "b": (X[:, 4:] + mean).astype(dtype)})


def sparse(views: Views) -> Views:
    return views.replace({name: csr_array(block) for name, block in views.items()})


def covariance_by_loop(views: Views) -> np.ndarray:
    """Each view centred by all its rows, each pair of views over the objects they share."""
    rows = {}
    for name, block in views.items():
        values = np.full((len(views), block.shape[1]), np.nan)
        values[views.objects(name)] = block - block.mean(axis=0)
        rows[name] = values
    X = np.concatenate(list(rows.values()), axis=1)
    covariance = np.zeros((X.shape[1], X.shape[1]))
    for i in range(X.shape[1]):
        for j in range(X.shape[1]):
            both = ~np.isnan(X[:, i]) & ~np.isnan(X[:, j])
            covariance[i, j] = (X[both, i] * X[both, j]).sum() / (both.sum() - 1)
    return covariance


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("make", [paired, partly_paired])
def test_covariance_equals_a_loop_over_shared_objects(make, as_sparse):
    views = make()
    moments = Moments.of(sparse(views) if as_sparse else views)
    np.testing.assert_allclose(moments.covariance(), covariance_by_loop(views), atol=1e-12)


def test_covariance_of_dense_beside_sparse_views_equals_that_of_dense_views():
    views = partly_paired()
    mixed = views.replace({"a": csr_array(views["a"]), "b": views["b"], "c": csr_array(views["c"])})
    np.testing.assert_allclose(
        Moments.of(mixed).covariance(), Moments.of(views).covariance(), atol=1e-12
    )


@pytest.mark.parametrize("make", [paired, partly_paired])
@pytest.mark.parametrize("size", [1, 2, 7, 41])
def test_moments_of_blocks_add_up_to_moments_of_the_whole(make, size):
    views = make()
    blocks = [views[start : start + size] for start in range(0, len(views), size)]
    forwards, backwards = (reduce(add, map(Moments.of, b)) for b in (blocks, blocks[::-1]))
    with config_context(block_rows=size):
        cut = Moments.of(views)
    for moments in (forwards, backwards, cut):
        np.testing.assert_allclose(moments.covariance(), covariance_by_loop(views), atol=1e-12)
        np.testing.assert_allclose(moments.mean()["b"], views["b"].mean(axis=0), atol=1e-13)


def test_integer_weights_are_repetitions_and_zero_weights_are_absences():
    views = partly_paired()
    times = np.random.default_rng(1).integers(0, 4, len(views))
    weighted = Moments.of(views, times.astype(float))
    repeated = Moments.of(views[np.repeat(np.arange(len(views)), times)])
    np.testing.assert_allclose(weighted.covariance(), repeated.covariance(), atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "mean", "tolerance"),
    [
        (np.float64, 1e5, 1e-9),
        (np.float32, 1e3, 1e-4),
        (np.float64, 0, 1e-12),
        (np.float32, 0, 1e-5),
    ],
)
@pytest.mark.parametrize("block_rows", [64, 1000])
def test_covariance_survives_a_mean_far_from_zero(dtype, mean, tolerance, block_rows):
    views = paired(1000, dtype=dtype, mean=mean)
    exact = np.cov(np.concatenate([b.astype(float) for _, b in views.items()], axis=1).T)
    with config_context(block_rows=block_rows):
        covariance = Moments.of(views).covariance()
    assert np.abs(covariance - exact).max() / np.abs(exact).max() <= tolerance
    assert covariance.dtype == np.float64


@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [0.1, 1.0, 1e5 / 3])
def test_a_constant_column_has_no_scatter_at_all(value, as_sparse):
    views = paired(1000)
    block = views["a"].copy()
    block[:, 1] = value
    views = views.replace({"a": block, "b": views["b"]})
    with config_context(block_rows=300):
        covariance = Moments.of(sparse(views) if as_sparse else views).covariance()
    assert not covariance[1].any()
    assert not covariance[:, 1].any()


def test_moments_of_other_widths_do_not_add():
    with pytest.raises(ValueError, match="widths"):
        Moments.of(paired()) + Moments.of(partly_paired())


# ---- label sums ----------------------------------------------------------------------------------


def label_covariance_by_loop(blocks, vectors, g) -> np.ndarray:
    """Eq. (4) as it stands: Ψ_pq = 1 / (m_p m_q) Σ_a Σ_b g(z_p^a, z_q^b) x_p^a x_q^bᵀ."""
    rows = []
    for Xp, Zp in zip(blocks, vectors, strict=True):
        row = []
        for Xq, Zq in zip(blocks, vectors, strict=True):
            psi = np.zeros((Xp.shape[1], Xq.shape[1]))
            Cp, Cq = Xp - Xp.mean(axis=0), Xq - Xq.mean(axis=0)
            for a in range(len(Xp)):
                for b in range(len(Xq)):
                    psi += g(Zp[a], Zq[b]) * np.outer(Cp[a], Cq[b])
            row.append(psi / (len(Xp) * len(Xq)))
        rows.append(row)
    return np.block(rows)


def gaussian(a, b, sigma=1.3):
    return np.exp(-np.sum((a - b) ** 2) / (2 * sigma))


def labelled(pairing: str, kind: str, dtype=np.float64):
    """Views, their labels stacked by object, and the plain blocks and label vectors."""
    rng = np.random.default_rng(5)
    heights = (23, 23) if pairing == "paired" else (23, 17)
    blocks = [
        rng.standard_normal((n, d)).astype(dtype) + 2 for n, d in zip(heights, (4, 3), strict=True)
    ]
    if kind == "sets":
        pool = (rng.random((6, 9)) < 0.4).astype(int)
        vectors = [pool[rng.integers(0, 6, n)] for n in heights]
    else:
        vectors = [rng.standard_normal((n, 5)) for n in heights]
    if pairing == "paired":
        vectors[1] = vectors[0]
        return Views(dict(zip("ab", blocks, strict=True))), vectors[0], blocks, vectors
    return (
        Views.unpaired(dict(zip("ab", blocks, strict=True))),
        np.concatenate(vectors),
        blocks,
        vectors,
    )


def label_sums(views: Views, y) -> LabelSums:
    return LabelSums.of(views, Labels.of(y))


@pytest.mark.parametrize("tile_rows", [1, 3, 1000])
@pytest.mark.parametrize("as_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("kind", ["sets", "real"])
@pytest.mark.parametrize("pairing", ["paired", "unpaired"])
def test_label_weighted_covariance_equals_a_double_loop_over_rows(
    pairing, kind, as_sparse, tile_rows
):
    views, y, blocks, vectors = labelled(pairing, kind)
    sums = label_sums(sparse(views) if as_sparse else views, y)
    psi = sums.covariance(LabelGram(sums.labels, "sqexp", 1.3, tile_rows))
    expected = label_covariance_by_loop(blocks, vectors, gaussian)
    np.testing.assert_allclose(psi, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["sets", "real"])
def test_label_weighted_covariance_in_float32_stays_within_1e_5(kind):
    views, y, blocks, vectors = labelled("unpaired", kind, np.float32)
    sums = label_sums(views, y)
    psi = sums.covariance(LabelGram(sums.labels, "sqexp", 1.3))
    expected = label_covariance_by_loop([b.astype(float) for b in blocks], vectors, gaussian)
    assert np.abs(psi - expected).max() / np.abs(expected).max() <= 1e-5


@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("kind", ["sets", "real"])
def test_label_sums_of_batches_add_up_to_those_of_the_whole(kind, size):
    views, y, blocks, vectors = labelled("unpaired", kind)
    batches = [slice(start, start + size) for start in range(0, len(views), size)]
    sums = reduce(add, (label_sums(views[rows], y[rows]) for rows in batches))
    expected = label_covariance_by_loop(blocks, vectors, gaussian)
    psi = sums.covariance(LabelGram(sums.labels, "sqexp", 1.3))
    np.testing.assert_allclose(psi, expected, atol=1e-12)


def test_batches_with_classes_not_seen_before_add_up():
    views = paired(30)
    y = np.repeat(["cat", "dog", "eel"], 10)
    whole = label_sums(views, y)
    parts = label_sums(views[:12], y[:12]) + label_sums(views[12:], y[12:])
    assert sorted(parts.labels.vocabulary) == ["cat", "dog", "eel"]
    for similarity in ("sqexp", "cosine", "equal"):
        np.testing.assert_allclose(
            parts.covariance(LabelGram(parts.labels, similarity)),
            whole.covariance(LabelGram(whole.labels, similarity)),
            atol=1e-13,
        )


def test_row_weights_are_the_mean_similarity_to_the_rows_of_each_view():
    views, y, _, vectors = labelled("unpaired", "sets")
    sums = label_sums(views, y)
    table = sums.labels.dense()
    expected = [squared_exponential(table, Z, 2.0).mean(axis=1) for Z in vectors]
    weights = sums.row_weights(LabelGram(sums.labels, "sqexp", 2.0))
    np.testing.assert_allclose(weights, np.column_stack(expected), atol=1e-13)


def test_a_constant_column_has_no_label_weighted_covariance():
    views = paired(3000)
    block = views["a"].copy()
    block[:, 2] = 0.1
    views = views.replace({"a": block, "b": views["b"]})
    sums = label_sums(views, np.random.default_rng(0).integers(0, 3, 3000))
    assert not sums.covariance(LabelGram(sums.labels))[2].any()


# ---- moments of pairs of views -------------------------------------------------------------------


def assert_same_pairs(found: PairMoments, expected: PairMoments) -> None:
    assert found.pairs.keys() == expected.pairs.keys()
    for pair, own in expected.pairs.items():
        np.testing.assert_allclose(found.pairs[pair].counts, own.counts)
        np.testing.assert_allclose(found.pairs[pair].means, own.means, atol=1e-12)
        np.testing.assert_allclose(found.pairs[pair].scatter, own.scatter, atol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_pairs_add_to_those_of_paired_views_in_any_order(weighted):
    views = Views.concatenate([partly_paired(30), Views(dict(partly_paired(20, 1)[:4].items()))])
    w = np.linspace(0.5, 2, len(views)) if weighted else None
    parts = [views[:30], views[30:]]
    assert parts[1].is_paired
    partly = PairMoments.of(parts[0], None if w is None else w[:30])
    complete = Moments.of(parts[1], None if w is None else w[30:])
    whole = PairMoments.of(views, w)
    assert_same_pairs(partly + complete, whole)
    assert_same_pairs(complete + partly, whole)
    assert_same_pairs(whole - complete, partly)


def test_pairs_that_share_one_object_have_no_covariance():
    index = np.array([[0, 0, -1], [1, 1, 0], [2, -1, 1], [-1, 2, -1]])
    rows = np.random.default_rng(0).normal(size=(3, 2))
    moments = PairMoments.of(Views({"a": rows, "b": rows, "c": rows[:2]}, index))
    assert [pair.names for pair in moments.by_pair()] == [("a", "b"), ("a", "c")]
    covariance = moments.covariance()
    assert not covariance[2:4, 4:].any()
    shared = [np.cov(rows[:2].T), np.cov(rows[1:].T)]  # of a, with b and with c
    np.testing.assert_allclose(covariance[:2, :2], np.mean(shared, axis=0))
    np.testing.assert_allclose(covariance[2:4, 2:4], shared[0])


@pytest.mark.parametrize("mean", [0.0, 1e4])
def test_moments_of_the_rest_are_what_is_left_of_the_whole(mean):
    views = paired(60, mean=mean)
    rest, expected = Moments.of(views) - Moments.of(views[40:]), Moments.of(views[:40])
    np.testing.assert_allclose(rest.counts, expected.counts)
    np.testing.assert_allclose(rest.means, expected.means, rtol=1e-13)
    np.testing.assert_allclose(rest.scatter, expected.scatter, atol=1e-10 * (1 + mean))
