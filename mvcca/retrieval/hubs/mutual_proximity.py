"""Galleries ranked by mutual proximity, the correction for hubs that is no inner product."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mvcca.retrieval.hubs.bank import Bank, moments
from mvcca.retrieval.hubs.terms import ChunkTerms, terms_of_gallery
from mvcca.retrieval.search import Gallery


@dataclass(frozen=True, eq=False)
class MutualGallery(Gallery):
    """Gallery ranked by mutual proximity; queries carry their offset, mean and 1 / deviation."""

    is_product: ClassVar[bool] = False

    base: Gallery = field(default_factory=lambda: Gallery("inner"))
    bank: Any = None  # PreparedBank
    terms: tuple[ChunkTerms, ...] = ()

    @classmethod
    def correcting(cls, gallery: Gallery, bank: Bank, before: Gallery | None = None) -> Gallery:
        """Compute the terms of a gallery's rows, except those known from `before`."""
        prepared, terms = terms_of_gallery(gallery, bank, before)
        return cls(
            "inner",
            gallery.rows,
            removed=gallery.removed,
            base=gallery,
            bank=prepared,
            terms=terms,
        )

    def queries(self, rows: Any, exclude_self: bool = False) -> np.ndarray:
        """Check and prepare queries."""
        rows = self.base.queries(rows)
        means, deviations = moments(rows, self.bank.items).T
        return np.column_stack([rows, self.base.offsets(rows), means, 1 / deviations])

    def products(self, queries: np.ndarray) -> np.ndarray:
        """Scores of prepared queries and all rows, (n_queries, n_gallery)."""
        from scipy.special import log_ndtr

        rows, (offsets, means, inverses) = queries[:, :-3], queries[:, -3:].T[..., None]
        gallery_means, deviations = np.concatenate([chunk.terms for chunk in self.terms]).T
        scores = self.base.products(rows)
        of_query = log_ndtr((scores - means) * inverses)
        scores += offsets
        scores -= gallery_means
        scores /= deviations
        return np.add(log_ndtr(scores, out=scores), of_query, out=scores)
