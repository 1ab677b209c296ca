"""Approximate search with faiss, in float32; scores are those of exact search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.machine.optional import optional
from mvcca.measures import unit_rows
from mvcca.retrieval.search import Gallery, search
from mvcca.retrieval.similarity import in_order

_SPARE = 64  # items to find in place of removed ones, besides k; if too few, the search is exact
_RANGE = 1e15  # of queries in units of the gallery: their squares stay below float32's largest


@dataclass(frozen=True, eq=False)
class FaissIndex:
    """A faiss index over the first rows of a gallery."""

    index: Any
    n_rows: int
    lineage: object  # of the gallery, whose rows have not moved since
    unit: float  # divisor of all rows, so that squares stay within the range of float32
    n_trained: int | None  # rows used for training, if the index is trained

    @classmethod
    def of(cls, gallery: Gallery, description: str) -> FaissIndex:
        """Train an index if it needs training, and add all rows."""
        faiss = import_faiss()
        is_distance = gallery.similarity.origin is not None
        measure = faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT
        index = faiss.index_factory(gallery.n_components, description, measure)
        needs_training = not index.is_trained
        unit = _largest_entry(gallery, 0) or 1.0
        n_trained = len(gallery) if needs_training else None
        empty = cls(index, 0, gallery.lineage, unit, n_trained)
        if needs_training:
            index.train(empty._scaled(gallery, np.concatenate(gallery.rows.parts)))
        return empty.grown(gallery)

    def is_outdated(self, gallery: Gallery) -> bool:
        """Whether rows moved, doubled in number since training, or are too large for the unit."""
        grew = self.n_trained is not None and len(gallery) >= 2 * self.n_trained
        too_large = _largest_entry(gallery, self.n_rows) > _RANGE * self.unit
        return grew or too_large or self.lineage is not gallery.lineage

    def grown(self, gallery: Gallery) -> FaissIndex:
        """Index with the rows added to the gallery since."""
        for new in gallery.rows.parts_from(self.n_rows):
            self.index.add(self._scaled(gallery, new))
        return replace(self, n_rows=len(gallery))

    def search(self, gallery: Gallery, rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Exact scores and items of about the k best."""
        queries = gallery.queries(rows)
        if hasattr(self.index, "hnsw"):
            self.index.hnsw.efSearch = max(128, 2 * k)  # rows visited before it stops
        items = self._unremoved(gallery, self._scaled_queries(gallery, queries), k)
        short = (items < 0).any(axis=1)  # faiss gave up before it had k
        items[short] = search(gallery, queries[short], k)[1]
        vectors = gallery.rows.take(items)
        products = np.einsum("ij,ikj->ik", queries, vectors)
        products = gallery.similarity.of_products(products, queries, vectors)
        return in_order(*gallery.scored(queries, products, items))

    def _unremoved(self, gallery: Gallery, queries: np.ndarray, k: int) -> np.ndarray:
        """About the k best items, -1 where fewer are found; removed rows are passed over."""
        n_spare = min(gallery.removed.n, k + _SPARE)
        _, items = self.index.search(queries, k + n_spare)
        if not n_spare:
            return items
        items[np.isin(items, gallery.removed.positions())] = -1
        order = np.argsort(items < 0, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(items, order, axis=1)

    def _scaled(self, gallery: Gallery, rows: np.ndarray) -> np.ndarray:
        """Prepared rows in float32, without added components."""
        rows = gallery.similarity.compared(rows)
        return np.ascontiguousarray(rows / self.unit, dtype=np.float32)

    def _scaled_queries(self, gallery: Gallery, queries: np.ndarray) -> np.ndarray:
        if gallery.similarity.origin is None:  # the length of a query does not change its order
            rows = unit_rows(gallery.similarity.compared(queries))
            return np.ascontiguousarray(rows, dtype=np.float32)
        largest = float(np.abs(queries[:, :-1]).max(initial=0)) / self.unit
        if largest > _RANGE:
            raise ValueError(
                f"A query is {largest:.1g} times as large as the gallery, and faiss computes in "
                "float32. Rescale it, or use backend='exact'."
            )
        return self._scaled(gallery, queries)


def import_faiss() -> Any:
    """Import faiss, or raise ImportError that says what to install."""
    return optional("faiss", "backend='faiss'", "mvcca[index]")


def _largest_entry(gallery: Gallery, start: int) -> float:
    """Largest absolute value of the prepared rows from `start` on."""
    new = (rows[:, : gallery.n_components] for rows in gallery.rows.parts_from(start))
    return max((float(np.abs(rows).max()) for rows in new), default=0.0)
