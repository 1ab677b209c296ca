"""Names of retrieval measures, such as ``map@50:cutoff``, and the values they stand for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mvcca import measures
from mvcca.machine.warnings import warn
from mvcca.measures import NoRelevant
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.relevance import RelevanceBy

JudgedBy = RelevanceBy | Literal["words", "classes"]

_TIES = ("average", "optimistic", "pessimistic")
# Variants by kind of measure, the default first; `map@K` has another default.
_VARIANTS: dict[str, tuple[str, ...]] = {
    "map": ("relevant", "cutoff", "hits", "min"),
    "ndcg": ("linear", "exponential", "binary"),
    "wmap": ("binary", "weighted"),
    "p": ("rows", "class_means"),
    "recall": (),
    "r": _TIES,
    "mr": _TIES,
    "mean_rank": _TIES,
    "mrr": _TIES,
    "hubness": (),
}
_WITH_CUT_OFF = ("map", "ndcg", "wmap", "p", "recall", "r", "hubness")
GAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "linear": lambda gains: gains,
    "exponential": lambda gains: np.exp2(gains) - 1,
    "binary": lambda gains: (gains > 0).astype(np.float64),
}
_ITEMS = {
    "pairs": "of the same object",
    "labels": "with a shared label",
    "gains": "with a gain above 0",
    "classes": "of the class",
}


@dataclass(frozen=True)
class Measure:
    """A measure by its name, such as ``map@50:cutoff``."""

    name: str
    kind: str
    k: int | None
    variant: Any

    @classmethod
    def parse(cls, name: str) -> Measure:
        """Read a name."""
        match = re.fullmatch(rf"({'|'.join(_VARIANTS)})(?:@([1-9]\d{{0,17}}))?(?::(\w+))?", name)
        if not match:
            raise ValueError(
                f"Unknown measure {name!r}. Known are map, map@K, ndcg, ndcg@K, wmap, wmap@K, p@K, "
                "recall@K, r@K, mr, mean_rank, mrr and hubness@K."
            )
        kind, k, variant = match[1], int(match[2]) if match[2] else None, match[3]
        if k is None and kind in ("p", "recall", "r", "hubness"):
            raise ValueError(f"{name!r} needs a cut-off, as in {kind}@10.")
        if k is not None and kind not in _WITH_CUT_OFF:
            raise ValueError(f"{name!r} takes no cut-off.")
        variants = _VARIANTS[kind]
        if variant not in (None, *variants):
            known = f"a variant of {sorted(variants)}" if variants else "no variant"
            raise ValueError(f"{name!r}: expected {known}.")
        default = "min" if kind == "map" and k else next(iter(variants), None)
        return cls(name, kind, k, variant or default)

    @property
    def is_rank(self) -> bool:
        """Whether only the first relevant item counts."""
        return self.kind in ("r", "mr", "mean_rank", "mrr")

    @property
    def is_of_gallery(self) -> bool:
        """Whether it describes the gallery and has no value for single queries."""
        return self.kind == "hubness"

    @property
    def smaller_is_better(self) -> bool:
        """Whether it is a rank or a skewness, and not a share."""
        return self.kind in ("mr", "mean_rank", "hubness")

    @property
    def judged_by(self) -> tuple[JudgedBy, ...]:
        """Kinds of relevance, the first available of which is used by default."""
        if self.kind == "wmap":
            return ("words",)
        if self.variant == "class_means":
            return ("classes",)
        if self.kind == "ndcg":
            return "gains", "labels", "pairs"
        return ("pairs", "labels") if self.is_rank else ("labels", "pairs")

    def per_query(self, lists: RankedLists, no_relevant: NoRelevant = "zero") -> np.ndarray:
        """Value of each query: a rank, a reciprocal rank, a precision, or 1 for a hit and 0."""
        if self.kind == "map":
            return lists.average_precision(self.k, self.variant, no_relevant)
        if self.kind == "ndcg":
            return lists.ndcg(self.k, GAINS[self.variant], no_relevant)
        if self.kind == "wmap":
            return lists.weighted_average_precision(self.k, self.variant)
        if self.kind in ("p", "recall"):
            assert self.k is not None
            hits, n_relevant = lists.hits(self.k)
            if self.variant == "class_means" and (n_relevant < self.k).any():
                warn(
                    f"{int((n_relevant < self.k).sum())} of {len(hits)} classes have fewer than "
                    f"{self.k} items and cannot reach a precision of 1 at {self.k}."
                )
            return hits.sum(axis=1) / (self.k if self.kind == "p" else np.maximum(n_relevant, 1))
        ranks = lists.ranks(self.variant)
        if self.kind == "r":
            return (ranks <= self.k).astype(float)
        return 1 / ranks if self.kind == "mrr" else ranks

    def of_gallery(self, lists: RankedLists) -> float:
        """Value of a measure without values for single queries."""
        assert self.k is not None
        return measures.hubness(lists.occurrences(self.k))

    def reduce(self, values: np.ndarray) -> float:
        """Mean of the queries' values; the median of ``mr``."""
        if not len(values):
            return float("nan")
        return float(np.median(values) if self.kind == "mr" else np.mean(values))

    def describe(self, by: JudgedBy, similarity: str) -> str:
        """Meaning of the value."""
        return f"{self._meaning(by)}; {similarity}"

    def _meaning(self, by: JudgedBy) -> str:
        if self.kind == "wmap":
            weights = "" if self.variant == "binary" else ", times their mean up to the item"
            return f"mean similarity of the labels' word vectors{weights}"
        item = _ITEMS[by]
        if self.is_rank:
            ties = "averaged" if self.variant == "average" else self.variant
            return f"first item {item}, ties {ties}"
        if self.kind == "ndcg":
            gain = {"pairs": f"1 for an item {item}", "labels": "labels shared", "gains": "given"}
            return f"discounted gain / the largest possible; gains: {gain[by]}, {self.variant}"
        if self.kind == "recall":
            return f"items {item} found / all of them"
        if self.kind == "p":
            queries = ", for class means as queries" if by == "classes" else ""
            return f"share of items {item}{queries}"
        if self.kind == "hubness":
            return f"skewness of how often items are among the first {self.k}"
        divisor = {"relevant": "R", "cutoff": "K", "hits": "hits", "min": "min(K, R)"}[self.variant]
        return f"sum of precisions / {divisor}; R items {item}"
