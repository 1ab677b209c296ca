"""How many digits a fit needs: the precision of products, and a basis for ill-conditioned views.

A correlation that comes out of covariances loses digits with the square of the condition number κ
of its views. Products of float32 rows are therefore taken in float32 only while κ is small, in
float64 otherwise; and views that are too ill-conditioned for any covariance are decomposed
themselves. `solve_precisely` decides; a method that forgets to ask it gets `DigitsLost`, not a
wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.sparse import issparse

from mvcca._backend import precision
from mvcca._warnings import warn
from mvcca.linalg import DigitsLost, Rotation, Whitener
from mvcca.linear._rotations import rotate
from mvcca.sources import RowSource
from mvcca.views import Views

T = TypeVar("T")

# The error of a correlation is at most about this times ε κ² (10,000 random problems, both dtypes).
_ERROR = 0.25
# What it may be, given the digits of the rows.
_TOLERANCES = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-9}
_DECOMPOSED_BYTES = 2 * 2**30  # of float64 rows, up to which a view is decomposed itself


@dataclass(frozen=True)
class Precision:
    """Precision of the rows and of their products, and what is done where it does not suffice.

    Attributes
    ----------
    rows : dtype
        Precision of the coarsest view.
    products : dtype
        Precision in which products of rows are taken.
    improvable : frozenset of str
        Views for which `solve_precisely` has something better to offer.
    """

    rows: np.dtype
    products: np.dtype
    improvable: frozenset[str] = frozenset()

    @classmethod
    def of_batch(cls, views: Views) -> Precision:
        """Products in float64: batches that are gone cannot be multiplied again."""
        return cls(_coarsest(views), np.dtype(np.float64))

    @property
    def eps(self) -> float:
        """Unit roundoff of the products."""
        return float(np.finfo(self.products).eps)

    def check(self, whiteners: Mapping[str, Whitener], rank_expected: Collection[str] = ()) -> None:
        """Raise `DigitsLost` where something better can be done, and warn where not.

        Views in `rank_expected` have fewer directions than features by construction.
        """
        limit = np.sqrt(_TOLERANCES[self.rows] / (_ERROR * self.eps))
        conditions = {
            name: whitener.condition
            for name, whitener in whiteners.items()
            if name not in rank_expected
        }
        lost = [name for name, condition in conditions.items() if condition > limit]
        if better := self.improvable.intersection(lost):
            raise DigitsLost(better)
        for name, condition in conditions.items():
            whitener = whiteners[name]
            if name in lost:
                warn(
                    f"View {name!r} is close to collinear: {_condition_in_words(condition)} and "
                    f"{whitener.rank} of {len(whitener.scale)} directions are told from rounding, "
                    "so correlations may lose digits. Set reg > 0, or fit dense rows in memory."
                )
            else:
                self.warn_of_rounded_rows(name, condition)

    def warn_of_rounded_rows(self, name: str, condition: float) -> None:
        """Warn of directions that are hardly larger than the rounding of the rows themselves."""
        if condition * np.finfo(self.rows).eps > 1e-2:
            warn(
                f"View {name!r} is close to collinear for {self.rows} rows: "
                f"{_condition_in_words(condition)}, so its smallest directions may be the rounding "
                f"of its numbers to {self.rows}. Pass float64 rows, or set reg > 0."
            )


def solve_precisely(
    solve: Callable[[Views, Mapping[str, Rotation], Precision], T],
    views: Views,
    reg: Mapping[str, float],
    weights: np.ndarray | None = None,
    rotations: Mapping[str, Rotation] | None = None,
    *,
    decompose: bool = True,
    try_float32: bool = True,
) -> T:
    """The result of `solve` in the precision, and in the basis, that the views need.

    Parameters
    ----------
    solve : callable
        Takes views, the rotations into their bases, and a `Precision`, to which it shows its
        whiteners (see `mvcca.linear._constraint.whiten`).
    views : Views
        Rows, perhaps rotated already.
    reg : mapping of str to float
        Ridge of each view; a view without one is decomposed in units of its columns.
    weights : ndarray, shape (n_objects,), optional
        How often each object counts.
    rotations : mapping of str to Rotation, optional
        What views have been rotated by.
    decompose : bool, default=True
        Whether `solve` takes views in any basis.
    try_float32 : bool, default=True
        Whether float32 products of float32 rows are worth an attempt.

    Raises
    ------
    DigitsLost
        If a correlation is above 1 all the same.
    """
    rotations = dict(rotations or {})
    rows = _coarsest(views)
    if try_float32 and takes_float32_products(views):
        try:
            return solve(views, rotations, Precision(rows, rows, frozenset(views.names)))
        except DigitsLost:
            pass  # float64 may have enough of them
    float64 = np.dtype(np.float64)
    decomposable = _decomposable(views) if decompose else frozenset()
    try:
        return solve(views, rotations, Precision(rows, float64, decomposable))
    except DigitsLost as lost:
        if not (poor := decomposable.intersection(lost.views)):
            raise
    final = Precision(rows, float64)
    find = {
        name: partial(Rotation.to_principal_components, equilibrate=not reg[name])
        for name in views.names
        if name in poor
    }
    views, found = rotate(views, weights, find)
    for name, rotation in found.items():
        lengths = np.linalg.norm(views[name], axis=0)
        final.warn_of_rounded_rows(name, lengths.max() / lengths.min())
        rotations[name] = rotations[name].then(rotation) if name in rotations else rotation
    return solve(views, rotations, final)


def takes_float32_products(views: Views) -> bool:
    """Whether all rows are dense and in float32, so that float32 products are a saving."""
    blocks = [block for _, block in views.items()]
    return not any(_is_sparse(block) or precision(block) == np.float64 for block in blocks)


def _coarsest(views: Views) -> np.dtype:
    return max((precision(block) for _, block in views.items()), key=lambda d: np.finfo(d).eps)


def _is_sparse(block: object) -> bool:
    return block.is_sparse if isinstance(block, RowSource) else issparse(block)


def _decomposable(views: Views) -> frozenset[str]:
    """Views whose rows are in memory and not too many."""
    return frozenset(
        name
        for name, block in views.items()
        if not isinstance(block, RowSource)
        and 8 * np.prod(block.shape, dtype=float) <= _DECOMPOSED_BYTES
    )


def _condition_in_words(condition: float) -> str:
    number = f"{condition:.0e}" if np.isfinite(condition) else "beyond what its covariance can tell"
    return f"its condition number is {number}"
