"""Galleries with a correction for hubs, searched like any other gallery.

All corrections but mutual proximity subtract a constant c(g) of each gallery row from its
similarity. The rows get the column -c(g) and queries the column 1, so that the corrected similarity
is again an inner product: exact search, a device and faiss need not know about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mvcca.retrieval.hubs.bank import Bank, PreparedBank
from mvcca.retrieval.hubs.corrections import CSLS, MutualProximity, QBNorm
from mvcca.retrieval.hubs.mutual_proximity import MutualGallery
from mvcca.retrieval.hubs.terms import ChunkTerms, terms_of_gallery
from mvcca.retrieval.search import Gallery, search
from mvcca.retrieval.search.growing_arrays import ChunkedRows


def corrected(gallery: Gallery, bank: Bank, before: Gallery | None = None) -> Gallery:
    """The gallery with the correction of a bank.

    `before` is an earlier corrected gallery of the same bank; terms of unchanged chunks are reused.
    """
    if isinstance(bank.correction, MutualProximity):
        return MutualGallery.correcting(gallery, bank, before)
    return CorrectedGallery.correcting(gallery, bank, before)


@dataclass(frozen=True, eq=False)
class CorrectedGallery(Gallery):
    """Gallery of rows [g, -c(g)] for queries [q, 1]; QB-Norm replaces 1 by 0 for some queries."""

    base: Gallery = field(default_factory=lambda: Gallery("inner"))
    bank: Any = None  # PreparedBank
    terms: tuple[ChunkTerms, ...] = ()
    active: np.ndarray | None = None  # QB-Norm: whether each row is active

    @classmethod
    def correcting(cls, gallery: Gallery, bank: Bank, before: Gallery | None = None) -> Gallery:
        """Compute the terms of a gallery's rows, except those known from `before`."""
        prepared, terms = terms_of_gallery(gallery, bank, before)
        known = before.rows.chunks if isinstance(before, CorrectedGallery) else ()
        chunks = []
        for number, (source, chunk) in enumerate(zip(gallery.rows.chunks, terms, strict=True)):
            if _is_known(chunk, before, number):
                chunks.append(known[number])
                continue
            column = np.zeros((len(source), 1), dtype=gallery.dtype)
            column[: chunk.n_rows, 0] = -chunk.terms
            chunks.append(np.hstack([source, column]))
        return cls(
            "inner",
            ChunkedRows(tuple(chunks), len(gallery)),
            removed=gallery.removed,
            lineage=_lineage(gallery, before),
            device=gallery.device,
            base=gallery,
            bank=prepared,
            terms=terms,
            active=_active(gallery, prepared),
        )

    def queries(self, rows: Any, exclude_self: bool = False) -> np.ndarray:
        """Check and prepare queries."""
        rows = self.base.queries(rows)
        gates = np.ones((len(rows), 1), rows.dtype)
        if self.active is not None and len(rows):
            _, best = search(self.base, rows, 1, exclude_self)
            gates = self.active[best].astype(rows.dtype)
        return np.hstack([rows, gates])

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists, from the products of prepared queries with items."""
        queries = queries[:, :-1]
        offsets = self.base.offsets(queries)
        correction = self.bank.correction
        if not isinstance(correction, CSLS):
            return products + offsets, items
        nearest, _ = search(self.bank.items, queries, correction.n_neighbors)
        return 2 * products + offsets - nearest.mean(axis=1, keepdims=True), items


def _active(gallery: Gallery, prepared: PreparedBank) -> np.ndarray | None:
    """QB-Norm: whether each gallery row is among the k best of any query of the bank."""
    correction = prepared.correction
    if not isinstance(correction, QBNorm):
        return None
    queries = np.concatenate(prepared.queries.rows.parts)[:, :-1]
    active = np.zeros(len(gallery), dtype=bool)
    active[search(gallery, queries, min(correction.k, gallery.n_ranked))[1]] = True
    return active


def _lineage(gallery: Gallery, before: Any) -> object:
    """Another object if rows have moved since an earlier corrected gallery."""
    if (
        before is None
        or before.base.lineage is not gallery.lineage
        or before.base.origin is not gallery.origin
    ):
        return object()
    return before.lineage


def _is_known(chunk: ChunkTerms, before: Any, number: int) -> bool:
    return before is not None and number < len(before.terms) and before.terms[number] is chunk
