"""Example queries and the items they retrieve, for visual inspection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mvcca.cli.comparison.case import Case
from mvcca.retrieval import top_k
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views


@dataclass(frozen=True)
class Item:
    """A held-out row of a view.

    Attributes
    ----------
    view : str
    row : int
    labels : str
        Names of its labels.
    is_right, is_same : bool
        For a retrieved item, whether it is relevant to the query, and whether it shows the same
        object.
    """

    view: str
    row: int
    labels: str
    is_right: bool = True
    is_same: bool = True


@dataclass(frozen=True)
class Example:
    """A query and the items nearest to it, best first."""

    query: Item
    found: list[Item]


def examples(
    case: Case, rows_by_view: Views, similarity: Similarity, n_queries: int, n_items: int, seed: int
) -> list[Example]:
    """Search the second view with rows of the first, preferably rows with different labels.

    `rows_by_view` are the held-out objects, as rows to compare by `similarity`.
    """
    source, target, *_ = rows_by_view.names
    queries, gallery = case.test.objects(source), case.test.objects(target)
    texts = case.label_texts or [""] * len(case.test)
    rows = _varied([texts[i] for i in queries], n_queries, seed)
    n_items = min(n_items, len(gallery))
    _, found = top_k(rows_by_view[source][rows], rows_by_view[target], n_items, similarity)
    shared = _shared_labels(case, queries[rows], gallery)
    return [
        Example(
            Item(source, row, texts[queries[row]]),
            [
                Item(
                    target,
                    int(item),
                    texts[gallery[item]],
                    is_right=bool(right[item]),
                    is_same=bool(queries[row] == gallery[item]),
                )
                for item in items
            ],
        )
        for row, items, right in zip(rows, found, shared, strict=True)
    ]


def _varied(texts: list[str], n: int, seed: int) -> list[int]:
    """Random rows, preferably with labels that differ from those of the rows before."""
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    seen: dict[str, int] = {}
    for row in order:
        seen.setdefault(texts[row], row)
    fresh = dict.fromkeys(row for text, row in seen.items() if text)  # with right items
    rows = [*fresh, *(row for row in order if row not in fresh)]
    return sorted(rows[:n], key=lambda row: texts[row])


def _shared_labels(case: Case, queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Whether items share a label with queries or, without labels, show the same object."""
    vectors = case.relevance_vectors
    if vectors is None:
        return queries[:, None] == gallery
    vectors = vectors.astype(int)  # sums of uint8 would overflow
    return (vectors[queries] @ vectors[gallery].T).toarray() > 0
