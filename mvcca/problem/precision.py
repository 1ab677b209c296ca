"""The precision in which rows are solved.

A correlation that is computed from covariances loses digits with the square of the condition number
κ of its views. Products of float32 rows are therefore taken in float32 only while κ is small, in
float64 otherwise; and views that are too ill-conditioned for any covariance are decomposed
themselves. `climb` tries these in turn, and `check_precision` is called for every problem, so that
a method cannot return an inaccurate answer by forgetting to ask.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mvcca.machine.warnings import warn
from mvcca.problem._bases import Explicit, principal_components, within_units
from mvcca.problem._copies import distinct_columns, first_copies
from mvcca.problem._sampled_condition import is_ill_conditioned
from mvcca.problem.ridge import ridged
from mvcca.problem.rows import Rows
from mvcca.problem.whitener import AnyWhitener, Bidiagonal, Whitener, rounding_of
from mvcca.statistics import Moments, column_slices
from mvcca.statistics.digits_lost import DigitsLost

T = TypeVar("T")

# The error of a correlation is at most about this times ε κ² (10,000 random problems, both dtypes).
_ERROR = 0.25
# Allowed error, by the precision of the rows.
_TOLERANCES = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
_DECOMPOSED_BYTES = 2 * 2**30  # of float64 rows, up to which a view is decomposed itself
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_ROWS_PER_FEATURE = 2  # of a batch; of fewer, the smallest directions are mostly chance
_EPS = np.finfo(_FLOAT64).eps
_BYTES = attrgetter("itemsize")  # of a precision
_SEEN_ROUNDING = 1e-2  # share of a direction's length above which rounding is worth a warning


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
        the `rounding_of` its mean.
    of_holes : bool
        Whether matrices are estimates from rows with holes, which cannot be decomposed instead.
    """

    about_zero: bool = False
    of_features: bool = False
    rounding: Mapping[str, np.ndarray] = field(default_factory=dict)
    of_holes: bool = False


OF_COVARIANCES = Exactness()


class KnownRank(NamedTuple):
    """How the matrices of a view lack rank by construction.

    `between` is an upper bound of the rank of its blocks A_pq. `why` says in words why its
    constraint lacks rank, which is then no reason to warn of rounding.
    """

    between: int | None = None
    why: str | None = None


def climb(rows: Rows, learn: Callable[[Rows], T]) -> T:
    """The result of `learn` for rows in the precision, and in the basis, that they need.

    Parameters
    ----------
    rows : Rows
        The rows; their `Reading` says what is tried.
    learn : callable
        Takes `Rows`; raises `DigitsLost` where their precision is too low.

    Raises
    ------
    DigitsLost
        If a correlation is above 1 in the best precision there is.
    """
    if rows.reading.in_row_space:
        rows = rows.in_row_space()
    views, decompose = rows.views, rows.reading.decompose
    again = partial(climb, learn=learn)
    dtypes = {block.dtype for block in views.blocks.values()}
    dtype = min(dtypes, key=_BYTES)
    reading = replace(rows.reading, dtype=dtype, products=_FLOAT64)
    if reading.float32 and _FLOAT64 not in dtypes and not views.is_sparse:
        limit = float(np.sqrt(_TOLERANCES[dtype] / (_ERROR * np.finfo(dtype).eps)))
        sampled = views, rows.sample_weight, rows.reg  # all in the features themselves
        every = frozenset(views.names)
        in_vain = decompose and is_ill_conditioned(*sampled, limit)
        # float64 does not help where columns are copies of others.
        if in_vain and (copies := _first_copies(rows, every)):
            return again(rows.rotated(copies))
        if not in_vain:
            try:
                return learn(rows.read(dtype=dtype, products=dtype, improvable=every))
            except DigitsLost as lost:  # float64 may have enough of them
                if decompose and (copies := _first_copies(rows, lost.views)):
                    return again(rows.rotated(copies))
    decomposable = frozenset(  # in memory and not too large
        name
        for name, block in views.blocks.items()
        if decompose
        and not block.is_lazy
        and 8 * np.prod(block.shape, dtype=float) <= _DECOMPOSED_BYTES
    )
    try:
        return learn(replace(rows, reading=replace(reading, improvable=decomposable)))
    except DigitsLost as lost:
        if not (poor := decomposable & lost.views):
            raise
        if copies := _first_copies(rows, poor):
            return again(rows.rotated(copies))
    in_float64 = replace(rows, reading=reading)
    return learn(_decomposed(in_float64, [name for name in views.names if name in poor]))


def _first_copies(rows: Rows, names: Collection[str]) -> dict[str, Any]:
    """What makes one of equal columns, for the views among these that have some."""
    found: dict[str, Any] = {}
    for name in rows.views.names:
        X = rows.views.blocks[name].matrix
        if name not in names or name in rows.reading.bases or not isinstance(X, np.ndarray):
            continue
        first = first_copies(X)
        if first is not None:
            found[name] = partial(distinct_columns, first, orthonormal=bool(rows.reg[name]))
    return found


def _decomposed(rows: Rows, names: Collection[str]) -> Rows:
    """The same rows, those of some views in their principal components."""
    center, dtype = rows.reading.center, rows.reading.dtype
    assert dtype is not None
    eps = np.finfo(dtype).eps
    rows = rows.rotated(
        {
            name: partial(principal_components, equilibrate=not rows.reg[name], center=center)
            for name in names
        }
    )
    for name in names:
        basis, Z = within_units(rows.reading.bases[name]), rows.views[name]
        assert isinstance(basis, Explicit)
        lengths = np.linalg.norm(Z, axis=0)
        rounding = np.sqrt(len(Z) * rounding_of(basis.mean) ** 2 @ basis.matrix**2)
        noise = float(np.max(rounding / lengths))  # largest share of a direction's length
        condition = lengths.max() / lengths.min()
        if max(condition * eps / _SEEN_ROUNDING, noise * eps / _EPS) > 1:
            _warn_of_rounded_rows(name, condition, noise, dtype)
    return rows


def check_precision(
    rows: Rows,
    whiteners: Mapping[str, AnyWhitener],
    exactness: Exactness = OF_COVARIANCES,
    ranks: Mapping[str, KnownRank] | None = None,
) -> None:
    """Raise `DigitsLost` if `climb` can do better, and warn if it cannot.

    Views whose constraint lacks rank by construction are judged with a ridge only.
    """
    dtype = rows.reading.dtype or min((X.dtype for X in rows.views.blocks.values()), key=_BYTES)
    tolerance, eps = _TOLERANCES[dtype], np.finfo(dtype).eps
    limit = np.sqrt(tolerance / (_ERROR * np.finfo(rows.reading.products).eps))
    lacking = {name for name, own in (ranks or {}).items() if own.why is not None}
    judged = {n: own for n, own in whiteners.items() if rows.reg[n] or n not in lacking}
    lost = [name for name, own in judged.items() if own.condition > limit]
    noisy = [name for name, own in whiteners.items() if own.noise > tolerance]
    far = noisy if exactness.about_zero else []
    if better := rows.reading.improvable.intersection(lost + far):
        raise DigitsLost(better)
    for name in far:
        warn(
            f"Means of view {name!r} are so far above its deviations that sums of its rows by "
            "label lose digits, so correlations may lose digits. Subtract the means, or fit "
            "dense rows in memory."
        )
    for name, own in judged.items():
        if name in lost:
            assert not isinstance(own, Bidiagonal)
            warn(
                f"View {name!r} is close to collinear: {_condition_in_words(own.condition)} and "
                f"{own.rank} of {len(own.scale)} directions are above rounding, "
                "so correlations may lose digits. Set reg > 0"
                f"{'' if exactness.of_holes else ', or fit dense rows in memory'}."
            )
            continue
        noise = 0.0 if exactness.of_features else own.noise
        if max(own.condition * eps / _SEEN_ROUNDING, noise * eps / _EPS) > 1:
            _warn_of_rounded_rows(name, own.condition, noise, dtype)


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


def _condition_in_words(condition: float) -> str:
    number = f"{condition:.0e}" if np.isfinite(condition) else "beyond what its covariance can tell"
    return f"its condition number is {number}"


def suits_float32(rows: Rows, statistic: Any) -> bool:
    """Whether float32 products suffice for batches like the first one, given its statistic.

    Later batches may be worse: half the condition number that `climb` allows is accepted.
    """
    dtypes = {block.dtype for block in rows.views.blocks.values()}
    if (
        rows.reading.units
        or not isinstance(statistic, Moments)
        or dtypes != {_FLOAT32}
        or rows.views.is_sparse
    ):
        return False
    if len(rows.views) < _ROWS_PER_FEATURE * max(statistic.widths.values()):
        return False
    limit = np.sqrt(_TOLERANCES[_FLOAT32] / (_ERROR * np.finfo(_FLOAT32).eps)) / 2
    B = statistic.covariance()
    for name, own in column_slices(statistic.widths).items():
        B_own, reg = B[own, own], rows.reg.get(name, 0.0)
        if not B_own.any():  # nothing varies yet, so that nothing is known of later batches
            return False
        if reg:
            B_own = ridged(B_own, reg, np.trace(B_own) / len(B_own))
        if Whitener.of(B_own).condition > limit:
            return False
    return True
