"""Terms of a gallery's rows in a correction for hubs, computed once for each chunk of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mvcca.retrieval.hubs.bank import Bank, PreparedBank
from mvcca.retrieval.search import Gallery


@dataclass(frozen=True, eq=False)
class ChunkTerms:
    """Terms of the rows of one chunk of a gallery."""

    source: np.ndarray  # the chunk they belong to
    n_rows: int
    terms: np.ndarray  # (n_rows,) c(g), or (n_rows, 2) mean and standard deviation


def terms_of_gallery(
    gallery: Gallery, bank: Bank, before: Gallery | None
) -> tuple[PreparedBank, tuple[ChunkTerms, ...]]:
    """The prepared bank, and the terms of every chunk of the gallery."""
    known: Any = before
    if before is None or known.bank.origin is not gallery.origin:
        known = None
    prepared = PreparedBank.of(bank, gallery) if known is None else known.bank
    terms = []
    for number, (source, part) in enumerate(
        zip(gallery.rows.chunks, gallery.rows.parts, strict=True)
    ):
        earlier = known.terms[number] if known and number < len(known.terms) else None
        if earlier and earlier.source is source and earlier.n_rows == len(part):
            terms.append(earlier)
        else:
            terms.append(ChunkTerms(source, len(part), prepared.terms(part)))
    return prepared, tuple(terms)
