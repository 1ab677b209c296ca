"""How well held-out rows are found under several rankings and numbers of components.

Rankings are those of `mvcca.retrieval`, as products of query and item vectors. Few rows are ranked
very often here, so that scores of all pairs are held in memory and only what a goal needs of their
order is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, permutations
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from mvcca.measures import column_correlations
from mvcca.measures.lists import average_precision
from mvcca.problem import Maps
from mvcca.problem.expected import Expected
from mvcca.retrieval.ranking import CORRECTED, Ranking, ranking_by
from mvcca.retrieval.search import checked_rows
from mvcca.views import Views
from mvcca.views.labels_by_view import LabelsByView

Goal = Literal["object", "class", "correlation"]
MEASURES = {"object": "MRR", "class": "mAP@50", "correlation": "mean correlation"}

_LENGTH = 50  # of the lists of a class goal: mAP@50
_HEAD, _LEAST_HEAD = 1 / 20, 5  # part of the gallery in shorter lists: as 50 of 1,000 items
_NEIGHBORS = 10  # of CSLS
_MOST_PLACES = 2**10  # of items with equal scores, of the 2**24 numbers that float32 tells apart
_LOWEST = np.float32(-(2.0**127))  # of items that are left out; its last bit is 0

HELD_OUT = 500  # objects of a fold to rank: more cost time and choose the same settings
BANK_ROWS = 500  # training rows that correct the rankings of held-out ones

Scores = Mapping[str, np.ndarray]  # (n_rows, n_components) by view


class Value(NamedTuple):
    """How well held-out rows are found.

    The gallery of a fold is small, so that 50 items are a large part of it. The head is what tells
    the quality of the first 50 in a gallery of 1,000: the same part of the gallery, without the
    query's own object, of which there is one in galleries of any size.
    """

    score: float  # the measure of the goal
    head: float  # mean average precision of the head, for the class goal; else the same
    of_objects: np.ndarray | None = None  # (n_objects, n_directions), if that is `Asked`
    n_items: tuple[int, ...] = ()  # that queries of each direction search


@dataclass(frozen=True)
class Asked:
    """What a comparison asks of held-out rows: values of every object, for several goals.

    Attributes
    ----------
    goals : tuple of {"object", "class"}
        For the first, the rank of the row of the same object, equal scores sharing theirs; for the
        second, the average precision of the first items, without the query's own object.
    gallery_size : int
        Number of items that the user will search. A smaller gallery has shorter lists.
    directions : tuple of (query, target), or None
        Views; None for all pairs of different ones.
    n_views : int
        Number of views.
    """

    goals: tuple[Goal, ...]
    gallery_size: int
    directions: tuple[tuple[str, str], ...] | None = None
    n_views: int = 2

    @property
    def n_objects(self) -> int:
        """Most objects of a fold to rank: fewer in many directions, so that these take no longer.

        Values are means over directions, which so many objects tell as well.
        """
        n = self.n_views * (self.n_views - 1) if self.directions is None else len(self.directions)
        return round(HELD_OUT / np.sqrt(max(n / 2, 1)))

    def drawn(self, views: Views, objects: np.ndarray) -> np.ndarray:
        """Objects of a fold to rank."""
        return drawn(views, objects, self.n_objects)

    def length(self, n_items: int) -> int:
        """Length of lists of so many items: as 50 of the gallery that the user will search."""
        return max(1, round(_LENGTH * n_items / self.gallery_size))


def goal_of(estimator: Any) -> Goal:
    """What tuning an estimator maximizes."""
    goal: Goal = estimator.cv_goal or ("class" if estimator.requires.labels else "object")
    return goal


def drawn(views: Views, objects: np.ndarray, most: int = HELD_OUT) -> np.ndarray:
    """Objects to rank, of every pattern of views in which some are seen."""
    order = np.random.RandomState(0).permutation(objects)
    patterns = np.unique(views.seen[order], axis=0, return_inverse=True)[1].ravel()
    chosen = [order[patterns == own][:most] for own in range(patterns.max() + 1)]
    return np.sort(np.concatenate(chosen))


@dataclass(frozen=True, eq=False)
class RankedSample:
    """Rows of some objects of a fold, in memory, to rank or to correct rankings with."""

    views: Views
    labels: LabelsByView | None  # which define relevant items
    ranked: tuple[str, ...]  # views whose rows are queries and items
    asked: Asked | None = None  # None for the mean of one goal

    @classmethod
    def of(
        cls,
        views: Views,
        labels: LabelsByView | None,
        objects: np.ndarray,
        ranked: tuple[str, ...] | None = None,
        asked: Asked | None = None,
    ) -> RankedSample:
        """Rows of objects that are drawn from these."""
        kept = drawn(views, objects) if asked is None else asked.drawn(views, objects)
        labels = None if labels is None else labels.take(views.rows_of(kept))
        ranked = views.names if ranked is None else ranked
        return cls(views[kept].in_memory(), labels, ranked, asked)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Views of queries and of items."""
        if self.asked is not None and self.asked.directions is not None:
            return list(self.asked.directions)
        return list(permutations(self.ranked, 2))

    def directions_for(self, goal: Goal) -> list[tuple[str, str]]:
        """Directions in which some item is right."""
        return [own for own in self.directions if relevant_items(goal, self, *own) is not None]

    @cached_property
    def share_labels(self) -> dict[tuple[str, str], np.ndarray]:
        """Whether each row of one view shares a label with each row of another, by direction."""
        assert self.labels is not None
        vectors, codes = self.labels.distinct.dense(), self.labels.codes
        shared = vectors @ vectors.T > 0
        return {(p, q): shared[np.ix_(codes[p], codes[q])] for p, q in self.directions}

    @cached_property
    def counterparts(self) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
        """Rows of one view, and those of the same objects in another, by direction."""
        found = {}
        for p, q in {*permutations(self.ranked, 2), *self.directions}:
            own, others = self.views.objects(p), self.views.objects(q)
            found[p, q] = np.intersect1d(own, others, assume_unique=True, return_indices=True)[1:]
        return found

    def values_by(self, ranking: Ranking) -> dict[Goal, Value]:
        """Values for all goals that are asked, by the ranking of a fitted model."""
        assert self.asked is not None
        projected = ranking.project(self.views)
        rows = {name: checked_rows(own, f"view {name!r}") for name, own in projected.rows.items()}
        found: dict[Goal, list[Value]] = {goal: [] for goal in self.asked.goals}
        for p, q in self.directions:
            if p not in rows or q not in rows:  # confounds
                continue
            gallery = ranking.gallery({q: rows[q]}, (p,), (q,))
            queries = gallery.queries(ranking.queries({p: rows[p]}, (q,)))
            items = np.concatenate([tile[:n] for _, tile, n in gallery.tiles(len(gallery))])
            similarities = queries @ items.T
            similarities /= np.abs(similarities).max() or 1
            similarities = similarities.astype(np.float32)
            for goal, values in found.items():
                relevant = relevant_items(goal, self, p, q)
                if relevant is not None:
                    values.append(judged(goal, similarities, relevant, self, p))
        return {goal: mean_value(values) for goal, values in found.items() if values}


def bank_of_others(
    samples: Sequence[RankedSample], left_out: Collection[int], project: Callable[[Views], Scores]
) -> Scores:
    """Projected rows of samples that are not left out, equally many of each."""
    others = [own.views for fold, own in enumerate(samples) if fold not in left_out]
    each = -(-BANK_ROWS // len(others))
    parts = [project(views[: min(each, len(views))]) for views in others]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Held-out and training rows in the space of one model, and what it expects of new rows."""

    scores: Scores
    bank: Scores  # training rows
    expected: Expected | None
    factors: np.ndarray | None = None  # λ^power, if scores of `transform` are weighted

    @classmethod
    def of(cls, scores: Scores, bank: Scores, maps: Maps, power: float) -> Self:
        """Scores under a model whose `transform` weights them by λ^power."""
        factors = replace(maps, power=power).factors(np.dtype(float)) if power else None
        return cls(scores, bank, maps.expected, factors)

    @property
    def n_components(self) -> int:
        """Number of components of the model."""
        return next(iter(self.scores.values())).shape[1]

    def leading(self, k: int) -> FoldScores:
        """The same of the first k components."""
        if k == self.n_components:
            return self
        scores, bank = ({n: A[:, :k] for n, A in own.items()} for own in (self.scores, self.bank))
        expected = Maps({}, {}, expected=self.expected).leading(k).expected
        return FoldScores(
            scores, bank, expected, None if self.factors is None else self.factors[:k]
        )

    def weighted(self) -> FoldScores:
        """Scores and bank as `transform` returns them."""
        if self.factors is None:
            return self
        scores, bank = (
            {n: A * self.factors for n, A in own.items()} for own in (self.scores, self.bank)
        )
        return FoldScores(scores, bank, self.expected)


def values_of(
    goal: Goal, projected: FoldScores, sample: RankedSample, rankings: Sequence[str], k: int
) -> dict[str, Value]:
    """Mean over ordered pairs of views of a goal, by ranking, with the first k components.

    Parameters
    ----------
    goal : {"object", "class", "correlation"}
        Mean reciprocal rank of the row of the same object; mAP@50 over rows that share a label; or
        the mean correlation of the scores, which depends on no ranking.
    projected : FoldScores
        Rows of `sample`, and of the training part.
    sample : RankedSample
        The held-out rows.
    rankings : sequence of str
        Names of weightings or "cosine"; with "+csls", hubs are corrected by the training rows.
    k : int
        Number of components.
    """
    projected = projected.leading(k)
    if goal == "correlation":
        correlation = _correlation(projected.scores, sample)
        return dict.fromkeys(rankings, Value(correlation, correlation))
    values: dict[str, Value] = {}
    plain = list(dict.fromkeys(name.removesuffix(CORRECTED) for name in rankings))
    for name in plain:
        ranking = ranking_by(name, tuple(projected.scores), projected.expected)
        rows = projected.weighted() if name == "cosine" else projected
        found: dict[str, list[Value]] = {name: [], f"{name}{CORRECTED}": []}
        for p, q in sample.directions:
            relevant = relevant_items(goal, sample, p, q)
            if relevant is None:
                continue
            judge = partial(judged, goal, relevant=relevant, sample=sample, query=p)
            similarities, item_terms = _similarities(
                ranking, rows, p, q, corrected=f"{name}{CORRECTED}" in rankings
            )
            if name in rankings:
                found[name].append(judge(similarities))
            if item_terms is not None:
                similarities = similarities - item_terms
                found[f"{name}{CORRECTED}"].append(judge(similarities))
        values |= {own: mean_value(each) for own, each in found.items() if each}
    return values


def mean_value(values: Sequence[Value]) -> Value:
    """Mean over directions; values of objects beside each other."""
    score, head = np.mean([own[:2] for own in values], axis=0).tolist()
    of_objects = [own.of_objects for own in values if own.of_objects is not None]
    if not of_objects:
        return Value(score, head)
    n_items = tuple(n for own in values for n in own.n_items)
    return Value(score, head, np.stack(of_objects, axis=1), n_items)


def _similarities(
    ranking: Ranking, rows: FoldScores, p: str, q: str, corrected: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Similarity of rows of p to rows of q, and half of the mean of the latter to the bank."""
    items = ranking.similarity.items(ranking.items({q: ranking.of_view(q, rows.scores[q])}))
    items = items.astype(np.float32)
    similarities = _queries(ranking, rows.scores[p], p, q) @ items.T
    if not corrected or not len(rows.bank[p]):
        return similarities, None
    return similarities, hub_terms(_queries(ranking, rows.bank[p], p, q) @ items.T)


def hub_terms(to_bank: np.ndarray) -> np.ndarray | None:
    """Half of the mean similarity of each item to its nearest rows of a bank, which it permutes.

    None if the bank, (n_bank, n_items), has too few.
    """
    if len(to_bank) < _NEIGHBORS:
        return None
    to_bank.partition(len(to_bank) - _NEIGHBORS, axis=0)
    return np.asarray(to_bank[-_NEIGHBORS:].mean(axis=0) / 2)


def _queries(ranking: Ranking, scores: np.ndarray, p: str, q: str) -> np.ndarray:
    """Query vectors of rows of p that search q."""
    of_view = ranking.of_view(p, scores)
    vectors = ranking.similarity.queries(ranking.queries({p: of_view}, (q,)))
    return np.asarray(vectors, dtype=np.float32)


def relevant_items(goal: Goal, sample: RankedSample, p: str, q: str) -> Any:
    """What `judged` takes of the rows of p and q; None if no row of q is relevant."""
    pairs = sample.counterparts[p, q]
    if goal == "object" and p == q:  # any row finds itself
        return None
    if goal == "class":
        shared = sample.share_labels[p, q]
        return (shared, pairs) if shared.any() else None
    return pairs if len(pairs[0]) else None


def judged(
    goal: Goal, similarities: np.ndarray, relevant: Any, sample: RankedSample, query: str
) -> Value:
    """Value of one direction, from similarities of rows of the query view to all items.

    Parameters
    ----------
    goal : {"object", "class"}
        The measure.
    similarities : ndarray of float32, shape (n_queries, n_items)
    relevant : object
        As `relevant_items` gives it.
    sample : RankedSample
        The rows, and whether values of objects are asked for.
    query : str
        View of the queries.
    """
    if sample.asked is None:
        return mean_over_queries(goal, similarities, relevant)
    objects = sample.views.objects(query)
    of_objects = np.full(len(sample.views), np.nan, dtype=np.float32)
    if goal == "object":
        ranks = _ranks(similarities, relevant)
        of_objects[objects[relevant[0]]] = ranks
        value = float(np.mean(1 / ranks))
    else:
        length = sample.asked.length(similarities.shape[1])
        shared, pairs = relevant
        precision = _precision_of_others(similarities, shared, pairs, length)
        of_objects[objects] = precision
        has_relevant = np.isfinite(precision)
        value = float(precision[has_relevant].mean()) if has_relevant.any() else 0.0
    return Value(value, value, of_objects, (similarities.shape[1],))


def mean_over_queries(goal: Goal, similarities: np.ndarray, relevant: Any) -> Value:
    """Mean reciprocal rank, or mAP@50 and that of the head, of what `relevant_items` gives."""
    if goal == "class":
        return _average_precision(similarities, *relevant)
    value = reciprocal_rank(similarities, relevant)
    return Value(value, value)


def reciprocal_rank(similarities: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> float:
    """Mean reciprocal rank of the counterparts, ties averaged."""
    return float(np.mean(1 / _ranks(similarities, pairs)))


def _ranks(similarities: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Ranks of the counterparts, ties averaged."""
    i, j = pairs
    own = similarities[i, j][:, None]
    rows = similarities if len(i) == len(similarities) else similarities[i]
    return (np.count_nonzero(rows > own, axis=1) + np.count_nonzero(rows >= own, axis=1) + 1) / 2


def _marked(similarities: np.ndarray, relevant: np.ndarray) -> np.ndarray:
    """Numbers in the order of similarities, the last bit of which says whether one is relevant."""
    # The last bits of each number say whether the item is relevant and order equal numbers by
    # position: numbers are sorted several times as fast as positions are.
    numbers = similarities.copy()
    bits, n_items = numbers.view(np.int32), numbers.shape[1]
    n_places = min(_MOST_PLACES, 2 << (n_items - 1).bit_length())  # two for each item
    bits &= -n_places
    bits |= (np.arange(n_items, dtype=np.int32) * 74) % n_places  # even, and as if at random
    bits |= relevant
    return numbers


def _precision_of_others(
    similarities: np.ndarray,
    relevant: np.ndarray,
    pairs: tuple[np.ndarray, np.ndarray],
    length: int,
) -> np.ndarray:
    """Average precision of the first items without counterparts; NaN if none is relevant."""
    numbers, counts = _marked(similarities, relevant), np.count_nonzero(relevant, axis=1)
    numbers[pairs] = _LOWEST
    counts[pairs[0]] -= relevant[pairs]
    k = min(length, numbers.shape[1])
    numbers.partition(numbers.shape[1] - k, axis=1)
    hits = _hits(np.sort(numbers[:, -k:], axis=1), k)
    return average_precision(hits, counts, length, "min", "nan")


def _average_precision(
    similarities: np.ndarray, relevant: np.ndarray, pairs: tuple[np.ndarray, np.ndarray]
) -> Value:
    """Mean average precision of the first 50, and of the head without counterparts."""
    numbers = _marked(similarities, relevant)
    n_items = numbers.shape[1]
    own = np.full((len(numbers), 1), _LOWEST)
    own[pairs[0], 0], numbers[pairs] = numbers[pairs], _LOWEST
    k = min(_LENGTH, n_items)
    numbers.partition(n_items - k, axis=1)
    others = np.sort(numbers[:, -k:], axis=1)
    first = np.sort(np.hstack([others, own]), axis=1)[:, 1:]
    counts = np.count_nonzero(relevant, axis=1)
    score = _mean_precision(first, counts, _LENGTH)
    counts[pairs[0]] -= relevant[pairs]
    length = min(_LENGTH, max(_LEAST_HEAD, round(_HEAD * n_items)))
    return Value(score, _mean_precision(others, counts, length))


def _mean_precision(numbers: np.ndarray, n_relevant: np.ndarray, length: int) -> float:
    """Of increasing numbers whose last bit says whether the item is relevant."""
    hits = _hits(numbers, length)
    return float(np.mean(average_precision(hits, n_relevant, length, "min")))


def _hits(numbers: np.ndarray, length: int) -> np.ndarray:
    """Whether the items of the largest numbers, best first, are relevant."""
    return (numbers[:, -length:].view(np.int32)[:, ::-1] & 1).astype(bool)


def _correlation(scores: Scores, sample: RankedSample) -> float:
    """Mean correlation of the scores of objects seen in two views, over pairs of views."""
    means = []
    for p, q in combinations(sample.ranked, 2):
        i, j = sample.counterparts[p, q]
        if len(i) > 1:
            means.append(np.mean(column_correlations(scores[p][i], scores[q][j])))
    if not means:
        raise ValueError(
            "A fold holds fewer than two objects that are seen in two views, which have no "
            'correlation. Give values in place of "cv", or cv_goal="object".'
        )
    return float(np.mean(means))
