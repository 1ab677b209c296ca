"""Banks of one direction: the rows that corrections for hubs compare queries and items with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mvcca.machine.threads import each
from mvcca.retrieval.hubs.corrections import CSLS, HubCorrection, MutualProximity
from mvcca.retrieval.search import Gallery, padded, row_blocks, search
from mvcca.retrieval.search.growing_arrays import ChunkedRows
from mvcca.retrieval.similarity import checked_rows, prepared_gallery


@dataclass(frozen=True, eq=False)
class Bank:
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


@dataclass(frozen=True, eq=False)
class PreparedBank:
    """A bank prepared for one gallery, as inner products.

    s(b, g) is the product of [b, offset(b)] and [g, 1] for prepared queries b and rows g.
    """

    correction: HubCorrection
    origin: np.ndarray | None
    queries: Gallery  # inner; rows [b, offset(b)]
    items: Gallery | None  # inner; prepared as the gallery is

    @classmethod
    def of(cls, bank: Bank, gallery: Gallery) -> PreparedBank:
        """Check and prepare the rows of a bank."""
        queries = gallery.queries(checked_rows(bank.queries, "bank of queries", gallery.dtype))
        queries = np.column_stack([queries, gallery.offsets(queries)])
        items = None
        if bank.correction.needs_items:
            items = checked_rows(bank.items, "bank of gallery rows", gallery.dtype)
            if items.shape[1] != gallery.n_components:
                raise ValueError(
                    f"Bank rows have {items.shape[1]} components, the gallery has "
                    f"{gallery.n_components}."
                )
            items = prepared_gallery(items, gallery.similarity, gallery.origin)
        return cls(
            bank.correction,
            gallery.origin,
            _inner(queries, gallery),
            None if items is None else _inner(items, gallery),
        )

    def terms(self, part: np.ndarray) -> np.ndarray:
        """Terms of prepared gallery rows: c(g), or mean and standard deviation."""
        correction, part = self.correction, _with_one(part)
        if isinstance(correction, CSLS):
            nearest, _ = search(self.queries, part, correction.n_neighbors)
            return np.asarray(nearest.mean(axis=1) / 2)
        if isinstance(correction, MutualProximity):
            return moments(part, self.queries)

        def of_block(rows: slice) -> np.ndarray:
            scores = self.queries.products(part[rows])
            largest = scores.max(axis=1)
            scores -= largest[:, None]
            scores *= correction.beta
            return np.asarray(largest + np.log(np.exp(scores, out=scores).sum(1)) / correction.beta)

        blocks = row_blocks(self.queries, part, 2)
        return np.concatenate([np.empty(0, part.dtype), *each(of_block, blocks)])


def moments(rows: np.ndarray, bank: Gallery) -> np.ndarray:
    """Mean and standard deviation of the products of each row with the rows of the bank."""
    others = np.concatenate(bank.rows.parts).astype(np.float64)
    mean = others.mean(axis=0)
    covariance = np.cov(others, rowvar=False, bias=True).reshape(len(mean), -1)
    means = rows @ mean
    deviations = np.sqrt(np.maximum(np.einsum("ij,ij->i", rows @ covariance, rows), 0))
    smallest = np.finfo(bank.dtype).eps * np.abs(others).max() * np.abs(rows).max(initial=0)
    deviations = np.maximum(deviations, max(smallest, np.finfo(bank.dtype).tiny))
    return np.column_stack([means, deviations]).astype(bank.dtype)


def _inner(rows: np.ndarray, like: Gallery) -> Gallery:
    """Gallery of prepared rows, on the device of another one."""
    return Gallery("inner", ChunkedRows((padded(rows),), len(rows)), device=like.device)


def _with_one(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows, np.ones(len(rows), rows.dtype)])
