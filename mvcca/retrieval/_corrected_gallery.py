"""Galleries with a correction for hubs, searched like any other gallery.

All corrections but mutual proximity subtract a constant c(g) of each gallery row from its
similarity. The rows get the column -c(g) and queries the column 1, so that the corrected similarity
is again an inner product: exact search, a device and faiss need not know about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mvcca._threads import each
from mvcca.retrieval._growing_arrays import ChunkedRows
from mvcca.retrieval.gallery import Gallery, padded
from mvcca.retrieval.hubness import CSLS, HubCorrection, MutualProximity, QBNorm
from mvcca.retrieval.search import row_blocks, search
from mvcca.retrieval.similarity import checked_rows, prepared_gallery


@dataclass(frozen=True, eq=False)
class HubBank:
    """Projected rows of a bank for one direction, and the correction to compute from them."""

    correction: HubCorrection
    queries: np.ndarray  # (n_queries, n_components), rows of the queries' view
    items: np.ndarray | None = None  # (n_items, n_components), rows of the gallery's view

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

    def corrected(self, gallery: Gallery, before: Gallery | None = None) -> Gallery:
        """The gallery with the correction.

        `before` is an earlier corrected gallery of the same bank; terms of unchanged chunks are
        reused.
        """
        if isinstance(self.correction, MutualProximity):
            return MutualGallery.correcting(gallery, self, before)
        return CorrectedGallery.correcting(gallery, self, before)


@dataclass(frozen=True, eq=False)
class _Bank:
    """A bank prepared for one gallery, as inner products.

    s(b, g) is the product of [b, offset(b)] and [g, 1] for prepared queries b and rows g.
    """

    rows: HubBank
    origin: np.ndarray | None
    queries: Gallery  # inner; rows [b, offset(b)]
    items: Gallery | None  # inner; prepared as the gallery is

    @classmethod
    def of(cls, rows: HubBank, gallery: Gallery) -> _Bank:
        queries = gallery.queries(checked_rows(rows.queries, "bank of queries", gallery.dtype))
        queries = np.column_stack([queries, _offsets(gallery, queries)])
        items = None
        if rows.correction.needs_items:
            items = checked_rows(rows.items, "bank of gallery rows", gallery.dtype)
            if items.shape[1] != gallery.n_components:
                raise ValueError(
                    f"Bank rows have {items.shape[1]} components, the gallery has "
                    f"{gallery.n_components}."
                )
            items = prepared_gallery(items, gallery.similarity, gallery.origin)
        return cls(
            rows,
            gallery.origin,
            _inner(queries, gallery),
            None if items is None else _inner(items, gallery),
        )


@dataclass(frozen=True, eq=False)
class _Chunk:
    """Terms of the rows of one chunk of a gallery."""

    source: np.ndarray  # the chunk they belong to
    n_rows: int
    terms: np.ndarray  # (n_rows,) c(g), or (n_rows, 2) mean and standard deviation


@dataclass(frozen=True, eq=False)
class CorrectedGallery(Gallery):
    """Gallery of rows [g, -c(g)] for queries [q, 1]; QB-Norm replaces 1 by 0 for some queries."""

    base: Gallery = field(default_factory=lambda: Gallery("inner"))
    bank: Any = None  # _Bank
    terms: tuple[_Chunk, ...] = ()
    active: np.ndarray | None = None  # QB-Norm: whether each row is active

    @classmethod
    def correcting(cls, gallery: Gallery, rows: HubBank, before: Gallery | None = None) -> Gallery:
        """Compute the terms of a gallery's rows, except those known from `before`."""
        bank, terms = _terms(gallery, rows, before)
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
            bank=bank,
            terms=terms,
            active=_active(gallery, bank),
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
        offsets = _offsets(self.base, queries)
        correction = self.bank.rows.correction
        if not isinstance(correction, CSLS):
            return products + offsets, items
        nearest, _ = search(self.bank.items, queries, correction.n_neighbors)
        return 2 * products + offsets - nearest.mean(axis=1, keepdims=True), items


@dataclass(frozen=True, eq=False)
class MutualGallery(Gallery):
    """Gallery ranked by mutual proximity; queries carry their offset, mean and 1 / deviation."""

    is_product: ClassVar[bool] = False

    base: Gallery = field(default_factory=lambda: Gallery("inner"))
    bank: Any = None  # _Bank
    terms: tuple[_Chunk, ...] = ()

    @classmethod
    def correcting(cls, gallery: Gallery, rows: HubBank, before: Gallery | None = None) -> Gallery:
        """Compute the terms of a gallery's rows, except those known from `before`."""
        bank, terms = _terms(gallery, rows, before)
        return cls(
            "inner",
            gallery.rows,
            removed=gallery.removed,
            base=gallery,
            bank=bank,
            terms=terms,
        )

    def queries(self, rows: Any, exclude_self: bool = False) -> np.ndarray:
        """Check and prepare queries."""
        rows = self.base.queries(rows)
        means, deviations = _moments(rows, self.bank.items).T
        return np.column_stack([rows, _offsets(self.base, rows), means, 1 / deviations])

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


def _terms(
    gallery: Gallery, rows: HubBank, before: Gallery | None
) -> tuple[_Bank, tuple[_Chunk, ...]]:
    """The prepared bank, and the terms of every chunk of the gallery."""
    known: Any = before
    if before is None or known.bank.origin is not gallery.origin:
        known = None
    bank = _Bank.of(rows, gallery) if known is None else known.bank
    terms = []
    for number, (source, part) in enumerate(
        zip(gallery.rows.chunks, gallery.rows.parts, strict=True)
    ):
        earlier = known.terms[number] if known and number < len(known.terms) else None
        if earlier and earlier.source is source and earlier.n_rows == len(part):
            terms.append(earlier)
        else:
            terms.append(_Chunk(source, len(part), _terms_of(part, bank)))
    return bank, tuple(terms)


def _active(gallery: Gallery, bank: _Bank) -> np.ndarray | None:
    """QB-Norm: whether each gallery row is among the k best of any query of the bank."""
    correction = bank.rows.correction
    if not isinstance(correction, QBNorm):
        return None
    queries = np.concatenate(bank.queries.rows.parts)[:, :-1]
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


def _is_known(chunk: _Chunk, before: Any, number: int) -> bool:
    return before is not None and number < len(before.terms) and before.terms[number] is chunk


def _terms_of(part: np.ndarray, bank: _Bank) -> np.ndarray:
    """Terms of prepared rows: what is subtracted from s(q, g), or mean and standard deviation."""
    correction, part = bank.rows.correction, _with_one(part)
    if isinstance(correction, CSLS):
        nearest, _ = search(bank.queries, part, correction.n_neighbors)
        return np.asarray(nearest.mean(axis=1) / 2)
    if isinstance(correction, MutualProximity):
        return _moments(part, bank.queries)

    def of_block(rows: slice) -> np.ndarray:
        scores = bank.queries.products(part[rows])
        largest = scores.max(axis=1)
        scores -= largest[:, None]
        scores *= correction.beta
        return np.asarray(largest + np.log(np.exp(scores, out=scores).sum(1)) / correction.beta)

    blocks = row_blocks(bank.queries, part, 2)
    return np.concatenate([np.empty(0, part.dtype), *each(of_block, blocks)])


def _moments(rows: np.ndarray, bank: Gallery) -> np.ndarray:
    """Mean and standard deviation of the products of each row with the rows of the bank."""
    others = np.concatenate(bank.rows.parts).astype(np.float64)
    mean = others.mean(axis=0)
    covariance = np.cov(others, rowvar=False, bias=True).reshape(len(mean), -1)
    means = rows @ mean
    deviations = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ covariance, rows), 0))
    smallest = np.finfo(bank.dtype).eps * np.abs(others).max() * np.abs(rows).max(initial=0)
    deviations = np.maximum(deviations, max(smallest, np.finfo(bank.dtype).tiny))
    return np.column_stack([means, deviations]).astype(bank.dtype)


def _offsets(gallery: Gallery, queries: np.ndarray) -> np.ndarray:
    """Column to add to products with prepared queries so that they are similarities.

    The similarity of distances is -‖q - g‖² / 2.
    """
    if gallery.similarity != "euclidean":
        return np.zeros((len(queries), 1), queries.dtype)
    return -np.einsum("ij,ij->i", queries[:, :-1], queries[:, :-1])[:, None] / 2


def _inner(rows: np.ndarray, like: Gallery) -> Gallery:
    """Gallery of prepared rows, on the device of another one."""
    return Gallery("inner", ChunkedRows((padded(rows),), len(rows)), device=like.device)


def _with_one(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows, np.ones(len(rows), rows.dtype)])
