"""The gallery of one question: items as they are stored, and a few numbers for each of them.

Items are coordinates of the rows of a view, whatever is asked about them. A question makes item
vectors of these and of its numbers tile by tile, so that no copy of the gallery is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from mvcca.problem.question import RatioSum
from mvcca.retrieval.hubs import CSLS, Bank
from mvcca.retrieval.search import Gallery, padded
from mvcca.retrieval.search.gallery import ChunkedRows
from mvcca.retrieval.similarity import InnerProduct


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemVectors(ChunkedRows):
    """Item vectors that are made of stored rows, those of the fields, when they are asked for."""

    answer: RatioSum
    terms: ChunkedRows

    def of(self, rows: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """Vectors of some rows with their numbers."""
        shape = (*rows.shape[:-1], -1)
        flat = rows.reshape(-1, rows.shape[-1]), terms.reshape(-1, terms.shape[-1])
        vectors = self.answer.item_vectors(*flat)
        return vectors.astype(rows.dtype, copy=False).reshape(shape)

    @property
    def parts(self) -> list[np.ndarray]:
        """Vectors of each chunk."""
        return self.parts_from(0)

    def parts_from(self, start: int) -> list[np.ndarray]:
        """Vectors from `start` on, chunk by chunk."""
        found = []
        for part in ChunkedRows(self.chunks, self.n).parts_from(start):
            found.append(self.of(part, self.terms.take(np.arange(start, start + len(part)))))
            start += len(part)
        return found

    def take(self, positions: np.ndarray) -> np.ndarray:
        """Vectors at the positions, of shape positions.shape + (...)."""
        rows = ChunkedRows(self.chunks, self.n).take(positions)
        return self.of(rows, self.terms.take(positions))


@dataclass(frozen=True, eq=False, kw_only=True)
class QuestionGallery(Gallery):
    """Gallery of the rows of another one, ranked by the answer to a question."""

    base: Gallery
    answer: RatioSum
    terms: ChunkedRows = field(default_factory=ChunkedRows)
    correction: CSLS | None = None  # for hubs, with training rows as queries and items:
    bank_queries: Gallery | None = None  # [b, 0]
    bank_items: Gallery | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        width = self.answer.width(self.base.n_components)
        object.__setattr__(self, "n_components", width)

    def of_all(self) -> QuestionGallery:
        """The gallery with the numbers of all rows of its base, at the cost of those without."""
        terms, longest = self.terms, self.largest_norm
        for part in self.base.rows.parts_from(terms.n):
            own = self._terms_of(part)
            longest = max(longest, self.similarity.longest(self.answer.item_vectors(part, own)))
            terms = terms.plus(own)
        rows = self.base.rows
        vectors = ItemVectors(rows.chunks, rows.n, answer=self.answer, terms=terms)
        removed = self.base.removed
        return replace(self, terms=terms, rows=vectors, largest_norm=longest, removed=removed)

    def _terms_of(self, rows: np.ndarray) -> np.ndarray:
        terms = self.answer.item_terms(rows)
        if self.correction is not None and self.bank_queries is not None:
            vectors = self.answer.item_vectors(rows, terms).astype(rows.dtype)
            terms[:, -1:] += self.correction.item_terms(vectors, self.bank_queries)
        return terms

    def tiles(self, width: int) -> Iterator[tuple[int, np.ndarray, int]]:
        """Tiles of at most `width` vectors, which are made here."""
        assert isinstance(self.rows, ItemVectors)
        for first, rows, n in self.base.tiles(width):
            terms = self.terms.take(np.arange(first, first + n))
            yield first, padded(self.rows.of(rows[:n], terms)), n

    def scored(
        self, queries: np.ndarray, products: np.ndarray, items: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists."""
        if self.correction is None or self.bank_items is None:
            return products, items
        return self.correction.scores(products, queries, self, self.bank_items), items


def gallery_of_question(
    base: Gallery, answer: RatioSum, bank: Bank | None, before: Gallery | None = None
) -> QuestionGallery:
    """The gallery of a question, corrected for hubs by a bank of query vectors and of items.

    `before` is an earlier one with the same bank, whose numbers are kept.
    """
    if (
        isinstance(before, QuestionGallery)
        and before.base.lineage is base.lineage
        and before.answer is answer
    ):
        return replace(before, base=base).of_all()
    empty = QuestionGallery(
        InnerProduct(), base.rows, lineage=base.lineage, base=base, answer=answer
    )
    if bank is not None:
        queries = np.pad(bank.queries, ((0, 0), (0, 1))).astype(base.dtype)
        items = answer.item_vectors(bank.items, answer.item_terms(bank.items)).astype(base.dtype)
        empty = replace(
            empty,
            correction=bank.correction,
            bank_queries=Gallery.of(queries, InnerProduct()),
            bank_items=Gallery.of(items, InnerProduct()),
        )
    return empty.of_all()
