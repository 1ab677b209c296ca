"""Names of retrieval measures, such as ``map@50:cutoff``, and the values they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca import measures
from mvcca.measures import NoRelevant
from mvcca.retrieval.ranked_lists import RankedLists
from mvcca.retrieval.relevance import RelevanceBy


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
        match = re.fullmatch(r"(map|p|r|mrr|mr|mean_rank)(?:@([1-9]\d{0,17}))?(?::(\w+))?", name)
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

    @property
    def preferred_relevance(self) -> tuple[RelevanceBy, RelevanceBy]:
        """Kinds of relevance, the first available of which is used by default."""
        return ("pairs", "labels") if self.is_rank else ("labels", "pairs")

    def of(self, lists: RankedLists, no_relevant: NoRelevant = "zero") -> float:
        """Value for ranked lists."""
        if self.kind == "map":
            values = lists.average_precision(self.k, self.variant, no_relevant)
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

    def describe(self, by: RelevanceBy, similarity: str) -> str:
        """Meaning of the value."""
        item = "of the same object" if by == "pairs" else "with a shared label"
        if self.is_rank:
            ties = "averaged" if self.variant == "average" else self.variant
            return f"first item {item}, ties {ties}; {similarity}"
        if self.kind == "p":
            return f"share of items {item}; {similarity}"
        divisor = {"relevant": "R", "cutoff": "K", "hits": "hits", "min": "min(K, R)"}[self.variant]
        return f"sum of precisions / {divisor}; R items {item}; {similarity}"
