"""Evaluation of retrieval between all pairs of views, by measures given by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any, Literal

import numpy as np

from mvcca.measures import NoRelevant, Ties
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.declared import Ranking
from mvcca.retrieval.direction import RankedDirection
from mvcca.retrieval.measure_names import Measure
from mvcca.retrieval.relevance import RelevanceBy
from mvcca.retrieval.similarity import Similarity
from mvcca.retrieval.table import RetrievalTable
from mvcca.typing import LabelsLike, ViewsLike

Directions = Literal["cross", "within", "all"] | Iterable[tuple[str | Sequence[str], str]]

DEFAULT_MEASURES = ("map@50", "r@1", "r@10", "mrr")


def evaluate_retrieval(
    scores: ViewsLike,
    labels: LabelsLike | None = None,
    *,
    measures: str | Sequence[str] = DEFAULT_MEASURES,
    similarity: Similarity | None = None,
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    exclude_self: bool = True,
    no_relevant: NoRelevant = "zero",
    estimator: Any = None,
) -> RetrievalTable:
    """Evaluate retrieval from every view to every other one.

    =====================  ===================================================================
    name                   measure
    =====================  ===================================================================
    ``map``, ``map@K``     mean average precision of the whole list, or of the first K. A variant
                           names the divisor: ``:relevant`` (default of ``map``), ``:cutoff``,
                           ``:hits`` or ``:min`` (default of ``map@K``), as in
                           `mvcca.measures.average_precision`.
    ``p@K``                mean precision of the first K
    ``r@K``                share of queries with a relevant item in the first K
    ``mr``, ``mean_rank``  median and mean rank of the first relevant item
    ``mrr``                mean reciprocal rank of the first relevant item
    =====================  ===================================================================

    Ranks take a variant for ties, ``:average`` (default), ``:optimistic`` or ``:pessimistic``.

    An item is relevant by *pairs* if it shows the query's object, and by *labels* if it shares at
    least one label with the query. ``map`` and ``p`` use labels if there are any, and pairs
    otherwise; ``r``, ``mr``, ``mean_rank`` and ``mrr`` use pairs if the two views share objects,
    and labels otherwise. The notes of the table say which was used. By pairs, only objects seen in
    both views are queries; the gallery is always all rows of the target.

    Parameters
    ----------
    scores : Views, mapping or list of matrices, each of shape (n_rows, n_components)
        Projected rows, as `transform` returns them, or with an `estimator` the views to project.
        In a mapping whose numbers of rows differ, but are multiples of the smallest, consecutive
        rows show one object (five captions of an image).
    labels : array-like or mapping of str to array-like, optional
        Classes, label sets or indicators: one per object, or in a mapping by view name one per
        row. With such a mapping, rows of a plain mapping or list are not paired.
    measures : str or sequence of str
        Names of measures, from the table above.
    similarity : {"cosine", "euclidean", "inner"}, optional
        Similarity used for ranking. By default the one that the `estimator` declares, and cosine
        without an estimator.
    relevance : {"pairs", "labels"}, optional
        Relevance for all measures.
    directions : {"cross", "within", "all"} or iterable of (query, target), default="cross"
        Between different views, within each view, or both; or the directions themselves. A query
        of several view names is a joint query, the sum of their projections.
    exclude_self : bool, default=True
        Within a view, leave the query itself out of its ranked list. False gives it rank 1, as
        in some published figures.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Average precision of a query without any relevant item.
    estimator : fitted estimator, optional
        Projects `scores`, and declares the similarity for ranking as its ``retrieval_ranking``,
        by default the cosine. A `similarity` compares the rows of its ``transform`` instead.

    Returns
    -------
    RetrievalTable
        Measures, one row per direction.

    Raises
    ------
    ValueError
        If a name is unknown, a direction has neither pairs nor labels, sizes do not fit, or a
        value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.retrieval import evaluate_retrieval
    >>> scores = {"image": np.eye(3), "text": np.eye(3)[[0, 2, 1]]}
    >>> print(evaluate_retrieval(scores, measures=["r@1", "mr"]))
    query  target  queries  gallery     r@1   mr
    image  text          3        3  0.3333  2.5
    text   image         3        3  0.3333  2.5
    mean                             0.3333  2.5
    r@1, mr: first item of the same object, ties averaged; cosine
    """
    wanted = [
        Measure.parse(name) for name in ([measures] if isinstance(measures, str) else measures)
    ]
    if not wanted:
        raise ValueError("Expected at least one measure, got none.")
    longest_first = sorted(wanted, key=lambda measure: -(measure.k or 0))  # lists are reused
    scores, similarity = _ranked(scores, similarity, estimator)
    collection = Collection.of(scores, labels)
    rows, used = [], {}
    for query, target in _directions(collection, directions):
        direction = RankedDirection(collection, query, target, similarity, exclude_self)
        by = {measure: relevance or direction.relevance_for(measure) for measure in wanted}
        values = {m.name: m.of(direction.lists(by[m]), no_relevant) for m in longest_first}
        rows.append(direction.as_row({measure.name: values[measure.name] for measure in wanted}))
        used[direction.title] = by
    return RetrievalTable(tuple(rows), tuple(_notes(used, similarity)))


def recall_curve(
    scores: ViewsLike,
    labels: LabelsLike | None = None,
    *,
    k: int = 50,
    similarity: Similarity | None = None,
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    exclude_self: bool = True,
    ties: Ties = "average",
    estimator: Any = None,
) -> dict[tuple[str, str], np.ndarray]:
    """Compute recall at 1, ..., k in every direction, to plot.

    Parameters
    ----------
    scores, labels, similarity, relevance, directions, exclude_self, estimator
        As in `evaluate_retrieval`.
    k : int, default=50
        Length of the longest list.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        How equal scores count in ranks.

    Returns
    -------
    dict of (query, target) to ndarray, shape (k,)
        Share of queries with a relevant item among the first 1, ..., k.

    Raises
    ------
    ValueError
        As in `evaluate_retrieval`.
    """
    scores, similarity = _ranked(scores, similarity, estimator)
    collection = Collection.of(scores, labels)
    measure = Measure.parse(f"r@{k}:{ties}")
    curves = {}
    for query, target in _directions(collection, directions):
        direction = RankedDirection(collection, query, target, similarity, exclude_self)
        ranks = direction.lists(relevance or direction.relevance_for(measure)).ranks(ties)
        curves[direction.query, target] = (ranks[:, None] <= np.arange(1, k + 1)).mean(axis=0)
    return curves


def _ranked(scores: Any, similarity: Similarity | None, estimator: Any) -> tuple[Any, Similarity]:
    """Rows to compare, and their similarity."""
    if estimator is None:
        return scores, similarity or "cosine"
    ranking = Ranking.of(estimator, similarity)
    return ranking.project(scores), ranking.similarity


def _directions(
    collection: Collection, directions: Directions
) -> list[tuple[tuple[str, ...], str]]:
    names = list(collection.rows)
    chosen: list[tuple[tuple[str, ...], str]]
    cross = [((query,), target) for query, target in permutations(names, 2)]
    within = [((name,), name) for name in names]
    if isinstance(directions, str):
        known = {"cross": cross, "within": within, "all": [*cross, *within]}
        if directions not in known:
            raise ValueError(
                f"Expected directions to be one of {list(known)} or (query, target) pairs, got "
                f"{directions!r}."
            )
        chosen = [*known[directions]]
    else:
        chosen = [((q,) if isinstance(q, str) else tuple(q), t) for q, t in directions]
    if not chosen:
        raise ValueError(
            f"There is no direction to evaluate between the views {names}. "
            'Use directions="within" for a single view.'
        )
    for _, target in chosen:
        if target not in names:
            raise ValueError(f"Unknown view {target!r}; the views are {names}.")
    return chosen


def _notes(used: dict[str, dict[Measure, RelevanceBy]], similarity: str) -> list[str]:
    """Meaning of the measures, one line for those with the same meaning."""
    meanings: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in next(iter(used.values())):
        titles: dict[RelevanceBy, list[str]] = {}
        for title, by in used.items():
            titles.setdefault(by[measure], []).append(title)
        for relevance, where in titles.items():
            everywhere = len(titles) == 1
            key = measure.describe(relevance, similarity), () if everywhere else tuple(where)
            meanings.setdefault(key, []).append(measure.name)
    return [
        f"{', '.join(names)}: {meaning}" + (f" ({', '.join(where)})" if where else "")
        for (meaning, where), names in meanings.items()
    ]
