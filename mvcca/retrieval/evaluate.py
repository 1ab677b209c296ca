"""Retrieval measured between all views: which queries, which gallery, what counts as relevant.

Measures are asked for by name, ``"map@50:cutoff"``; a name is parsed here, its number comes from
`mvcca.retrieval.ranking` and `mvcca.measures`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from typing import Any, Literal

import numpy as np

from mvcca import measures
from mvcca.measures import NoRelevant, Ties
from mvcca.retrieval.collection import Collection
from mvcca.retrieval.metrics import Gallery, Metric
from mvcca.retrieval.ranking import average_precision_in, hits_in, ranks_in
from mvcca.retrieval.relevance import Relevance, SameObject, SharedLabel
from mvcca.retrieval.table import Direction, RetrievalTable

RelevanceBy = Literal["pairs", "labels"]
Directions = Literal["cross", "within", "all"] | Iterable[tuple[str | Sequence[str], str]]

DEFAULT_METRICS = ("map@50", "r@1", "r@10", "mrr")


def evaluate_retrieval(
    scores: Any,
    labels: Any = None,
    *,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    metric: Metric = "cosine",
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    exclude_self: bool = True,
    no_relevant: NoRelevant = "zero",
) -> RetrievalTable:
    """Measure retrieval from every view to every other one.

    =====================  ===================================================================
    name                   measure
    =====================  ===================================================================
    ``map``, ``map@K``     mean average precision, of the whole list or cut off at K. A variant
                           names the divisor: ``:relevant``, ``:cutoff``, ``:hits`` or ``:min``
                           as in `mvcca.measures.average_precision`. ``map`` divides by
                           ``relevant`` and ``map@K`` by ``min``, unless told otherwise.
    ``p@K``                mean precision of the first K
    ``r@K``                share of queries with a relevant item in the first K
    ``mr``, ``mean_rank``  median and mean rank of the first relevant item
    ``mrr``                mean reciprocal rank of the first relevant item
    =====================  ===================================================================

    Ranks take a variant for ties, ``:average`` (default), ``:optimistic`` or ``:pessimistic``.

    Two things can make an item relevant. By *pairs* it shows the query's object; by *labels* it
    shares at least one label with the query. ``map`` and ``p`` go by labels where there are any,
    and by pairs otherwise; ``r``, ``mr``, ``mean_rank`` and ``mrr`` go by pairs where the two
    views share objects, and by labels otherwise. The table's notes say what was used. By pairs,
    only objects seen in both views are queries; the gallery is always all rows of the target.

    Parameters
    ----------
    scores : Views, mapping or list of matrices, each of shape (n_rows, n_components)
        Projected rows, as `transform` gives them. In a mapping whose heights differ, but are
        multiples of the least, consecutive rows show one object (five captions of an image).
    labels : array-like or mapping of str to array-like, optional
        Classes, label sets or indicators: one per object; or by view name, one per row. With
        labels by view name, rows of a plain mapping or list are not taken to be paired.
    metrics : str or sequence of str
        Names from the table above.
    metric : {"cosine", "euclidean", "inner"}, default="cosine"
        What is compared.
    relevance : {"pairs", "labels"}, optional
        One relevance for all measures.
    directions : {"cross", "within", "all"} or iterable of (query, target), default="cross"
        Between different views, within each view, or both; or the directions themselves, where a
        query of several names is their joint query, the sum of their projections.
    exclude_self : bool, default=True
        Within a view, keep the query itself out of its ranked list. False gives it rank 1, which
        some published figures do.
    no_relevant : {"zero", "skip", "nan"}, default="zero"
        Average precision of a query without any relevant item.

    Returns
    -------
    RetrievalTable
        A row of measures per direction.

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
    >>> print(evaluate_retrieval(scores, metrics=["r@1", "mr"]))
    query  target  queries  gallery     r@1   mr
    image  text          3        3  0.3333  2.5
    text   image         3        3  0.3333  2.5
    mean                             0.3333  2.5
    r@1, mr: first item of the same object, ties averaged; cosine
    """
    wanted = [Measure.parse(name) for name in ([metrics] if isinstance(metrics, str) else metrics)]
    if not wanted:
        raise ValueError("Expected at least one measure, got none.")
    collection = Collection.of(scores, labels)
    longest = max((measure.k for measure in wanted if not measure.is_rank and measure.k), default=1)
    rows, used = [], {}
    for query, target in _directions(collection, directions):
        search = _Search(collection, query, target, metric, exclude_self, no_relevant, longest)
        by = {measure: relevance or measure.choose(search) for measure in wanted}
        values = {measure.name: measure.of(search, by[measure]) for measure in wanted}
        rows.append(search.as_row(values))
        used[search.title] = by
    return RetrievalTable(tuple(rows), tuple(_notes(used, metric)))


def recall_curve(
    scores: Any,
    labels: Any = None,
    *,
    k: int = 50,
    metric: Metric = "cosine",
    relevance: RelevanceBy | None = None,
    directions: Directions = "cross",
    exclude_self: bool = True,
    ties: Ties = "average",
) -> dict[tuple[str, str], np.ndarray]:
    """Recall at 1, ..., k in every direction, to plot.

    Parameters
    ----------
    scores, labels, metric, relevance, directions, exclude_self
        As in `evaluate_retrieval`.
    k : int, default=50
        Longest list.
    ties : {"average", "optimistic", "pessimistic"}, default="average"
        What items with the same score cost.

    Returns
    -------
    dict of (query, target) to ndarray, shape (k,)
        Share of queries with a relevant item among the first 1, ..., k.

    Raises
    ------
    ValueError
        As in `evaluate_retrieval`.
    """
    collection = Collection.of(scores, labels)
    measure = Measure.parse(f"r@{k}:{ties}")
    curves = {}
    for query, target in _directions(collection, directions):
        search = _Search(collection, query, target, metric, exclude_self)
        ranks = search.lists(relevance or measure.choose(search)).ranks(ties)
        curves["+".join(query), target] = (ranks[:, None] <= np.arange(1, k + 1)).mean(axis=0)
    return curves


@dataclass(frozen=True)
class Measure:
    """A measure by its name, such as ``map@50:cutoff``."""

    name: str
    kind: str
    k: int | None
    variant: str

    @classmethod
    def parse(cls, name: str) -> Measure:
        """Read a name."""
        match = re.fullmatch(r"(map|p|r|mrr|mr|mean_rank)(?:@([1-9]\d*))?(?::(\w+))?", name)
        if not match:
            raise ValueError(
                f"Unknown measure {name!r}. Known are map, map@K, p@K, r@K, mr, mean_rank and mrr."
            )
        kind, k, variant = match[1], int(match[2]) if match[2] else None, match[3]
        if k is None and kind in ("p", "r"):
            raise ValueError(f"{name!r} needs a cut-off, as in {kind}@10.")
        if k is not None and kind not in ("map", "p", "r"):
            raise ValueError(f"{name!r} takes no cut-off.")
        if kind == "p":
            variants: tuple[str, ...] = ("",)
        elif kind == "map":
            variants = ("min" if k else "relevant", "relevant", "cutoff", "hits", "min")
        else:
            variants = ("average", "optimistic", "pessimistic")
        if variant not in (None, *variants):
            raise ValueError(f"{name!r}: expected a variant of {sorted({*variants})}.")
        return cls(name, kind, k, variant or variants[0])

    @property
    def is_rank(self) -> bool:
        """Whether only the first relevant item counts."""
        return self.kind not in ("map", "p")

    @property
    def smaller_is_better(self) -> bool:
        """Whether it is a rank and not a share."""
        return self.kind in ("mr", "mean_rank")

    def choose(self, search: _Search) -> RelevanceBy:
        """The relevance it goes by in a direction, where the user has not said."""
        order: tuple[RelevanceBy, ...] = (
            ("pairs", "labels") if self.is_rank else ("labels", "pairs")
        )
        for by in order:
            if search.has(by):
                return by
        raise ValueError(
            f"{search.title}: the views share no objects and there are no labels, so nothing is "
            "relevant. Pass labels."
        )

    def of(self, search: _Search, by: RelevanceBy) -> float:
        """Its value in a direction."""
        lists = search.lists(by)
        if self.kind == "map":
            values = lists.average_precision(self.k, self.variant)
            return float(np.mean(values)) if len(values) else float("nan")
        if self.kind == "p":
            assert self.k is not None
            hits, _ = lists.hits(self.k)
            return float(hits.sum(axis=1).mean() / self.k)
        ranks = lists.ranks(self.variant)
        if self.kind == "r":
            assert self.k is not None
            return measures.recall_at_k(ranks, self.k)
        return {
            "mr": measures.median_rank,
            "mean_rank": measures.mean_rank,
            "mrr": measures.mean_reciprocal_rank,
        }[self.kind](ranks)

    def describe(self, by: RelevanceBy, metric: str) -> str:
        """What the number means."""
        item = "of the same object" if by == "pairs" else "that shares a label"
        if self.is_rank:
            ties = "averaged" if self.variant == "average" else self.variant
            return f"first item {item}, ties {ties}; {metric}"
        if self.kind == "p":
            return f"share of items {item}; {metric}"
        divisor = {"relevant": "R", "cutoff": "K", "hits": "hits", "min": "min(K, R)"}[self.variant]
        return f"sum of precisions / {divisor}; R items {item}; {metric}"


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


def _notes(used: dict[str, dict[Measure, RelevanceBy]], metric: str) -> list[str]:
    """What the measures mean, those that mean the same in one line."""
    meanings: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in next(iter(used.values())):
        titles: dict[RelevanceBy, list[str]] = {}
        for title, by in used.items():
            titles.setdefault(by[measure], []).append(title)
        for relevance, where in titles.items():
            everywhere = len(titles) == 1
            key = measure.describe(relevance, metric), () if everywhere else tuple(where)
            meanings.setdefault(key, []).append(measure.name)
    return [
        f"{', '.join(names)}: {meaning}" + (f" ({', '.join(where)})" if where else "")
        for (meaning, where), names in meanings.items()
    ]


class _Search:
    """One direction of a collection: its queries, its gallery and what is relevant."""

    def __init__(
        self,
        collection: Collection,
        query: tuple[str, ...],
        target: str,
        metric: Metric,
        exclude_self: bool,
        no_relevant: NoRelevant = "zero",
        longest: int = 1,
    ) -> None:
        self._collection, self._query, self._target = collection, query, target
        self._within = query == (target,)
        self._exclude_self = exclude_self and self._within
        self._no_relevant, self._longest = no_relevant, longest
        self.title = f"{'+'.join(query)} -> {target}"
        self._rows, self._objects, self._codes = collection.joint(query)
        self._gallery = Gallery(collection.rows[target], metric)
        self._lists: dict[str, _Lists] = {}

    @cached_property
    def _paired(self) -> np.ndarray:
        """Which queries show an object of the gallery."""
        return np.isin(self._objects, self._collection.objects[self._target])

    def has(self, by: RelevanceBy) -> bool:
        """Whether the direction has pairs, or labels; a view is not paired with itself."""
        if by == "labels":
            return self._codes is not None
        return not self._within and bool(self._paired.any())

    def lists(self, by: RelevanceBy) -> _Lists:
        """The ranked lists, with the relevance of their items."""
        if by not in ("pairs", "labels"):
            raise ValueError(f"Expected relevance to be 'pairs', 'labels' or None, got {by!r}.")
        if not self.has(by):
            missing = "labels" if by == "labels" else "objects seen in both views"
            raise ValueError(f"{self.title}: relevance by {by} needs {missing}; there are none.")
        if by not in self._lists:
            relevance: Relevance
            if by == "pairs":
                rows = self._rows[self._paired]
                objects = self._collection.objects[self._target]
                relevance = SameObject(self._objects[self._paired], objects)
            else:
                rows = self._rows
                codes, label_sets = self._codes, self._collection.label_sets
                assert codes is not None
                assert label_sets is not None
                relevance = SharedLabel(label_sets, codes, self._collection.codes[self._target])
            self._lists[by] = _Lists(
                self._gallery,
                self._gallery.queries(rows),
                relevance,
                self._exclude_self,
                self._no_relevant,
                self._longest,
            )
        return self._lists[by]

    def as_row(self, values: dict[str, float]) -> Direction:
        """The direction's line of the table."""
        n_paired = 0 if self._within else int(self._paired.sum())
        name = "+".join(self._query)
        n_queries, n_gallery = len(self._rows), len(self._gallery)
        return Direction(name, self._target, n_queries, n_paired, n_gallery, values)


class _Lists:
    """Ranked lists of one direction; what several measures need is computed once."""

    def __init__(
        self,
        gallery: Gallery,
        queries: np.ndarray,
        relevance: Relevance,
        exclude_self: bool,
        no_relevant: NoRelevant,
        longest: int,
    ) -> None:
        self._ranked = gallery, queries, relevance
        self._exclude_self = exclude_self
        self._no_relevant = no_relevant
        self._longest = longest
        self._ranks: dict[str, np.ndarray] = {}

    def ranks(self, ties: Any) -> np.ndarray:
        if ties not in self._ranks:
            self._ranks[ties] = ranks_in(*self._ranked, ties, self._exclude_self)
        return self._ranks[ties]

    @cached_property
    def _hits(self) -> tuple[np.ndarray, np.ndarray]:
        return hits_in(*self._ranked, self._longest, self._exclude_self)

    def hits(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Relevance of the first k items, and the number of relevant items in the gallery."""
        hits, n_relevant = self._hits
        return hits[:, :k], n_relevant

    def average_precision(self, k: int | None, normalizer: Any) -> np.ndarray:
        if k is not None:
            return measures.average_precision_of_lists(
                *self.hits(k), k, normalizer, self._no_relevant
            )
        return average_precision_in(
            *self._ranked, normalizer, self._no_relevant, self._exclude_self
        )
