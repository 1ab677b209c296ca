"""Galleries with a correction for hubs, searched like any other gallery.

Item vectors and query vectors get the components that the correction appends. The scores of all
corrections but mutual proximity are again inner products: exact search, a device and faiss need not
know about them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mvcca.retrieval.hubs.corrections import CSLS, HubCorrection, MutualProximity
from mvcca.retrieval.search import Gallery, checked_rows, padded, search
from mvcca.retrieval.search.gallery import ChunkedRows
from mvcca.retrieval.similarity import InnerProduct


@dataclass(frozen=True, eq=False)
class Bank:
    """Rows of one direction that a correction compares with."""

    correction: HubCorrection
    queries: Any  # (n_queries, n_components), rows of the queries' view
    items: Any = None  # (n_items, n_components), rows of the gallery's view

    def __post_init__(self) -> None:
        if self.correction.needs_items and self.items is None:
            raise ValueError(
                f"hubness={self.correction.name!r} needs bank rows of the queries' view and of the "
                "gallery's view."
            )
        if isinstance(self.correction, CSLS):
            for rows in (self.queries, self.items):
                n = self.correction.n_neighbors
                if rows is not None and len(rows) < n:
                    raise ValueError(
                        f"CSLS takes the mean of {n} neighbours in the bank, which holds only "
                        f"{len(rows)} rows. Pass a larger bank, or CSLS(n_neighbors=...)."
                    )
        elif not len(self.queries) or (self.items is not None and not len(self.items)):
            raise ValueError("The bank is empty; pass training rows.")

    def prepared(self, gallery: Gallery) -> tuple[Gallery, Gallery | None]:
        """Vectors of the bank's queries, with their offsets, and of its items, for a gallery."""
        queries = gallery.queries(checked_rows(self.queries, "bank of queries", gallery.dtype))
        of_queries = np.column_stack([queries, gallery.similarity.offsets(queries)])
        of_items = None
        if self.correction.needs_items:
            items = checked_rows(self.items, "bank of gallery rows", gallery.dtype)
            if items.shape[1] != gallery.n_components:
                raise ValueError(
                    f"Bank rows have {items.shape[1]} components, the gallery has "
                    f"{gallery.n_components}."
                )
            items = gallery.similarity.items(items)
            of_items = Gallery.of(items, InnerProduct(), gallery.device)
        return Gallery.of(of_queries, InnerProduct(), gallery.device), of_items


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
    active = bank.correction.active(gallery, before.bank_queries)
    return replace(before, rows=rows, removed=gallery.removed, base=gallery, active=active)


@dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedGallery(Gallery):
    """Gallery of the vectors of another one, with the components of a correction."""

    base: Gallery
    correction: HubCorrection
    bank_queries: Gallery  # [b, offset(b)]
    bank_items: Gallery | None
    active: np.ndarray | None = None  # whether the correction applies to each item

    @classmethod
    def of_bank(cls, bank: Bank, gallery: Gallery) -> CorrectedGallery:
        """A gallery without rows, for those of another one."""
        queries, items = bank.prepared(gallery)
        return cls(
            InnerProduct(),
            device=gallery.device if bank.correction.is_product else None,
            base=gallery,
            correction=bank.correction,
            bank_queries=queries,
            bank_items=items,
        )

    @property
    def is_product(self) -> bool:  # type: ignore[override]
        """Whether scores order a gallery as products with its vectors do."""
        return self.correction.is_product

    def with_terms(self, vectors: np.ndarray) -> np.ndarray:
        """Item vectors with the components of the correction."""
        terms = self.correction.item_terms(vectors, self.bank_queries)
        return np.hstack([vectors, terms.astype(vectors.dtype, copy=False)])

    def queries(self, rows: np.ndarray, exclude_self: bool = False) -> np.ndarray:
        """Query vectors, 0 in the component of a correction that does not apply."""
        vectors = self.base.queries(rows)
        terms = self.correction.query_terms(vectors, self.base, self.bank_items)
        if self.active is not None and len(vectors):
            _, best = search(self.base, vectors, 1, exclude_self)
            terms = self.active[best].astype(vectors.dtype)
        return np.hstack([vectors, terms])

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Products of query vectors with all item vectors, or the scores if they are none."""
        if not isinstance(self.correction, MutualProximity):
            return super().products(queries)
        width = self.base.rows.chunks[0].shape[1]
        of_items = np.concatenate([part[:, width:] for part in self.rows.parts])
        products = self.base.products(queries[:, :width])
        return self.correction.of_products(products, queries[:, width:], of_items)

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists."""
        vectors = queries[:, : self.base.rows.chunks[0].shape[1]]
        return self.correction.scores(products, vectors, self.base, self.bank_items), items
