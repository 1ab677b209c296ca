"""A few queries and what they retrieved, for a reader to judge by eye."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mvcca.cli.case import Case
from mvcca.retrieval import top_k
from mvcca.retrieval.similarity import Similarity
from mvcca.views import Views

__all__ = ["Example", "Item", "examples"]


@dataclass(frozen=True)
class Item:
    """A row of a view.

    Attributes
    ----------
    view : str
    row : int
        Among the view's held-out rows.
    labels : str
        Names of its labels.
    is_right, is_same : bool
        For an item that a query retrieved: whether it is relevant to the query, and whether it
        shows the query's object.
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
    """Search the second view with rows of the first, all with different labels if there are any.

    Parameters
    ----------
    case : Case
    rows_by_view : Views
        Held-out objects, as the method compares them.
    similarity : {"cosine", "euclidean", "inner"}
        How it compares them.
    n_queries, n_items : int
        How many queries, and how many items for each, as far as there are as many.
    seed : int
        Seed of the choice of queries.

    Returns
    -------
    list of Example
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
    """Rows drawn at random, each with a label not seen before as long as there are such."""
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    seen: dict[str, int] = {}
    for row in order:
        seen.setdefault(texts[row], row)
    fresh = dict.fromkeys(row for text, row in seen.items() if text)  # no label, no right item
    rows = [*fresh, *(row for row in order if row not in fresh)]
    return sorted(rows[:n], key=lambda row: texts[row])


def _shared_labels(case: Case, queries: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """Whether items are right for queries: they share a label or, without labels, the object."""
    vectors = case.relevance_vectors
    if vectors is None:
        return queries[:, None] == gallery
    vectors = vectors.astype(int)  # a sum of 256 bytes would be none
    return (vectors[queries] @ vectors[gallery].T).toarray() > 0
