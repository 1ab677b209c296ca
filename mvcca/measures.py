"""Measures of retrieval and of correlation: pure functions from scores to a value per query.

Scores are matrices (n_queries, n_gallery), larger is better; relevance is a boolean matrix of the
same shape, dense or sparse. Every variant of a measure that the literature reports under one name
has a name of its own here. What does not fit in memory is cut into blocks of queries by
`mvcca.retrieval`, which calls these functions.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

__all__ = [
    "average_precision",
    "class_means",
    "column_correlations",
    "descending_order",
    "label_set_similarity",
    "mean_rank",
    "mean_reciprocal_rank",
    "median_rank",
    "precision_at_k",
    "precision_recall_curve",
    "recall_at_k",
    "relevant_ranks",
    "total_correlation",
    "unit_rows",
    "weighted_average_precision",
]

Ties = Literal["optimistic", "average", "pessimistic"]
Normalizer = Literal["relevant", "cutoff", "hits", "min"]
NoRelevant = Literal["zero", "skip", "nan"]

_TIES = {"optimistic": 0.0, "average": 0.5, "pessimistic": 1.0}


# ---- ranks --------------------------------------------------------------------------------------


def relevant_ranks(scores: ArrayLike, relevance: Any, ties: Ties = "average") -> np.ndarray:
    """Rank of each query's best relevant item.

    The rank of item i is 1 + #{j : S_j > S_i} + τ #{j ≠ i : S_j = S_i}, with τ = 0 (optimistic),
    1/2 (average) or 1 (pessimistic). Under "average" a model that maps everything to one point is
    ranked at (n + 1) / 2, as chance would; "optimistic" calls it perfect.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        What items with the same score cost.

    Returns
    -------
    ndarray of float, shape (n_queries,)
        The least rank over the relevant items; infinite for a query without any.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or `ties` is unknown.
    """
    tau = _TIES[_one_of(ties, _TIES, "ties")]
    scores = _checked_scores(scores)
    best = _best_relevant(scores, _checked_relevance(relevance, scores.shape))[:, None]
    ranks = 1 + _count(scores > best) + tau * (_count(scores == best) - 1)
    ranks[np.isneginf(best[:, 0])] = np.inf
    return ranks


def recall_at_k(ranks: ArrayLike, k: int) -> float:
    """R@k: share of queries with a relevant item among the first k.

    Parameters
    ----------
    ranks : array-like, shape (n_queries,)
        Ranks of the first relevant item, as `relevant_ranks` gives them; a rank of k + 1/2, which
        averaged ties produce, is a miss, and so is an infinite one.
    k : int
        Length of the list.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return float(np.mean(_checked_ranks(ranks) <= _positive(k)))


def median_rank(ranks: ArrayLike) -> float:
    """MR: median of the ranks; the mean of the middle two of an even number of queries."""
    return float(np.median(_checked_ranks(ranks)))


def mean_rank(ranks: ArrayLike) -> float:
    """Mean of the ranks; infinite if a query has no relevant item."""
    return float(np.mean(_checked_ranks(ranks)))


def mean_reciprocal_rank(ranks: ArrayLike) -> float:
    """MRR: mean of 1 / rank; a query without a relevant item counts 0."""
    return float(np.mean(1 / _checked_ranks(ranks)))


# ---- average precision --------------------------------------------------------------------------


def average_precision(
    scores: ArrayLike,
    relevance: Any,
    k: int | None = None,
    normalizer: Normalizer = "relevant",
    no_relevant: NoRelevant = "zero",
) -> np.ndarray:
    """Average precision of every query's ranked list; its mean over queries is mAP.

    With rel_j the relevance at position j, P(j) the share of relevant items among the first j, R
    the number of relevant items in the gallery and H that among the first K,

        AP = (1 / N) Σ_{j ≤ K} P(j) rel_j.

    The literature divides by four different N:

    =============  ==============  =====================================================
    `normalizer`   N               reported by
    =============  ==============  =====================================================
    ``relevant``   R               the textbook; with K = None in most comparisons
    ``cutoff``     K               eq. (6) of [1]_, with K = 50
    ``hits``       H               code of adversarial cross-modal retrieval, with K = 50
    ``min``        min(K, R)       TREC and search competitions
    =============  ==============  =====================================================

    Lists are ordered by falling score, equal scores by index.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    k : int or None, default=None
        Cut-off K; None ranks the whole gallery.
    normalizer : {"relevant", "cutoff", "hits", "min"}, default="relevant"
        N above. With ``hits`` a list without hits has AP 0.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        AP of a query without any relevant item in the gallery; "skip" leaves it out.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1; shorter if queries were skipped.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or an option is unknown.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    scores = _checked_scores(scores)
    relevant = _dense(_checked_relevance(relevance, scores.shape))
    hits = np.take_along_axis(relevant, descending_order(scores)[:, :k], axis=1)
    length = scores.shape[1] if k is None else _positive(k)
    return average_precision_of_lists(hits, _count(relevant), length, normalizer, no_relevant)


def average_precision_of_lists(
    hits: np.ndarray,
    n_relevant: np.ndarray,
    k: int,
    normalizer: Normalizer = "relevant",
    no_relevant: NoRelevant = "zero",
) -> np.ndarray:
    """Average precision of lists that are ranked and cut already; see `average_precision`.

    Parameters
    ----------
    hits : ndarray of bool, shape (n_queries, min(k, n_gallery))
        Relevance at each position.
    n_relevant : ndarray of int, shape (n_queries,)
        Number of relevant items in the whole gallery.
    k : int
        Cut-off K.
    normalizer, no_relevant
        As in `average_precision`.

    Returns
    -------
    ndarray, shape (n_queries,)
        Shorter if queries were skipped.
    """
    _one_of(no_relevant, ("zero", "skip", "nan"), "no_relevant")
    n_hits = np.cumsum(hits, axis=1, dtype=np.int32)
    divisor = {
        "relevant": n_relevant,
        "cutoff": np.full(len(hits), k),
        "hits": n_hits[:, -1],
        "min": np.minimum(k, n_relevant),
    }[_one_of(normalizer, ("relevant", "cutoff", "hits", "min"), "normalizer")]
    precision = n_hits / np.arange(1, hits.shape[1] + 1)
    total = np.einsum("ij,ij->i", precision, hits)
    values = np.divide(total, divisor, out=np.zeros(len(hits)), where=divisor > 0)
    if no_relevant == "skip":
        return values[n_relevant > 0]
    if no_relevant == "nan":
        values[n_relevant == 0] = np.nan
    return values


def weighted_average_precision(
    scores: ArrayLike,
    label_similarity: ArrayLike,
    k: int | None = 50,
    precision: Literal["binary", "weighted"] = "binary",
) -> np.ndarray:
    """Weighted average precision for views whose label vocabularies differ, eq. (8) of [1]_.

    Every retrieved item is a hit to the degree h_j in which its labels resemble the query's:

        AP = (1 / N) Σ_{j ≤ N} h_j P(j),

    with N = min(K, n_gallery) retrieved items. The paper's P(j) has two readings: every item
    counts whole, P(j) = 1, and AP is the mean of h ("binary"); or P(j) = (1/j) Σ_{i ≤ j} h_i
    ("weighted").

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    label_similarity : array-like, shape (n_queries, n_gallery)
        h, in [-1, 1]; see `label_set_similarity`.
    k : int or None, default=50
        Cut-off K; None takes the whole gallery.
    precision : {"binary", "weighted"}, default="binary"
        How P(j) is read.

    Returns
    -------
    ndarray, shape (n_queries,)
        1 where all retrieved items share a label with the query.

    Raises
    ------
    ValueError
        If a score or a similarity is not finite, shapes differ, or an option is unknown.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    _one_of(precision, ("binary", "weighted"), "precision")
    scores = _checked_scores(scores)
    h = _checked_scores(label_similarity, "label_similarity")
    _same_shape(h.shape, scores.shape, "label_similarity")
    if k is not None:
        _positive(k)
    h = np.take_along_axis(h, descending_order(scores)[:, :k], axis=1)
    if precision == "weighted":
        h = h * np.cumsum(h, axis=1) / np.arange(1, h.shape[1] + 1)
    return h.mean(axis=1)


def label_set_similarity(
    query_labels: Any,
    gallery_labels: Any,
    query_vectors: ArrayLike,
    gallery_vectors: ArrayLike,
) -> np.ndarray:
    """Similarity of label sets over two vocabularies, h of eq. (8) of [1]_.

    h(Y_q, Y_r) = max over a in Y_q, b in Y_r of cos(w_a, w_b), with w a label's word vector.

    Parameters
    ----------
    query_labels : array-like or sparse matrix of 0/1, shape (n_queries, n_query_labels)
        Label sets of the queries.
    gallery_labels : array-like or sparse matrix of 0/1, shape (n_gallery, n_gallery_labels)
        Label sets of the gallery.
    query_vectors : array-like, shape (n_query_labels, n_dims)
        Word vectors of the queries' labels.
    gallery_vectors : array-like, shape (n_gallery_labels, n_dims)
        Word vectors of the gallery's labels.

    Returns
    -------
    ndarray, shape (n_queries, n_gallery)
        In [-1, 1]; 0 where a label set is empty or a word vector is zero.

    Raises
    ------
    ValueError
        If there is not one word vector per label.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    words = [_checked_scores(w, "word vectors") for w in (query_vectors, gallery_vectors)]
    sets = [_indicators(labels) for labels in (query_labels, gallery_labels)]
    for labels, vectors in zip(sets, words, strict=True):
        if labels.shape[1] != len(vectors):
            raise ValueError(
                f"Expected one word vector per label, got {len(vectors)} for {labels.shape[1]} "
                "labels."
            )
    unit = [unit_rows(vectors) for vectors in words]
    cosines = unit[0] @ unit[1].T
    # max over a, b = max over b of (max over a): first for whole vocabularies, then for sets.
    to_labels = _max_over_sets(sets[0], cosines)  # (n_queries, n_gallery_labels)
    h = _max_over_sets(sets[1], to_labels.T).T
    return np.where(np.isneginf(h), 0.0, h)


def precision_at_k(scores: ArrayLike, relevance: Any, k: int = 50) -> np.ndarray:
    """Share of relevant items among the first k.

    Averaged over classes, with `class_means` of the texts as queries, this is what zero-shot
    retrieval reports as AP@50 [1]_.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    k : int, default=50
        Length of the list, and the divisor, whatever the number of relevant items.

    Returns
    -------
    ndarray, shape (n_queries,)
        Between 0 and 1.

    Warns
    -----
    UserWarning
        If a query has fewer than k relevant items, so that it cannot reach 1.

    Raises
    ------
    ValueError
        If a score is not finite or shapes differ.

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, section 5.
    """
    scores = _checked_scores(scores)
    relevant = _dense(_checked_relevance(relevance, scores.shape))
    short = int((_count(relevant) < _positive(k)).sum())
    if short:
        warnings.warn(
            f"{short} of {len(scores)} queries have fewer than {k} relevant items and cannot "
            f"reach a precision of 1 at {k}.",
            UserWarning,
            stacklevel=2,
        )
    first = np.take_along_axis(relevant, descending_order(scores)[:, :k], axis=1)
    return _count(first) / k


def precision_recall_curve(
    scores: ArrayLike, relevance: Any, recall: ArrayLike | None = None
) -> np.ndarray:
    """Interpolated precision of every query's ranked list at given levels of recall.

    P(r) = max of P(j) over the positions j at which at least a share r of the relevant items has
    been seen. Average over queries for a curve.

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    relevance : array-like or sparse matrix of bool, shape (n_queries, n_gallery)
        Which items are relevant to which query.
    recall : array-like, shape (n_levels,), optional
        Levels in [0, 1]; by default 0, 0.1, ..., 1.

    Returns
    -------
    ndarray, shape (n_queries, n_levels)
        Precision; 0 for a query without a relevant item.

    Raises
    ------
    ValueError
        If a score is not finite, shapes differ, or a level is outside [0, 1].
    """
    levels = np.linspace(0, 1, 11) if recall is None else np.asarray(recall, dtype=float)
    if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"recall must be levels between 0 and 1, got {recall!r}.")
    scores = _checked_scores(scores)
    relevant = _dense(_checked_relevance(relevance, scores.shape))
    hits = np.take_along_axis(relevant, descending_order(scores), axis=1)
    n_hits = np.cumsum(hits, axis=1)
    precision = n_hits / np.arange(1, hits.shape[1] + 1)
    best_from = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    # 1e-9: 0.3 of 10 relevant items are 3, not 4.
    wanted = np.ceil(np.outer(n_hits[:, -1], levels) - 1e-9)
    first = np.stack(
        [np.argmax(n_hits >= column[:, None], axis=1) for column in wanted.T], axis=1
    )
    return np.take_along_axis(best_from, first, axis=1)


# ---- correlations -------------------------------------------------------------------------------


def column_correlations(X: ArrayLike, Y: ArrayLike) -> np.ndarray:
    """Pearson correlation of each column of X with the same column of Y.

    Parameters
    ----------
    X, Y : array-like, shape (n_rows, n_components)
        Projected rows of two views, row i of both from the same object.

    Returns
    -------
    ndarray, shape (n_components,)
        In [-1, 1]; 0 where a column is constant.

    Raises
    ------
    ValueError
        If shapes differ, there are fewer than two rows, or a value is not finite.
    """
    X, Y = _checked_scores(X, "X"), _checked_scores(Y, "Y")
    _same_shape(Y.shape, X.shape, "Y")
    if len(X) < 2:
        raise ValueError(f"A correlation needs at least two rows, got {len(X)}.")
    X, Y = _standard_columns(X), _standard_columns(Y)
    return np.clip(np.einsum("ij,ij->j", X, Y), -1, 1)


def total_correlation(X: ArrayLike, Y: ArrayLike, absolute: bool = False) -> float:
    """Sum of the correlations of projected views, Σ_i corr(X_i, Y_i), the figure of deep CCA [1]_.

    Project held-out rows with what was learned on training rows. Fitting CCA on the rows that are
    measured gives an optimistic figure.

    Parameters
    ----------
    X, Y : array-like, shape (n_rows, n_components)
        Projected rows of two views, row i of both from the same object.
    absolute : bool, default=False
        Add absolute values, as some code does; a correlation that changes its sign on held-out
        rows then counts for, not against.

    Returns
    -------
    float
        At most n_components.

    Raises
    ------
    ValueError
        If shapes differ, there are fewer than two rows, or a value is not finite.

    References
    ----------
    .. [1] Andrew, Arora, Bilmes and Livescu, "Deep Canonical Correlation Analysis", ICML 2013.
    """
    correlations = column_correlations(X, Y)
    return float(np.sum(np.abs(correlations) if absolute else correlations))


# ---- order and helpers --------------------------------------------------------------------------


def descending_order(scores: np.ndarray) -> np.ndarray:
    """Indices that sort each row by falling score, equal scores by index.

    Parameters
    ----------
    scores : ndarray of float, shape (n_queries, n_gallery)
        Larger is better.

    Returns
    -------
    ndarray of int, shape (n_queries, n_gallery)
        The ranked lists.
    """
    if scores.dtype != np.float32 or scores.shape[1] >= 2**32:
        return np.argsort(-scores, axis=1, kind="stable")
    # Score and index in one integer: an unstable sort of keys is a stable sort of scores, and
    # sorting integers is several times as fast.
    order = np.empty(scores.shape, dtype=np.intp)
    columns = np.arange(scores.shape[1], dtype=np.uint64)
    for row, out in zip(scores, order, strict=True):
        keys = _falling_integers(row) << np.uint64(32) | columns
        keys.sort()
        np.bitwise_and(keys, np.uint64(0xFFFFFFFF), out=out, casting="unsafe")
    return order


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1, so that inner products are cosines; zero rows stay zero.

    Parameters
    ----------
    X : ndarray of float, shape (n_rows, n_columns)
        Finite, of any size: no square overflows or underflows.

    Returns
    -------
    ndarray, shape (n_rows, n_columns)
        In the precision of X.
    """
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = np.divide(X, largest, out=np.zeros_like(X), where=largest > 0)
    norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))[:, None]
    return np.divide(X, norms.astype(X.dtype), out=X, where=norms > 0)


def class_means(embeddings: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Mean embedding of each class, to query with a class instead of a row.

    Parameters
    ----------
    embeddings : array-like, shape (n_rows, n_components)
        Projected rows, such as all texts of the test classes.
    y : array-like, shape (n_rows,)
        Their classes.

    Returns
    -------
    means : ndarray, shape (n_classes, n_components)
        One row per class.
    classes : ndarray, shape (n_classes,)
        The classes, sorted.

    Raises
    ------
    ValueError
        If there is not one class per row or a value is not finite.
    """
    embeddings = _checked_scores(embeddings, "embeddings")
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    if codes.shape != (len(embeddings),):
        raise ValueError(f"Expected {len(embeddings)} classes, one per row, got {codes.shape}.")
    membership = csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))))
    means = membership @ embeddings / np.bincount(codes)[:, None]
    return means.astype(embeddings.dtype), classes


def _checked_scores(scores: ArrayLike, name: str = "scores") -> np.ndarray:
    """A 2-D array of finite floats; float32 stays float32."""
    values = np.asarray(scores)
    if values.dtype != np.float32:
        values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"Expected {name} to be a matrix that is not empty, got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"Expected {name} to be finite, got NaN or infinity.")
    return values


def _checked_relevance(relevance: Any, shape: tuple[int, ...]) -> Any:
    """A boolean csr_array, or a boolean ndarray, of the scores' shape."""
    if issparse(relevance):
        relevant: Any = csr_array(relevance, dtype=bool)
        relevant.eliminate_zeros()
    else:
        relevant = np.asarray(relevance)
        if relevant.dtype.kind not in "biuf":
            raise ValueError(f"Expected relevance to be boolean, got {relevant.dtype}.")
        relevant = relevant.astype(bool, copy=False)
    _same_shape(relevant.shape, shape, "relevance")
    return relevant


def _same_shape(shape: tuple[int, ...], expected: tuple[int, ...], name: str) -> None:
    if shape != expected:
        raise ValueError(f"Expected {name} of shape {expected}, got {shape}.")


def _checked_ranks(ranks: ArrayLike) -> np.ndarray:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"Expected ranks of at least one query, got shape {values.shape}.")
    if not (values >= 1).all():  # NaN is caught here too
        raise ValueError("Expected ranks of 1 and above, got smaller ones or NaN.")
    return values


def _positive(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"Expected k to be an integer of at least 1, got {k!r}.")
    return int(k)


def _one_of(value: str, options: Any, name: str) -> str:
    if value not in options:
        raise ValueError(f"Expected {name} to be one of {list(options)}, got {value!r}.")
    return value


def _best_relevant(scores: np.ndarray, relevant: Any) -> np.ndarray:
    """Largest score of a relevant item in each row; -inf where there is none."""
    if not issparse(relevant):
        return np.where(relevant, scores, scores.dtype.type(-np.inf)).max(axis=1)
    best = np.full(len(scores), -np.inf, dtype=scores.dtype)
    filled = np.flatnonzero(np.diff(relevant.indptr))
    if len(filled):
        rows = np.repeat(np.arange(len(scores)), np.diff(relevant.indptr))
        of_relevant = scores[rows, relevant.indices]
        best[filled] = np.maximum.reduceat(of_relevant, relevant.indptr[filled])
    return best


def _falling_integers(values: np.ndarray) -> np.ndarray:
    """float32 to integers below 2³² that are in the opposite order."""
    bits = (values + np.float32(0)).view(np.uint32)  # + 0 makes -0.0 equal to 0.0
    negative = bits >= np.uint32(0x80000000)
    return np.where(negative, bits, ~bits & np.uint32(0x7FFFFFFF)).astype(np.uint64)


def _count(mask: np.ndarray) -> np.ndarray:
    """Number of True in each row; row by row, which is several times as fast as along an axis."""
    return np.array([np.count_nonzero(row) for row in mask], dtype=np.intp)


def _dense(relevant: Any) -> np.ndarray:
    return relevant.toarray() if issparse(relevant) else relevant


def _indicators(labels: Any) -> csr_array:
    matrix = csr_array(labels) if issparse(labels) else csr_array(np.atleast_2d(labels))
    matrix.eliminate_zeros()
    return matrix


def _max_over_sets(sets: csr_array, values: np.ndarray) -> np.ndarray:
    """out[i] = elementwise maximum of values[a] over a in set i; -inf for an empty set."""
    out = np.full((sets.shape[0], values.shape[1]), -np.inf)
    for label, row in enumerate(values):
        holders = np.flatnonzero(sets.indices == label)
        holders = np.searchsorted(sets.indptr, holders, side="right") - 1
        out[holders] = np.maximum(out[holders], row)
    return out


def _standard_columns(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and length 1; constant columns become 0."""
    X = X.astype(np.float64)
    constant = (X == X[0]).all(axis=0)  # their mean may be off by a rounding
    X = X - X.mean(axis=0)
    X[:, constant] = 0
    return unit_rows(X.T).T
