"""The rows that a fit learns from, and the precision and basis in which they are solved.

A correlation that is computed from covariances loses digits with the square of the condition number
κ of its views. Products of float32 rows are therefore taken in float32 only while κ is small, in
float64 otherwise; and views that are too ill-conditioned for any covariance are decomposed
themselves. `Rows.precisely` tries these in turn, and `Rows.check` is called for every problem, so
that a method cannot return an inaccurate answer by forgetting to ask.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from operator import attrgetter
from typing import Any, Self, TypeVar

import numpy as np

from mvcca.blocks import as_block, to_host
from mvcca.machine.warnings import warn
from mvcca.problem._bases import (
    Basis,
    Explicit,
    Span,
    moments_of_spans,
    principal_components,
    row_space,
)
from mvcca.problem._reduced import reduced
from mvcca.problem._sampled_condition import is_ill_conditioned
from mvcca.problem.linalg import Absolute, Shrinkage, ridge_in, ridged, rounding_of
from mvcca.statistics import DigitsLost, Moments, PairMoments
from mvcca.views import Views
from mvcca.views.by_view import value_by_view

T = TypeVar("T")

# The error of a correlation is at most about this times ε κ² (10,000 random problems, both dtypes).
_ERROR = 0.25
# Allowed error, by the precision of the rows.
_TOLERANCES = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
_DECOMPOSED_BYTES = 2 * 2**30  # of float64 rows, up to which a view is decomposed itself
_FLOAT64 = np.dtype(np.float64)
_EPS = np.finfo(_FLOAT64).eps
_BYTES = attrgetter("itemsize")  # of a precision
_SEEN_ROUNDING = 1e-2  # share of a direction's length above which rounding is worth a warning


Reg = float | str | Mapping[str, float]


def reg_of_names(
    reg: Reg, names: Iterable[str], *, positive: bool = False, unit: str = "relative"
) -> dict[str, float]:
    """Ridge per view, as given; "cv" is for fits that hold all rows.

    Problems in which repeated features have no unique weights without a ridge refuse 0. If the
    `unit` is "absolute", ridges are `Absolute`.
    """
    if isinstance(reg, str):
        raise ValueError(
            f'reg="{reg}" looks at all rows at once: use fit, or give partial_fit a number.'
        )
    by_name = isinstance(reg, Mapping)
    values: dict[str, Any] = (
        value_by_view("reg", reg, names) if by_name else dict.fromkeys(names, reg)
    )
    for name, value in values.items():
        if not (isinstance(value, Real) and 0 <= value <= sys.float_info.max):  # type: ignore[operator]
            what = f"reg of view {name!r}" if by_name else "reg"
            raise ValueError(f"{what} must be a number >= 0, got {str(value)[:40]}.")
        if positive and not value:
            raise ValueError(f"reg of view {name!r} must be positive, got {float(value)!r}.")
    kind = Absolute if unit == "absolute" else float
    return {name: kind(value) for name, value in values.items()}


@dataclass(frozen=True, eq=False)
class Exactness:
    """How exactly the matrices of a problem are known, if they are no covariances of rows.

    Attributes
    ----------
    about_zero : bool
        Whether matrices between views come from sums that are not centred, such as those by label,
        so that they lose digits where means are far above deviations.
    of_features : bool
        Whether matrices within views are those of features computed in float64, or of sums of many
        rows, so that the rounding of single rows says nothing of them.
    rounding : mapping of str to ndarray, shape (n_features,)
        Standard deviations that rounding of the rows can give to the matrix of a view; by default
        what its means make of it.
    of_holes : bool
        Whether matrices are estimates from rows with holes, which cannot be decomposed instead.
    """

    about_zero: bool = False
    of_features: bool = False
    rounding: Mapping[str, np.ndarray] = field(default_factory=dict)
    of_holes: bool = False


OF_COVARIANCES = Exactness()


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows of all views, and the basis and the precision in which they are solved.

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
    bases : mapping of str to Basis
        Basis of each view; the features themselves if it is missing.
    products : dtype
        Precision in which products of rows are taken.
    dtype : dtype or None
        Precision of the least precise view; None if it is that of `views`.
    improvable : frozenset of str
        Views for which `precisely` has a more precise attempt left.
    needs_many : bool
        Whether to warn if these are too few to invert the covariances of views without a ridge.
    center : bool
        Whether bases are those of centred rows.
    """

    views: Views
    sample_weight: np.ndarray | None = None
    labels: Any = None
    reg: Mapping[str, float] = field(default_factory=dict)
    n_components: int | None = None
    bases: Mapping[str, Basis] = field(default_factory=dict)
    products: np.dtype = _FLOAT64
    dtype: np.dtype | None = None
    improvable: frozenset[str] = frozenset()
    needs_many: bool = False
    center: bool = True

    # ---- the rows --------------------------------------------------------------------------------

    def take(self, objects: np.ndarray) -> Self:
        """The rows of some objects."""
        weights = None if self.sample_weight is None else self.sample_weight[objects]
        labels = None if self.labels is None else self.labels.take(self.views.rows_of(objects))
        return replace(self, views=self.views[objects], sample_weight=weights, labels=labels)

    def moments(self) -> Moments | PairMoments:
        """Moments of all views, with products in the precision that they need."""
        moments_of = partial(Moments.of, dtype=self.products)
        if not self.views.is_paired:
            return PairMoments.of(self.views, self.sample_weight, moments_of)
        spans = {
            name: basis
            for name, basis in self.bases.items()
            if isinstance(basis, Span) and len(basis.normal) == len(self.views)
        }
        if len(spans) == len(self.views.names):
            return moments_of_spans(spans)
        return moments_of(self.views, self.sample_weight)

    def moments_of_each(self) -> dict[str, Moments]:
        """Moments of each view by itself, over all objects seen in it."""
        return {
            name: Moments.of(
                Views({name: block}),
                None if self.sample_weight is None else self.sample_weight_of(name),
                self.products,
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
        return self.views.widths | {name: E.n_features for name, E in self.bases.items()}

    def variances(self, name: str, B: np.ndarray, of_rows: bool = False) -> np.ndarray:
        """Diagonal over the features of a view, (d,), of a matrix B in its basis.

        With `of_rows`, B is the covariance of the rows that the basis was found from.
        """
        if name in self.bases:
            return self.bases[name].variances(B, of_rows)
        return np.diag(B) if B.ndim == 2 else B

    def ridged(self, name: str, B: np.ndarray, unit: float) -> np.ndarray:
        """A matrix B in the basis of a view with the ridge of its features.

        `unit` is the mean diagonal of B over the features.
        """
        reg = self.reg[name]
        if name in self.bases:
            share = 1 - reg if isinstance(reg, Shrinkage) else 1
            return self.bases[name].ridged(B, ridge_in(reg, unit), share)
        return ridged(B, reg, unit)

    def in_row_space(self, equilibrate: bool | Mapping[str, bool] | None = None) -> Self:
        """The same rows, those of views with more features than rows in a basis of their span.

        Weights outside the span of the rows are worth nothing, with a ridge or without, and n x n
        statistics of n rows are smaller than d x d ones. Views without a ridge are equilibrated,
        unless `equilibrate` says otherwise, for all views or for those it names.
        """
        reg = dict(self.reg)
        if isinstance(equilibrate, bool):
            equilibrate = dict.fromkeys(self.views.names, equilibrate)
        reg |= {name: float(not scaled) for name, scaled in (equilibrate or {}).items()}
        find = {
            name: partial(row_space, equilibrate=not reg[name], ridge=reg[name], center=self.center)
            for name, X in self.views.blocks.items()
            if 1 < X.shape[0] < X.shape[1]
        }
        return self._rotated(find) if find else self

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
        return self._rotated(find)

    def _rotated(self, find: Mapping[str, Callable[..., tuple[Basis, np.ndarray]]]) -> Self:
        """The same rows, those of some views in the basis that is found for them, in float64."""
        blocks, bases = dict(self.views.items()), dict(self.bases)
        for name, basis_of in find.items():
            weights = None if self.sample_weight is None else self.sample_weight_of(name)
            basis, blocks[name] = basis_of(to_host(blocks[name]), weights)
            if not blocks[name].shape[1]:
                check_variance(name, np.zeros(1))
            bases[name] = bases[name].then(basis) if name in bases else basis
        return replace(self, views=self.views.replace(blocks), bases=bases)

    # ---- precision -------------------------------------------------------------------------------

    def precisely(
        self, solve: Callable[[Rows], T], *, float32: bool = True, decompose: bool = True
    ) -> T:
        """The result of `solve` for these rows in the precision, and in the basis, that they need.

        Parameters
        ----------
        solve : callable
            Takes `Rows`; raises `DigitsLost` where their precision is too low.
        float32 : bool, default=True
            Whether float32 products of float32 rows are worth an attempt.
        decompose : bool, default=True
            Whether `solve` inverts covariances of the views, in any basis.

        Raises
        ------
        DigitsLost
            If a correlation is above 1 in the best precision there is.
        """
        dtypes = {block.dtype for block in self.views.blocks.values()}
        dtype = min(dtypes, key=_BYTES)
        rows = replace(self, dtype=dtype, products=_FLOAT64)
        decomposable = frozenset(  # in memory and not too large
            name
            for name, block in self.views.blocks.items()
            if decompose
            and not block.is_lazy
            and 8 * np.prod(block.shape, dtype=float) <= _DECOMPOSED_BYTES
        )
        if float32 and _FLOAT64 not in dtypes and not self.views.is_sparse:
            in_float32 = replace(rows, products=dtype, improvable=frozenset(self.views.names))
            limit = float(np.sqrt(_TOLERANCES[dtype] / (_ERROR * np.finfo(dtype).eps)))
            sampled = self.views, self.sample_weight, self.reg  # all in the features themselves
            if not (decompose and is_ill_conditioned(*sampled, limit, dtype)):
                try:
                    return solve(in_float32)
                except DigitsLost:
                    pass  # float64 may have enough of them
        try:
            return solve(replace(rows, improvable=decomposable))
        except DigitsLost as lost:
            if not (poor := decomposable & lost.views):
                raise
        find = {
            name: partial(principal_components, equilibrate=not self.reg[name], center=self.center)
            for name in self.views.names
            if name in poor
        }
        rows = rows._rotated(find)
        for name in find:
            lengths = np.linalg.norm(rows.views[name], axis=0)
            condition, noise = lengths.max() / lengths.min(), rows._noise(name)
            eps = np.finfo(dtype).eps
            if max(condition * eps / _SEEN_ROUNDING, noise * eps / _EPS) > 1:
                _warn_of_rounded_rows(name, condition, noise, dtype)
        return solve(rows)

    def check(
        self,
        whiteners: Mapping[str, Any],
        rank_expected: Collection[str] = (),
        exactness: Exactness = OF_COVARIANCES,
    ) -> None:
        """Raise `DigitsLost` if `precisely` can do better, and warn if it cannot.

        Views in `rank_expected` have fewer directions than features by construction, so that they
        are judged with a ridge only.
        """
        dtype = self.dtype or min((X.dtype for X in self.views.blocks.values()), key=_BYTES)
        tolerance, eps = _TOLERANCES[dtype], np.finfo(dtype).eps
        limit = np.sqrt(tolerance / (_ERROR * np.finfo(self.products).eps))
        conditions = {
            name: whitener.condition
            for name, whitener in whiteners.items()
            if self.reg[name] or name not in rank_expected
        }
        lost = [name for name, condition in conditions.items() if condition > limit]
        noisy = [name for name, whitener in whiteners.items() if whitener.noise > tolerance]
        far = noisy if exactness.about_zero else []
        if better := self.improvable.intersection(lost + far):
            raise DigitsLost(better)
        for name in far:
            warn(
                f"Means of view {name!r} are so far above its deviations that sums of its rows by "
                "label lose digits, so correlations may lose digits. Subtract the means, or fit "
                "dense rows in memory."
            )
        for name, condition in conditions.items():
            whitener = whiteners[name]
            if name in lost:
                warn(
                    f"View {name!r} is close to collinear: {_condition_in_words(condition)} and "
                    f"{whitener.rank} of {len(whitener.scale)} directions are above rounding, "
                    "so correlations may lose digits. Set reg > 0"
                    f"{'' if exactness.of_holes else ', or fit dense rows in memory'}."
                )
            noise = 0.0 if exactness.of_features else whitener.noise
            if name not in lost and max(condition * eps / _SEEN_ROUNDING, noise * eps / _EPS) > 1:
                _warn_of_rounded_rows(name, condition, noise, dtype)

    def _noise(self, name: str) -> float:
        """Largest share of a direction's length that may be the rounding of float64 rows."""
        basis, Z = self.bases[name], self.views[name]
        assert isinstance(basis, Explicit)
        rounding = np.sqrt(len(Z) * rounding_of(basis.mean) ** 2 @ basis.matrix**2)
        return float(np.max(rounding / np.linalg.norm(Z, axis=0)))


def _warn_of_rounded_rows(name: str, condition: float, noise: float, dtype: np.dtype) -> None:
    """Warn of directions that are hardly larger than the rounding of the rows themselves."""
    words = _condition_in_words(condition)
    if noise * np.finfo(dtype).eps > _EPS:
        words += " and its means are far above its deviations"
    warn(
        f"View {name!r} is close to collinear for {dtype} rows: {words}, so its smallest "
        f"directions may be the rounding of its numbers to {dtype}. Pass float64 rows, or set "
        "reg > 0."
    )


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


def mean_and_variance(name: str, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of every column, in float64; a variance that is only rounding is 0."""
    mean, variance = as_block(X).mean_and_variance()
    rounding = X.shape[0] * _EPS * np.abs(mean)
    variance = np.where(variance <= rounding**2, 0, variance)
    check_variance(name, variance)
    return mean, variance


def _condition_in_words(condition: float) -> str:
    number = f"{condition:.0e}" if np.isfinite(condition) else "beyond what its covariance can tell"
    return f"its condition number is {number}"
