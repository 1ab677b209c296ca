"""CSLS, the correction for hubs: gallery rows that are near to many queries, whatever these show.

It compares each gallery row with a bank of queries, such as training rows. The bank must not hold
the queries of an evaluation, whose rankings would then depend on each other. Other corrections rank
no better (`benchmarks/defaults/hubness.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mvcca.retrieval.search import Gallery, search


@dataclass(frozen=True)
class CSLS:
    """Cross-domain similarity local scaling, 2 s(q, g) - r(q) - r(g).

    r(g) is the mean similarity of a gallery row g to its nearest queries in the bank, and r(q) that
    of a query q to its nearest rows in the bank of the gallery's view [1]_. r(q) does not change
    the ranking, but makes scores of different queries and different galleries comparable.

    As a ranking it is an inner product: of item vectors [g, -r(g) / 2] and query vectors [q, 1].

    Parameters
    ----------
    n_neighbors : int, default=10
        Number of nearest rows, as in [1]_.

    Raises
    ------
    ValueError
        If `n_neighbors` is not a positive integer.

    References
    ----------
    .. [1] Conneau, Lample, Ranzato, Denoyer and Jégou, "Word Translation Without Parallel Data",
       ICLR 2018, section 2.3. There, the bank is all words of both languages.
    """

    n_neighbors: int = 10

    name: ClassVar[str] = "csls"

    def __post_init__(self) -> None:
        n = self.n_neighbors
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"Expected n_neighbors to be a positive integer, got {n!r}.")

    def item_terms(self, vectors: np.ndarray, queries: Gallery) -> np.ndarray:
        """-r(g) / 2, a column; the rows [b, offset(b)] of `queries` times [g, 1] are s(b, g)."""
        with_one = np.column_stack([vectors, np.ones(len(vectors), vectors.dtype)])
        nearest, _ = search(queries, with_one, self.n_neighbors)
        return -nearest.mean(axis=1, keepdims=True) / 2

    def scores(
        self, products: np.ndarray, vectors: np.ndarray, base: Gallery, items: Gallery
    ) -> np.ndarray:
        """2 (s(q, g) - r(g) / 2) - r(q); of distances, r(q) holds the offset once."""
        nearest, _ = search(items, vectors, self.n_neighbors)
        offsets = base.similarity.offsets(vectors)
        return 2 * products + offsets - nearest.mean(axis=1, keepdims=True)

    def __str__(self) -> str:
        return "CSLS" if self == CSLS() else f"CSLS, {self.n_neighbors} neighbours"


def checked_correction(hubness: str | CSLS) -> CSLS:
    """CSLS by its name, with its default parameter, or the correction itself."""
    if isinstance(hubness, CSLS):
        return hubness
    if hubness != CSLS.name:
        raise ValueError(
            f"Expected hubness to be {CSLS.name!r}, an instance of CSLS, or None; got {hubness!r}."
        )
    return CSLS()


def check_bank(hubness: str | CSLS | None, bank: Any) -> None:
    """Raise ValueError if there is a correction without a bank, or a bank without a correction."""
    if hubness is None:
        if bank is not None:
            raise ValueError("A bank is used only to correct for hubs; pass hubness, too.")
        return
    checked_correction(hubness)
    if bank is None:
        raise ValueError(
            f"hubness={hubness!r} needs a bank to compare with. Pass bank=, training rows or other "
            "rows that are not queries: with queries in the bank, the ranking of one would depend "
            "on the others."
        )
