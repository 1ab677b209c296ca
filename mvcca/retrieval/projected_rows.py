"""Rank a gallery of projected rows: the k best, ranks of relevant rows, measures of queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mvcca.blocks import as_block
from mvcca.measures.arrays import one_of
from mvcca.measures.lists import NoRelevant, Ties
from mvcca.retrieval.hubs import CSLS, Bank, check_bank, checked_correction, corrected
from mvcca.retrieval.measure import Measure
from mvcca.retrieval.ranked_lists import Judged, RankedLists
from mvcca.retrieval.relevance import Relevance, checked_relevance
from mvcca.retrieval.search import Gallery, checked_rows, row_blocks, search
from mvcca.retrieval.similarity import Similarity, similarity_of
from mvcca.views.typing import MatrixLike


def top_k(
    queries: MatrixLike,
    gallery: MatrixLike,
    k: int,
    similarity: Similarity = "cosine",
    exclude_self: bool = False,
    hubness: str | CSLS | None = None,
    bank: tuple[MatrixLike, MatrixLike] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the k best gallery rows of every query, exactly.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to search; scores have their precision. A gallery on a device (a torch
        tensor, a CuPy array) is searched there.
    k : int
        Number of rows to find per query.
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        Similarity used for ranking. The cosine with a zero row is 0.
    exclude_self : bool, default=False
        Queries are the gallery's rows; exclude each query from its results.
    hubness : {"csls"} or CSLS, optional
        Correction for gallery rows that are near to many queries: its name, or an instance of
        `CSLS` with another number of neighbours.
    bank : (queries, items), optional
        Projected rows that the correction compares with, such as training rows: of the queries'
        view, and of the gallery's view.

    Returns
    -------
    scores : ndarray, shape (n_queries, k)
        NumPy arrays, wherever the rows are. Descending; "euclidean" gives negative distances, so
        that larger is better. With `hubness` those of its formula, in which the similarity of
        "euclidean" is -‖q - g‖² / 2.
    indices : ndarray of int, shape (n_queries, k)
        Rows of the gallery; of equal scores the lowest index comes first. Scores of integer rows
        are equal where they are so in exact arithmetic.

    Raises
    ------
    ValueError
        If k is larger than the number of gallery rows, the gallery is empty, shapes do not fit, or
        a value is not finite.
    """
    prepared = _gallery(gallery, similarity, hubness, bank)
    rows = checked_rows(queries, "queries", prepared.dtype)
    return search(prepared, prepared.queries(rows), k, exclude_self)


def ranks(
    queries: MatrixLike,
    gallery: MatrixLike,
    relevance: Relevance | MatrixLike | None = None,
    *,
    similarity: Similarity = "cosine",
    ties: Ties = "average",
    exclude_self: bool = False,
    hubness: str | CSLS | None = None,
    bank: tuple[MatrixLike, MatrixLike] | None = None,
) -> np.ndarray:
    """Compute the rank of each query's best relevant row; see `mvcca.measures.relevant_ranks`.

    Parameters
    ----------
    queries : array-like, shape (n_queries, n_components)
        Projected rows.
    gallery : array-like, shape (n_gallery, n_components)
        Projected rows to rank.
    relevance : relevance or matrix of bool, shape (n_queries, n_gallery), optional
        Result of `by_pairs` (default) or `by_labels`, or a dense or sparse matrix of whether each
        gallery row is relevant to each query.
    similarity : {"cosine", "euclidean", "inner"}, default="cosine"
        Similarity used for ranking.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        How equal scores count in ranks.
    exclude_self : bool, default=False
        Queries are the gallery's rows; exclude each query from its results.
    hubness, bank : optional
        Correction for hubs, as in `top_k`.

    Returns
    -------
    ndarray of float, shape (n_queries,)
        From 1; infinite for a query without a relevant row.

    Raises
    ------
    ValueError
        If shapes do not fit, the gallery is empty or a value is not finite.
    """
    one_of(ties, ("optimistic", "average", "pessimistic"), "ties")
    prepared = _gallery(gallery, similarity, hubness, bank)
    return _lists(queries, prepared, relevance, exclude_self).ranks(ties)


def per_query(
    queries: MatrixLike,
    gallery: MatrixLike,
    relevance: Relevance | MatrixLike | None = None,
    *,
    measure: str = "map",
    no_relevant: NoRelevant = "zero",
    similarity: Similarity = "cosine",
    exclude_self: bool = False,
    hubness: str | CSLS | None = None,
    bank: tuple[MatrixLike, MatrixLike] | None = None,
) -> np.ndarray:
    """Compute a measure of every query's ranked list.

    Parameters
    ----------
    queries, gallery, relevance, similarity, exclude_self, hubness, bank
        See `ranks`.
    measure : str, default="map"
        Name of a measure, as in `evaluate_retrieval`, such as ``"map@50:cutoff"``; not
        ``hubness``, which has no value for single queries.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Value of a query without a relevant row, if the measure has none.

    Returns
    -------
    ndarray, shape (n_queries,)
        Values; fewer if queries were skipped.

    Raises
    ------
    ValueError
        If the measure is unknown or has no value for single queries, shapes do not fit, the
        gallery is empty, a value is not finite, or `exclude_self` leaves no relevant rows by pairs.
    """
    wanted = Measure.parse(measure)
    if wanted.is_of_gallery:
        raise ValueError(f"{measure!r} describes a gallery and has no value for single queries.")
    one_of(no_relevant, ("zero", "skip", "nan"), "no_relevant")
    prepared = _gallery(gallery, similarity, hubness, bank)
    return wanted.per_query(_lists(queries, prepared, relevance, exclude_self), no_relevant)


def score_blocks(
    queries: MatrixLike,
    gallery: MatrixLike,
    similarity: Similarity = "cosine",
    hubness: str | CSLS | None = None,
    bank: tuple[MatrixLike, MatrixLike] | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
    """Iterate over blocks of queries and their scores of the whole gallery.

    Use it for measures that `per_query` and `ranks` do not cover.

    Parameters
    ----------
    queries, gallery, similarity, hubness, bank
        See `ranks`.

    Returns
    -------
    iterator of (slice, ndarray)
        Queries of a block, and their scores (n_rows, n_gallery): larger is better. For "euclidean"
        scores are qᵀg - ‖g‖²/2 up to a shift of the origin, which order the gallery of each query
        as -‖q - g‖ does.

    Raises
    ------
    ValueError
        If shapes do not fit, the gallery is empty or a value is not finite.
    """
    prepared = _gallery(gallery, similarity, hubness, bank)
    rows = prepared.queries(checked_rows(queries, "queries", prepared.dtype))
    blocks = row_blocks(prepared, rows, 4)
    return ((block, prepared.products(rows[block])) for block in blocks)


def _gallery(
    rows: MatrixLike, similarity: Similarity, hubness: str | CSLS | None, bank: Any
) -> Gallery:
    """Prepared gallery, corrected for hubs."""
    check_bank(hubness, bank)
    like = similarity_of(similarity)
    device = rows[:0, :] if as_block(rows).on_device else None  # type: ignore[call-overload,index]
    gallery = Gallery.of(checked_rows(rows, "gallery"), like, device)
    if hubness is None:
        return gallery
    if not isinstance(bank, tuple) or len(bank) != 2:
        raise ValueError(
            f"hubness={hubness!r} needs bank rows of the queries' view and of the gallery's view: "
            "pass bank=(queries, items)."
        )
    return corrected(gallery, Bank(checked_correction(hubness), *bank))


def _lists(
    queries: MatrixLike, gallery: Gallery, relevance: Any, exclude_self: bool
) -> RankedLists:
    """Ranked lists of a gallery, with checked relevance."""
    rows = checked_rows(queries, "queries", gallery.dtype)
    given = checked_relevance(relevance, (len(rows), len(gallery)), exclude_self)
    numbers = np.arange(len(rows))
    return RankedLists(Judged(rows, numbers, numbers, given, exclude_self), gallery)
