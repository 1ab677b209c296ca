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
from typing import Any, Protocol, Self

import numpy as np

from mvcca.machine.threads import one_by_one
from mvcca.statistics import Moments, column_slices
from mvcca.views import Views

_ROWS = 4096  # in a block
_LENGTHS = "squared lengths"


class Source(Protocol):
    """Sums over the rows of all pairs of blocks of columns."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def widest(self) -> int:
        """Number of columns of the widest block."""
        ...

    def blocks_of(self, layer: int) -> tuple[int, int]:
        """The two sketches of a layer, or the layer itself twice."""
        ...

    def cross(self, P: int, Q: int) -> np.ndarray:
        """Centred cross-products of two blocks."""
        ...

    def lengths(self, P: int, Q: int) -> float:
        """Sum of products of the squared lengths of centred rows."""
        ...


class Rows:
    """Layers as matrices, in memory or memory-mapped, of which one block of rows is copied."""

    def __init__(self, layers: Mapping[str, Any]) -> None:
        self.names: tuple[str, ...] = tuple(layers)
        self.matrices = [checked(name, rows) for name, rows in layers.items()]
        heights = {name: len(rows) for name, rows in zip(self.names, self.matrices, strict=True)}
        self.n_rows = next(iter(heights.values()))
        if len(set(heights.values())) > 1:
            raise ValueError(f"Expected layers with as many rows each, got {heights}.")
        self._parts = [
            slice(start, start + _ROWS) for start in range(0, max(self.n_rows, 1), _ROWS)
        ]
        self._means = [_mean(rows) for rows in self.matrices]
        self._lengths = [
            np.concatenate([_lengths(self._centred(p, rows)) for rows in self._parts])
            for p in range(len(self.names))
        ]
        for name, lengths in zip(self.names, self._lengths, strict=True):
            if not np.isfinite(lengths.sum()):
                raise ValueError(f"Layer {name!r} contains NaN, infinity, or numbers above 1e150.")

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

    def without(self, rows: np.ndarray) -> Rows:
        """The same layers without some rows."""
        kept = np.delete(np.arange(self.n_rows), rows)
        return Rows(
            {name: rows[kept] for name, rows in zip(self.names, self.matrices, strict=True)}
        )

    def _centred(self, P: int, rows: slice) -> np.ndarray:
        return np.asarray(self.matrices[P][rows], dtype=float) - self._means[P]


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
             first  second
    first    1.000   0.787
    second   0.787   1.000
    """

    def __init__(self, *, sketch: int | None = None, random_state: int = 0) -> None:
        if sketch is not None and sketch < 2:
            raise ValueError(f"Expected a sketch of at least 2 columns, got {sketch}.")
        self.sketch = sketch
        self.random_state = random_state
        self._widths: dict[str, int] = {}
        self._origins: list[np.ndarray] = []  # of the blocks; rows are counted from there
        self._moments: Moments | None = None
        self._about_mean: Moments | None = None

    def __repr__(self) -> str:
        return f"LayerSums({self.n_rows} rows of {', '.join(self.names) or 'no layer'})"

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
        layers = {name: np.asarray(checked(name, rows), float) for name, rows in batch.items()}
        widths = {name: rows.shape[1] for name, rows in layers.items()}
        if self._moments is not None and widths != self._widths:
            raise ValueError(f"Expected layers of widths {self._widths}, got {widths}.")
        heights = {name: len(rows) for name, rows in layers.items()}
        if len(set(heights.values())) != 1:
            raise ValueError(f"Expected layers with as many rows each, got {heights}.")
        for name, rows in layers.items():
            if not np.isfinite(rows).all():
                raise ValueError(f"Layer {name!r} contains NaN or infinity.")
        if not next(iter(heights.values())):
            return self
        self._widths = widths
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
            self._moments = other._moments
        else:
            shifts = [a - b for a, b in zip(other._origins, self._origins, strict=True)]
            self._moments = self._moments + _moved(other._moments, shifts)
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

    def _centred(self) -> Moments:
        """Moments whose lengths are those of rows about their mean."""
        if self._moments is None:
            raise ValueError("Expected sums of rows, got none: call update first.")
        if self._about_mean is None:
            means = list(self._moments.mean().values())[:-1]
            self._about_mean = _moved(self._moments, [-mean for mean in means])
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


def checked(name: str, rows: Any) -> Any:
    """A dense matrix of numbers with at least one column; memory maps stay on disk."""
    if hasattr(rows, "detach"):  # a tensor of torch
        rows = rows.detach().cpu()
    rows = np.asarray(rows)  # of a memory map, a view
    if rows.ndim != 2 or rows.dtype.kind not in "biuf" or not rows.shape[1]:
        raise ValueError(
            f"Expected layer {name!r} to be a matrix of numbers, one row per object, got "
            f"{rows.dtype} of shape {rows.shape}. Flatten or average further axes first."
        )
    return rows


def _lengths(rows: np.ndarray) -> np.ndarray:
    """Squared lengths."""
    return np.einsum("ij,ij->i", rows, rows)


def _mean(rows: np.ndarray) -> np.ndarray:
    return np.mean(rows, axis=0, dtype=float)
