"""Galleries corrected for hubs by CSLS, searched like any other gallery.

Item vectors and query vectors get one more component. Scores are again inner products: exact
search, a device and faiss need not know about the correction.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.retrieval.hubs.csls import CSLS
from mvcca.retrieval.search import Gallery, checked_rows, padded
from mvcca.retrieval.search.gallery import ChunkedRows
from mvcca.retrieval.similarity import InnerProduct


@dataclass(frozen=True, eq=False)
class Bank:
    """Rows of one direction that the correction compares with."""

    correction: CSLS
    queries: Any  # (n_queries, n_components), rows of the queries' view
    items: Any  # (n_items, n_components), rows of the gallery's view

    def __post_init__(self) -> None:
        n = self.correction.n_neighbors
        for rows in (self.queries, self.items):
            if not len(rows):
                raise ValueError("The bank is empty; pass training rows.")
            if len(rows) < n:
                raise ValueError(
                    f"CSLS takes the mean of {n} neighbours in the bank, which holds only "
                    f"{len(rows)} rows. Pass a larger bank, or CSLS(n_neighbors=...)."
                )

    def prepared(self, gallery: Gallery) -> tuple[Gallery, Gallery]:
        """Vectors of the bank's queries, with their offsets, and of its items, for a gallery."""
        queries = gallery.queries(checked_rows(self.queries, "bank of queries", gallery.dtype))
        of_queries = np.column_stack([queries, gallery.similarity.offsets(queries)])
        items = checked_rows(self.items, "bank of gallery rows", gallery.dtype)
        if items.shape[1] != gallery.n_components:
            raise ValueError(
                f"Bank rows have {items.shape[1]} components, the gallery has "
                f"{gallery.n_components}."
            )
        of_items = gallery.similarity.items(items)
        return (
            Gallery.of(of_queries, InnerProduct(), gallery.device),
            Gallery.of(of_items, InnerProduct(), gallery.device),
        )


def corrected(
    gallery: Gallery, bank: Bank, before: CorrectedGallery | None = None
) -> CorrectedGallery:
    """The gallery with the correction of a bank.

    `before` is an earlier corrected gallery of the same bank; terms of its rows are kept.
    """
    gallery = gallery.of_products()
    if before is None or before.base.lineage is not gallery.lineage:
        before = CorrectedGallery.of_bank(bank, gallery)
    added = [before.with_terms(part) for part in gallery.rows.parts_from(len(before))]
    if len(before):
        rows = before.rows
        for part in added:
            rows = rows.plus(part)
    else:  # in the chunks of the gallery
        rows = ChunkedRows(tuple(map(padded, added)), len(gallery))
    longest = max([before.largest_norm, *map(before.similarity.longest, added)])
    return replace(before, rows=rows, largest_norm=longest, removed=gallery.removed, base=gallery)


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedGallery(Gallery):
    """Gallery of the vectors of another one, with the component of the correction."""

    base: Gallery
    correction: CSLS
    bank_queries: Gallery  # [b, offset(b)]
    bank_items: Gallery

    @classmethod
    def of_bank(cls, bank: Bank, gallery: Gallery) -> CorrectedGallery:
        """A gallery without rows, for those of another one."""
        queries, items = bank.prepared(gallery)
        return cls(
            InnerProduct(),
            device=gallery.device,
            base=gallery,
            correction=bank.correction,
            bank_queries=queries,
            bank_items=items,
        )

    def with_terms(self, vectors: np.ndarray) -> np.ndarray:
        """Item vectors with the component of the correction."""
        terms = self.correction.item_terms(vectors, self.bank_queries)
        return np.hstack([vectors, terms.astype(vectors.dtype, copy=False)])

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """Query vectors, 1 in the component of the correction."""
        vectors = self.base.queries(rows)
        return np.hstack([vectors, np.ones((len(vectors), 1), vectors.dtype)])

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists."""
        vectors = queries[:, : self.base.rows.chunks[0].shape[1]]
        return self.correction.scores(products, vectors, self.base, self.bank_items), items
