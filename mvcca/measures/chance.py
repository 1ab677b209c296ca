"""Expected values of measures if every query ranks the gallery in a random order.

All n items of a gallery are ranked, R of them are relevant to a query, and all n! orders are
equally likely, independently for each query. Random scores have no ties. The values are exact
expectations, not averages over draws.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from mvcca.measures.lists import Normalizer

_CERTAIN = 45.0  # exp(-45) = 3e-20 cannot be seen beside 1


def expected_hits(n_items: int, n_relevant: np.ndarray, k: int) -> np.ndarray:
    """Relevant items among the first k: min(k, n) R / n."""
    return min(k, n_items) * n_relevant / n_items


def hit_probability(n_items: int, n_relevant: np.ndarray, k: int) -> np.ndarray:
    """Probability of a relevant item among the first k: 1 - C(n - R, k) / C(n, k)."""
    left = n_items - np.arange(min(k, n_items))
    values, places = np.unique(n_relevant, return_inverse=True)
    with np.errstate(divide="ignore"):  # the logarithm of 0: a hit is certain
        # Sums of logarithms, since products of many factors underflow.
        misses = np.log1p(-np.minimum(values[:, None] / left, 1.0)).sum(axis=1)
    return -np.expm1(misses)[places]


def expected_average_precision(
    n_items: int, n_relevant: np.ndarray, k: int | None, normalizer: Normalizer
) -> np.ndarray:
    """Expected average precision of the first k items, 0 for a query without relevant ones.

    With L = min(k, n), H_L = 1 + 1/2 + ... + 1/L and the divisor N of
    `mvcca.measures.average_precision`,

        E[AP] = R / (n N) (H_L + (R - 1) / (n - 1) (L - H_L)),

    since the item at position j is relevant with probability R / n, and each of the j - 1 items
    before it then with probability (R - 1) / (n - 1). The divisor "hits" is random: given that
    there are h hits, n and R become L and h, and the mean over h needs only P(h > 0) and E[h].
    """
    n_relevant = np.asarray(n_relevant, dtype=np.float64)
    length = n_items if k is None else min(k, n_items)
    harmonic = float(np.sum(1 / np.arange(1, length + 1)))
    if normalizer == "hits":
        any_hit = hit_probability(n_items, n_relevant, length)
        more = expected_hits(n_items, n_relevant, length) - any_hit
        return (harmonic * any_hit + (length - harmonic) / max(length - 1, 1) * more) / length
    cutoff = float(n_items if k is None else k)
    divisor = {
        "relevant": n_relevant,
        "cutoff": np.full(len(n_relevant), cutoff),
        "min": np.minimum(cutoff, n_relevant),
    }[normalizer]
    pairs = (n_relevant - 1) / max(n_items - 1, 1)
    total = n_relevant / n_items * (harmonic + pairs * (length - harmonic))
    return np.divide(total, divisor, out=np.zeros(len(total)), where=n_relevant > 0)


def expected_ndcg(n_items: int, gains: np.ndarray, k: int | None) -> np.ndarray:
    """Expected normalized gain: each position holds the mean gain of the gallery."""
    length = n_items if k is None else min(k, n_items)
    discount = 1 / np.log2(np.arange(2, length + 2))
    ideal = -np.sort(-gains, axis=1)[:, :length] @ discount
    total = gains.sum(axis=1) / n_items * discount.sum()
    return np.divide(total, ideal, out=np.zeros(len(gains)), where=ideal > 0)


def expected_weighted_average_precision(
    n_items: int, similarity: np.ndarray, k: int | None, precision: Literal["binary", "weighted"]
) -> np.ndarray:
    """Expected weighted average precision, from sums of similarities and of their squares."""
    total, squares = similarity.sum(axis=1), (similarity**2).sum(axis=1)
    if precision == "binary":
        return total / n_items
    length = n_items if k is None else min(k, n_items)
    harmonic = float(np.sum(1 / np.arange(1, length + 1)))
    of_two = (total**2 - squares) / (n_items * max(n_items - 1, 1))
    return (harmonic * squares / n_items + (length - harmonic) * of_two) / length


def expected_rank(n_items: int, n_relevant: np.ndarray) -> np.ndarray:
    """Expected rank of the first relevant item: (n + 1) / (R + 1), infinite without any."""
    return np.where(n_relevant > 0, (n_items + 1) / (np.asarray(n_relevant) + 1.0), np.inf)


def expected_reciprocal_rank(n_items: int, n_relevant: np.ndarray) -> np.ndarray:
    """Expected reciprocal rank of the first relevant item, 0 without any.

    It is Σ_r P(r) / r with P(r) = C(n - r, R - 1) / C(n, R); for R = 1, H_n / n.
    """
    values, places = np.unique(n_relevant, return_inverse=True)
    ranks = np.arange(1, n_items + 1)
    left = n_items - ranks + 1.0  # items at this rank and after it
    expected = np.zeros(len(values))
    for i, relevant in enumerate(values):
        later = np.cumprod(np.maximum(left - relevant, 0) / left)  # P(rank > r)
        at_rank = np.concatenate([[1.0], later[:-1]]) * np.minimum(relevant / left, 1.0)
        expected[i] = np.sum(at_rank / ranks)
    return expected[places]


def expected_median_rank(n_items: int, n_relevant: np.ndarray) -> float:
    """Expected median over the queries of the rank of the first relevant item.

    The m-th smallest of independent ranks exceeds r if fewer than m of them are at most r, and the
    number of these is a sum of independent binomials, one for each distinct R:

        E[X_(m)] = Σ_{r ≥ 0} P(Σ_R Binomial(n_R, F_R(r)) < m),

    with F_R(r) = `hit_probability` (n, R, r). For an even number of queries, it is the mean of the
    middle two. It is infinite if too few queries have a relevant item.
    """
    values, counts = np.unique(n_relevant, return_counts=True)
    n_queries = int(counts.sum())
    orders = np.array([(n_queries + 1) // 2, n_queries // 2 + 1])
    if not n_queries or counts[values > 0].sum() < orders[1]:
        return np.inf if n_queries else np.nan
    expected, later = 0.0, np.ones(len(values))  # later: P(rank > r)
    for rank in range(n_items):
        fewer = _fewer_than(orders, counts, 1 - later)
        expected += float(fewer.mean())
        if fewer.max() == 0:
            break
        later *= np.maximum(n_items - values - rank, 0) / (n_items - rank)
    return expected


def expected_hubness(n_items: int, n_queries: int, k: int) -> float:
    """Skewness of how often items are among the first k of the queries.

    The number N of queries that find an item is binomial with p = min(k, n) / n, and its skewness
    is (1 - 2p) / √(n_queries p (1 - p)): the ratio of the expected third moment to the expected
    variance to the power 3/2. It is the only measure here for which the expected ratio, which has
    no closed form, is replaced by the ratio of expectations; they differ by terms of order 1 / n.
    """
    p = min(k, n_items) / n_items
    variance = n_queries * p * (1 - p)
    return float((1 - 2 * p) / np.sqrt(variance)) if variance > 0 else 0.0


def _fewer_than(orders: np.ndarray, counts: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Probability that a sum of independent Binomial(counts, chances) is below each order."""
    mean, variance = counts @ chances, counts @ (chances * (1 - chances))
    gap = orders - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = gap**2 / (2 * (variance + np.abs(gap) / 3))  # Bernstein's inequality
    if (np.nan_to_num(bound, nan=0.0) > _CERTAIN).all() and (np.sign(gap) == np.sign(gap[0])).all():
        return np.full(len(orders), float(gap[0] > 0))
    if len(counts) == 1:
        from scipy import special  # a tenth of a search of few rows

        return special.bdtr(orders - 1, counts[0], chances[0])
    # The distribution is the inverse Fourier transform of its characteristic function, which is at
    # most exp(-variance (1 - cos t)): higher frequencies than those here vanish.
    n = int(counts.sum())
    angles = 2 * np.pi * np.arange((n + 1) // 2 + 1) / (n + 1)
    angles = angles[variance * (1 - np.cos(angles)) <= _CERTAIN]
    factors = 1 - chances[:, None] + chances[:, None] * np.exp(-1j * angles)
    pmf = np.fft.irfft(np.prod(factors ** counts[:, None], axis=0), n + 1)
    return np.clip(np.cumsum(pmf)[orders - 1], 0.0, 1.0)
