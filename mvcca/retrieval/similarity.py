"""Similarities, each two functions: from rows to item vectors and from rows to query vectors.

The inner products of these vectors order a gallery for each query as the similarity does. A new
similarity is one class here, and one line of `_BY_NAME` if it has a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mvcca.machine.config import block_slices
from mvcca.machine.threads import each
from mvcca.measures import in_order, merge_parallel, unit_rows


class InnerProduct:
    """Inner product of rows as they are, and the protocol of all similarities."""

    name: ClassVar[str] = "inner"
    n_added: ClassVar[int] = 0  # components of the vectors besides those of the rows
    is_cosine: ClassVar[bool] = False  # whether rows are divided by their lengths
    scores_rows: ClassVar[bool] = False  # whether scores are computed from vectors, not products
    origin: np.ndarray | None = None  # point from which rows are measured

    def items(self, rows: np.ndarray) -> np.ndarray:
        """Item vectors of rows."""
        return rows

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """Query vectors of rows."""
        return rows

    def near(self, _: np.ndarray) -> InnerProduct:
        """The similarity with the least rounding in a gallery of rows like these."""
        return self

    def lengths(self, rows: np.ndarray, items: np.ndarray) -> np.ndarray:
        """What rows were divided by to make their item vectors, in float64, if `is_cosine`."""
        raise NotImplementedError

    def rows(self, items: np.ndarray, _: np.ndarray | None) -> np.ndarray:
        """Rows of items, up to rounding, from their vectors and lengths."""
        return items

    def offsets(self, queries: np.ndarray) -> np.ndarray:
        """Column to add to products with query vectors so that they are similarities."""
        return np.zeros((len(queries), 1), queries.dtype)

    def scored(
        self, queries: np.ndarray, items: np.ndarray, vectors: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores and items of ranked lists, if `scores_rows`.

        Arguments are query vectors, the positions of the listed items and a function from positions
        to item vectors.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Cosine(InnerProduct):
    """Cosine, 0 with a zero row; multiples of a row have equal cosines with every query.

    With correlations ρ of the components, lengths are √(Σ_i ρ_i u_i²): for rows u_i = √w_i a_i it
    is the profile likelihood of `MVCCA.retrieval_scores`.
    """

    name = "cosine"
    is_cosine = True
    correlations: np.ndarray | None = None  # (n_components,)

    def items(self, rows: np.ndarray) -> np.ndarray:
        """Rows of length 1."""
        return self._of_length_1(merge_parallel(unit_rows(rows)))

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """Rows of length 1."""
        return self._of_length_1(unit_rows(rows))

    def lengths(self, rows: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Ratio of the largest entry of each row to that of its vector; 0 for a vector of zeros."""
        places = np.abs(rows).argmax(axis=1)[:, None]
        of_rows = np.take_along_axis(rows, places, axis=1)[:, 0].astype(np.float64)
        of_items = np.take_along_axis(items, places, axis=1)[:, 0].astype(np.float64)
        return np.divide(of_rows, of_items, out=np.zeros(len(rows)), where=of_items != 0)

    def rows(self, items: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        """Items times their lengths."""
        assert lengths is not None
        return (items * lengths[:, None]).astype(items.dtype)

    def _of_length_1(self, unit: np.ndarray) -> np.ndarray:
        """Vectors of rows whose Euclidean length is 1."""
        if self.correlations is None:
            return unit
        rho = self.correlations.astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij,j->i", unit, unit, rho))[:, None].astype(unit.dtype)
        return np.divide(unit, lengths, out=np.zeros_like(unit), where=lengths > 0)


@dataclass(frozen=True, eq=False)
class Euclidean(InnerProduct):
    """Negative distances, which order a gallery as qᵀg - ‖g‖²/2 does for any origin."""

    name = "euclidean"
    n_added = 1
    scores_rows = True
    origin: np.ndarray | None = None  # (n_components,); None is 0

    def near(self, rows: np.ndarray) -> Euclidean:
        """Distances from the mean in columns whose values are far from 0."""
        middle = rows.mean(axis=0)
        return Euclidean(np.where(np.abs(middle) > rows.std(axis=0), middle, 0))

    def items(self, rows: np.ndarray) -> np.ndarray:
        """(g, -‖g‖²/2), measured from the origin."""
        rows = self._moved(rows)
        return np.column_stack([rows, -np.einsum("ij,ij->i", rows, rows) / 2])

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """(q, 1), measured from the origin."""
        return np.column_stack([self._moved(rows), np.ones(len(rows), rows.dtype)])

    def rows(self, items: np.ndarray, _: np.ndarray | None) -> np.ndarray:
        """Items moved back."""
        rows = items[:, :-1]
        return rows if self.origin is None else rows + self.origin.astype(rows.dtype)

    def offsets(self, queries: np.ndarray) -> np.ndarray:
        """-‖q‖²/2, which makes the products -‖q - g‖²/2."""
        return -np.einsum("ij,ij->i", queries[:, :-1], queries[:, :-1])[:, None] / 2

    def scored(
        self, queries: np.ndarray, items: np.ndarray, vectors: Callable[[np.ndarray], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Negative distances, computed from the rows: in products, small ones cancel."""

        def distances(block: slice) -> np.ndarray:
            rows = vectors(items[block])
            return np.linalg.norm(queries[block, None, :-1] - rows[..., :-1], axis=2)

        blocks = block_slices(len(queries), queries.itemsize * queries.shape[1] * items.shape[1])
        return in_order(
            -np.concatenate(
                [np.empty((0, items.shape[1]), queries.dtype), *each(distances, blocks)]
            ),
            items,
        )

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.origin is None else rows - self.origin.astype(rows.dtype)


Similarity = Literal["cosine", "euclidean", "inner"] | InnerProduct
_BY_NAME = {"cosine": Cosine(), "euclidean": Euclidean(), "inner": InnerProduct()}
SIMILARITIES = tuple(_BY_NAME)


def similarity_of(similarity: Any) -> InnerProduct:
    """A similarity by its name, or the similarity itself.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(similarity, InnerProduct):
        return similarity
    if similarity not in SIMILARITIES:
        raise ValueError(
            f"Expected similarity to be one of {list(SIMILARITIES)}, got {similarity!r}."
        )
    return _BY_NAME[similarity]
