"""Similarities, each two functions: from rows to item vectors and from rows to query vectors.

The inner products of these vectors order a gallery for each query as the similarity does. A new
similarity is one class here, and one line of `_BY_NAME` if it has a name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from mvcca.blocks import beside, namespace
from mvcca.machine.config import block_slices
from mvcca.machine.threads import each
from mvcca.measures import unit_rows
from mvcca.retrieval.parallel_rows import merge_parallel

_MOST_SQUARES = 2.0**26  # ‖q‖² and ‖g‖² whose product, and so (qᵀg)², is an exact float64
_SLACK = 1e-6  # relative rounding of a standard deviation, and more


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

    def compared(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors without added components, whose products or distances order a gallery."""
        return vectors[:, : vectors.shape[1] - self.n_added]

    def longest(self, vectors: np.ndarray) -> float:
        """Largest length of item or query vectors, which bounds the products."""
        with np.errstate(over="ignore"):  # the caller compares with the largest float
            squares = np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)
            return float(np.sqrt(squares.max(initial=0)))

    def offsets(self, queries: np.ndarray) -> np.ndarray:
        """Column to add to products with query vectors so that they are similarities."""
        return np.zeros((len(queries), 1), queries.dtype)

    def of_products(self, products: Any, queries: np.ndarray, items: Any) -> Any:
        """Similarities, up to an offset, from the products of query vectors with item vectors.

        Products and item vectors may be on a device. Products may be overwritten.
        """
        return products

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
    is the profile likelihood.
    """

    name = "cosine"
    is_cosine = True
    correlations: np.ndarray | None = None  # (n_components,)

    def near(self, rows: np.ndarray) -> Cosine:
        """Exact cosines in a gallery of small integers."""
        return IntegerCosine() if self.correlations is None and IntegerCosine.holds(rows) else self

    def items(self, rows: np.ndarray) -> np.ndarray:
        """Rows of length 1."""
        return self._of_length_1(merge_parallel(unit_rows(rows)))

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """Rows of length 1."""
        return self._of_length_1(unit_rows(rows))

    def longest(self, vectors: np.ndarray) -> float:
        """1, unless lengths are those of correlations."""
        return 1.0 if self.correlations is None else super().longest(vectors)

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
class IntegerCosine(Cosine):
    """Cosine of small integers, whose ties are those of exact arithmetic.

    Item vectors are the integers. (qᵀg)² and ‖q‖² ‖g‖² are exact in float64, and IEEE 754 rounds
    their quotient and its root alike wherever the fraction is the same.
    """

    n_added = 1  # ‖g‖², and 1 for a row of zeros; 0 in queries

    @staticmethod
    def holds(rows: np.ndarray) -> bool:
        """Whether these are rows of small integers."""
        return bool(_small_integers(rows[:1]).all() and _small_integers(rows).all())

    def near(self, rows: np.ndarray) -> Cosine:
        """This similarity for small integers, and the usual cosine for other rows."""
        return Cosine().near(rows)

    def items(self, rows: np.ndarray) -> np.ndarray:
        """(g, ‖g‖²)."""
        return np.column_stack([rows, np.maximum(np.einsum("ij,ij->i", rows, rows), 1)])

    def queries(self, rows: np.ndarray) -> np.ndarray:
        """(q, 0); rows of other numbers are scaled to length 1."""
        rows = np.where(_small_integers(rows)[:, None], rows, unit_rows(rows))
        return np.column_stack([rows, np.zeros(len(rows), rows.dtype)])

    def lengths(self, rows: np.ndarray, items: np.ndarray) -> np.ndarray:
        """1: item vectors are the rows."""
        return np.ones(len(rows))

    def rows(self, items: np.ndarray, lengths: np.ndarray | None) -> np.ndarray:
        """The integers."""
        return items[:, :-1]

    def compared(self, vectors: np.ndarray) -> np.ndarray:
        """Rows of length 1."""
        return Cosine().items(vectors[:, :-1])

    def of_products(self, products: Any, queries: np.ndarray, items: Any) -> Any:
        """Cosines, rounded to the precision of the products."""
        xp = namespace(products)
        lengths = np.einsum("ij,ij->i", queries, queries, dtype=np.float64)
        lengths = beside(np.where(lengths > 0, lengths, 1)[:, None], products)
        squares = xp.astype(items[..., -1], xp.float64)  # 0 in padding
        squares = xp.where(squares > 0, squares, xp.ones_like(squares)) * lengths
        wide = xp.astype(products, xp.float64, copy=False)
        shares = wide * wide / squares
        return xp.copysign(xp.astype(xp.sqrt(shares), products.dtype), products)


@dataclass(frozen=True, eq=False)
class Euclidean(InnerProduct):
    """Negative distances, which order a gallery as qᵀg - ‖g‖²/2 does for any origin."""

    name = "euclidean"
    n_added = 1
    scores_rows = True
    origin: np.ndarray | None = None  # (n_components,); None is 0

    def near(self, rows: np.ndarray) -> Euclidean:
        """Distances from about the mean in columns whose values are far from 0.

        The origin is the number of fewest binary digits within a standard deviation of the mean.
        Of integers it is an integer, since var(k) >= f (1 - f) for a mean with fractional part f:
        subtraction is exact then, and equal distances stay equal.
        """
        middle, spread = rows.mean(axis=0, dtype=float), rows.std(axis=0, dtype=float)
        return Euclidean(np.where(np.abs(middle) > spread, _shortest_near(middle, spread), 0))

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


def in_order(scores: np.ndarray, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores and items of lists (n_queries, k), by descending score and equal scores by index."""
    order = np.lexsort((items, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(items, order, 1)


def _small_integers(rows: np.ndarray) -> np.ndarray:
    """Which rows are integers whose products and squares of products are exact."""
    most = _MOST_SQUARES if rows.dtype == np.float64 else 2.0**24
    with np.errstate(over="ignore"):
        is_small = np.einsum("ij,ij->i", rows, rows) <= most
    return np.asarray(is_small & (rows == np.rint(rows)).all(axis=1))


def _shortest_near(values: np.ndarray, within: np.ndarray) -> np.ndarray:
    """The multiple of the largest power of two within a distance of each value, where not 0."""
    found, near = values.copy(), np.flatnonzero(within > 0)
    exponents = np.frexp(within)[1] - 1  # steps of at most twice the distance: one multiple is near
    while len(near):
        steps = np.ldexp(1.0, exponents[near])
        multiples = np.rint(values[near] / steps) * steps
        is_near = np.abs(multiples - values[near]) <= within[near] * (1 + _SLACK)
        near = near[is_near & (multiples != 0)]
        found[near] = multiples[is_near & (multiples != 0)]
        exponents += 1
    return found


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
