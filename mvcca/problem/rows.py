"""The rows that a fit learns from, with the basis and the precision in which they are solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np

from mvcca.blocks import as_block, to_host
from mvcca.problem._bases import (
    Basis,
    Span,
    Standardized,
    moments_of_spans,
    row_space,
    within_units,
)
from mvcca.problem._reduced import reduced
from mvcca.problem.ridge import Shrinkage, ridge_in, ridged
from mvcca.statistics import Moments, PairMoments
from mvcca.views import Views

_FLOAT64 = np.dtype(np.float64)
_EPS = np.finfo(_FLOAT64).eps


@dataclass(frozen=True, eq=False)
class Reading:
    """The basis and the precision in which rows are solved.

    Attributes
    ----------
    bases : mapping of str to Basis
        Basis of each view; the features themselves if it is missing.
    units : mapping of str to Standardized, or None
        Units of the columns of views whose ridge is one on standardized columns. None if the
        statistic of all rows is to tell them.
    asked : mapping of str to bool or "auto"
        Which views that statistic is to standardize; "auto" if it decides that, too.
    center : bool
        Whether bases are those of centred rows.
    products : dtype
        Precision in which products of rows are taken.
    dtype : dtype or None
        Precision of the least precise view; None if it is that of the rows.
    improvable : frozenset of str
        Views for which `climb` has a more precise attempt left.
    float32 : bool
        Whether float32 products of float32 rows are worth an attempt.
    decompose : bool
        Whether covariances of the views are inverted, in any basis, so that a view may be
        decomposed instead.
    in_row_space : bool
        Whether `climb` takes wide views in a basis of the span of their rows.
    equilibrate : bool, mapping of str to bool, or None
        See `Rows.in_row_space`.
    """

    bases: Mapping[str, Basis] = field(default_factory=dict)
    units: Mapping[str, Standardized] | None = field(default_factory=dict)
    asked: Mapping[str, bool | str] = field(default_factory=dict)
    center: bool = True
    products: np.dtype = _FLOAT64
    dtype: np.dtype | None = None
    improvable: frozenset[str] = frozenset()
    float32: bool = True
    decompose: bool = True
    in_row_space: bool = False
    equilibrate: bool | Mapping[str, bool] | None = None


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows of all views, and what a fit asks of them.

    Attributes
    ----------
    views : Views
        The rows, those of some views perhaps in another basis.
    sample_weight : ndarray, shape (n_objects,), or None
        How often each object counts.
    labels : LabelsByView or None
        Labels of the rows of each view, for methods that learn from labels.
    reg : mapping of str to float
        Ridge of each view in units of its mean variance, or its `Absolute` ridge or `Shrinkage`.
    n_components : int or None
        How many components are wanted; None for all that the data support.
    needs_many : bool
        Whether to warn if these are too few to invert the covariances of views without a ridge.
    reading : Reading
        The basis and the precision in which they are solved.
    """

    views: Views
    sample_weight: np.ndarray | None = None
    labels: Any = None
    reg: Mapping[str, float] = field(default_factory=dict)
    n_components: int | None = None
    needs_many: bool = False
    reading: Reading = field(default_factory=Reading)

    def read(self, **changes: Any) -> Self:
        """The same rows with another value of some fields of their `Reading`."""
        return replace(self, reading=replace(self.reading, **changes))

    # ---- the rows --------------------------------------------------------------------------------

    def take(self, objects: np.ndarray) -> Self:
        """The rows of some objects."""
        weights = None if self.sample_weight is None else self.sample_weight[objects]
        labels = None if self.labels is None else self.labels.take(self.views.rows_of(objects))
        return replace(self, views=self.views[objects], sample_weight=weights, labels=labels)

    def standing_for(self, counts: Mapping[str, float]) -> Self:
        """One row of each view, which stands for so many that only a statistic is left of."""
        blocks = {
            name: X.take(np.arange(1)) if X.shape[0] else as_block(np.zeros((1, X.shape[1])))
            for name, X in self.views.blocks.items()
        }
        views = Views.of(blocks, np.eye(len(blocks), dtype=bool), removed=self.views.removed)
        weights = np.array([counts[name] for name in views.names])
        return replace(self, views=views, sample_weight=weights, labels=None)

    def moments(self) -> Moments | PairMoments:
        """Moments of all views, with products in the precision that they need."""
        moments_of = partial(Moments.of, dtype=self.reading.products)
        if not self.views.is_paired:
            return PairMoments.of(self.views, self.sample_weight, moments_of)
        spans = {}
        for name, basis in self.reading.bases.items():
            own = within_units(basis)
            if isinstance(own, Span) and len(own.normal) == len(self.views):
                spans[name] = own
        if len(spans) == len(self.views.names):
            return moments_of_spans(spans)
        return moments_of(self.views, self.sample_weight)

    def moments_of_each(self) -> dict[str, Moments]:
        """Moments of each view by itself, over all objects seen in it."""
        return {
            name: Moments.of(
                Views({name: block}),
                None if self.sample_weight is None else self.sample_weight_of(name),
                self.reading.products,
            )
            for name, block in self.views.items()
        }

    def sample_weight_of(self, name: str) -> np.ndarray:
        """Weights of the rows of one view, ones if there are none."""
        if self.sample_weight is None:
            return np.ones(self.views[name].shape[0])
        return self.sample_weight[self.views.objects(name)]

    # ---- bases -----------------------------------------------------------------------------------

    def widths(self) -> dict[str, int]:
        """Number of features of each view, in whatever basis its rows are."""
        return self.views.widths | {name: len(E.mean) for name, E in self.reading.bases.items()}

    def variances(self, name: str, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        """Diagonal over the features of a view, (d,), of a matrix B in its basis.

        With `of_rows`, B is the covariance of the rows that the basis was found from.
        """
        if name in self.reading.bases:
            return self.reading.bases[name].variances(B, of_rows)
        return np.diag(B) if B.ndim == 2 else B

    def unit(self, name: str, variances: np.ndarray) -> float:
        """What a relative ridge of a view is multiplied by: the mean of its `variances`."""
        basis = self.reading.bases.get(name)
        if isinstance(basis, Standardized):  # columns that are left out do not count
            return float(variances.sum() / max(basis.n_features, 1))
        return float(variances.mean())

    def ridged(self, name: str, B: np.ndarray, unit: float) -> np.ndarray:
        """A matrix B in the basis of a view with the ridge of its features.

        `unit` is the mean diagonal of B over the features.
        """
        reg = self.reg[name]
        if name in self.reading.bases:
            share = 1 - reg if isinstance(reg, Shrinkage) else 1
            return self.reading.bases[name].ridged(B, ridge_in(reg, unit), share)
        return ridged(B, reg, unit)

    def in_row_space(self) -> Self:
        """The same rows, those of views with more features than rows in a basis of their span.

        Weights outside the span of the rows are worth nothing, with a ridge or without, and n x n
        statistics of n rows are smaller than d x d ones. Views without a ridge are equilibrated,
        unless ``reading.equilibrate`` says otherwise, for all views or for those it names.
        """
        reg, equilibrate = dict(self.reg), self.reading.equilibrate
        if isinstance(equilibrate, bool):
            equilibrate = dict.fromkeys(self.views.names, equilibrate)
        reg |= {name: float(not scaled) for name, scaled in (equilibrate or {}).items()}
        find = {
            name: partial(
                row_space, equilibrate=not reg[name], ridge=reg[name], center=self.reading.center
            )
            for name, X in self.views.blocks.items()
            if 1 < X.shape[0] < X.shape[1]
        }
        return self.rotated(find) if find else self

    def standardized(self) -> Self:
        """The same rows, those of views with units in these, as bases."""
        units = {n: own for n, own in (self.reading.units or {}).items() if n in self.views.names}
        blocks = {
            name: block.in_units(units[name].factors if name in units else None)
            for name, block in self.views.blocks.items()
        }
        return replace(self, views=self.views.replace(blocks)).read(bases=units, units={})

    def in_directions_of(self, combinations: Mapping[str, np.ndarray]) -> Self:
        """The same rows, those of some views in the directions of a problem of low rank.

        The matrices between views must be made of `combinations` of the centred rows, (n, m), by
        view, and those within views be covariances of the rows with a ridge.

        Raises
        ------
        DigitsLost
            If a ridge is too small.
        """
        find = {
            name: partial(reduced, combinations=T, reg=self.reg[name])
            for name, T in combinations.items()
        }
        return self.rotated(find)

    def rotated(self, find: Mapping[str, Callable[..., tuple[Basis, np.ndarray]]]) -> Self:
        """The same rows, those of some views in the basis that is found for them, in float64."""
        blocks, bases = dict(self.views.items()), dict(self.reading.bases)
        units = self.reading.units or {}
        for name, basis_of in find.items():
            weights = None if self.sample_weight is None else self.sample_weight_of(name)
            if name in units and name not in bases:
                bases[name] = units[name]
                blocks[name] = as_block(blocks[name]).in_units(units[name].factors).matrix
            basis, blocks[name] = basis_of(to_host(blocks[name]), weights)
            if not blocks[name].shape[1]:
                check_variance(name, np.zeros(1))
            bases[name] = bases[name].then(basis) if name in bases else basis
        return replace(self, views=self.views.replace(blocks)).read(bases=bases)


def check_variance(name: str, B: np.ndarray) -> None:
    """Refuse a view that overflows or never varies, by its matrix or the diagonal of it."""
    variances = np.diag(B) if B.ndim == 2 else B
    if not np.isfinite(B).all():
        raise ValueError(
            f"View {name!r} overflows: its squares exceed the largest float. Rescale it."
        )
    if not (variances > 0).any():
        raise ValueError(
            f"view {name!r} has no variance: all its rows are the same in double precision. "
            "Drop the view, or rescale it if its values are extremely small."
        )


def check_rows_vary(views: Views) -> None:
    """Refuse a view whose rows are all the same, whatever folds or networks would say of it.

    Of other views, only the first rows are read.
    """
    for name, block in views.items():
        first: np.ndarray | None = None
        for part in as_block(block).row_blocks():
            if not part.shape[0]:
                break
            low, high = part.extremes()
            first = low if first is None else first
            if not ((low == first) & (high == first)).all():  # NaN stands for a missing cell
                break
        else:
            check_variance(name, np.zeros(1))


def mean_and_variance(name: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every column, in float64; a variance that is only rounding is 0."""
    with np.errstate(over="ignore", invalid="ignore"):  # which is refused below
        mean, variance = as_block(X).mean_and_variance()
        rounding = (X.shape[0] * _EPS * np.abs(mean)) ** 2
    variance = np.where((variance <= rounding) & (variance < np.inf), 0, variance)
    check_variance(name, variance)
    return mean, variance
