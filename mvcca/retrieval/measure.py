"""Retrieval measures by name, such as ``map@50:cutoff``: a table of formulas.

A new measure is a formula in `mvcca.measures.lists`, its expectation in `mvcca.measures.chance`,
and one entry of `_KINDS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.measures import chance, hubness
from mvcca.measures import lists as of_lists
from mvcca.measures.lists import NoRelevant
from mvcca.retrieval.ranked_lists import Judged, Lists, RankedLists
from mvcca.retrieval.relevance import RelevanceBy

JudgedBy = RelevanceBy | Literal["words", "classes"]


@dataclass(frozen=True)
class _Kind:
    """A family of measures.

    `value` is a formula of the lists, with k, of the ranks of first relevant items, or of how
    often each item of the gallery is found; `expected` its expectation for lists in random order.
    Both take k and the variant. NaN is the value of a query for which nothing is relevant.
    """

    value: Callable[..., Any]
    expected: Callable[[Judged, Any, Any], Any]
    meaning: str
    of: Literal["lists", "ranks", "occurrences"] = "lists"
    judged_by: tuple[JudgedBy, ...] = ("labels", "pairs")
    cut_off: Literal["optional", "needed", "none"] = "optional"
    variants: Mapping[str, str] = field(default_factory=dict)  # in words; the default first
    variant_at_k: str | None = None  # default with a cut-off, if it is another one
    smaller_is_better: bool = False
    reduce: Callable[[np.ndarray], Any] = np.mean


_GAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda gains: gains,
    "exponential": lambda gains: np.exp2(gains) - 1,
    "binary": lambda gains: (gains > 0).astype(np.float64),
}


def _average_precision(lists: Lists, k: int, normalizer: Any) -> np.ndarray:
    return of_lists.average_precision(*lists.hits(k), k, normalizer, "nan")


def _ndcg(lists: Lists, k: int, variant: str) -> np.ndarray:
    gain = _GAINS[variant]
    return of_lists.ndcg(gain(lists.gains(k)), gain(lists.best_gains(k)), "nan")


def _weighted_average_precision(lists: Lists, k: int, precision: Any) -> np.ndarray:
    return of_lists.weighted_average_precision(lists.gains(k), precision)


def _precision(lists: Lists, k: int, variant: str) -> np.ndarray:
    hits, n_relevant = lists.hits(k)
    if variant == "class_means" and (n_relevant < k).any():
        warn(
            f"{int((n_relevant < k).sum())} of {len(hits)} classes have fewer than {k} items and "
            f"cannot reach a precision of 1 at {k}."
        )
    return hits.sum(axis=1) / k


def _recall(lists: Lists, k: int, _: None) -> np.ndarray:
    hits, n_relevant = lists.hits(k)
    return hits.sum(axis=1) / np.maximum(n_relevant, 1)


_of_first_relevant = partial(
    _Kind,
    meaning="first item {item}, ties {variant}",
    of="ranks",
    judged_by=("pairs", "labels"),
    cut_off="none",
    variants={
        "average": "averaged",
        "optimistic": "optimistic",
        "pessimistic": "pessimistic",
    },
)
_KINDS: dict[str, _Kind] = {
    "map": _Kind(
        _average_precision,
        lambda random, k, variant: chance.expected_average_precision(
            random.n_items, random.n_relevant, k, variant
        ),
        "sum of precisions / {variant}; R items {item}",
        variants={"relevant": "R", "cutoff": "K", "hits": "hits", "min": "min(K, R)"},
        variant_at_k="min",
    ),
    "ndcg": _Kind(
        _ndcg,
        lambda random, k, variant: random.by_gains(
            lambda gains: chance.expected_ndcg(random.n_items, _GAINS[variant](gains), k)
        ),
        "discounted gain / the largest possible; gains: {gain}, {variant}",
        judged_by=("gains", "labels", "pairs"),
        variants={name: name for name in _GAINS},
    ),
    "wmap": _Kind(
        _weighted_average_precision,
        lambda random, k, variant: random.by_gains(
            lambda h: chance.expected_weighted_average_precision(random.n_items, h, k, variant)
        ),
        "mean similarity of the labels' word vectors{variant}",
        judged_by=("words",),
        variants={"binary": "", "weighted": ", times their mean up to the item"},
    ),
    "p": _Kind(
        _precision,
        lambda random, k, _: chance.expected_hits(random.n_items, random.n_relevant, k) / k,
        "share of items {item}{variant}",
        cut_off="needed",
        variants={"rows": "", "class_means": ", for class means as queries"},
    ),
    "recall": _Kind(
        _recall,
        lambda random, k, _: (
            chance.expected_hits(random.n_items, random.n_relevant, k)
            / np.maximum(random.n_relevant, 1)
        ),
        "items {item} found / all of them",
        cut_off="needed",
    ),
    "r": _of_first_relevant(
        lambda ranks, k: (ranks <= k).astype(float),
        lambda random, k, _: chance.hit_probability(random.n_items, random.n_relevant, k),
        cut_off="needed",
    ),
    "mr": _of_first_relevant(
        lambda ranks, _: ranks,
        lambda random, *_: chance.expected_median_rank(random.n_items, random.n_relevant),
        smaller_is_better=True,
        reduce=np.median,
    ),
    "mean_rank": _of_first_relevant(
        lambda ranks, _: ranks,
        lambda random, *_: chance.expected_rank(random.n_items, random.n_relevant),
        smaller_is_better=True,
    ),
    "mrr": _of_first_relevant(
        lambda ranks, _: 1 / ranks,
        lambda random, *_: chance.expected_reciprocal_rank(random.n_items, random.n_relevant),
    ),
    "hubness": _Kind(
        hubness,
        lambda random, k, _: chance.expected_hubness(random.n_items, random.n_searches, k),
        "skewness of how often items are among the first {k}",
        of="occurrences",
        cut_off="needed",
        smaller_is_better=True,
    ),
}
_ITEMS = {
    "pairs": "of the same object",
    "labels": "with a shared label",
    "gains": "with a gain above 0",
    "classes": "of the class",
}
_GAIN = {"pairs": f"1 for an item {_ITEMS['pairs']}", "labels": "labels shared", "gains": "given"}


@dataclass(frozen=True)
class Measure:
    """A measure by its name, such as ``map@50:cutoff``."""

    name: str
    kind: str
    k: int | None
    variant: Any
    judged_by: tuple[JudgedBy, ...]  # the first available kind of relevance is the default
    is_rank: bool  # only the first relevant item counts
    is_of_gallery: bool  # it describes the gallery and has no value for single queries
    smaller_is_better: bool  # it is a rank or a skewness, and not a share

    @property
    def sign(self) -> int:
        """Factor of values so that larger is better."""
        return -1 if self.smaller_is_better else 1

    @classmethod
    def parse(cls, name: str) -> Measure:
        """Read a name."""
        match = re.fullmatch(rf"({'|'.join(_KINDS)})(?:@([1-9]\d{{0,17}}))?(?::(\w+))?", name)
        if not match:
            forms = {"optional": ["{0}", "{0}@K"], "needed": ["{0}@K"], "none": ["{0}"]}
            known = [
                form.format(kind) for kind, own in _KINDS.items() for form in forms[own.cut_off]
            ]
            raise ValueError(
                f"Unknown measure {name!r}. Known are {', '.join(known[:-1])} and {known[-1]}."
            )
        kind, k, variant = match[1], int(match[2]) if match[2] else None, match[3]
        own = _KINDS[kind]
        if k is None and own.cut_off == "needed":
            raise ValueError(f"{name!r} needs a cut-off, as in {kind}@10.")
        if k is not None and own.cut_off == "none":
            raise ValueError(f"{name!r} takes no cut-off.")
        if variant not in (None, *own.variants):
            known_variants = sorted(own.variants)
            known_as = f"a variant of {known_variants}" if known_variants else "no variant"
            raise ValueError(f"{name!r}: expected {known_as}.")
        default = (k and own.variant_at_k) or next(iter(own.variants), None)
        return cls(
            name,
            kind,
            k,
            variant or default,
            judged_by=("classes",) if variant == "class_means" else own.judged_by,
            is_rank=own.of == "ranks",
            is_of_gallery=own.of == "occurrences",
            smaller_is_better=own.smaller_is_better,
        )

    def per_query(self, lists: RankedLists, no_relevant: NoRelevant = "zero") -> np.ndarray:
        """Value of each query: a rank, a reciprocal rank, a precision, or 1 for a hit and 0."""
        kind = _KINDS[self.kind]
        if kind.of == "ranks":
            return np.asarray(kind.value(lists.ranks(self.variant), self.k))
        values = lists.measured(lambda own, k: kind.value(own, k, self.variant), self.k)
        if no_relevant == "skip":
            return values[~np.isnan(values)]
        return np.where(np.isnan(values), 0, values) if no_relevant == "zero" else values

    def of_gallery(self, lists: RankedLists) -> float:
        """Value of a measure without values for single queries."""
        assert self.k is not None
        return float(_KINDS[self.kind].value(lists.occurrences(self.k)))

    def expected(self, random: Judged) -> Any:
        """Expected value of each query, or of the direction, if lists are in random order."""
        return _KINDS[self.kind].expected(random, self.k, self.variant)

    def reduce(self, values: np.ndarray) -> float:
        """Mean of the queries' values; the median of ``mr``."""
        return float(_KINDS[self.kind].reduce(values)) if len(values) else float("nan")

    def describe(self, by: JudgedBy, similarity: str) -> str:
        """Meaning of the value."""
        kind = _KINDS[self.kind]
        meaning = kind.meaning.format(
            item=_ITEMS.get(by),
            gain=_GAIN.get(by),
            variant=kind.variants.get(self.variant),
            k=self.k,
        )
        return f"{meaning}; {similarity}"
