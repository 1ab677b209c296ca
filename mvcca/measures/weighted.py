"""Average precision weighted by label similarity, for label vocabularies that differ."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mvcca.blocks import own_csr
from mvcca.measures import lists
from mvcca.measures.arrays import checked_matrix, positive, ranked, same_shape, unit_rows


def weighted_average_precision(
    scores: ArrayLike,
    label_similarity: ArrayLike,
    k: int | None = 50,
    precision: Literal["binary", "weighted"] = "binary",
) -> np.ndarray:
    """Weighted average precision for views whose label vocabularies differ, eq. (8) of [1]_.

    Every retrieved item is a hit of weight h_j, the similarity of its labels and the query's:

        AP = (1 / N) Σ_{j ≤ N} h_j P(j),

    with N = min(K, n_gallery) retrieved items. The paper's P(j) can be read in two ways: P(j) = 1,
    so that AP is the mean of h ("binary"), or P(j) = (1/j) Σ_{i ≤ j} h_i ("weighted").

    Parameters
    ----------
    scores : array-like, shape (n_queries, n_gallery)
        Larger is better.
    label_similarity : array-like, shape (n_queries, n_gallery)
        h, in [-1, 1]; see `label_set_similarity`.
    k : int or None, default=50
        Cut-off K; None takes the whole gallery.
    precision : {"binary", "weighted"}, default="binary"
        Definition of P(j).

    Returns
    -------
    ndarray, shape (n_queries,)
        Values; 1 if all retrieved items share a label with the query.

    Raises
    ------
    ValueError
        If a score or a similarity is not finite, shapes differ, or an option is unknown.

    References
    ----------
    .. [1] Sanghavi and Verma, "Multi-view Multi-label Canonical Correlation Analysis for
       Cross-modal Matching and Retrieval", CVPRW 2022.
    """
    scores = checked_matrix(scores)
    h = checked_matrix(label_similarity, "label_similarity")
    same_shape(h.shape, scores.shape, "label_similarity")
    if k is not None:
        positive(k)
    return lists.weighted_average_precision(ranked(h, scores, k), precision)


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
    words = [checked_matrix(w, "word vectors") for w in (query_vectors, gallery_vectors)]
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
    to_labels = max_over_sets(sets[0], cosines)  # (n_queries, n_gallery_labels)
    h = max_over_sets(sets[1], to_labels.T).T
    return np.where(np.isneginf(h), 0.0, h)


def _indicators(labels: Any) -> csr_array:
    return own_csr(labels if np.ndim(labels) == 2 else np.atleast_2d(labels))


def max_over_sets(sets: csr_array, values: np.ndarray) -> np.ndarray:
    """out[i] = elementwise maximum of values[a] over a in set i; -inf for an empty set."""
    out = np.full((sets.shape[0], values.shape[1]), -np.inf)
    for label, row in enumerate(values):
        holders = np.flatnonzero(sets.indices == label)
        holders = np.searchsorted(sets.indptr, holders, side="right") - 1
        out[holders] = np.maximum(out[holders], row)
    return out
