"""Cross-products of layers, from rows or from sums of batches.

A source has blocks of columns: one per layer, or two independent sketches of it. Of a pair of
blocks P and Q with centred rows x_i and y_i, it gives

    cross(P, Q) = Σ_i x_i y_iᵀ,    lengths(P, Q) = Σ_i ‖x_i‖² ‖y_i‖².
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Self, TypeAlias

import numpy as np

from mvcca.blocks.checks import common_row_labels, matrix_of_numbers
from mvcca.machine.printable import in_one_line
from mvcca.machine.threads import one_by_one
from mvcca.statistics import Moments, column_slices
from mvcca.statistics.moments import ROUNDING
from mvcca.views import Views

_ROWS = 4096  # in a block
_FAR = 1e30  # sums of squares up to which eighth powers neither overflow nor underflow
_NEAR = 40  # binary exponents of numbers whose sums of squares lie there
_MOST = 1000  # binary exponent of scales
_LENGTHS = "squared lengths"


class LayerRows:
    """Layers as matrices, in memory or memory-mapped, of which one block of rows is copied."""

    def __init__(self, layers: Mapping[str, Any]) -> None:
        self.names: tuple[str, ...] = tuple(layers)
        self.matrices = list(_matrices(layers).values())
        self.n_rows = len(self.matrices[0])
        self._parts = [
            slice(start, start + _ROWS) for start in range(0, max(self.n_rows, 1), _ROWS)
        ]
        self._scales = [1.0] * len(self.names)
        self._means = [self._mean(P) for P in range(len(self.names))]
        self._lengths = [self._lengths_about_mean(P) for P in range(len(self.names))]
        for P, name in enumerate(self.names):
            # Only numbers far from 1 are scaled: to look for the largest takes another pass.
            if not 1 / _FAR < self.size(P) < _FAR:
                self._scales[P] = _power(-self._exponent(name, P))
                self._means[P] = self._mean(P)
                self._lengths[P] = self._lengths_about_mean(P)

    @property
    def widest(self) -> int:
        """Number of columns of the widest layer."""
        return max(rows.shape[1] for rows in self.matrices)

    def blocks_of(self, layer: int) -> tuple[int, int]:
        """The layer itself, twice."""
        return layer, layer

    def cross(self, P: int, Q: int) -> np.ndarray:
        """Centred cross-products of two layers."""

        def product(part: slice) -> np.ndarray:
            return self._centred(P, part).T @ self._centred(Q, part)

        if len(self._parts) == 1:  # on one thread, if the layers are narrow
            return product(self._parts[0])
        return reduce(add, one_by_one(product, self._parts))

    def lengths(self, P: int, Q: int) -> float:
        """Sum of products of the squared lengths of centred rows."""
        return float(self._lengths[P] @ self._lengths[Q])

    def without(self, rows: np.ndarray) -> LayerRows:
        """The same layers without some rows."""
        kept = np.delete(np.arange(self.n_rows), rows)
        return LayerRows(
            {name: rows[kept] for name, rows in zip(self.names, self.matrices, strict=True)}
        )

    def size(self, P: int) -> float:
        """Sum of the squared lengths of centred rows."""
        return float(self._lengths[P].sum())

    def rounding(self, P: int) -> np.ndarray:
        """Squared lengths up to which the centred columns of a layer are constant."""
        return _rounding(self._means[P], self.n_rows)

    def _rows(self, P: int, part: slice) -> np.ndarray:
        rows = np.asarray(self.matrices[P][part], dtype=float)
        return rows if self._scales[P] == 1 else rows * self._scales[P]

    def _centred(self, P: int, part: slice) -> np.ndarray:
        return self._rows(P, part) - self._means[P]

    def _mean(self, P: int) -> np.ndarray:
        if self._scales[P] == 1:
            with np.errstate(over="ignore", invalid="ignore"):
                return np.mean(self.matrices[P], axis=0, dtype=float)
        return reduce(add, (self._rows(P, part).sum(axis=0) for part in self._parts)) / self.n_rows

    def _lengths_about_mean(self, P: int) -> np.ndarray:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.concatenate([_lengths(self._centred(P, part)) for part in self._parts])

    def _exponent(self, name: str, P: int) -> int:
        """Binary exponent of the largest number of a layer."""
        return max(_exponent(name, self.matrices[P][part]) for part in self._parts)


class LayerSums:
    """Sums over batches of layers, from which `compare_representations` computes its measures.

    One pass over the rows is enough, and no rows are kept. Sums of different batches, from several
    processes for example, are merged.

    Parameters
    ----------
    sketch : int, optional
        Number of columns of two independent random projections, to which layers wider than twice
        this number are reduced. Unbiased CKA of both sketches is that of the layer on average; its
        standard deviation was .007 for two encoders with 128. By default layers are not reduced,
        and memory is 8 (Σ width)² bytes.
    random_state : int, default=0
        Seed of the projections. Sums with different seeds cannot be merged.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    names : tuple of str
        Names of the layers.

    Examples
    --------
    >>> import numpy as np
    >>> from mvcca.interop.representations import LayerSums, compare_representations
    >>> rng = np.random.default_rng(0)
    >>> sums, weights = LayerSums(), rng.standard_normal((8, 20))
    >>> for _ in range(10):
    ...     first = rng.standard_normal((50, 8))
    ...     sums = sums.update({"first": first, "second": np.tanh(first @ weights)})
    >>> sums
    LayerSums(500 rows of first, second)
    >>> print(compare_representations(sums))
    cka_unbiased, calibrated, 500 rows
    layer   first  second
    first   1.000   0.787
    second  0.787   1.000
    """

    def __init__(self, *, sketch: int | None = None, random_state: int = 0) -> None:
        if sketch is not None and sketch < 2:
            raise ValueError(f"Expected a sketch of at least 2 columns, got {sketch}.")
        self.sketch = sketch
        self.random_state = random_state
        self._widths: dict[str, int] = {}
        self._exponents: list[int] = []  # layers are divided by powers of two
        self._origins: list[np.ndarray] = []  # of the blocks; rows are counted from there
        self._moments: Moments | None = None
        self._about_mean: Moments | None = None

    def __repr__(self) -> str:
        return in_one_line(
            f"LayerSums({self.n_rows} rows of {', '.join(self.names) or 'no layer'})"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(self._widths)

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return 0 if self._moments is None else int(self._moments.counts[0, 0])

    def update(self, batch: Mapping[str, Any]) -> Self:
        """Add a batch of rows.

        Parameters
        ----------
        batch : mapping of str to matrix of shape (n_rows, width)
            Rows of each layer, of the same objects. All batches have the same layers and widths.

        Returns
        -------
        LayerSums
            These sums.

        Raises
        ------
        ValueError
            If layers, widths or numbers of rows differ, or values are not finite.
        """
        layers = {name: rows.astype(float, copy=False) for name, rows in _matrices(batch).items()}
        widths = {name: rows.shape[1] for name, rows in layers.items()}
        if self._moments is not None and widths != self._widths:
            raise ValueError(f"Expected layers of widths {self._widths}, got {widths}.")
        exponents = [_exponent(name, rows) for name, rows in layers.items()]
        if not len(next(iter(layers.values()))):
            return self
        self._widths = widths
        self._scale_to(exponents)
        scaled = zip(layers.items(), self._exponents, strict=True)
        layers = {name: rows * _power(-e) if e else rows for (name, rows), e in scaled}
        blocks = list(self._columns(layers))
        if self._moments is None:
            self._origins = [block.mean(axis=0) for block in blocks]
        blocks = [block - origin for block, origin in zip(blocks, self._origins, strict=True)]
        lengths = np.column_stack([_lengths(block) for block in blocks])
        views = {str(P): block for P, block in enumerate(blocks)} | {_LENGTHS: lengths}
        added = Moments.of(Views(views))
        self._moments = added if self._moments is None else self._moments + added
        self._about_mean = None
        return self

    def merge(self, other: LayerSums) -> Self:
        """Add the rows of other sums.

        Parameters
        ----------
        other : LayerSums
            Sums of other rows of the same layers.

        Returns
        -------
        LayerSums
            These sums.

        Raises
        ------
        ValueError
            If layers, widths, sketches or seeds differ.
        """
        if other._moments is None:
            return self
        ours = (self.sketch, self.random_state, self._widths or other._widths)
        theirs = (other.sketch, other.random_state, other._widths)
        if ours != theirs:
            raise ValueError(
                f"Expected sums of (sketch, random_state, widths) {ours}, got {theirs}."
            )
        if self._moments is None:
            self._widths, self._origins = other._widths, other._origins
            self._exponents, self._moments = other._exponents, other._moments
        else:
            self._scale_to(other._exponents)
            factors = other._factors(self._exponents)
            origins = [f * origin for f, origin in zip(factors, other._origins, strict=True)]
            shifts = [a - b for a, b in zip(origins, self._origins, strict=True)]
            self._moments = self._moments + _moved(_scaled(other._moments, factors), shifts)
        self._about_mean = None
        return self

    @property
    def widest(self) -> int:
        """Number of columns of the widest layer, or of a sketch."""
        return 0 if self._moments is None else max(self._moments.widths.values())

    def blocks_of(self, layer: int) -> tuple[int, int]:
        """The two sketches of a layer, or the layer itself twice."""
        first = sum(self._is_sketched(width) for width in list(self._widths.values())[:layer])
        first += layer
        return first, first + self._is_sketched(list(self._widths.values())[layer])

    def cross(self, P: int, Q: int) -> np.ndarray:
        """Centred cross-products of two blocks."""
        moments = self._centred()
        columns = list(column_slices(moments.widths).values())
        return moments.scatter[columns[P], columns[Q]]

    def lengths(self, P: int, Q: int) -> float:
        """Sum of products of the squared lengths of centred rows."""
        moments = self._centred()
        own = column_slices(moments.widths)[_LENGTHS]
        means = moments.mean()[_LENGTHS]
        return float(moments.scatter[own, own][P, Q] + self.n_rows * means[P] * means[Q])

    def size(self, P: int) -> float:
        """Sum of the squared lengths of centred rows."""
        return float(np.trace(self.cross(P, P)))

    def rounding(self, P: int) -> np.ndarray:
        """Squared lengths up to which the centred columns of a block are constant."""
        return _rounding(self._origins[P] + self._seen().mean()[str(P)], self.n_rows)

    def _seen(self) -> Moments:
        if self._moments is None:
            raise ValueError("Expected sums of rows, got none: call update first.")
        return self._moments

    def _scale_to(self, exponents: list[int]) -> None:
        """Divide layers by powers of two, those of the largest numbers so far."""
        if self._moments is None:
            self._exponents = exponents
            return
        largest = list(map(max, self._exponents, exponents))
        factors = self._factors(largest)
        self._moments = _scaled(self._moments, factors)
        self._origins = [f * origin for f, origin in zip(factors, self._origins, strict=True)]
        self._exponents = largest

    def _factors(self, exponents: list[int]) -> list[float]:
        """What the blocks are multiplied by to be divided by other powers of two."""
        factors = []
        for own, other, width in zip(
            self._exponents, exponents, self._widths.values(), strict=True
        ):
            factors += [_power(own - other)] * (1 + self._is_sketched(width))
        return factors

    def _centred(self) -> Moments:
        """Moments whose lengths are those of rows about their mean."""
        if self._about_mean is None:
            moments = self._seen()
            means = list(moments.mean().values())[:-1]
            self._about_mean = _moved(moments, [-mean for mean in means])
        return self._about_mean

    def _is_sketched(self, width: int) -> bool:
        return self.sketch is not None and width > 2 * self.sketch

    def _columns(self, layers: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
        """The blocks of columns: layers as they are, or two projections of each."""
        for number, rows in enumerate(layers.values()):
            if not self._is_sketched(rows.shape[1]):
                yield rows
                continue
            assert self.sketch is not None
            for copy in range(2):
                rng = np.random.default_rng([self.random_state, number, copy])
                projection = rng.standard_normal((rows.shape[1], self.sketch))
                yield rows @ projection / np.sqrt(self.sketch)


Source: TypeAlias = LayerRows | LayerSums


def _moved(moments: Moments, shifts: Sequence[np.ndarray]) -> Moments:
    """The moments of rows x + d, and of their squared lengths ‖x + d‖² = ‖x‖² + 2 dᵀx + ‖d‖²."""
    own = column_slices(moments.widths)
    lengths = own.pop(_LENGTHS)
    linear = np.zeros((len(moments.scatter), len(shifts)))
    means, scatter = moments.means + moments.residues, moments.scatter.copy()
    for number, (columns, shift) in enumerate(zip(own.values(), shifts, strict=True)):
        linear[columns, number] = 2 * shift
        means[:, lengths.start + number] += 2 * means[0, columns] @ shift + shift @ shift
        means[:, columns] += shift
    product = scatter @ linear
    among = scatter[lengths, lengths] + product[lengths] + product[lengths].T + linear.T @ product
    scatter[:, lengths] += product
    scatter[lengths] = scatter[:, lengths].T
    scatter[lengths, lengths] = among
    return replace(moments, means=means, residues=np.zeros_like(means), scatter=scatter)


def _matrices(layers: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Layers with rows of the same objects."""
    common_row_labels(layers)  # raises if they are in another order
    found = {name: matrix_of_numbers(f"layer {name!r}", rows) for name, rows in layers.items()}
    heights = {name: len(rows) for name, rows in found.items()}
    if len(set(heights.values())) != 1:
        raise ValueError(f"Expected layers with as many rows each, got {heights}.")
    return found


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Squared lengths."""
    return np.einsum("ij,ij->i", rows, rows)


def _scaled(moments: Moments, factors: Sequence[float]) -> Moments:
    """The moments of blocks times powers of two, and of their squared lengths."""
    if set(factors) == {1.0}:
        return moments
    widths = list(moments.widths.values())[:-1]
    by_column = np.concatenate([np.repeat(factors, widths), np.square(factors)])
    return replace(
        moments,
        means=moments.means * by_column,
        residues=moments.residues * by_column,
        scatter=moments.scatter * by_column * by_column[:, None],
    )


def _power(exponent: int) -> float:
    """2 to an exponent; those below -1000 count as that, whose square is 0."""
    return float(np.ldexp(1.0, max(-_MOST, exponent)))


def _rounding(mean: np.ndarray, n_rows: int) -> np.ndarray:
    """Squared lengths that the centred columns of equal rows may have."""
    return n_rows * (ROUNDING * mean) ** 2


def _exponent(name: str, rows: np.ndarray) -> int:
    """Binary exponent of the largest number, 0 where that is near 1."""
    largest = max(float(rows.max(initial=0)), -float(rows.min(initial=0)))
    if not np.isfinite(largest):
        raise ValueError(f"Layer {name!r} contains NaN or infinity.")
    exponent = int(np.frexp(largest)[1]) if largest else -_MOST
    return max(-_MOST, min(exponent, _MOST)) if abs(exponent) > _NEAR else 0
